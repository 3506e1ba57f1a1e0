// While a question has the floor, interprets the user's words and clicks as an answer before their entry is written.
// The step that applies them also routes them, so that the answer and its effects are committed together. Input about
// another subject goes to the lead agent, and the question stays open.
//
// Owns:     the interpretation of the user's words, and the choice of their addressee.
// Does not: match phrases (language does), or decide when a question may be answered (its machine does).
//
// Invariants
//   USER-WORDS-1. An utterance has at most one addressee: the question that has the floor, the lead agent, or none. If
//       an utterance answers and asks for more ("yes, and then book a table"), the question receives the answer and the
//       lead agent receives the rest.
//   USER-WORDS-2. An answer is accepted immediately only if its question was the last thing said to the user before
//       they started to speak (QUESTION-10). An utterance that started before the question was presented is never
//       treated as its answer. If an utterance started during an earlier presentation, or after other speech, it goes
//       to the lead agent. The lead agent may use it to settle the question. The lead agent cannot settle an approval.
//       When it has replied to a yes or a no, the exact action is read back to the user.
//   USER-WORDS-3. While more than one approval is waiting, a yes approves nothing. The exact action is read back first,
//       and only a yes to the read-back counts. A no does not need to be read back.
//   USER-WORDS-4. The entry of an utterance contains its interpretation, so that later versions of the tables do not
//       change past interpretations.
//   USER-WORDS-5. A user who asks for more time gets it, and the question is asked again later.
//   USER-WORDS-6. If a user may not answer the question that has the floor, their utterance is routed as if there were
//       no question, and the question stays open (WHO-1). A question beside the floor receives only utterances of a
//       user who may answer it, and only while no question that this user may answer has the floor. Until the question
//       has been presented, a yes or a no is read back first.
//   USER-WORDS-7. An utterance that the tables cannot interpret with certainty goes to the lead agent together with the
//       question. The lead agent settles the question with one of the runtime's tools (settle-question.ts), or responds
//       if the utterance means something else. A lead agent without tools receives the utterance after the question has
//       been asked once more. The asker receives only answers to its question: an option, a yes or a no, or text if it
//       asked for text.
//   USER-WORDS-9. If the tables do not cover the language, a model interprets the utterance, provided that the session
//       has one (words-reader.ts). Until the model has answered, the utterance has no addressee. Further utterances by
//       the same user are interpreted together with it. The model returns the same form as the tables, with two
//       restrictions: it may only choose the question's own options, and its yes must satisfy QUESTION-12. If the model
//       does not answer, the utterance is handled as in a session without a model.
//   USER-WORDS-8. If the user postpones a result during its delivery ("not now"), the result becomes a card, and the
//       utterance goes to the lead agent. Such an utterance is never an answer, even if a question has the floor.

import { areTablesSilent, matchAnswer } from '../../../language/match-answer.ts';
import { putsOff } from '../../../language/side-talk.ts';
import type { AnswerableQuestion } from '../../../language/match.ts';
import type {
  Answer,
  ModelReading,
  QuestionRecord,
  Reading,
  Unread,
  Utterance,
  WordsToQuestion,
} from '../../contracts/records.ts';
import type { QuestionSnapshot, Stamped } from '../../../machines/index.ts';
import { readingDoes, wordsFollow } from '../../../machines/question-machine.ts';
import type { EventFor, SessionMessage } from '../../contracts/session-protocol.ts';
import type { SessionRecords } from '../state/session-records.ts';
import type { SessionUnit } from '../unit/session-unit.ts';
import { mayAnswer, withoutArguments } from '../../contracts/session-views.ts';
import { givenAnswer, lastingCall, withInput } from '../../subagent/ask-user.ts';
import type { AnswerReceipt } from '../../contracts/session-views.ts';
import { dropChange, lastingOf, propose, putQuestion, readBack } from './settle-question.ts';

/**
 * The minimum confidence at which a match by sound is accepted as certain. Below it, the match may be a recognition
 * error, and the utterance does not interrupt the question.
 */
const DECISIVE_CONFIDENCE = 0.8;

/** The additional time that a question waits if the user types that they need more time. */
export const HOLD_MS = 10_000;
/**
 * The additional time that a question waits if the user says that they need more time: twice the time after which a
 * question is asked again.
 */
const SPOKEN_HOLD_MS = 30_000;

/**
 * The maximum number of times that a model's interpretation may arrive too late for one question. After that, the
 * session acts as if it had no model.
 */
