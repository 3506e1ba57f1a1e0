// Admits subagents and grants run slots. Each runtime has one supervisor, and its scopes are the sessions.
//
// Owns:     the counts behind the limits, the holders of run slots, and the queue of subagents that are waiting for a
//           slot.
// Does not: start or stop subagents, or know what they work on (the session does). It grants a slot by calling a
//           callback.
//
// Invariants
//   SUPERVISOR-1. Each request is accepted or rejected once and counted in the same step, so two simultaneous requests
//       cannot both get the last place or the last run slot.
//   SUPERVISOR-2. An accepted subagent counts towards the limits until it ends.
//   SLOTS-1. The number of held slots never exceeds `perSession` in one session, or `total` overall.
//   SLOTS-2. Within a session, slots are granted in order of arrival, but resumed subagents come before new ones.
//       Between sessions, the session that has waited longest comes first. A session at its limit does not block the
//       others.
//   SLOTS-3. A subagent that is waiting (for a slot or for the user) holds no slot. Neither does a closed session: it
//       may have been suspended while its subagents were running, and may resume here under the same ids.

import { ConfigurationError } from '../../values/errors.ts';
import type { SessionLimits } from './limits.ts';

interface Scope {
  readonly limits: SessionLimits;
  readonly live: Set<string>;
  /** Accepted subagents that have not requested a run slot yet; a slot is reserved for each of them. */
  readonly starting: Set<string>;
  total: number;
}

/** The reason for a rejection; its message names the limit. */
interface Rejection {
  readonly code: 'SESSION_CLOSED' | 'SESSION_LIMIT' | 'GLOBAL_LIMIT';
  readonly message: string;
}

export class Supervisor {
  readonly #slots: Slots;
  readonly #maxTotalActive: number;
  readonly #scopes = new Map<string, Scope>();
  #starting = 0;

  constructor(maxTotalActive: number) {
    this.#maxTotalActive = maxTotalActive;
    this.#slots = new Slots(maxTotalActive);
  }

  /** @throws {ConfigurationError} `SESSION_ID_TAKEN`: two open sessions with the same id would share limits and memory. */
  open(session: string, limits: SessionLimits): void {
    if (this.#scopes.has(session))
      throw new ConfigurationError(
        'SESSION_ID_TAKEN',
        `Expected a session that is not open in this runtime, got "${session}"`,
      );
    this.#scopes.set(session, { limits, live: new Set(), starting: new Set(), total: 0 });
    this.#slots.open(session, limits.maxConcurrentPerSession);
  }

  isOpen(session: string): boolean {
    return this.#scopes.has(session);
  }

  close(session: string): void {
    this.#starting -= this.#scopes.get(session)?.starting.size ?? 0;
    this.#scopes.delete(session);
    this.#slots.close(session);
  }

  /** Admits a subagent and counts it in the same step; returns null, or the reason for a rejection. */
  admit(session: string, id: string): Rejection | null {
    const scope = this.#scopes.get(session);
    if (!scope) return rejected('SESSION_CLOSED', 'The session is closed');
    const { limits } = scope;
    if (scope.live.size >= limits.maxLivePerSession)
      return rejected(
        'SESSION_LIMIT',
        `${scope.live.size} subagents have not ended: maxLivePerSession is ${limits.maxLivePerSession}`,
      );
    if (scope.total >= limits.maxTotalPerSession)
      return rejected(
        'SESSION_LIMIT',
        `The session has had ${scope.total} subagents: maxTotalPerSession is ${limits.maxTotalPerSession}`,
      );
    const free = this.#slots.isFree(session, scope.starting.size, this.#starting);
    if (!free && limits.whenFull === 'reject') {
      const isGlobal = this.#slots.held + this.#starting >= this.#maxTotalActive;
      return isGlobal
        ? rejected('GLOBAL_LIMIT', `No run slot is free: maxTotalActive is ${this.#maxTotalActive}`)
        : rejected(
            'SESSION_LIMIT',
            `No run slot is free: maxConcurrentPerSession is ${limits.maxConcurrentPerSession}`,
          );
    }
    scope.live.add(id);
    scope.starting.add(id);
    scope.total += 1;
    this.#starting += 1;
    return null;
  }

  /** Counts a subagent that an earlier process admitted, even if this exceeds the current limits. */
  readmit(session: string, id: string): void {
    const scope = this.#scopes.get(session);
    if (!scope) return;
    scope.live.add(id);
    scope.total += 1;
  }

  /** Counts subagents that were admitted and ended in an earlier process. */
  remember(session: string, count: number): void {
    const scope = this.#scopes.get(session);
    if (scope) scope.total += count;
  }

  /** Withdraws an admission when another component refuses the subagent in the same step. */
  retract(session: string, id: string): void {
    this.ended(session, id);
    const scope = this.#scopes.get(session);
    if (scope) scope.total -= 1;
  }

  /** Frees an ended subagent's place and slot. */
  ended(session: string, id: string): void {
    this.#started(session, id);
    this.#slots.release(session, id);
    this.#scopes.get(session)?.live.delete(id);
  }

  requestSlot(session: string, id: string, resumed: boolean, grant: () => void): void {
    this.#started(session, id);
    this.#slots.request(session, id, resumed, grant);
  }

  /** Releases the slot reserved for a subagent that is waiting for something other than a slot. */
  waitsElsewhere(session: string, id: string): void {
    this.#started(session, id);
  }

  releaseSlot(session: string, id: string): void {
    this.#slots.release(session, id);
  }

  #started(session: string, id: string): void {
    if (this.#scopes.get(session)?.starting.delete(id)) this.#starting -= 1;
  }
}

function rejected(code: Rejection['code'], message: string): Rejection {
  return { code, message };
}

interface Ticket {
  readonly id: string;
  readonly number: number;
  readonly grant: () => void;
}

interface SlotScope {
  held: number;
  readonly limit: number;
  /** A map preserves the order of arrival and allows removal from the middle. */
  readonly resumed: Map<string, Ticket>;
  readonly fresh: Map<string, Ticket>;
}

export class Slots {
  readonly #total: number;
  readonly #scopes = new Map<string, SlotScope>();
  /** Sessions with waiting subagents. */
  readonly #waiting = new Set<string>();
  readonly #holders = new Map<string, string>();
  #numbers = 0;

