// The options of `createInspector`, checked once.

import { z } from 'zod';
import type { Environment } from '../../actors/ports/environment.ts';
import { check } from '../../values/checks.ts';
import { quietly } from '../../values/errors.ts';
import type { BrowserTarget } from './browser-viewer.ts';
import { redactNothing, redactWords, type Redact } from './redact.ts';
import type { RelayTarget } from './relay.ts';
import type { StreamOptions } from './stream.ts';
import type { WebSocketTarget } from './web-socket-viewer.ts';
import type { InspectorMessage } from './wire.ts';

export interface SinkTarget {
  /** A callback of the app. */
  readonly mode: 'sink';
  /** Called with each message, in order; also fits the adapters of `@statelyai/inspect`. */
  readonly send: (message: InspectorMessage) => void;
}

/** The destination of the stream. */
export type InspectorTarget = RelayTarget | BrowserTarget | WebSocketTarget | SinkTarget;

export interface InspectorOptions {
  /** The source of time, and of a relay's token. */
  readonly environment: Environment;
  /** @defaultValue `{ mode: 'relay' }` */
  readonly to?: InspectorTarget;
  /**
   * The redaction of contexts, events, outputs and errors. `true`: hides texts of users and models, see
   * `redactWords`; `false`: shows everything; or a function that decides for each value.
   * @defaultValue true
   */
  readonly redact?: boolean | Redact;
  /**
   * The limit of one message, as JSON text; at least 16384. Parts that do not fit are cut, and marked.
   * @defaultValue 65536
   */
  readonly maxBytes?: number;
  /** The number of messages waiting for a slow viewer before older ones are dropped. @defaultValue 5000 */
  readonly maxQueuedLines?: number;
  /** The number of ended actors that late viewers see; the oldest are dropped. @defaultValue 500 */
  readonly maxEndedActors?: number;
  /** The delay from an event to its message, in milliseconds. @defaultValue 50 */
  readonly flushMs?: number;
  /** Called with errors that did no harm: a lost connection, a `send` that threw. @defaultValue none */
  readonly onError?: (error: unknown, where: string) => void;
}

export const defaultInspectorOptions = {
  to: { mode: 'relay' },
  redact: true,
  maxBytes: 65_536,
  maxQueuedLines: 5_000,
  maxEndedActors: 500,
  flushMs: 50,
  onError: () => {},
} as const satisfies Omit<InspectorOptions, 'environment'>;

const text = z.string().min(1);
const aFunction = <T>() =>
  z.custom<T>((value) => typeof value === 'function', 'expected a function');
const anObject = <T>() =>
  z.custom<T>((value) => typeof value === 'object' && value !== null, 'expected an object');

const optionsSchema = z.strictObject({
  environment: z.custom<Environment>(
    (value) => typeof (value as Partial<Environment> | null)?.clock?.now === 'function',
    'expected an environment, such as nodeEnvironment()',
  ),
  to: z
    .discriminatedUnion('mode', [
      z.strictObject({
        mode: z.literal('relay'),
        port: z.int().min(0).max(65_535).optional(),
        token: z.string().min(16).optional(),
        inspectorUrl: z.url({ protocol: /^https?$/ }).optional(),
        allowedOrigins: z.array(text).optional(),
      }),
      z.strictObject({
        mode: z.literal('browser'),
        window: anObject<NonNullable<BrowserTarget['window']>>().optional(),
        iframe: anObject<object>().optional(),
        url: z.url({ protocol: /^https?$/ }).optional(),
      }),
      z.strictObject({ mode: z.literal('webSocket'), url: z.url({ protocol: /^wss?$/ }) }),
      z.strictObject({ mode: z.literal('sink'), send: aFunction<SinkTarget['send']>() }),
    ])
    .optional(),
  redact: z.union([z.boolean(), aFunction<Redact>()]).optional(),
  maxBytes: z.int().min(16_384).optional(),
  maxQueuedLines: z.int().min(100).optional(),
  maxEndedActors: z.int().nonnegative().optional(),
  flushMs: z.number().nonnegative().optional(),
  onError: aFunction<NonNullable<InspectorOptions['onError']>>().optional(),
});

export interface InspectorSettings extends StreamOptions {
  readonly to: InspectorTarget;
}

/** @throws {ConfigurationError} `INVALID_OPTION`, naming each invalid option. */
export function resolveOptions(options: InspectorOptions): InspectorSettings {
  check('createInspector', optionsSchema, options);
  const defaults = defaultInspectorOptions;
  const { redact = defaults.redact, onError = defaults.onError } = options;
  return {
    environment: options.environment,
    to: options.to ?? defaults.to,
    redact: redact === true ? redactWords : redact === false ? redactNothing : redact,
    maxBytes: options.maxBytes ?? defaults.maxBytes,
    maxQueuedLines: options.maxQueuedLines ?? defaults.maxQueuedLines,
    maxEndedActors: options.maxEndedActors ?? defaults.maxEndedActors,
    flushMs: options.flushMs ?? defaults.flushMs,
    onError: quietly(onError),
  };
}
