// The graph of waits, and the test whether a wait could never end.
//
// Owns:     the algorithm, not its data: it reads the current needs for each question.
// Does not: know the reason of a need (a wait, a question to a parent, a lock).
//
// Invariants
//   WAIT-GRAPH-1. A wait is refused exactly if, without a change from outside, it could never end: of the
//       ends that it needs together one never comes, or of its alternatives none does.

/** The ends that a subagent needs before it continues: all of them, or any one of them. */
export interface Need {
  readonly mode: 'all' | 'any';
  readonly of: readonly string[];
}

/** Returns the current needs of a subagent; none: it continues by itself. */
export type NeedsOf = (id: string) => readonly Need[];

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

/** Tells whether `id` needs `target`, directly or through others. */
export function dependsOn(id: string, target: string, needsOf: NeedsOf): boolean {
  return reachable(id, null, needsOf).has(target);
}

function reachable(
  id: string,
  extra: Need | null,
  needsOf: NeedsOf,
): ReadonlyMap<string, readonly Need[]> {
  const found = new Map<string, readonly Need[]>();
  const left = [id];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (found.has(next)) continue;
    const needs = next === id && extra ? [...needsOf(next), extra] : needsOf(next);
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
