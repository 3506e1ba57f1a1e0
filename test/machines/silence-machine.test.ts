import { describe, test } from 'vitest';
import { silenceMachine } from '../../src/machines/silence-machine.ts';
import { mutate } from './support/mutate.ts';
import { checkSilence } from './support/silence-check.ts';
import { silenceFaults } from './support/silence-faults.ts';
import { announce, catches, holds, holdsThroughout } from './support/verdicts.ts';

describe('every state of a silence', () => {
  const report = checkSilence();
  announce(report);

  test('SILENCE-1: stops the timers while either party is active', () =>
    holds(report, 'SILENCE-1'));

  test('SILENCE-2: reports each event once when it is due', () => holds(report, 'SILENCE-2'));

  test('SILENCE-3: reports when a user who was away returns', () => holds(report, 'SILENCE-3'));

  test('violates no other property and reaches the expected states', () => holdsThroughout(report));
});

describe('planted faults', () => {
  test('finds no violation if no fault is planted', () =>
    holdsThroughout(checkSilence(mutate(silenceMachine, () => {}))));

  test.each(silenceFaults)('$fault', ({ machine, property }) =>
    catches((first) => checkSilence(machine, first), property),
  );
});
