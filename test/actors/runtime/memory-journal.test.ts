// The journal in memory stores entries in order, and no more than configured.

import { describe, expect, test } from 'vitest';
import {
  type JournalEntry,
  type JournalQuery,
  type MemoryJournal,
} from '../../../src/entries/journal.ts';
import { memoryJournal } from '../../../src/index.ts';

const entry = (seq: number, unit = 'unit', scope = 'scope'): JournalEntry => ({
  scope,
  unit,
  seq,
  at: seq,
  actor: 'a',
  definitionVersion: 1,
  event: { type: 'go' },
});

const seqs = (journal: MemoryJournal, query?: JournalQuery): number[] =>
  journal.read(query).map(({ seq }) => seq);

test('keeps the latest entries in order', () => {
  const journal = memoryJournal({ keep: 3 });
  for (let seq = 1; seq <= 20; seq += 1) {
    journal.append(entry(seq));
    const expected = [seq - 2, seq - 1, seq].filter((kept) => kept > 0);
    expect(seqs(journal)).toEqual(expected);
  }
});

test('returns the entries of one unit or of all units in arrays that later appends do not change', () => {
  const journal = memoryJournal({ keep: Infinity });
  for (let seq = 1; seq <= 5000; seq += 1) journal.append(entry(seq, seq % 2 ? 'odd' : 'even'));
  const read = journal.read();
  expect(read).toHaveLength(5000);
  expect(seqs(journal, { unit: 'even' }).slice(0, 3)).toEqual([2, 4, 6]);
  journal.append(entry(5001));
  expect(read).toHaveLength(5000);
});

test('does not keep any entries if the limit is 0', () => {
  const journal = memoryJournal({ keep: 0 });
  for (let seq = 1; seq <= 5; seq += 1) journal.append(entry(seq));
  expect(seqs(journal)).toEqual([]);
});

const cut = expect.objectContaining({
  name: 'JournalError',
  code: 'JOURNAL_CUT',
  retryable: false,
});

describe('a journal that was cut', () => {
  test('MEMORY-JOURNAL-2: refuses to read a scope whose first entries were dropped, but reads a complete one', () => {
    const journal = memoryJournal({ keep: 4 });
    for (let seq = 1; seq <= 3; seq += 1) journal.append(entry(seq, 'unit', 'first'));
    for (let seq = 1; seq <= 3; seq += 1) journal.append(entry(seq, 'unit', 'second'));
    expect(() => journal.read({ scope: 'first' })).toThrow(cut);
    expect(() => journal.read({ scope: 'first', unit: 'unit' })).toThrow(cut);
    expect(seqs(journal, { scope: 'second' })).toEqual([1, 2, 3]);
    // A query for recent entries names no scope.
    expect(seqs(journal)).toEqual([3, 1, 2, 3]);
  });

  test('MEMORY-JOURNAL-2: refuses to read a scope even if only one of its units was cut', () => {
    const journal = memoryJournal({ keep: 2 });
    journal.append(entry(1, 'session'));
    journal.append(entry(1, 'subagent'));
    journal.append(entry(2, 'subagent'));
    expect(() => journal.read({ scope: 'scope' })).toThrow(cut);
    journal.append(entry(3, 'subagent'));
    journal.append(entry(4, 'subagent'));
    journal.append(entry(5, 'subagent'));
    expect(() => journal.read({ scope: 'scope' })).toThrow(cut);
  });

  test('MEMORY-JOURNAL-1: recognises a scope as cut if it continues after all its entries were dropped', () => {
    const journal = memoryJournal({ keep: 2 });
    journal.append(entry(1, 'unit', 'first'));
    for (let seq = 1; seq <= 9; seq += 1) journal.append(entry(seq, 'unit', 'second'));
    expect(seqs(journal, { scope: 'first' })).toEqual([]);
    journal.append(entry(2, 'unit', 'first'));
    expect(() => journal.read({ scope: 'first' })).toThrow(cut);
  });

  test('frees capacity when scopes are deleted', () => {
    const journal = memoryJournal({ keep: 3 });
    for (const scope of ['a', 'b', 'c']) journal.append(entry(1, 'unit', scope));
    journal.forget('b');
    journal.append(entry(2, 'unit', 'a'));
    expect(seqs(journal, { scope: 'a' })).toEqual([1, 2]);
    expect(journal.scopes()).toEqual([
      { scope: 'a', entries: 2, firstAt: 1, lastAt: 2 },
      { scope: 'c', entries: 1, firstAt: 1, lastAt: 1 },
    ]);
  });
});

