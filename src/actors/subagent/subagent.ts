// One subagent: its state and its effects. `reduce` changes the state in the subagent's own commit unit.
//
// Owns:     the state while the subagent runs or waits, its work, the receipts for its messages, and how it ends.
// Does not: decide what an event changes (subagent-unit.ts), grant slots (supervisor), or communicate with the user, a
//           parent or children (the host does).
//
// Invariants
//   SUBAGENT-1. The `ended` notification is sent exactly once. It contains all completed work.
//   SUBAGENT-2. The instance's `dispose` runs exactly once, after the last effect has been aborted.
//   SUBAGENT-3. A subagent that waits for an answer is parked: it has no actor, controller, timer or promise, only one
//       string. The next event, or a reader of its log, wakes it.
//   SUBAGENT-4. An effect that has been stopped does not report anything more.
//   SUBAGENT-5. Each message gets exactly one receipt: either a step applied the message, or it was refused. A message
//       that is repeated before its receipt was sent does not get a second receipt.
//   SUBAGENT-6. An event that the unit refuses is not recorded. The state depends only on the entries. The first entry
//       is `subagent.spawned`.
//   SUBAGENT-7. When the time in its budget has run out, a subagent that is waiting for a run slot ends immediately,
//       without a model call. Any other subagent has 30 seconds to finish its step and submit partial work.
//   SUBAGENT-8. If the unit refuses a malformed event, a failure event is written instead, so that no caller is left
//       waiting.

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

/**
 * How the subagent ended, set as soon as it is certain. The outcome may still have to be processed before it is
 * reported.
 */
interface Ended {
  outcome: Outcome;
  isReported: boolean;
  disposed: Promise<void>;
}

