// The host of a scope's subagents. It holds the scope's state, provides the services that the subagents call, and
// handles the end of each subagent. One host serves all subagents, so that ten thousand of them do not need an object
// each.
//
// Owns:     the subagents' open requests to their parents, the event stream, the cancellation of descendants, the sweep
//           timer, and the callback after the last subagent has ended.
// Does not: decide how many subagents may run (supervisor), run them (subagent), or answer those who call the service
//           (subagent-tree.ts).
//
// Invariants
//   SUBAGENT-TREE-4. No subagent outlives its parent. When a subagent ends, its descendants are cancelled, and killed
//       after a grace period. `stop` and `kill` do this to all subagents, and `whenEnded` calls back when the last one
//       has ended and every instance has been disposed.
//   SUBAGENT-TREE-5. When a subagent ends, everything that waits for it (for its end, an answer or a receipt) is
//       settled.
//   SUBAGENTS-REQUESTS-1. A request is settled once: it is answered, expires or is withdrawn. The asker is then
//       notified.
//   SUBAGENTS-REQUESTS-2. A request that was open in an earlier process and is asked again keeps its deadline.

import { callKey } from '../../values/json.ts';
import { withoutUndefined } from '../../values/without-undefined.ts';
import type { JSONValue, ModelMessage } from 'ai';
import { Subject, type Observable } from 'rxjs';
import { Budgets } from '../admission/budget.ts';
import { checkPriced } from '../subagent/config.ts';
import type { SessionLimits } from '../admission/limits.ts';
import type { Supervisor } from '../admission/supervisor.ts';
import type { BudgetLimits, SubagentConfig, SubagentDefinition } from '../contracts/config.ts';
import type { Outcome } from '../contracts/outcome.ts';
import type { SpawnRequest, SubagentChunk, SubagentService } from '../contracts/service-types.ts';
import type { AskedInput } from '../contracts/task.ts';
import { NoteMarks } from '../notes/note-marks.ts';
import type { Environment, Scheduler } from '../ports/environment.ts';
import type { MemoryOwner } from '../ports/working-memory.ts';
import { guarded } from '../runtime/guarded-stream.ts';
import { callSafely } from '../runtime/host.ts';
import { prepareInstance, type Briefing, type PreparedInstance } from '../subagent/instance.ts';
import type {
  PreparedBefore,
  ReturnedValue,
  Standing,
  SubagentHandle,
  SubagentNews,
  SubagentPorts,
} from '../subagent/subagent-ports.ts';
import { Messages, requestMessage } from './messages.ts';
import type { ScopePorts } from './scope-ports.ts';
import { SessionInstances } from './session-instances.ts';
import {
  pendingOf,
  reportOf,
  SubagentRegistry,
  viewOf,
  type OpenRequest,
  type SubagentRecord,
} from './subagent-registry.ts';
import { Waits } from './waits.ts';

export interface SubagentTreeOptions {
  /** The id of the scope. The supervisor has already opened the scope. */
  readonly id: string;
  readonly supervisor: Supervisor;
  readonly limits: SessionLimits;
  /** The budget for the whole scope. A limit that is absent does not apply. */
  readonly budget?: BudgetLimits | undefined;
  /** The ports of all subagents whose request does not name other ports. */
  readonly ports: ScopePorts;
  /** How long the descendants of a subagent that has ended may take to stop, in milliseconds. @defaultValue 5000 */
  readonly graceMs?: number;
}

export const DEFAULT_GRACE_MS = 5000;

type OwnProperties<T> = T extends unknown
  ? Omit<T, 'subagentId' | 'name' | 'parentId' | 'callId' | 'depth' | 'at'>
  : never;

/** The properties that are specific to a type of chunk. */
type ChunkBody = OwnProperties<SubagentChunk>;

/** The tools as their author defined them. */
type Tools = Readonly<Record<string, unknown>>;