describe('trimmed entries', () => {
  test('MEMORY-JOURNAL-2: start at the entry that the scope was trimmed to, even if older units continue', () => {
    const journal = memoryJournal({ keep: Infinity });
    journal.append(entry(1, 'session'));
    journal.append(entry(1, 'subagent'));
    journal.append(entry(2, 'session'));
    journal.trim(entry(2, 'session'));
    journal.append(entry(2, 'subagent'));
    journal.append(entry(3, 'session'));
    expect(journal.read({ scope: 'scope' })).toEqual([
      entry(2, 'session'),
      entry(2, 'subagent'),
      entry(3, 'session'),
    ]);
  });

  test('MEMORY-JOURNAL-2: stay complete when entries of other scopes are cut', () => {
    const journal = memoryJournal({ keep: 3 });
    for (let seq = 1; seq <= 3; seq += 1) journal.append(entry(seq, 'unit', 'other'));
    journal.append(entry(1, 'session'));
    journal.append(entry(1, 'subagent'));
    journal.append(entry(2, 'session'));
    journal.trim(entry(2, 'session'));
    journal.append(entry(2, 'subagent'));
    journal.append(entry(3, 'subagent'));
    expect(seqs(journal)).toEqual([2, 2, 3]);
    expect(seqs(journal, { scope: 'scope' })).toEqual([2, 2, 3]);
    expect(seqs(journal, { scope: 'other' })).toEqual([]);
    journal.append(entry(1, 'another'));
    expect(() => journal.read({ scope: 'scope' })).toThrow(cut);
  });

  test('MEMORY-JOURNAL-2: make a scope complete again if they include all lost entries', () => {
    const journal = memoryJournal({ keep: 4 });
    for (let seq = 1; seq <= 9; seq += 1) journal.append(entry(seq));
    expect(() => journal.read({ scope: 'scope' })).toThrow(cut);
    journal.trim(entry(8));
    journal.append(entry(7, 'subagent'));
    expect(seqs(journal, { scope: 'scope' })).toEqual([8, 9, 7]);
    // Enough entries were deleted to free space.
    journal.append(entry(10));
    expect(seqs(journal, { scope: 'scope' })).toEqual([8, 9, 7, 10]);
    journal.append(entry(11));
    expect(() => journal.read({ scope: 'scope' })).toThrow(cut);
  });

  test('stay the same when the scope is trimmed to an entry that has already been cut', () => {
    const journal = memoryJournal({ keep: 2 });
    for (let seq = 1; seq <= 9; seq += 1) journal.append(entry(seq));
    expect(seqs(journal)).toEqual([8, 9]);
    journal.trim(entry(7));
    expect(seqs(journal)).toEqual([8, 9]);
    expect(() => journal.read({ scope: 'scope' })).toThrow(cut);
  });

  test('MEMORY-JOURNAL-1: count as cut if the scope continues after all its entries were dropped', () => {
    const journal = memoryJournal({ keep: 1 });
    journal.append(entry(1));
    journal.append(entry(2));
    journal.trim(entry(2));
    for (let seq = 1; seq <= 3; seq += 1) journal.append(entry(seq, 'unit', 'other'));
    expect(seqs(journal, { scope: 'scope' })).toEqual([]);
    journal.append(entry(3));
    expect(() => journal.read({ scope: 'scope' })).toThrow(cut);
  });
});

test.each([-1, Number.NaN, 'all' as never])('refuses to keep %s', (keep) => {
  expect(() => memoryJournal({ keep })).toThrow(
    expect.objectContaining({
      name: 'ConfigurationError',
      message: expect.stringContaining('keep'),
    }),
  );
});
