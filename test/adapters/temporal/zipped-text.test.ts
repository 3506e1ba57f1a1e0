// Short texts: for any text, this version and earlier ones can read what was written.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  unzipped,
  unzippedEntries,
  zipped,
  zippedEntries,
} from '../../../src/adapters/temporal/zipped-text.ts';
import type { JournalEntry } from '../../../src/entries/journal.ts';

const entry: JournalEntry = {
  scope: 'r',
  unit: 'sub_1',
  seq: 3,
  at: 1_795_839_931_662,
  actor: 'subagent',
  definitionVersion: 3,
  event: { type: 'slot.granted' },
};

describe('zipped', () => {
  test('ZIPPED-TEXT-2: restores any text, and never makes the text longer', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 2_000 }), (given) => {
        const text = given.toWellFormed();
        const short = zipped(text);
        expect(unzipped(short)).toBe(text);
        if (!text.startsWith('z1:')) expect(short.length).toBeLessThanOrEqual(text.length);
      }),
    );
  });

  test('ZIPPED-TEXT-2: restores a text that looks compressed', () => {
    for (const text of ['z1:', 'z1:AAAA', `z1:${'x'.repeat(500)}`])
      expect(unzipped(zipped(text))).toBe(text);
  });

  test('ZIPPED-TEXT-1: reads text that the first version compressed', () => {
    const written = 'z1:i0Y4uwjV3YYwhxvDHW5qYWxpaWxoZmZEgRdQitja2lgA';
    expect(unzippedEntries(written)).toEqual([entry]);
  });

  test('halves the size of entries, and restores packed entries unchanged', () => {
    const short = zippedEntries([entry]);
    expect(JSON.stringify(short).length * 2).toBeLessThan(JSON.stringify([entry]).length);
    expect(unzippedEntries(short)).toEqual([entry]);
    const packed = JSON.stringify({ sealed: true, text: 'abc' });
    expect(unzippedEntries(zippedEntries(packed))).toBe(packed);
    expect(unzippedEntries([])).toEqual([]);
  });

  test('reports a modified text as unreadable', () => {
    expect(() => unzipped('z1:!!!!')).toThrow(expect.objectContaining({ code: 'JOB_UNREADABLE' }));
  });
});
