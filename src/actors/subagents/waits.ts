// Waits for subagents. A wait ends when the awaited subagent ends or asks a question, or when the timeout has passed.
//
// Owns:     the open waits with their timers and signal listeners, the conditions of a wait, and whether a wait may start.
// Does not: decide whether a wait could ever end (wait-graph.ts).
//
// Invariants
//   WAITS-1. A wait is settled exactly once. After that, its timer and listener are removed.
//   AWAITING-2. When a subagent asks a question, the waits of the addressee for that subagent end. If the addressee is
//       itself a subagent, all its waits end, because only the addressee can answer. A question that the addressee has
//       already read ends only the waits for the asker. A question that a handler in the program answers does not end
//       any wait.
//   AWAITING-3. A wait that could end only by its timeout is refused (WAIT_CYCLE), and the refusal names both
//       subagents.
//   AWAITING-4. A wait continues if the awaited subagent is hung.
//   AWAITING-5. While the user is waiting for the lead agent's reply, that agent's tools cannot start a wait with
//       `heedsUser`, and their open waits of this kind end. The awaited subagents continue to work.
//   AWAITING-6. A wait that ends because of user input does not deliver a result, because the lead agent answers the
//       user first.

import type {
  AwaitOptions,
  AwaitResult,
  Refused,
  Requester,
  SubagentReport,
} from '../contracts/service-types.ts';
import type { Scheduler } from '../ports/environment.ts';
import { refusal } from './refusal.ts';
import type { ScopePorts } from './scope-ports.ts';
import type { SessionInstances } from './session-instances.ts';
import { reportOf, type SubagentRecord, type SubagentRegistry } from './subagent-registry.ts';
import { WaitGraph, type Waiting } from './wait-graph.ts';

/** The maximum number of open waits. More would indicate a mistake in the caller. */
const MAX_WAITS = 1000;

/** The reason why a wait ended. */
type WaitEnd = 'ended' | 'asked' | 'user' | 'timeout' | 'cancelled';

interface Wait extends Waiting {
  /** The wait's number. Waits are ordered by their start times. */
  readonly number: number;
  readonly records: readonly SubagentRecord[];
  /** Whether a question from another subagent also ends the wait. */
  readonly heedsOthers: boolean;
  /** Whether input from the user to the lead agent ends the wait. */
  readonly heedsUser: boolean;
}

export class Waits {
  readonly #registry: SubagentRegistry;
  readonly #graph: WaitGraph<Wait>;
  readonly #ports: ScopePorts;
  readonly #scheduler: Scheduler;
  readonly #defaultTimeoutMs: number;
  readonly #open = new Map<Wait, (why: WaitEnd) => void>();
  #begun = 0;
  #userWaits = false;

  /** `ports`: notified when the lead agent or the program starts or ends a wait. */
  constructor(
    registry: SubagentRegistry,
    instances: SessionInstances,
    ports: ScopePorts,
    defaultTimeoutMs: number,
  ) {
    this.#registry = registry;
    this.#graph = graphOf(registry, instances);
    this.#ports = ports;
    this.#scheduler = ports.host.environment.scheduler;
    this.#defaultTimeoutMs = defaultTimeoutMs;
  }

  get count(): number {
    return this.#open.size;
  }

