// Settles the return value of a tool: a value, a promise, or an iterable whose last value counts.

import { raceAbort } from '../runtime/race-abort.ts';

/**
 * Returns the result of `started`, the return value of `execute`. For an async iterable, even a promised one,
 * `preliminary` gets each value, and the last is the result; an abort makes it return, and later values are
 * ignored.
 * @throws the tool's error, or `signal.reason` as soon as the signal aborts.
 */
export async function settledOutput(
  started: unknown,
  signal: AbortSignal,
  preliminary: (output: unknown) => void,
): Promise<unknown> {
  // An iterable is not raced, because that would not stop it.
  const returned = isAsyncIterable(started) ? started : await raceAbort(started, signal);
  return isAsyncIterable(returned) ? lastOf(returned, signal, preliminary) : returned;
}

async function lastOf(
  outputs: AsyncIterable<unknown>,
  signal: AbortSignal,
  preliminary: (output: unknown) => void,
): Promise<unknown> {
  const iterator = outputs[Symbol.asyncIterator]();
  let last: unknown;
  let isDone = false;
  try {
    for (;;) {
      const result = await raceAbort(iterator.next(), signal);
      if (result.done === true) {
        isDone = true;
        return last;
      }
      last = result.value;
      preliminary(last);
    }
  } finally {
    if (!isDone) stopQuietly(iterator);
  }
}

/** Not awaited: a generator that hangs would never return. */
function stopQuietly(iterator: AsyncIterator<unknown>): void {
  try {
    void Promise.resolve(iterator.return?.()).catch(() => {});
  } catch {
    // The iterable was asked to stop; its error concerns no caller.
  }
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as Partial<AsyncIterable<unknown>>)[Symbol.asyncIterator] === 'function'
  );
}
