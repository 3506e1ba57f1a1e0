// What people say over open questions, as a session reads it. The figures are a ratchet: a change of the tables may only
// improve them, and then raises them here. No table may be fitted to one utterance.

import { describe, expect, test } from 'vitest';
import { first } from './people-first.ts';
import { second } from './people-second.ts';
import { judged, tableOf } from './people.ts';

/** By language and kind of question; see `Verdict`. */
type Figures = ReturnType<typeof tableOf>;

const FIRST: Figures = {};

const SECOND: Figures = {};

describe.each([
  ['first', first, FIRST],
  ['second', second, SECOND],
] as const)('the %s corpus', (_, corpus, figures) => {
  const all = judged(corpus);

  test('P3 MATCH-APPROVAL-1: nobody consents who did not', () => {
    expect(all.filter(({ isFalseConsent }) => isFalseConsent).map(({ said }) => said)).toEqual([]);
  });

  test('is read at least as well as before', () => {
    const misread = all.filter(({ verdict }) => verdict === 'wrong');
    const shown = misread.map(({ asked, said, read }) => `${asked.name}: ${said} → ${read}`);
    expect(tableOf(all), shown.join('\n')).toEqual(figures);
  });

  test('no utterance has two labels', () => {
    const keys = corpus.flatMap(({ name, said }) =>
      Object.values(said).flatMap((some) => some.map((one) => `${name}: ${one}`)),
    );
    expect(keys.filter((key, index) => keys.indexOf(key) !== index)).toEqual([]);
  });
});
