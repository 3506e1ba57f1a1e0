// For any contexts, events, outputs and errors, the messages stay small and do not contain these values.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Converter, type Line } from '../../../src/adapters/inspect/trace-line.ts';
import { redactNothing, redactWords } from '../../../src/adapters/inspect/shown-value.ts';

const MAX_BYTES = 16_384;
const SECRET = 'Mr Bond’s "number" is\n007';
const identity = {
  wireId: 'ses_1/sub_1',
  name: 'sub_1',
  parentId: 'ses_1',
  rootId: 'ses_1',
  config: undefined,
};

const keys = fc.constantFrom('id', 'type', 'status', 'text', 'owner', 'x', 'input', SECRET, 'é');
const { value: anything } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.constant(SECRET),
    fc.string({ unit: 'binary', maxLength: 3000 }).map((text) => `${SECRET}${text}`),
    fc.integer(),
    fc.constant(new Error(SECRET, { cause: SECRET })),
    fc.array(tie('value'), { maxLength: 40 }),
    fc.dictionary(keys, tie('value'), { maxKeys: 9 }),
    fc.array(fc.tuple(keys, tie('value'))).map((entries) => new Map(entries)),
  ),
}));

const lines: fc.Arbitrary<Line> = fc.oneof(
  fc
    .record({ fields: fc.dictionary(keys, anything), input: anything })
    .map(({ fields, input }): Line => ({
      kind: 'event',
      identity,
      at: 1,
      event: { ...fields, type: 'xstate.init', input },
      sourceId: undefined,
    })),
  fc
    .record({ context: anything, output: anything, error: anything, event: anything })
    .map(({ event, ...snapshot }): Line => ({
      kind: 'snapshot',
      identity,
      at: 1,
      event: { type: 'told', event },
      snapshot: { status: 'done', ...snapshot },
    })),
  fc
    .record({ context: anything, description: anything, params: anything })
    .map(({ context, description, params }): Line => ({
      kind: 'actor',
      identity: {
        ...identity,
        config: {
          id: 'm',
          context,
          meta: context,
          states: { a: { description, entry: [{ type: 'tell', params }] } },
        },
      },
      at: 1,
      snapshot: { status: 'active', context },
    })),
);

test('INSPECT-LINE-1, REDACT-1: keeps a redacted message within its size limit and free of secrets', () => {
  fc.assert(
    fc.property(lines, (line) => {
      const { text } = new Converter(redactWords, MAX_BYTES).convert(line);
      expect(text).not.toContain('Bond');
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MAX_BYTES);
    }),
    { numRuns: 300 },
  );
});

test('INSPECT-LINE-1: keeps an unredacted message within its size limit', () => {
  fc.assert(
    fc.property(lines, (line) => {
      const { text, message } = new Converter(redactNothing, MAX_BYTES).convert(line);
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MAX_BYTES);
      expect(text).toBe(JSON.stringify(message));
    }),
    { numRuns: 300 },
  );
});

test('SHOWN-VALUE-2: marks the parts that it omits', () => {
  const context = { words: Array.from({ length: 5000 }, (_, index) => `word ${index}`) };
  const line = { kind: 'snapshot', identity, at: 1, event: { type: 'x' }, snapshot: { context } };
  const { text } = new Converter(redactNothing, MAX_BYTES).convert(line as Line);
  expect(text).toMatch(/word 0.*word 100.*\[truncated: \d+ more\]/);
  expect(text.length).toBeGreaterThan(MAX_BYTES / 4);
});

test('INSPECT-LINE-2: shows unreadable values as unreadable', () => {
  const context = {
    get text(): string {
      throw new Error(SECRET);
    },
  };
  for (const kind of ['actor', 'snapshot', 'event'] as const) {
    const line = { kind, identity, at: 1, event: { type: 'x', context }, snapshot: { context } };
    const { text } = new Converter(redactWords, MAX_BYTES).convert(line as unknown as Line);
    expect(text).toContain('[unreadable]');
    expect(text).not.toContain('Bond');
  }
});
