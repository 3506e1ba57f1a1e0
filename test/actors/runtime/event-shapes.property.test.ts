import fc from 'fast-check';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { quickCheckOf } from '../../../src/actors/runtime/event-shapes.ts';
import { SESSION_SHAPES } from '../../../src/actors/session/unit/session-entries.ts';
import { SUBAGENT_SHAPES } from '../../../src/actors/subagent/subagent-events.ts';

interface Told {
  readonly entries: readonly { readonly event: { readonly type: string } }[];
}

const shapes = { ...SESSION_SHAPES, ...SUBAGENT_SHAPES };
const stories = JSON.parse(
  readFileSync(new URL('../../corpus/stories-1.json', import.meta.url), 'utf8'),
) as readonly Told[];
const events = stories
  .flatMap(({ entries }) => entries.map(({ event }) => event))
  .filter(({ type }) => Object.hasOwn(shapes, type));

const shapeOf = ({ type }: { readonly type: string }): z.ZodType => shapes[type] as z.ZodType;

const anything = fc.anything({
  maxDepth: 2,
  withNullPrototype: true,
  withDate: true,
  withMap: true,
  withSparseArray: true,
});

/** Replaces one value somewhere in an event: `path` chooses a key on each level. */
function changed(value: unknown, path: readonly number[], by: unknown): unknown {
  if (typeof value !== 'object' || value === null || path.length === 0) return by;
  const keys = Object.keys(value);
  if (keys.length === 0) return by;
  const [first = 0, ...rest] = path;
  const key = keys[first % keys.length] as keyof typeof value;
  const copy = Array.isArray(value) ? [...(value as unknown[])] : { ...value };
  Object.defineProperty(copy, key, {
    value: changed(value[key], rest, by),
    enumerable: true,
    configurable: true,
    writable: true,
  });
  return copy;
}

/** Written once in a session: their shapes have kinds that the quick check does not know. */
const seldom = new Set(['session.opened', 'session.snapshot']);

test('SHAPE-2: every event that a session writes often passes the quick check', () => {
  const often = events.filter(({ type }) => !seldom.has(type));
  expect(often.length).toBeGreaterThan(400);
  for (const event of often)
    expect({ event, isQuick: quickCheckOf(shapeOf(event))(event) }).toEqual({
      event,
      isQuick: true,
    });
});

test('SHAPE-2: where the quick check says yes zod does, whatever was changed', () => {
  let yes = 0;
  let no = 0;
  fc.assert(
    fc.property(
      fc.constantFrom(...events),
      fc.array(fc.nat(20), { minLength: 1, maxLength: 6 }),
      anything,
      (event, path, by) => {
        const shape = shapeOf(event);
        const given = changed(event, path, by);
        const isQuick = quickCheckOf(shape)(given);
        if (isQuick) expect(shape.safeParse(given).success).toBe(true);
        if (isQuick) yes += 1;
        else no += 1;
      },
    ),
    { numRuns: 4000 },
  );
  expect(Math.min(yes, no)).toBeGreaterThan(400);
});

test('SHAPE-2: any JSON passes the quick check of JSON, and nothing else does that zod refuses', () => {
  const json = z.json();
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(quickCheckOf(json)(value)).toBe(true);
    }),
    { numRuns: 300 },
  );
  fc.assert(
    fc.property(anything, (value) => {
      if (quickCheckOf(json)(value)) expect(json.safeParse(value).success).toBe(true);
    }),
    { numRuns: 1000 },
  );
});

test('SHAPE-2: what the quick check does not know is left to zod', () => {
  const unknown = [
    z.strictObject({ a: z.string() }),
    z.string().min(1),
    z.email(),
    z.int(),
    z.string().transform((text) => text.length),
    z.looseObject({ a: z.string() }).check((input) => void input.issues),
  ];
  for (const shape of unknown)
    for (const value of ['', 'a', 1, { a: 'a' }, { a: 'a', b: 1 }])
      expect(quickCheckOf(shape)(value)).toBe(false);
});
