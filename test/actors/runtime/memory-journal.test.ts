// The journal in memory: everything in order, and no more than it was told to keep.

import { expect, test } from 'vitest';
import { memoryJournal, type JournalEntry } from '../../../src/index.ts';

const entry = (seq: number, unit = 'unit'): JournalEntry => ({
  seq,
  at: seq,
  unit,
  actor: 'a',
  definitionVersion: 1,
  event: { type: 'go' },
});

const seqs = async (journal: ReturnType<typeof memoryJournal>, unit?: string) =>
  (await journal.read(unit)).map(({ seq }) => seq);

test('keeps the latest entries, oldest first', async () => {
  const journal = memoryJournal({ keep: 3 });
  for (let seq = 1; seq <= 20; seq += 1) {
    await journal.append(entry(seq));
    const expected = [seq - 2, seq - 1, seq].filter((kept) => kept > 0);
    expect(await seqs(journal)).toEqual(expected);
  }
});

test('reads one unit or all; what was read does not change afterwards', async () => {
  const journal = memoryJournal({ keep: Infinity });
  for (let seq = 1; seq <= 5000; seq += 1)
    void journal.append(entry(seq, seq % 2 ? 'odd' : 'even'));
  const read = await journal.read();
  expect(read).toHaveLength(5000);
  expect((await seqs(journal, 'even')).slice(0, 3)).toEqual([2, 4, 6]);
  void journal.append(entry(5001));
  expect(read).toHaveLength(5000);
});

test('may keep nothing at all', async () => {
  const journal = memoryJournal({ keep: 0 });
  for (let seq = 1; seq <= 5; seq += 1) void journal.append(entry(seq));
  expect(await seqs(journal)).toEqual([]);
});

test.each([-1, Number.NaN, 'all' as never])('refuses to keep %s', (keep) => {
  expect(() => memoryJournal({ keep })).toThrow(
    expect.objectContaining({
      name: 'ConfigurationError',
      message: expect.stringContaining('keep'),
    }),
  );
});
