// One subagent: its state, which `reduce` changes in its own commit unit, and its effects.
//
// Owns:     the state while it runs or waits, its work, its messages' receipts, and its end.
// Does not: decide an event's result (subagent-unit.ts), grant slots (supervisor), or talk to the user, a parent or
//           children (the host does).
//
// Invariants
//   SUBAGENT-1. The news `ended` is sent exactly once, with all completed work.
//   SUBAGENT-2. The instance's `dispose` runs exactly once, after the last effect was aborted.
//   SUBAGENT-3. A subagent that waits for an answer is parked: it has no actor, controller, timer or promise, only one
//       string. The next event, or a reader of its log, wakes it.
//   SUBAGENT-4. A stopped effect reports nothing more.
//   SUBAGENT-5. Each message has exactly one receipt: applied, at the step that reads it, or refused. A repeated message
//       has no second receipt while the first is outstanding.
//   SUBAGENT-6. An event that the unit refuses has no entry: the state depends only on the entries, the first of which is
//       `subagent.spawned`.
//   SUBAGENT-7. When its budget's time is over, a subagent that waits for a run slot ends at once, without a model call.
//       Any other subagent may finish its step and submit partial work within 30 seconds.
//   SUBAGENT-8. After the unit refuses a malformed event, no caller keeps waiting: a failure event is written instead.

import { callKey } from '../../values/json.ts';
import type { ModelMessage } from 'ai';
import {
  CancelledError,
  CapacityError,
  isA,
  messageOf,
  OffstageError,
  TimeoutError,
} from '../../values/errors.ts';
import {
  subagentMachine,
  type Ending,
  type Failure,
  type MessageMode,
  type Stamped,
  type SubagentSnapshot,
} from '../../machines/index.ts';
import {
  askOf,
  requestIdOf,
  type ModelStepInput,
  type AskInput,
  type ToolCallsInput,
} from '../../machines/subagent-setup.ts';
import { withoutUndefined } from '../../values/without-undefined.ts';
import { CommitUnit, type Posted, type UnitBody, type UnitEvent } from '../runtime/commit-unit.ts';
import { promptText, type Note } from '../notes/note.ts';
import type { JournalEntry } from '../ports/journal.ts';
import { JournalError } from '../ports/journal-error.ts';
import { callSafely, type Host } from '../runtime/host.ts';
import { underWay, type Shown } from '../runtime/hosting.ts';
import type { SubagentState } from '../contracts/session-views.ts';
import type { BudgetLimits, SubagentDefinition } from '../contracts/config.ts';
import { type Outcome } from '../contracts/outcome.ts';
import { NO_USAGE, type Usage } from '../contracts/usage.ts';
import type { SubagentTask } from '../contracts/task.ts';
import type { ProposedCall } from '../contracts/records.ts';
import { approvalQuestion, askedQuestion, NOT_FOR_ME, returnedQuestion } from './ask-user.ts';
import { requestedInput } from './child-toolset.ts';
import type { Worker } from './executor.ts';
import { outcomeOf } from './outcome-of.ts';
import {
  insteadOf,
  SPAWNED,
  SUBAGENT_SHAPES,
  SUBAGENT_VERSION,
  type SpawnedEvent,
  type SubagentUnitEvent,
} from './subagent-events.ts';
import { SubagentLog } from './subagent-log.ts';
import type { SubagentNews, SubagentPorts } from './subagent-ports.ts';
import {
  begin,
  messageIdOf,
  reduce,
  snapshotOf,
  stateIn,
  stateOf,
  takes,
  type RunEffects,
  type SubagentUnitSnapshot,
  type SubagentUnitState,
} from './subagent-unit.ts';
import { SubagentWork } from './subagent-work.ts';

/** The end, from the moment it is certain; the outcome may still be processed before the subagent reports it. */
interface Ended {
  outcome: Outcome;
  isReported: boolean;
  disposed: Promise<void>;
}

/** The time to submit partial work after the budget's time is over. */
const HAND_IN_MS = 30_000;
/** The maximum number of unread messages; more are refused. */
export const MAX_UNREAD = 100;

