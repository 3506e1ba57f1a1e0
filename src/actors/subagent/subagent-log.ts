// A subagent's history: its messages, the calls of the current step, and the ledger of all its calls. The log is folded
// from the events that the machine accepted. Each event is recorded before the machine decides on the next action.
//
// Owns:     the messages, the results, the ledger, and the token counts.
// Does not: run anything, or decide on the next action.
//
// Invariants
//   SUBAGENT-LOG-1. Before the next model call, every call of a step is answered exactly once, in call order.
//   SUBAGENT-LOG-2. The ledger contains every call that was made, no matter how the subagent ended. It marks calls that
//       were never run.
//   SUBAGENT-LOG-3. The text of a message becomes part of the conversation with the model call that reads it.

import type { ModelMessage } from 'ai';
import { propertiesOf } from '../../values/json.ts';
import type { Stamped, SubagentSnapshot } from '../../machines/index.ts';
import {
  askOf,
  idsOf,
  isCompletion,
  isDelegation,
  isSleep,
  isRunnable,
  type CallState,
} from '../../machines/subagent-setup.ts';
import { inputTimeoutMessage } from '../conversation/prompts.ts';
import { toolMessage, type StepResult, type ToolOutcome } from '../model/tool-results.ts';
import type { ModelCall, ModelResponse } from '../model/model-step.ts';
import { refusalIn } from '../model/refused-answer.ts';
import type { Answer, CallInput } from '../contracts/records.ts';
import { APPROVE_LASTING } from '../contracts/session-views.ts';
import { type ApprovalGrade, type Artifact, type LedgerEntry } from '../contracts/outcome.ts';
import { addUsage, NO_USAGE, tokenCount, type Usage } from '../contracts/usage.ts';
import { NoteMarks, unmarked, unmarkedNotes } from '../notes/note-marks.ts';
import { note, quoted, sentence, type Note } from '../notes/note.ts';
import type { SubagentUnitEvent } from './subagent-events.ts';

const BUDGET_USED_UP = 'not run: the budget is used up';
/** The output of a call that was interrupted by a message. */
export const INTERRUPTED = 'interrupted by a message';

/** The output of such a call if it was already running. */
const CUT_OFF = `${INTERRUPTED}: whether it was done is not known. Find out before you repeat it.`;

/** The answer to a question that was interrupted by a message. */
const UNREAD_FIRST = 'Not run: a message came first. Read it, then decide again.';
const HAND_IN_NOW = note(
  sentence`What you may use is used up. This is your last answer, and you cannot call tools. Hand in what you have so far, and say what is missing, if anything.`,
);
const LAST_STEP = note(
  sentence`This is your last step: no other tool runs after it. Hand in what you have found so far, and say what is missing, if anything.`,
);
const FROM_ABOVE = sentence`A message from the agent that you work for: do what it asks.`;

interface OpenCall extends ModelCall {
  readonly step: number;
  approval?: ApprovalGrade;
  lasting?: true;
  /** The arguments as the model wrote them, if the user approved different ones. */
  askedInput?: unknown;
  /** The identity of the user who gave the answer or the approval. */
  answeredBy?: string;
  readonly calledAt: number;
  isUnderWay?: boolean;
  result: StepResult | null;
}

/** A message to the subagent. */
interface Words {
  readonly messageId: string;
  readonly text: string;
  /** The note that contains the text; undefined if an ancestor sent the message. */
  readonly note?: Note | undefined;
}

/** The model's answer, as the log stores it. */
interface Responded {
  readonly step: number;
  readonly response: ModelResponse;
  /** A message after which the model answers again. */
  readonly retryMessage?: string | undefined;
  /** The result as converted by the output schema. */
  readonly result?: unknown;
  /** The call that submits the result, or null if there is none. */
  readonly completion: string | null;
}

type Answered = Extract<
  SubagentUnitEvent,
  { readonly type: 'question.answered' | 'question.expired' | 'question.withdrawn' }
>;

/** The arguments of the call that submitted the result. */
interface HandedIn {
  /** Plain JSON that matches the output schema, if there is one. */
  readonly result: unknown;
  readonly summary?: string;
  readonly artifacts?: readonly Artifact[];
}

