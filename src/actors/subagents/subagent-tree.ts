// The tree of subagents: admits them, and carries out the consequences of their ends.
//
// Owns:     admission, the cascade, and the end of the last subagent.
// Does not: decide how many may run (supervisor) or run any of them (subagent).
//
// Invariants
//   SUBAGENT-TREE-3. Every request is accepted or rejected, once; every accepted one is reported ended once.
//   SUBAGENT-TREE-4. No subagent outlives its parent: when a subagent ends, its descendants are cancelled,
//       and killed after a grace. `stop` and `kill` do that to all, and `whenEnded` calls back when the last
//       one is gone and every instance disposed.
//   SUBAGENT-TREE-5. A wait for a subagent (for its end, an answer, a receipt) is settled when it ends.

import { messageOf } from '../../values/errors.ts';
import type { Outcome } from '../contracts/outcome.ts';
import { Subagent } from '../subagent/subagent.ts';
import { Cascade } from './cascade.ts';
import { constraintOn } from './constraints.ts';
import { failure } from './delegation-failure.ts';
import { spawnedEvent, Restoration, type Restored, type RestoredUnits } from './restoration.ts';
import { SubagentRecord, type Admission } from './subagent-registry.ts';
import { SubagentHost } from './subagent-host.ts';
import { granterOf, grantTools, sourceOf } from './grants.ts';
import type { Parts } from './parts.ts';
import { MAX_UNDELIVERED } from './retention.ts';
import type { ScopePorts } from './scope-ports.ts';
import type {
  DelegationErrorCode,
  SpawnReceipt,
  SpawnRequest,
  SubagentService,
} from '../contracts/service-types.ts';
import { viewOf } from './views.ts';
import { checkSubagentConfig } from '../subagent/config.ts';

const nobodyAbove: readonly string[] = [];

export class SubagentTree {
  readonly #parts: Parts;
  readonly #host: SubagentHost;
  readonly #cascade: Cascade;
  readonly #changed: () => void;
  readonly #disposing = new Set<Promise<void>>();
  #whenEnded: (() => void)[] = [];
  #isStopping = false;

