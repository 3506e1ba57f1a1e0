// Applies the lead agent's decision about a question: the answer, a correction, the cancellation of the asker, or a
// request to hear the question later or again. user-words.ts interprets the user's words first; this file handles the
// words that its tables leave to the lead agent.
//
// Owns:     whether such a settlement is accepted, and its effects within the unit.
// Does not: interpret the user's words (the lead model does), describe the tool to a model (lead/settle-tool.ts), or
//           reach the subagents (session-effects).
//
// Invariants
//   SETTLE-1. A settlement is based on the user's words. It quotes one of the utterances that the lead agent is
//       answering, which are all utterances since its last complete reply.
//   SETTLE-2. A settlement neither gives nor changes an approval (P3). It may decline the approval with the user's
//       words, or cancel, postpone or repeat it. If the lead agent interprets an utterance as a yes, the action is read
//       back after its reply, and the user's next yes counts. A changed call, and an approval that remains in effect,
//       are read back in the same way. They count only after a yes to the read-back. A no leaves the original call
//       open. An approval that remains in effect is revoked immediately if a user who may give it asks for that.
//   SETTLE-3. An utterance settles a question at most once. If the call is repeated after a crash, it does not settle
//       anything a second time.
//   SETTLE-4. An answer is accepted if the question was presented before the user started to speak, and if the user may
//       answer it (QUESTION-9, WHO-1).
//   SETTLE-5. The entry contains the verdict, so that later versions of the comparison do not change past verdicts.

import { closestPart } from '../../../language/similarity.ts';
import { fold, plainWords } from '../../../language/utterance.ts';
import type { Stamped } from '../../../machines/index.ts';
import { mayAnswer } from '../../contracts/session-views.ts';
import type {
  Answer,
  AnsweredQuestion,
  AskedQuestion,
  ProposedCall,
  QuestionRecord,
  SettleAction,
  SettleRefusal,
} from '../../contracts/records.ts';
import type { EventFor, SessionMessage } from '../../contracts/session-protocol.ts';
import { givenAnswer } from '../../subagent/ask-user.ts';
import type { SessionRecords } from '../state/session-records.ts';
import type { SessionUnit } from '../unit/session-unit.ts';

export type QuestionSettled = Extract<EventFor<'answers'>, { readonly type: 'question.settled' }>;

type Settled = QuestionSettled & Stamped;

/** The time after an answer during which the user may correct it. */
export const CORRECTION_MS = 20_000;

/** The time after which a postponed question is asked again. Until then, it is shown as a card. */
export const LATER_MS = 300_000;

/** The fraction of a quotation that must match the user's words. Models repair misheard words. */
const QUOTED_FRACTION = 0.8;

/**
 * The maximum number of characters compared in a quotation. The time is proportional to the product of both lengths.
 */
const MAX_COMPARED_CHARS = 100;

/** The maximum length of an utterance that is searched. */
const MAX_SEARCHED_CHARS = 4000;

/** The states of a question that has been presented to the user. */
const PUT: ReadonlySet<string> = new Set(['presenting', 'open', 'held', 'reading', 'parked']);

/** Returns the open questions that this identity may answer, starting with the one that has the floor. */
export function openQuestions(
  records: SessionRecords,
  unit: SessionUnit,
  by: string | undefined,
): readonly QuestionRecord[] {
  const { owner } = unit;
  return [...records.questions.values()]
    .filter((question) => {
      const state = unit.questions.stateOf(question.requestId);
      return PUT.has(String(state?.value)) && mayAnswer(question, by);
    })
    .toSorted((a, b) => Number(b.requestId === owner) - Number(a.requestId === owner));
}

/** Returns the answered questions whose answer can still be corrected, latest first. */
export function answeredJustNow(
  { answered }: SessionRecords,
  now: number,
  by: string | undefined,
): readonly AnsweredQuestion[] {
  return answered.filter(
    (question) => now - question.answeredAt <= CORRECTION_MS && mayAnswer(question, by),
  );
}

/** Returns the identity of the speaker. @param utteranceId @defaultValue the last one that the lead agent answers */
export function speakerOf(
  { conversation, utteranceId: last }: SessionRecords,
  utteranceId = last,
): string | undefined {
  const said = utteranceId === null ? undefined : conversation.get(utteranceId);
  return said?.role === 'user' ? said.by : undefined;
}

/**
 * Returns the utterance that a model quotes. It is this utterance or an earlier one that the model answers. If none of
 * them contains the quotation, returns this utterance (SETTLE-1).
 */