export class Subagent implements UnitBody, Worker {
  readonly id: string;
  readonly definition: SubagentDefinition;
  readonly task: SubagentTask;
  readonly shapes = SUBAGENT_SHAPES;
  state: SubagentState = 'spawning';
  step = 0;
  readonly #unit: CommitUnit;
  readonly #host: Host;
  readonly #ports: SubagentPorts;
  readonly #work: SubagentWork;
  /** The state; a string while the subagent is parked, null until `subagent.spawned` is committed. */
  #form: SubagentUnitState | string | null = null;
  /** The state's log; null until it is read. */
  #log: SubagentLog | null = null;
  #ended: Ended | null = null;
  /** The type of the last applied event, and the ending that it caused: the reason to stop the activity. */
  #stoppedBy = '';
  #ending: Ending | null = null;
  /** The ending from an earlier process, whose entry is quarantined. */
  #crash: Ending | null = null;
  /** Cancels the deadline for submitting partial work; null if none is set. */
  #handIn: (() => void) | null = null;
  /** Whether the subagent was told to end; an earlier end takes precedence. */
  #isCancelled = false;
  /** Ids of the messages without a receipt; null until a message arrives. */
  #unread: Set<string> | null = null;

  constructor(
    host: Host,
    id: string,
    definition: SubagentDefinition,
    task: SubagentTask,
    ports: SubagentPorts,
  ) {
    this.id = id;
    this.definition = definition;
    this.task = task;
    this.#host = host;
    this.#ports = ports;
    const identity = {
      id,
      scope: ports.path,
      kind: 'subagent',
      definitionVersion: SUBAGENT_VERSION,
    };
    this.#unit = new CommitUnit(identity, host, this);
    this.#work = new SubagentWork(host, ports, this);
  }

  start(spawned: SpawnedEvent): void {
    this.receive({ ...spawned });
  }

