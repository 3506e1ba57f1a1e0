// Journal entries with one change: a value of another type, a missing property, an event of another kind, or a deeply
// nested event.

import type { JournalEntry } from '../../src/entries/journal.ts';

/** Returns a generator of numbers in [0, 1) (mulberry32). */
export function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d_2b_79_f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

type Path = readonly (string | number)[];

export interface Mutation {
  readonly entries: readonly JournalEntry[];
  /** The change, for a test's message. */
  readonly told: string;
}

const HOSTILE: readonly unknown[] = [
  42,
  -1,
  1e308,
  '',
  'a\0b\uD800',
  true,
  null,
  [],
  {},
  [[]],
  { toString: 'no' },
  'x'.repeat(5000),
];

export function mutated(entries: readonly JournalEntry[], seed: number): Mutation {
  const random = chance(seed);
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  const copy = structuredClone(entries) as unknown as {
    unit: string;
    seq: number;
    event: Record<string, unknown>;
  }[];
  const entry = pick(copy);
  const where = `entry ${entry.seq} of ${entry.unit} (\`${String(entry.event['type'])}\`)`;
  const done = (told: string): Mutation => ({
    entries: copy as unknown as readonly JournalEntry[],
    told: `${where}: ${told}, seed ${seed}`,
  });
  const paths = pathsOf(entry.event).filter((path) => path[0] !== 'type');
  const kind = random();
  if (kind < 0.08 || paths.length === 0) {
    entry.event = { type: pick(['alien.landed', 'constructor', 'toString', '__proto__']), x: 1 };
    return done('an alien event');
  }
  if (kind < 0.16) {
    const { type } = pick(copy).event;
    entry.event = { ...entry.event, type };
    return done(`of the type \`${String(type)}\``);
  }
  const path = pick(paths);
  if (kind < 0.4) {
    change(entry.event, path, undefined);
    return done(`without \`${path.join('.')}\``);
  }
  if (kind < 0.46) {
    change(entry.event, path, nested(3000));
    return done(`\`${path.join('.')}\` nested deeply`);
  }
  const value = pick(HOSTILE);
  change(entry.event, path, value);
  return done(`\`${path.join('.')}\` is ${JSON.stringify(value).slice(0, 40)}`);
}

function pathsOf(value: unknown, to: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const path = [...to, Array.isArray(value) ? Number(key) : key];
    return [path, ...pathsOf(inner, path)];
  });
}

function change(root: object, path: Path, value: unknown): void {
  let at = root as Record<string | number, unknown>;
  for (const key of path.slice(0, -1)) at = at[key] as typeof at;
  const last = path.at(-1) as string | number;
  if (value !== undefined) at[last] = value;
  else if (Array.isArray(at)) at.splice(last as number, 1);
  else delete at[last];
}

function nested(levels: number): unknown {
  let value: unknown = 'deep';
  for (let level = 0; level < levels; level += 1) value = { value };
  return value;
}