export function quotedUtterance(
  { conversation, questions, answered }: SessionRecords,
  utteranceId: string,
  { quote, callId }: Pick<QuestionSettled, 'quote' | 'callId'>,
): string {
  const { items } = conversation;
  // SETTLE-3
  const used = new Set(
    [...questions.values(), ...answered].flatMap(({ settledBy }) =>
      settledBy && settledBy.callId !== callId ? settledBy.utteranceId : [],
    ),
  );
  const last = items.findLastIndex(({ id }) => id === utteranceId);
  for (const item of items.slice(0, last + 1).toReversed()) {
    if (item.role === 'assistant' && item.repliesTo !== null && item.interrupted !== true) break;
    const isFree = item.id === utteranceId || !used.has(item.id);
    if (item.role === 'user' && isFree && isQuoted(quote, item.text)) return item.id;
  }
  return utteranceId;
}

/** Returns the option that a model names by its id or label. */
export function optionOf({ options }: AskedQuestion, given: string) {
  return (
    options.find(({ id }) => id === given) ??
    options.find(({ id, label }) => fold(label) === fold(given) || fold(id) === fold(given))
  );
}

/** Returns the answer in a settlement. Null if the settlement contains none, or if the question has no such option. */
export function answerIn(
  question: AskedQuestion,
  { optionId, text }: Pick<QuestionSettled, 'optionId' | 'text'>,
): Answer | null {
  if (optionId === undefined) return text === undefined ? null : givenAnswer(question, { text });
  const option = optionOf(question, optionId);
  return option ? givenAnswer(question, { optionId: option.id }) : null;
}

/** Returns the user's refusal of the action, in the user's own words or in the model's summary. */
function refusalIn(
  { kind }: AskedQuestion,
  { text, quote }: Pick<QuestionSettled, 'text' | 'quote'>,
): Answer {
  const userResponse = text?.trim() || quote;
  return kind === 'approval' ? { userResponse, approved: false } : { userResponse };
}

/** Adds the verdict to a settlement, to be recorded in its entry (SETTLE-5). */
export function withVerdict(records: SessionRecords, unit: SessionUnit, settled: Settled): Settled {
  const refused = refusalOf(records, unit, settled);
  if (refused === null) return settled;
  const readsBack =
    refused === 'needs_consent' &&
    unit.accepts(`question:${settled.requestId}`, { ...READ_BACK, at: settled.at });
  return { ...settled, refused, ...(readsBack && { readsBack }) };
}

const READ_BACK = { type: 'question.readBack', after: 'reply' } as const;
const NOW = { type: 'question.readBack' } as const;

function refusalOf(
  records: SessionRecords,
  unit: SessionUnit,
  settled: Settled,
): SettleRefusal | null {
  const { requestId, action, callId, utteranceId, at } = settled;
  const said = records.conversation.get(utteranceId);
  if (said?.role !== 'user' || !isQuoted(settled.quote, said.text)) return 'not_said';
  if (action === 'revoke') {
    const lasting = lastingOf(records, requestId);
    return lasting && mayAnswer(lasting, said.by) ? null : 'not_open';
  }
  const open = openQuestions(records, unit, said.by).find((one) => one.requestId === requestId);
  const answered = answeredJustNow(records, at, said.by).find((one) => one.requestId === requestId);
  const question = open ?? answered;
  if (!question) return 'not_open';
  const { settledBy } = question;
  // The process died after the settlement but before the call was answered (SETTLE-3).
  if (settledBy?.callId === callId) return null;
  if (action === 'explain') return null;
  if (settledBy?.utteranceId === utteranceId) return 'already_settled';
  if (changesAnswer(action)) {
    if (question.kind === 'approval') {
      if (open) return 'needs_consent';
      return action === 'correct' ? 'too_late' : 'already_settled';
    }
    if (answerIn(question, settled) === null) return 'unknown_option';
  }
  if (!open) return action === 'correct' ? null : 'already_settled';
  if ((action === 'change' || action === 'always') && !settled.proposed) return 'invalid_change';
  const event = eventOf(records, open, settled);
  const isPossible = event === null || unit.accepts(`question:${requestId}`, { ...event, at });
  return isPossible ? null : 'not_open';
}

/** Returns whether the action gives or changes the answer. A correction to an open question answers it. */
function changesAnswer(action: SettleAction): boolean {
  return action === 'answer' || action === 'correct';
}

/** Returns the event for the question, or null if the question does not change. */
function eventOf(records: SessionRecords, question: QuestionRecord, settled: Settled) {
  switch (settled.action) {
    case 'change':
    case 'always':
      return { ...READ_BACK, change: (question.changes ?? 0) + 1 };
    case 'answer':
    case 'correct':
    case 'decline':
      return answerEvent(records, question, settled);
    case 'later':
      return { type: 'question.hold', remindAt: settled.at + LATER_MS } as const;
    case 'repeat':
      return { type: 'question.repeat' } as const;
    // When the asker ends, its question is withdrawn. Until then the question stays open, even after a crash.
    case 'cancel':
    case 'explain':
    case 'revoke':
      return null;
  }
}

