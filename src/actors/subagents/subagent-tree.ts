// The tree of a scope's subagents. It admits subagents and implements the service that a session, a program and the
// subagents' tools call.
//
// Owns:     admission, and the rules for what the scope's subagents may do to each other.
// Does not: decide how many subagents may run (supervisor), serve running subagents or handle what happens when they
//           end (subagent-host.ts), or decide when a wait ends (waits.ts).
//
// Invariants
//   DELEGATION-6. A requester may read every subagent that it can see. Only an ancestor of a subagent may end it or
//       answer its requests. A subagent that the requester cannot see is treated as nonexistent.
//   SUBAGENT-TREE-3. Every spawn request is accepted or rejected once. The end of each accepted subagent is reported
//       once.

import type { Shown } from '../runtime/hosting.ts';
import type { Observable } from 'rxjs';
import { checkLength } from '../../values/checks.ts';
import { clip, head } from '../../values/clip.ts';
import { ConfigurationError, messageOf } from '../../values/errors.ts';
import { shown } from '../../values/plain-checks.ts';
import { readTraceparent } from '../../values/traceparent.ts';
import { withoutUndefined } from '../../values/without-undefined.ts';
import { checkedBy, type VouchedFor } from '../contracts/identity.ts';
import type {
  AwaitOptions,
  AwaitResult,
  CheckResult,
  DelegationErrorCode,
  ListOptions,
  MessageReceipt,
  ProgressNote,
  RaiseResult,
  Refused,
  Requester,
  SendRequest,
  SendResult,
  SpawnReceipt,
  SpawnRequest,
  SubagentChunk,
  SubagentReport,
  SubagentService,
} from '../contracts/service-types.ts';
import type { Ids } from '../ports/environment.ts';
import type { Jobs } from '../ports/jobs.ts';
import type { SubagentState, SubagentView } from '../contracts/session-views.ts';
import type { BudgetLimits, SubagentDefinition } from '../contracts/config.ts';
import type { SubagentTask } from '../contracts/task.ts';
import type { Failure } from '../../machines/index.ts';
import type { Usage } from '../contracts/usage.ts';
import { callSafely, type Host } from '../runtime/host.ts';
import { checkPriced, checkSubagentConfig } from '../subagent/config.ts';
import { SPAWNED, type SpawnedEvent } from '../subagent/subagent-events.ts';
import { Subagent } from '../subagent/subagent.ts';
import { constraintOn, granterOf, grantTools, sourceOf } from './grants.ts';
import { peerMessage } from './messages.ts';
import { failure, idReused, isOther, refusal, requestDigest } from './refusal.ts';
import { restoreSubagents, type Restored, type RestoredUnits } from './restoration.ts';
import type { ScopePorts } from './scope-ports.ts';
import { argument } from './service-arguments.ts';
import { SubagentHost, type Bounds, type SubagentTreeOptions } from './subagent-host.ts';
import {
  reportOf,
  SubagentRecord,
  viewOf,
  type Admission,
  type SubagentTreeSnapshot,
  MAX_UNDELIVERED,
  MAX_UNDELIVERED_CHARS,
} from './subagent-registry.ts';
import type { Waits } from './waits.ts';

const WAITING: ReadonlySet<SubagentState> = new Set([
  'waiting_for_input',
  'waiting_for_children',
  'sleeping',
]);

/** The number of recent progress notes that are stored for each subagent. */
export const PROGRESS_RING = 50;
const MAX_NOTE_CHARS = 2000;
const MAX_TITLE_CHARS = 200;

const noLineage: readonly string[] = [];

export class SubagentTree implements SubagentService {
  readonly #host: SubagentHost;
  #isStopping = false;

  constructor(options: SubagentTreeOptions) {
    this.#host = new SubagentHost(options, this);
  }

  get id(): string {
    return this.#host.path;
  }

  get events(): Observable<SubagentChunk> {
    return this.#host.events;
  }

  /** The open waits for the scope's subagents. */
  get waits(): Pick<Waits, 'count' | 'isAwaited' | 'isAwaitedByLead' | 'isWaiting' | 'userWaits'> {
    return this.#host.waits;
  }

