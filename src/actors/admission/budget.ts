// The budget of a session, or of a subagent with its whole subtree: tokens, steps, agents, time.
//
// Owns:     the accounts, and the amounts that a running model call holds.
// Does not: end a subagent (the component that gets the refusal or the timeout does).
//
// Invariants
//   BUDGET-5. A child's own limits are reserved from the rest of its parent's budget at admission, all of
//       them or none; limits that it does not set are shared with its parent.
//   BUDGET-6. A model call is refused before it is made if its tokens do not fit, no step is left, or the
//       time is over. Every attempt is a step.
//   BUDGET-7. A call is settled once, at its end, and returns the amounts that it did not use.
//   BUDGET-8. The single final call that hands in partial work is always made: it is counted, and may exceed
//       the grant.

import type { Failure } from '../../machines/index.ts';
import { BudgetAccount, type Reservation } from './budget-account.ts';
import type { BudgetLimits } from '../contracts/config.ts';

export type BudgetResource = keyof BudgetLimits;

/** The use of one limit. */
export interface BudgetUse {
  readonly granted: number;
  readonly spent: number;
  /** Held by running calls, and reserved for children. */
  readonly reserved: number;
  readonly left: number;
}

export type BudgetReport = { readonly [resource in BudgetResource]?: BudgetUse };

/** A model call that may be made. */
export interface BudgetedCall {
  readonly ok: true;
  /** The limit of the model's output; undefined: none. */
  readonly maxOutputTokens: number | undefined;
  /** Records the cost of the call. Only the first call of this counts. */
  settle(tokens: number): void;
}

export type Refusal = { readonly ok: false; readonly error: Failure };

/** The tokens held for the output of one call beside its input. */
const OUTPUT_ALLOWANCE = 4_096;

/** The final call hands in partial work, which need not be long. */
const FINAL_OUTPUT_TOKENS = 1_024;

type Accounts = { readonly [resource in 'tokens' | 'steps' | 'agents']: BudgetAccount | null };
const counted = ['tokens', 'steps', 'agents'] as const;

/** Amounts used of a budget. */
export interface BudgetCharge {
  readonly tokens: number;
  readonly steps: number;
  /** @defaultValue 0 */
  readonly agents?: number;
}

export class Budget {
  readonly #accounts: Accounts;
  readonly #own: readonly BudgetAccount[];
  readonly #startedAt: number;
  /** When the time is over; null: never. */
  readonly dueAt: number | null;
  readonly #now: () => number;

  private constructor(
    accounts: Accounts,
    own: readonly BudgetAccount[],
    dueAt: number | null,
    now: () => number,
    startedAt: number,
  ) {
    this.#accounts = accounts;
    this.#own = own;
    this.dueAt = dueAt;
    this.#now = now;
    this.#startedAt = startedAt;
  }

  /** Creates a budget without a parent. `now` and `startedAt` are in milliseconds since 1970. */
  static create(limits: BudgetLimits, now: () => number, startedAt = now()): Budget {
    const account = (granted: number | undefined): BudgetAccount | null =>
      granted === undefined ? null : new BudgetAccount(granted);
    const { tokens, steps, agents, timeMs } = limits;
    const accounts = { tokens: account(tokens), steps: account(steps), agents: account(agents) };
    const own = counted.flatMap((resource) => accounts[resource] ?? []);
    const dueAt = timeMs === undefined ? null : startedAt + timeMs;
    return new Budget(accounts, own, dueAt, now, startedAt);
  }

  /**
   * Creates the budget of a child that is admitted now. Refused with `BUDGET_EXCEEDED`, which names the
   * limit.
   */
  admit(limits: BudgetLimits = {}): { readonly ok: true; readonly budget: Budget } | Refusal {
    return this.#lacking(limits) ?? { ok: true, budget: this.readmit(limits, this.#now()) };
  }

