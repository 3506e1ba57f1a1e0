import { expect, test } from 'vitest';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { Budgets } from '../../../src/actors/admission/budget.ts';

function scope(limits?: ConstructorParameters<typeof Budgets>[1]) {
  const environment = simulatedEnvironment();
  const told: string[] = [];
  const budgets = new Budgets(environment, limits);
  return {
    environment,
    budgets,
    told,
    admit: (id: string, parentId: string | null, own?: Parameters<Budgets['admit']>[2]) =>
      budgets.admit(id, parentId, own, (message) => told.push(`${id}: ${message}`))?.code ?? 'ok',
  };
}

test('BUDGETS-9: an unlimited subagent has no budget', () => {
  const { budgets, admit } = scope();
  expect([admit('a', null), admit('b', 'a')]).toEqual(['ok', 'ok']);
  expect([budgets.of('a'), budgets.of('b'), budgets.report]).toEqual([null, null, {}]);
});

test('a subtree is cut from its parent, and from the session', () => {
  const { budgets, admit } = scope({ tokens: 1_000, agents: 4 });
  expect(admit('a', null, { tokens: 600 })).toBe('ok');
  expect(admit('b', null, { tokens: 600 })).toBe('BUDGET_EXCEEDED');
  expect(admit('b', null, { tokens: 400 })).toBe('ok');
  expect(admit('c', 'a', { tokens: 700 })).toBe('BUDGET_EXCEEDED');
  expect([admit('c', 'a', { tokens: 500 }), admit('d', 'c')]).toEqual(['ok', 'ok']);
  // The fifth agent, wherever it is.
  expect(admit('e', 'd')).toBe('BUDGET_EXCEEDED');
  expect(budgets.of('d')?.report.tokens).toMatchObject({ granted: 500, left: 500 });
});

test('BUDGET-7: settled once at its end, and free for others', () => {
  const { budgets, admit } = scope({ tokens: 1_000 });
  admit('a', null, { tokens: 900 });
  const call = budgets.of('a')?.beginCall(10);
  if (call?.ok) call.settle(300);
  budgets.ended('a');
  budgets.ended('a');
  expect(budgets.report.tokens).toEqual({ granted: 1_000, spent: 300, reserved: 0, left: 700 });
  expect([admit('b', null, { tokens: 701 }), admit('b', null, { tokens: 700 })]).toEqual([
    'BUDGET_EXCEEDED',
    'ok',
  ]);
});

test('BUDGETS-10: the time limit of a subagent is reported once, unless it has ended', async () => {
  const { environment, budgets, told, admit } = scope({ timeMs: 10_000 });
  admit('a', null, { timeMs: 3_000 });
  admit('b', null);
  admit('c', null, { timeMs: 4_000 });
  admit('d', 'a');
  expect(admit('e', 'a', { timeMs: 3_001 })).toBe('BUDGET_EXCEEDED');
  budgets.ended('c');
  await environment.advance(3_000);
  expect(told.map((line) => line.slice(0, 1))).toEqual(['a', 'd']);
  expect(admit('f', 'a')).toBe('BUDGET_EXCEEDED');
  await environment.advance(60_000);
  expect(told.map((line) => line.slice(0, 1))).toEqual(['a', 'd', 'b']);
  expect(told[0]).toContain('timeMs');
  for (const id of ['a', 'b', 'd']) budgets.ended(id);
  expect(environment.pendingTimers).toBe(0);
});

test('BUDGETS-11: the time of the scope is the time that it was awake; that of a subagent goes on', async () => {
  const { environment, budgets, told, admit } = scope({ timeMs: 10_000 });
  await environment.advance(4_000);
  expect(budgets.awakeMs).toBe(4_000);
  budgets.continue(7_000);
  expect([budgets.awakeMs, budgets.report.timeMs?.left]).toEqual([7_000, 3_000]);
  expect(admit('a', null, { timeMs: 3_001 })).toBe('BUDGET_EXCEEDED');
  expect([admit('a', null), budgets.nextDueAt]).toEqual(['ok', Infinity]);
  const dueAt = environment.clock.now() + 3_000;
  expect([admit('b', null, { timeMs: 3_000 }), budgets.nextDueAt]).toEqual(['ok', dueAt]);
  expect([admit('c', 'b'), budgets.nextDueAt]).toEqual(['ok', dueAt]);
  await environment.advance(2_999);
  expect(told).toEqual([]);
  await environment.advance(1);
  expect(told.map((line) => line.slice(0, 1)).toSorted()).toEqual(['a', 'b', 'c']);
});

test('BUDGETS-11: a deadline that was moved reports nothing', async () => {
  const { environment, budgets, told, admit } = scope({ timeMs: 10_000 });
  admit('a', null, { timeMs: 1_000 });
  budgets.stop();
  expect(environment.pendingTimers).toBe(0);
  await environment.advance(20_000);
  expect(told).toEqual([]);
});

test('a scope whose budget cannot be is refused where it is made', () => {
  expect(() => scope({ tokens: -1 })).toThrow(/budget/);
});
