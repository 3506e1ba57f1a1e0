// Shows the running actors of sessions in an inspector, as one tree.
//
// Owns:     choosing the transport to viewers, and shutting down.
// Does not: observe (`stream.ts`), convert (`trace-line.ts`) or redact (`shown-value.ts`).

import type { InspectionEvent } from 'xstate';
import { z } from 'zod';
import type { Environment } from '../../actors/ports/environment.ts';
import { check } from '../../values/checks.ts';
import { ConfigurationError, quietly } from '../../values/errors.ts';
import type { RelayTarget } from './relay.ts';
import { redactNothing, redactWords, type Redact } from './shown-value.ts';
import { InspectionStream, type StreamOptions } from './stream.ts';
import type { InspectorMessage } from './trace-line.ts';
import {
  openBrowserViewer,
  type BrowserWindow,
  openWebSocketViewer,
  type BrowserTarget,
  type WebSocketTarget,
} from './viewers.ts';

/** An inspector target that passes its messages to a callback of the app. */
export interface SinkTarget {
  /** Selects a callback of the app. */
  readonly mode: 'sink';
  /** Called with each message, in order. Adapters of `@statelyai/inspect` have the same signature. */
  readonly send: (message: InspectorMessage) => void;
}

/** The destination of the stream. */
export type InspectorTarget = RelayTarget | BrowserTarget | WebSocketTarget | SinkTarget;

/** The options of `createInspector`. */
export interface InspectorOptions {
  /** Provides the clock and generates a relay's token. */
  readonly environment: Environment;
  /** @defaultValue `{ mode: 'relay' }` */
  readonly to?: InspectorTarget;
  /**
   * Controls the redaction of contexts, events, outputs and errors. `true` hides the texts of the user and the model
   * (see `redactWords`), `false` hides nothing, and a function decides for each value.
   * @defaultValue true
   */
  readonly redact?: boolean | Redact;
  /**
   * The maximum size of a message as JSON text; at least 16384. Parts that do not fit are omitted and marked.
   * @defaultValue 65536
   */
  readonly maxBytes?: number;
  /**
   * The maximum length of a slow viewer's queue. If the queue is longer, the oldest messages are dropped. @defaultValue
   * 5000
   */
  readonly maxQueuedLines?: number;
  /** The maximum number of ended actors that late viewers see. @defaultValue 500 */
  readonly maxEndedActors?: number;
  /** The delay between an event and its message, in milliseconds. @defaultValue 50 */
  readonly flushMs?: number;
  /** Called with non-fatal errors, such as a lost connection or a `send` that threw. @defaultValue none */
  readonly onError?: (error: unknown, where: string) => void;
}

/** The defaults of `createInspector`: a relay on 127.0.0.1, with texts redacted. */
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

interface InspectorSettings extends StreamOptions {
  readonly to: InspectorTarget;
}

/** @throws {ConfigurationError} `INVALID_OPTION`; the message names each invalid option. */
function resolveOptions(options: InspectorOptions): InspectorSettings {
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

/** The inspector that `createInspector` returns. */
export interface Inspector {
  /** The callback for `createRuntime({ inspect })` or `createActor(machine, { inspect })`. Never throws. */
  readonly inspect: (event: InspectionEvent) => void;
  /** Relay only: the page to open in a browser. Its URL contains the token, which gives read access. */
  readonly url?: string;
  /** Relay only: the URL for `createWebSocketReceiver({ server })`, which contains the token. */
  readonly streamUrl?: string;
  /** Sends the pending messages and disconnects all viewers. Later actor events are ignored. */
  stop(): Promise<void>;
}

type Opened = Omit<Inspector, 'inspect'>;

/**
 * Creates an inspector.
 * @throws {ConfigurationError} `INVALID_OPTION`; `MISSING_DEPENDENCY` if a package for this mode is missing;
 *   `CANNOT_LISTEN` if a relay's port is taken; `NO_WINDOW` outside a browser.
 */
export async function createInspector(options: InspectorOptions): Promise<Inspector> {
  const settings = resolveOptions(options);
  const stream = new InspectionStream(settings);
  const { stop, ...addresses } = await open(stream, settings);
  return {
    inspect: stream.inspect,
    ...addresses,
    async stop() {
      stream.stop();
      await stop();
    },
  };
}

async function open(
  stream: InspectionStream,
  { to, environment, onError }: InspectorSettings,
): Promise<Opened> {
  switch (to.mode) {
    case 'relay': {
      // Imported on demand, because this module needs Node.js and a browser must not load it.
      const { startRelay } = await import('./relay.ts');
      return startRelay(stream, environment, to);
    }
    case 'browser': {
      const window = to.window ?? (globalThis as { window?: BrowserWindow }).window;
      if (!window)
        throw new ConfigurationError(
          'NO_WINDOW',
          "Expected a `window` for the mode 'browser', got none: use 'relay' outside of browsers",
        );
      const close = await openBrowserViewer(stream, window, to);
      return { stop: () => Promise.resolve(close()) };
    }
    case 'webSocket':
      return { stop: openWebSocketViewer(stream, to.url, environment, onError) };
    case 'sink': {
      const detach = stream.attach({
        isReady: () => true,
        send: ({ message }) => to.send(message),
      });
      return { stop: () => Promise.resolve(detach()) };
    }
  }
}
