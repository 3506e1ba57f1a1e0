import { describe, test } from 'vitest';
import { turnMachine } from '../../src/machines/index.ts';
import { mutate } from './support/mutate.ts';
import { checkTurn, turnsOf, type Lead, type Scope } from './support/turn-check.ts';
import { turnFaults } from './support/turn-faults.ts';
import { announce, catches, holds, holdsThroughout } from './support/verdicts.ts';

const leads = Object.keys(turnsOf) as Lead[];
const scopes: readonly Scope[] = ['everything', 'nobody helps'];
const patience = { timeout: 300_000 };

describe.each(leads.flatMap((lead) => scopes.map((scope) => [lead, scope] as const)))(
  'every state of a turn: %s, %s',
  patience,
  (lead, scope) => {
    test('holds', () => {
      const report = checkTurn(lead, scope);
      announce(report);
      for (const number of [1, 2, 3, 4, 5, 6, 7, 8]) holds(report, `TURN-${number}`);
      holds(report, 'an end can always be reached');
      holdsThroughout(report);
    });
  },
);

describe('planted faults', patience, () => {
  test('finds no violation if no fault is planted', () =>
    holdsThroughout(
      checkTurn(
        'a text model',
        'nobody helps',
        mutate(turnMachine, () => {}),
      ),
    ));

  test.each(turnFaults)('$fault', ({ machine, property, lead, scope }) =>
    catches((first) => checkTurn(lead, scope, machine, first), property),
  );
});
