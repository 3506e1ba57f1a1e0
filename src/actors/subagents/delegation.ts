// The service of one scope, which a session, a program and the tools of subagents call.
//
// Owns:     the parts of the scope, and the permissions among its subagents.
// Does not: decide what follows from an end (subagent-tree.ts), or when a wait ends (awaiting.ts).
//
// Invariants
//   DELEGATION-6. A requester may read every subagent that it sees; only an ancestor may end or answer one. A
//       subagent that the requester does not see is answered like one that does not exist.

import type { Observable } from 'rxjs';
import { clip } from '../../values/clip.ts';
import { checkedBy, type VouchedFor } from '../contracts/identity.ts';
import { callSafely } from '../runtime/host.ts';
import type { Subagent } from '../subagent/subagent.ts';
import { refusal } from './delegation-failure.ts';
import { treeSnapshot, type SubagentTreeSnapshot } from './tree-snapshot.ts';
import type { SubagentRecord } from './subagent-registry.ts';
import { peerMessage } from './parent-words.ts';
import { makeParts, type DelegationOptions, type Parts } from './parts.ts';
import type { Restored, RestoredUnits } from './restoration.ts';
import type { SubagentState, SubagentView } from '../contracts/session-views.ts';
import type { ScopePorts } from './scope-ports.ts';
import { argument } from './service-arguments.ts';
import type {
  AwaitOptions,
  AwaitResult,
  CheckResult,
  ListOptions,
  MessageReceipt,
  ProgressNote,
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
import { SubagentTree } from './subagent-tree.ts';
import { Sweeper } from './sweeper.ts';
import { reportOf, viewOf } from './views.ts';

const WAITING: ReadonlySet<SubagentState> = new Set(['waiting_for_input', 'waiting_for_children']);

/** Number of progress notes that are kept for each subagent: the latest. */
export const PROGRESS_RING = 50;
const MAX_NOTE_CHARS = 2000;

export class Delegation implements SubagentService {
  readonly #parts: Parts;
  readonly #tree: SubagentTree;
  readonly #sweeper: Sweeper;

  constructor(options: DelegationOptions) {
    const parts = makeParts(options);
    const { health, retention } = parts;
    this.#parts = parts;
    this.#sweeper = new Sweeper({
      scheduler: parts.ports.host.environment.scheduler,
      intervalMs: parts.limits.sweepIntervalMs,
      isNeeded: () => health.isWatching || retention.hasDelivered,
      sweep: () => void this.sweep(),
    });
    this.#tree = new SubagentTree(parts, this, () => this.#sweeper.update());
  }

  get id(): string {
    return this.#parts.id;
  }

  get events(): Observable<SubagentChunk> {
    return this.#parts.chunks.events;
  }

  /** The subagents that have not ended, oldest first. */
  get live(): readonly Subagent[] {
    return this.#parts.registry.live.flatMap(({ subagent }) => subagent ?? []);
  }

  /** Number of open waits. */
  get waitCount(): number {
    return this.#parts.awaiting.count;
  }

  /** Returns a live subagent; undefined for one that has ended. */
  get(id: string): Subagent | undefined {
    return this.#parts.registry.get(id)?.subagent ?? undefined;
  }

  /** Returns the live subagent that works for this call of the lead agent. */
  ofCall(callId: string): Subagent | undefined {
    return this.#parts.registry.ofCall(callId)?.subagent ?? undefined;
  }

  /** The live subagents by the call of the lead agent that each works for. */
  get liveCalls(): ReadonlyMap<string, Subagent> {
    const calls = new Map<string, Subagent>();
    for (const { parentId, admission, subagent } of this.#parts.registry.live)
      if (parentId === null && admission.callId !== null && subagent)
        calls.set(admission.callId, subagent);
    return calls;
  }

  spawn(request: SpawnRequest): SpawnReceipt {
    return this.spawnFor(this.#parts.ports, request);
  }

  /** As `spawn`; a subagent without a parent, and all its descendants, work for `ports`. */
  spawnFor(ports: ScopePorts, request: SpawnRequest): SpawnReceipt {
    return this.#tree.spawn(argument('spawn', 'spawn(request)', request), ports);
  }

  async checkInputs(
    request: Pick<SpawnRequest, 'config' | 'task' | 'caller' | 'idempotencyKey'>,
  ): Promise<Refused | null> {
    const { config, task, caller, idempotencyKey } = argument(
      'inputsOf',
      'checkInputs(request)',
      request,
    );
    const { id, registry, ports } = this.#parts;
    const parent = registry.get(caller.subagentId ?? '');
    const { outcomes } = parent?.admission.ports ?? ports;
    if (config.lineage !== true || !outcomes || registry.withKey(idempotencyKey)) return null;
    const path = parent ? [...parent.admission.lineage, parent.id] : [];
    const missing = await outcomes.missingInputs(task.args, { sessionId: id, path });
    return missing === null ? null : refusal('INPUT_NOT_FOUND', missing);
  }

  check(id: string, requester: Requester): CheckResult {
    argument('id', 'check(id)', id);
    const by = argument('requester', 'check(id, requester)', requester);
    const record = this.#parts.registry.seenBy(by, id);
    if (!record) return notFound(id);
    const report = this.#parts.tell(record, by);
    this.#sweeper.update();
    return { ok: true, report };
  }

  list(requester: Requester, options: ListOptions = {}): readonly SubagentReport[] {
    const { includeEnded = false } = argument('list', 'list(requester, options)', options);
    return this.#parts.registry
      .allSeenBy(argument('requester', 'list(requester)', requester))
      .filter((record) => includeEnded || record.isLive)
      .map(reportOf);
  }

  send(id: string, given: SendRequest, asker: Requester, options: VouchedFor = {}): SendResult {
    const { registry, messages, chunks } = this.#parts;
    argument('id', 'send(id)', id);
    const message = argument('message', 'send(id, message)', given);
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
      chunks.emit(record, {
        type: 'message.sent',
        messageId,
        content,
        mode,
        inResponseTo: null,
        ...(by === undefined ? {} : { by }),
      });
    // Before the send: the message may be in the journal before `send` returns.
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
    const result = await this.#parts.awaiting.await(
      argument('ids', 'await(ids)', ids),
      argument('requester', 'await(ids, requester)', requester),
      argument('await', 'await(ids, requester, options)', options),
    );
    this.#sweeper.update();
    return result;
  }

  cancel(id: string, requester: Requester, reason?: string, options: VouchedFor = {}): boolean {
    const by = checkedBy('cancel(id, requester, reason, options)', options);
    const { subagentId } = argument('requester', 'cancel(id, requester)', requester);
    const why = argument('reason', 'cancel(id, requester, reason)', reason) ?? 'cancelled';
    const record = this.#parts.registry.get(argument('id', 'cancel(id)', id));
    if (!record?.isLive || !record.isBelow(subagentId)) return false;
    record.subagent?.checkRoom();
    record.subagent?.cancel(why, by);
    return true;
  }

  report(
    id: string,
    note: { readonly update: string; readonly percent: number | null },
  ): { readonly ok: true } | Refused {
    argument('id', 'report(id)', id);
    const { update, percent } = argument('note', 'report(id, note)', note);
    const { registry, chunks, health, now } = this.#parts;
    const record = registry.get(id);
    if (!record) return notFound(id);
    if (!record.isLive) return hasEnded(record);
    if (percent !== null && !(percent >= 0 && percent <= 100))
      return refusal('INVALID_STATE', `Expected percent to be 0 to 100 or null, got ${percent}`);
    const noted: ProgressNote = { update: clip(update, MAX_NOTE_CHARS), percent, at: now() };
    record.progress = [...record.progress, noted].slice(-PROGRESS_RING);
    record.said = noted.update;
    if (health.seen(record, noted.at)) chunks.emit(record, { type: 'recovered' });
    chunks.emit(record, { type: 'progress', update: noted.update, percent });
    record.admission.ports.progressed(viewOf(record), noted);
    return { ok: true };
  }

  delivered(id: string): void {
    const record = this.#parts.registry.get(argument('id', 'delivered(id)', id));
    if (!record) return;
    this.#parts.delivered(record);
    this.#sweeper.update();
  }

  sweep(): number {
    const { health, retention, now } = this.#parts;
    for (const record of health.sweep(now())) this.#hangs(record);
    const forgotten = retention.sweep(now());
    this.#sweeper.update();
    return forgotten;
  }

  /**
   * Settles a request with the answer of the lead agent or the program; null: there will be no answer. Late
   * answers change nothing.
   */
  settleRequest(id: string, requestId: string, content: string | null): void {
    const { registry, requests } = this.#parts;
    const record = registry.get(id);
    if (record?.request?.requestId !== requestId) return;
    if (content === null) requests.dismiss(record);
    else requests.answer(record, requestId, content);
  }

  /**
   * Restores the subagents of the journal, by the scopes that they work for. None of them continues yet.
   * `known`: the facts of other processes about kept instances and forgotten subagents.
   */
  restore(
    units: RestoredUnits,
    scopes: readonly ScopePorts[],
    known: Omit<SubagentTreeSnapshot, 'subagents'> = { gone: [], histories: {} },
  ): Restored {
    const { id, registry, supervisor, budgets, instances } = this.#parts;
    const { gone, histories, awakeMs = 0 } = known;
    instances.remember(histories);
    budgets.continue(awakeMs);
    const restored = this.#tree.restore(units, scopes);
    // After the restoration, because their budgets were cut from those of restored subagents.
    for (const group of gone) {
      registry.remember(group);
      supervisor.remember(id, group.agents);
      budgets.charge(group.parentId, group);
    }
    return restored;
  }

  /** The state of all subagents, for `restore`; null while one of them is busy. */
  toSnapshot(): SubagentTreeSnapshot | null {
    return this.live.every(({ isSettled }) => isSettled) ? treeSnapshot(this.#parts) : null;
  }

  /** Continues the restored subagents. */
  resume(restored: Restored): void {
    this.#tree.resume(restored);
    this.#sweeper.update();
  }

  /** All subagents, including ended ones that are still kept. */
  get views(): readonly SubagentView[] {
    return this.#parts.registry.all.map(viewOf);
  }

  /** True while a subagent has something that is not in the journal yet. */
  get isBusy(): boolean {
    return this.live.some(({ isBusy }) => isBusy);
  }

  /** Tells whether a tool of the lead agent waits for this subagent. */
  isAwaitedByLead(id: string): boolean {
    return this.#parts.awaiting.isAwaitedByLead(id);
  }

  /** Tells whether the lead agent, or the program, waits for this subagent in any way. */
  isAwaited(id: string): boolean {
    return this.#parts.awaiting.isAwaited(id);
  }

  /**
   * Sets whether the user waits for an answer of the lead agent; meanwhile the tools of that agent wait for
   * no subagent.
   */
  userWaits(waits: boolean): void {
    this.#parts.awaiting.userWaits(waits);
  }

  /** True when every live subagent waits for something outside, and no wait for a subagent is open. */
  get isIdle(): boolean {
    const isWaiting = (subagent: Subagent): boolean =>
      subagent.isSettled && WAITING.has(subagent.state);
    return this.waitCount === 0 && this.live.every(isWaiting);
  }

  /** Time at which a subagent acts by itself, milliseconds since 1970; `Infinity`: none does. */
  get nextDueAt(): number {
    const { requests, budgets } = this.#parts;
    const asked = requests.asking.map(({ request }) => request?.dueAt ?? Infinity);
    const live = this.live.map((subagent) => subagent.nextDueAt);
    return [...asked, ...live].reduce((next, at) => Math.min(next, at), budgets.nextDueAt);
  }

  /** Leaves all subagents to the journal: they end here without a report. */
  release(): void {
    const { awaiting, messages, requests, budgets } = this.#parts;
    for (const subagent of this.live) subagent.suspend();
    awaiting.stop();
    messages.stop();
    requests.stop();
    budgets.stop();
    this.dispose();
  }

  /** Reports again the ends that the addressee may not have received. */
  protected tellAgain(records: readonly SubagentRecord[]): void {
    for (const record of records)
      if (record.outcome)
        this.#parts.chunks.emit(record, { type: 'ended', outcome: record.outcome });
  }

  /** Admits no more subagents, and cancels all. */
  stop(reason: string): void {
    this.#tree.stop(reason);
  }

  kill(reason: string): void {
    this.#tree.kill(reason);
  }

  /** Calls back once all subagents have ended and every instance is disposed; at once if so. */
  whenEnded(callback: () => void): void {
    this.#tree.whenEnded(callback);
  }

  /** The last call: stops everything that could still happen. */
  dispose(): void {
    this.#sweeper.dispose();
    this.#parts.chunks.complete();
    void this.#parts.instances.dispose();
  }

  #answer(
    record: SubagentRecord,
    { content, idempotencyKey }: SendRequest,
    requestId: string,
    requester: Requester,
    by: string | undefined,
  ): SendResult {
    const { requests, chunks, messages } = this.#parts;
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
    // This very answer is in the journal, or on its way there.
    if (messages.isOnItsWay(messageId))
      return { ...answered, written: messages.written(record, messageId) };
    if (subagent?.hasTaken(messageId)) return { ...answered, written: Promise.resolve() };
    if (!request) return refusal('INVALID_STATE', `${id} has no open request "${requestId}"`);
    if (request.requestId !== requestId)
      return refusal(
        'REQUEST_PENDING',
        `${id} waits for the answer to "${request.requestId}", not to "${requestId}"`,
      );
    // The answer would not be written down: where this subagent continues, its question is still open.
    if (messages.isStopped) {
      const receipt = messages.send(record, messageId, content, 'steer');
      return { ...answered, resolvedPending: false, receipt, written: Promise.resolve() };
    }
    chunks.emit(record, {
      type: 'message.sent',
      messageId,
      content,
      mode: null,
      inResponseTo: requestId,
      ...(by === undefined ? {} : { by }),
    });
    const written = messages.written(record, messageId);
    requests.answer(record, requestId, content, { messageId, by });
    return { ...answered, written };
  }

  #hangs(record: SubagentRecord): void {
    const { id, admission, lastActiveAt, subagent } = record;
    const { definition, ports } = admission;
    this.#parts.chunks.emit(record, { type: 'hung', lastActiveAt });
    ports.changed(viewOf(record));
    const { onHung, name } = definition;
    if (onHung === 'cancel') subagent?.cancel('it showed no sign of life for too long');
    else if (typeof onHung === 'function')
      callSafely(ports.host, `onHung of ${name}`, () => onHung({ id, name, lastActiveAt }));
  }
}

function notFound(id: string): Refused {
  return refusal('NOT_FOUND', `There is no subagent "${id}"`);
}

function hasEnded({ id, outcome }: SubagentRecord): Refused {
  return refusal('ALREADY_TERMINAL', `${id} has ended: ${outcome?.status ?? 'failed'}`);
}
