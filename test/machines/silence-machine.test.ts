import { describe, test } from 'vitest';
import { silenceMachine } from '../../src/machines/silence-machine.ts';
import { mutate } from './support/mutate.ts';
import { checkSilence } from './support/silence-check.ts';
import { silenceFaults } from './support/silence-faults.ts';
import { announce, catches, holds, holdsThroughout } from './support/verdicts.ts';

describe('every state of a silence', () => {
  const report = checkSilence();
  announce(report);

  test('SILENCE-1: stops the clocks while anything else happens', () => holds(report, 'SILENCE-1'));

  test('SILENCE-2: reports what is due once', () => holds(report, 'SILENCE-2'));

  test('SILENCE-3: reports the return of a user who was away', () => holds(report, 'SILENCE-3'));

  test('nothing else is wrong, and it is not because nothing happens', () =>
    holdsThroughout(report));
});

describe('the check bites', () => {
  test('nothing is caught without a fault', () =>
    holdsThroughout(checkSilence(mutate(silenceMachine, () => {}))));

  test.each(silenceFaults)('$fault', ({ machine, property }) =>
    catches((first) => checkSilence(machine, first), property),
  );
});
