// The graph of needs among a scope's subagents: which subagent cannot continue before which others have ended.
//
// Owns:     the open waits, by waiting agent and by awaited subagent, and the decision whether a wait could ever end.
// Does not: know why a wait starts or ends, or hold needs that are not waits; `NeedsBeside` provides those.
//
// A wait is checked by searching its dependents, not its dependencies: a parent of ten thousand children depends on all
// of them, but few subagents depend on the parent.
//
// Invariants
//   WAIT-GRAPH-1. A wait is refused exactly if it could never end without a change from outside: one of the ends that
//       it needs together never comes, or none of its alternatives does.
//   WAIT-GRAPH-2. Without requests between subagents, every subagent could end: a wait is added only if it could end,
//       and an instance's run needs only earlier runs. The full search is therefore needed only for a wait that depends
//       on a request or, indirectly, on the waiting agent.

/** The ends that a subagent needs before it continues: all of them, or one of them. */
export interface Need {
  readonly mode: 'all' | 'any';
  readonly of: readonly string[];
}

/** Returns a subagent's current needs; without any, it continues. */
type NeedsOf = (id: string) => readonly Need[];

/** A wait, which is a temporary need. */
export interface Waiting extends Need {
  /** The subagent that waits; null for the lead agent, or a program, for which no subagent waits. */
  readonly by: string | null;
}

/** The needs that are not waits: answers, and an instance's earlier runs. */
export interface NeedsBeside {
  isLive(id: string): boolean;
  /** Returns the subagents that must end, or answer, before this one continues. */
  of(id: string): readonly string[];
  /** Returns the subagents that need this one in that way. */
  on(id: string): Iterable<string>;
  /** Returns the subagents that ask another subagent. */
  asking(): Iterable<string>;
}

export class WaitGraph<Wait extends Waiting> {
  readonly #beside: NeedsBeside;
  readonly #byWaiter = new Map<string | null, Set<Wait>>();
  readonly #byAwaited = new Map<string, Set<Wait>>();

  constructor(beside: NeedsBeside) {
    this.#beside = beside;
  }

  /** Adds a wait that `wayOf` accepts. */
  add(wait: Wait): void {
    put(this.#byWaiter, wait.by, wait);
    for (const id of wait.of) put(this.#byAwaited, id, wait);
  }

  delete(wait: Wait): void {
    take(this.#byWaiter, wait.by, wait);
    for (const id of wait.of) take(this.#byAwaited, id, wait);
  }

  /** Returns a copy of an agent's waits, oldest first: the reader may end waits. */
  by(waiter: string | null): readonly Wait[] {
    return [...(this.#byWaiter.get(waiter) ?? [])];
  }

  /** Returns a copy of the waits for a subagent, oldest first. */
  on(id: string): readonly Wait[] {
    return [...(this.#byAwaited.get(id) ?? [])];
  }

  /** Returns the path that shows why a wait could never end, like `waitCycle`; null if it could end. */
  wayOf(wait: Wait): readonly string[] | null {
    const { by } = wait;
    return by === null || this.#surelyEnds(by, wait) ? null : waitCycle(by, wait, this.#needsOf);
  }

  /** Returns these subagents, and all that need one of them, directly or indirectly. */
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
 * Returns the path that shows that `id` would wait forever with this need: from `id`, each subagent waits for the next,
 * up to one that is already on the path. Null if `id` could end.
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

/** Returns the subagents that can end, computed from those without needs. */
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
