// `settle_question`, the runtime's tool with which a lead model decides how the user's words settle a subagent's
// question. Also builds the note about questions that the model reads before it answers.
//
// Owns:     the tool as it is offered to a model, and the context for its calls: open questions, recent answers,
//           running work and pending deliveries (work.ts).
// Does not: decide whether a settlement is accepted (questions/settle-question.ts), or execute it (session-effects).
//
// Invariants
//   SETTLE-TOOL-1. If a subagent may ask, a lead model always has the tool. Its description never changes, because a
//       change would invalidate the provider's prompt cache. The context lists everything that the tool can refer to.
//   SETTLE-TOOL-2. The context is not part of the conversation. It is added to the requests for one reply, before the
//       user input to which the reply responds. All calls in a turn read the same context, so that each request starts
//       like the previous one.

import { jsonSchema, type JSONSchema7, type ModelMessage } from 'ai';
import { z } from 'zod';
import { messageOf } from '../../../values/errors.ts';
import { isRecord, propertiesOf } from '../../../values/json.ts';
import { clip } from '../../../values/clip.ts';
import {
  SETTLE_ACTIONS,
  type AskedQuestion,
  type ProposedCall,
  type QuestionRecord,
  type SettleAction,
  type SettleRefusal,
} from '../../contracts/records.ts';
import type { ToolDefinition } from '../../contracts/lead-tool.ts';
import { objectJson, validatedBy } from '../../model/schema.ts';
import { messageText } from '../../conversation/items.ts';
import { ACTIONS, questionsNote } from '../../conversation/prompts.ts';
import type { NoteMarks, NoteWriter } from '../../notes/note-marks.ts';
import type { Note, Quotes } from '../../notes/note.ts';
import type { Host } from '../../runtime/host.ts';
import {
  answeredJustNow,
  openQuestions,
  optionOf,
  putQuestion,
  quotedUtterance,
  speakerOf,
} from '../questions/settle-question.ts';
import type { Settlement, UserInput } from '../questions/user-input.ts';
import type { Speaker } from './speaker.ts';
import type { SessionRecords } from '../state/session-records.ts';
import type { SessionUnit } from '../unit/session-unit.ts';
import { lastingCall } from '../../subagent/ask-user.ts';
import { lastingWords, mayAnswer } from '../../contracts/session-views.ts';
import { defineTool, SETTLE_QUESTION } from './lead-tools.ts';
import {
  MAX_SHORT_CHARS,
  WORDS_LIMIT_MS,
  wordsForLead,
  workNoteOf,
  workNow,
  type WorkSession,
} from './work.ts';

/** The parts of a session that a settlement uses. */
export interface SettlingSession {
  readonly host: Host;
  readonly records: SessionRecords;
  readonly unit: SessionUnit;
}

/** The parts of a session that the context of a settlement shows. */
type ShownSession = SettlingSession & WorkSession;

/** The note (`questionsNote`) explains the actions to a text model. */
const DESCRIPTION = 'Settles an open question; a note says which and how.';
const DESCRIPTION_BY_VOICE = `Settles an open SUBAGENT QUESTION. Actions: ${ACTIONS} always: an approval, for later calls too (text: task or session). revoke: they want to be asked again. explain: returns its details.`;

const schema = z.object({
  questionId: z.string().nullish(),
  action: z.enum(SETTLE_ACTIONS),
  /** Not part of the schema that the model is offered: `text` may be an option's id. */
  optionId: z.string().nullish(),
  text: z.string().nullish(),
  quote: z.string(),
});

type Args = z.infer<typeof schema>;

const aText: JSONSchema7 = { type: 'string' };
const parametersWith = (action: JSONSchema7): JSONSchema7 =>
  objectJson({ questionId: aText, action, text: aText, quote: aText }, ['action', 'quote']);

