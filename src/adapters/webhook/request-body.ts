// The body of a request, as the bytes that were signed.

import type { IncomingMessage } from 'node:http';

/** The bytes, or why there are none. */
export type Body = Buffer | 'too_large' | 'aborted' | 'consumed';

/** Reads at most `maxBytes`; stops when the signal aborts. Never rejects. */
export function readBody(
  request: IncomingMessage,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Body> {
  // Something before us has read or decoded it, and that form is not what was signed.
  if (request.readableEnded || request.readableDidRead || request.readableEncoding !== null)
    return Promise.resolve('consumed');
  if (signal.aborted) return Promise.resolve('aborted');
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const end = (body: Body): void => {
      request.off('data', read).off('end', ended).off('close', closed).pause();
      signal.removeEventListener('abort', aborted);
      resolve(body);
    };
    const read = (chunk: Buffer): void => {
      bytes += chunk.byteLength;
      if (bytes > maxBytes) end('too_large');
      else chunks.push(chunk);
    };
    const ended = (): void => end(Buffer.concat(chunks));
    const closed = (): void => end('aborted');
    const aborted = (): void => end('aborted');
    signal.addEventListener('abort', aborted, { once: true });
    // A connection that breaks emits `error` and `close`; the second says it all.
    request.on('error', () => undefined);
    request.on('data', read).on('end', ended).on('close', closed);
  });
}
