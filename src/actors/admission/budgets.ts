// The budgets of one scope (a session, or a program): its own, and those of its subagents.
//
// Owns:     whose budget is cut from whose, and the timers of those that have a time.
// Does not: count (Budget), or end anybody.
//
// Invariants
//   BUDGETS-9. A subagent whose subtree nothing limits has no budget, and costs nothing here.
//   BUDGETS-10. Who has a time is told once when it is over, unless it has ended.
//   BUDGETS-11. The time of the scope is the time in which it is in some process: a scope that sleeps, or
//        whose process has died, uses none. The time of a subagent goes on.

import type { Failure } from '../../machines/index.ts';
import type { Environment } from '../ports/environment.ts';
import { Budget, type BudgetCharge, exhausted, type BudgetReport } from './budget.ts';
import { checkBudget } from '../admission/budget-limits.ts';
import type { BudgetLimits } from '../contracts/config.ts';

/** What was used before, and since when. */
export interface BudgetUsed {
  readonly startedAt: number;
  readonly tokens: number;
  readonly steps: number;
}

interface Entry {
  readonly budget: Budget;
  readonly stopTimer: () => void;
  /** Its time is its own, or that of one above it, and goes on while the scope sleeps (BUDGETS-11). */
  readonly hasOwnTime: boolean;
}

type Ports = Pick<Environment, 'clock' | 'scheduler'>;

export class Budgets {
  readonly #environment: Ports;
  /** Null: nothing limits the scope. */
  readonly #limits: BudgetLimits | null;
  #scope: Budget | null = null;
  /** As if it had been awake ever since; milliseconds since 1970. */
  #startedAt = 0;
  readonly #entries = new Map<string, Entry>();

  /**
   * `limits`: of the whole scope; its time begins now.
   * @throws {ConfigurationError} for a limit that is unknown or out of range.
   */
  constructor(environment: Ports, limits: BudgetLimits = {}) {
    checkBudget(limits);
    this.#environment = environment;
    this.#limits = Object.values(limits).some((limit) => limit !== undefined) ? limits : null;
    this.goOn(0);
  }

  /** So long the scope was awake before, in milliseconds. Nobody may have been admitted here yet. */
  goOn(awakeMs: number): void {
    const now = (): number => this.#environment.clock.now();
    this.#startedAt = now() - awakeMs;
    this.#scope = this.#limits && Budget.create(this.#limits, now, this.#startedAt);
  }

  /** So long the scope was awake, in milliseconds. */
  get awakeMs(): number {
    return this.#environment.clock.now() - this.#startedAt;
  }

  /**
   * Admits a subagent; `parentId` is null for one of the lead agent or of a program. Returns
   * null, or why its budget does not fit. `exhaust` is called when its time is over.
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

  /** It was admitted by a process that is gone: it has what it had, less what it has used. */
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

  /** Subagents of `parentId` used so much that are not known any more; null, or of one that is gone: of the scope. */
  charge(parentId: string | null, used: BudgetCharge): void {
    this.#above(parentId)?.charge(used);
  }

  /** What its model calls are held against; null: nothing limits it. */
  of(id: string): Budget | null {
    return this.#entries.get(id)?.budget ?? null;
  }

  /** It has ended: what it did not use goes back. Doing it twice does nothing. */
  ended(id: string): void {
    const entry = this.#entries.get(id);
    if (!entry) return;
    this.#entries.delete(id);
    entry.stopTimer();
    entry.budget.close();
  }

  /** When the time of one of them is over, however long the scope sleeps; milliseconds since 1970. `Infinity`: never. */
  get nextDueAt(): number {
    let next = Infinity;
    for (const { budget, hasOwnTime } of this.#entries.values())
      if (hasOwnTime) next = Math.min(next, budget.dueAt ?? Infinity);
    return next;
  }

  /** The scope goes on somewhere else, or later: nobody is told here any more. */
  stop(): void {
    for (const { stopTimer } of this.#entries.values()) stopTimer();
  }

  /** Of the whole scope; empty where nothing limits it. */
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