  /** `changed`: called when a subagent comes or goes. */
  constructor(parts: Parts, service: SubagentService, changed: () => void) {
    this.#parts = parts;
    this.#changed = changed;
    this.#cascade = new Cascade(parts.ports.host.environment.scheduler, parts.graceMs);
    this.#host = new SubagentHost(parts, service, (record, outcome, disposed) =>
      this.#ended(record, outcome, disposed),
    );
  }

  /** Admits a subagent. `ports`: the ports that it works for, unless it has a parent. */
  spawn(request: SpawnRequest, ports: ScopePorts): SpawnReceipt {
    const { registry, retention, limits, supervisor, budgets, health, instances, chunks } =
      this.#parts;
    if (this.#isStopping) return rejected('SESSION_CLOSED', 'The session is being closed');
    const known = registry.withKey(request.idempotencyKey);
    if (known) return { status: 'accepted', subagentId: known.id, isRepeat: true };
    const { subagentId: parentId } = request.caller;
    const parent = parentId === null ? null : registry.get(parentId);
    if (parent === undefined || parent?.isLive === false)
      return rejected('INVALID_STATE', `${parentId} has ended: it can have no new subagents`);
    const works = parent?.admission.ports ?? ports;
    const granted = grantTools(sourceOf(request.config), request.grant, granterOf(parent, ports));
    if (!granted.ok) return { status: 'rejected', error: granted.error };
    const definition = checkSubagentConfig(granted.config, granted.config.name);
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
        model: definition.model ?? works.model,
      },
      limits,
    );
    if (refused) return { status: 'rejected', error: refused.error };
    if (retention.isFull)
      return rejected('SESSION_LIMIT', `${MAX_UNDELIVERED} results wait to be looked at`);
    const id = works.host.environment.ids.next('sub');
    const full = supervisor.admit(this.#parts.id, id);
    if (full) return rejected(full.code, full.message);
    const budgetRefusal = budgets.admit(id, parentId, definition.budget, (message) =>
      registry.get(id)?.subagent?.timeIsOver(message),
    );
    if (budgetRefusal) {
      supervisor.retract(this.#parts.id, id);
      return rejected('BUDGET_EXCEEDED', budgetRefusal.message);
    }
    const { callId = null } = request;
    const subagent = new Subagent(works.host, id, definition, request.task, this.#host);
    const admission: Admission = {
      id,
      definition,
      task: request.task,
      lineage: parent ? [...parent.admission.lineage, parent.id] : nobodyAbove,
      maxDepth,
      denied: granted.denied,
      callId,
      workstreamId: request.workstreamId ?? parent?.admission.workstreamId ?? null,
      idempotencyKey: request.idempotencyKey ?? null,
      request: parent ? parent.admission.request : requestOf(callId, works),
      requestedBy: parent ? parent.admission.requestedBy : requesterOf(request, works),
      ports: works,
      startedAt: this.#parts.now(),
    };
    const record = new SubagentRecord(admission, subagent, spawnedEvent(admission, request));
    registry.add(record);
    health.started(record);
    instances.enter(record);
    const { description, args } = request.task;
    const { workstreamId } = record.admission;
    // Before the events: a reader of the stream may end it as soon as it is announced.
    subagent.start(record.birth);
    chunks.emit(record, { type: 'spawned', task: description, input: args, workstreamId });
    if (record.isLive) record.admission.ports.changed(viewOf(record));
    this.#changed();
    return { status: 'accepted', subagentId: id };
  }

  /** Restores the subagents of the journal; see `Restoration`. */
  restore(units: RestoredUnits, scopes: readonly ScopePorts[]): Restored {
    const restoration = new Restoration(this.#parts, this.#host, scopes);
    for (const [id, unit] of units) restoration.take(id, unit);
    return restoration.restored;
  }

  /** Continues the restored subagents, and reports those that ended. */
  resume({ live, untold, lost }: Restored): void {
    for (const { record, reason } of lost)
      record.subagent?.lose({ code: 'NOT_RECOVERABLE', message: reason, retryable: true });
    for (const record of untold) this.#resumed(record);
    // Subagents that ran get their run slots again before any other subagent.
    const ran = live.filter(({ subagent }) => subagent?.state === 'running');
    for (const record of new Set([...ran, ...live])) {
      this.#resumed(record);
      // The end of its parent was to be reported to it (SUBAGENT-TREE-4).
      const parent = record.parentId === null ? null : this.#parts.registry.get(record.parentId);
      if (parent !== null && parent?.isLive !== true)
        record.subagent?.cancel('whom it worked for has ended');
    }
    this.#changed();
  }

  /** Resumes a subagent; its entries may lead to a state that this code cannot continue. */
  #resumed({ subagent }: SubagentRecord): void {
    try {
      subagent?.resume();
    } catch (error) {
      const message = messageOf(error);
      subagent?.lose({ code: 'NOT_RECOVERABLE', message, retryable: true });
    }
  }

  stop(reason: string): void {
    this.#isStopping = true;
    for (const { subagent } of this.#parts.registry.live) subagent?.cancel(reason);
  }

  kill(reason: string): void {
    this.#isStopping = true;
    for (const { subagent } of this.#parts.registry.live) subagent?.kill(reason);
  }

  /** Calls back once all subagents have ended and every instance is disposed; at once if so. */
  whenEnded(callback: () => void): void {
    this.#whenEnded.push(callback);
    this.#checkEnded();
  }

  #ended(record: SubagentRecord, outcome: Outcome, disposed: Promise<void>): void {
    const parts = this.#parts;
    const { registry, requests, supervisor, instances, health, retention, awaiting } = parts;
    const { subagent, parentId } = record;
    if (!subagent) return;
    const at = parts.now();
    const children = registry.childrenOf(record);
    requests.withdraw(record);
    parts.messages.ended(record);
    registry.ended(record, outcome, at);
    health.ended(record);
    this.#cascade.ended(record);
    this.#cascade.begin(
      record,
      children.filter(({ isLive }) => isLive),
    );
    // An ended parent reads no results.
    for (const child of children) retention.delivered(child, at);
    if (parentId !== null && !registry.get(parentId)?.isLive) retention.delivered(record, at);
    retention.ended(record, at);
    supervisor.ended(parts.id, record.id);
    parts.budgets.ended(record.id);
    instances.ended(record, () => subagent.messages);
    this.#disposing.add(disposed);
    void disposed.then(() => {
      this.#disposing.delete(disposed);
      this.#checkEnded();
    });
    awaiting.ended(record);
    parts.chunks.emit(record, { type: 'ended', outcome });
    const { ports, request } = record.admission;
    ports.ended(viewOf(record), outcome, {
      isDelivered: record.deliveredAt !== null,
      request,
      disposed,
    });
    this.#changed();
  }

  #checkEnded(): void {
    if (this.#parts.registry.liveCount > 0 || this.#disposing.size > 0) return;
    if (this.#whenEnded.length === 0) return;
    const waiting = this.#whenEnded;
    this.#whenEnded = [];
    const callBack = (): void => {
      for (const callback of waiting) callback();
    };
    const { instances } = this.#parts;
    if (instances.isEmpty) callBack();
    else void instances.dispose().then(callBack);
  }
}

function requestOf(callId: string | null, ports: ScopePorts): string | null {
  return callId === null ? null : (ports.requestOf?.(callId) ?? null);
}

/**
 * Returns the user on whose behalf the request is made. For a call of the lead agent the session knows it,
 * whatever the request says.
 */
function requesterOf({ callId, by }: SpawnRequest, ports: ScopePorts): string | null {
  return callId !== undefined && ports.requesterOf ? ports.requesterOf(callId) : (by ?? null);
}

function rejected(code: DelegationErrorCode, message: string): SpawnReceipt {
  return { status: 'rejected', error: failure(code, message) };
}