  /**
   * Creates the budget of a child that was admitted at `startedAt`, possibly by an earlier process: if its
   * part is no longer available, it shares the rest.
   */
  readmit(limits: BudgetLimits, startedAt: number): Budget {
    const { tokens, steps, agents } = this.#accounts;
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
    };
    const own = counted.flatMap((resource) =>
      limits[resource] === undefined ? [] : (accounts[resource] ?? []),
    );
    const dueAt = limits.timeMs === undefined ? this.dueAt : startedAt + limits.timeMs;
    return new Budget(accounts, own, dueAt, this.#now, startedAt);
  }

  /** Counts amounts that were used in an earlier process. */
  charge({ tokens, steps, agents = 0 }: BudgetCharge): void {
    this.#accounts.tokens?.charge(tokens);
    this.#accounts.steps?.charge(steps);
    this.#accounts.agents?.charge(agents);
  }

  /**
   * Requests one model call with about this many input tokens. Refused with `BUDGET_EXHAUSTED`, which names
   * the exhausted limit.
   */
  beginCall(inputTokens: number): BudgetedCall | Refusal {
    const used = this.usedUp(inputTokens);
    if (used) return exhausted(used);
    const { tokens, steps } = this.#accounts;
    steps?.charge(1);
    if (!tokens) return { ok: true, maxOutputTokens: undefined, settle() {} };
    const hold = tokens.take(Math.min(tokens.left, inputTokens + OUTPUT_ALLOWANCE)) as Reservation;
    const output = hold.amount - inputTokens;
    return {
      ok: true,
      // A limit without effect is not sent: some models refuse one above their own.
      maxOutputTokens: output < OUTPUT_ALLOWANCE ? output : undefined,
      settle: (used_) => hold.settle(used_),
    };
  }

  /** Begins the final call, which hands in partial work. */
  beginFinalCall(): BudgetedCall {
    const { tokens, steps } = this.#accounts;
    steps?.charge(1);
    let isSettled = false;
    return {
      ok: true,
      maxOutputTokens: FINAL_OUTPUT_TOKENS,
      settle: (used) => {
        if (!isSettled) tokens?.charge(used);
        isSettled = true;
      },
    };
  }

  /** Returns the exhausted limit for a call with this many input tokens; null if there is none. */
  usedUp(inputTokens = 0): BudgetResource | null {
    const { tokens, steps } = this.#accounts;
    if (this.dueAt !== null && this.#now() >= this.dueAt) return 'timeMs';
    if (steps && steps.left < 1) return 'steps';
    return tokens && tokens.left < inputTokens + 1 ? 'tokens' : null;
  }

  /** Closes the budget when its owner has ended. Idempotent. */
  close(): void {
    for (const account of this.#own) account.close();
  }

  get report(): BudgetReport {
    const report: { [resource in BudgetResource]?: BudgetUse } = {};
    for (const resource of counted) {
      const account = this.#accounts[resource];
      if (!account) continue;
      const { granted, spent, held: reserved, left } = account;
      report[resource] = { granted, spent, reserved, left };
    }
    if (this.dueAt !== null) {
      const granted = this.dueAt - this.#startedAt;
      const left = Math.max(0, this.dueAt - this.#now());
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
      const wanted =
        resource === 'agents' ? 1 + (limits.agents ?? 0) : Math.max(1, limits[resource] ?? 1);
      if (account.left < wanted) return exceeded(resource, wanted, account.left);
    }
    return null;
  }
}

function exceeded(resource: BudgetResource, wanted: number, left: number): Refusal {
  const message =
    `The subagent does not fit the budget: expected ${resource} of at most ` +
    `${Math.max(0, left)}, which is left, got ${wanted}`;
  return { ok: false, error: { code: 'BUDGET_EXCEEDED', message, retryable: false } };
}

/** Returns the failure of an exhausted budget. */
export function exhausted(resource: BudgetResource): Refusal {
  const message = `The budget is used up: no ${resource} left`;
  return { ok: false, error: { code: 'BUDGET_EXHAUSTED', message, retryable: false } };
}