  /** The subagents that have not ended, oldest first. */
  get live(): readonly Subagent[] {
    return this.#host.registry.live.flatMap(({ subagent }) => subagent ?? []);
  }

  /**
   * The records of the subagents without a parent, oldest first, including those that have ended and are still stored.
   */
  get uppermost(): readonly SubagentRecord[] {
    return this.#host.registry.all.filter(({ parentId }) => parentId === null);
  }

  /** All subagents, including ended ones that are still stored. */
  get views(): readonly SubagentView[] {
    return this.#host.registry.all.map(viewOf);
  }

  /** The usage of all subagents, including forgotten ones. The object is replaced only when the usage changes. */
  get usage(): Usage {
    return this.#host.registry.usage;
  }

  /** Whether any subagent has an event that is not in the journal yet. */
  get isBusy(): boolean {
    return this.live.some(({ isBusy }) => isBusy);
  }

  /**
   * Resolves when all events sent to the subagents so far are in the journal.
   * @throws {CancelledError} (rejects) if a subagent is suspended first.
   */
  async whenHandled(): Promise<void> {
    await Promise.all(this.live.map((subagent) => subagent.whenHandled()));
  }

  /** Whether every live subagent is waiting for an external event, and nothing is waiting for a subagent. */
  get isIdle(): boolean {
    const isWaiting = (subagent: Subagent): boolean =>
      subagent.isSettled && WAITING.has(subagent.state);
    return this.waits.count === 0 && this.live.every(isWaiting);
  }

  /** When the first deadline of any subagent is due, in milliseconds since 1970; `Infinity` if none is pending. */
  get nextDueAt(): number {
    const { registry, budgets } = this.#host;
    const asked = [...registry.asking].map(({ request }) => request?.dueAt ?? Infinity);
    const live = this.live.map((subagent) => subagent.nextDueAt);
    return [...asked, ...live].reduce((next, at) => Math.min(next, at), budgets.nextDueAt);
  }

  /** Returns a live subagent, or undefined if it has ended or is unknown. */
  get(id: string): Subagent | undefined {
    return this.#host.registry.get(id)?.subagent ?? undefined;
  }

  /** Returns the limits that a subagent running elsewhere inherits, or null if no subagent has this id. */
  boundsOf(id: string): Bounds | null {
    return this.#host.boundsOf(id);
  }

  /** Returns the live subagent that the lead agent's call started. */
  ofCall(callId: string): Subagent | undefined {
    return this.#host.registry.ofCall(callId)?.subagent ?? undefined;
  }

  /** The live subagents' machines, as their actors expose them. */
  *machines(): Iterable<Shown> {
    for (const { subagent } of this.#host.registry.live) {
      const own = subagent?.shown;
      if (own) yield own;
    }
  }