const MAX_LATE = 3;

/** The length limit for utterances that are interpreted together, in UTF-16 code units. */
const MAX_READ_CHARS = 2000;

/** The channel of the utterance, and the other open questions. */
export interface Heard {
  /** Whether the text was typed and is therefore exact. Speech may be misrecognised. */
  readonly typed: boolean;
  /** The language tag of the utterance. @defaultValue 'en' */
  readonly language?: string | undefined;
  /** The number of approvals that are waiting for the user, including this one. @defaultValue 1 */
  readonly approvals?: number;
  /** Whether the lead agent can settle the question with a tool. @defaultValue true */
  readonly leadSettles?: boolean;
  /** Whether the user heard other speech after the question. @defaultValue false */
  readonly isFollowed?: boolean;
  /** Whether a model can interpret an utterance in a language that has no tables. @defaultValue false */
  readonly hasModel?: boolean;
  /** The model's interpretation of this utterance. @defaultValue none: the tables interpret the utterance */
  readonly read?: ModelReading;
}

/**
 * Interprets an utterance as an answer to the question that has the floor. If a yes is unclear, the question is asked
 * once more. A yes to one of several approvals is read back, and other unclear utterances go to the lead agent
 * (USER-WORDS-7).
 */
export function readUtterance(
  asked: QuestionRecord,
  text: string,
  { hasModel = false, read, ...heard }: Heard,
): Reading {
  const question = putQuestion(asked);
  const { typed, language = 'en', approvals = 1, leadSettles = true, isFollowed = false } = heard;
  const { timesLate = 0 } = question;
  if (hasModel && !isFollowed && timesLate < MAX_LATE)
    if (areTablesSilent(answerable(question), text, language))
      return { to: 'model', otherwise: readUtterance(question, text, heard) };
  const reading = read
    ? readByModel(asked, text, read, typed)
    : readOnce(question, text, { typed, language, leadSettles, isToLast: !asked.proposed?.lasts });
  const toLead = { to: 'lead', about: question.requestId } as const;
  if (reading === 'digression') return toLead;
  if (isFollowed) {
    const decides =
      question.kind === 'approval' && (reading.to === 'question' || reading.to === 'always');
    // Without the tool, the user has to answer the question again.
    if (!leadSettles && question.kind !== 'approval') return { to: 'again' };
    return decides ? { ...toLead, readsBack: true } : toLead;
  }
  if (question.kind === 'approval') {
    const consents = reading.to === 'question' && reading.answer.approved === true;
    // If an approval is too long to speak in full, the user must read it before approving.
    if (consents && question.byButton) return question.askedAgain ? toLead : { to: 'again' };
    if (reading.to === 'always' && question.byButton)
      return question.askedAgain ? toLead : { to: 'again' };
    if (consents && approvals > 1 && !question.readBack) return { to: 'readBack' };
    // The question is asked again once by voice. After that, only its buttons and the lead agent can settle it.
    return reading.to === 'again' && question.askedAgain ? toLead : reading;
  }
  // The asker has already returned an utterance, so the lead model must read further utterances first.
  const isFree = reading.to === 'question' && reading.answer.optionId === undefined;
  if (isFree && question.returned && leadSettles) return toLead;
  if (reading.to !== 'again') return reading;
  // An unclear spoken answer to an open-ended question is probably not an answer: the user may have said nothing, or
  // the microphone may have picked up the question itself.
  const isForLead = leadSettles && (typed || question.options.length > 0);
  return isForLead || question.timesUnclear > 0 ? toLead : reading;
}

/** Returns the part of a question against which an answer is matched. */
export function answerable(record: QuestionRecord): AnswerableQuestion {
  const { kind, options, action } = record;
  const asksForWords = options.length === 0 ? 'free_text' : 'choice';
  return {
    kind: kind === 'approval' ? 'approval' : asksForWords,
    options,
    action: action?.toolName ?? '',
    question: withoutArguments(record),
  };
}

