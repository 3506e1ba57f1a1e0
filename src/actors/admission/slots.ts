// Run slots: the limits of running subagents, per session and in all.
//
// Owns:     the holders of slots, and the queue of those that wait for one.
// Does not: start or stop subagents; a grant is a callback.
//
// Invariants
//   SLOTS-1. There are never more holders than `perSession` in one session, or `total` in all.
//   SLOTS-2. Within a session slots are granted in order of arrival, resumed subagents before new ones;
//       between sessions to the one that waits longest. A session at its own limit does not block the others.
//   SLOTS-3. A waiting subagent (for a slot, for the user) holds no slot, nor does any of a forgotten
//       session: the session may be suspended in the middle of its work, and continue here under the same
//       ids.

interface Ticket {
  readonly id: string;
  readonly number: number;
  readonly grant: () => void;
}

interface Scope {
  held: number;
  readonly limit: number;
  /** Maps keep the order of arrival and allow removal from the middle. */
  readonly resumed: Map<string, Ticket>;
  readonly fresh: Map<string, Ticket>;
}

export class Slots {
  readonly #total: number;
  readonly #scopes = new Map<string, Scope>();
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

  /** Forgets a session and all slots of its subagents (SLOTS-3). */
  close(session: string): void {
    this.#scopes.delete(session);
    this.#waiting.delete(session);
    for (const [id, holder] of this.#holders) if (holder === session) this.#holders.delete(id);
    this.#serve();
  }

  /**
   * Returns whether a slot is free for this session now, when this many more are promised to subagents that
   * have not requested theirs yet: in this session, and in all.
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

  /** Calls `grant` as soon as a slot is free, possibly before this returns. */
  request(session: string, id: string, resumed: boolean, grant: () => void): void {
    const scope = this.#scopes.get(session);
    if (!scope || this.#holders.has(id)) return;
    const queue = resumed ? scope.resumed : scope.fresh;
    queue.set(id, { id, number: this.#numbers++, grant });
    this.#waiting.add(session);
    this.#serve();
  }

  /** Returns the slot, or leaves the queue. Idempotent. */
  release(session: string, id: string): void {
    const scope = this.#scopes.get(session);
    if (!scope) {
      if (this.#holders.delete(id)) this.#serve();
      return;
    }
    scope.resumed.delete(id);
    scope.fresh.delete(id);
    if (!this.#someoneWaits(scope)) this.#waiting.delete(session);
    if (!this.#holders.delete(id)) return;
    scope.held -= 1;
    this.#serve();
  }

  #hasRoom(scope: Scope): boolean {
    return scope.held < scope.limit && this.#holders.size < this.#total;
  }

  #someoneWaits(scope: Scope): boolean {
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

  #longestWaiting(): { session: string; scope: Scope; ticket: Ticket } | null {
    let best: { session: string; scope: Scope; ticket: Ticket; resumed: boolean } | null = null;
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