  /** The live subagents, by the call of the lead agent that each works on. */
  get liveCalls(): ReadonlyMap<string, Subagent> {
    const calls = new Map<string, Subagent>();
    for (const { parentId, admission, subagent } of this.#host.registry.live)
      if (parentId === null && admission.callId !== null && subagent)
        calls.set(admission.callId, subagent);
    return calls;
  }

  spawn(request: SpawnRequest): SpawnReceipt {
    return this.spawnFor(this.#host.ports, request);
  }

  #idFor({ idempotencyKey }: SpawnRequest, ids: Ids): string {
    const named = idempotencyKey === undefined ? undefined : ids.of?.('sub', idempotencyKey);
    return named === undefined || this.#host.registry.get(named) ? ids.next('sub') : named;
  }

  /** Spawns a subagent, like `spawn`. A subagent without a parent works for `ports`, and its descendants do too. */
  spawnFor(ports: ScopePorts, given: SpawnRequest): SpawnReceipt {
    const request = argument('spawn', 'spawn(request)', given);
    const { path: scope, registry, limits, supervisor, budgets, instances } = this.#host;
    if (this.#isStopping) return rejected('SESSION_CLOSED', 'The session is being closed');
    const known = registry.withKey(request.idempotencyKey);
    if (known) {
      const { requestDigest: digest } = known.spawned;
      return isOther(digest, requestDigest(request.config.name, request.task))
        ? rejected('ID_REUSED', idReused(known.admission.idempotencyKey ?? '').message)
        : { status: 'accepted', subagentId: known.id, isRepeat: true };
    }
    const { subagentId: parentId } = request.caller;
    const parent = parentId === null ? null : registry.get(parentId);
    if (parent === undefined || parent?.isLive === false)
      return rejected('INVALID_STATE', `${parentId} has ended: it can have no new subagents`);
    const works = parent?.admission.ports ?? ports;
    const granted = grantTools(sourceOf(request.config), request.grant, granterOf(parent, ports));
    if (!granted.ok) return { status: 'rejected', error: granted.error };
    const kept = this.#host.keptAs(granted.config, parent, works);
    const definition = checkSubagentConfig(kept, kept.name);
    checkPriced(definition.name, definition, works.host.price);
    const depth = (parent?.depth ?? 0) + 1;
    const maxDepth = Math.min(
      request.maxDepth ?? Infinity,
      parent?.admission.maxDepth ?? limits.maxDepth,
    );
    const refused = constraintOn(
      {
        definition,
        task: request.task,
        depth,
        maxDepth,
        adapterName: request.adapterName ?? definition.name,
        modelName: request.modelName,
        model: definition.model ?? works.giver.model,
      },
      limits,
    );
    if (refused) return { status: 'rejected', error: refused.error };
    if (registry.isFull)
      return rejected(
        'SESSION_LIMIT',
        `${MAX_UNDELIVERED} results, or ${MAX_UNDELIVERED_CHARS} characters of results, wait to be looked at`,
      );
    const id = this.#idFor(request, works.host.environment.ids);
    const full = supervisor.admit(scope, id);
    if (full) return rejected(full.code, full.message);
    const budgetRefusal = budgets.admit(id, parentId, definition.budget, (message) =>
      registry.get(id)?.subagent?.timeIsOver(message),
    );
    if (budgetRefusal) {
      supervisor.retract(scope, id);
      return rejected('BUDGET_EXCEEDED', budgetRefusal.message);
    }
    const { callId = null } = request;
    const subagent = new Subagent(works.host, id, definition, request.task, this.#host);
    const admission: Admission = {
      id,
      definition,
      task: request.task,
      title: titleOf(definition, request.task, works.host),
      lineage: parent ? [...parent.admission.lineage, parent.id] : noLineage,
      maxDepth,
      denied: granted.denied,
      callId,
      workstreamId: request.workstreamId ?? parent?.admission.workstreamId ?? null,
      idempotencyKey: request.idempotencyKey ?? null,
      request: parent ? parent.admission.request : requestOf(callId, works),
      requestedBy: parent ? parent.admission.requestedBy : requesterOf(request, works),
      ports: works,
      startedAt: this.#host.now(),
    };
    const record = new SubagentRecord(
      admission,
      subagent,
      spawnedEvent(admission, request, works.host.jobs),
    );
    registry.add(record);
    instances.enter(record);
    const { description, args } = request.task;
    const { workstreamId } = record.admission;
    // Started before the events are emitted, because a reader of the stream may end the subagent as soon as it is
    // announced.
    subagent.start(record.spawned);
    this.#host.emit(record, { type: 'spawned', task: description, input: args, workstreamId });
    if (record.isLive) works.tell({ type: 'changed', view: viewOf(record) });
    this.#host.armSweep();
    return { status: 'accepted', subagentId: id };
  }

  async checkInputs(
    request: Pick<SpawnRequest, 'config' | 'task' | 'caller' | 'idempotencyKey'>,
  ): Promise<Refused | null> {
    const { config, task, caller, idempotencyKey } = argument(
      'inputsOf',
      'checkInputs(request)',
      request,
    );
    const { registry, ports } = this.#host;
    const parent = registry.get(caller.subagentId ?? '');
    const { outcomes } = parent?.admission.ports ?? ports;
    if (config.lineage !== true || !outcomes || registry.withKey(idempotencyKey)) return null;
    const path = parent ? [...parent.admission.lineage, parent.id] : [];
    const missing = await outcomes.missingInputs(task.args, { sessionId: this.id, path });
    return missing === null ? null : refusal('INPUT_NOT_FOUND', missing);
  }

  check(id: string, requester: Requester): CheckResult {
    argument('id', 'check(id)', id);
    const by = argument('requester', 'check(id, requester)', requester);
    const record = this.#host.registry.seenBy(by, id);
    if (!record) return notFound(id);
    const report = this.#host.registry.read(record, by);
    this.#host.armSweep();
    return { ok: true, report };
  }

  list(requester: Requester, options: ListOptions = {}): readonly SubagentReport[] {
    const { includeEnded = false } = argument('list', 'list(requester, options)', options);
    return this.#host.registry
      .allSeenBy(argument('requester', 'list(requester)', requester))
      .filter((record) => includeEnded || record.isLive)
      .map(reportOf);
  }

  send(id: string, given: SendRequest, asker: Requester, options: VouchedFor = {}): SendResult {
    const { registry, messages } = this.#host;
    argument('id', 'send(id)', id);
    const message = argument('message', 'send(id, message)', given);
    checkLength('send(id, message)', message.content);
    const requester = argument('requester', 'send(id, message, requester)', asker);
    const by = checkedBy('send(id, message, requester, options)', options);
    const record = registry.seenBy(requester, id);
    if (!record) return notFound(id);
    if (!record.isLive) return hasEnded(record);
    if (message.inResponseTo !== undefined)
      return this.#answer(record, message, message.inResponseTo, requester, by);
    if (id === requester.subagentId)
      return refusal('INVALID_STATE', `${id} cannot send a message to itself`);
    const { content, mode = 'steer', idempotencyKey } = message;
    const sender = registry.get(requester.subagentId ?? '');
    const words =
      record.isBelow(requester.subagentId) || !sender ? content : peerMessage(sender, content);
    const messageId = messages.idOf(record, idempotencyKey);
    const isTaken = record.subagent?.hasTaken(messageId) === true;
    if (!isTaken && !messages.isOnItsWay(messageId))
      this.#host.emit(record, {
        type: 'message.sent',
        messageId,
        content,
        mode,
        inResponseTo: null,
        ...(by === undefined ? {} : { by }),
      });
    // Created before the message is sent, because the message may be in the journal before `send` returns.
    const written = messages.written(record, messageId);
    const receipt = messages.send(record, messageId, words, mode, by);
    if (isTaken) messages.taken(messageId);
    return { ok: true, messageId, resolvedPending: false, receipt, written };
  }

  async await(
    ids: readonly string[],
    requester: Requester,
    options: AwaitOptions = {},
  ): Promise<AwaitResult> {
    const result = await this.#host.waits.await(
      argument('ids', 'await(ids)', ids),
      argument('requester', 'await(ids, requester)', requester),
      argument('await', 'await(ids, requester, options)', options),
    );
    this.#host.armSweep();
    return result;
  }

