// Waiting for subagents: their ends, their questions and the time end a wait.
//
// Owns:     the open waits with their timers and their listeners on signals, the conditions of a wait, and
//           whether it may begin at all.
// Does not: store who needs whom: the graph of needs is computed anew for each wait.
//
// Invariants
//   WAITS-1. A wait is settled exactly once; then no timer and no listener of it is left.
//   WAIT-GRAPH-1. A wait is refused exactly if, without a change from outside, it could never end: of the
//       ends that it needs together one never comes, or of its alternatives none does.
//   AWAITING-2. A question ends the waits of its addressee for the asker and, if the addressee is a subagent,
//       all its waits: no other agent would answer. A question that was read already ends only waits for the
//       asker itself; one that a handler of the program answers ends none.
//   AWAITING-3. A wait that could end only by its timeout is refused (WAIT_CYCLE), naming both ends.
//   AWAITING-4. A hung subagent ends no wait.
//   AWAITING-5. While the user waits for an answer of the lead agent, no wait of a tool of that agent begins
//       or continues (`heedsUser`); the subagent that it waited for continues.
//   AWAITING-6. A wait that ends for the user delivers no result: the lead agent answers the user first.

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

/** More waits at a time are a mistake of the caller. */
const MAX_WAITS = 1000;

/** The reason for which a wait ended: with an answer, or without one. */
type WaitEnd = 'ended' | 'asked' | 'user' | 'timeout' | 'cancelled';

interface Wait {
  /** The subagent that waits; null: the lead agent, or a program. */
  readonly by: string | null;
  readonly mode: Need['mode'];
  readonly records: readonly SubagentRecord[];
  /** True if a question of another subagent ends it, too. */
  readonly heedsOthers: boolean;
  /** True if words of the user, for whom the lead agent waits, end it. */
  readonly heedsUser: boolean;
}

/** The ends that a subagent needs before it continues: all of them, or any one of them. */
export interface Need {
  readonly mode: 'all' | 'any';
  readonly of: readonly string[];
}

/** Returns the current needs of a subagent; none: it continues by itself. */
type NeedsOf = (id: string) => readonly Need[];

export class Waits {
  readonly #registry: SubagentRegistry;
  readonly #instances: SessionInstances;
  readonly #ports: ScopePorts;
  readonly #scheduler: Scheduler;
  readonly #defaultTimeoutMs: number;
  readonly #open = new Map<Wait, (why: WaitEnd) => void>();
  #userWaits = false;

