// The time limit for a memory of the app: facts, and working memory.

import { TimeoutError } from '../values/errors.ts';
import type { Environment } from '../actors/ports/environment.ts';
import type { TimeLimit } from '../values/race-abort.ts';

const MEMORY_TIMEOUT_MS = 5000;

/** Returns the limit for an answer of the memory. A later answer is ignored: its content is missing, and that is reported. */
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