export class SubagentHost implements SubagentPorts {
  /** The id of the scope. */
  readonly path: string;
  readonly ports: ScopePorts;
  readonly limits: SessionLimits;
  readonly supervisor: Supervisor;
  readonly budgets: Budgets;
  readonly registry: SubagentRegistry;
  readonly instances: SessionInstances;
  readonly messages: Messages;
  readonly waits: Waits;
  readonly #service: SubagentService;
  readonly #environment: Environment;
  readonly #cascade: Cascade;
  readonly #chunks = new Subject<SubagentChunk>();
  readonly #disposing = new Set<Promise<void>>();
  #whenEnded: (() => void)[] = [];
  #stopSweep: (() => void) | null = null;
  #isDisposed = false;

  /** `service`: the service that the tools of the subagents call. */
  constructor(options: SubagentTreeOptions, service: SubagentService) {
    const { id, ports, limits, supervisor, budget, graceMs = DEFAULT_GRACE_MS } = options;
    const { environment, price } = ports.host;
    checkPriced('`budget` of a scope', budget === undefined ? {} : { budget }, price);
    this.path = id;
    this.ports = ports;
    this.limits = limits;
    this.supervisor = supervisor;
    this.budgets = new Budgets(environment, budget);
    this.registry = new SubagentRegistry(environment.clock, limits);
    this.instances = new SessionInstances(ports.host);
    this.messages = new Messages(environment.ids);
    this.waits = new Waits(this.registry, this.instances, ports, limits.defaultAwaitTimeoutMs);
    this.#service = service;
    this.#environment = environment;
    this.#cascade = new Cascade(environment.scheduler, graceMs);
  }

  async prepare(
    handle: SubagentHandle,
    signal: AbortSignal,
    again?: PreparedBefore,
  ): Promise<PreparedInstance> {
    const record = this.#recordOf(handle.id);
    const { ports } = record.admission;
    const messages = record.opening;
    record.opening = undefined;
    const isOfEarlierVersion = again !== undefined && again.marks === undefined;
    const notes = isOfEarlierVersion ? null : this.#notesOf(record, again?.marks);
    return prepareInstance(
      ports.host,
      this.instances.definitionOf(record),
      ports.giver.model,
      signal,
      notes,
      (own) => this.#brief(record, own, messages, notes, again !== undefined),
    );
  }

