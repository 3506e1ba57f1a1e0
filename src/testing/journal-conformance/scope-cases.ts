// Scopes are listed, and forgotten.

import { appendAll, entry, expectKept, expectScopes, type JournalScene } from './case.ts';

export const scopeScenes: readonly JournalScene[] = [
  {
    name: 'scopes are listed, the one that was written first first',
    needs: ['scopes'],
    async play({ journal }) {
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
  },
  {
    name: 'what is forgotten is gone, and nothing else',
    needs: ['forget'],
    async play({ journal }) {
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
  },
  {
    name: 'to forget what is not there is no error',
    needs: ['forget'],
    async play({ journal }) {
      await journal.forget?.('nowhere');
      await appendAll(journal, [entry(1)]);
      await journal.forget?.('nowhere');
      await expectKept(journal, [entry(1)]);
    },
  },
  {
    name: 'a scope that was forgotten can begin anew',
    needs: ['forget', 'scopes'],
    async play({ journal }) {
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
  },
];