/** The answer to a `request_input` call, as the model reads it. `timedOut` is false for a withdrawn request. */
type InputResult =
  | { readonly responded: true; readonly response: string; readonly timedOut: false }
  | { readonly responded: false; readonly timedOut: boolean };

/** A log as plain JSON. */
export interface LogRecord {
  readonly messages: readonly ModelMessage[];
  /** The open calls without their inputs. The inputs are in the messages that contain the calls. */
  readonly calls: readonly (Omit<OpenCall, 'input'> & Partial<Pick<OpenCall, 'input'>>)[];
  readonly ledger: readonly LedgerEntry[];
  readonly text: string;
  readonly usage: Usage;
  readonly unread: readonly Words[];
  readonly completion: string | null;
  readonly result?: unknown;
  /** The secret in the note markers; absent in records from earlier versions. */
  readonly marks?: string;
  /** The number of messages before the model's first answer; absent until that answer. */
  readonly opening?: number;
}

const empty: LogRecord = {
  messages: [],
  calls: [],
  ledger: [],
  text: '',
  usage: NO_USAGE,
  unread: [],
  completion: null,
};

/** The statuses of calls that may have had effects. */
const HAS_BEGUN: ReadonlySet<LedgerEntry['status']> = new Set(['ok', 'error', 'in_flight']);

export class SubagentLog {
  readonly #messages: ModelMessage[];
  #calls: readonly OpenCall[];
  readonly #ledger: LedgerEntry[];
  #text: string;
  #usage: Usage;
  #unread: readonly Words[];
  #completion: string | null;
  #result: unknown;
  #notes: NoteMarks | null;
  #opening: number | undefined;
  /** The time of the event that is being folded. */
  #at = 0;

  /** Continues from `record`. */
  constructor(record: LogRecord = empty) {
    this.#messages = [...record.messages];
    this.#calls = record.calls.map((call) => ({ input: this.#inputOf(call.callId), ...call }));
    this.#ledger = [...record.ledger];
    this.#text = record.text;
    this.#usage = record.usage;
    this.#unread = record.unread;
    this.#completion = record.completion;
    this.#result = record.result;
    this.#notes = record.marks === undefined ? null : new NoteMarks(record.marks);
    this.#opening = record.opening;
  }

