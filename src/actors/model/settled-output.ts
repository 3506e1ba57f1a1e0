// What the work of a tool comes to: a value, a promise, or many values of which the last counts.

import { raceAbort } from '../runtime/race-abort.ts';

/**
 * The result of `started`, which is what `execute` returned. Of an async iterable, also a
 * promised one, `preliminary` is told each value, and the last is the result; after an
 * abort it is told to return, and nothing of it is heard any more.
 * @throws what the tool throws, or `signal.reason` as soon as the signal aborts.
 */
export async function settledOutput(
  started: unknown,
  signal: AbortSignal,
  preliminary: (output: unknown) => void,
): Promise<unknown> {
  // An iterable is not raced: it would not be stopped.
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
    // It was asked to stop; that it cannot is of no use to anybody.
  }
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as Partial<AsyncIterable<unknown>>)[Symbol.asyncIterator] === 'function'
  );
}