  cancel(id: string, requester: Requester, reason?: string, options: VouchedFor = {}): boolean {
    const by = checkedBy('cancel(id, requester, reason, options)', options);
    const { subagentId } = argument('requester', 'cancel(id, requester)', requester);
    const why = argument('reason', 'cancel(id, requester, reason)', reason) ?? 'cancelled';
    const record = this.#host.registry.get(argument('id', 'cancel(id)', id));
    if (!record?.isLive || !record.isBelow(subagentId)) return false;
    record.subagent?.checkRoom();
    record.subagent?.cancel(why, by);
    return true;
  }

  raiseBudget(
    id: string,
    given: BudgetLimits,
    asker: Requester,
    options: VouchedFor = {},
  ): RaiseResult {
    const { registry, budgets } = this.#host;
    argument('id', 'raiseBudget(id)', id);
    const limits = argument('limits', 'raiseBudget(id, limits)', given);
    const requester = argument('requester', 'raiseBudget(id, limits, requester)', asker);
    const by = checkedBy('raiseBudget(id, limits, requester, options)', options);
    const record = registry.seenBy(requester, id);
    if (!record) return notFound(id);
    const { subagent } = record;
    if (!record.isLive || !subagent) return hasEnded(record);
    if (!record.isBelow(requester.subagentId))
      return refusal('INVALID_STATE', `Only an agent above ${id} may raise its budget`);
    if (!subagent.isRaisable)
      return refusal('INVALID_STATE', `The budget of ${id} is used up: it hands in what it has`);
    subagent.checkRoom();
    const refused = budgets.raise(id, limits);
    if (refused) return notRaised(refused);
    subagent.raiseBudget(limits, by);
    return { ok: true, budget: budgets.of(id)?.report ?? {} };
  }

