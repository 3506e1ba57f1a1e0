// Reads the user's words and clicks as an answer while a question has the floor, before their entry is written, and
// routes them in the step that applies them, so that an answer and its consequences are one step. Words about another
// subject go to the lead agent, and the question stays open.
//
// Owns:     the reading and the route of the user's words.
// Does not: match phrases (language), or know when a question may be answered (machine).
//
// Invariants
//   USER-WORDS-1. Words have exactly one addressee: the question that has the floor, the lead agent, or none. Words that
//       answer and ask for more ("yes, and then book a table") answer the question, and the lead agent receives the rest.
//   USER-WORDS-2. Words are accepted at once only for a question that was the last thing said to the user when they
//       started (QUESTION-10). Words that started before the question was presented are not about it; words during an
//       earlier presentation, or after other speech, go to the lead agent, which may settle the question with them. The
//       lead agent cannot settle an approval: after its reply to a yes or a no, the exact action is read back.
//   USER-WORDS-3. A yes approves nothing while more than one approval waits: the exact action is read back, and only a
//       yes to the read-back counts. A no need not be read back.
//   USER-WORDS-4. The entry of words contains their reading: later versions of the tables do not change past readings.
//   USER-WORDS-5. A user who asks for time receives it; then the question is asked again.
//   USER-WORDS-6. Words of a user who may not answer the question that has the floor are routed as if there were no
//       question, and the question stays open (WHO-1).
//   USER-WORDS-7. Words that the tables do not settle beyond doubt go to the lead agent, together with the question: it
//       settles the question with a tool of the runtime (settle-question.ts), or acts on another meaning. A lead agent
//       without tools receives them after the question was asked once more. The asker receives only answers to its
//       question: an option, a yes or a no, or words if it asked for words.
//   USER-WORDS-9. Where the tables have no words of the language, a model reads them, if the session has one
//       (words-reader.ts). The words have no addressee until then; further words of the same user are read together with
//       them. The model gives what tables give, with two limits: an option of the question, and a yes that the question
//       holds to QUESTION-12. Without an answer of the model the words are treated as without a model.
//   USER-WORDS-8. Words that postpone a result while it is told ("not now") turn it into a card, and go to the lead
//       agent; they are not an answer, even if a question has the floor.

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
 * The confidence at which a match by sound is decisive. Below it, a recognition error is possible, and the words do not
 * interrupt their question.
 */
const DECISIVE_CONFIDENCE = 0.8;

/** How much time a user receives who asks for it in writing. */
export const HOLD_MS = 10_000;
/** How much time a user receives who asks for it in speech: twice the time after which a question is asked again. */
const SPOKEN_HOLD_MS = 30_000;

/** How often a model may be too late over one question; then its words are treated as without a model. */
const MAX_LATE = 3;

/** The limit of words that are read together, in UTF-16 code units. */
const MAX_READ_CHARS = 2000;

/** The channel of the words, and the other open questions. */
export interface Heard {
  /** Whether the words were typed and are exact; spoken words may be misrecognised. */
  readonly typed: boolean;
  /** The language tag of the words. @defaultValue 'en' */
  readonly language?: string | undefined;
  /** The number of approvals that wait for the user, including this one. @defaultValue 1 */
  readonly approvals?: number;
  /** Whether the lead agent can settle the question with a tool. @defaultValue true */
  readonly leadSettles?: boolean;
  /** Whether other speech followed the question. @defaultValue false */
  readonly isFollowed?: boolean;
  /** Whether a model can read words for which the language has no tables. @defaultValue false */
  readonly hasModel?: boolean;
  /** The model's reading of these words. @defaultValue none: the tables read them */
  readonly read?: ModelReading;
}