  get record(): LogRecord {
    return {
      messages: [...this.#messages],
      calls: this.#calls.map(({ input, ...call }) =>
        input === this.#inputOf(call.callId) ? call : { ...call, input },
      ),
      ledger: [...this.#ledger],
      text: this.#text,
      usage: this.#usage,
      unread: this.#unread,
      completion: this.#completion,
      result: this.#result,
      ...(this.#notes && { marks: this.#notes.secret }),
      ...(this.#opening === undefined ? {} : { opening: this.#opening }),
    };
  }

  /** The secret in the note markers; undefined before the run is prepared, or if an earlier version started the run. */
  get marks(): string | undefined {
    return this.#notes?.secret;
  }

  /** The messages that the model reads next. */
  get messages(): readonly ModelMessage[] {
    return this.#messages;
  }

  /** The messages that the model had read when it made the current calls. */
  get messagesBeforeCalls(): readonly ModelMessage[] {
    const answer = this.#messages.findLastIndex(({ role }) => role === 'assistant');
    return this.#messages.slice(0, answer);
  }

  /** The number of messages before the model's first answer in this run. */
  get opening(): number {
    return this.#opening ?? this.#messages.length;
  }

  get ledger(): readonly LedgerEntry[] {
    return this.#ledger;
  }

  get usage(): Usage {
    return this.#usage;
  }

  /** The last text that the model wrote. */
  get text(): string {
    return this.#text;
  }

  /** The reason for the last refusal of an answer that did not match the output schema; null if there was none. */
  get refusal(): string | null {
    const told = this.#messages.findLast(
      ({ role, content }) => role === 'user' && refusalIn(content) !== null,
    );
    return told ? refusalIn(told.content) : null;
  }

  /** The result in the last answer, converted by the output schema; undefined if there was none. */
  get result(): unknown {
    return this.#result;
  }

  call(callId: string): ModelCall | undefined {
    return this.#callOf(callId);
  }

  /** Returns the names of the tools that may have started and were called at this time or later. */
  calledSince(at: number): readonly string[] {
    const settled = this.#ledger.filter(({ status }) => HAS_BEGUN.has(status));
    const open = this.#calls.filter(({ result }) => result === null);
    return [...settled, ...open]
      .filter(({ calledAt = 0 }) => calledAt >= at)
      .map(({ toolName }) => toolName);
  }

  /** Returns the identity that approved this call, if the app has verified it. */
  approverOf(callId: string): string | null {
    return this.approvalOf(callId)?.by ?? null;
  }

  /** Returns the user's approval of this call, or null if there is none. */
  approvalOf(callId: string): { readonly by: string | undefined } | null {
    const call = this.#callOf(callId);
    return call?.approval === 'given' ? { by: call.answeredBy } : null;
  }

  /** Returns the text as a note with this run's markers. */
  written(told: Note, id: string): string {
    return (this.#notes ?? unmarkedNotes).text(told, id);
  }

  /** The message that asks the model for its last answer. */
  get handIn(): ModelMessage {
    return { role: 'user', content: this.written(HAND_IN_NOW, 'hand in') };
  }

  /**
   * Returns the prompt of a step. For the last step, the prompt ends with a note saying that it is the last. The log
   * does not store this note.
   */
  prompt(isLast: boolean): readonly ModelMessage[] {
    if (!isLast) return this.#messages;
    const content = (this.#notes ?? unmarkedNotes).text(LAST_STEP, 'last step');
    return [...this.#messages, { role: 'user', content }];
  }

  /** Records the text and the results in an event. `before`: the machine's snapshot before the event. */
  fold(event: SubagentUnitEvent & Stamped, before: SubagentSnapshot): void {
    this.#at = event.at;
    switch (event.type) {
      case 'subagent.prepared':
        this.begin(event.messages ?? [], event.marks);
        break;
      case 'slot.granted':
        // The conversation of earlier runs precedes this run's messages.
        this.#messages.unshift(...(event.history ?? []));
        break;
      case 'model.responded': {
        const { step, response, retryMessage, result, calls } = event;
        const completion = calls.find(isCompletion)?.callId ?? null;
        this.responded({ step, response, retryMessage, result, completion });
        break;
      }
      case 'model.failed':
        if (event.response !== undefined) this.#said(event.response);
        break;
      case 'tool.settled':
        this.settled(event.callId, event.outcome);
        break;
      case 'question.answered':
      case 'question.expired':
      case 'question.withdrawn':
        this.#foldAnswer(event, before);
        break;
      case 'subagent.message': {
        const { messageId, text, note: told } = event;
        this.#unread = [...this.#unread, { messageId, text, ...(told && { note: told }) }];
        if (event.mode === 'interrupt') this.#breakOff(before);
        else if (event.mode === 'steer') this.#woken(before, 'woken_by_a_message');
        break;
      }
      case 'deadline.sleep':
        this.#woken(before, 'slept');
        break;
      case 'budget.exhausted':
        if (event.graceful) this.#beginNothing(before);
        // The budget has refused one of this subagent's model calls, so the current step is its last.
        if (before.matches({ running: 'thinking' }) && event.step === before.context.step)
          this.#messages.push(this.handIn);
        break;
      // These events change only the machine.
      case 'subagent.spawned':
      case 'subagent.unprepared':
      case 'subagent.cancel':
      case 'budget.raised':
      case 'model.retried':
      case 'deadline.preparation':
      case 'deadline.run':
        break;
    }
  }

  #foldAnswer(event: Answered, { context }: SubagentSnapshot): void {
    const { missed, maxInputRetries, calls } = context;
    const asking = askOf(calls);
    if (!asking) return;
    const { callId, kind } = asking;
    if (kind === 'input') this.#inputAnswered(callId, event);
    else if (event.type === 'question.answered') this.answered(callId, event.answer);
    else if (event.type === 'question.expired')
      this.#unanswered(callId, inputTimeoutMessage(missed + 1, maxInputRetries), 'expired');
    else this.#unanswered(callId, `The question was ${event.reason ?? 'withdrawn'}`, 'withdrawn');
  }

  /** Records the end of a sleep, and the current time, because the model has no other way to know it. */
  #woken(before: SubagentSnapshot, status: 'slept' | 'woken_by_a_message'): void {
    const output = { status, now: new Date(this.#at).toISOString() };
    if (before.matches('sleeping'))
      for (const { callId } of before.context.calls.filter(isSleep))
        this.#settle(callId, { callId, output }, 'ok', output);
  }

  /** Interrupts the step because of a message. */
  #breakOff(before: SubagentSnapshot): void {
    const open = before.context.calls.filter(({ settled }) => !settled);
    const begun = open.filter(isUnderWay(before));
    const status = statusIn(before);
    this.#giveUp(idsOf(begun), status, status === 'in_flight' ? CUT_OFF : INTERRUPTED);
    this.#giveUp(idsOf(open.filter((call) => !begun.includes(call))), 'not_run', INTERRUPTED);
  }

  /** Cancels the calls that have not started yet. Running calls continue. */
  #beginNothing(before: SubagentSnapshot): void {
    const open = before.context.calls.filter((call) => !call.settled && !isCompletion(call));
    const begun = open.filter(isUnderWay(before));
    if (!before.matches('running')) this.#giveUp(idsOf(begun), statusIn(before), BUDGET_USED_UP);
    this.#giveUp(idsOf(open.filter((call) => !begun.includes(call))), 'not_run', BUDGET_USED_UP);
  }

  /** Adds the run's first messages. `marks` is the secret in the note markers. */
  begin(messages: readonly ModelMessage[], marks?: string): void {
    if (marks !== undefined) this.#notes = new NoteMarks(marks);
    this.#messages.push(...messages);
  }

  responded({ step, response, retryMessage, result, completion }: Responded): void {
    this.#opening ??= this.#messages.length;
    this.#messages.push(...response.assistantMessages);
    this.#said(response);
    this.#calls = response.calls.map((call) => ({
      ...call,
      step,
      calledAt: this.#at,
      result: null,
    }));
    this.#completion = completion;
    this.#result = result;
    if (retryMessage !== undefined) this.#messages.push({ role: 'user', content: retryMessage });
  }

