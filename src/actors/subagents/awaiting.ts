// Waiting for subagents: their ends, their questions and the time end a wait.
//
// Owns:     the conditions of a wait, and whether it may begin at all.
// Does not: keep time (waits.ts), or find cycles (wait-graph.ts).
//
// Invariants
//   AWAITING-2. A question ends the waits of its addressee for the asker and, if the addressee is a subagent,
//       all its waits: no other agent would answer. A question that was read already ends only waits for the
//       asker itself; one that a handler of the program answers ends none.
//   AWAITING-3. A wait that could end only by its timeout is refused (WAIT_CYCLE), naming both ends.
//   AWAITING-4. A hung subagent ends no wait.
//   AWAITING-5. While the user waits for an answer of the lead agent, no wait of a tool of that agent begins
//       or continues (`heedsUser`); the subagent that it waited for continues.
//   AWAITING-6. A wait that ends for the user delivers no result: the lead agent answers the user first.

import type { Environment } from '../ports/environment.ts';
import { refusal } from './delegation-failure.ts';
import type { SubagentRegistry, SubagentRecord } from './subagent-registry.ts';
import { reportOf } from './views.ts';
import type {
  AwaitOptions,
  AwaitResult,
  Refused,
  Requester,
  SubagentReport,
} from '../contracts/service-types.ts';
import { dependsOn, waitCycle, type Need } from './wait-graph.ts';
import { needOf, Waits, type Wait, type WaitEnd } from './waits.ts';

/** More waits at a time are a mistake of the caller. */
const MAX_WAITS = 1000;

export interface AwaitingOptions {
  readonly environment: Environment;
  readonly registry: SubagentRegistry;
  readonly defaultTimeoutMs: number;
  /** The subagents with an open request. */
  asking(): readonly SubagentRecord[];
  /** Returns the subagents that must end before this one may run. */
  lockedBy(id: string): readonly string[];
  /** Reports that a wait of the lead agent, or of the program, began. */
  began(): void;
  /** Reports that one of these waits is over. */
  over(): void;
  /** Builds the report of a subagent for the requester. */
  tell(record: SubagentRecord, requester: Requester): SubagentReport;
}

export class Awaiting {
  readonly #options: AwaitingOptions;
  readonly #waits: Waits;
  #userWaits = false;

  constructor(options: AwaitingOptions) {
    this.#options = options;
    this.#waits = new Waits(options.environment);
  }

  get count(): number {
    return this.#waits.count;
  }

  await(ids: readonly string[], requester: Requester, options: AwaitOptions): Promise<AwaitResult> {
    const { registry, defaultTimeoutMs } = this.#options;
    const { mode = 'all', timeoutMs = defaultTimeoutMs, signal } = options;
    const { alsoAsking: heedsOthers = true, heedsUser = false } = options;
    const records: SubagentRecord[] = [];
    for (const id of new Set(ids)) {
      const record = registry.seenBy(requester, id);
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
      this.#waits.begin(wait, {
        timeoutMs,
        signal,
        settle: (end) => {
          resolve(this.#result(wait, end));
          if (wait.by === null) this.#options.over();
        },
      });
      if (wait.by === null) this.#options.began();
      // A subagent that the lead agent waits for may from now on depend on the lead agent's answer to another
      // subagent.
      if (wait.by !== null)
        for (const other of this.#waits.all) if (other.by === null) this.#wake(other);
    });
  }

  /** Tells whether a tool of the lead agent waits for this subagent; the tool then reports its end. */
  isAwaitedByLead(id: string): boolean {
    return this.#waits.all.some(
      (wait) => wait.heedsUser && wait.records.some((record) => record.id === id),
    );
  }

  /** Tells whether the lead agent, or the program, waits for this subagent in any way. */
  isAwaited(id: string): boolean {
    return this.#waits.all.some(
      ({ by, records }) => by === null && records.some((record) => record.id === id),
    );
  }

  /** Tells whether the user waits for the lead agent to begin its answer (AWAITING-5). */
  userWaits(waits: boolean): void {
    this.#userWaits = waits;
    for (const wait of this.#waits.all) this.#wake(wait);
  }

  /** Ends the waits of an ended subagent, and the waits for it. */
  ended({ id }: SubagentRecord): void {
    for (const wait of this.#waits.by(id)) this.#waits.end(wait, 'cancelled');
    for (const wait of this.#waits.all)
      if (wait.records.some((record) => record.id === id)) this.#wake(wait);
  }

  /** Ends all waits. */
  stop(): void {
    for (const wait of this.#waits.all) this.#waits.end(wait, 'cancelled');
  }

  /**
   * Handles a question of a subagent to its parent. True if it ended a wait of the parent, which reports the
   * question.
   */
  asked({ parentId }: SubagentRecord): boolean {
    let isHeard = false;
    for (const wait of this.#waits.all)
      if (this.#wake(wait) && wait.by === parentId) isHeard = true;
    return isHeard;
  }

  #wake(wait: Wait): boolean {
    const why = this.#reached(wait);
    if (why) this.#waits.end(wait, why);
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
    const asking = this.#options
      .asking()
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
      why === 'user' && !record.isLive ? reportOf(record) : this.#options.tell(record, requester);
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
    const { registry } = this.#options;
    const above = wait.records.find(({ id }) => registry.get(by)?.isBelow(id));
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
    return this.#waits.count < MAX_WAITS
      ? null
      : refusal('SESSION_LIMIT', `${MAX_WAITS} waits are open already`);
  }

  #nameOf(id: string): string {
    return this.#options.registry.get(id)?.admission.definition.name ?? '';
  }

  readonly #needsOf = (id: string): readonly Need[] => {
    const record = this.#options.registry.get(id);
    if (!record?.isLive) return [];
    const { parentId } = record;
    const asks = record.request && parentId !== null ? [parentId] : [];
    return [
      ...this.#waits.by(id).map(needOf),
      { mode: 'all', of: [...asks, ...this.#options.lockedBy(id)] },
    ];
  };
}
