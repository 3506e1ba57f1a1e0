// Entries in older versions of an invented definition.

import { expect, test } from 'vitest';
import type { JournalEntry } from '../../../src/entries/journal.ts';
import { upcast, type Upcasters } from '../../../src/actors/runtime/upcasters.ts';

interface Poured {
  readonly type: string;
  readonly cups?: number;
  readonly litres?: number;
}

const entry = (definitionVersion: number, event: Poured, actor = 'pot'): JournalEntry => ({
  scope: 'kitchen',
  unit: 'tea_1',
  seq: 4,
  at: 1000,
  actor,
  definitionVersion,
  event,
});

/** Version 2 calls the actor a kettle, and version 3 counts litres instead of cups. */
const table: Upcasters = {
  tea: {
    1: ({ event }) => ({ actor: 'kettle', event }),
    2: ({ actor, event }) => {
      const { type, cups = 0 } = event as Poured;
      return { actor, event: { type, litres: cups / 4 } as Poured };
    },
  },
  coffee: { 1: ({ actor }) => ({ actor, event: { type: 'spilt' } }) },
};
const definition = { kind: 'tea', version: 3 };

test('UPCASTERS-1: convert an entry version by version, changing only its actor and event', () => {
  expect(upcast(entry(1, { type: 'poured', cups: 8 }), definition, table)).toEqual(
    entry(3, { type: 'poured', litres: 2 }, 'kettle'),
  );
  expect(upcast(entry(2, { type: 'poured', cups: 8 }, 'jug'), definition, table)).toEqual(
    entry(3, { type: 'poured', litres: 2 }, 'jug'),
  );
});

test('return an entry of the current version unchanged', () => {
  const present = entry(3, { type: 'poured', litres: 1 });
  expect(upcast(present, definition, table)).toBe(present);
});

test.each([
  [4, 3, 'which is older'],
  [1, 5, 'version 3 of `tea`'],
  [0, 3, 'has no upcaster'],
])('refuse version %d when the current version is %d', (written, version, said) => {
  expect(() => upcast(entry(written, { type: 'poured' }), { kind: 'tea', version }, table)).toThrow(
    expect.objectContaining({
      code: 'JOURNAL_VERSION',
      retryable: false,
      message: expect.stringMatching(new RegExp(`Entry 4 of tea_1 in kitchen.*${said}`)),
    }),
  );
});

test('accept only the current version of a kind without upcasters', () => {
  const milk = { kind: 'milk', version: 2 };
  expect(upcast(entry(2, { type: 'poured' }), milk, table)).toEqual(entry(2, { type: 'poured' }));
  expect(() => upcast(entry(1, { type: 'poured' }), milk)).toThrow('milk');
});
