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

test('BUDGETS-9: gives an unlimited subagent no budget', () => {
  const { budgets, admit } = scope();
  expect([admit('a', null), admit('b', 'a')]).toEqual(['ok', 'ok']);
  expect([budgets.of('a'), budgets.of('b'), budgets.report]).toEqual([null, null, {}]);
});

test("deducts a subtree's budget from its parent's and from the session's", () => {
  const { budgets, admit } = scope({ tokens: 1_000, agents: 4 });
  expect(admit('a', null, { tokens: 600 })).toBe('ok');
  expect(admit('b', null, { tokens: 600 })).toBe('BUDGET_EXCEEDED');
  expect(admit('b', null, { tokens: 400 })).toBe('ok');
  expect(admit('c', 'a', { tokens: 700 })).toBe('BUDGET_EXCEEDED');
  expect([admit('c', 'a', { tokens: 500 }), admit('d', 'c')]).toEqual(['ok', 'ok']);
  // The fifth agent is refused anywhere in the tree.
  expect(admit('e', 'd')).toBe('BUDGET_EXCEEDED');
  expect(budgets.of('d')?.report.tokens).toMatchObject({ granted: 500, left: 500 });
});

test('BUDGET-7: settles an ended subtree exactly once, and frees its unused budget', () => {
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

test("BUDGETS-10: reports once that a subagent's time is up, unless the subagent has ended", async () => {
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

test("BUDGETS-11: counts only awake time against the scope's limit, but all time against a subagent's", async () => {
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

test('BUDGETS-11: does not report a timeout once the budgets have been stopped', async () => {
  const { environment, budgets, told, admit } = scope({ timeMs: 10_000 });
  admit('a', null, { timeMs: 1_000 });
  budgets.stop();
  expect(environment.pendingTimers).toBe(0);
  await environment.advance(20_000);
  expect(told).toEqual([]);
});

test('refuses a scope with an impossible budget when it is created', () => {
  expect(() => scope({ tokens: -1 })).toThrow(/budget/);
});

test("BUDGETS-13: raises all given limits or none, and takes the increase from the parent's budget", () => {
  const { budgets, admit } = scope({ tokens: 1_000, steps: 10 });
  admit('a', null, { tokens: 400, steps: 4 });
  admit('b', 'a', { tokens: 100 });
  expect(budgets.raise('a', { tokens: 700, steps: 6 })).toBeNull();
  expect(budgets.of('a')?.report).toEqual({
    tokens: { granted: 700, spent: 0, reserved: 100, left: 600 },
    steps: { granted: 6, spent: 0, reserved: 0, left: 6 },
  });
  expect(budgets.report.tokens).toEqual({ granted: 1_000, spent: 0, reserved: 700, left: 300 });
  // Repeating the same increase changes nothing.
  expect(budgets.raise('a', { tokens: 700 })).toBeNull();
  expect(budgets.report.tokens?.left).toBe(300);

  const before = [budgets.report, budgets.of('a')?.report, budgets.of('b')?.report];
  const refused = (id: string, limits: Parameters<Budgets['raise']>[1]) => {
    const { code, message } = budgets.raise(id, limits) ?? {};
    expect([budgets.report, budgets.of('a')?.report, budgets.of('b')?.report]).toEqual(before);
    return `${code}: ${message}`;
  };
  // One limit fits, the other does not.
  expect(refused('a', { steps: 7, tokens: 1_001 })).toContain('BUDGET_EXCEEDED');
  expect(refused('b', { tokens: 701 })).toContain('tokens of at most 600, which is left, got 601');
  expect(refused('a', { tokens: 699 })).toContain(
    'tokens of at least 700, granted or used, got 699',
  );
  expect(refused('a', { timeMs: 9 })).toContain('it has no limit of timeMs of its own');
  // `b` shares its parent's steps.
  expect(refused('b', { steps: 9 })).toContain('it has no limit of steps of its own');
  expect(refused('c', { steps: 9 })).toContain(
    'INVALID_STATE: The budget was not raised: it has no budget',
  );
  // Nothing is lost at the end.
  budgets.ended('b');
  budgets.ended('a');
  expect(budgets.report.tokens).toEqual({ granted: 1_000, spent: 0, reserved: 0, left: 1_000 });
});

test('BUDGETS-13: refuses a new limit that is less than an expensive call has already spent', () => {
  const { budgets, admit } = scope();
  admit('a', null, { tokens: 100 });
  const call = budgets.of('a')?.beginCall(10);
  if (call?.ok) call.settle(250);
  expect(budgets.raise('a', { tokens: 200 })?.message).toContain('tokens of at least 250');
  expect(budgets.raise('a', { tokens: 300 })).toBeNull();
  expect(budgets.of('a')?.usedUp(49)).toBeNull();
});

test("BUDGETS-13: gives more time to all subagents that share a budget, within their ancestors' limits", async () => {
  const { environment, budgets, told, admit } = scope({ timeMs: 10_000 });
  admit('a', null, { timeMs: 3_000 });
  admit('b', 'a');
  admit('c', 'a', { timeMs: 1_000 });
  await environment.advance(500);
  expect(budgets.raise('a', { timeMs: 10_001 })?.code).toBe('BUDGET_EXCEEDED');
  expect(budgets.raise('c', { timeMs: 3_001 })?.code).toBe('BUDGET_EXCEEDED');
  expect(budgets.raise('a', { timeMs: 6_000 })).toBeNull();
  expect(budgets.raise('c', { timeMs: 6_000 })).toBeNull();
  await environment.advance(5_499);
  expect(told).toEqual([]);
  await environment.advance(1);
  expect(told.map((line) => line.slice(0, 1)).toSorted()).toEqual(['a', 'b', 'c']);
  for (const id of ['a', 'b', 'c']) budgets.ended(id);
  expect(environment.pendingTimers).toBe(0);
});

test("BUDGETS-14: leaves the parent's account open when a restored subagent that shares it ends", () => {
  const { budgets } = scope({ tokens: 100 });
  const used = { startedAt: 1_000, tokens: 30, steps: 0, cost: 0 };
  budgets.readmit('a', null, { tokens: 500 }, used, () => {});
  budgets.ended('a');
  expect(budgets.report.tokens).toEqual({ granted: 100, spent: 30, reserved: 0, left: 70 });
});
