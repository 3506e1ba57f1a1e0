// Who waits for whom, and whether somebody would wait for ever.
//
// Owns:     the question, not the answer's data: it is asked anew with what is so now.
// Does not: know why somebody waits (a wait, a question to a parent, a lock).
//
// Invariants
//   WAIT-GRAPH-1. A wait is refused exactly if, were nothing to change from outside, it could never end:
//       of what must all come one never comes, of what may come none does.

/** What somebody needs before it goes on: all of these to end, or any one of them. */
export interface Need {
  readonly mode: 'all' | 'any';
  readonly of: readonly string[];
}

/** What each needs at the moment; nothing: it goes on by itself. */
export type NeedsOf = (id: string) => readonly Need[];

/**
 * Would `id` wait for ever, if it began to need `need`? Then the way on which that is seen:
 * from `id`, each waits for the next, to one who is on it already; else null.
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

/** Does `id` need `target`, directly or through others? */
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

/** Grows from those that need nothing. */
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