  keepLarge(
    { id }: SubagentHandle,
    tools: Tools,
    returned: ReturnedValue,
  ): JSONValue | Promise<JSONValue> {
    const { outcomes } = this.#recordOf(id).admission.ports;
    return outcomes?.isLarge(returned.value) === true
      ? outcomes.keepLarge(this.#memoryOf(id), tools, returned)
      : returned.value;
  }

  settle(handle: SubagentHandle, tools: Tools, outcome: Outcome): Outcome | Promise<Outcome> {
    const { parentId, admission, progress } = this.#recordOf(handle.id);
    const { outcomes } = admission.ports;
    if (!outcomes) return outcome;
    const parent = parentId === null ? undefined : this.registry.get(parentId);
    const readerTools = parent?.admission.definition.tools ?? admission.ports.giver.tools();
    const owner = this.#memoryOf(handle.id);
    const { startedAt } = admission;
    return outcomes.settle(handle, { owner, startedAt, tools, readerTools, progress }, outcome);
  }

  /** Requests a slot. If a new run needs its instance's lock, it requests a slot only when it holds the lock. */
  requestSlot(
    id: string,
    resumed: boolean,
    grant: (history?: readonly ModelMessage[]) => void,
  ): void {
    const { path: scope, supervisor, instances } = this;
    if (resumed) {
      supervisor.requestSlot(scope, id, true, grant);
      return;
    }
    const record = this.#recordOf(id);
    instances.lock(record, (history) =>
      supervisor.requestSlot(scope, id, false, () => grant(history)),
    );
    if (instances.isLocked(record)) supervisor.waitsElsewhere(scope, id);
  }

  releaseSlot(id: string): void {
    this.supervisor.releaseSlot(this.path, id);
  }

  standingOf({ id }: SubagentHandle): Standing {
    const { budgets, path: sessionId, registry } = this;
    const record = this.#recordOf(id);
    const { parentId, depth, admission } = record;
    const { lineage, ports, requestedBy: requester } = admission;
    return {
      budget: budgets.of(id),
      caller: { sessionId, parentId, depth, requester, service: this.#service },
      answerableBy: this.#answerableBy(record),
      isRecoverable: ports.terms.isRecoverable !== false,
      // A getter, because every call needs the caller but few need its children.
      get atWork() {
        return registry.childrenOf(record).flatMap((child) => (child.isLive ? [child.id] : []));
      },
      // APPROVAL-6
      get lasting() {
        const { definition } = record.admission;
        return (ports.lasting ?? []).filter(({ answer, subagentId, subagentName }) =>
          answer.lasts === 'session'
            ? subagentName === definition.name
            : subagentId === id || lineage.includes(subagentId),
        );
      },
      isDenied: (toolName, input) =>
        ports.terms.denied?.has(callKey(toolName, input)) === true ||
        lineage.some((one) => registry.get(one)?.subagent?.hasDenied(toolName, input) === true),
    };
  }

  tell(subagent: SubagentHandle, news: SubagentNews): void {
    const record = this.#recordOf(subagent.id);
    const { ports } = record.admission;
    switch (news.type) {
      case 'alive':
        if (!this.registry.active(record)) return;
        this.emit(record, { type: 'recovered' });
        return ports.tell({ type: 'changed', view: viewOf(record) });
      case 'changed':
        if (subagent.progress !== null) record.said = null;
        this.registry.count(record);
        return ports.tell({ ...news, view: viewOf(record) });
      case 'streamed':
        return this.emit(record, news);
      case 'stepped':
        this.registry.count(record);
        return ports.tell({ ...news, view: viewOf(record) });
      case 'question.asked': {
        // An earlier version did not record the identities of an ancestor with the call.
        const answerableBy = news.question.answerableBy ?? this.#answerableBy(record);
        const question = withoutUndefined({ ...news.question, answerableBy });
        return ports.tell({ type: news.type, question });
      }
      case 'question.withdrawn':
      case 'lacks':
        return ports.tell(news);
      case 'input.requested':
        return this.#requestInput(record, news.asked);
      case 'input.withdrawn':
        this.#closeRequest(record, 'withdrawn');
        return;
      case 'message.taken':
        return this.messages.taken(news.messageId);
      case 'message.applied': {
        const { type, ids, step } = news;
        this.messages.settle(ids, { applied: true, step });
        for (const messageId of ids) this.emit(record, { type, messageId, step });
        return;
      }
      case 'message.refused': {
        const { type, ids, reason } = news;
        this.messages.settle(ids, { applied: false, reason });
        for (const messageId of ids) this.emit(record, { type, messageId, reason });
        return;
      }
      case 'call.in_doubt':
        return ports.tell({ ...news, view: viewOf(record) });
      case 'ended':
        this.#ended(record, news);
    }
  }

  #requestInput(record: SubagentRecord, asked: AskedInput): void {
    const { waits, messages, registry } = this;
    const { parentId, admission } = record;
    const isHandled = parentId === null && admission.ports.terms.handlesInput === true;
    // The journal also contains the events that this request causes.
    const isKnown = record.asked?.requestId === asked.requestId;
    const request = this.#openRequest(record, asked, isHandled);
    const pending = pendingOf(request);
    this.emit(record, { type: 'input.requested', request: pending });
    // In the meantime, a reader of the stream may have answered the request or ended the asker.
    if (record.request !== request || waits.asked(record)) return;
    // The program's handler died with its process, so the handler in this process receives the request.
    if (isKnown && !isHandled) return;
    const view = viewOf(record);
    if (parentId === null) {
      admission.ports.tell({ type: 'input.requested', view, request: pending });
      return;
    }
    const parent = registry.get(parentId);
    if (!parent?.isLive) return;
    // A request that is asked again after a crash keeps its message id, so that the parent reads it only once.
    const messageId = messages.idOf(parent, asked.requestId);
    void messages
      .send(parent, messageId, requestMessage(view, pending), 'steer')
      .then(({ applied }) => {
        if (applied) request.isTold = true;
      });
  }

  /** Returns a subagent's configuration in this scope, which may be its stand-in's. */
  keptAs(
    granted: SubagentConfig,
    parent: SubagentRecord | null,
    ports: ScopePorts,
  ): SubagentConfig {
    const hasStandIn = parent !== null && this.budgets.of(parent.id) === null;
    const { terms } = ports;
    const kept = (hasStandIn && terms.standIn?.(granted)) || granted;
    return terms.stepsAreJobs === true && kept.runs !== 'jobs' ? { ...kept, runs: 'jobs' } : kept;
  }

  /** Returns the limits that a subagent running elsewhere inherits, or null if no subagent has this id. */
  boundsOf(id: string): Bounds | null {
    const record = this.registry.get(id);
    if (!record) return null;
    const { lineage, ports } = record.admission;
    const above = lineage.flatMap((one) => this.registry.get(one)?.subagent?.deniedKeys ?? []);
    const answerableBy = this.#answerableBy(record);
    return {
      depth: record.depth - 1,
      denied: [...(ports.terms.denied ?? []), ...above],
      ...(answerableBy ? { answerableBy } : {}),
    };
  }

  /** The events of all subagents from now on. Completes at `dispose`. */
  get events(): Observable<SubagentChunk> {
    return guarded(this.#chunks, this.ports.host, 'events');
  }

  emit({ id, parentId, depth, admission }: SubagentRecord, body: ChunkBody): void {
    if (!this.#chunks.observed) return;
    this.#chunks.next({
      subagentId: id,
      name: admission.definition.name,
      parentId,
      callId: admission.callId,
      depth,
      at: this.now(),
      ...body,
    });
  }

  now(): number {
    return this.#environment.clock.now();
  }

  /** Answers a subagent's open request. `messageId`: the id of the message that contains the answer. */
  answerRequest(
    record: SubagentRecord,
    content: string,
    { messageId, by }: { readonly messageId?: string; readonly by?: string | undefined } = {},
  ): void {
    const requestId = this.#closeRequest(record, 'answered');
    if (requestId === null) return;
    const answer = { userResponse: content, ...(by === undefined ? {} : { by }) };
    record.subagent?.receive({
      type: 'question.answered',
      requestId,
      answer,
      ...(messageId === undefined ? {} : { messageId }),
    });
  }

  /** Withdraws a request that will not be answered. */
  dismissRequest(record: SubagentRecord): void {
    const requestId = this.#closeRequest(record, 'withdrawn');
    if (requestId !== null)
      record.subagent?.receive({ type: 'question.withdrawn', requestId, reason: 'not answered' });
  }

  /** Sets or cancels the sweep timer, depending on whether a sweep can change anything. */
  armSweep(): void {
    const { sweepIntervalMs } = this.limits;
    if (this.#isDisposed || sweepIntervalMs === 0 || !this.registry.needsSweep) {
      this.#stopSweep?.();
      this.#stopSweep = null;
      return;
    }
    this.#stopSweep ??= this.#environment.scheduler.schedule(
      () => {
        this.#stopSweep = null;
        this.sweep();
      },
      sweepIntervalMs,
      { isBackground: true },
    );
  }

