// Applies the input of the user: routes words and clicks in the transaction that applies them, so that an
// answer and its consequences are one step.
//
// Owns:     the route of the user's words to a question or to the lead agent.
// Does not: understand them (user-words), or know when a question may be answered (machine).
//
// Invariants
//   USER-INPUT-1. Words go to exactly one addressee: the question that has the floor, the lead agent, or (a
//       plain "wait") none.
//   USER-INPUT-2. Words that began before the question was put to the user are not about it.
//   USER-INPUT-3. A yes approves nothing while more than one approval waits: the exact action is read back,
//       and only a yes to that counts. A no needs no reading.
//   USER-INPUT-4. The reading of words is in their entry: later versions of the tables change nothing in the
//       past.
//   USER-INPUT-5. A wait is given, and ends: the question is put again after it.
//   USER-INPUT-6. Words of a user who may not answer the question that has the floor go where they would go
//       without that question, which stays open (WHO-1).

import type { Stamped } from '../../../machines/index.ts';
import { mayAnswer } from '../../contracts/identity.ts';
import type { EventFor, SessionMessage } from '../../contracts/session-protocol.ts';
import { givenAnswer } from '../../subagent/ask-user.ts';
import type { AnswerReceipt } from '../../contracts/session-views.ts';
import type { Books } from '../state/books.ts';
import type { Answer, QuestionRecord, Reading, Utterance } from '../../contracts/records.ts';
import type { SessionUnit } from '../unit/session-unit.ts';
import { readUtterance } from './user-words.ts';

/** States of a question that is put to the user. */
const PUT: ReadonlySet<string> = new Set(['presenting', 'open', 'held']);

type Said = EventFor<'user'> & Stamped;
type Given = EventFor<'answers'> & Stamped;

/** Applies words of the user: posts their effect, and returns the consequences within the unit. */
export function userSaid(books: Books, unit: SessionUnit, said: Said): readonly SessionMessage[] {
  const follow = wordsOf(books, unit, said);
  // The wire reports the end of speech; typing counts as speech, too, and wakes resting deliveries.
  return said.channel === 'typing'
    ? [{ actor: 'outbox', event: { type: 'utterance.ended' } }, ...follow]
    : follow;
}

/**
 * Adds the reading of the words for the question that has the floor, as their entry keeps it (USER-INPUT-4).
 */
export function withReading(books: Books, unit: SessionUnit, said: Said): Said {
  const question = unit.owner === null ? undefined : books.questions.get(unit.owner);
  const isFor =
    question &&
    mayAnswer(question, said.by) &&
    (isToBeReadBack(unit, question) || isPutToUser(unit, question, said));
  return isFor ? { ...said, reading: readingOf(books, unit, question, said) } : said;
}

function readingOf(
  books: Books,
  unit: SessionUnit,
  question: QuestionRecord,
  { text, channel, language }: Said,
): Reading {
  // A question that is over stays in the books until its effects are carried out; a refold carries out none.
  const approvals = [...books.questions.values()].filter(
    ({ kind, requestId }) =>
      kind === 'approval' && unit.questions.stateOf(requestId)?.done === false,
  ).length;
  return readUtterance(question, text, { typed: channel === 'typing', language, approvals });
}