  /** `ports`: they learn when a wait of the lead agent, or of the program, begins and is over. */
  constructor(
    registry: SubagentRegistry,
    instances: SessionInstances,
    ports: ScopePorts,
    defaultTimeoutMs: number,
  ) {
    this.#registry = registry;
    this.#instances = instances;
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
    const wait: Wait = { by, mode, records, heedsOthers, heedsUser: heedsUser && by === null };
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
      this.#open.set(wait, (end) => {
        stopClock();
        signal?.removeEventListener('abort', abort);
        resolve(this.#result(wait, end));
        if (wait.by === null) this.#ports.waitEnded?.();
      });
      if (wait.by === null) this.#ports.waitBegan?.();
      // A subagent that the lead agent waits for may from now on depend on the lead agent's answer to another
      // subagent.
      if (wait.by !== null) for (const other of this.#all) if (other.by === null) this.#wake(other);
    });
  }

  /** Tells whether a tool of the lead agent waits for this subagent; the tool then reports its end. */
  isAwaitedByLead(id: string): boolean {
    return this.#all.some(
      (wait) => wait.heedsUser && wait.records.some((record) => record.id === id),
    );
  }

  /** Tells whether the lead agent, or the program, waits for this subagent in any way. */
  isAwaited(id: string): boolean {
    return this.#all.some(
      ({ by, records }) => by === null && records.some((record) => record.id === id),
    );
  }

  /** Tells whether the user waits for the lead agent to begin its answer (AWAITING-5). */
  userWaits(waits: boolean): void {
    this.#userWaits = waits;
    for (const wait of this.#all) this.#wake(wait);
  }

  /** Ends the waits of an ended subagent, and the waits for it. */
  ended({ id }: SubagentRecord): void {
    for (const wait of this.#by(id)) this.end(wait, 'cancelled');
    for (const wait of this.#all)
      if (wait.records.some((record) => record.id === id)) this.#wake(wait);
  }

  /** Ends a wait; the first reason counts. */
  end(wait: Wait, why: WaitEnd): void {
    const settle = this.#open.get(wait);
    this.#open.delete(wait);
    settle?.(why);
  }

  /** Ends all waits. */
  stop(): void {
    for (const wait of this.#all) this.end(wait, 'cancelled');
  }

  /**
   * Handles a question of a subagent to its parent. True if it ended a wait of the parent, which reports the
   * question.
   */
  asked({ parentId }: SubagentRecord): boolean {
    let isHeard = false;
    for (const wait of this.#all) if (this.#wake(wait) && wait.by === parentId) isHeard = true;
    return isHeard;
  }

  /** A copy: ending waits does not disturb its reader. */
  get #all(): readonly Wait[] {
    return [...this.#open.keys()];
  }

  #by(id: string): readonly Wait[] {
    return this.#all.filter((wait) => wait.by === id);
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
    const isAsked = records.some(
      (record) => record.request && !record.request.isHandled && record.isBelow(by),
    );
    const isCalled =
      isAsked || this.#othersAsking(wait).some(({ request }) => request?.isTold === false);
    if (isCalled) return 'asked';
    return wait.heedsUser && this.#userWaits ? 'user' : null;
  }

  /** Lists the subagents that ask the waiting agent, and are not waited for. */
  #othersAsking({ by, records, heedsOthers }: Wait): readonly SubagentRecord[] {
    if (!heedsOthers) return [];
    const asking = [...this.#registry.asking]
      .filter((record) => record.parentId === by && !records.includes(record))
      .filter(({ request }) => request?.isHandled === false);
    // A subagent has one model: while it waits, it answers no other agent. The lead agent and a program
    // answer concurrently; a question ends their wait only if the wait depends on the answer.
    return by !== null
      ? asking
      : asking.filter(({ id: asker }) =>
          records.some(({ id }) => dependsOn(id, asker, this.#needsOf)),
        );
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
    const way = waitCycle(by, needOf(wait), this.#needsOf);
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

  readonly #needsOf = (id: string): readonly Need[] => {
    const record = this.#registry.get(id);
    if (!record?.isLive) return [];
    const { parentId } = record;
    const asks = record.request && parentId !== null ? [parentId] : [];
    return [
      ...this.#by(id).map(needOf),
      { mode: 'all', of: [...asks, ...this.#instances.before(record)] },
    ];
  };
}

/** Returns the need of the waiting agent before it continues. */
function needOf({ mode, records }: Wait): Need {
  return { mode, of: records.map(({ id }) => id) };
}

/**
 * Tells whether `id` would wait for ever if it began to need `need`. Returns the path that shows it: from
 * `id`, each waits for the next, up to one that is on the path already; else null.
 */
export function waitCycle(id: string, need: Need, needsOf: NeedsOf): readonly string[] | null {
  const needs = reachable(id, need, needsOf);
  const free = thoseThatEnd(needs);
  if (free.has(id)) return null;
  const way: string[] = [id];
  for (;;) {
    const last = way.at(-1) as string;
    const next = (needs.get(last) ?? [])
      .filter((one) => !isMet(one, free))
      .flatMap(({ of }) => of)
      .find((target) => !free.has(target));
    if (next === undefined) return way;
    way.push(next);
    if (way.indexOf(next) < way.length - 1) return way;
  }
}

/** Tells whether `id` needs `target`, directly or through others. */
export function dependsOn(id: string, target: string, needsOf: NeedsOf): boolean {
  return reachable(id, null, needsOf).has(target);
}

function reachable(
  id: string,
  extra: Need | null,
  needsOf: NeedsOf,
): ReadonlyMap<string, readonly Need[]> {
  const found = new Map<string, readonly Need[]>();
  const left = [id];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (found.has(next)) continue;
    const needs = next === id && extra ? [...needsOf(next), extra] : needsOf(next);
    found.set(next, needs);
    for (const { of } of needs) left.push(...of);
  }
  return found;
}

/** Computes the subagents that end, beginning with those that need nothing. */
function thoseThatEnd(needs: ReadonlyMap<string, readonly Need[]>): ReadonlySet<string> {
  const free = new Set<string>();
  for (let before = -1; before < free.size;) {
    before = free.size;
    for (const [id, own] of needs) if (own.every((need) => isMet(need, free))) free.add(id);
  }
  return free;
}

function isMet({ mode, of }: Need, free: ReadonlySet<string>): boolean {
  return mode === 'all' ? of.every((id) => free.has(id)) : of.some((id) => free.has(id));
}