  /** Marks hung subagents and forgets old results. Returns the number of results that were forgotten. */
  sweep(): number {
    for (const record of this.registry.markHung()) this.#hangs(record);
    const forgotten = this.registry.forgetDue();
    this.armSweep();
    return forgotten;
  }

  /** Calls back once all subagents have ended and every instance is disposed, or immediately if they already are. */
  whenEnded(callback: () => void): void {
    this.#whenEnded.push(callback);
    this.#checkEnded();
  }

  /**
   * Cancels waits, messages and timers, because the subagents will continue in another process, or later in this one.
   */
  stop(): void {
    this.waits.stop();
    this.messages.stop();
    for (const { request } of this.registry.asking) request?.stopClock();
    this.budgets.stop();
  }

  /** Stops all timers and streams. No other method may be called after this. */
  dispose(): void {
    this.#isDisposed = true;
    this.armSweep();
    this.#chunks.complete();
    void this.instances.dispose();
  }

  #ended(record: SubagentRecord, news: Extract<SubagentNews, { readonly type: 'ended' }>): void {
    const { outcome, disposed } = news;
    const { registry, instances } = this;
    const { id, subagent, parentId } = record;
    if (!subagent) return;
    const at = this.now();
    const children = registry.childrenOf(record);
    this.#closeRequest(record, 'withdrawn');
    this.messages.ended(record);
    registry.ended(record, outcome, at);
    registry.count(record);
    this.#cascade.ended(record);
    this.#cascade.begin(
      record,
      children.filter(({ isLive }) => isLive),
    );
    // A parent that has ended does not read results.
    for (const child of children) registry.markDelivered(child, at);
    if (parentId !== null && !registry.get(parentId)?.isLive) registry.markDelivered(record, at);
    registry.keepResult(record, at);
    this.supervisor.ended(this.path, id);
    this.budgets.ended(id);
    instances.ended(record, () => subagent.messages);
    this.#disposing.add(disposed);
    void disposed.then(() => {
      this.#disposing.delete(disposed);
      this.#checkEnded();
    });
    this.waits.ended(record);
    this.emit(record, { type: 'ended', outcome });
    const { ports, request } = record.admission;
    const isDelivered = record.deliveredAt !== null;
    ports.tell({ ...news, view: viewOf(record), isDelivered, request });
    this.armSweep();
  }

  #hangs(record: SubagentRecord): void {
    const { id, admission, lastActiveAt, subagent } = record;
    const { definition, ports } = admission;
    this.emit(record, { type: 'hung', lastActiveAt });
    ports.tell({ type: 'changed', view: viewOf(record) });
    const { onHung, name } = definition;
    if (onHung === 'cancel') subagent?.cancel('it showed no sign of life for too long');
    else if (typeof onHung === 'function')
      callSafely(ports.host, `onHung of ${name}`, () => onHung({ id, name, lastActiveAt }));
  }

  #checkEnded(): void {
    if (this.registry.liveCount > 0 || this.#disposing.size > 0) return;
    if (this.#whenEnded.length === 0) return;
    const waiting = this.#whenEnded;
    this.#whenEnded = [];
    const callBack = (): void => {
      for (const callback of waiting) callback();
    };
    if (this.instances.isEmpty) callBack();
    else void this.instances.dispose().then(callBack);
  }

  #openRequest(record: SubagentRecord, asked: AskedInput, isHandled: boolean): OpenRequest {
    const { defaultRequestTimeoutMs } = this.limits;
    const { requestId, question, context, timeoutMs = defaultRequestTimeoutMs } = asked;
    const now = this.now();
    const known = record.asked?.requestId === requestId ? record.asked : null;
    const { askedAt = now, isTold = false } = known ?? {};
    const dueAt = askedAt + timeoutMs;
    record.asked = null;
    this.#closeRequest(record, 'withdrawn');
    const request: OpenRequest = {
      requestId,
      question,
      ...(context === undefined ? {} : { context }),
      askedAt,
      dueAt,
      stopClock: this.#environment.scheduler.schedule(
        () => {
          if (record.request?.requestId !== requestId) return;
          this.#closeRequest(record, 'expired');
          record.subagent?.receive({ type: 'question.expired', requestId });
        },
        Math.max(0, dueAt - now),
      ),
      isTold,
      isHandled,
    };
    this.registry.asks(record, request);
    return request;
  }

  /** Closes a subagent's open request and returns its id, or null if none is open. */
  #closeRequest(record: SubagentRecord, how: 'answered' | 'expired' | 'withdrawn'): string | null {
    const { request } = record;
    if (!request) return null;
    const { requestId } = request;
    request.stopClock();
    this.registry.asksNoMore(record);
    this.emit(record, { type: 'input.settled', requestId, how });
    if (record.parentId === null) record.admission.ports.tell({ type: 'input.settled', requestId });
    return requestId;
  }

  async #brief(
    { id, parentId, admission }: SubagentRecord,
    own: SubagentDefinition,
    messages: SpawnRequest['messages'],
    notes: NoteMarks | null,
    isAgain: boolean,
  ): Promise<Briefing> {
    const { ports, task, lineage, request } = admission;
    const parent = parentId === null ? undefined : this.registry.get(parentId);
    const marks = parent?.subagent?.marks;
    const ofParent = marks === undefined ? undefined : new NoteMarks(marks);
    const written = parentId === null ? ports.giver.notes : ofParent;
    // The notes in a forked conversation keep the markers of the agent that spawned the subagent.
    const forked = messages && notes && written ? notes.rewritten(messages, written) : messages;
    const briefing = await ports.brief(own, task, forked, notes);
    // The journal already contains the first messages.
    if (isAgain || !notes || own.lineage !== true || !ports.outcomes) return briefing;
    const seen = this.registry.allSeenBy({ subagentId: parentId });
    return ports.outcomes.withLineage(briefing, {
      subagentId: id,
      task,
      giver: { sessionId: this.path, path: lineage },
      tools: own.tools ?? {},
      request,
      ended: seen.filter(({ isLive }) => !isLive).map(reportOf),
      notes,
    });
  }

  /**
   * Returns the note markers of a run. The runs of one instance share their markers, because each reads the notes of
   * the others.
   */
  #notesOf(record: SubagentRecord, known: string | undefined): NoteMarks {
    const { ids } = record.admission.ports.host.environment;
    const marks = known ?? this.instances.marksOf(record) ?? ids.next('mark');
    this.instances.marked(record, marks);
    return new NoteMarks(marks);
  }

  #memoryOf(id: string): MemoryOwner {
    return { sessionId: this.path, path: [...this.#recordOf(id).admission.lineage, id] };
  }

  /**
   * Returns the identities that may answer. A configuration without `answerableBy` uses the setting of the nearest
   * ancestor that has one.
   */
  #answerableBy({ admission }: SubagentRecord): readonly string[] | undefined {
    const above = admission.lineage.toReversed().map((id) => this.registry.get(id)?.admission);
    return [admission, ...above].find((one) => one?.definition.answerableBy)?.definition
      .answerableBy;
  }

  /** Returns the record of a subagent. A subagent that sends a notification is live, so it has a record. */
  #recordOf(id: string): SubagentRecord {
    return this.registry.get(id) as SubagentRecord;
  }
}