  /**
   * Folds the subagent's journal entries. Returns its ending; null if `resume` continues it.
   * @throws {OffstageError} if the entries do not lead to a state of this code.
   */
  refold(entries: readonly JournalEntry[]): Ending | null {
    this.#unit.refold(entries);
    // Messages that arrive meanwhile wait until the activity has resumed.
    this.#unit.pause();
    const { status, output } = snapshotOf(this.#awake);
    return status === 'done' ? output : this.#crash;
  }

  /** Returns the state, for `restore`. */
  toSnapshot(): SubagentUnitSnapshot {
    const { snapshot, log, ...facts } = this.#known ?? this.#awake;
    const parked = typeof this.#form === 'string' ? { isParked: true as const } : {};
    return { seq: this.#unit.seq, life: { snapshot, log, ...parked }, ...facts };
  }

  /**
   * Continues from the result of `toSnapshot`, and then folds the journal's later entries, like `refold`. `isAsked`:
   * the host still has the question to the user.
   */
  restore(
    rest: SubagentUnitSnapshot,
    entries: readonly JournalEntry[],
    isAsked: boolean,
  ): Ending | null {
    const state = stateIn(rest);
    this.#unit.setSequence(rest.seq);
    this.#moveTo(state);
    const { kind } = askOf(state.snapshot.context.calls) ?? {};
    const asksUser = kind !== undefined && kind !== 'input';
    const onlyWaits = rest.life.isParked === true && isAsked && asksUser;
    if (entries.length > 0 || !onlyWaits) return this.refold(entries);
    // A parked subagent stays parked.
    this.#park();
    this.#unit.pause();
    return null;
  }

  /** Replaces the state with the next state, or with a state to continue from. */
  #moveTo(state: SubagentUnitState | null): void {
    const isNew = this.#form === null;
    this.#form = state;
    this.#log = null;
    this.state = state ? stateOf(state.snapshot) : 'spawning';
    this.step = state?.snapshot.context.step ?? 0;
    const { actors } = this.#host;
    if (isNew && state && actors.isWatched) actors.began(this.#shown());
  }

  /** The state; null before the first commit. Reading it wakes no parked subagent. */
  get #known(): SubagentUnitState | null {
    const form = this.#form;
    return typeof form === 'string' ? (JSON.parse(form) as SubagentUnitState) : form;
  }

  /** The state, which then stays in memory until the subagent is parked again. */
  get #awake(): SubagentUnitState {
    const known = this.#known;
    if (!known) throw new OffstageError('INTERNAL', `${this.id} has not begun`);
    return (this.#form = known);
  }

  /** Reduces the state to one string, until an event or a reader of the log wakes it. */
  #park(): void {
    if (typeof this.#form === 'object' && this.#form) this.#form = JSON.stringify(this.#form);
    this.#log = null;
  }

  /** Restarts the interrupted activity, or reports the end. */
  resume(): void {
    if (this.#crash) this.#resumeEnd(this.#crash);
    else if (typeof this.#form === 'string') this.#work.restored();
    else this.#resumeState(snapshotOf(this.#awake));
    this.#unit.resume();
    if (this.state === 'waiting_for_input' && !this.#ended) void this.#recheck();
  }

  /** Rechecks the open question, which other code or another configuration may have asked (CALL-JUDGEMENT-2). */
  async #recheck(): Promise<void> {
    await this.#work.recheckQuestion();
    if (this.state === 'waiting_for_input' && !this.#ended) this.#park();
  }

  #resumeState(snapshot: SubagentSnapshot): void {
    const due = underWay('subagent', subagentMachine, snapshot);
    const acting = due.find(({ effect }) => effect.name === 'toolCalls')?.effect;
    this.#work.restored(acting?.kind === 'start' ? (acting.input as ToolCallsInput) : null);
    if (snapshot.status === 'done') {
      this.#resumeEnd(snapshot.output);
      return;
    }
    const { calls, asked, step } = snapshot.context;
    if (snapshot.matches('waiting_for_input')) {
      const { callId = '', kind = 'question' } = askOf(calls) ?? {};
      const requestId = requestIdOf(this.id, asked);
      const isOver = this.#unit.hasQueued(
        (event) => 'requestId' in event && event.requestId === requestId,
      );
      // The question is asked again with the same id.
      if (!isOver) this.#ask({ id: this.id, requestId, callId, kind });
      this.#park();
      return;
    }
    if (snapshot.matches('ready')) {
      this.#requestSlot(step > 0);
      return;
    }
    if (!snapshot.matches('running')) {
      this.#unit.releaseDue(due);
      if (snapshot.matches('sleeping')) this.#park();
      return;
    }
    // The subagent had a slot in the earlier process: its deadlines start at once, but its work only when it has a slot
    // in this process.
    const isDeadline = ({ effect }: Posted): boolean => effect.name === 'deadline';
    this.#unit.releaseDue(due.filter(isDeadline));
    const work = due.filter((posted) => !isDeadline(posted));
    this.#ports.requestSlot(this.id, true, () => {
      // An event that arrived meanwhile has started another activity.
      if (this.#work.isIdle) this.#unit.releaseDue(work);
    });
  }

  #resumeEnd(params: Ending): void {
    const effect = { kind: 'do', name: 'ended', params } as const;
    this.#unit.releaseDue([{ actor: 'subagent', effect }]);
  }

  /** Returns the outcome of an end that was already reported, without reporting it again. */
  recall(ending: Ending): Outcome {
    const { log } = this;
    this.#unit.dispose();
    this.#host.actors.ended(this.path);
    return outcomeOf(ending, log);
  }

  get outcome(): Outcome | null {
    return this.#ended?.isReported ? this.#ended.outcome : null;
  }

  get progress(): string | null {
    return this.#work.progress;
  }

  /** Returns the reason to stop activities now. */
  #stopReason(): Error {
    const { status, error } = this.#ending ?? {};
    return status && error ? endReason(status, error) : interruption(this.#stoppedBy);
  }

  get openQuestion(): { readonly requestId: string; readonly callId: string } | null {
    const known = this.state === 'waiting_for_input' ? this.#known : null;
    if (!known) return null;
    const { calls, asked } = known.snapshot.context;
    const callId = askOf(calls)?.callId;
    return callId === undefined ? null : { requestId: requestIdOf(this.id, asked), callId };
  }

