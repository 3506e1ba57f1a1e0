// Real utterances while a question is open: the session never does anything harmful, and handles at least a minimum
// number of them correctly.

import { expect, test } from 'vitest';
import { readUtterance } from '../../../src/actors/session/questions/user-words.ts';
import {
  cases,
  isFair,
  isHarmful,
  questions,
  type Case,
  type Expected,
} from '../../language/utterances.ts';
import type { Reading } from '../../../src/actors/contracts/records.ts';

/**
 * Returns what the session does with the utterance; a question that was interrupted does not accept an unclear answer.
 */
function actionOf({ question: name, said, channel, began }: Case): Expected {
  const { language, kind, question, options, action } = questions[name]!;
  if (began === 'before_question') return 'to_lead';
  const reading: Reading = readUtterance(
    {
      requestId: 'q',
      subagentId: 's',
      subagentName: 'sub',
      kind: kind === 'approval' ? 'approval' : 'question',
      question,
      options,
      timeoutMs: 1000,
      askedAt: 0,
      answer: null,
      timesUnclear: 0,
      askedAgain: false,
      readBack: false,
      ...(action && { action: { toolName: action, input: {} } }),
    },
    said,
    { typed: channel === 'typed', language },
  );
  if (reading.to === 'question') {
    if (began === 'over_question' && !reading.decisive) return 'ask_again';
    const { optionId, approved, userResponse: text } = reading.answer;
    if (approved !== undefined) return { answer: { approved } };
    return { answer: optionId === undefined ? { text } : { optionId } };
  }
  if (reading.to === 'lead') return 'to_lead';
  return reading.to === 'repeat' || reading.to === 'hold' ? reading.to : 'ask_again';
}

/** The number of utterances that were handled correctly when this test was written; it must not decrease. */
const RIGHT_AT_LEAST = 152;

test('P3: never interprets an utterance as a harmful action', () => {
  const harmful = cases.filter((one) => isHarmful(actionOf(one), one));
  expect(harmful.map((one) => [one.question, one.said, actionOf(one)])).toEqual([]);
});

test('interprets most utterances as a good assistant would', () => {
  const wrong = cases.filter((one) => !isFair(actionOf(one), one.fair));
  const right = cases.length - wrong.length;
  const shown = wrong.map(({ question, said }) => `${question}: ${said}`);
  expect({ right, shown }).toEqual({ right: expect.toSatisfy((n) => n >= RIGHT_AT_LEAST), shown });
});
