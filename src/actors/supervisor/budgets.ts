// The budgets of one scope (a session, or a program): its own, and those of its subagents.
//
// Owns:     whose budget is cut from whose, and the timers of those that have a time.
// Does not: count (Budget), or end anybody.
//
// Invariants
//   V9. A subagent whose subtree nothing limits has no budget, and costs nothing here.
//   V10. Who has a time is told once when it is over, unless it has ended.

import type { Failure } from '../../machines/index.ts';
import type { Environment } from '../ports/environment.ts';
import { Budget, type BudgetCharge, exhausted, type BudgetReport } from './budget.ts';
import { checkBudget, type BudgetLimits } from './budget-limits.ts';

/** What was used before, and since when. */
export interface BudgetUsed {
  readonly startedAt: number;
  readonly tokens: number;
  readonly steps: number;
}

interface Entry {
  readonly budget: Budget;
  readonly stopTimer: () => void;
}

type Ports = Pick<Environment, 'clock' | 'scheduler'>;

export class Budgets {
  readonly #environment: Ports;
  readonly #scope: Budget | null;
  readonly #entries = new Map<string, Entry>();

  /**
   * `limits`: of the whole scope; its time begins now.
   * @throws {ConfigurationError} for a limit that is unknown or out of range.
   */
  constructor(environment: Ports, limits: BudgetLimits = {}) {
    checkBudget(limits);
    this.#environment = environment;
    this.#scope = Object.values(limits).some((limit) => limit !== undefined)
      ? Budget.create(limits, () => environment.clock.now())
      : null;
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
    this.#enter(id, admission.budget, exhaust);
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
    this.#enter(id, budget, exhaust);
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

  /** When the time of one of them is over, milliseconds since 1970; `Infinity`: none has a time. */
  get nextDueAt(): number {
    let next = Infinity;
    for (const { budget } of this.#entries.values())
      next = Math.min(next, budget.dueAt ?? Infinity);
    return next;
  }

  /** Of the whole scope; empty where nothing limits it. */
  get report(): BudgetReport {
    return this.#scope?.report ?? {};
  }

  #enter(id: string, budget: Budget, exhaust: (message: string) => void): void {
    const { clock, scheduler } = this.#environment;
    const { dueAt } = budget;
    const stopTimer =
      dueAt === null
        ? () => {}
        : scheduler.schedule(
            () => exhaust(exhausted('timeMs').error.message),
            Math.max(0, dueAt - clock.now()),
          );
    this.#entries.set(id, { budget, stopTimer });
  }

  #above(parentId: string | null): Budget | null {
    const parent = parentId === null ? null : this.#entries.get(parentId)?.budget;
    return parent ?? this.#scope;
  }
}
