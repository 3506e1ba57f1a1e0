// The budgets of one scope (a session or a program): one for the scope itself, and one for each subagent and its whole
// subtree. Each account counts tokens, steps, agents or cost; a child's account is funded from its parent's account. A
// time limit is a deadline.
//
// Owns:     the granted, held and spent amounts, each budget's parent, and the timers of time limits.
// Does not: end subagents (the component that receives the refusal or the timeout ends them).
//
// Invariants
//   BUDGET-ACCOUNT-1. The sum of held and spent amounts never exceeds the grant, unless a call costs more than was held
//       for it. In that case, the account refuses every further request. Every operation is atomic: the check and the
//       deduction are one step. When a grant is raised, the difference is taken from the parent's account.
//   BUDGET-ACCOUNT-2. A held amount is settled once: the used part counts as spent and the rest is released.
//   BUDGET-ACCOUNT-3. An account that was funded from another account returns its unused amount once, when it is
//       closed. Amounts that are still held at that time are settled in the parent's account.
//   BUDGET-ACCOUNT-4. A refused request changes nothing.
//   BUDGET-ACCOUNT-12. A used amount is never negative: a provider's count that is negative or not a number is treated as 0.
//   BUDGET-5. When a child is admitted, either all of its own limits are reserved from its parent's remaining budget,
//       or none. The child shares all other limits with its parent.
//   BUDGET-6. A model call is refused in advance if its tokens do not fit, no steps are left, the time is up, or the
//       cost limit is used up. Every attempt, including a retry, counts as a step. No cost is held for a call, because
//       its cost is known only afterwards.
//   BUDGET-7. A call is settled once, when it ends, and its unused amounts are returned.
//   BUDGET-8. The final call, which submits partial work, is always allowed. It is counted and may exceed the grant.
//   BUDGETS-9. A subagent whose subtree has no limits has no budget.
//   BUDGETS-10. An expired time limit is reported once, unless the subagent has already ended.
//   BUDGETS-11. The scope's time counts only while the scope is loaded in a process: a scope that is asleep, or whose
//        process has died, uses no time. A subagent's time limit keeps running while the scope is asleep.
//   BUDGETS-13. Raising limits sets new totals, but only for limits that the subagent or the scope already has. Either
//       all of these limits are raised or none, and no limit is ever lowered. Repeating the same request changes
//       nothing. Raising a shared limit applies to all subagents that share it.
//   BUDGETS-14. When a subagent ends, its own accounts are closed, but not the accounts that it shares.

import { z } from 'zod';
import type { Failure } from '../../machines/index.ts';
import { check } from '../../values/checks.ts';
import {
  raisedLimits,
  type BudgetLimits,
  type BudgetReport,
  type BudgetUse,
} from '../contracts/config.ts';
import type { Environment } from '../ports/environment.ts';

/** An amount that is held until the actual usage is known. */
export interface Reservation {
  readonly amount: number;
  /** Settles the held amount; repeated calls have no effect. `used` may be more than the held amount. */
  settle(used: number): void;
}

export class BudgetAccount {
  readonly #parent: BudgetAccount | null;
  #granted: number;
  #spent = 0;
  #held = 0;
  #isClosed = false;

  constructor(granted: number, parent: BudgetAccount | null = null) {
    this.#granted = granted;
    this.#parent = parent;
  }

  get granted(): number {
    return this.#granted;
  }

  get spent(): number {
    return this.#spent;
  }

  get held(): number {
    return this.#held;
  }

  get left(): number {
    return this.#isClosed ? 0 : Math.max(0, this.#granted - this.#spent - this.#held);
  }

