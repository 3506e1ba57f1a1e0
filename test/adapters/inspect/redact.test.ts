// Which parts of values are shown: by default, nothing that users or models said.

import { describe, expect, test } from 'vitest';
import {
  redactNothing,
  redactWords,
  type Redact,
  shownValue,
} from '../../../src/adapters/inspect/shown-value.ts';

const show = (value: unknown, section = 'context', redact: Redact = redactWords): unknown =>
  shownValue(value, section, redact, { bytesLeft: 100_000 });

describe('REDACT-1: shows text only under a known key and only if it looks like a name', () => {
  test.each([
    ['type', 'outbox.add'],
    ['status', 'timed_out'],
    ['kind', 'question'],
    ['channel', 'speech'],
    ['priority', 'urgent'],
    ['code', 'STEP_LIMIT'],
    ['requestId', 'sub_1.q1'],
    ['callIds', ['call_1', 'call_2']],
    ['owner', 'ses_1/question:q1'],
  ])('shows a name under the key `%s`', (key, value) => {
    expect(show({ [key]: value })).toEqual({ [key]: value });
  });

  test.each([
    ['type', 'a sentence of somebody'],
    ['id', 'x'.repeat(65)],
    ['status', '秘密'],
    ['note', 'word'],
    ['name', 'Moneypenny'],
    // The id would reveal the user's choice.
    ['optionId', 'economy'],
  ])('hides under the key `%s`: %s', (key, value) => {
    expect(show({ [key]: value })).toEqual({ [key]: `[redacted ${value.length} chars]` });
  });

  test('shows numbers, booleans, null and the empty string', () => {
    const value = { count: 3, big: 4n, isOpen: true, nothing: null, text: '', list: [1, false] };
    expect(show(value)).toEqual({ ...value, big: '4' });
  });
});

describe('REDACT-2: shows only the structure of a payload', () => {
  test.each(['args', 'input', 'output', 'content', 'messages', 'result', 'answer', 'data'])(
    'hides the values under `%s`',
    (key) => {
      const payload = { id: 'A1', code: 1234, isPregnant: true, items: ['one', { type: 'x' }] };
      expect(show({ [key]: payload })).toEqual({
        [key]: {
          id: '[redacted 2 chars]',
          code: '[redacted number]',
          isPregnant: '[redacted boolean]',
          items: ['[redacted 3 chars]', { type: '[redacted 1 chars]' }],
        },
      });
    },
  );

  test('treats the whole output of an actor as a payload', () => {
    expect(show({ status: 'won', amount: 7 }, 'output')).toEqual({
      status: '[redacted 3 chars]',
      amount: '[redacted number]',
    });
    expect(show('word', 'output')).toBe('[redacted 4 chars]');
  });
});

test('REDACT-3: hides keys that do not look like names, and keeps them distinct', () => {
  expect(show({ 'likes sushi': 1, 'likes apple': 2, 'sub_1.q1': 3 })).toEqual({
    '[redacted 11 chars] (0)': 1,
    '[redacted 11 chars] (1)': 2,
    'sub_1.q1': 3,
  });
  expect(show({ 'likes sushi': 1 }, 'context', redactNothing)).toEqual({ 'likes sushi': 1 });
});

test('calls a custom redaction function for every leaf, with its path', () => {
  const asked: [unknown, string][] = [];
  const redact: Redact = (leaf, path) => {
    asked.push([leaf, path.join('.')]);
    return path.at(-1) === 'city' ? leaf : redactWords(leaf, path);
  };
  const value = { trip: { city: 'Rome', guests: ['Ann'] }, count: 2 };
  expect(show(value, 'context', redact)).toEqual({
    trip: { city: 'Rome', guests: ['[redacted 3 chars]'] },
    count: 2,
  });
  expect(asked).toEqual([
    ['Rome', 'context.trip.city'],
    ['Ann', 'context.trip.guests'],
    [2, 'context.count'],
  ]);
});

describe('SHOWN-VALUE-1, SHOWN-VALUE-3: values that are not plain data', () => {
  test('shows errors, dates, maps, sets, functions, actors and audio', () => {
    const cause = new Error('the user said so');
    const error = Object.assign(new TypeError('of Ann', { cause }), { code: 'E_ANN' });
    const value = {
      error,
      at: new Date(0),
      invalid: new Date(Number.NaN),
      byId: new Map<unknown, unknown>([
        ['q1', { type: 'a' }],
        [Symbol('s'), 1],
      ]),
      ids: new Set(['q1']),
      run: function run() {},
      actor: Object.assign(Object.create({ getSnapshot() {} }), { id: 'look', sessionId: 'x:1' }),
      sound: new Int16Array(480),
      controller: new AbortController(),
      gone: undefined,
    };
    expect(show(value, 'context', redactNothing)).toMatchObject({
      error: { type: 'TypeError', code: 'E_ANN', message: 'of Ann' },
      at: '1970-01-01T00:00:00.000Z',
      invalid: 'Invalid Date',
      byId: { q1: { type: 'a' }, '[symbol]': 1 },
      ids: ['q1'],
      run: { type: 'run' },
      actor: { xstate$$type: 1, id: 'look' },
      sound: '[Int16Array, 960 bytes]',
      controller: '[AbortController]',
    });
    expect(JSON.stringify(show(value))).not.toMatch(/Ann|said so/);
  });

  test('marks cycles, and cuts values that are nested too deeply', () => {
    const cyclic: { self?: unknown; twice: unknown[] } = { twice: [] };
    cyclic.self = cyclic;
    const same = {};
    cyclic.twice = [same, same];
    expect(show(cyclic)).toEqual({ self: '[circular]', twice: [{}, {}] });
    const deep = JSON.parse('{"a":'.repeat(50) + '1' + '}'.repeat(50)) as unknown;
    expect(JSON.stringify(show(deep))).toContain('[truncated: too deep]');
  });

  test('does not run the getters of an unknown object', () => {
    class Socket {
      get id(): string {
        throw new Error('must not be read');
      }
    }
    expect(show({ socket: new Socket() })).toEqual({ socket: '[Socket]' });
  });
});
