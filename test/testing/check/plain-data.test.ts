import { createActor, fromCallback } from 'xstate';
import { describe, expect, test } from 'vitest';
import { canonical, show, showValue } from '../../../src/testing/check/plain-data.ts';

const text = (value: unknown): string => canonical(value, 'the context of "door"');

describe('canonical', () => {
  test('PLAIN-DATA-1: ignores undefined members and the order of keys', () => {
    expect(text({ a: 1, b: [1, 2] })).toBe(text({ b: [1, 2], a: 1, c: undefined }));
    expect(text(new Set([1, 2]))).toBe(text(new Set([2, 1])));
    expect(text(new Map([['a', 1]]))).toBe(text(new Map([['a', 1]])));
  });

  test('PLAIN-DATA-1: writes different data as different strings', () => {
    const different: unknown[] = [
      null,
      undefined,
      0,
      '0',
      '',
      false,
      [],
      {},
      [1, 2],
      [2, 1],
      [[1], 2],
      Number.NaN,
      Infinity,
      1n,
      'undefined',
      { a: 1 },
      { a: '1' },
      { 'a:1,b': 2 },
      { a: 1, b: 2 },
      new Date(1),
      new Set([1]),
      new Map([[1, 2]]),
      new Error('no'),
      new TypeError('no'),
      new Uint8Array([1, 2]),
    ];
    expect(new Set(different.map(text)).size).toBe(different.length);
  });

  test('writes an actor as its id', () => {
    const idle = fromCallback(() => {});
    const [a, sameName, b] = ['a', 'a', 'b'].map((id) => createActor(idle, { id }));
    expect(text({ child: a })).toBe(text({ child: sameName }));
    expect(text({ child: a })).not.toBe(text({ child: b }));
  });

  test('keeps values that JSON can represent', () => {
    expect(text(new URL('https://a.test/'))).toBe(text(new URL('https://a.test')));
  });

  class Account {
    #balance = 0;
    pay(): number {
      return ++this.#balance;
    }
  }

  test.each([
    ['a function', { on: { click: () => {} } }, '`on.click`'],
    ['a symbol', { kind: Symbol('x') }, '`kind`'],
    ['an instance of Promise', { reply: Promise.resolve() }, '`reply`'],
    ['an instance of Account', [new Account()], '`0`'],
    ['an instance of AbortController', new AbortController(), 'in the context of "door"'],
  ])('PLAIN-DATA-2: %s is refused with its path', (what, value, place) => {
    expect(() => text(value)).toThrow(what);
    expect(() => text(value)).toThrow(place);
    expect(() => text(value)).toThrow(
      expect.objectContaining({ name: 'ConfigurationError', code: 'NOT_PLAIN_DATA' }),
    );
  });

  test('PLAIN-DATA-2: refuses a cycle', () => {
    const ring: { self?: unknown } = {};
    ring.self = ring;
    expect(() => text(ring)).toThrow(/a cycle, or data deeper than 64 levels at `self\.self/);
  });
});

describe('show', () => {
  test('describes a value in readable form and truncates it', () => {
    expect(show({ by: "Ann's", at: 3, list: [1, 'x'], gone: undefined, 'a-b': null })).toBe(
      "{by: 'Ann\\'s', at: 3, list: [1, 'x'], 'a-b': null}",
    );
    expect(show('x'.repeat(50), 10)).toBe(`'${'x'.repeat(8)}…`);
  });

  test('writes a state value as a path', () => {
    expect(showValue('idle')).toBe('idle');
    expect(showValue({ waiting: { queued: 'first' } })).toBe('waiting.queued.first');
    expect(showValue({ ear: 'silent', mouth: { open: 'wide' } })).toBe(
      '{ear: silent, mouth: open.wide}',
    );
  });
});
