// What happens to those below when somebody ends: cancelled at once, killed after a grace.
//
// Owns:     the graces that run, one for each that left live children.
// Does not: know how somebody is cancelled.

import type { Scheduler } from '../ports/environment.ts';
import type { SubagentRecord } from './family.ts';

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

  /** It has ended, and leaves these children; they do the same in their turn. */
  begin(parent: SubagentRecord, children: readonly SubagentRecord[]): void {
    if (children.length === 0) return;
    const reason = `${parent.place.definition.name} (${parent.id}), which it worked for, has ended`;
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