  /** Raises limits in the scope's budget. The scope's owner records the new limits, which `restore` needs. */
  raiseOwnBudget(given: BudgetLimits): RaiseResult {
    const limits = argument('limits', 'raiseBudget(null, limits)', given);
    const { budgets } = this.#host;
    if (this.#isStopping) return refusal('SESSION_CLOSED', 'The session is being closed');
    const refused = budgets.raise(null, limits);
    return refused ? notRaised(refused) : { ok: true, budget: budgets.report };
  }

  report(
    id: string,
    note: { readonly update: string; readonly percent: number | null },
  ): { readonly ok: true } | Refused {
    argument('id', 'report(id)', id);
    const { update, percent } = argument('note', 'report(id, note)', note);
    const { registry } = this.#host;
    const record = registry.get(id);
    if (!record) return notFound(id);
    if (!record.isLive) return hasEnded(record);
    if (percent !== null && !(percent >= 0 && percent <= 100))
      return refusal('INVALID_STATE', `Expected percent to be 0 to 100 or null, got ${percent}`);
    const noted: ProgressNote = {
      update: clip(update, MAX_NOTE_CHARS),
      percent,
      at: this.#host.now(),
    };
    record.progress = [...record.progress, noted].slice(-PROGRESS_RING);
    record.said = noted.update;
    if (registry.active(record)) this.#host.emit(record, { type: 'recovered' });
    this.#host.emit(record, { type: 'progress', update: noted.update, percent });
    record.admission.ports.tell({ type: 'progressed', view: viewOf(record), note: noted });
    return { ok: true };
  }

  delivered(id: string): void {
    const record = this.#host.registry.get(argument('id', 'delivered(id)', id));
    if (!record) return;
    this.#host.registry.delivered(record);
    this.#host.armSweep();
  }

  sweep(): number {
    return this.#host.sweep();
  }

  /**
   * Settles a request with the answer of the lead agent or program (null for no answer). An answer that comes too late
   * has no effect.
   */
  settleRequest(id: string, requestId: string, content: string | null): void {
    const record = this.#host.registry.get(id);
    if (record?.request?.requestId !== requestId) return;
    if (content === null) this.#host.dismissRequest(record);
    else this.#host.answerRequest(record, content);
  }

  /**
   * Restores the subagents in the journal, grouped by the ports that they work for. None of them resumes yet. `known`:
   * data from earlier processes about session instances, forgotten subagents and increases of the scope's budget.
   */
  restore(
    units: RestoredUnits,
    scopes: readonly ScopePorts[],
    known: Omit<SubagentTreeSnapshot, 'subagents'> & { readonly raised?: BudgetLimits } = {
      gone: [],
      histories: {},
    },
  ): Restored {
    const { registry, supervisor, budgets, instances } = this.#host;
    const { gone, histories, awakeMs = 0, raised } = known;
    instances.remember(histories);
    budgets.continue(awakeMs, raised);
    const restored = restoreSubagents(this.#host, units, scopes);
    registry.countRestored(gone);
    // Done after the restoration, because the budgets of forgotten subagents were parts of the budgets of restored
    // ones.
    for (const group of gone) {
      registry.remember(group);
      supervisor.remember(this.id, group.agents);
      budgets.charge(group.parentId, group);
    }
    return restored;
  }

  /** Returns the state of all subagents, for `restore`, or null while any of them is busy. */
  toSnapshot(): SubagentTreeSnapshot | null {
    if (!this.live.every(({ isSettled }) => isSettled)) return null;
    const { registry, instances, budgets } = this.#host;
    return { ...registry.toSnapshot(), histories: instances.histories, awakeMs: budgets.awakeMs };
  }

  /** Resumes the restored subagents, and reports those that have ended. */
  resume({ live, pending, lost }: Restored): void {
    for (const { record, reason } of lost)
      record.subagent?.lose({ code: 'NOT_RECOVERABLE', message: reason, retryable: true });
    for (const record of pending) this.#resumed(record);
    // Subagents that were running get their run slots before all others.
    const ran = live.filter(({ subagent }) => subagent?.state === 'running');
    for (const record of new Set([...ran, ...live])) {
      this.#resumed(record);
      // The parent ended, but its child had not been cancelled yet (SUBAGENT-TREE-4).
      const parent = record.parentId === null ? null : this.#host.registry.get(record.parentId);
      if (parent !== null && parent?.isLive !== true)
        record.subagent?.cancel('the subagent that it worked for has ended');
    }
    this.#host.armSweep();
  }

  /** Repeats the `ended` events that may not have reached their recipients. */
  protected repeatEnds(records: readonly SubagentRecord[]): void {
    for (const record of records)
      if (record.outcome) this.#host.emit(record, { type: 'ended', outcome: record.outcome });
  }

  /** Suspends all subagents. This process then does not report their ends. */
  release(): void {
    for (const subagent of this.live) subagent.suspend();
    this.#host.stop();
    this.#host.dispose();
  }

  /** Stops admitting subagents, and cancels all live ones. */
  stop(reason: string): void {
    this.#isStopping = true;
    for (const { subagent } of this.#host.registry.live) subagent?.cancel(reason);
  }

  /** Stops admitting subagents, and ends all live ones immediately. */
  kill(reason: string): void {
    this.#isStopping = true;
    for (const { subagent } of this.#host.registry.live) subagent?.kill(reason);
  }

  /** Calls back once all subagents have ended and every instance is disposed, or immediately if they already are. */
  whenEnded(callback: () => void): void {
    this.#host.whenEnded(callback);
  }

  /** Stops all timers and streams. No other method may be called after this. */
  dispose(): void {
    this.#host.dispose();
  }

  #answer(
    record: SubagentRecord,
    { content, idempotencyKey }: SendRequest,
    requestId: string,
    requester: Requester,
    by: string | undefined,
  ): SendResult {
    const { messages } = this.#host;
    const { request, id, subagent } = record;
    if (!record.isBelow(requester.subagentId))
      return refusal('INVALID_STATE', `Only an agent above ${id} may answer what it asks`);
    const messageId = messages.idOf(record, idempotencyKey);
    const step = subagent?.step ?? 0;
    const answered = {
      ok: true,
      messageId,
      resolvedPending: true,
      receipt: Promise.resolve<MessageReceipt>({ applied: true, step }),
    } as const;
    // The same answer is already in the journal, or will be shortly.
    if (messages.isOnItsWay(messageId))
      return { ...answered, written: messages.written(record, messageId) };
    if (subagent?.hasTaken(messageId)) return { ...answered, written: Promise.resolve() };
    if (!request) return refusal('INVALID_STATE', `${id} has no open request "${requestId}"`);
    if (request.requestId !== requestId)
      return refusal(
        'REQUEST_PENDING',
        `${id} waits for the answer to "${request.requestId}", not to "${requestId}"`,
      );
    // The answer would not be written, but the question remains open in the process that resumes the subagent.
    if (messages.isStopped) {
      const receipt = messages.send(record, messageId, content, 'steer');
      return { ...answered, resolvedPending: false, receipt, written: Promise.resolve() };
    }
    this.#host.emit(record, {
      type: 'message.sent',
      messageId,
      content,
      mode: null,
      inResponseTo: requestId,
      ...(by === undefined ? {} : { by }),
    });
    const written = messages.written(record, messageId);
    this.#host.answerRequest(record, content, { messageId, by });
    return { ...answered, written };
  }

  /** Resumes a subagent. Its entries may have produced a state that this code cannot resume. */
  #resumed({ subagent }: SubagentRecord): void {
    try {
      subagent?.resume();
    } catch (error) {
      const message = messageOf(error);
      subagent?.lose({ code: 'NOT_RECOVERABLE', message, retryable: true });
    }
  }
}

