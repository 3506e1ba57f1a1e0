import fc from 'fast-check';
import { expect, test } from 'vitest';
import { dependsOn, waitCycle, type Need } from '../../../src/actors/subagents/waits.ts';

const ids = ['a', 'b', 'c', 'd', 'e'];

const need: fc.Arbitrary<Need> = fc.record({
  mode: fc.constantFrom('all' as const, 'any' as const),
  of: fc.uniqueArray(fc.constantFrom(...ids), { minLength: 1, maxLength: 3 }),
});
const graph = fc.record(
  Object.fromEntries(ids.map((id) => [id, fc.array(need, { maxLength: 2 })])),
) as fc.Arbitrary<Record<string, readonly Need[]>>;

/** Tries every order in which they can end: is there one in which `id` does? */
function canEnd(id: string, needs: Record<string, readonly Need[]>): boolean {
  const seen = new Set<string>();
  const left = [''];
  for (let ended = left.pop(); ended !== undefined; ended = left.pop()) {
    if (seen.has(ended)) continue;
    seen.add(ended);
    if (ended.includes(id)) return true;
    const gone = ended;
    for (const next of ids)
      if (
        !gone.includes(next) &&
        (needs[next] ?? []).every(({ mode, of }) =>
          mode === 'all'
            ? of.every((one) => gone.includes(one))
            : of.some((one) => gone.includes(one)),
        )
      )
        left.push((gone + next).split('').toSorted().join(''));
  }
  return false;
}

test('WAIT-GRAPH-1: refused exactly if it could never end; the way that is named is one of waits', () => {
  fc.assert(
    fc.property(graph, need, (needs, wanted) => {
      const whole = { ...needs, a: [...(needs['a'] ?? []), wanted] };
      const way = waitCycle('a', wanted, (id) => needs[id] ?? []);
      expect(way === null).toBe(canEnd('a', whole));
      if (!way) return;
      expect(way[0]).toBe('a');
      for (const [index, id] of way.slice(0, -1).entries())
        expect((whole[id as 'a'] ?? []).flatMap(({ of }) => of)).toContain(way[index + 1]);
      // It closes: the last one was there before.
      expect(way.slice(0, -1)).toContain(way.at(-1));
    }),
    { numRuns: 2000 },
  );
});

test('dependsOn follows every need, in whatever circle', () => {
  const needs: Record<string, Need[]> = {
    a: [{ mode: 'any', of: ['b', 'c'] }],
    b: [{ mode: 'all', of: ['d'] }],
    d: [{ mode: 'all', of: ['a'] }],
  };
  const needsOf = (id: string) => needs[id] ?? [];
  expect(ids.filter((id) => dependsOn('a', id, needsOf))).toEqual(['a', 'b', 'c', 'd']);
  expect(dependsOn('c', 'a', needsOf)).toBe(false);
});