function readOnce(
  question: QuestionRecord,
  text: string,
  {
    typed,
    language,
    leadSettles,
    isToLast,
  }: {
    readonly typed: boolean;
    readonly language: string;
    readonly leadSettles: boolean;
    /** Whether the approval would cover later calls and has not been read back as such. */
    readonly isToLast: boolean;
  },
): Reading | 'digression' {
  const asked = answerable(question);
  const match = matchAnswer(asked, text, { language });
  // The lead model can tell a request or a question from an answer.
  if (leadSettles && 'doubt' in match) return 'digression';
  switch (match.kind) {
    case 'option':
      return {
        to: 'question',
        decisive: match.confidence >= DECISIVE_CONFIDENCE,
        answer: { userResponse: match.label, optionId: match.optionId },
      };
    case 'approved':
    case 'denied':
      // Without a read-back, a yes approves only this call (P3).
      if (match.kind === 'approved' && match.always && isToLast && question.mayDiffer !== false)
        return { to: 'always' };
      return {
        to: 'question',
        decisive: false,
        answer: { userResponse: text, approved: match.kind === 'approved' },
        ...(match.more && { more: true }),
      };
    case 'none':
      return { to: 'question', decisive: false, answer: { userResponse: match.text } };
    case 'free_text':
      // An open-ended question is answered only with free text: "neither" or "I don't mind" does not name an option.
      return asked.kind === 'free_text'
        ? { to: 'question', decisive: !match.doubt, answer: { userResponse: match.text } }
        : { to: 'again' };
    case 'hold':
      return { to: 'hold', forMs: typed ? HOLD_MS : SPOKEN_HOLD_MS };
    case 'repeat':
      return { to: 'repeat' };
    case 'digression':
      return 'digression';
    case 'described':
    case 'ambiguous':
    case 'unclear':
      return { to: 'again' };
  }
}

/** Returns a model's interpretation in the same form as one from the tables (USER-WORDS-9). */
function readByModel(
  question: QuestionRecord,
  text: string,
  { means, optionId }: ModelReading,
  typed: boolean,
): Reading | 'digression' {
  const answered = (answer: Answer): Reading => ({ to: 'question', decisive: false, answer });
  const option = question.options.find(({ id }) => id === optionId);
  if (option) return answered({ userResponse: option.label, optionId: option.id });
  if (means === 'always' && !question.proposed?.lasts && lastingCall(question, 'task'))
    return { to: 'always' };
  if (means === 'yes' || means === 'always' || means === 'no')
    return answered({ userResponse: text, approved: means !== 'no' });
  if (means === 'wait') return { to: 'hold', forMs: typed ? HOLD_MS : SPOKEN_HOLD_MS };
  if (means === 'other') return 'digression';
  return { to: means === 'repeat' ? 'repeat' : 'again' };
}

/** The states of a question that is being presented to the user. */
const PUT: ReadonlySet<string> = new Set(['presenting', 'open', 'held', 'reading']);

type Said = EventFor<'user'> & Stamped;

type Ended = EventFor<'question:'> & { readonly type: 'reading.ended' } & Stamped;

type Given = Extract<EventFor<'answers'>, { readonly type: 'answer.given' }> & Stamped;

/** Applies the user's input: posts its effect, and returns the messages within the unit. */
export function userSaid(
  records: SessionRecords,
  unit: SessionUnit,
  said: Said,
): readonly SessionMessage[] {
  const follow = wordsOf(records, unit, said);
  // The wire protocol reports the end of speech. Typing counts as speech, and also wakes resting deliveries.
  return said.channel === 'typing'
    ? [{ actor: 'outbox', event: { type: 'utterance.ended' } }, ...follow]
    : follow;
}

/**
 * Adds to an utterance its interpretation for the question that has the floor, so that the utterance's entry records it
 * (USER-WORDS-4). `leadSettles`: whether the lead agent can settle a question with a tool. `hasModel`: whether a model
 * interprets languages that the tables do not cover.
 */
export function withReading(
  records: SessionRecords,
  unit: SessionUnit,
  said: Said,
  { leadSettles, hasModel }: Required<Pick<Heard, 'leadSettles' | 'hasModel'>>,
): Said {
  const told = toldWhenSaid(unit, said);
  if (told !== null && putsOff(said.text, said.language)) return { ...said, putsOff: told };
  const question = questionFor(records, unit, said.by);
  if (!question) return said;
  const follows = followedBy(unit, question, said);
  const isFor = isToBeReadBack(unit, question) || follows === 'question';
  const isFollowed = !isFor && follows === 'other';
  if (!isFor && !isFollowed) return said;
  const reading = readingOf(records, unit, question, said, { leadSettles, isFollowed, hasModel });
  if (reading.to !== 'model') return { ...said, reading };
  // "Yes. Go ahead.": the second part of a yes whose action is about to be read back.
  if (isToBeReadBack(unit, question)) return { ...said, reading: { to: 'again' } };
  const before = unreadOf(unit, question);
  const chars = before.reduce((sum, { utterance }) => sum + utterance.text.length, 0);
  const typed = said.channel === 'typing';
  const isJoined = before.every(({ by, utterance }) => by === said.by && utterance.typed === typed);
  const { utteranceId, channel, startedAt, at } = said;
  const begun = { type: 'reading.begun', utteranceId, channel, startedAt, at } as const;
  const canBeRead =
    isJoined &&
    chars + said.text.length <= MAX_READ_CHARS &&
    unit.accepts(`question:${question.requestId}`, begun);
  return { ...said, reading: canBeRead ? reading : reading.otherwise };
}