function notRaised({ code, message }: Failure): Refused {
  return refusal(code === 'BUDGET_EXCEEDED' ? code : 'INVALID_STATE', message);
}

function notFound(id: string): Refused {
  return refusal('NOT_FOUND', `There is no subagent "${id}"`);
}

function hasEnded({ id, outcome }: SubagentRecord): Refused {
  return refusal('ALREADY_TERMINAL', `${id} has ended: ${outcome?.status ?? 'failed'}`);
}

function requestOf(callId: string | null, ports: ScopePorts): string | null {
  return callId === null ? null : (ports.originOf?.(callId).request ?? null);
}

/**
 * Returns the user on whose behalf the request is made. If the lead agent makes the call, the session determines the
 * user, whatever the request says.
 */
function requesterOf({ callId, by }: SpawnRequest, ports: ScopePorts): string | null {
  return callId !== undefined && ports.originOf ? ports.originOf(callId).requester : (by ?? null);
}

/** Returns the configuration's title for this task, or null if there is none. */
function titleOf(
  definition: SubagentDefinition,
  { args }: SubagentTask,
  host: Host,
): string | null {
  const { name, title } = definition;
  if (title === undefined) return null;
  let given: string | null = null;
  callSafely(host, `${name}.title()`, () => {
    const value: unknown = title(args);
    if (typeof value === 'string' && value.trim() !== '')
      given = head(value.trim(), MAX_TITLE_CHARS);
    else
      host.report(
        new ConfigurationError(
          'INVALID_OPTION',
          `${name}.title(): expected a text that is not empty, got ${shown(value)}`,
        ),
        `${name}.title()`,
      );
    return value;
  });
  return given;
}

