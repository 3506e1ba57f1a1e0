// Repeats a turn that one worker leaves to others, for test engines that make a second attempt.

import { JobError } from '../../src/actors/ports/jobs.ts';
import type { RunHandler } from '../../src/entries/jobs.ts';
import { isA } from '../../src/values/errors.ts';

export function askedAgain(handler: RunHandler): RunHandler {
  return {
    step: handler.step,
    holds: (turn) => handler.holds?.(turn) ?? false,
    async turn(turn, signal) {
      try {
        const end = await handler.turn(turn, signal);
        return end.missing === 'another worker' ? await handler.turn(turn, signal) : end;
      } catch (error) {
        if (signal.aborted || !isA(error, JobError) || !error.retryable) throw error;
        return handler.turn(turn, signal);
      }
    },
  };
}