/** Returns the utterances that a model is interpreting for this question. */
function unreadOf(
  unit: SessionUnit,
  { requestId, unread = [] }: QuestionRecord,
): readonly Unread[] {
  return unit.questions.stateOf(requestId)?.value === 'reading' ? unread : [];
}

/** Adds the addressee to a model's interpretation, so that its entry records both (USER-WORDS-4). */
export function withMeaning(
  records: SessionRecords,
  unit: SessionUnit,
  requestId: string,
  ended: Ended,
  leadSettles: boolean,
): Ended {
  const question = records.questions.get(requestId);
  const put = question && presentationOf(unit, question);
  const { unread = [] } = question ?? {};
  const last = unread.at(-1);
  if (!question || !put || !last) return ended;
  const { read } = ended;
  const text = unread.map(({ utterance }) => utterance.text).join(' ');
  const { typed } = last.utterance;
  const heard = { typed, approvals: approvalsIn(records, unit, last.by), leadSettles, read };
  const meant = read.means === null ? last.otherwise : readUtterance(question, text, heard);
  const lasts = meant.to === 'always' && { change: (question.changes ?? 0) + 1 };
  const does = readingDoes(put, { ...ended, gives: givenBy(meant), ...lasts });
  if (does === 'readsBack' && lasts)
    return { ...ended, gives: 'consent', ...lasts, reading: meant };
  if (does === 'readsBack') return { ...ended, gives: 'consent', reading: { to: 'readBack' } };
  const isVoid = does === 'asks' && GIVES[meant.to] === undefined;
  const reading: Reading =
    meant.to === 'question'
      ? { ...meant, answer: answerTo(question, meant.answer, last.by) }
      : meant;
  if (isNoToChange(question, reading)) return { ...ended, gives: 'again', reading };
  return {
    ...ended,
    gives: isVoid ? 'again' : givenBy(meant),
    reading: isVoid ? { to: 'again' } : reading,
  };
}

/** The effect of each interpretation on the question, unless the interpretation is an answer. */
const GIVES: Readonly<Partial<Record<Reading['to'], Ended['gives']>>> = {
  again: 'again',
  repeat: 'again',
  hold: 'nothing',
  lead: 'nothing',
};

function givenBy(reading: Reading): Ended['gives'] {
  const isNo = reading.to === 'question' && reading.answer.approved !== true;
  return GIVES[reading.to] ?? (isNo ? 'answer' : 'consent');
}

/**
 * Applies a model's interpretation, which determines the utterance's addressee.
 */
export function wordsRead(
  records: SessionRecords,
  unit: SessionUnit,
  requestId: string,
  { reading, at }: Ended,
): readonly SessionMessage[] {
  const question = records.questions.get(requestId);
  if (!question || !reading) return [];
  const { unread = [], subagentName, timesUnclear } = question;
  const isUnclear = reading.to === 'again';
  records.questions.change(requestId, {
    unread: [],
    ...(isUnclear && { timesUnclear: timesUnclear + 1, askedAgain: true }),
  });
  if (reading.to === 'readBack') readBack(records, question);
  // The question's machine has already recorded the change.
  const always = reading.to === 'always' ? lastingCall(question, 'task') : null;
  if (always) propose(records, question, always);
  const were = meaningOf(question, reading, true);
  if (reading.to === 'lead')
    return unread.flatMap(({ utterance }) => leadHears(records, unit, utterance, reading.about));
  for (const { utterance } of unread)
    unit.post('user.overheard', { utterance, subagentName, were });
  if (isNoToChange(question, reading)) return [dropChange(records, question)];
  return reading.to === 'hold' ? [holding(requestId, at + reading.forMs)] : [];
}

