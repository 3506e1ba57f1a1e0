// Ends the descendants of an ended subagent: cancels them at once, kills them after a grace.
//
// Owns:     the running graces, one for each subagent that left live children.
// Does not: know how a subagent is cancelled.

import type { Scheduler } from '../ports/environment.ts';
import type { SubagentRecord } from './subagent-registry.ts';

interface Grace {
  readonly left: Set<SubagentRecord>;
  readonly stopClock: () => void;
}

export class Cascade {
  readonly #scheduler: Scheduler;
  readonly #graceMs: number;
  readonly #graces = new Map<string, Grace>();

  constructor(scheduler: Scheduler, graceMs: number) {
    this.#scheduler = scheduler;
    this.#graceMs = graceMs;
  }

  /** Cancels the children of a subagent that has ended; each of them does the same for its own. */
  begin(parent: SubagentRecord, children: readonly SubagentRecord[]): void {
    if (children.length === 0) return;
    const reason = `${parent.admission.definition.name} (${parent.id}), which it worked for, has ended`;
    const left = new Set(children);
    const stopClock = this.#scheduler.schedule(() => {
      this.#graces.delete(parent.id);
      for (const child of left) child.subagent?.kill(reason);
    }, this.#graceMs);
    this.#graces.set(parent.id, { left, stopClock });
    for (const child of children) child.subagent?.cancel(reason);
  }

  ended(child: SubagentRecord): void {
    const { parentId } = child;
    const grace = parentId === null ? undefined : this.#graces.get(parentId);
    if (!grace || parentId === null) return;
    grace.left.delete(child);
    if (grace.left.size > 0) return;
    grace.stopClock();
    this.#graces.delete(parentId);
  }
}