/** SETTLE-4 */
function answerEvent(records: SessionRecords, question: AskedQuestion, settled: QuestionSettled) {
  const said = records.kept.get(settled.utteranceId);
  const answer =
    settled.action === 'decline' ? refusalIn(question, settled) : answerIn(question, settled);
  if (said?.role !== 'user' || !answer) return null;
  const { by } = said;
  return {
    type: 'question.settle',
    channel: records.facts.requestIsTyped ? 'typing' : 'speech',
    saidAt: said.at,
    decisive: answer.approved !== true,
    answer: by === undefined ? answer : { ...answer, by },
  } as const;
}

/** Applies a settlement, and posts its effect. Returns the messages for other actors of the unit. */
export function questionSettled(
  records: SessionRecords,
  unit: SessionUnit,
  settled: Settled,
): readonly SessionMessage[] {
  const { type: _, ...params } = settled;
  unit.post('answers.settled', params);
  const { requestId, action, callId, utteranceId, refused, readsBack } = settled;
  const read = records.questions.get(requestId);
  if (readsBack && read) {
    readBack(records, read);
    return [{ actor: `question:${requestId}`, event: READ_BACK }];
  }
  if (refused !== undefined || action === 'explain') return [];
  if (action === 'revoke') {
    records.endLasting((one) => one.requestId === requestId);
    return [];
  }
  const settledBy = { callId, utteranceId };
  const question = records.questions.get(requestId);
  const state = unit.questions.stateOf(requestId);
  if (!question || !state || state.done) {
    records.note({
      answered: records.answered.map((answered) => {
        const answer = answerIn(answered, settled);
        return answered.requestId === requestId && answer
          ? { ...answered, answer, settledBy }
          : answered;
      }),
    });
    return [];
  }
  if (question.settledBy?.callId === callId) return [];
  records.questions.change(requestId, { settledBy });
  if (settled.proposed) return [propose(records, question, settled.proposed, READ_BACK)];
  const event = eventOf(records, question, settled);
  return event ? [{ actor: `question:${requestId}`, event }] : [];
}

/** Returns the question as it is put to the user, for the original call or for the changed one. */
export function putQuestion(question: QuestionRecord): QuestionRecord {
  const { action, proposed, byButton: _, ...rest } = question;
  if (!proposed || !action) return question;
  const { changed, question: text, byButton } = proposed;
  const words = { question: text, ...(byButton && { byButton }) };
  return { ...rest, ...words, action: { ...action, input: changed.input } };
}

/** Returns the approval with this id that remains in effect, or undefined if there is none. */
export function lastingOf({ lasting }: SessionRecords, requestId: string) {
  return lasting.find((one) => one.requestId === requestId);
}

/**
 * Lets the question read back this call instead of the original call: a changed call, or an approval that remains in
 * effect (SETTLE-2).
 */
export function propose(
  records: SessionRecords,
  question: QuestionRecord,
  proposed: ProposedCall,
  event: { readonly type: 'question.readBack'; readonly after?: 'reply' } = NOW,
): SessionMessage {
  const change = (question.changes ?? 0) + 1;
  records.questions.change(question.requestId, { proposed, changes: change });
  readBack(records, question);
  return { actor: `question:${question.requestId}`, event: { ...event, change } };
}

/**
 * Puts the original call to the user again, instead of the changed one. Returns the message for another actor of the
 * unit.
 */
export function dropChange(records: SessionRecords, question: QuestionRecord): SessionMessage {
  records.questions.change(question.requestId, { proposed: undefined });
  readBack(records, question);
  return {
    actor: `question:${question.requestId}`,
    event: { type: 'question.readBack', change: 0 },
  };
}

/** From now on, the question states the action that a yes approves each time it is presented. */
export function readBack(
  { questions, deliveries }: SessionRecords,
  { requestId }: QuestionRecord,
): void {
  questions.change(requestId, { readBack: true });
  deliveries.delete(requestId);
}

/** Returns whether the text contains the quotation, at least approximately (SETTLE-1). */
function isQuoted(quote: string, text: string): boolean {
  const wanted = plainWords(quote).slice(0, MAX_COMPARED_CHARS);
  const words = plainWords(text).slice(0, MAX_SEARCHED_CHARS);
  if (wanted === '') return false;
  if (` ${words} `.includes(` ${wanted} `)) return true;
  // A speech recogniser may split one word or join two.
  return closestPart(wanted, words) >= QUOTED_FRACTION;
}