/** The limits that a subagent inherits. Plain JSON. */
export interface Bounds {
  /** The number of its ancestors. */
  readonly depth: number;
  /** Keys of the calls that the user denied to an ancestor. */
  readonly denied: readonly string[];
  readonly answerableBy?: readonly string[];
}

interface Grace {
  readonly left: Set<SubagentRecord>;
  readonly stopClock: () => void;
}

/**
 * Ends the descendants of a subagent that has ended: cancels them immediately, and kills any that remain after a grace
 * period. Tracks the grace periods: one for each ended subagent with live children.
 */
export class Cascade {
  readonly #scheduler: Scheduler;
  readonly #graceMs: number;
  readonly #graces = new Map<string, Grace>();

  constructor(scheduler: Scheduler, graceMs: number) {
    this.#scheduler = scheduler;
    this.#graceMs = graceMs;
  }

  /** Cancels the children of a subagent that has ended. When a child ends, its own children are cancelled in turn. */
  begin(parent: SubagentRecord, children: readonly SubagentRecord[]): void {
    if (children.length === 0) return;
    const reason = `${parent.admission.definition.name} (${parent.id}), which it worked for, has ended`;
    const left = new Set(children);
    const stopClock = this.#scheduler.schedule(() => {
      this.#graces.delete(parent.id);
      for (const child of left) child.subagent?.kill(reason);
    }, this.#graceMs);
    this.#graces.set(parent.id, { left, stopClock });
    for (const child of children) child.subagent?.cancel(reason);
  }

  ended(child: SubagentRecord): void {
    const { parentId } = child;
    const grace = parentId === null ? undefined : this.#graces.get(parentId);
    if (!grace || parentId === null) return;
    grace.left.delete(child);
    if (grace.left.size > 0) return;
    grace.stopClock();
    this.#graces.delete(parentId);
  }
}
