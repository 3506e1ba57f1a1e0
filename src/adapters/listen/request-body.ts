// Reads a request body, limiting its size and the time to read it.

import type { IncomingMessage } from 'node:http';
import type { Scheduler } from '../../actors/ports/environment.ts';

/** The bytes, or the reason why they are missing. `consumed`: other code has already read or decoded the body. */
export type Body = Buffer | 'too_large' | 'too_late' | 'aborted' | 'consumed';

export interface BodyLimits {
  readonly scheduler: Scheduler;
  /** The limit in bytes. A larger announced length also counts as `too_large`. */
  readonly maxBytes: number;
  /** The time limit for the whole body, in milliseconds. */
  readonly timeoutMs: number;
  /** Stops reading, so that the result is `aborted`. */
  readonly signal?: AbortSignal;
}

/** Reads the body and stops at the first failure. Never rejects. */
export function readBody(
  request: IncomingMessage,
  { scheduler, maxBytes, timeoutMs, signal }: BodyLimits,
): Promise<Body> {
  // A body that other code has decoded differs from the signed body.
  if (request.readableEnded || request.readableDidRead || request.readableEncoding !== null)
    return Promise.resolve('consumed');
  if (signal?.aborted || request.destroyed) return Promise.resolve('aborted');
  if (Number(request.headers['content-length'] ?? 0) > maxBytes)
    return Promise.resolve('too_large');
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const end = (body: Body): void => {
      request.off('data', read).off('end', ended).off('close', aborted).pause();
      signal?.removeEventListener('abort', aborted);
      cancel();
      resolve(body);
    };
    const read = (chunk: Buffer): void => {
      bytes += chunk.byteLength;
      if (bytes > maxBytes) end('too_large');
      else chunks.push(chunk);
    };
    const ended = (): void => end(Buffer.concat(chunks));
    const aborted = (): void => end('aborted');
    const cancel = scheduler.schedule(() => end('too_late'), timeoutMs);
    signal?.addEventListener('abort', aborted, { once: true });
    // A broken connection emits `error` and then `close`, so handling `close` is enough.
    request.on('error', () => undefined);
    request.on('data', read).on('end', ended).on('close', aborted);
  });
}
