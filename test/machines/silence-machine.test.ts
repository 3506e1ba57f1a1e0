import { describe, test } from 'vitest';
import { silenceMachine } from '../../src/machines/silence-machine.ts';
import { mutate } from './support/mutate.ts';
import { checkSilence } from './support/silence-check.ts';
import { silenceFaults } from './support/silence-faults.ts';
import { announce, catches, holds, holdsThroughout } from './support/verdicts.ts';

describe('every state of a silence', () => {
  const report = checkSilence();
  announce(report);

  test('SILENCE-1: the clocks stand while anything else goes on', () => holds(report, 'SILENCE-1'));

  test('SILENCE-2: what is due is due once', () => holds(report, 'SILENCE-2'));

  test('SILENCE-3: who is away comes back', () => holds(report, 'SILENCE-3'));

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