function rejected(code: DelegationErrorCode, message: string): SpawnReceipt {
  return { status: 'rejected', error: failure(code, message) };
}

/** Builds the entry that records a subagent's admission. */
function spawnedEvent(
  admission: Admission,
  request: SpawnRequest,
  jobs: Jobs | null,
): SpawnedEvent {
  const { definition, task, title, callId, workstreamId, idempotencyKey, ports, lineage } =
    admission;
  const { maxSteps, timeout, maxInputRetries, budget, relay, runs } = definition;
  const traceparent = readTraceparent(request.traceparent);
  return {
    type: SPAWNED,
    name: definition.name,
    task,
    ...(title === null ? {} : { title }),
    parentId: lineage.at(-1) ?? null,
    worksFor: ports.name,
    agentName: ports.giver.agentName,
    callId,
    workstreamId,
    idempotencyKey,
    // The current code may describe the task of a model's call differently than the code that wrote the entry.
    ...(idempotencyKey !== null &&
      callId === null && { requestDigest: requestDigest(request.config.name, task) }),
    request: admission.request,
    requestedBy: admission.requestedBy,
    maxDepth: Number.isFinite(admission.maxDepth) ? admission.maxDepth : null,
    grant: request.grant ?? null,
    recipe: request.recipe ?? null,
    messages: request.messages ?? null,
    limits: { maxSteps, timeoutMs: timeout, maxInputRetries },
    ...(budget === undefined ? {} : { budget: withoutUndefined(budget) }),
    ...(relay === undefined ? {} : { relay: relay.name }),
    ...(jobs && runs === 'jobs' ? { engine: jobs.name } : {}),
    ...(traceparent === undefined ? {} : { traceparent }),
  };
}
