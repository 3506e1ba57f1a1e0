// Tests utterances during an open question in whole sessions, from what the user says or types to its effect. The
// script of the lead model acts on the kind of each utterance as a good model would: if the utterance is an answer, it
// settles the question, and otherwise it replies. The script never reads the words of the utterance.

import { describe, expect, test } from 'vitest';
import type { Script } from '../../src/testing/index.ts';
import { heldOutCases, heldOutQuestions } from '../language/held-out-utterances.ts';
import { first } from '../language/people-first.ts';
import { second } from '../language/people-second.ts';
import { casesOf, questionsOf } from '../language/people.ts';
import {
  cases,
  isFair,
  isHarmful,
  questions,
  type AskedQuestion,
  type Case,
  type Expected,
} from '../language/utterances.ts';
import { calls, say, simpleTool, steps } from '../support/subagent-runs.ts';
import { leadScript, textTalk, type ScriptedSubagent } from '../support/text-talk.ts';
import { voiceTalk } from '../support/voice-talk.ts';

/** All effects of an utterance within 15 s, or an empty list if there are none. */
type Fate = readonly Expected[];

const LIMIT_MS = 15_000;

/** A subagent that asks the question and reports the answer. */
function asker({ kind, question, options, action = '' }: AskedQuestion): ScriptedSubagent {
  if (kind === 'approval') {
    const tools = { [action]: simpleTool(() => 'done', { needsApproval: true }) };
    return { script: steps(calls([action, {}]), say('Done.')), config: { tools } };
  }
  const asked = { question, ...(options.length > 0 && { options }) };
  return {
    script: steps(calls(['ask_user', asked]), ({ results }) => say(JSON.stringify(results[0]))),
    config: { interactive: true },
  };
}

interface Ended {
  readonly text: string;
  readonly toolLedger: readonly { readonly status: string }[];
}

/** Returns the answer that the subagent received, or null if there is none yet. */
function answerIn(outcome: Ended | null | undefined, { kind }: AskedQuestion): Expected | null {
  if (!outcome) return null;
  if (kind === 'approval') {
    const [call] = outcome.toolLedger;
    return { answer: { approved: call?.status === 'ok' } };
  }
  const { userResponse, optionId } = JSON.parse(outcome.text) as {
    readonly userResponse: string;
    readonly optionId?: string;
  };
  return { answer: optionId === undefined ? { text: userResponse } : { optionId } };
}

/**
 * Returns the arguments with which a good model settles an utterance of this kind, or null if the model calls nothing.
 */
function settlementFor({ said: quote, fair }: Case): object | null {
  const [answer] = fair.flatMap((one) => (typeof one === 'string' ? [] : [one.answer]));
  if (!answer) return fair.includes('repeat') ? { action: 'repeat', quote } : null;
  if ('optionId' in answer) return { action: 'answer', optionId: answer.optionId, quote };
  // The model tries to approve and learns that only the user can do that (P3).
  return { action: 'answer', text: 'text' in answer ? quote : 'yes', quote };
}

async function typed(one: Case, asked: AskedQuestion): Promise<Fate> {
  const settlement = settlementFor(one);
  let heard = 0;
  const lead: Script = (prompt) => {
    if (prompt.prompt.at(-1)?.role !== 'user' || prompt.user !== one.said)
      return leadScript(prompt);
    heard += 1;
    return settlement
      ? { calls: [{ name: 'settle_question', input: JSON.stringify(settlement) }] }
      : { text: 'Let me see.' };
  };
  const { environment, parts, state, start, type, close, question, errors } = textTalk({
    lead,
    agent: { language: asked.language },
    subagents: { asker: asker(asked) },
  });
  await start();
  await type('use asker');
  await environment.advance(1000);
  const before = parts.length;
  await type(one.said);
  const isHeld = question()?.heldUntil !== undefined;
  await environment.advance(LIMIT_MS);
  const answer = answerIn(state().subagents[0]?.outcome, asked);
  const isPutAgain = parts.slice(before).some(({ type: kind }) => kind === 'question.asked');
  const fate = fateOf({ answer, isHeld, isPutAgain, heard: heard > 0 });
  expect(errors).toEqual([]);
  await close();
  return fate;
}