/**
 * Reads an utterance as an answer to the question that has the floor. Unclear consent is requested once more, a yes to
 * one of several approvals is read back, and other unclear words go to the lead agent (USER-WORDS-7).
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
    // Without the tool, the user can only repeat the words to the question.
    if (!leadSettles && question.kind !== 'approval') return { to: 'again' };
    return decides ? { ...toLead, readsBack: true } : toLead;
  }
  if (question.kind === 'approval') {
    const consents = reading.to === 'question' && reading.answer.approved === true;
    // An approval that could not be spoken completely must be read before it is given.
    if (consents && question.byButton) return question.askedAgain ? toLead : { to: 'again' };
    if (reading.to === 'always' && question.byButton)
      return question.askedAgain ? toLead : { to: 'again' };
    if (consents && approvals > 1 && !question.readBack) return { to: 'readBack' };
    // The question is asked again in speech once; afterwards, only its buttons and the lead agent can settle it.
    return reading.to === 'again' && question.askedAgain ? toLead : reading;
  }
  // The asker has already returned words: it receives no more that the lead model has not read.
  const isFree = reading.to === 'question' && reading.answer.optionId === undefined;
  if (isFree && question.returned && leadSettles) return toLead;
  if (reading.to !== 'again') return reading;
  // An unclear spoken answer to a question for words is probably not an answer: no word was said, or the microphone
  // picked up the question itself.
  const isForLead = leadSettles && (typed || question.options.length > 0);
  return isForLead || question.timesUnclear > 0 ? toLead : reading;
}

/** Returns the part of a question with which answers are compared. */
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
    /** Whether the approval is not read back as one that lasts yet. */
    readonly isToLast: boolean;
  },
): Reading | 'digression' {
  const asked = answerable(question);
  const match = matchAnswer(asked, text, { language });
  // The lead model can tell a wish or a question from an answer.
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
      // Without a read-back, a yes covers this call only (P3).
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
      // A question for words is answered only by words: "neither" or "I don't mind" name no option.
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

/** Returns what a model has read, in the form of the tables' reading (USER-WORDS-9). */
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

/** Applies the user's words: posts their effect, and returns the consequences within the unit. */
export function userSaid(
  records: SessionRecords,
  unit: SessionUnit,
  said: Said,
): readonly SessionMessage[] {
  const follow = wordsOf(records, unit, said);
  // The wire reports the end of speech; typing counts as speech, and also wakes resting deliveries.
  return said.channel === 'typing'
    ? [{ actor: 'outbox', event: { type: 'utterance.ended' } }, ...follow]
    : follow;
}

/**
 * Adds the reading of the words for the question that has the floor, for their entry (USER-WORDS-4). `leadSettles`:
 * whether the lead agent can settle a question with a tool. `hasModel`: whether a model reads where tables are silent.
 */
export function withReading(
  records: SessionRecords,
  unit: SessionUnit,
  said: Said,
  { leadSettles, hasModel }: Required<Pick<Heard, 'leadSettles' | 'hasModel'>>,
): Said {
  const told = toldWhenSaid(unit, said);
  if (told !== null && putsOff(said.text, said.language)) return { ...said, putsOff: told };
  const question = unit.owner === null ? undefined : records.questions.get(unit.owner);
  if (!question || !mayAnswer(question, said.by)) return said;
  const follows = followedBy(unit, question, said);
  const isFor = isToBeReadBack(unit, question) || follows === 'question';
  const isFollowed = !isFor && follows === 'other';
  if (!isFor && !isFollowed) return said;
  const reading = readingOf(records, unit, question, said, { leadSettles, isFollowed, hasModel });
  if (reading.to !== 'model') return { ...said, reading };
  // "Yes. Go ahead.": the second part of a yes that is about to be read back.
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

/** Returns the words that a model is reading for this question. */
function unreadOf(
  unit: SessionUnit,
  { requestId, unread = [] }: QuestionRecord,
): readonly Unread[] {
  return unit.questions.stateOf(requestId)?.value === 'reading' ? unread : [];
}

/** Adds to a model's reading how its words are treated, and corrects what it gives, for its entry (USER-WORDS-4). */
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
  const heard = { typed, approvals: approvalsIn(records, unit), leadSettles, read };
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

/** The effect of a reading on the question, unless it is an answer. */
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

/** Applies a model's reading: gives the words their addressee. The question's machine draws the other consequences. */
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
  // The question's machine has noted the change.
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

/** Returns the meaning of words for a question, for the lead agent. `isAnswer`: whether an answer counts. */
function meaningOf({ kind }: QuestionRecord, reading: Reading, isAnswer: boolean): WordsToQuestion {
  if (reading.to === 'hold') return 'time';
  if (reading.to === 'repeat') return 'repeat';
  if (reading.to !== 'question' || !isAnswer) return null;
  const { optionId, userResponse } = reading.answer;
  const isApproval = kind === 'approval';
  return { choice: isApproval || optionId === undefined ? null : userResponse, isApproval };
}

/** Passes words to the lead agent, and tells its running tools. `about`: the question that had the floor. */
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
  { text, channel, language }: Said,
  how: Pick<Heard, 'leadSettles' | 'isFollowed' | 'hasModel'>,
): Reading {
  return readUtterance(question, text, {
    typed: channel === 'typing',
    language,
    approvals: approvalsIn(records, unit),
    ...how,
  });
}

function approvalsIn(records: SessionRecords, unit: SessionUnit): number {
  // A question that is over stays in the records until its effects are executed, which a refold does not do.
  return [...records.questions.values()].filter(
    ({ kind, requestId }) =>
      kind === 'approval' && unit.questions.stateOf(requestId)?.done === false,
  ).length;
}

function wordsOf(
  records: SessionRecords,
  unit: SessionUnit,
  said: Said,
): readonly SessionMessage[] {
  const { utteranceId: id, text, channel, startedAt } = said;
  records.userSaid(id, text, startedAt, said.by);
  const utterance: Utterance = { id, text, startedAt, typed: channel === 'typing' };
  const question = unit.owner === null ? undefined : records.questions.get(unit.owner);
  const toLead = (about?: string): readonly SessionMessage[] =>
    leadHears(records, unit, utterance, about);
  if (said.putsOff !== undefined)
    return [
      { actor: 'outbox', event: { type: 'outbox.rest', deliveryId: said.putsOff } },
      ...toLead(),
    ];
  if (!question || !mayAnswer(question, said.by)) return toLead();
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
    // Words that were read until now may have had another meaning with these.
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
  // A no to a changed call is none to the call as asked.
  if (isAnswer && isNoToChange(question, reading)) {
    const asksAgain = dropChange(records, question);
    if (reading.to === 'question' && reading.more) return [asksAgain, ...toLead(requestId)];
    unit.post('user.overheard', { utterance, subagentName, were: null });
    return [asksAgain];
  }
  // The decision is accepted, and the lead agent must reply to the rest of the words.
  if (isAnswer && reading.to === 'question' && reading.more)
    return [{ actor, event: answer }, ...toLead(requestId)];
  const were = meaningOf(question, reading, isAnswer);
  unit.post('user.overheard', { utterance, subagentName, were });
  if (reading.to === 'hold') {
    // Earlier versions gave unlimited time.
    const isTimed = said.reading !== undefined && !awaitsReading;
    return isTimed ? [holding(requestId, said.at + reading.forMs)] : [];
  }
  // "Yes. Go ahead.": the second part of a yes that is about to be read back.
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
  // The words were meant for the question, but cannot be accepted (they are unclear, or interrupted the question).
  return [{ actor, event: { type: 'question.repeat' } }];
}

/** Passes words that a question's asker returns to the lead agent, once. */
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
  // The lead agent answers them now, and may settle the question with them.
  if (said) records.note({ requestId: said.id });
  unit.post('questions.returned', { words, reason, subagentName });
}

