import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { BudgetLimits } from '../../../src/actors/contracts/config.ts';
import { Budget, type BudgetedCall } from '../../../src/actors/admission/budget.ts';

function budgetOf(limits: BudgetLimits) {
  const clock = { at: 1_000 };
  return { clock, budget: Budget.create(limits, () => clock.at) };
}

/** Admits a child, or fails the test. */
function admitted(parent: Budget, limits?: BudgetLimits): Budget {
  const admission = parent.admit(limits);
  if (!admission.ok) throw new Error(admission.error.message);
  return admission.budget;
}

const call = (budget: Budget, input: number): BudgetedCall => {
  const begun = budget.beginCall(input);
  if (!begun.ok) throw new Error(begun.error.message);
  return begun;
};

describe('BUDGET-5: admission', () => {
  test.each([
    ['tokens', { tokens: 101 }],
    ['steps', { steps: 11 }],
    ['agents', { agents: 3 }],
    ['timeMs', { timeMs: 5_001 }],
  ] as const)('refuses a child that exceeds a limit, and names the limit: %s', (name, limits) => {
    const { budget } = budgetOf({ tokens: 100, steps: 10, agents: 3, timeMs: 5_000 });
    const before = budget.report;
    const refused = budget.admit(limits);
    expect(refused).toMatchObject({
      ok: false,
      error: { code: 'BUDGET_EXCEEDED', message: expect.stringContaining(name), retryable: false },
    });
    expect(budget.report).toEqual(before);
  });

  test('reserves immediately, so two simultaneous requests cannot both get the same amount', () => {
    const { budget } = budgetOf({ tokens: 100 });
    admitted(budget, { tokens: 60 });
    expect(budget.admit({ tokens: 60 })).toMatchObject({ error: { code: 'BUDGET_EXCEEDED' } });
    expect(budget.report.tokens).toEqual({ granted: 100, spent: 0, reserved: 60, left: 40 });
  });

  test('counts all descendant agents, and refuses the first one above the limit', () => {
    const { budget } = budgetOf({ agents: 3 });
    const child = admitted(budget);
    admitted(child);
    admitted(child);
    expect(child.admit()).toMatchObject({
      error: { message: expect.stringContaining('agents of at most 0') },
    });
    expect(budget.admit()).toMatchObject({ ok: false });
  });

  test('refuses to admit a child when the budget is exhausted', () => {
    const { budget, clock } = budgetOf({ steps: 1, timeMs: 100 });
    call(budget, 10).settle(10);
    expect(budget.admit()).toMatchObject({ error: { message: expect.stringContaining('steps') } });
    clock.at += 100;
    expect(budget.admit()).toMatchObject({ error: { message: expect.stringContaining('timeMs') } });
  });

  test('allows any call when there are no limits', () => {
    const { budget } = budgetOf({});
    const child = admitted(admitted(budget), { tokens: 5 });
    expect(budget.beginCall(1_000_000)).toMatchObject({ ok: true, maxOutputTokens: undefined });
    expect(child.beginCall(10)).toMatchObject({ ok: false });
    expect(budget.report).toEqual({});
  });
});

describe('BUDGET-6: refuses a call before it is made', () => {
  test("caps a call's output at the remaining tokens, and refuses a call whose input exceeds them", () => {
    const { budget } = budgetOf({ tokens: 1_000 });
    expect(budget.beginCall(1_000)).toMatchObject({
      ok: false,
      error: { code: 'BUDGET_EXHAUSTED', message: expect.stringContaining('tokens') },
    });
    expect(call(budget, 900).maxOutputTokens).toBe(100);
    // The first call holds the other 100: no stale reads.
    expect(budget.beginCall(1)).toMatchObject({ ok: false });
  });

  test('BUDGET-6: counts every attempt as a step', () => {
    const { budget } = budgetOf({ steps: 2 });
    call(budget, 10).settle(0);
    call(budget, 10).settle(10);
    expect(budget.beginCall(10)).toMatchObject({
      error: { message: expect.stringContaining('steps') },
    });
  });

  test('refuses calls once the time of the budget or of its parent budget is up', () => {
    const { budget, clock } = budgetOf({ timeMs: 1_000 });
    const child = admitted(budget, { timeMs: 500 });
    const sharing = admitted(budget);
    expect([child.dueAt, sharing.dueAt]).toEqual([1_500, 2_000]);
    clock.at = 1_500;
    expect([child.usedUp(), sharing.usedUp()]).toEqual(['timeMs', null]);
    clock.at = 2_000;
    expect(sharing.beginCall(1)).toMatchObject({ ok: false });
  });

  test("shares the parent's budget for any resource that a child does not limit", () => {
    const { budget } = budgetOf({ tokens: 100, steps: 3 });
    const child = admitted(budget, { tokens: 50 });
    const other = admitted(budget);
    call(child, 10).settle(30);
    call(other, 10).settle(50);
    call(child, 10).settle(20);
    expect(other.usedUp()).toBe('steps');
    expect(child.report).toEqual({
      tokens: { granted: 50, spent: 50, reserved: 0, left: 0 },
      steps: { granted: 3, spent: 3, reserved: 0, left: 0 },
    });
    expect(budget.report.tokens).toEqual({ granted: 100, spent: 50, reserved: 50, left: 0 });
  });

  test('BUDGET-8: always allows the final call, but limits and counts it', () => {
    const { budget } = budgetOf({ tokens: 100, steps: 1 });
    call(budget, 50).settle(100);
    const last = budget.beginFinalCall();
    expect(last.maxOutputTokens).toBe(1_024);
    last.settle(70);
    last.settle(70);
    expect(budget.report).toMatchObject({
      tokens: { spent: 170, left: 0 },
      steps: { spent: 2, left: 0 },
    });
  });
});

