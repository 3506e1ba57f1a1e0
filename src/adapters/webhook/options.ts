// The options of a webhook, checked.

import { checkUnshown } from '../../values/checks.ts';
import type { IncomingHttpHeaders } from 'node:http';
import { z } from 'zod';
import { ConfigurationError } from '../../values/errors.ts';
import type { ExternalEvent } from '../../actors/ports/event-source.ts';
import type { Rate } from './rate-limit.ts';
import { keyOf, signsTime, type SignatureScheme } from './signatures.ts';

/** A request whose signature is right. */
export interface WebhookDelivery {
  /** The body, as JSON. */
  readonly body: unknown;
  readonly headers: IncomingHttpHeaders;
  /** The id of the message, where the scheme has one. */
  readonly id: string | null;
}

/** Why a request was refused, for the operator; the sender learns less. */
export interface WebhookRefusal {
  readonly status: number;
  readonly reason: string;
}

export interface WebhookSourceOptions {
  /** @defaultValue 'webhook' */
  readonly name?: string;
  /** The path of the requests, such as `/webhooks/orders`. */
  readonly path: string;
  /** At least 16 bytes. Several: each is good, while the sender changes its own. */
  readonly secret: string | readonly string[];
  /** How requests are signed. @defaultValue 'standard' (standardwebhooks.com) */
  readonly signature?: SignatureScheme;
  /** Listens itself; without it, requests come through `handler`. */
  readonly listen?: {
    /** 0: any that is free. */
    readonly port: number;
    /** @defaultValue '127.0.0.1' */
    readonly host?: string;
  };
  /**
   * The event of a request; null: none. @defaultValue `{ source: name, type: body.type or 'webhook', data: body }`
   */
  readonly toEvent?: (delivery: WebhookDelivery) => ExternalEvent | null;
  /** Of a body. @defaultValue 262144 bytes */
  readonly maxBytes?: number;
  /** How much older or newer than now a request's time may be, in milliseconds. @defaultValue 300000 */
  readonly toleranceMs?: number;
  /** Messages that are remembered, so that none is taken twice. @defaultValue 10000 */
  readonly maxRemembered?: number;
  /** Requests with a right signature. @defaultValue 30 at once, 10 a second */
  readonly rate?: Rate;
  /**
   * Bodies that are being read at the same time: one more takes the place of the slowest. And signed
   * messages that are being taken: one more is told to come later. @defaultValue 50
   */
  readonly maxConcurrent?: number;
  /** Time for a request's body to arrive, in milliseconds. @defaultValue 10000 */
  readonly bodyTimeoutMs?: number;
  /** Learns why requests are refused. What it throws is reported. */
  readonly onRefused?: (refusal: WebhookRefusal) => void;
}

export type CheckedOptions = Omit<
  Required<WebhookSourceOptions>,
  'listen' | 'secret' | 'signature'
> & {
  readonly scheme: SignatureScheme;
  readonly keys: readonly Buffer[];
  readonly listen: { readonly port: number; readonly host: string } | null;
};

const MIN_KEY_BYTES = 16;

const count = z.number().int().min(1);
const milliseconds = z.number().positive();
const headerName = z.string().regex(/^[\w!#$%&'*+.^`|~-]+$/, 'expected the name of a header');
const anyFunction = z.custom<() => never>((value) => typeof value === 'function', {
  error: 'expected a function',
});
const schema = z.strictObject({
  name: z.string().min(1).default('webhook'),
  path: z.string().regex(/^\/[^?#\s]*$/, 'expected a path that begins with "/"'),
  secret: z.union([z.string(), z.array(z.string()).min(1)]),
  signature: z
    .union([
      z.enum(['standard', 'stripe', 'github']),
      z.strictObject({
        header: headerName,
        prefix: z.string().optional(),
        encoding: z.enum(['hex', 'base64']).optional(),
        timestampHeader: headerName.optional(),
        idHeader: headerName.optional(),
      }),
    ])
    .default('standard'),
  listen: z
    .strictObject({
      port: z.number().int().min(0).max(65_535),
      host: z.string().min(1).default('127.0.0.1'),
    })
    .nullable()
    .default(null),
  toEvent: anyFunction.optional(),
  maxBytes: count.default(262_144),
  toleranceMs: milliseconds.default(300_000),
  maxRemembered: count.default(10_000),
  rate: z
    .strictObject({ burst: z.number().min(1), perSecond: z.number().positive() })
    .default({ burst: 30, perSecond: 10 }),
  maxConcurrent: count.default(50),
  bodyTimeoutMs: milliseconds.default(10_000),
  onRefused: anyFunction.optional(),
});

/** @throws {ConfigurationError} that names the option and what was expected; never shows a secret. */
export function checkOptions(options: WebhookSourceOptions): CheckedOptions {
  const checked = checkUnshown('webhookSource', schema, options);
  const { secret, signature: scheme, ...rest } = checked;
  const keys = [secret].flat().map((one) => keyOf(scheme, one));
  if (keys.some(({ length }) => length < MIN_KEY_BYTES))
    throw invalid(`expected \`secret\` to have at least ${MIN_KEY_BYTES} bytes`);
  if (signsTime(scheme)) {
    // All that may come while a message is still in time must be remembered.
    const { rate, toleranceMs, maxRemembered } = rest;
    const most = Math.ceil(rate.burst + (rate.perSecond * 2 * toleranceMs) / 1000);
    if (most > maxRemembered)
      throw invalid(
        `expected \`maxRemembered\` to be at least ${most}, what \`rate\` lets in within twice \`toleranceMs\`, got ${maxRemembered}`,
      );
  }
  const { name } = rest;
  return {
    ...rest,
    scheme,
    keys,
    toEvent: options.toEvent ?? (({ body }) => eventOf(name, body)),
    onRefused: options.onRefused ?? (() => undefined),
  };
}

/** The event of a body that may name its own type, as most do. */
function eventOf(name: string, body: unknown): ExternalEvent {
  const type =
    typeof body === 'object' && body !== null && 'type' in body && typeof body.type === 'string'
      ? body.type
      : 'webhook';
  return { source: name, type, data: body };
}

function invalid(message: string): ConfigurationError {
  return new ConfigurationError('INVALID_OPTION', `webhookSource: ${message}`);
}