function holding(requestId: string, remindAt: number): SessionMessage {
  return { actor: `question:${requestId}`, event: { type: 'question.hold', remindAt } };
}

/**
 * Returns the meaning of an utterance for a question, in the form that the lead agent receives. `isAnswer`: whether the
 * utterance may be accepted as an answer.
 */
function meaningOf({ kind }: QuestionRecord, reading: Reading, isAnswer: boolean): WordsToQuestion {
  if (reading.to === 'hold') return 'time';
  if (reading.to === 'repeat') return 'repeat';
  if (reading.to !== 'question' || !isAnswer) return null;
  const { optionId, userResponse } = reading.answer;
  const isApproval = kind === 'approval';
  return { choice: isApproval || optionId === undefined ? null : userResponse, isApproval };
}

/** Passes input to the lead agent, and notifies its running tools. `about`: the question that had the floor. */
function leadHears(
  records: SessionRecords,
  unit: SessionUnit,
  utterance: Utterance,
  about?: string,
): readonly SessionMessage[] {
  records.note({ requestId: utterance.id, requestIsTyped: utterance.typed });
  unit.post('user.heardUser', { utterance, ...(about !== undefined && { about }) });
  return unit.calls.ids.map((callId) => ({
    actor: `call:${callId}`,
    event: { type: 'call.talkedOver', saidAt: utterance.startedAt },
  }));
}

function readingOf(
  records: SessionRecords,
  unit: SessionUnit,
  question: QuestionRecord,
  { text, channel, language, by }: Said,
  how: Pick<Heard, 'leadSettles' | 'isFollowed' | 'hasModel'>,
): Reading {
  return readUtterance(question, text, {
    typed: channel === 'typing',
    language,
    approvals: approvalsIn(records, unit, by),
    ...how,
  });
}

/** Counts the approvals that wait for this speaker. Those with the floor, or in its queue, wait for every speaker. */
function approvalsIn(records: SessionRecords, unit: SessionUnit, by: string | undefined): number {
  // A question that is over stays in the records until its effects are executed. A refold does not execute them.
  return [...records.questions.values()].filter(
    (question) =>
      question.kind === 'approval' &&
      (!question.beside || mayAnswer(question, by)) &&
      unit.questions.stateOf(question.requestId)?.done === false,
  ).length;
}

/** Returns the question that this speaker's words may answer: the one with the floor, or the oldest one beside it. */
function questionFor(
  { questions }: SessionRecords,
  { owner, beside }: SessionUnit,
  by: string | undefined,
): QuestionRecord | undefined {
  return [...(owner === null ? [] : [owner]), ...beside]
    .flatMap((id) => questions.get(id) ?? [])
    .find((question) => mayAnswer(question, by));
}

