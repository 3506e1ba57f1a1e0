// The graph of dependencies among a scope's subagents. It shows which subagents must end before another one can
// continue.
//
// Owns:     the open waits, indexed by waiting agent and by awaited subagent, and the decision whether a wait could
//           ever end.
// Does not: know why a wait starts or ends, or store the dependencies that are not waits (`NeedsBeside` provides them).
//
// To check a wait, its dependents are searched and not its dependencies. A parent of ten thousand children depends on
// all of them, but few subagents depend on the parent.
//
// Invariants
//   WAIT-GRAPH-1. A wait is refused exactly if it could never end without external action. A wait for all of several
//       subagents is refused if one of them can never end. A wait for any of them is refused if none of them can.
//   WAIT-GRAPH-2. If no subagent has a request to another, every subagent can end, because a wait is added only if it
//       can end, and an instance's run depends only on earlier runs. The full search is therefore needed only for a
//       wait that depends on a request or, indirectly, on the waiting agent.

/** The subagents that must end before a subagent continues: all of them, or any one of them. */
export interface Need {
  readonly mode: 'all' | 'any';
  readonly of: readonly string[];
}

/** Returns what a subagent currently depends on. A subagent without dependencies can continue. */
type NeedsOf = (id: string) => readonly Need[];

/** A wait, which is a temporary dependency. */
export interface Waiting extends Need {
  /** The waiting subagent; null for the lead agent or a program, because no subagent's wait depends on them. */
  readonly by: string | null;
}

/** The dependencies that are not waits: answers, and earlier runs of an instance. */
export interface NeedsBeside {
  isLive(id: string): boolean;
  /** Returns the subagents that must end or answer before this one can continue. */
  of(id: string): readonly string[];
  /** Returns the subagents that cannot continue before this one has ended or answered. */
  on(id: string): Iterable<string>;
  /** Returns the subagents that are asking another subagent. */
  asking(): Iterable<string>;
}

export class WaitGraph<Wait extends Waiting> {
  readonly #beside: NeedsBeside;
  readonly #byWaiter = new Map<string | null, Set<Wait>>();
  readonly #byAwaited = new Map<string, Set<Wait>>();

  constructor(beside: NeedsBeside) {
    this.#beside = beside;
  }

  /** Adds a wait that `wayOf` has allowed. */
  add(wait: Wait): void {
    put(this.#byWaiter, wait.by, wait);
    for (const id of wait.of) put(this.#byAwaited, id, wait);
  }

  delete(wait: Wait): void {
    take(this.#byWaiter, wait.by, wait);
    for (const id of wait.of) take(this.#byAwaited, id, wait);
  }

  /** Returns an agent's waits, oldest first, as a copy, because the caller may end waits while it reads them. */
  by(waiter: string | null): readonly Wait[] {
    return [...(this.#byWaiter.get(waiter) ?? [])];
  }

  /** Returns a copy of the waits for a subagent, oldest first. */
  on(id: string): readonly Wait[] {
    return [...(this.#byAwaited.get(id) ?? [])];
  }

  /** Like `waitCycle`, returns the path that shows why a wait could never end. Null if the wait could end. */
  wayOf(wait: Wait): readonly string[] | null {
    const { by } = wait;
    return by === null || this.#surelyEnds(by, wait) ? null : waitCycle(by, wait, this.#needsOf);
  }

  /** Returns these subagents and all those that depend on one of them, directly or indirectly. */
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
 * Returns the path that shows why `id` would wait forever for these subagents. The path starts at `id`. Each subagent
 * on it waits for the next, and the last one is already on the path. Returns null if `id` could end.
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

/** Returns the subagents that can end, starting from the subagents without dependencies. */
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
