import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  waitCycle,
  WaitGraph,
  type Need,
  type Waiting,
} from '../../../src/actors/subagents/wait-graph.ts';

const ids = ['a', 'b', 'c', 'd', 'e'];

const need: fc.Arbitrary<Need> = fc.record({
  mode: fc.constantFrom('all' as const, 'any' as const),
  of: fc.uniqueArray(fc.constantFrom(...ids), { minLength: 1, maxLength: 3 }),
});
const graph = fc.record(
  Object.fromEntries(ids.map((id) => [id, fc.array(need, { maxLength: 2 })])),
) as fc.Arbitrary<Record<string, readonly Need[]>>;

/** Tries every order in which the subagents can end, and tells whether `id` ends in one of them. */
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

test('WAIT-GRAPH-1: refuses exactly those waits that could never end, and names the path of the cycle', () => {
  fc.assert(
    fc.property(graph, need, (needs, wanted) => {
      const whole = { ...needs, a: [...(needs['a'] ?? []), wanted] };
      const way = waitCycle('a', wanted, (id) => needs[id] ?? []);
      expect(way === null).toBe(canEnd('a', whole));
      if (!way) return;
      expect(way[0]).toBe('a');
      for (const [index, id] of way.slice(0, -1).entries())
        expect((whole[id as 'a'] ?? []).flatMap(({ of }) => of)).toContain(way[index + 1]);
      // The path closes: its last element is already part of it.
      expect(way.slice(0, -1)).toContain(way.at(-1));
    }),
    { numRuns: 2000 },
  );
});

/** A scope with the same rules but no index: every answer is computed from all its parts. */
class Scope {
  readonly parents = new Map<string, string | null>();
  readonly ended = new Set<string>();
  readonly asking = new Set<string>();
  readonly queue: string[] = [];
  readonly waits: Waiting[] = [];

  isLive = (id: string): boolean => this.parents.has(id) && !this.ended.has(id);

  asked(id: string): readonly string[] {
    const parent = this.parents.get(id);
    return this.asking.has(id) && parent ? [parent] : [];
  }

  before = (id: string): readonly string[] =>
    this.queue.slice(0, Math.max(0, this.queue.indexOf(id)));

  needsOf = (id: string): readonly Need[] =>
    this.isLive(id)
      ? [
          ...this.waits.filter(({ by }) => by === id),
          { mode: 'all', of: [...this.asked(id), ...this.before(id)] },
        ]
      : [];

  dependsOn(id: string, target: string, seen = new Set<string>()): boolean {
    if (id === target) return true;
    if (seen.has(id)) return false;
    seen.add(id);
    return this.needsOf(id).some(({ of }) => of.some((one) => this.dependsOn(one, target, seen)));
  }

  graph(): WaitGraph<Waiting> {
    const all = (): string[] => [...this.parents.keys()];
    return new WaitGraph({
      isLive: this.isLive,
      of: (id) => [...this.asked(id), ...this.before(id)],
      on: (id) =>
        all().filter((other) => this.asked(other).includes(id) || this.before(other).includes(id)),
      asking: () => all().filter((id) => this.asked(id).length > 0),
    });
  }
}

const some = fc.nat(40);
const happening = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant('spawn'), who: some, queues: fc.boolean() }),
  },
  {
    weight: 9,
    arbitrary: fc.record({
      type: fc.constant('wait'),
      who: some,
      isLead: fc.boolean(),
      mode: fc.constantFrom('all' as const, 'any' as const),
      of: fc.array(some, { minLength: 1, maxLength: 3 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('over'), who: some }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('ask'), who: some }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('answer'), who: some }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('end'), who: some }) },
);

const at = <T>(items: readonly T[], place: number): T | undefined => items[place % items.length];

test('WAIT-GRAPH-2: agrees with a walk of the full graph, whatever waits, questions and endings occur', () => {
  let refused = 0;
  let accepted = 0;
  const property = fc.property(
    fc.array(happening, { minLength: 20, maxLength: 60 }),
    (happenings) => {
      const scope = new Scope();
      const graph = scope.graph();
      const live = (): string[] => [...scope.parents.keys()].filter(scope.isLive);
      const over = (wait: Waiting): void => {
        scope.waits.splice(scope.waits.indexOf(wait), 1);
        graph.delete(wait);
      };
      for (const each of happenings) {
        const who = at(live(), each.who);
        if (each.type === 'spawn' && 'queues' in each) {
          const id = `s${scope.parents.size}`;
          scope.parents.set(id, each.who % 3 === 0 ? null : (who ?? null));
          if (each.queues) scope.queue.push(id);
        } else if (each.type === 'wait' && 'of' in each && who !== undefined) {
          const of = [
            ...new Set(each.of.map((place) => at([...scope.parents.keys()], place) ?? who)),
          ];
          const by = each.isLead && each.who % 5 === 0 ? null : who;
          const wait: Waiting = { by, mode: each.mode, of };
          const way = by === null ? null : waitCycle(by, wait, scope.needsOf);
          expect(graph.wayOf(wait)).toEqual(way);
          if (way) refused += 1;
          else {
            accepted += 1;
            scope.waits.push(wait);
            graph.add(wait);
          }
        } else if (each.type === 'over') {
          const wait = at(scope.waits, each.who);
          if (wait) over(wait);
        } else if (who !== undefined) {
          if (each.type === 'ask') scope.asking.add(who);
          if (each.type === 'answer' || each.type === 'end') scope.asking.delete(who);
          if (each.type !== 'end') continue;
          scope.ended.add(who);
          if (scope.queue.includes(who)) scope.queue.splice(scope.queue.indexOf(who), 1);
          // The waits of an ended subagent may remain for a moment.
          if (each.who % 2 === 0) for (const wait of graph.by(who)) over(wait);
        }
        const known = [...scope.parents.keys()];
        for (const id of known) {
          expect(graph.by(id)).toEqual(scope.waits.filter(({ by }) => by === id));
          expect(graph.on(id)).toEqual(scope.waits.filter(({ of }) => of.includes(id)));
          const dependents = known.filter((one) => scope.dependsOn(one, id));
          expect([...graph.dependentsOf([id])].toSorted()).toEqual(dependents.toSorted());
        }
      }
    },
  );
  fc.assert(property, { numRuns: 500 });
  // Both outcomes occur in the story often enough.
  expect(Math.min(refused, accepted)).toBeGreaterThan(1000);
});
