// Readers list the scopes of a journal and read the entries after one that they have. Scopes can be forgotten.

import type { Journal, JournalEntry } from '../../actors/ports/journal.ts';
import {
  appendAll,
  check,
  entry,
  expectKept,
  expectSame,
  expectScopes,
  scenesOf,
  type JournalScene,
} from './case.ts';

async function expectAfter(
  journal: Journal,
  last: JournalEntry,
  expected: readonly JournalEntry[],
): Promise<void> {
  const { scope, unit, seq } = last;
  const asked = `readAfter(${JSON.stringify({ scope, unit, seq })})`;
  const found = await journal.readAfter?.({ scope, unit, seq });
  check(
    Array.isArray(found),
    () => `expected ${asked} to find entries, it returned ${JSON.stringify(found)}`,
  );
  expectSame(found, expected, asked);
}

async function expectUnknown(journal: Journal, last: JournalEntry): Promise<void> {
  const { scope, unit, seq } = last;
  const found = await journal.readAfter?.({ scope, unit, seq });
  check(
    found === null,
    () =>
      `expected readAfter of an entry that is not kept to be null, it found ${JSON.stringify(found)}`,
  );
}

const other = (seq: number): JournalEntry => entry(seq, { unit: 'other' });
const beside = (seq: number): JournalEntry => entry(seq, { scope: 'beside' });

export const followingScenes: readonly JournalScene[] = [
  ...scenesOf(['readAfter'], {
    async 'what came after an entry is found, of all units of its scope and in their order, and nothing else'({
      journal,
    }) {
      await appendAll(journal, [beside(1), entry(1), other(1), beside(2), entry(2), other(2)]);
      await expectAfter(journal, entry(1), [other(1), entry(2), other(2)]);
      await expectAfter(journal, other(1), [entry(2), other(2)]);
      await expectAfter(journal, other(2), []);
      await expectAfter(journal, beside(1), [beside(2)]);
      await appendAll(journal, [beside(3), other(3)]);
      await expectAfter(journal, other(2), [other(3)]);
    },
    async 'after an entry that is not there is nothing that can be told'({ journal }) {
      await expectUnknown(journal, entry(1));
      await appendAll(journal, [entry(1), beside(1), beside(2)]);
      await expectUnknown(journal, entry(2));
      await expectUnknown(journal, other(1));
      await expectUnknown(journal, entry(1, { scope: 'nowhere' }));
    },
  }),
  ...scenesOf(['readAfter', 'trim', 'forget'], {
    async 'after an entry that was trimmed or forgotten is nothing that can be told'({ journal }) {
      await appendAll(journal, [entry(1), other(1), entry(2), other(2)]);
      await journal.trim?.(entry(2));
      await expectUnknown(journal, other(1));
      await expectAfter(journal, entry(2), [other(2)]);
      await journal.forget?.('scope');
      await expectUnknown(journal, entry(2));
    },
  }),
  ...scenesOf(['readAfter'], {
    async 'very many entries after an entry are found completely'({ journal }) {
      const entries = Array.from({ length: 4_500 }, (_, at) => entry(at + 1));
      await appendAll(journal, [...entries, beside(1)]);
      await expectAfter(journal, entry(2), entries.slice(2));
    },
  }),
];

export const scopeScenes: readonly JournalScene[] = [
  ...scenesOf(['scopes'], {
    async 'scopes are listed, the one that was written first first'({ journal }) {
      await expectScopes(journal, []);
      const entries = [
        entry(1, { scope: 'b' }),
        entry(1, { scope: 'a' }),
        entry(2, { scope: 'a' }),
        entry(1, { scope: 'a', unit: 'other' }),
        entry(2, { scope: 'b' }),
        entry(3, { scope: 'a' }),
      ];
      await appendAll(journal, entries);
      const at = (seq: number): number => entry(seq).at;
      await expectScopes(journal, [
        { scope: 'b', entries: 2, firstAt: at(1), lastAt: at(2) },
        { scope: 'a', entries: 4, firstAt: at(1), lastAt: at(3) },
      ]);
    },
  }),
  ...scenesOf(['forget'], {
    async 'what is forgotten is gone, and nothing else'({ journal }) {
      const kept = [entry(1, { scope: 'kept' }), entry(2, { scope: 'kept' })];
      await appendAll(journal, [
        entry(1, { scope: 'gone' }),
        ...kept,
        entry(2, { scope: 'gone' }),
        entry(1, { scope: 'gone', unit: 'other' }),
      ]);
      await journal.forget?.('gone');
      await expectKept(journal, [], { scope: 'gone' });
      await expectKept(journal, [], { scope: 'gone', unit: 'unit' });
      await expectKept(journal, kept);
      await appendAll(journal, [entry(3, { scope: 'kept' })]);
      await expectKept(journal, [...kept, entry(3, { scope: 'kept' })]);
    },
    async 'to forget what is not there is no error'({ journal }) {
      await journal.forget?.('nowhere');
      await appendAll(journal, [entry(1)]);
      await journal.forget?.('nowhere');
      await expectKept(journal, [entry(1)]);
    },
  }),
  ...scenesOf(['forget', 'scopes'], {
    async 'a scope that was forgotten can begin anew'({ journal }) {
      await appendAll(journal, [entry(1), entry(2)]);
      await journal.forget?.('scope');
      await expectScopes(journal, []);
      const anew = entry(1, { text: 'a new beginning' });
      await appendAll(journal, [anew]);
      await expectKept(journal, [anew], { scope: 'scope' });
      await expectScopes(journal, [
        { scope: 'scope', entries: 1, firstAt: anew.at, lastAt: anew.at },
      ]);
    },
  }),
];