/** Returns the tool that the runtime runs and offers to a lead model. */
export function settleTool(
  session: SettlingSession & {
    readonly userInput: Pick<UserInput, 'settle' | 'nextWords' | 'changedCall'>;
    readonly lead: Pick<Speaker, 'awaitsWords'>;
    readonly notes: Pick<NoteMarks, 'key'>;
  },
): ToolDefinition {
  const hears = session.lead.awaitsWords !== undefined;
  // The note already tells a text model everything that `explain` would return.
  const actions = SETTLE_ACTIONS.filter((action) => hears || action !== 'explain');
  return defineTool<Args>({
    name: SETTLE_QUESTION,
    description: hears ? DESCRIPTION_BY_VOICE : DESCRIPTION,
    parameters: jsonSchema<Args>(parametersWith({ type: 'string', enum: actions }), {
      validate: validatedBy(schema),
    }),
    // A repeated call is recognised (SETTLE-3).
    idempotent: true,
    detach: { onWords: false },
    execute: async ({ questionId, action, text, quote, ...given }, { callId }) => {
      let answers = session.records.calls.get(callId)?.requestId;
      // A model that hears the user may make the call before the speech is transcribed.
      if (session.lead.awaitsWords) {
        await session.userInput.nextWords(WORDS_LIMIT_MS);
        answers = session.records.utteranceId;
      }
      const utteranceId = quotedUtterance(session.records, answers ?? '', { quote, callId });
      // A voice model reads the marker in the question's note instead of an id.
      const isMark = hears && questionId?.startsWith(`${session.notes.key}-`) === true;
      const requestId = (isMark ? null : questionId) ?? meantQuestion(session, action, utteranceId);
      const { questions, answered } = session.records;
      const question = [...questions.values(), ...answered].find(
        (one) => one.requestId === requestId,
      );
      const open = questions.get(requestId);
      let proposed: ProposedCall | null = null;
      if (action === 'change' && open?.kind === 'approval')
        try {
          proposed = await session.userInput.changedCall(open, changedArguments(open, text));
        } catch (error) {
          return settlementRefused('invalid_change', { tell: messageOf(error) });
        }
      if (action === 'always' && open)
        proposed = lastingCall(open, text === 'session' ? 'session' : 'task');
      const optionId = given.optionId ?? (text && question && optionOf(question, text)?.id);
      const settlement = await session.userInput.settle({
        callId,
        utteranceId,
        requestId,
        action,
        quote,
        ...(optionId && { optionId }),
        ...(typeof text === 'string' && { text }),
        ...(proposed && { proposed }),
      });
      if (action !== 'revoke' || settlement.status !== 'refused') return settlement;
      const always = lastingQuotes(session.records, speakerOf(session.records, utteranceId));
      return { ...settlement, ...(always.length > 0 && { always, tell: WHICH }) };
    },
  });
}

/**
 * Returns the arguments for the proposed call. They include the changed arguments, which a model writes as JSON.
 * @throws {SyntaxError}
 */
function changedArguments(question: QuestionRecord, text: string | null | undefined): unknown {
  const changed: unknown = JSON.parse(text ?? '');
  const { input } = putQuestion(question).action ?? {};
  return isRecord(input) && isRecord(changed) ? { ...input, ...changed } : changed;
}

/** Returns the question that a call without an id refers to. */
function meantQuestion(
  { records, unit, host }: SettlingSession,
  action: SettleAction,
  utteranceId: string,
): string {
  const by = speakerOf(records, utteranceId);
  if (action === 'revoke') {
    const [only, ...others] = lastingFor(records, by);
    return only && others.length === 0 ? only.requestId : '';
  }
  const [open] = openQuestions(records, unit, by);
  const [answered] = answeredJustNow(records, host.environment.clock.now(), by);
  const question = action === 'correct' ? (answered ?? open) : (open ?? answered);
  return question?.requestId ?? '';
}

/** Returns the approvals that remain in effect and can be revoked by this identity. */
function lastingFor({ lasting }: SessionRecords, by: string | undefined) {
  return lasting.filter((one) => mayAnswer(one, by));
}

/** Returns the approvals that remain in effect, in the form for a model that may revoke one. */
const lastingQuotes = (records: SessionRecords, by: string | undefined): readonly Quotes[] =>
  lastingFor(records, by).map(({ requestId, subagentName, question, mayDiffer, answer }) => ({
    questionId: requestId,
    subagent: subagentName,
    approved: clip(question, MAX_SHORT_CHARS),
    allows: lastingWords(mayDiffer ? { mayDiffer } : {}, answer.lasts ?? 'task'),
  }));

