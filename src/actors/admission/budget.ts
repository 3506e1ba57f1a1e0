// What a session, or a subagent with all that it spawns, may use: tokens, steps, agents, time.
//
// Owns:     the purses, and what a model call holds of them while it runs.
// Does not: end anybody (who is refused, or is told that the time is over, does that).
//
// Invariants
//   BUDGET-5. A child's own limits are reserved from what its parent has left, when it is
//       admitted, all of them or none; what it does not limit it shares with its parent.
//   BUDGET-6. A model call is refused before it is made when its tokens do not fit, when no step
//       is left, or when the time is over. Every attempt is a step.
//   BUDGET-7. It is settled once, at its end, and gives back what it did not use.
//   BUDGET-8. The one last call that hands in partial work is made in any case: it is counted, and
//       may go beyond the grant.

import type { Failure } from '../../machines/index.ts';
import { Purse, type Hold } from './purse.ts';
import type { BudgetLimits } from '../contracts/config.ts';

export type BudgetResource = keyof BudgetLimits;

/** What has become of one limit. */
export interface BudgetUse {
  readonly granted: number;
  readonly spent: number;
  /** Held by calls under way, and reserved for children. */
  readonly reserved: number;
  readonly left: number;
}

export type BudgetReport = { readonly [resource in BudgetResource]?: BudgetUse };

/** A model call that may be made. */
export interface BudgetedCall {
  readonly ok: true;
  /** The model shall say no more than this; undefined: as much as it likes. */
  readonly maxOutputTokens: number | undefined;
  /** What the call cost. The first time counts. */
  settle(tokens: number): void;
}

export type Refusal = { readonly ok: false; readonly error: Failure };

/** Held for the answer of one call beside its input. */
const OUTPUT_ALLOWANCE = 4_096;

/** The last call hands in what there is; it need not be long. */
const FINAL_OUTPUT_TOKENS = 1_024;

type Purses = { readonly [resource in 'tokens' | 'steps' | 'agents']: Purse | null };
const counted = ['tokens', 'steps', 'agents'] as const;

/** What was used of a budget. */
export interface BudgetCharge {
  readonly tokens: number;
  readonly steps: number;
  /** @defaultValue 0 */
  readonly agents?: number;
}

export class Budget {
  readonly #purses: Purses;
  readonly #own: readonly Purse[];
  readonly #startedAt: number;
  /** When the time is over; null: never. */
  readonly dueAt: number | null;
  readonly #now: () => number;

  private constructor(
    purses: Purses,
    own: readonly Purse[],
    dueAt: number | null,
    now: () => number,
    startedAt: number,
  ) {
    this.#purses = purses;
    this.#own = own;
    this.dueAt = dueAt;
    this.#now = now;
    this.#startedAt = startedAt;
  }

  /** A budget that is nobody's part. `now`: milliseconds since 1970. */
  static create(limits: BudgetLimits, now: () => number, startedAt = now()): Budget {
    const purse = (granted: number | undefined): Purse | null =>
      granted === undefined ? null : new Purse(granted);
    const { tokens, steps, agents, timeMs } = limits;
    const purses = { tokens: purse(tokens), steps: purse(steps), agents: purse(agents) };
    const own = counted.flatMap((resource) => purses[resource] ?? []);
    const dueAt = timeMs === undefined ? null : startedAt + timeMs;
    return new Budget(purses, own, dueAt, now, startedAt);
  }

  /** The budget of a child that is admitted now. Refused with `BUDGET_EXCEEDED`, which names the limit. */
  admit(limits: BudgetLimits = {}): { readonly ok: true; readonly budget: Budget } | Refusal {
    return this.#lacking(limits) ?? { ok: true, budget: this.readmit(limits, this.#now()) };
  }

  /**
   * The budget of a child that was admitted at `startedAt`, perhaps by a process that is gone: if
   * its part is not left here any more, it shares what is.
   */
  readmit(limits: BudgetLimits, startedAt: number): Budget {
    const { tokens, steps, agents } = this.#purses;
    agents?.charge(1);
    const part = (purse: Purse | null, limit: number | undefined): Purse | null => {
      if (limit === undefined) return purse;
      return purse ? (purse.cut(limit) ?? purse) : new Purse(limit);
    };
    const purses = {
      tokens: part(tokens, limits.tokens),
      steps: part(steps, limits.steps),
      agents: part(agents, limits.agents),
    };
    const own = counted.flatMap((resource) =>
      limits[resource] === undefined ? [] : (purses[resource] ?? []),
    );
    const dueAt = limits.timeMs === undefined ? this.dueAt : startedAt + limits.timeMs;
    return new Budget(purses, own, dueAt, this.#now, startedAt);
  }

  /** Counts what was used in a process that is gone. */
  charge({ tokens, steps, agents = 0 }: BudgetCharge): void {
    this.#purses.tokens?.charge(tokens);
    this.#purses.steps?.charge(steps);
    this.#purses.agents?.charge(agents);
  }

  /**
   * Asks for one model call whose input has about so many tokens. Refused with
   * `BUDGET_EXHAUSTED`, which names what is used up.
   */
  beginCall(inputTokens: number): BudgetedCall | Refusal {
    const used = this.usedUp(inputTokens);
    if (used) return exhausted(used);
    const { tokens, steps } = this.#purses;
    steps?.charge(1);
    if (!tokens) return { ok: true, maxOutputTokens: undefined, settle() {} };
    const hold = tokens.take(Math.min(tokens.left, inputTokens + OUTPUT_ALLOWANCE)) as Hold;
    const output = hold.amount - inputTokens;
    return {
      ok: true,
      // A limit that does not bind is not sent: some models refuse one above their own.
      maxOutputTokens: output < OUTPUT_ALLOWANCE ? output : undefined,
      settle: (used_) => hold.settle(used_),
    };
  }

  /** The last call, which hands in partial work. */
  beginFinalCall(): BudgetedCall {
    const { tokens, steps } = this.#purses;
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

  /** What is lacking for a call with so many tokens of input; null: nothing. */
  usedUp(inputTokens = 0): BudgetResource | null {
    const { tokens, steps } = this.#purses;
    if (this.dueAt !== null && this.#now() >= this.dueAt) return 'timeMs';
    if (steps && steps.left < 1) return 'steps';
    return tokens && tokens.left < inputTokens + 1 ? 'tokens' : null;
  }

  /** It has ended. Doing it twice does nothing. */
  close(): void {
    for (const purse of this.#own) purse.close();
  }

  get report(): BudgetReport {
    const report: { [resource in BudgetResource]?: BudgetUse } = {};
    for (const resource of counted) {
      const purse = this.#purses[resource];
      if (!purse) continue;
      const { granted, spent, held: reserved, left } = purse;
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
      const purse = this.#purses[resource];
      if (!purse) continue;
      const wanted =
        resource === 'agents' ? 1 + (limits.agents ?? 0) : Math.max(1, limits[resource] ?? 1);
      if (purse.left < wanted) return exceeded(resource, wanted, purse.left);
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

/** The failure of who has used up its budget. */
export function exhausted(resource: BudgetResource): Refusal {
  const message = `The budget is used up: no ${resource} left`;
  return { ok: false, error: { code: 'BUDGET_EXHAUSTED', message, retryable: false } };
}