  constructor(total: number) {
    this.#total = total;
  }

  get held(): number {
    return this.#holders.size;
  }

  open(session: string, limit: number): void {
    this.#scopes.set(session, { held: 0, limit, resumed: new Map(), fresh: new Map() });
  }

  /** Removes a session and frees its subagents' slots (SLOTS-3). */
  close(session: string): void {
    this.#scopes.delete(session);
    this.#waiting.delete(session);
    for (const [id, holder] of this.#holders) if (holder === session) this.#holders.delete(id);
    this.#serve();
  }

  /**
   * Returns whether the session has a free slot now. Slots reserved for subagents that have not requested theirs yet do
   * not count as free: `promised` in this session, `promisedInAll` overall.
   */
  isFree(session: string, promised = 0, promisedInAll = promised): boolean {
    const scope = this.#scopes.get(session);
    return (
      scope !== undefined &&
      scope.held + promised < scope.limit &&
      this.#holders.size + promisedInAll < this.#total &&
      !this.#someoneWaits(scope)
    );
  }

  /** Calls `grant` as soon as a slot is free, possibly before this function returns. */
  request(session: string, id: string, resumed: boolean, grant: () => void): void {
    const scope = this.#scopes.get(session);
    if (!scope || this.#holders.has(id)) return;
    const queue = resumed ? scope.resumed : scope.fresh;
    queue.set(id, { id, number: this.#numbers++, grant });
    this.#waiting.add(session);
    this.#serve();
  }

  /** Releases a slot or leaves the queue. Idempotent. */
  release(session: string, id: string): void {
    const scope = this.#scopes.get(session);
    if (!scope) return;
    scope.resumed.delete(id);
    scope.fresh.delete(id);
    if (!this.#someoneWaits(scope)) this.#waiting.delete(session);
    if (!this.#holders.delete(id)) return;
    scope.held -= 1;
    this.#serve();
  }

  #hasRoom(scope: SlotScope): boolean {
    return scope.held < scope.limit && this.#holders.size < this.#total;
  }

  #someoneWaits(scope: SlotScope): boolean {
    return scope.resumed.size > 0 || scope.fresh.size > 0;
  }

  #serve(): void {
    while (this.#waiting.size > 0 && this.#holders.size < this.#total) {
      const chosen = this.#longestWaiting();
      if (!chosen) return;
      const { session, scope, ticket } = chosen;
      scope.resumed.delete(ticket.id);
      scope.fresh.delete(ticket.id);
      if (!this.#someoneWaits(scope)) this.#waiting.delete(session);
      scope.held += 1;
      this.#holders.set(ticket.id, session);
      ticket.grant();
    }
  }

  #longestWaiting(): { session: string; scope: SlotScope; ticket: Ticket } | null {
    let best: { session: string; scope: SlotScope; ticket: Ticket; resumed: boolean } | null = null;
    for (const session of this.#waiting) {
      const scope = this.#scopes.get(session);
      if (!scope || !this.#hasRoom(scope)) continue;
      const resumed = scope.resumed.size > 0;
      const ticket = first(resumed ? scope.resumed : scope.fresh);
      if (!ticket) continue;
      const isBetter =
        best === null || (resumed === best.resumed ? ticket.number < best.ticket.number : resumed);
      if (isBetter) best = { session, scope, ticket, resumed };
    }
    return best;
  }
}

function first(queue: Map<string, Ticket>): Ticket | undefined {
  for (const ticket of queue.values()) return ticket;
  return undefined;
}