/**
 * Returns the context of the next response, or null if there is none. If no question is open or recently answered, only
 * a response to the user's input has a context, and only while there is work.
 */
function settleNote(session: ShownSession): Note | null {
  const { records, unit, host } = session;
  const now = host.environment.clock.now();
  const by = speakerOf(records);
  const open = openQuestions(records, unit, by);
  // An approval cannot be corrected, nor can an answer to a subagent that has ended.
  const answered = answeredJustNow(records, now, by).filter(
    ({ kind, subagentId }) =>
      kind !== 'approval' && session.tree.live.some(({ id }) => id === subagentId),
  );
  const always = lastingQuotes(records, by).slice(0, MAX_SHOWN);
  if (open.length + answered.length === 0) return workNoteOf(session, always);
  const state = {
    open: open.map((question) => ({
      ...described(putQuestion(question)),
      ...(question.kind === 'approval' && { isApproval: true }),
    })),
    answered: answered.map((question) => ({
      ...described(question),
      answer: question.answer.userResponse,
    })),
    ...workNow(session, new Set(open.map(({ subagentId }) => subagentId))),
    always,
  };
  return questionsNote(state, session.agents.steers);
}

const STEP_NOTE = 'questions';

/** The maximum number of approvals that a note or a result lists. */
const MAX_SHOWN = 10;

/** The note that all calls in a turn read in addition to the conversation (SETTLE-TOOL-2). */
export interface TurnContext {
  readonly note: Note | null;
  /** The user input before which the note is placed, or null for the latest input. */
  readonly before: string | null;
}

/** Returns the context for a turn that starts now. */
export function turnContext(session: ShownSession): TurnContext {
  const { items } = session.records.conversation;
  const replied = items.findLastIndex(
    (item) => item.role === 'assistant' && item.repliesTo !== null && item.interrupted !== true,
  );
  // The model has already read the input before its last call, and knows about the work that this call started.
  const called = items.findLastIndex(({ role }) => role === 'tool_call');
  const [first = wordsForLead(items.slice(replied + 1))[0]] = wordsForLead(
    items.slice(Math.max(replied, called) + 1),
  );
  return { note: settleNote(session), before: first ? messageText(first) : null };
}

/**
 * Adds a turn's context after everything that the model has already read, and before the user input to which the turn
 * responds.
 */
export function withTurnContext(
  messages: readonly ModelMessage[],
  { note, before }: TurnContext,
  notes: NoteWriter,
): ModelMessage[] {
  if (!note) return [...messages];
  const words = before === null ? null : notes.guard(before);
  const first = messages.findLastIndex(({ role, content }) => role === 'user' && content === words);
  const at = first < 0 ? messages.findLastIndex(({ role }) => role === 'user') : first;
  const told = notes
    .messages(note, STEP_NOTE)
    .map(({ role, text }): ModelMessage => ({ role, content: text }));
  return [...messages.slice(0, Math.max(0, at)), ...told, ...messages.slice(Math.max(0, at))];
}

/** Longer arguments cannot be spoken, so their question has `byButton`. */
const MAX_ARGUMENTS_CHARS = 2_000;

function described({
  requestId,
  subagentName,
  question,
  kind,
  options,
  action,
}: AskedQuestion): Quotes {
  return {
    questionId: requestId,
    subagent: subagentName,
    question,
    ...(action && { arguments: clip(JSON.stringify(action.input), MAX_ARGUMENTS_CHARS) }),
    ...(kind !== 'approval' &&
      options.length > 0 && {
        options: options.map(({ id, label, description }) => ({
          id,
          label,
          ...(description !== undefined && { description }),
        })),
      }),
  };
}