  /**
   * Returns an approval's call with changed arguments, and its question; null if the question is over.
   * @throws {ConfigurationError} `INVALID_INPUT` (rejects).
   */
  async changedCall(requestId: string, given: unknown): Promise<ProposedCall | null> {
    const open = this.openQuestion;
    const call = open?.requestId === requestId ? this.log.call(open.callId) : undefined;
    if (!call) return null;
    try {
      const { changed, question } = await this.#work.changedCall(call, given);
      const { question: _, ...rest } = { ...call, ...changed };
      const asked = approvalQuestion(question === undefined ? rest : { ...rest, question });
      return {
        changed,
        question: asked.question,
        ...(asked.byButton && { byButton: asked.byButton }),
      };
    } finally {
      if (this.state === 'waiting_for_input' && !this.#ended) this.#park();
    }
  }

  /** The words and actions. Reading them wakes a parked subagent. */
  get log(): SubagentLog {
    return (this.#log ??= new SubagentLog(this.#awake.log));
  }

  get messages(): readonly ModelMessage[] {
    return this.log.messages;
  }

  /** The secret of the note marks; undefined before the run is prepared, and for an earlier version's run. */
  get marks(): string | undefined {
    return this.#known?.log.marks;
  }

  /** The usage of the model calls so far. */
  get usage(): Usage {
    return this.#known?.log.usage ?? NO_USAGE;
  }

  /** Keys of the calls that the user denied. */
  get deniedKeys(): readonly string[] {
    return this.#known?.denied ?? [];
  }

  hasDenied(toolName: string, input: unknown): boolean {
    return this.deniedKeys.includes(callKey(toolName, input));
  }

  /** Puts an event into the mailbox. */
  receive(event: SubagentUnitEvent): void {
    this.#unit.receive('subagent', event);
  }

  /**
   * Checks for room in the mailbox before a request from outside.
   * @throws {CapacityError} `MAILBOX_FULL`
   */
  checkRoom(): void {
    this.#unit.checkRoom();
  }

  /** The budget limits raised so far, with their totals. */
  get raised(): BudgetLimits {
    return this.#known?.snapshot.context.raised ?? {};
  }

  /** False once the budget is used up: the subagent then submits its partial work. */
  get isRaisable(): boolean {
    return this.#known?.snapshot.context.exhausted === null;
  }

  /** How the subagent ends: `stopping` from its cancellation on, `over` after any other end; null if it continues. */
  get leaving(): 'stopping' | 'over' | null {
    if (this.#ended) return this.#ended.outcome.status === 'cancelled' ? 'stopping' : 'over';
    return this.#isCancelled ? 'stopping' : null;
  }

  /** True if the runtime itself calls the subagent's model, step by step. */
  get #isOwn(): boolean {
    const { relay, agent, createInstance } = this.definition.source;
    return relay === undefined && agent === undefined && createInstance === undefined;
  }

  /** True during a call of the subagent's own model, which a message may interrupt without undoing any work. */
  get isThinking(): boolean {
    const state = this.#known;
    return this.#isOwn && state !== null && snapshotOf(state).matches({ running: 'thinking' });
  }

  /** True if this step is the last one of the subagent's own model, in which it can no longer call tools. */
  isLastStep(step: number): boolean {
    return this.#isOwn && (step >= this.definition.maxSteps || !this.isRaisable);
  }

  /** Records new totals of the budget's limits. */
  raiseBudget(limits: BudgetLimits, by?: string): void {
    const raised = withoutUndefined(limits);
    this.receive({ type: 'budget.raised', limits: raised, ...(by === undefined ? {} : { by }) });
  }

  cancel(reason: string, by?: string): void {
    this.#isCancelled = true;
    this.receive({ type: 'subagent.cancel', reason, ...(by === undefined ? {} : { by }) });
  }

  /**
   * Sends the subagent a message: an ancestor's words, or a note. Each message id receives one receipt, possibly before
   * this call returns: `message.applied` or `message.refused`.
   * @throws {CapacityError} if the mailbox is full; the message then receives no receipt.
   */
  message(messageId: string, words: string | Note, mode: MessageMode, by?: string): void {
    const isTaken = this.hasTaken(messageId);
    if (this.#ended) this.#refuse([messageId], `It has ended: ${this.#ended.outcome.status}`);
    else if (isTaken && !this.#hasUnread(messageId)) this.#applied([messageId], this.step);
    else if (this.#unread?.has(messageId)) return;
    else if ((this.#unread?.size ?? 0) >= MAX_UNREAD)
      this.#refuse([messageId], `${MAX_UNREAD} messages are unread already`);
    else {
      // Recorded before `receive`, which may already cause the message to be read.
      const unread = (this.#unread ??= new Set()).add(messageId);
      if (isTaken) return;
      try {
        this.#unit.checkRoom();
        this.receive({
          type: 'subagent.message',
          messageId,
          mode,
          ...(typeof words === 'string'
            ? { text: words }
            : { text: promptText(words), note: words }),
          ...(by === undefined ? {} : { by }),
        });
      } catch (error) {
        unread.delete(messageId);
        throw error;
      }
    }
  }

  /** Reports that this step's model call reads these messages. */
  #applied(messageIds: readonly string[], step: number): void {
    // An earlier process may have accepted some of them.
    for (const messageId of messageIds) this.#unread?.delete(messageId);
    this.#tell({ type: 'message.applied', ids: messageIds, step });
  }

  #refuse(messageIds: readonly string[], reason: string): void {
    if (messageIds.length > 0) this.#tell({ type: 'message.refused', ids: messageIds, reason });
  }

  #tell(news: SubagentNews): void {
    this.#ports.tell(this, news);
  }

  /** Returns whether this message, or answer, is in the journal. Does not wake a parked subagent. */
  hasTaken(messageId: string): boolean {
    return this.#known?.taken?.includes(messageId) ?? false;
  }

  /** Returns whether this message was received and is still unread. */
  #hasUnread(messageId: string): boolean {
    const { unread = [] } = this.#known?.snapshot.context ?? {};
    return unread.some((one) => one.messageId === messageId);
  }

  /** Ends the budget, with a last step that submits partial work, or (`graceful` false) without such a step. */
  exhaust(message: string, graceful = true): void {
    this.receive({ type: 'budget.exhausted', message, graceful });
  }

  /** Handles the end of the budget's time (SUBAGENT-7). */
  timeIsOver(message: string): void {
    const isHeldUp = this.state === 'spawning' || this.state === 'ready';
    this.exhaust(message, !isHeldUp);
    if (isHeldUp || this.#ended) return;
    const { scheduler } = this.#host.environment;
    this.#handIn = scheduler.schedule(() => this.exhaust(message, false), HAND_IN_MS);
  }

  /** Ends the subagent at once, without its machine, because a closing session's grace period is over. */
  kill(reason: string): void {
    // An outcome that is still being processed is reported unprocessed.
    this.#report();
    this.#end({
      status: 'lost',
      steps: this.step,
      error: { code: 'KILLED', message: `Killed: ${reason}`, retryable: true },
    });
  }

  /** Suspends the subagent, so that a process can continue it later: aborts its activity without a report. */
  suspend(): void {
    this.#handIn?.();
    this.#unit.dispose();
    this.#work.stop(() => new CancelledError('the session was suspended'), 'suspended');
    this.#host.actors.ended(this.path);
    void this.#work.release('suspended');
  }

  /** Ends the subagent as lost, because no process can continue it after a crash. */
  lose(error: Failure): void {
    this.#end({ status: 'lost', steps: this.step, error });
  }

  take(_actor: string, taken: UnitEvent & Stamped): (UnitEvent & Stamped) | null {
    // `receive` is typed.
    const event = taken as SubagentUnitEvent & Stamped;
    const state = this.#known;
    const isTaken = state ? event.type !== SPAWNED && takes(state, event) : event.type === SPAWNED;
    if (!isTaken) return null;
    // The state is parsed once, for the step that follows.
    this.#form = state;
    return event;
  }

  /**
   * Reports a message that arrived too late, so that no caller waits for its entry, and settles what a refused event
   * should have settled (SUBAGENT-8).
   */
  ignored(ignored: UnitEvent, error: OffstageError | null): void {
    const event = ignored as SubagentUnitEvent;
    const messageId = messageIdOf(event);
    if (messageId !== null) this.#tell({ type: 'message.taken', messageId });
    const isRefused = error !== null && !isA(error, JournalError) && !this.#ended;
    const instead = isRefused ? insteadOf(event, error) : null;
    if (instead === 'crash') this.crashed(error);
    else if (instead) this.receive(instead);
  }

  apply(_actor: string, applied: UnitEvent & Stamped): void {
    // The shape of an entry was already checked.
    const event = applied as SubagentUnitEvent & Stamped;
    const [state, effects] =
      event.type === SPAWNED ? begin(this.id, event) : reduce(this.#awake, event);
    for (const effect of effects) this.#unit.post('subagent', effect);
    this.#unit.draft.later(() => this.#move(event, state));
  }

  #move(event: SubagentUnitEvent & Stamped, state: SubagentUnitState): void {
    this.#moveTo(state);
    const { status, output } = snapshotOf(state);
    this.#stoppedBy = event.type;
    this.#ending = status === 'done' ? output : null;
    const { actors } = this.#host;
    if (actors.isWatched && event.type !== SPAWNED) actors.moved(this.path, event);
  }

  release({ effect }: Posted): void {
    if (this.#ended) return;
    if (effect.kind === 'stop') this.#work.stop(() => this.#stopReason());
    else if (effect.kind === 'start') {
      if (effect.name === 'modelStep') {
        const { messageIds, step } = effect.input as ModelStepInput;
        if (messageIds.length > 0) this.#applied(messageIds, step);
      }
      this.#work.begin(effect.name, effect.input);
    } else {
      const name = effect.name as keyof RunEffects;
      // `reduce` created the effect, with params that match this name.
      Subagent.#carriers[name](this, effect.params as never);
    }
  }

  crashed(error: unknown): void {
    this.#host.report(error, `subagent ${this.id}`);
    this.#end(this.#crashedBy(messageOf(error)));
  }

  /** Records that an earlier process ended the unit by quarantining an entry. */
  endedBy(reason: string): void {
    this.#crash = this.#crashedBy(reason);
  }

  #crashedBy(message: string): Ending {
    const error = { code: 'INTERNAL', message, retryable: false };
    return { status: 'failed', steps: this.step, error };
  }

  journalRefused(error: unknown): void {
    this.#host.report(error, `journal of ${this.id}`);
    if (!this.#ports.standingOf(this).isRecoverable)
      this.lose({ code: 'JOURNAL_REFUSED', message: messageOf(error), retryable: true });
    else this.suspend();
  }

  get isBusy(): boolean {
    return this.#unit.isBusy;
  }

  /**
   * Resolves when all events sent so far are in the journal, or the subagent has ended.
   * @throws {CancelledError} (rejects) if the subagent is suspended first.
   */
  async whenHandled(): Promise<void> {
    try {
      await this.#unit.whenHandled();
    } catch (error) {
      if (this.#ended === null) throw error;
    }
  }

  /** When the subagent's next deadline is due, in milliseconds since 1970; `Infinity` if none is pending. */
  get nextDueAt(): number {
    return this.#unit.nextDueAt;
  }

  /** True if the whole state is in the journal and the host has all news. */
  get isSettled(): boolean {
    return !this.isBusy && this.#form !== null && this.#ended?.isReported !== false;
  }

  /** The number of events that the current activity has not reported yet. */
  get owes(): number {
    return this.#work.owes;
  }

  /** The machine, as its actor shows it; null before the first commit. */
  get shown(): Shown | null {
    return this.#form === null ? null : this.#shown();
  }

  #shown(): Shown {
    const read = (): SubagentSnapshot => snapshotOf(this.#known ?? this.#awake);
    return {
      id: this.path,
      machine: subagentMachine,
      get snapshot() {
        return read();
      },
    };
  }

  /** The path of the actor. */
  get path(): string {
    return `${this.#ports.path}/${this.id}`;
  }

  /** The handler of each effect. */
  static readonly #carriers: {
    readonly [Name in keyof RunEffects]: (subagent: Subagent, params: RunEffects[Name]) => void;
  } = {
    changed: (subagent) => {
      subagent.#tell({ type: 'alive' });
      subagent.#tell({ type: 'changed' });
      if (subagent.state === 'waiting_for_input' || subagent.state === 'sleeping') subagent.#park();
    },
    ended: (subagent, ending) => subagent.#end(ending),
    requestSlot: (subagent, { resumed }) => subagent.#requestSlot(resumed),
    releaseSlot: (subagent) => subagent.#ports.releaseSlot(subagent.id),
    ask: (subagent, asked) => subagent.#ask(asked),
    withdraw: (subagent, { kind, requestId }) =>
      subagent.#tell({
        type: kind === 'input' ? 'input.withdrawn' : 'question.withdrawn',
        requestId,
      }),
    taken: (subagent, messageId) => subagent.#tell({ type: 'message.taken', messageId }),
    steered: (subagent) => subagent.#work.nudge(),
    stepped: (subagent, report) => subagent.#tell({ type: 'stepped', report }),
  };

  #requestSlot(resumed: boolean): void {
    this.#ports.requestSlot(this.id, resumed, (history = []) =>
      this.receive({ type: 'slot.granted', ...(history.length > 0 ? { history } : {}) }),
    );
  }

