import { describe, test } from 'vitest';
import { reachFaults } from './support/reach-faults.ts';
import { checkReach } from './support/reach-system.ts';
import { announce, catches, holds, holdsThroughout } from './support/verdicts.ts';

describe.each(['result', 'question'] as const)('every state of a %s and its plan', (kind) => {
  const report = checkReach(kind);
  announce(report);

  test('REACH-1: never speaks a delivery that a channel is sending', () =>
    holds(report, 'REACH-1'));

  test('REACH-2: sends one step at a time, and none before it is due', () =>
    holds(report, 'REACH-2'));

  test('REACH-3: never sends a delivery that has been heard or withdrawn', () =>
    holds(report, 'REACH-3'));

  test('REACH-4: never gets stuck', () => {
    holds(report, 'REACH-4');
    holds(report, 'each time comes');
    holds(report, 'each sending ends');
    holds(report, 'a claim is granted when the attempt ends, or fails');
    holds(report, 'an end can always be reached');
  });

  test('REACH-5: never downgrades a receipt, and counts a read delivery as heard', () =>
    holds(report, 'REACH-5'));

  test('REACH-6: keeps a plan until its delivery is over', () => holds(report, 'REACH-6'));

  test('OUTBOX-13: holds back only the delivery that a channel has claimed', () =>
    holds(report, 'OUTBOX-13'));

  test('violates no other property, and reaches all states', () => holdsThroughout(report));
});

describe('a planted fault is caught', () => {
  test.each(reachFaults)('$fault', ({ faulty, property, kind = 'result' }) =>
    catches((first) => checkReach(kind, faulty, first), property),
  );
});
