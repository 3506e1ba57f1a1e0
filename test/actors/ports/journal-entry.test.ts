import { expect, test } from 'vitest';
import { journalEntryOf } from '../../../src/entries/journal.ts';

const written = {
  scope: 'ses_1',
  unit: 'sub_1',
  seq: 3,
  at: 1_700_000_000_000,
  actor: 'subagent',
  definitionVersion: 3,
  event: { type: 'model.responded' },
};

test('JOURNAL-ENTRY-1: returns an entry that contains the parsed event object itself', () => {
  const event = JSON.parse('{"type":"x","__proto__":{"a":1},"constructor":2}') as { type: string };
  const entry = journalEntryOf({ ...written, event }, 'the file');
  expect(entry).toEqual({ ...written, event });
  expect(entry.event).toBe(event);
});

test.each([
  ['no object', null],
  ['a text', 'entry'],
  ['nothing in it', {}],
  ['no scope', { ...written, scope: undefined }],
  ['a number for a name', { ...written, unit: 7 }],
  ['a seq below 1', { ...written, seq: 0 }],
  ['half a seq', { ...written, seq: 1.5 }],
  ['a text for a time', { ...written, at: 'now' }],
  ['no event', { ...written, event: null }],
  ['an event without a type', { ...written, event: { text: 'hello' } }],
  ['an event of a type that is no text', { ...written, event: { type: 1 } }],
])('JOURNAL-ENTRY-1: refuses %s, and names its position', (_what, value) => {
  expect(() => journalEntryOf(value, 'the file')).toThrow(
    expect.objectContaining({
      name: 'JournalError',
      code: 'JOURNAL_CORRUPT',
      retryable: false,
      message: expect.stringContaining('the file'),
    }),
  );
});

test('JOURNAL-ENTRY-1: names the known scope, unit and seq in the error', () => {
  const read = (value: unknown) => () => journalEntryOf(value, 'the file');
  expect(read({ ...written, event: {} })).toThrow('entry 3 of sub_1 in ses_1');
  expect(read({ seq: 3, unit: { no: 'name' } })).toThrow('entry 3 of (unnamed) in (unnamed)');
});