describe('BUDGET-7: settling an account', () => {
  test('returns unused amounts, even while a call is running', () => {
    const { budget } = budgetOf({ tokens: 100, agents: 5 });
    const child = admitted(budget, { tokens: 80, agents: 2 });
    call(child, 10).settle(20);
    const late = call(child, 30);
    child.close();
    child.close();
    expect(budget.report.tokens).toMatchObject({ spent: 20, reserved: 60, left: 20 });
    late.settle(40);
    expect(budget.report.tokens).toEqual({ granted: 100, spent: 60, reserved: 0, left: 40 });
    expect(budget.report.agents).toEqual({ granted: 5, spent: 1, reserved: 0, left: 4 });
  });

  test('does not close its parent’s account when a child shares it', () => {
    const { budget } = budgetOf({ tokens: 100 });
    admitted(budget).close();
    expect(call(budget, 50).maxOutputTokens).toBe(50);
  });
});

/** Random events in a tree of working subagents: admissions, calls and ends. */
const happenings = fc.array(
  fc.record({
    who: fc.nat(12),
    what: fc.constantFrom('admit', 'call', 'call', 'settle', 'settle', 'end'),
    limits: fc.record(
      {
        tokens: fc.integer({ min: 1, max: 400 }),
        steps: fc.integer({ min: 1, max: 6 }),
        agents: fc.nat(3),
      },
      { requiredKeys: [] },
    ),
    input: fc.integer({ min: 1, max: 150 }),
    share: fc.integer({ min: 0, max: 100 }),
  }),
  { maxLength: 80 },
);

test('never spends more on a subtree than was granted, and returns all unspent amounts', () => {
  const limits = { tokens: 1_000, steps: 20, agents: 6 };
  fc.assert(
    fc.property(happenings, (all) => {
      const { budget: root } = budgetOf(limits);
      const budgets = [root];
      const under: { call: BudgetedCall; most: number }[] = [];
      const used = { tokens: 0, steps: 0, agents: 0 };
      for (const { who, what, limits: wanted, input, share } of all) {
        const budget = budgets[who % budgets.length] as Budget;
        if (what === 'admit') {
          const admission = budget.admit(wanted);
          if (admission.ok) budgets.push(admission.budget);
          if (admission.ok) used.agents += 1;
        } else if (what === 'call') {
          const begun = budget.beginCall(input);
          if (!begun.ok) continue;
          used.steps += 1;
          under.push({ call: begun, most: input + (begun.maxOutputTokens ?? 0) });
        } else if (what === 'settle') {
          const done = under.splice(share % Math.max(1, under.length), 1)[0];
          const cost = Math.floor(((done?.most ?? 0) * share) / 100);
          done?.call.settle(cost);
          used.tokens += cost;
        } else if (budget !== root) {
          budget.close();
          budgets.splice(budgets.indexOf(budget), 1);
        }
        for (const each of budgets)
          for (const { granted, spent, reserved, left } of Object.values(each.report)) {
            expect(spent + reserved).toBeLessThanOrEqual(granted);
            // After its parent has ended, a subagent has nothing left of their shared limits.
            expect([granted - spent - reserved, 0]).toContain(left);
          }
      }
      for (const { call: done } of under) done.settle(0);
      for (const each of budgets.slice(1)) each.close();
      expect(root.report).toEqual({
        tokens: { granted: 1_000, spent: used.tokens, reserved: 0, left: 1_000 - used.tokens },
        steps: { granted: 20, spent: used.steps, reserved: 0, left: 20 - used.steps },
        agents: { granted: 6, spent: used.agents, reserved: 0, left: 6 - used.agents },
      });
    }),
    { numRuns: 1_000 },
  );
});
