// The budgets of one scope (a session, or a program): its own, and those of its subagents.
//
// Owns:     the parent of each budget, and the timers of those with a time limit.
// Does not: count (Budget), or end a subagent.
//
// Invariants
//   BUDGETS-9. A subagent whose subtree has no limits has no budget, and costs nothing here.
//   BUDGETS-10. The end of a time limit is reported once, unless the subagent has ended.
//   BUDGETS-11. The time of the scope counts only while it is loaded in a process: a scope that sleeps, or
//        whose process has died, uses none. The time of a subagent continues.

import type { Failure } from '../../machines/index.ts';
import type { Environment } from '../ports/environment.ts';
import { Budget, type BudgetCharge, exhausted, type BudgetReport } from './budget.ts';
import { checkBudget } from '../admission/budget-limits.ts';
import type { BudgetLimits } from '../contracts/config.ts';

/** The amounts used before, and the start of the time. */
export interface BudgetUsed {
  readonly startedAt: number;
  readonly tokens: number;
  readonly steps: number;
}

interface Entry {
  readonly budget: Budget;
  readonly stopTimer: () => void;
  /** Whether it or an ancestor has a time limit, which continues while the scope sleeps (BUDGETS-11). */
  readonly hasOwnTime: boolean;
}

type Ports = Pick<Environment, 'clock' | 'scheduler'>;

export class Budgets {
  readonly #environment: Ports;
  /** Null: the scope has no limits. */
  readonly #limits: BudgetLimits | null;
  #scope: Budget | null = null;
  /** The start of the scope's time as if it had been loaded ever since, in milliseconds since 1970. */
  #startedAt = 0;
  readonly #entries = new Map<string, Entry>();

  /**
   * @param limits The limits of the whole scope; its time begins now.
   * @throws {ConfigurationError} for a limit that is unknown or out of range.
   */
  constructor(environment: Ports, limits: BudgetLimits = {}) {
    checkBudget(limits);
    this.#environment = environment;
    this.#limits = Object.values(limits).some((limit) => limit !== undefined) ? limits : null;
    this.continue(0);
  }

  /**
   * Sets the time for which the scope was loaded before, in milliseconds. Must precede the first admission.
   */
  continue(awakeMs: number): void {
    const now = (): number => this.#environment.clock.now();
    this.#startedAt = now() - awakeMs;
    this.#scope = this.#limits && Budget.create(this.#limits, now, this.#startedAt);
  }

  /** The time for which the scope was loaded, in milliseconds. */
  get awakeMs(): number {
    return this.#environment.clock.now() - this.#startedAt;
  }

  /**
   * Admits a subagent; `parentId` is null for a subagent of the lead agent or of a program. Returns null, or
   * the reason why its budget does not fit. `exhaust` is called when its time is over.
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

  /**
   * Restores the budget of a subagent that an earlier process admitted, less the amounts that it has used.
   */
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
   * Charges the use of subagents of `parentId` that are no longer known; null, or a parent that is gone:
   * charges the scope.
   */
  charge(parentId: string | null, used: BudgetCharge): void {
    this.#above(parentId)?.charge(used);
  }

  /** Returns the budget for the model calls of a subagent; null if it has none. */
  of(id: string): Budget | null {
    return this.#entries.get(id)?.budget ?? null;
  }

  /** Handles the end of a subagent: unused amounts return to the parent. Idempotent. */
  ended(id: string): void {
    const entry = this.#entries.get(id);
    if (!entry) return;
    this.#entries.delete(id);
    entry.stopTimer();
    entry.budget.close();
  }

  /**
   * When the first time limit of a subagent ends, however long the scope sleeps, in milliseconds since 1970.
   * `Infinity`: never.
   */
  get nextDueAt(): number {
    let next = Infinity;
    for (const { budget, hasOwnTime } of this.#entries.values())
      if (hasOwnTime) next = Math.min(next, budget.dueAt ?? Infinity);
    return next;
  }

  /** Stops all timers: the scope continues in another process, or later. */
  stop(): void {
    for (const { stopTimer } of this.#entries.values()) stopTimer();
  }

  /** The use of the whole scope; empty if it has no limits. */
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
    const { clock, scheduler } = this.#environment;
    const { dueAt } = budget;
    const stopTimer =
      dueAt === null
        ? () => {}
        : scheduler.schedule(
            () => exhaust(exhausted('timeMs').error.message),
            Math.max(0, dueAt - clock.now()),
          );
    const isAboves = parentId !== null && this.#entries.get(parentId)?.hasOwnTime === true;
    this.#entries.set(id, {
      budget,
      stopTimer,
      hasOwnTime: limits?.timeMs !== undefined || isAboves,
    });
  }

  #above(parentId: string | null): Budget | null {
    const parent = parentId === null ? null : this.#entries.get(parentId)?.budget;
    return parent ?? this.#scope;
  }
}
