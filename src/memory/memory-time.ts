// The time limit for the app's memory: facts, and working memory.

import { TimeoutError } from '../values/errors.ts';
import type { Environment } from '../actors/ports/environment.ts';
import type { TimeLimit } from '../values/race-abort.ts';

const MEMORY_TIMEOUT_MS = 5000;

/** Returns the time limit of a memory read or write. A later answer is ignored, and the error is reported. */
export function memoryTime({ scheduler }: Pick<Environment, 'scheduler'>): TimeLimit {
  return {
    timeoutMs: MEMORY_TIMEOUT_MS,
    scheduler,
    late: () =>
      new TimeoutError(`Expected the memory to answer within ${MEMORY_TIMEOUT_MS} ms`, {
        code: 'MEMORY_TIMEOUT',
      }),
  };
}