  /** Records the text and usage of a model's answer, even if the answer cannot be used. */
  #said({ text, usage }: Pick<ModelResponse, 'text' | 'usage'>): void {
    if (text !== '') this.#text = text;
    this.#usage = addUsage(this.#usage, {
      ...usage,
      // The token counts in journals from earlier versions were never validated.
      inputTokens: tokenCount(usage.inputTokens) ?? 0,
      outputTokens: tokenCount(usage.outputTokens) ?? 0,
      totalTokens: tokenCount(usage.totalTokens) ?? 0,
    });
  }

  settled(callId: string, outcome: ToolOutcome): void {
    this.#settle(callId, { callId, outcome }, statusOf(outcome), ledgerOutput(outcome));
  }

  answered(callId: string, answer: Answer): void {
    if (answer.approved !== undefined) this.#grade(callId, answer.approved ? 'given' : 'denied');
    this.#answeredBy(callId, answer.by);
    if (answer.approved === true) {
      const call = this.#callOf(callId);
      if (call && answer.optionId === APPROVE_LASTING) call.lasting = true;
      if (answer.changed) this.#change(callId, answer.changed);
      return;
    }
    if (answer.approved === false) {
      const { userResponse } = answer;
      // The result that a model reads if its provider has no way to mark a denial.
      const denied = `Not approved. The answer: ${quoted(userResponse)}. If it asks for something else, do that: a changed call asks for approval again. Otherwise go on without this call.`;
      this.#settle(callId, { callId, denied }, 'denied', userResponse);
      return;
    }
    const { userResponse, optionId } = answer;
    const output = { userResponse, ...(optionId === undefined ? {} : { optionId }) };
    this.#settle(callId, { callId, output }, 'ok', output);
  }

  /** Replaces the arguments of a call with those that the user approved. */
  #change(callId: string, changed: CallInput): void {
    this.#calls = this.#calls.map((call) => {
      if (call.callId !== callId) return call;
      const { given: _, raw: _none, ...rest } = call;
      return { ...rest, ...changed, askedInput: call.input };
    });
  }

  /**
   * Records why the question was not answered. An approval without an answer is treated as denied.
   */
  #unanswered(callId: string, error: string, how: 'expired' | 'withdrawn'): void {
    if (this.call(callId)?.consent !== 'ask') {
      this.#settle(callId, { callId, output: { error } }, 'unanswered', error);
      return;
    }
    this.#grade(callId, how);
    const denied = `Not approved. ${error}`;
    this.#settle(callId, { callId, denied }, 'denied', denied);
  }

  /** Records the parent's answer, or that the parent did not answer. */
  #inputAnswered(callId: string, event: Answered): void {
    if (event.type !== 'question.answered') {
      const output: InputResult = { responded: false, timedOut: event.type === 'question.expired' };
      this.#settle(callId, { callId, output }, 'unanswered', output);
      return;
    }
    const { userResponse: response, by } = event.answer;
    this.#answeredBy(callId, by);
    const output: InputResult = { responded: true, response, timedOut: false };
    this.#settle(callId, { callId, output }, 'ok', output);
  }

  /** Records that these calls were abandoned. A call that had started may have had an effect. */
  #giveUp(
    callIds: readonly string[],
    status: 'error' | 'unanswered' | 'not_run' | 'in_flight',
    error: string,
  ): void {
    for (const callId of callIds)
      this.#settle(callId, { callId, output: { error } }, status, error);
  }

  /** Adds these messages to the conversation before the next model call. */
  #read(messageIds: readonly string[]): void {
    if (messageIds.length === 0) return;
    const isRead = ({ messageId }: Words): boolean => messageIds.includes(messageId);
    for (const words of this.#unread.filter(isRead))
      this.#messages.push({ role: 'user', content: this.#written(words) });
    this.#unread = this.#unread.filter((words) => !isRead(words));
  }

  /** Returns the text for the model. If an earlier version started the run, its notes have no markers. */
  #written({ messageId, text, note: told }: Words): string {
    if (!this.#notes) return told ? unmarked(told) : text;
    return this.#notes.text(told ?? note(FROM_ABOVE, { message: text }), messageId);
  }

  /** Starts a model call: settles the open calls, and adds the messages that the model must read. */
  beginStep({
    messageIds,
    final,
  }: {
    readonly messageIds: readonly string[];
    readonly final: boolean;
  }): void {
    this.#closeStep(final ? BUDGET_USED_UP : UNREAD_FIRST);
    this.#read(messageIds);
    if (final) this.#messages.push(this.handIn);
  }

  /** Answers the step's open calls, so that the model can be called again. */
  #closeStep(notRun: string): void {
    if (this.#calls.length === 0) return;
    const left = this.#calls.filter(({ result }) => result === null);
    this.#giveUp(
      left.map(({ callId }) => callId),
      'not_run',
      notRun,
    );
    this.#completion = null;
    const answers = toolMessage(
      this.#calls,
      this.#calls.flatMap(({ result }) => result ?? []),
    );
    this.#messages.push(this.#notes?.guarded(answers) ?? answers);
    this.#calls = [];
  }

  /** Settles the call that submitted the result, and returns its arguments. Null if the result is a plain answer. */
  complete(): HandedIn | null {
    const call = this.#calls.find(({ callId }) => callId === this.#completion);
    if (!call) return null;
    const handedIn = handedInBy(call);
    const { callId } = call;
    this.#settle(callId, { callId, output: { completed: true } }, 'ok', { completed: true });
    return handedIn;
  }

  /** Records which calls are running when the subagent ends. A question does not count as a running call. */
  endIn(snapshot: SubagentSnapshot): void {
    const isActive = snapshot.matches('running') || snapshot.matches('waiting_for_children');
    const open = isActive ? snapshot.context.calls.filter(({ settled }) => !settled) : [];
    const begun = idsOf(open.filter(isUnderWay(snapshot)));
    for (const call of this.#calls) call.isUnderWay = begun.includes(call.callId);
  }

  /** When the subagent ends, closes each open call as either running or not run. */
  abandonCalls(): void {
    for (const call of this.#calls)
      if (call.result === null)
        this.#ledger.push(entry(call, call.isUnderWay ? 'in_flight' : 'not_run', null));
    this.#calls = [];
  }

  /** Returns a call's input, which it reads from the message that contains the call. */
  #inputOf(callId: string): unknown {
    const content = this.#messages.findLast(({ role }) => role === 'assistant')?.content;
    if (typeof content === 'string') return undefined;
    const made = content?.find((part) => part.type === 'tool-call' && part.toolCallId === callId);
    return made && 'input' in made ? made.input : undefined;
  }

  #callOf(callId: string): OpenCall | undefined {
    return this.#calls.find((call) => call.callId === callId);
  }

  #grade(callId: string, approval: ApprovalGrade): void {
    const call = this.#callOf(callId);
    if (call) call.approval = approval;
  }

  #answeredBy(callId: string, by: string | undefined): void {
    const call = this.#callOf(callId);
    if (call && by !== undefined) call.answeredBy = by;
  }

  #settle(
    callId: string,
    result: StepResult,
    status: LedgerEntry['status'],
    output: unknown,
  ): void {
    const call = this.#callOf(callId);
    if (!call || call.result !== null) return;
    call.result = result;
    this.#ledger.push({ ...entry(call, status, output), settledAt: this.#at });
  }
}

