import { describe, test } from 'vitest';
import { rotationMachine } from '../../src/machines/rotation-machine.ts';
import { mutate } from './support/mutate.ts';
import { checkRotation } from './support/rotation-check.ts';
import { rotationFaults } from './support/rotation-faults.ts';
import { announce, catches, holds, holdsThroughout } from './support/verdicts.ts';

describe('every state of a rotation', () => {
  const report = checkRotation();
  announce(report);

  test('ROTATION-1: has at most one candidate connection and never loses track of it', () =>
    holds(report, 'ROTATION-1'));

  test('ROTATION-2: replaces the connection during a pause or shortly before it expires', () =>
    holds(report, 'ROTATION-2'));

  test('ROTATION-3: replaces no connection during a transfer or while disconnected', () =>
    holds(report, 'ROTATION-3'));

  test('ROTATION-4: opens another connection after one fails', () => holds(report, 'ROTATION-4'));

  test('violates no other property and reaches the expected states', () => holdsThroughout(report));
});

describe('planted faults', () => {
  test('finds no violation if no fault is planted', () =>
    holdsThroughout(checkRotation(mutate(rotationMachine, () => {}))));

  test.each(rotationFaults)('$fault', ({ machine, property }) =>
    catches((first) => checkRotation(machine, first), property),
  );
});
