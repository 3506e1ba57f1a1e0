// The error that `simulate` throws. It contains the seed, the broken promises, and the smallest script that still
// breaks one of them, as text and as JSON.

import { clip } from '../../values/clip.ts';
import { OffstageError } from '../../values/errors.ts';
import { logInWords, type LogEntry } from './log/log.ts';
import type { Broken } from './promises/broken.ts';
import { scriptInWords, type Script } from './log/script.ts';

/** A run that has broken a promise. */
export interface SimulationFailure {
  /** The seed of the failed run. */
  readonly seed: number;
  /** The promises that were broken in the original run. */
  readonly broken: readonly Broken[];
  /** The original script. */
  readonly script: Script;
  /** The smallest script found that breaks the first of these promises, and all promises that it breaks. */
  readonly shrunk: Script;
  /** The promises that `shrunk` breaks. */
  readonly shrunkBroken: readonly Broken[];
  /** The log of the run with the smallest script. */
  readonly log: readonly LogEntry[];
}

/**
 * A simulation has broken a promise. The error contains the seed, the promises, and the smallest script that still
 * breaks one of them.
 */
export class SimulationError extends OffstageError {
  /** The data from which the message was written. */
  declare readonly failure: SimulationFailure;

  constructor(failure: SimulationFailure) {
    super('PROMISE_BROKEN', inWords(failure));
    // The message shows all of this.
    Object.defineProperty(this, 'failure', { value: failure });
  }
}

const MAX_LINES = 60;

const MAX_CHARS = 600;

function inWords({ seed, shrunk, shrunkBroken, log }: SimulationFailure): string {
  const lines = logInWords(log.filter(({ kind }) => kind !== 'kept')).split('\n');
  const left = lines.length - MAX_LINES;
  return [
    `Seed ${seed} breaks a promise.`,
    ...shrunkBroken
      .slice(0, 5)
      .map(({ promise, what }) => `  ${promise}: ${clip(what, MAX_CHARS)}`),
    '',
    'The smallest script that was found to do so:',
    scriptInWords(shrunk),
    '',
    'To play it again, as JSON:',
    JSON.stringify(shrunk),
    '',
    'What happened:',
    ...(left > 0 ? [`  … ${left} lines before`] : []),
    ...lines.slice(-MAX_LINES),
  ].join('\n');
}