function wordsOf(
  records: SessionRecords,
  unit: SessionUnit,
  said: Said,
): readonly SessionMessage[] {
  const { utteranceId: id, text, channel, startedAt } = said;
  records.userSaid(id, text, startedAt, said.by);
  const utterance: Utterance = { id, text, startedAt, typed: channel === 'typing' };
  const question = questionFor(records, unit, said.by);
  const toLead = (about?: string): readonly SessionMessage[] =>
    leadHears(records, unit, utterance, about);
  if (said.putsOff !== undefined)
    return [
      { actor: 'outbox', event: { type: 'outbox.rest', deliveryId: said.putsOff } },
      ...toLead(),
    ];
  if (!question) return toLead();
  const { requestId, subagentName } = question;
  const actor = `question:${requestId}` as const;
  const awaitsReading = isToBeReadBack(unit, question);
  const follows = followedBy(unit, question, said);
  const isFollowed = said.reading !== undefined && follows === 'other';
  if (!awaitsReading && !isFollowed && follows !== 'question')
    return toLead(wasPutToUser(unit, question, said) ? requestId : undefined);
  const { reading = readingOf(records, unit, question, said, { leadSettles: false }) } = said;
  const before = unreadOf(unit, question);
  if (reading.to === 'model') {
    const { by } = said;
    const read = { utterance, ...(by !== undefined && { by }), otherwise: reading.otherwise };
    records.questions.change(requestId, { unread: [...before, read] });
    const { startedAt: firstAt } = before[0]?.utterance ?? utterance;
    const begun = { type: 'reading.begun', utteranceId: id, channel, startedAt: firstAt } as const;
    return [{ actor, event: begun }];
  }
  if (reading.to === 'lead') {
    // This input may change the meaning of the utterances that were still being interpreted.
    if (before.length > 0)
      return [...toLead(reading.about), { actor, event: { type: 'question.repeat' } }];
    if (reading.readsBack) readBack(records, question);
    return [
      ...toLead(reading.about),
      ...(reading.readsBack
        ? [{ actor, event: { type: 'question.readBack', after: 'reply' } } as const]
        : []),
    ];
  }
  const given = reading.to === 'question' ? answerTo(question, reading.answer, said.by) : null;
  const answer = {
    type: 'question.answer',
    channel,
    utteranceStartedAt: channel === 'speech' ? startedAt : null,
    decisive: reading.to === 'question' && reading.decisive,
    answer: given,
    ...(given?.approved === true ? { change: question.proposed ? question.changes : 0 } : {}),
  } as const;
  const isAnswer =
    !awaitsReading && reading.to === 'question' && unit.accepts(actor, { ...answer, at: said.at });
  // Declining a changed call does not decline the original call.
  if (isAnswer && isNoToChange(question, reading)) {
    const asksAgain = dropChange(records, question);
    if (reading.to === 'question' && reading.more) return [asksAgain, ...toLead(requestId)];
    unit.post('user.overheard', { utterance, subagentName, were: null });
    return [asksAgain];
  }
  // The decision is accepted, and the lead agent must reply to the rest of the utterance.
  if (isAnswer && reading.to === 'question' && reading.more)
    return [{ actor, event: answer }, ...toLead(requestId)];
  const were = meaningOf(question, reading, isAnswer);
  unit.post('user.overheard', { utterance, subagentName, were });
  if (reading.to === 'hold') {
    // Earlier versions gave the user unlimited time.
    const isTimed = said.reading !== undefined && !awaitsReading;
    return isTimed ? [holding(requestId, said.at + reading.forMs)] : [];
  }
  // "Yes. Go ahead.": the second part of a yes whose action is about to be read back.
  if (awaitsReading) return [];
  if (reading.to === 'repeat') return [{ actor, event: { type: 'question.repeat' } }];
  if (reading.to === 'readBack') {
    readBack(records, question);
    return [{ actor, event: { type: 'question.readBack' } }];
  }
  const always = reading.to === 'always' ? lastingCall(question, 'task') : null;
  if (always) return [propose(records, question, always)];
  if (isAnswer) return [{ actor, event: answer }];
  records.questions.change(requestId, {
    timesUnclear: question.timesUnclear + 1,
    ...(reading.to === 'again' && { askedAgain: true }),
  });
  // The utterance was meant for the question but cannot be accepted, because it is unclear or was spoken over the
  // question.
  return [{ actor, event: { type: 'question.repeat' } }];
}

/** If an asker returns the user's words, passes the words to the lead agent, exactly once. */
export function wordsReturned(
  records: SessionRecords,
  unit: SessionUnit,
  { requestId, subagentName, returned }: EventFor<'questions'>,
): void {
  if (!returned || records.questions.has(requestId)) return;
  const { words, reason } = returned;
  const said = records.kept.items.findLast(
    (item) => item.role === 'user' && item.text.trim() === words.trim(),
  );
  // The lead agent now responds to the words, and may use them to settle the question.
  if (said) records.note({ requestId: said.id });
  unit.post('questions.returned', { words, reason, subagentName });
}

/** Returns the receipt for an answer, and the messages within the unit. */
interface Fate {
  readonly receipt: AnswerReceipt;
  readonly follow: readonly SessionMessage[];
}