  /** The amount by which the grant may be raised. */
  get leftAbove(): number {
    if (this.#isClosed) return 0;
    return this.#parent === null ? Infinity : this.#parent.left;
  }

  /** Holds an amount until the usage is known; returns null if not enough is left. */
  take(amount: number): Reservation | null {
    if (amount > this.left) return null;
    this.#held += amount;
    return this.#hold(amount);
  }

  /** Counts an amount that was used without being requested first, even if it exceeds what is left. */
  charge(used: number): void {
    if (this.#isClosed) this.#parent?.charge(used);
    else this.#spent += amountOf(used);
  }

  /** Funds a child account from this account; returns null if not enough is left. */
  cut(amount: number): BudgetAccount | null {
    return this.take(amount) && new BudgetAccount(amount, this);
  }

  /**
   * Raises the grant by an amount from the parent's account; returns false and changes nothing if the parent has too
   * little left.
   */
  raise(amount: number): boolean {
    if (this.#isClosed || amount > this.leftAbove) return false;
    if (this.#parent) this.#parent.#held += amount;
    this.#granted += amount;
    return true;
  }

  /** Returns the unused amount to the parent. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (!this.#parent) return;
    this.#parent.#settle(this.#granted, this.#spent);
    // The parent takes over the amounts that are still held here and settles them.
    this.#parent.#keepHeld(this.#held);
  }

  #keepHeld(amount: number): void {
    if (this.#isClosed && this.#parent) this.#parent.#keepHeld(amount);
    else this.#held += amount;
  }

  #hold(amount: number): Reservation {
    let isSettled = false;
    return {
      amount,
      settle: (used) => {
        if (isSettled) return;
        isSettled = true;
        this.#settle(amount, used);
      },
    };
  }

  #settle(amount: number, used: number): void {
    if (this.#isClosed && this.#parent) {
      this.#parent.#settle(amount, used);
      return;
    }
    this.#held -= amount;
    this.#spent += amountOf(used);
  }
}

/** BUDGET-ACCOUNT-12 */
function amountOf(used: number): number {
  return used > 0 ? used : 0;
}

const count = z.number().int().min(1);

export const budgetLimits = z.strictObject({
  tokens: count.optional(),
  steps: count.optional(),
  timeMs: z.number().positive().optional(),
  agents: z.number().int().min(0).optional(),
  cost: z.number().positive().finite().optional(),
});

type BudgetResource = keyof BudgetLimits;

/** An allowed model call. */
export interface BudgetedCall {
  readonly ok: true;
  /** The limit on the model's output; undefined if there is none. */
  readonly maxOutputTokens: number | undefined;
  /** Records what the call used. Only the first call has an effect. */
  settle(tokens: number, cost?: number): void;
}

export type Refusal = { readonly ok: false; readonly error: Failure };

/** The tokens held for a call's output, in addition to its input. */
const OUTPUT_ALLOWANCE = 4_096;

/** The output limit for the final call, which submits partial work. */
const FINAL_OUTPUT_TOKENS = 1_024;

const counted = ['tokens', 'steps', 'agents', 'cost'] as const;
const resources = [...counted, 'timeMs'] as const;

type CountedResource = (typeof counted)[number];
type Accounts = { readonly [resource in CountedResource]: BudgetAccount | null };

/** The amounts used from a budget. */
interface BudgetCharge {
  readonly tokens: number;
  readonly steps: number;
  /** @defaultValue 0 */
  readonly agents?: number;
  /** @defaultValue 0 */
  readonly cost?: number;
}

export class Budget {
  readonly #accounts: Accounts;
  readonly #parent: Budget | null;
  readonly #startedAt: number;
  /** When the budget's own time limit expires; null if the budget shares its parent's time limit. */
  #ownDueAt: number | null;
  readonly #now: () => number;

  private constructor(
    accounts: Accounts,
    parent: Budget | null,
    ownDueAt: number | null,
    now: () => number,
    startedAt: number,
  ) {
    this.#accounts = accounts;
    this.#parent = parent;
    this.#ownDueAt = ownDueAt;
    this.#now = now;
    this.#startedAt = startedAt;
  }

  /** When the time limit expires, in milliseconds since 1970; null if there is none. */
  get dueAt(): number | null {
    return this.#ownDueAt ?? this.#parent?.dueAt ?? null;
  }

  /** Creates a budget without a parent. `now` and `startedAt` are in milliseconds since 1970. */
  static create(limits: BudgetLimits, now: () => number, startedAt = now()): Budget {
    const account = (granted: number | undefined): BudgetAccount | null =>
      granted === undefined ? null : new BudgetAccount(granted);
    const { tokens, steps, agents, cost, timeMs } = limits;
    const accounts = {
      tokens: account(tokens),
      steps: account(steps),
      agents: account(agents),
      cost: account(cost),
    };
    const dueAt = timeMs === undefined ? null : startedAt + timeMs;
    return new Budget(accounts, null, dueAt, now, startedAt);
  }

  /**
   * Creates the budget of a child that is being admitted. Returns `BUDGET_EXCEEDED`, naming the limit, if the limits do
   * not fit.
   */
  admit(limits: BudgetLimits = {}): { readonly ok: true; readonly budget: Budget } | Refusal {
    return this.#lacking(limits) ?? { ok: true, budget: this.readmit(limits, this.#now()) };
  }

  /**
   * Creates the budget of a child that was admitted at `startedAt`, possibly in an earlier process. If the child's own
   * amount is no longer available, the child shares what is left.
   */
  readmit(limits: BudgetLimits, startedAt: number): Budget {
    const { tokens, steps, agents, cost } = this.#accounts;
    agents?.charge(1);
    const part = (
      account: BudgetAccount | null,
      limit: number | undefined,
    ): BudgetAccount | null => {
      if (limit === undefined) return account;
      return account ? (account.cut(limit) ?? account) : new BudgetAccount(limit);
    };
    const accounts = {
      tokens: part(tokens, limits.tokens),
      steps: part(steps, limits.steps),
      agents: part(agents, limits.agents),
      cost: part(cost, limits.cost),
    };
    const dueAt = limits.timeMs === undefined ? null : startedAt + limits.timeMs;
    return new Budget(accounts, this, dueAt, this.#now, startedAt);
  }

  /** Raises limits to new totals (BUDGETS-13). Returns the refusal; null if the limits were raised. */
  raise(limits: BudgetLimits): Refusal | null {
    const { timeMs } = limits;
    const raises = this.#own.flatMap(([resource, account]) => {
      const to = limits[resource];
      return to === undefined ? [] : [{ resource, account, to, by: to - account.granted }];
    });
    const refused = this.#notRaised(limits);
    if (refused) return refused;
    for (const { resource, account, by } of raises)
      if (by > account.leftAbove) return exceeded(resource, by, account.leftAbove, 'raise');
    const above = this.#parent?.dueAt ?? Infinity;
    if (timeMs !== undefined && this.#startedAt + timeMs > above)
      return exceeded('timeMs', timeMs, above - this.#startedAt, 'raise');
    for (const { account, by } of raises) account.raise(by);
    if (timeMs !== undefined) this.#ownDueAt = this.#startedAt + timeMs;
    return null;
  }

  /**
   * Returns why the limits cannot be raised to these totals; null if they can. Does not check how much the parent has
   * left.
   */
  #notRaised(limits: BudgetLimits): Refusal | null {
    const own = new Map<BudgetResource, { granted: number; spent: number }>(this.#own);
    if (this.#ownDueAt !== null)
      own.set('timeMs', { granted: this.#ownDueAt - this.#startedAt, spent: 0 });
    for (const resource of resources) {
      const to = limits[resource];
      if (to === undefined) continue;
      const limit = own.get(resource);
      if (!limit) return notRaised(`it has no limit of ${resource} of its own`);
      const least = Math.max(limit.granted, limit.spent);
      if (to < least)
        return notRaised(`expected ${resource} of at least ${least}, granted or used, got ${to}`);
    }
    return null;
  }

  /** The accounts that this budget does not share with its parent. */
  get #own(): readonly (readonly [resource: CountedResource, account: BudgetAccount])[] {
    return counted.flatMap((resource) => {
      const account = this.#accounts[resource];
      const isShared = this.#parent !== null && account === this.#parent.#accounts[resource];
      return account && !isShared ? [[resource, account] as const] : [];
    });
  }

  /** Counts amounts that were used in an earlier process. */
  charge({ tokens, steps, agents = 0, cost = 0 }: BudgetCharge): void {
    this.#accounts.tokens?.charge(tokens);
    this.#accounts.steps?.charge(steps);
    this.#accounts.agents?.charge(agents);
    this.#accounts.cost?.charge(cost);
  }

  /** Whether the cost of calls must be known. */
  get countsCost(): boolean {
    return this.#accounts.cost !== null;
  }

  /**
   * Requests one model call with about this many input tokens. Returns `BUDGET_EXHAUSTED`, naming the limit, if the
   * call must not be made.
   */
  beginCall(inputTokens: number): BudgetedCall | Refusal {
    const used = this.usedUp(inputTokens);
    if (used) return exhausted(used);
    const { tokens, steps } = this.#accounts;
    steps?.charge(1);
    const hold = tokens?.take(Math.min(tokens.left, inputTokens + OUTPUT_ALLOWANCE)) ?? null;
    const output = hold === null ? OUTPUT_ALLOWANCE : hold.amount - inputTokens;
    return {
      ok: true,
      // A limit that would have no effect is not sent: some models refuse a limit above their own.
      maxOutputTokens: output < OUTPUT_ALLOWANCE ? output : undefined,
      settle: this.#settling((used_) => hold?.settle(used_)),
    };
  }

  /** Starts the final call, in which the subagent submits its partial work. */
  beginFinalCall(): BudgetedCall {
    const { tokens, steps } = this.#accounts;
    steps?.charge(1);
    return {
      ok: true,
      maxOutputTokens: FINAL_OUTPUT_TOKENS,
      settle: this.#settling((used) => tokens?.charge(used)),
    };
  }

  #settling(settleTokens: (used: number) => void): BudgetedCall['settle'] {
    let isSettled = false;
    return (tokens, cost = 0) => {
      if (isSettled) return;
      isSettled = true;
      settleTokens(tokens);
      this.#accounts.cost?.charge(cost);
    };
  }

  /** Returns the limit that prevents a call with this many input tokens; null if no limit does. */
  usedUp(inputTokens = 0): BudgetResource | null {
    const { tokens, steps, cost } = this.#accounts;
    if (this.dueAt !== null && this.#now() >= this.dueAt) return 'timeMs';
    if (steps && steps.left < 1) return 'steps';
    if (cost && cost.left <= 0) return 'cost';
    return tokens && tokens.left < inputTokens + 1 ? 'tokens' : null;
  }

  /** Closes the owner's own accounts after the owner has ended. Idempotent. */
  close(): void {
    for (const [, account] of this.#own) account.close();
  }

  get report(): BudgetReport {
    const report: { [resource in BudgetResource]?: BudgetUse } = {};
    for (const resource of counted) {
      const account = this.#accounts[resource];
      if (!account) continue;
      const { granted, spent, held: reserved, left } = account;
      report[resource] = { granted, spent, reserved, left };
    }
    const { dueAt } = this;
    if (dueAt !== null) {
      const granted = dueAt - this.#startedAt;
      const left = Math.max(0, dueAt - this.#now());
      report.timeMs = { granted, spent: granted - left, reserved: 0, left };
    }
    return report;
  }

  #lacking(limits: BudgetLimits): Refusal | null {
    const timeLeft = this.dueAt === null ? Infinity : this.dueAt - this.#now();
    if (timeLeft < (limits.timeMs ?? 1)) return exceeded('timeMs', limits.timeMs ?? 1, timeLeft);
    for (const resource of counted) {
      const account = this.#accounts[resource];
      if (!account) continue;
      const wanted = leastOf(resource, limits[resource]);
      if (account.left < wanted) return exceeded(resource, wanted, account.left);
    }
    return null;
  }
}

/** Returns the amount that must be left for a child with this limit. */
function leastOf(resource: CountedResource, limit: number | undefined): number {
  if (resource === 'agents') return 1 + (limit ?? 0);
  // For cost, any positive amount is enough.
  if (resource === 'cost') return limit ?? Number.MIN_VALUE;
  return Math.max(1, limit ?? 1);
}

function exceeded(
  resource: BudgetResource,
  wanted: number,
  left: number,
  what: 'subagent' | 'raise' = 'subagent',
): Refusal {
  const message =
    `The ${what} does not fit the budget: expected ${resource} of at most ` +
    `${Math.max(0, left)}, which is left, got ${wanted}`;
  return { ok: false, error: { code: 'BUDGET_EXCEEDED', message, retryable: false } };
}

function notRaised(reason: string): Refusal {
  const message = `The budget was not raised: ${reason}`;
  return { ok: false, error: { code: 'INVALID_STATE', message, retryable: false } };
}

/** Returns the failure for an exhausted budget. */
export function exhausted(resource: BudgetResource): Refusal {
  const message = `The budget is used up: no ${resource} left`;
  return { ok: false, error: { code: 'BUDGET_EXHAUSTED', message, retryable: false } };
}

/** The amounts that earlier processes used, and the time at which the budget started. */
interface BudgetUsed {
  readonly startedAt: number;
  readonly tokens: number;
  readonly steps: number;
  readonly cost: number;
}

interface Entry {
  readonly budget: Budget;
  readonly exhaust: (message: string) => void;
  /** When the timer fires; null if there is no timer. */
  timerAt: number | null;
  stopTimer: () => void;
  /**
   * Whether the subagent or an ancestor has a time limit, which keeps running while the scope is asleep (BUDGETS-11).
   */
  readonly hasOwnTime: boolean;
}

export class Budgets {
  readonly #environment: Pick<Environment, 'clock' | 'scheduler'>;
  /** Null if the scope has no limits. */
  readonly #limits: BudgetLimits | null;
  #scope: Budget | null = null;
  /**
   * When the scope's time started, in milliseconds since 1970, calculated as if the scope had been loaded ever since.
   */
  #startedAt = 0;
  readonly #entries = new Map<string, Entry>();

  /**
   * @param limits The limits of the whole scope, whose time starts now.
   * @throws {ConfigurationError} if a limit is unknown or out of range.
   */
  constructor(environment: Pick<Environment, 'clock' | 'scheduler'>, limits: BudgetLimits = {}) {
    check('budget', budgetLimits, limits);
    this.#environment = environment;
    this.#limits = Object.values(limits).some((limit) => limit !== undefined) ? limits : null;
    this.continue(0);
  }

  /**
   * Sets how long earlier processes had the scope loaded, in milliseconds, and the limits that they raised. Must be
   * called before the first admission.
   */
  continue(awakeMs: number, raised?: BudgetLimits): void {
    const now = (): number => this.#environment.clock.now();
    this.#startedAt = now() - awakeMs;
    this.#scope =
      this.#limits && Budget.create(raisedLimits(this.#limits, raised), now, this.#startedAt);
  }

  /** How long the scope has been loaded, in milliseconds. */
  get awakeMs(): number {
    return this.#environment.clock.now() - this.#startedAt;
  }

  /**
   * Admits a subagent; `parentId` is null for a subagent of the lead agent or of a program. Returns null, or the
   * failure if the subagent's budget does not fit. Calls `exhaust` when the subagent's time is up.
   */
  admit(
    id: string,
    parentId: string | null,
    limits: BudgetLimits | undefined,
    exhaust: (message: string) => void,
  ): Failure | null {
    const above = this.#above(parentId);
    if (!above && !limits) return null;
    const { clock } = this.#environment;
    const now = (): number => clock.now();
    const admission = above?.admit(limits) ?? {
      ok: true,
      budget: Budget.create(limits ?? {}, now),
    };
    if (!admission.ok) return admission.error;
    this.#enter(id, { parentId, limits, budget: admission.budget, exhaust });
    return null;
  }

  /** Restores the budget of a subagent that an earlier process admitted, minus the amounts already used. */
  readmit(
    id: string,
    parentId: string | null,
    limits: BudgetLimits | undefined,
    used: BudgetUsed,
    exhaust: (message: string) => void,
  ): void {
    const above = this.#above(parentId);
    if (!above && !limits) return;
    const { startedAt } = used;
    const now = (): number => this.#environment.clock.now();
    const budget =
      above?.readmit(limits ?? {}, startedAt) ?? Budget.create(limits ?? {}, now, startedAt);
    budget.charge(used);
    this.#enter(id, { parentId, limits, budget, exhaust });
  }

  /**
   * If subagents are no longer stored, charges their usage to their parent (to the scope if the parent is null or
   * unknown).
   */
  charge(parentId: string | null, used: BudgetCharge): void {
    this.#above(parentId)?.charge(used);
  }

  /** Returns the budget for a subagent's model calls; null if the subagent has none. */
  of(id: string): Budget | null {
    return this.#entries.get(id)?.budget ?? null;
  }

  /** Raises limits of a subagent, or of the scope for null (BUDGETS-13). Returns the refusal; null if there is none. */
  raise(id: string | null, limits: BudgetLimits): Failure | null {
    const budget = id === null ? this.#scope : this.of(id);
    const refused = budget ? budget.raise(limits) : notRaised('it has no budget');
    if (refused) return refused.error;
    // Its descendants may share the time limit, so all timers are set again.
    for (const each of this.#entries.values()) this.#arm(each);
    return null;
  }

  /** Closes the budget of a subagent that has ended: unused amounts return to the parent. Idempotent. */
  ended(id: string): void {
    const entry = this.#entries.get(id);
    if (!entry) return;
    this.#entries.delete(id);
    entry.stopTimer();
    entry.budget.close();
  }

  /**
   * When the first time limit of a subagent expires, in milliseconds since 1970. Such a limit keeps running while the
   * scope is asleep. `Infinity` for never.
   */
  get nextDueAt(): number {
    let next = Infinity;
    for (const { budget, hasOwnTime } of this.#entries.values())
      if (hasOwnTime) next = Math.min(next, budget.dueAt ?? Infinity);
    return next;
  }

  /** Stops all timers, because the scope leaves this process. */
  stop(): void {
    for (const { stopTimer } of this.#entries.values()) stopTimer();
  }

  /** The usage of the scope's budget; empty if the scope has no limits. */
  get report(): BudgetReport {
    return this.#scope?.report ?? {};
  }

  #enter(
    id: string,
    {
      parentId,
      limits,
      budget,
      exhaust,
    }: {
      readonly parentId: string | null;
      readonly limits: BudgetLimits | undefined;
      readonly budget: Budget;
      readonly exhaust: (message: string) => void;
    },
  ): void {
    const isAboves = parentId !== null && this.#entries.get(parentId)?.hasOwnTime === true;
    const entry: Entry = {
      budget,
      exhaust,
      timerAt: null,
      stopTimer() {},
      hasOwnTime: limits?.timeMs !== undefined || isAboves,
    };
    this.#entries.set(id, entry);
    this.#arm(entry);
  }

  #arm(entry: Entry): void {
    const { clock, scheduler } = this.#environment;
    const { dueAt } = entry.budget;
    if (dueAt === null || dueAt === entry.timerAt) return;
    entry.stopTimer();
    entry.timerAt = dueAt;
    entry.stopTimer = scheduler.schedule(
      () => entry.exhaust(exhausted('timeMs').error.message),
      Math.max(0, dueAt - clock.now()),
    );
  }

  #above(parentId: string | null): Budget | null {
    const parent = parentId === null ? null : this.#entries.get(parentId)?.budget;
    return parent ?? this.#scope;
  }
}
