// How a session interprets utterances over open questions. The figures are a ratchet: a change to the tables may only
// improve them, and must then raise them here. Never fit a table to one utterance.

import { describe, expect, test } from 'vitest';
import { first } from './people-first.ts';
import { second } from './people-second.ts';
import { judged, tableOf } from './people.ts';

/** By language and kind of question. See `Verdict`. */
type Figures = ReturnType<typeof tableOf>;

const FIRST: Figures = {
  'en choice': { right: 293, lead: 12, missed: 0, wrong: 0 },
  'en approval': { right: 212, lead: 10, missed: 1, wrong: 0 },
  'en free_text': { right: 62, lead: 2, missed: 0, wrong: 0 },
  'de choice': { right: 259, lead: 6, missed: 1, wrong: 0 },
  'de approval': { right: 231, lead: 12, missed: 1, wrong: 1 },
  'de free_text': { right: 68, lead: 0, missed: 0, wrong: 1 },
};

const SECOND: Figures = {
  'en choice': { right: 141, lead: 8, missed: 0, wrong: 0 },
  'en approval': { right: 142, lead: 5, missed: 2, wrong: 2 },
  'en free_text': { right: 54, lead: 2, missed: 0, wrong: 0 },
  'de choice': { right: 107, lead: 0, missed: 0, wrong: 0 },
  'de approval': { right: 120, lead: 4, missed: 0, wrong: 1 },
  'de free_text': { right: 56, lead: 0, missed: 0, wrong: 2 },
};

describe.each([
  ['first', first, FIRST],
  ['second', second, SECOND],
] as const)('the %s corpus', (_, corpus, figures) => {
  const all = judged(corpus);

  test('P3, MATCH-APPROVAL-1: never finds consent in an utterance that does not express it', () => {
    expect(all.filter(({ isFalseConsent }) => isFalseConsent).map(({ said }) => said)).toEqual([]);
  });

  test('understands at least as many utterances correctly as the recorded baseline', () => {
    const misread = all.filter(({ verdict }) => verdict === 'wrong');
    const shown = misread.map(({ asked, said, read }) => `${asked.name}: ${said} → ${read}`);
    expect({ ...tableOf(all), shown }).toEqual({ ...figures, shown: expect.anything() });
  });

  test('labels each utterance once', () => {
    const keys = corpus.flatMap(({ name, said }) =>
      Object.values(said).flatMap((some) => some.map((one) => `${name}: ${one}`)),
    );
    expect(keys.filter((key, index) => keys.indexOf(key) !== index)).toEqual([]);
  });
});