/** Builds the result of the model's call. */
export function settlementOf(
  { records, unit, host }: SettlingSession,
  requestId: string,
  status:
    | 'answered'
    | 'corrected'
    | 'declined'
    | 'cancelled'
    | 'put_off'
    | 'asked_again'
    | 'explain_now',
): Settlement {
  const by = speakerOf(records);
  const open = openQuestions(records, unit, by);
  const explained = [...open, ...answeredJustNow(records, host.environment.clock.now(), by)].find(
    (question) => question.requestId === requestId,
  );
  const stillOpen = open.flatMap((question) =>
    question.requestId === requestId && status !== 'explain_now'
      ? []
      : [{ questionId: question.requestId, short: clip(question.question, MAX_SHORT_CHARS) }],
  );
  return {
    status,
    ...(RESUMES_WORK.has(status) && { tell: NOT_DONE }),
    ...(status === 'explain_now' &&
      explained && { explain: described(explained), tell: ALL_KNOWN }),
    ...(stillOpen.length > 0 && { stillOpen }),
    ...(stillOpen.length > 0 && status !== 'explain_now' && { next: RUNTIME_ASKS }),
  };
}

/** The settlements after which the subagent continues. */
const RESUMES_WORK: ReadonlySet<string> = new Set(['answered', 'corrected', 'declined']);
const CONFIRMED: ReadonlySet<string> = new Set([...RESUMES_WORK, 'read_back_first']);
const NOT_DONE =
  'The subagent has the answer now; nothing is done yet. If you have not confirmed the choice yet, do so in a few words, without calling it done. Reply to anything else that they said.';
const ALL_KNOWN =
  'This, and what you have read before, is all there is: explain it from that. If the user asks for more, say that you do not know it.';
const READS_BACK =
  'The runtime now reads it back to the user, and their yes to that counts. Do not read it back yourself. Say "One moment.", unless you have just said so or the like, and reply to anything else that they said.';
const READ_BACK: Settlement = { status: 'read_back_first', tell: READS_BACK };
/** The fixed results of calls, which do not depend on the open questions. */
export const SETTLED = {
  change: READ_BACK,
  always: READ_BACK,
  revoke: {
    status: 'asked_from_now_on',
    tell: 'Taken back: such calls are asked again. What was done stays done. Say so briefly.',
  },
} as const satisfies Partial<Record<SettleAction, Settlement>>;
const WHICH = 'Nothing was changed. Call again with the questionId of the one that they mean.';
const RUNTIME_ASKS = 'The runtime asks what is still open; you do not.';

const TELL: Readonly<Record<SettleRefusal, string>> = {
  not_said:
    'The user has not said this since your last reply. Quote their exact words, or leave the question open.',
  needs_consent: `Not approved yet. ${READS_BACK} If you misread their words, call again with decline or change.`,
  invalid_change:
    'Only the call of an approval can be changed or always allowed, and not every one. Nothing was changed.',
  unknown_option:
    'No such option. If the user meant one of these, call again with its id; otherwise ask which one they mean.',
  already_settled: 'The question was settled already. Nothing was changed; say nothing of it.',
  too_late:
    'Too late: the task has used the earlier answer already, and nothing was changed. Tell the user.',
  not_open:
    'No such question was open when they spoke. Nothing was changed. The runtime asks what is still open by itself.',
};

/** Builds the result of a refused call. `tell`: replaces the usual instruction; `question`: the intended question. */
export function settlementRefused(
  reason: SettleRefusal,
  {
    tell = TELL[reason],
    question,
  }: { readonly tell?: string; readonly question?: AskedQuestion | undefined } = {},
): Settlement {
  const options = question?.options.map(({ id, label }) => ({ id, label }));
  // The model was right to pass on the approval, so the result is not a refusal.
  if (reason === 'needs_consent') return { status: 'read_back_first', tell };
  return {
    status: 'refused',
    reason,
    tell,
    ...(reason === 'unknown_option' && options && { options }),
  };
}

/**
 * Returns whether this result needs no reply. Either the runtime repeats the question, or the model confirmed the
 * user's answer in the message with the call.
 */
export function needsNoReply(
  name: string,
  output: unknown,
  { repliesUnasked = false }: Pick<Speaker, 'repliesUnasked'> = {},
): boolean {
  if (name !== SETTLE_QUESTION) return false;
  const status = String(propertiesOf(output)['status']);
  return status === 'asked_again' || (repliesUnasked && CONFIRMED.has(status));
}