/** Returns the result that a button or a programmatic answer would have, without changing anything. */
export function fateOfAnswer(records: SessionRecords, unit: SessionUnit, given: Given): Fate {
  const { requestId, by } = given;
  const refused = (reason: Extract<AnswerReceipt, { accepted: false }>['reason']): Fate => ({
    receipt: { accepted: false, reason },
    follow: [],
  });
  const question = records.questions.get(requestId);
  const state = unit.questions.stateOf(requestId);
  const lasting = lastingOf(records, requestId);
  if (lasting) {
    // The approval was already given, so the user can only revoke it.
    if (!mayAnswer(lasting, by)) return refused('not_allowed');
    if (given.onlyOpen) return refused('over');
    if (givenAnswer(lasting, given)?.approved !== false) return refused('over');
    return { receipt: by === undefined ? { accepted: true } : { accepted: true, by }, follow: [] };
  }
  if (!question || !state) return refused('over');
  if (!mayAnswer(question, by)) return refused('not_allowed');
  const answer = givenAnswer(question, given);
  if (!answer) return refused('invalid_option');
  const actor = `question:${requestId}` as const;
  const isChanged = withInput(question, answer, question.proposed?.changed).changed !== undefined;
  const event = {
    type: 'question.answer',
    channel: 'button',
    utteranceStartedAt: null,
    decisive: true,
    answer: answerBy(withInput(question, answer, given.changed), by),
    // A card may still show the original call while a changed call is being read back.
    ...(answer.approved === true && !given.changed && isChanged ? { change: 0 } : {}),
  } as const;
  if (answer.approved === true && !given.changed && isChanged) return refused('changed');
  if (!unit.accepts(actor, { ...event, at: given.at }))
    return refused(state.done ? 'over' : state.value === 'queued' ? 'queued' : 'not_presented');
  return {
    receipt: by === undefined ? { accepted: true } : { accepted: true, by },
    follow: [{ actor, event }],
  };
}

/** Applies the answer from a button or a program, and posts the receipt. */
export function answerGiven(
  records: SessionRecords,
  unit: SessionUnit,
  given: Given,
): readonly SessionMessage[] {
  const { receipt, follow } = fateOfAnswer(records, unit, given);
  const { requestId } = given;
  if (receipt.accepted) records.endLasting((one) => one.requestId === requestId);
  unit.post('answers.receipt', { ticket: given.ticket, receipt });
  return follow;
}

/**
 * Returns the delivery (other than a question) that the user was hearing when this utterance started. The delivery is
 * still in progress, or this utterance interrupted it. Returns null if there is none.
 */
function toldWhenSaid(unit: SessionUnit, { startedAt }: Said): string | null {
  const { snapshot } = unit.outbox;
  const { current, pending } = snapshot.context;
  const told = snapshot.matches({ slot: { speaking: 'playing' } })
    ? current
    : pending.find(({ interruptedAt = -Infinity }) => interruptedAt >= startedAt);
  return told && told.kind !== 'question' ? told.deliveryId : null;
}

/** Returns whether an utterance refuses the changed call that was read back, so that the original call stays open. */
function isNoToChange({ proposed }: QuestionRecord, reading: Reading): boolean {
  return proposed !== undefined && reading.to === 'question' && reading.answer.approved === false;
}

/** Returns the answer that an utterance contains. A yes approves the changed call that was read back (QUESTION-13). */
function answerTo(question: QuestionRecord, answer: Answer, by: string | undefined): Answer {
  const { changed, lasts } = (answer.approved === true && question.proposed) || {};
  const given = withInput(question, answer, changed);
  return answerBy(lasts ? { ...given, lasts } : given, by);
}

function answerBy(answer: Answer, by: string | undefined): Answer {
  return by === undefined ? answer : { ...answer, by };
}

/** Returns how the question is being presented, or null if it is not being presented. */
function presentationOf(
  unit: SessionUnit,
  { requestId }: QuestionRecord,
): QuestionSnapshot['context'] | null {
  const life = unit.questions.stateOf(requestId);
  return life && PUT.has(String(life.value)) ? (life.context as QuestionSnapshot['context']) : null;
}

/** Returns whether the question's action must be read back and the read-back has not started yet. */
function isToBeReadBack(unit: SessionUnit, question: QuestionRecord): boolean {
  return presentationOf(unit, question)?.readBack === 'due';
}

/** Returns whether this utterance follows the question, other speech after it, or neither (`wordsFollow`). */
function followedBy(unit: SessionUnit, question: QuestionRecord, { channel, startedAt }: Said) {
  const put = presentationOf(unit, question);
  const follows = put && wordsFollow(put, channel === 'typing' ? null : startedAt);
  // No screen has reported the question, so the words may be about something else.
  return follows ?? (put && question.beside ? 'other' : null);
}

/** Returns whether the question had been presented at least once when this utterance started. */
function wasPutToUser(unit: SessionUnit, { requestId }: QuestionRecord, said: Said): boolean {
  const { channel, startedAt: saidAt } = said;
  const event = { type: 'question.settle', channel, saidAt, decisive: true, answer: null } as const;
  return unit.accepts(`question:${requestId}`, { ...event, at: said.at });
}