function wordsOf(books: Books, unit: SessionUnit, said: Said): readonly SessionMessage[] {
  const { utteranceId: id, text, channel, startedAt } = said;
  books.userSaid(id, text, startedAt, said.by);
  const utterance: Utterance = { id, text, startedAt, typed: channel === 'typing' };
  const question = unit.owner === null ? undefined : books.questions.get(unit.owner);
  const toLead = (): readonly SessionMessage[] => {
    books.requestId = id;
    unit.post('user.heardUser', { utterance });
    return [];
  };
  if (!question || !mayAnswer(question, said.by)) return toLead();
  const awaitsReading = isToBeReadBack(unit, question);
  if (!awaitsReading && !isPutToUser(unit, question, said)) return toLead();
  const { reading = readingOf(books, unit, question, said) } = said;
  if (reading.to === 'lead') return toLead();
  const { requestId, subagentName } = question;
  const actor = `question:${requestId}` as const;
  const answer = {
    type: 'question.answer',
    channel,
    utteranceStartedAt: channel === 'speech' ? startedAt : null,
    decisive: reading.to === 'question' && reading.decisive,
    answer: reading.to === 'question' ? answerBy(reading.answer, said.by) : null,
  } as const;
  const isAnswer =
    !awaitsReading && reading.to === 'question' && unit.accepts(actor, { ...answer, at: said.at });
  unit.post('user.overheard', { utterance, subagentName, isAnswer });
  if (reading.to === 'hold') {
    // Earlier versions gave time without an end.
    const isTimed = said.reading !== undefined && !awaitsReading;
    const remindAt = said.at + reading.forMs;
    const held = { type: 'question.hold', remindAt } as const;
    return isTimed ? [{ actor, event: held }] : [];
  }
  // "Yes. Go ahead.": the second half of a yes that is about to be read back.
  if (awaitsReading) return [];
  if (reading.to === 'repeat') return [{ actor, event: { type: 'question.repeat' } }];
  if (reading.to === 'readBack') {
    question.readBack = true;
    books.deliveries.delete(requestId);
    return [{ actor, event: { type: 'question.readBack' } }];
  }
  if (isAnswer) return [{ actor, event: answer }];
  question.timesUnclear += 1;
  if (reading.to === 'again') question.askedAgain = true;
  if (question.kind === 'approval') books.deliveries.delete(requestId);
  // The words were meant for the question, but cannot be accepted (unclear, or they interrupted the
  // question).
  return [{ actor, event: { type: 'question.repeat' } }];
}

/** Applies the choice of a button, or an answer by name, and posts the receipt. */
export function answerGiven(
  books: Books,
  unit: SessionUnit,
  given: Given,
): readonly SessionMessage[] {
  const { requestId, ticket } = given;
  const settle = (receipt: AnswerReceipt): readonly SessionMessage[] => {
    unit.post('answers.receipt', { ticket, receipt });
    return [];
  };
  const question = books.questions.get(requestId);
  const state = unit.questions.stateOf(requestId);
  if (!question || !state) return settle({ accepted: false, reason: 'over' });
  const { by } = given;
  if (!mayAnswer(question, by)) return settle({ accepted: false, reason: 'not_allowed' });
  const answer = givenAnswer(question, given);
  if (!answer) return settle({ accepted: false, reason: 'invalid_option' });
  const actor = `question:${requestId}` as const;
  const event = {
    type: 'question.answer',
    channel: 'button',
    utteranceStartedAt: null,
    decisive: true,
    answer: answerBy(answer, by),
  } as const;
  if (!unit.accepts(actor, { ...event, at: given.at }))
    return settle({
      accepted: false,
      reason: state.done ? 'over' : state.value === 'queued' ? 'queued' : 'not_presented',
    });
  settle(by === undefined ? { accepted: true } : { accepted: true, by });
  return [{ actor, event }];
}

function answerBy(answer: Answer, by: string | undefined): Answer {
  return by === undefined ? answer : { ...answer, by };
}

/** Tells whether its action has to be read back, and that has not begun. */
function isToBeReadBack(unit: SessionUnit, { requestId, readBack }: QuestionRecord): boolean {
  const context = unit.questions.stateOf(requestId)?.context as
    | { readonly playingSince: number | null; readonly shownAt: number | null }
    | undefined;
  return readBack && context?.playingSince === null && context.shownAt === null;
}

/** Tells whether the question had been put to the user when these words began. */
function isPutToUser(unit: SessionUnit, { requestId }: QuestionRecord, said: Said): boolean {
  const life = unit.questions.stateOf(requestId);
  if (!PUT.has(String(life?.value)) || !life) return false;
  const { playingSince, shownAt } = life.context as {
    readonly playingSince: number | null;
    readonly shownAt: number | null;
  };
  if (said.channel === 'typing') return playingSince !== null || shownAt !== null;
  return playingSince !== null && said.startedAt >= playingSince;
}