/** How long a subagent may take to submit partial work after its budget's time has run out. */
const HAND_IN_MS = 30_000;
/** The maximum number of unread messages. If there are more, new messages are refused. */
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
  /** The state, which is a string while the subagent is parked, and null until `subagent.spawned` is committed. */
  #form: SubagentUnitState | string | null = null;
  /** The log that belongs to the state, or null until it is read. */
  #log: SubagentLog | null = null;
  #ended: Ended | null = null;
  /**
   * The type of the last applied event and the ending that it caused. They determine the reason for stopping the
   * activity.
   */
  #stoppedBy = '';
  #ending: Ending | null = null;
  /** The ending that an earlier process determined, if its entry is quarantined. */
  #crash: Ending | null = null;
  /** Cancels the deadline for submitting partial work; null if no deadline is set. */
  #handIn: (() => void) | null = null;
  /** Whether the subagent has received a command to end. An earlier ending takes precedence. */
  #isCancelled = false;
  /** The ids of the messages that have no receipt yet; null until a message arrives. */
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
   * Folds the subagent's journal entries. Returns how the subagent ended, or null if `resume` can continue it.
   * @throws {OffstageError} if this code cannot fold the entries into a state.
   */
  refold(entries: readonly JournalEntry[]): Ending | null {
    this.#unit.refold(entries);
    // Messages that arrive before the activity has resumed wait until then.
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
   * Resumes from the result of `toSnapshot`, and then folds the journal's later entries, like `refold`. `isAsked`: the
   * host still has the question for the user.
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

  /** Replaces the state with the next state, or with a restored one. */
  #moveTo(state: SubagentUnitState | null): void {
    const isNew = this.#form === null;
    this.#form = state;
    this.#log = null;
    this.state = state ? stateOf(state.snapshot) : 'spawning';
    this.step = state?.snapshot.context.step ?? 0;
    const { actors } = this.#host;
    if (isNew && state && actors.isWatched) actors.began(this.#shown());
  }

  /** The state, or null until the first commit. Reading it does not wake a parked subagent. */
  get #known(): SubagentUnitState | null {
    const form = this.#form;
    return typeof form === 'string' ? (JSON.parse(form) as SubagentUnitState) : form;
  }

  /** The parsed state, which then stays in memory until the subagent is parked again. */
  get #awake(): SubagentUnitState {
    const known = this.#known;
    if (!known) throw new OffstageError('INTERNAL', `${this.id} has not begun`);
    return (this.#form = known);
  }

  /** Reduces the state to one string until an event or a reader of the log wakes the subagent. */
  #park(): void {
    if (typeof this.#form === 'object' && this.#form) this.#form = JSON.stringify(this.#form);
    this.#log = null;
  }

  /** Restarts the interrupted activity, or reports how the subagent ended. */
  resume(): void {
    if (this.#crash) this.#resumeEnd(this.#crash);
    else if (typeof this.#form === 'string') this.#work.restored();
    else this.#resumeState(snapshotOf(this.#awake));
    this.#unit.resume();
    if (this.state === 'waiting_for_input' && !this.#ended) void this.#recheck();
  }

  /**
   * Checks the open question again, because other code or another configuration may have produced it
   * (CALL-JUDGEMENT-2).
   */
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
      // The question is repeated with the same id.
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
    // The subagent had a slot in the earlier process. Its deadlines start immediately, but its work starts only when
    // this process grants it a slot.
    const isDeadline = ({ effect }: Posted): boolean => effect.name === 'deadline';
    this.#unit.releaseDue(due.filter(isDeadline));
    const work = due.filter((posted) => !isDeadline(posted));
    this.#ports.requestSlot(this.id, true, () => {
      // An event that arrived in the meantime has started another activity.
      if (this.#work.isIdle) this.#unit.releaseDue(work);
    });
  }

  #resumeEnd(params: Ending): void {
    const effect = { kind: 'do', name: 'ended', params } as const;
    this.#unit.releaseDue([{ actor: 'subagent', effect }]);
  }

  /** Returns the outcome of a subagent whose end was already reported, and does not report it again. */
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

  /** Returns the reason why activities must stop now. */
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
   * Returns an approval's question, and its call with the changed arguments, or null if the question is over.
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

  /** The subagent's history. Reading the log wakes a parked subagent. */
  get log(): SubagentLog {
    return (this.#log ??= new SubagentLog(this.#awake.log));
  }

  get messages(): readonly ModelMessage[] {
    return this.log.messages;
  }

  /** The secret in the note markers; undefined before the run is prepared, and for a run from an earlier version. */
  get marks(): string | undefined {
    return this.#known?.log.marks;
  }

  /** The usage of all model calls so far. */
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

  /** Adds an event to the mailbox. */
  receive(event: SubagentUnitEvent): void {
    this.#unit.receive('subagent', event);
  }

  /**
   * Checks that the mailbox has room before it accepts a request from outside.
   * @throws {CapacityError} `MAILBOX_FULL`
   */
  checkRoom(): void {
    this.#unit.checkRoom();
  }

  /** The budget limits that have been raised, with their new totals. */
  get raised(): BudgetLimits {
    return this.#known?.snapshot.context.raised ?? {};
  }

  /** False once the budget is used up and the subagent has to submit its partial work. */
  get isRaisable(): boolean {
    return this.#known?.snapshot.context.exhausted === null;
  }

  /**
   * The ending of the subagent: `stopping` once it is cancelled, `over` after any other ending, null while it
   * continues.
   */
  get leaving(): 'stopping' | 'over' | null {
    if (this.#ended) return this.#ended.outcome.status === 'cancelled' ? 'stopping' : 'over';
    return this.#isCancelled ? 'stopping' : null;
  }

  /** Whether the runtime itself calls the subagent's model, step by step. */
  get #isOwn(): boolean {
    const { relay, agent, createInstance } = this.definition.source;
    return relay === undefined && agent === undefined && createInstance === undefined;
  }

  /** Whether the subagent's own model is being called, so that a message can interrupt it without losing any work. */
  get isThinking(): boolean {
    const state = this.#known;
    return this.#isOwn && state !== null && snapshotOf(state).matches({ running: 'thinking' });
  }

  /** Whether this step is the last one for the subagent's own model, which can no longer call tools. */
  isLastStep(step: number): boolean {
    return this.#isOwn && (step >= this.definition.maxSteps || !this.isRaisable);
  }

  /** Records the new totals of raised budget limits. */
  raiseBudget(limits: BudgetLimits, by?: string): void {
    const raised = withoutUndefined(limits);
    this.receive({ type: 'budget.raised', limits: raised, ...(by === undefined ? {} : { by }) });
  }

  cancel(reason: string, by?: string): void {
    this.#isCancelled = true;
    this.receive({ type: 'subagent.cancel', reason, ...(by === undefined ? {} : { by }) });
  }

  /**
   * Sends the subagent a message: text from an ancestor, or a note. Each message id gets one receipt, possibly before
   * this call returns: `message.applied` or `message.refused`.
   * @throws {CapacityError} if the mailbox is full. In that case, there is no receipt for the message.
   */
  message(messageId: string, words: string | Note, mode: MessageMode, by?: string): void {
    const isTaken = this.hasTaken(messageId);
    if (this.#ended) this.#refuse([messageId], `It has ended: ${this.#ended.outcome.status}`);
    else if (isTaken && !this.#hasUnread(messageId)) this.#applied([messageId], this.step);
    else if (this.#unread?.has(messageId)) return;
    else if ((this.#unread?.size ?? 0) >= MAX_UNREAD)
      this.#refuse([messageId], `${MAX_UNREAD} messages are unread already`);
    else {
      // Recorded before `receive`, because `receive` may already cause the message to be read.
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

  /** Reports that the model call of this step reads these messages. */
  #applied(messageIds: readonly string[], step: number): void {
    // Some of them may have been accepted by an earlier process.
    for (const messageId of messageIds) this.#unread?.delete(messageId);
    this.#tell({ type: 'message.applied', ids: messageIds, step });
  }

  #refuse(messageIds: readonly string[], reason: string): void {
    if (messageIds.length > 0) this.#tell({ type: 'message.refused', ids: messageIds, reason });
  }

  #tell(news: SubagentNews): void {
    this.#ports.tell(this, news);
  }

  /** Returns whether the journal contains this message or answer. Does not wake a parked subagent. */
  hasTaken(messageId: string): boolean {
    return this.#known?.taken?.includes(messageId) ?? false;
  }

  /** Returns whether this message has been received and is still unread. */
  #hasUnread(messageId: string): boolean {
    const { unread = [] } = this.#known?.snapshot.context ?? {};
    return unread.some((one) => one.messageId === messageId);
  }

  /** Ends the budget. If `graceful`, the subagent then submits partial work in a last step. */
  exhaust(message: string, graceful = true): void {
    this.receive({ type: 'budget.exhausted', message, graceful });
  }

  /** Ends the subagent or starts its last step when the time in its budget has run out (SUBAGENT-7). */
  timeIsOver(message: string): void {
    const isHeldUp = this.state === 'spawning' || this.state === 'ready';
    this.exhaust(message, !isHeldUp);
    if (isHeldUp || this.#ended) return;
    const { scheduler } = this.#host.environment;
    this.#handIn = scheduler.schedule(() => this.exhaust(message, false), HAND_IN_MS);
  }

  /** Ends the subagent immediately, without its machine, because the grace period of a closing session is over. */
  kill(reason: string): void {
    // An outcome that is still being processed is reported as it is.
    this.#report();
    this.#end({
      status: 'lost',
      steps: this.step,
      error: { code: 'KILLED', message: `Killed: ${reason}`, retryable: true },
    });
  }

  /** Suspends the subagent so that a process can continue it later. Aborts its activity without reporting anything. */
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
    // The state is parsed once, and the next step uses the parsed state.
    this.#form = state;
    return event;
  }

  /**
   * Acknowledges a message that arrived too late, so that no caller waits for its entry. Also settles the call or
   * activity that a refused event should have settled (SUBAGENT-8).
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
    // The shape of the entry has already been validated.
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
      // `reduce` created the effect, so its params match its name.
      Subagent.#carriers[name](this, effect.params as never);
    }
  }

  crashed(error: unknown): void {
    this.#host.report(error, `subagent ${this.id}`);
    this.#end(this.#crashedBy(messageOf(error)));
  }

  /** Records that an earlier process ended the unit when it quarantined an entry. */
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
   * Resolves when all events sent so far have been written to the journal, or when the subagent has ended.
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

  /** Whether the journal contains the whole state and the host has received all notifications. */
  get isSettled(): boolean {
    return !this.isBusy && this.#form !== null && this.#ended?.isReported !== false;
  }

  /** The number of events that the current activity has not reported yet. */
  get owes(): number {
    return this.#work.owes;
  }

  /** The machine as its actor exposes it, or null until the first commit. */
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

  /** The path of the actor in the actor tree. */
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

  /** Passes a question to the user or to the parent. */
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

  /** Reports the outcome at most once, whether or not it was processed (SUBAGENT-1). */
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

/** Returns the `AbortSignal` reason for an ending that stops the work. */
function endReason(status: Ending['status'], { code, message }: Failure): Error {
  if (status === 'timed_out') return new TimeoutError(message, { code });
  if (status === 'cancelled' || code === 'KILLED')
    return new CancelledError(message.replace(/^(Cancelled|Killed): /, ''));
  if (code === 'BUDGET_EXHAUSTED') return new CapacityError(code, message);
  return new OffstageError(code, message);
}

/** Returns the abort reason for an event that stops the work but does not end the subagent. */
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