  /** Passes a question on to the user or the parent. */
  #ask({ requestId, callId, kind }: AskInput): void {
    const { name: subagentName, inputTimeout: timeoutMs } = this.definition;
    const call = this.log.call(callId);
    const asked = { requestId, subagentId: this.id, subagentName };
    if (kind === 'input') {
      this.#tell({ type: 'input.requested', asked: { ...asked, ...requestedInput(call) } });
      return;
    }
    const question =
      kind === 'approval'
        ? approvalQuestion(call)
        : call?.toolName === NOT_FOR_ME
          ? returnedQuestion(call.input, this.log.ledger)
          : askedQuestion(call?.input);
    const who = call?.answerableBy === undefined ? {} : { answerableBy: call.answerableBy };
    const about = { ...asked, kind, timeoutMs, ...question, ...who };
    this.#tell({ type: 'question.asked', question: about });
  }

  #end(ending: Ending): void {
    if (this.#ended) return;
    this.#handIn?.();
    const { status, error } = ending;
    const log = this.#form === null ? new SubagentLog() : this.log;
    const snapshot = this.#form === null ? null : snapshotOf(this.#awake);
    if (snapshot?.status === 'active') log.endIn(snapshot);
    const outcome = outcomeOf(ending, log);
    const ended: Ended = { outcome, isReported: false, disposed: Promise.resolve() };
    this.#ended = ended;
    this.state = status === 'completed' || status === 'cancelled' ? status : 'failed';
    this.#work.stop(() => (error ? endReason(status, error) : this.#stopReason()));
    this.#unit.dispose();
    this.#host.actors.ended(this.path);
    ended.disposed = this.#work.release('ended');
    const unread = [...(this.#unread ?? [])];
    this.#unread = null;
    callSafely(this.#host, `unread messages of ${this.id}`, () =>
      this.#refuse(unread, `It ended before it could read it: ${status}`),
    );
    const asItIs = (thrown: unknown): void => {
      this.#host.report(thrown, `outcome of ${this.id}`);
      this.#report();
    };
    try {
      const isKilled = status === 'lost';
      const settled = isKilled ? outcome : this.#ports.settle?.(this, this.#work.tools, outcome);
      if (settled instanceof Promise) settled.then((final) => this.#report(final), asItIs);
      else this.#report(settled);
    } catch (thrown) {
      asItIs(thrown);
    }
  }

  /** Reports the outcome, processed or not; at most once (SUBAGENT-1). */
  #report(outcome = this.#ended?.outcome): void {
    const ended = this.#ended;
    if (!ended || !outcome || ended.isReported) return;
    ended.isReported = true;
    ended.outcome = outcome;
    callSafely(this.#host, `end of ${this.id}`, () =>
      this.#tell({ type: 'ended', outcome, disposed: ended.disposed }),
    );
  }
}

/** Returns the `AbortSignal` reason with which this end stops the work. */
function endReason(status: Ending['status'], { code, message }: Failure): Error {
  if (status === 'timed_out') return new TimeoutError(message, { code });
  if (status === 'cancelled' || code === 'KILLED')
    return new CancelledError(message.replace(/^(Cancelled|Killed): /, ''));
  if (code === 'BUDGET_EXHAUSTED') return new CapacityError(code, message);
  return new OffstageError(code, message);
}

/** Returns the abort reason for an event that does not end the subagent. */
function interruption(eventType: string): Error {
  switch (eventType) {
    case 'subagent.message':
      return new CancelledError('a message to the subagent interrupted it');
    case 'budget.exhausted':
      return new CapacityError('BUDGET_EXHAUSTED', 'The budget is used up');
    default:
      return new CancelledError('its result is no longer needed');
  }
}