/** Returns the status that abandoned calls get in this state. */
function statusIn(snapshot: SubagentSnapshot): 'in_flight' | 'error' | 'unanswered' {
  if (snapshot.matches('running')) return 'in_flight';
  return snapshot.matches('waiting_for_input') ? 'unanswered' : 'error';
}

function isUnderWay(snapshot: SubagentSnapshot): (call: CallState) => boolean {
  if (snapshot.matches('running')) return isRunnable;
  if (snapshot.matches('waiting_for_children')) return isDelegation;
  if (snapshot.matches('sleeping')) return isSleep;
  const asking = snapshot.matches('waiting_for_input') ? askOf(snapshot.context.calls) : undefined;
  return (call) => call === asking;
}

function entry(call: OpenCall, status: LedgerEntry['status'], output: unknown): LedgerEntry {
  const { step, callId, toolName, input, consent, answeredBy, calledAt, lasting, approvalId } =
    call;
  // If the approval was never requested, the call has no grade and gets the status `not_run`.
  const approval = call.approval ?? (consent === 'ask' ? undefined : consent);
  return {
    step,
    callId,
    toolName,
    input,
    status,
    output,
    ...(approval === undefined ? {} : { approval }),
    ...(lasting && { lasting }),
    ...(approvalId && { approvalId }),
    ...('askedInput' in call && { askedInput: call.askedInput }),
    ...(answeredBy === undefined ? {} : { answeredBy }),
    calledAt,
  };
}

