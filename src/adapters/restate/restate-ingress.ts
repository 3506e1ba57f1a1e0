// Restate over HTTP (its ingress and admin API), for the clients of jobs and runs. All errors have the same form.
//
// Does not: retry (callers do, if the error permits it).

import { z } from 'zod';
import { anObject } from '../../values/checks.ts';
import { isA } from '../../values/errors.ts';
import { JobError, readFrom, unreachable } from '../../actors/ports/jobs.ts';
import { withoutEndSlashes } from '../../values/end-slashes.ts';

export const ingressAddress = z.url({
  protocol: /^https?$/,
  error: 'expected an http(s) address',
});
export const serviceName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_.-]*$/, 'expected a name of letters, digits, _, . and -');
export const WEEK_MS = 604_800_000;
export const HOUR_MS = 3_600_000;
/** The maximum length of an idempotency or workflow key, which is sent in a header or path. */
export const MAX_KEY_CHARS = 400;
export const headersSchema = z.record(z.string(), z.string());
export const sdkSchema = (definition: string): z.ZodType =>
  anObject("the SDK: import * as restate from '@restatedev/restate-sdk'", definition);

/** A promise whose value Restate stores. */
export interface DurablePromise<T> extends PromiseLike<T> {
  map<U>(mapper: (value?: T) => U): DurablePromise<U>;
}

interface Asked {
  readonly method?: 'GET' | 'POST' | 'PATCH';
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

interface Answered {
  readonly status: number;
  readonly text: string;
}

export class RestateIngress {
  readonly #address: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(address: string, headers: Readonly<Record<string, string>> = {}) {
    this.#address = withoutEndSlashes(address);
    this.#headers = headers;
  }

  /**
   * Returns the response with any status.
   * @throws {JobError} `JOBS_UNREACHABLE` if there is no response, or the signal's reason
   */
  async request(
    path: string,
    { method = 'POST', body, headers, signal }: Asked,
  ): Promise<Answered> {
    try {
      const response = await fetch(`${this.#address}${path}`, {
        method,
        headers: {
          ...this.#headers,
          accept: 'application/json',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...(signal ? { signal } : {}),
      });
      return { status: response.status, text: await response.text() };
    } catch (error) {
      if (signal?.aborted === true) throw signal.reason;
      throw unreachable(`Restate at ${this.#address}`, error);
    }
  }

  /**
   * Returns a response's body.
   * @throws {JobError} if the response is an error: `JOBS_UNREACHABLE` if a retry may succeed, otherwise
   *   `JOBS_REFUSED`; `JOB_UNREADABLE` if the body has an unexpected shape.
   */
  async ask<Schema extends z.ZodType>(
    path: string,
    schema: Schema,
    asked: Asked,
  ): Promise<z.output<Schema>> {
    const answered = await this.request(path, asked);
    if (answered.status >= 300) throw refused(answered);
    return readBody(schema, answered);
  }
}

export function readBody<Schema extends z.ZodType>(
  schema: Schema,
  { text }: Answered,
): z.output<Schema> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    parsed = undefined;
  }
  return readFrom('Restate', schema, parsed);
}

/** Returns the error for a refusal. 404 is retryable because the service may not be registered yet. */
export function refused({ status, text }: Answered): JobError {
  const retryable = status === 404 || status === 408 || status === 429 || status >= 500;
  return new JobError(
    retryable ? 'JOBS_UNREACHABLE' : 'JOBS_REFUSED',
    `Restate answered ${status}: ${text.slice(0, 500)}`,
    { retryable },
  );
}

/** Whether the platform ended a long-running request because of its time limit. */
export function isSlow(error: unknown): boolean {
  const inner = isA(error, JobError) ? error.cause : undefined;
  const { cause } = (inner ?? {}) as { readonly cause?: { readonly code?: unknown } };
  return cause?.code === 'UND_ERR_HEADERS_TIMEOUT' || cause?.code === 'UND_ERR_BODY_TIMEOUT';
}
