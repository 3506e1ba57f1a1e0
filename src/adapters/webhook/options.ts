// The options of a webhook, and their checks.

import type { IncomingHttpHeaders } from 'node:http';
import { z } from 'zod';
import type { ExternalEvent } from '../../actors/ports/event-source.ts';
import { checkUnshown } from '../../values/checks.ts';
import { ConfigurationError } from '../../values/errors.ts';
import { keyOf, signsTime, type SignatureScheme } from './signatures.ts';

/** A request with a valid signature. */
export interface WebhookDelivery {
  /** The parsed JSON body. */
  readonly body: unknown;
  /** The request headers. */
  readonly headers: IncomingHttpHeaders;
  /** The message id, if the scheme has one. */
  readonly id: string | null;
}

/** The reason why a request is refused. It is meant for the operator; the sender receives less detail. */
export interface WebhookRefusal {
  /** The HTTP status of the response. */
  readonly status: number;
  /** The reason, as text. */
  readonly reason: string;
}

/** The options of `webhookSource`. */
export interface WebhookSourceOptions {
  /** @defaultValue 'webhook' */
  readonly name?: string;
  /** The request path, such as `/webhooks/orders`. */
  readonly path: string;
  /** At least 16 bytes. During rotation, pass several secrets. A signature made with any of them is accepted. */
  readonly secret: string | readonly string[];
  /** The signature scheme of the requests. @defaultValue 'standard' (standardwebhooks.com) */
  readonly signature?: SignatureScheme;
  /** The address of a separate server. If it is absent, requests arrive through `handler`. */
  readonly listen?: {
    /** The port; 0 selects any free port. */
    readonly port: number;
    /** @defaultValue '127.0.0.1' */
    readonly host?: string;
  };
  /**
   * Returns the event for a request, or null if the request should cause no event. @defaultValue `{ source: name, type:
   * body.type or 'webhook', data: body }`
   */
  readonly toEvent?: (delivery: WebhookDelivery) => ExternalEvent | null;
  /** The maximum body size. @defaultValue 262144 bytes */
  readonly maxBytes?: number;
  /** The maximum difference between a request's timestamp and the current time, in milliseconds. @defaultValue 300000 */
  readonly toleranceMs?: number;
  /** The maximum number of messages that are remembered, so that no message is accepted twice. @defaultValue 10000 */
  readonly maxRemembered?: number;
  /** The rate limit for requests with a valid signature. @defaultValue 30 at once, 10 a second */
  readonly rate?: Rate;
  /**
   * The maximum number of bodies that are read at the same time. A further body displaces the slowest one. It is also
   * the maximum number of signed messages that are being accepted at the same time. The senders of further messages are
   * asked to try again later.
   * @defaultValue 50
   */
  readonly maxConcurrent?: number;
  /** The time limit for the body of a request, in milliseconds. @defaultValue 10000 */
  readonly bodyTimeoutMs?: number;
  /** Called with the reason for each refusal. If the callback throws, the error is reported. */
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

/** @throws {ConfigurationError} whose message names the option and the expected value, but never a secret */
export function checkOptions(options: WebhookSourceOptions): CheckedOptions {
  const checked = checkUnshown('webhookSource', schema, options);
  const { secret, signature: scheme, ...rest } = checked;
  const keys = [secret].flat().map((one) => keyOf(scheme, one));
  if (keys.some(({ length }) => length < MIN_KEY_BYTES))
    throw invalid(`expected \`secret\` to have at least ${MIN_KEY_BYTES} bytes`);
  if (signsTime(scheme)) {
    // The source must remember all messages that may arrive within the tolerance.
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

/** Returns the event for a body. Most bodies name their own type. */
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

/** A rate of requests. */
export interface Rate {
  /** The number of requests that are allowed in one burst. */
  readonly burst: number;
  /** The number of requests added per second, up to `burst`. */
  readonly perSecond: number;
}

/** A token bucket, which allows a burst and then a constant rate. */
export class RateLimit {
  readonly #rate: Rate;
  #left: number;
  #filledAt = Number.NEGATIVE_INFINITY;

  constructor(rate: Rate) {
    this.#rate = rate;
    this.#left = rate.burst;
  }

  /** Takes a token if one is available. `now`: the current time in milliseconds. */
  take(now: number): boolean {
    const { burst, perSecond } = this.#rate;
    const seconds = Math.max(0, now - this.#filledAt) / 1000;
    this.#left = Math.min(burst, this.#left + seconds * perSecond);
    this.#filledAt = now;
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}