  await(ids: readonly string[], requester: Requester, options: AwaitOptions): Promise<AwaitResult> {
    const { mode = 'all', timeoutMs = this.#defaultTimeoutMs, signal } = options;
    const { alsoAsking: heedsOthers = true, heedsUser = false } = options;
    const records: SubagentRecord[] = [];
    for (const id of new Set(ids)) {
      const record = this.#registry.seenBy(requester, id);
      if (!record) return Promise.resolve(refusal('NOT_FOUND', `There is no subagent "${id}"`));
      records.push(record);
    }
    const by = requester.subagentId;
    const wait: Wait = {
      by,
      mode,
      of: records.map(({ id }) => id),
      number: (this.#begun += 1),
      records,
      heedsOthers,
      heedsUser: heedsUser && by === null,
    };
    const refused = this.#refusalOf(wait, timeoutMs, signal);
    if (refused) return Promise.resolve(refused);
    const why = this.#reached(wait);
    if (why) return Promise.resolve(this.#result(wait, why));
    const cycle = this.#cycleOf(wait) ?? this.#tooMany();
    if (cycle) return Promise.resolve(cycle);
    return new Promise((resolve) => {
      const abort = (): void => this.end(wait, 'cancelled');
      const stopClock =
        timeoutMs === Infinity
          ? () => {}
          : this.#scheduler.schedule(() => this.end(wait, 'timeout'), timeoutMs);
      signal?.addEventListener('abort', abort, { once: true });
      this.#graph.add(wait);
      this.#open.set(wait, (end) => {
        stopClock();
        signal?.removeEventListener('abort', abort);
        resolve(this.#result(wait, end));
        if (wait.by === null) this.#ports.tell({ type: 'wait.ended' });
      });
      if (wait.by === null) this.#ports.tell({ type: 'wait.began' });
      // A subagent that the lead agent is waiting for may now depend on the lead agent's answer to another subagent.
      if (wait.by !== null) for (const other of this.#graph.by(null)) this.#wake(other);
    });
  }

  /** Returns whether a tool of the lead agent is waiting for this subagent and will report the end. */
  isAwaitedByLead(id: string): boolean {
    return this.#graph.on(id).some(({ heedsUser }) => heedsUser);
  }

  /** Returns whether the lead agent or the program is waiting for this subagent. */
  isAwaited(id: string): boolean {
    return this.#graph.on(id).some(({ by }) => by === null);
  }

  /** Returns whether this subagent is waiting for another. */
  isWaiting(id: string): boolean {
    return this.#graph.by(id).length > 0;
  }

  /** Sets whether the user is waiting for the lead agent to start its answer (AWAITING-5). */
  userWaits(waits: boolean): void {
    this.#userWaits = waits;
    for (const wait of this.#all) this.#wake(wait);
  }

  /** Ends all waits by and for a subagent that has ended. */
  ended({ id }: SubagentRecord): void {
    for (const wait of this.#graph.by(id)) this.end(wait, 'cancelled');
    for (const wait of this.#graph.on(id)) this.#wake(wait);
  }

  /** Ends a wait. Only the first reason for ending a wait counts. */
  end(wait: Wait, why: WaitEnd): void {
    const settle = this.#open.get(wait);
    if (!settle) return;
    this.#open.delete(wait);
    this.#graph.delete(wait);
    settle(why);
  }

  /** Ends all waits. */
  stop(): void {
    for (const wait of this.#all) this.end(wait, 'cancelled');
  }

  /**
   * Ends the waits that a subagent's question to its parent must end. Returns whether this ended a wait of the parent.
   * If so, the parent's wait reports the question.
   */
  asked({ id, parentId }: SubagentRecord): boolean {
    const graph = this.#graph;
    // These may be waits for the asker, waits of its addressee, or waits of the lead agent that depend on the asker.
    const meant = new Set([...graph.on(id), ...graph.by(parentId), ...graph.by(null)]);
    let isHeard = false;
    for (const wait of [...meant].toSorted((one, other) => one.number - other.number))
      if (this.#wake(wait) && wait.by === parentId) isHeard = true;
    return isHeard;
  }

  /** A copy, because the caller may end waits while it reads them. */
  get #all(): readonly Wait[] {
    return [...this.#open.keys()];
  }

  #wake(wait: Wait): boolean {
    const why = this.#reached(wait);
    if (why) this.end(wait, why);
    return why !== null;
  }

  #reached(wait: Wait): 'ended' | 'asked' | 'user' | null {
    const { mode, records, by } = wait;
    const isEnded = ({ isLive }: SubagentRecord): boolean => !isLive;
    if (mode === 'all' ? records.every(isEnded) : records.some(isEnded)) return 'ended';
    const isAsked = (record: SubagentRecord): boolean =>
      record.request?.isHandled === false && record.isBelow(by);
    const isCalled = (): boolean =>
      records.some(isAsked) ||
      this.#othersAsking(wait, ({ request }) => request?.isTold === false).length > 0;
    if (this.#registry.asking.size > 0 && isCalled()) return 'asked';
    return wait.heedsUser && this.#userWaits ? 'user' : null;
  }

  /** Returns the other subagents that are asking the waiting agent a question. `isMeant`: a filter for the list. */
  #othersAsking(
    { by, records, heedsOthers }: Wait,
    isMeant: (record: SubagentRecord) => boolean = () => true,
  ): readonly SubagentRecord[] {
    if (!heedsOthers) return [];
    const asking = this.#registry
      .askersOf(by)
      .filter((record) => record.request?.isHandled === false)
      .filter((record) => isMeant(record) && !records.includes(record));
    // A subagent has only one model, so it cannot answer requests while it waits. The lead agent and a program can
    // answer at the same time, so a question ends their wait only if the wait depends on the answer.
    if (by !== null) return asking;
    return asking.filter(({ id: asker }) => {
      const dependents = this.#graph.dependentsOf([asker]);
      return records.some(({ id }) => dependents.has(id));
    });
  }

  #result(wait: Wait, why: WaitEnd): AwaitResult {
    if (why === 'cancelled') return refusal('CANCELLED', 'The wait was broken off');
    const requester = { subagentId: wait.by };
    // AWAITING-6
    const tell = (record: SubagentRecord): SubagentReport =>
      why === 'user' && !record.isLive ? reportOf(record) : this.#registry.read(record, requester);
    const others = why === 'asked' ? this.#othersAsking(wait) : [];
    return { ok: true, why, reports: wait.records.map(tell), alsoAsking: others.map(tell) };
  }

  #refusalOf(wait: Wait, timeoutMs: number, signal: AbortSignal | undefined): Refused | null {
    if (wait.records.length === 0)
      return refusal('INVALID_STATE', 'Expected at least one subagent to wait for, got none');
    if (!(timeoutMs > 0))
      return refusal('INVALID_STATE', `Expected timeoutMs to be above 0, got ${timeoutMs}`);
    return signal?.aborted ? refusal('CANCELLED', 'The wait was broken off') : null;
  }

  #cycleOf(wait: Wait): Refused | null {
    const { by } = wait;
    if (by === null) return null;
    const above = wait.records.find(({ id }) => this.#registry.get(by)?.isBelow(id));
    if (above)
      return refusal(
        'WAIT_CYCLE',
        `${by} cannot wait for ${above.id}, which is above it: it ends with it`,
      );
    const way = this.#graph.wayOf(wait);
    if (!way) return null;
    const chain = way.slice(1).map((id) => `${id} ("${this.#nameOf(id)}")`);
    return refusal('WAIT_CYCLE', `${by} would wait for ${chain.join(', which waits for ')}`);
  }

  #tooMany(): Refused | null {
    return this.count < MAX_WAITS
      ? null
      : refusal('SESSION_LIMIT', `${MAX_WAITS} waits are open already`);
  }

  #nameOf(id: string): string {
    return this.#registry.get(id)?.admission.definition.name ?? '';
  }
}

function graphOf(registry: SubagentRegistry, instances: SessionInstances): WaitGraph<Wait> {
  return new WaitGraph({
    isLive: (id) => registry.get(id)?.isLive === true,
    of(id) {
      const record = registry.get(id);
      if (!record) return [];
      const asks = record.request && record.parentId !== null ? [record.parentId] : [];
      return [...asks, ...instances.before(record)];
    },
    on(id) {
      const record = registry.get(id);
      const asking = registry.askersOf(id).map((asker) => asker.id);
      return record ? [...asking, ...instances.after(record)] : asking;
    },
    asking: () => registry.askingOthers.map(({ id }) => id),
  });
}