/** The receipt of an answer, and its consequences within the unit. */
interface Fate {
  readonly receipt: AnswerReceipt;
  readonly follow: readonly SessionMessage[];
}

/** Returns the result of a button's choice, or of an answer by name; changes nothing. */
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
    // The approval was given: what is left is to take it back.
    if (!mayAnswer(lasting, by)) return refused('not_allowed');
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
    // A card may still show the call as asked while a changed call is read back.
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

/** Applies a button's choice, or an answer by name, and posts the receipt. */
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
 * Returns the delivery, other than a question, that the user was hearing when these words started: it is still told, or
 * the words interrupted it. Null if there is none.
 */
function toldWhenSaid(unit: SessionUnit, { startedAt }: Said): string | null {
  const { snapshot } = unit.outbox;
  const { current, pending } = snapshot.context;
  const told = snapshot.matches({ slot: { speaking: 'playing' } })
    ? current
    : pending.find(({ interruptedAt = -Infinity }) => interruptedAt >= startedAt);
  return told && told.kind !== 'question' ? told.deliveryId : null;
}

/** Tells whether words refuse the changed call that is read back: the call as asked stays open. */
function isNoToChange({ proposed }: QuestionRecord, reading: Reading): boolean {
  return proposed !== undefined && reading.to === 'question' && reading.answer.approved === false;
}

/** Returns the answer of words; a yes approves the changed call that is read back (QUESTION-13). */
function answerTo(question: QuestionRecord, answer: Answer, by: string | undefined): Answer {
  const { changed, lasts } = (answer.approved === true && question.proposed) || {};
  const given = withInput(question, answer, changed);
  return answerBy(lasts ? { ...given, lasts } : given, by);
}

function answerBy(answer: Answer, by: string | undefined): Answer {
  return by === undefined ? answer : { ...answer, by };
}

/** Returns what the question's machine knows about its presentation; null if it is not being presented. */
function presentationOf(
  unit: SessionUnit,
  { requestId }: QuestionRecord,
): QuestionSnapshot['context'] | null {
  const life = unit.questions.stateOf(requestId);
  return life && PUT.has(String(life.value)) ? (life.context as QuestionSnapshot['context']) : null;
}

/** Returns whether the question's action must be read back, and the reading has not started. */
function isToBeReadBack(unit: SessionUnit, question: QuestionRecord): boolean {
  return presentationOf(unit, question)?.readBack === 'due';
}

/** Returns what these words follow: the question, other speech after it, or neither (`wordsFollow`). */
function followedBy(unit: SessionUnit, question: QuestionRecord, { channel, startedAt }: Said) {
  const put = presentationOf(unit, question);
  return put && wordsFollow(put, channel === 'typing' ? null : startedAt);
}

/** Returns whether the question had been presented, at any time, when these words started. */
function wasPutToUser(unit: SessionUnit, { requestId }: QuestionRecord, said: Said): boolean {
  const { channel, startedAt: saidAt } = said;
  const event = { type: 'question.settle', channel, saidAt, decisive: true, answer: null } as const;
  return unit.accepts(`question:${requestId}`, { ...event, at: said.at });
}