async function spoken(one: Case, asked: AskedQuestion): Promise<Fate> {
  const settlement = settlementFor(one);
  const talk = voiceTalk({
    agent: { language: asked.language },
    subagents: { asker: asker(asked) },
  });
  const { environment, model, state, start, use, pause, play, close, question, errors } = talk;
  await start();
  await use('asker');
  const { said, began } = one;
  if (began === 'before_question') model().speechStarted('words');
  await pause();
  if (began === 'before_question') model().speechEnded('words', said);
  else {
    const putting = model().begin(asked.question, 2000);
    const isInto = began === 'over_question';
    await play(putting.itemId, isInto ? 700 : 1000);
    if (!isInto) {
      putting.end();
      await play(putting.itemId, 2000);
    }
    await environment.advance(isInto ? 10 : 1000);
    model().speechStarted('words');
    await environment.settle();
    if (isInto) {
      await play(putting.itemId, 750);
      putting.end('cancelled');
    }
    await environment.advance(500);
    model().speechEnded('words', said);
  }
  await environment.settle();
  const isHeld = question()?.heldUntil !== undefined;
  let [heard, isPutAgain, answered] = [false, false, false];
  for (let passed = 0; passed < LIMIT_MS; passed += 250) {
    const [request] = model().openRequests;
    if (request?.instructions !== undefined) {
      isPutAgain ||= heard || began !== 'before_question';
      await play(model().speak(asked.question));
    } else if (request && !heard) {
      heard = true;
      const input = JSON.stringify(settlement);
      if (settlement) model().call({ callId: 'settle', name: 'settle_question', arguments: input });
      else await play(model().speak('Let me see.'));
    } else if (request) {
      answered = true;
      await play(model().speak('So much for that.'));
    }
    await environment.advance(250);
  }
  const answer = answerIn(state().subagents[0]?.outcome, asked);
  const fate = fateOf({ answer, isHeld, isPutAgain, heard });
  const isSettledInSilence = heard && settlement !== null && !answered && !isPutAgain;
  expect(errors).toEqual([]);
  await close();
  return isSettledInSilence ? [] : fate;
}

function fateOf(found: {
  readonly answer: Expected | null;
  readonly isHeld: boolean;
  readonly isPutAgain: boolean;
  readonly heard: boolean;
}): Fate {
  const { answer, isHeld, isPutAgain, heard } = found;
  if (answer) return [answer];
  if (isHeld) return ['hold'];
  return [
    ...(heard ? (['to_lead'] as const) : []),
    // After both effects, the question is asked again.
    ...(isPutAgain ? (['repeat', 'ask_again'] as const) : []),
  ];
}

const RIGHT = 0.95;

/** Each session plays one out of this many utterances of the large corpora. `people.test.ts` covers all of them. */
const SAMPLED = 29;

describe.each([
  ['the utterances of the tables', cases, questions],
  ['utterances that no table was written for', heldOutCases, heldOutQuestions],
  ['people, first', casesOf(first, SAMPLED), questionsOf(first)],
  ['people, second', casesOf(second, SAMPLED), questionsOf(second)],
] as const)('%s', (_, all, asked) => {
  test.each([
    // Typed text never interrupts a question.
    ['typed', typed, all.filter(({ began }) => began === 'after_heard')],
    ['spoken', spoken, all],
  ] as const)(
    'P3, USER-WORDS-7: cause no harmful outcome if %s',
    async (_channel, play, some) => {
      const fates: { readonly one: Case; readonly fate: Fate }[] = [];
      for (const one of some)
        fates.push({ one, fate: await play(one, asked[one.question] as AskedQuestion) });
      const shown = (found: typeof fates) =>
        found.map(({ one, fate }) => `${one.question}: ${one.said} → ${JSON.stringify(fate)}`);
      const wrong = fates.filter(({ one, fate }) => !fate.some((each) => isFair(each, one.fair)));
      const harmful = fates.filter(({ one, fate }) => fate.some((each) => isHarmful(each, one)));
      const silent = fates.filter(({ fate }) => fate.length === 0);
      expect({ harmful: shown(harmful), silent: shown(silent) }).toEqual({
        harmful: [],
        silent: [],
      });
      const right = 1 - wrong.length / fates.length;
      expect({ right, wrong: shown(wrong) }).toEqual({
        right: expect.toSatisfy((share: number) => share >= RIGHT),
        wrong: shown(wrong),
      });
    },
    240_000,
  );
});
