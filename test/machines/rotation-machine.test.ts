import { describe, test } from 'vitest';
import { rotationMachine } from '../../src/machines/rotation-machine.ts';
import { mutate } from './support/mutate.ts';
import { checkRotation } from './support/rotation-check.ts';
import { rotationFaults } from './support/rotation-faults.ts';
import { announce, catches, holds, holdsThroughout } from './support/verdicts.ts';

describe('every state of a rotation', () => {
  const report = checkRotation();
  announce(report);

  test('ROTATION-1: one candidate at a time, and none is forgotten', () =>
    holds(report, 'ROTATION-1'));

  test('ROTATION-2: exchanges the connection in a pause, or at the last moment', () =>
    holds(report, 'ROTATION-2'));

  test('ROTATION-3: exchanges nothing during a transfer or without a connection', () =>
    holds(report, 'ROTATION-3'));

  test('ROTATION-4: a failed connection is followed by another', () => holds(report, 'ROTATION-4'));

  test('nothing else is wrong, and it is not because nothing happens', () =>
    holdsThroughout(report));
});

describe('the check bites', () => {
  test('nothing is caught without a fault', () =>
    holdsThroughout(checkRotation(mutate(rotationMachine, () => {}))));

  test.each(rotationFaults)('$fault', ({ machine, property }) =>
    catches((first) => checkRotation(machine, first), property),
  );
});