/** Parses the result from arguments that match the tool's schema. An app's own tool may have a less strict schema. */
function handedInBy({ input }: ModelCall): HandedIn {
  const { result = null, summary, artifacts } = propertiesOf(input);
  return {
    result,
    ...(typeof summary === 'string' ? { summary } : {}),
    ...(areArtifacts(artifacts)
      ? { artifacts: artifacts.map(({ type, name, content }) => ({ type, name, content })) }
      : {}),
  };
}

function areArtifacts(value: unknown): value is readonly Artifact[] {
  return Array.isArray(value) && value.every(isArtifact);
}

function isArtifact(value: unknown): value is Artifact {
  if (typeof value !== 'object' || value === null || !('content' in value)) return false;
  const { type, name } = propertiesOf(value);
  return typeof type === 'string' && typeof name === 'string';
}

function statusOf(outcome: ToolOutcome): LedgerEntry['status'] {
  if (outcome.status === 'ok') return 'ok';
  const { code } = outcome.error;
  if (code === 'DENIED') return 'denied';
  if (code === 'OUTDATED') return 'not_run';
  return code === 'NEEDS_RECONCILE' ? 'in_flight' : 'error';
}

function ledgerOutput(outcome: ToolOutcome): unknown {
  return outcome.status === 'ok' ? outcome.output : outcome.error.message;
}
