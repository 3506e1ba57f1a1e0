// The graph of needs among the subagents of one scope: who cannot continue before who has ended.
//
// Owns:     the open waits, by the agent that waits and by the subagents that it waits for, and the decision
//           whether a wait could ever end.
// Does not: know why a wait begins or ends, or keep the needs that are no waits: it is told of none of them,
//           and asks for them (`NeedsBeside`).
//
// A wait is checked against what depends on it, and not by a walk over what it depends on: a parent of ten
// thousand children depends on all of them, and few depend on it.
//
// Invariants
//   WAIT-GRAPH-1. A wait is refused exactly if, without a change from outside, it could never end: of the
//       ends that it needs together one never comes, or of its alternatives none does.
//   WAIT-GRAPH-2. Without the questions that subagents ask each other, every subagent could end: a wait is
//       added only if it could, and a run of an instance needs only runs that were there before. So only a
//       wait that depends on a question or, through others, on the agent that waits needs the whole walk.

/** The ends that a subagent needs before it continues: all of them, or any one of them. */
export interface Need {
  readonly mode: 'all' | 'any';
  readonly of: readonly string[];
}

/** Returns the current needs of a subagent; none: it continues by itself. */
type NeedsOf = (id: string) => readonly Need[];

/** A need that begins and ends. */
export interface Waiting extends Need {
  /** The subagent that waits; null: the lead agent, or a program, which nobody waits for. */
  readonly by: string | null;
}

/** The needs that are no waits: of an answer, and of the earlier runs of an instance. */
export interface NeedsBeside {
  isLive(id: string): boolean;
  /** The subagents that must end, or answer, before this one continues. */
  of(id: string): readonly string[];
  /** The subagents that need this one in that way. */
  on(id: string): Iterable<string>;
  /** The subagents that ask another one. */
  asking(): Iterable<string>;
}

export class WaitGraph<Wait extends Waiting> {
  readonly #beside: NeedsBeside;
  readonly #byWaiter = new Map<string | null, Set<Wait>>();
  readonly #byAwaited = new Map<string, Set<Wait>>();

  constructor(beside: NeedsBeside) {
    this.#beside = beside;
  }

  /** Adds a wait that `wayOf` does not refuse. */
  add(wait: Wait): void {
    put(this.#byWaiter, wait.by, wait);
    for (const id of wait.of) put(this.#byAwaited, id, wait);
  }

  delete(wait: Wait): void {
    take(this.#byWaiter, wait.by, wait);
    for (const id of wait.of) take(this.#byAwaited, id, wait);
  }

  /** The waits of an agent, oldest first. A copy: ending waits does not disturb its reader. */
  by(waiter: string | null): readonly Wait[] {
    return [...(this.#byWaiter.get(waiter) ?? [])];
  }

  /** The waits for a subagent, oldest first; a copy. */
  on(id: string): readonly Wait[] {
    return [...(this.#byAwaited.get(id) ?? [])];
  }

  /** Returns the way that shows why a wait could never end, as `waitCycle` does; null: it could. */
  wayOf(wait: Wait): readonly string[] | null {
    const { by } = wait;
    return by === null || this.#surelyEnds(by, wait) ? null : waitCycle(by, wait, this.#needsOf);
  }

  /** Returns these subagents and all that need one of them, directly or through others. */
  dependentsOf(ids: Iterable<string>): Set<string> {
    const found = new Set<string>();
    this.#addDependents(found, ids);
    return found;
  }

  #addDependents(found: Set<string>, ids: Iterable<string>): void {
    const left = [...ids];
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      if (found.has(next)) continue;
      found.add(next);
      for (const { by } of this.#byAwaited.get(next) ?? [])
        if (by !== null && this.#beside.isLive(by)) left.push(by);
      for (const id of this.#beside.on(next)) if (this.#beside.isLive(id)) left.push(id);
    }
  }

  /** WAIT-GRAPH-2 */
  #surelyEnds(by: string, { of }: Need): boolean {
    const unsure = this.dependentsOf(this.#beside.asking());
    if (unsure.has(by)) return false;
    this.#addDependents(unsure, [by]);
    return !of.some((id) => unsure.has(id));
  }

  readonly #needsOf = (id: string): readonly Need[] =>
    this.#beside.isLive(id) ? [...this.by(id), { mode: 'all', of: this.#beside.of(id) }] : [];
}

function put<Key, Item>(index: Map<Key, Set<Item>>, key: Key, item: Item): void {
  const known = index.get(key);
  if (known) known.add(item);
  else index.set(key, new Set([item]));
}

function take<Key, Item>(index: Map<Key, Set<Item>>, key: Key, item: Item): void {
  const known = index.get(key);
  if (known?.delete(item) && known.size === 0) index.delete(key);
}

/**
 * Tells whether `id` would wait for ever if it began to need `need`. Returns the path that shows it: from
 * `id`, each waits for the next, up to one that is on the path already; else null.
 */
export function waitCycle(id: string, need: Need, needsOf: NeedsOf): readonly string[] | null {
  const needs = reachable(id, need, needsOf);
  const free = thoseThatEnd(needs);
  if (free.has(id)) return null;
  const way: string[] = [id];
  for (;;) {
    const last = way.at(-1) as string;
    const next = (needs.get(last) ?? [])
      .filter((one) => !isMet(one, free))
      .flatMap(({ of }) => of)
      .find((target) => !free.has(target));
    if (next === undefined) return way;
    way.push(next);
    if (way.indexOf(next) < way.length - 1) return way;
  }
}

function reachable(
  id: string,
  extra: Need,
  needsOf: NeedsOf,
): ReadonlyMap<string, readonly Need[]> {
  const found = new Map<string, readonly Need[]>();
  const left = [id];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (found.has(next)) continue;
    const needs = next === id ? [...needsOf(next), extra] : needsOf(next);
    found.set(next, needs);
    for (const { of } of needs) left.push(...of);
  }
  return found;
}

/** Computes the subagents that end, beginning with those that need nothing. */
function thoseThatEnd(needs: ReadonlyMap<string, readonly Need[]>): ReadonlySet<string> {
  const free = new Set<string>();
  for (let before = -1; before < free.size;) {
    before = free.size;
    for (const [id, own] of needs) if (own.every((need) => isMet(need, free))) free.add(id);
  }
  return free;
}

function isMet({ mode, of }: Need, free: ReadonlySet<string>): boolean {
  return mode === 'all' ? of.every((id) => free.has(id)) : of.some((id) => free.has(id));
}
