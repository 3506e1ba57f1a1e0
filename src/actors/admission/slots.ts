// Run slots: how many subagents may be running, per session and in all.
//
// Owns:     who holds a slot, and the queue of those that wait for one.
// Does not: start or stop anybody; a grant is a callback.
//
// Invariants
//   SLOTS-1. Never more holders than `perSession` of one session, nor than `total` of all.
//   SLOTS-2. First come, first served within a session, those that resume before those that
//       start; between sessions the one that waits longest. A session that has reached
//       its own limit does not hold up the others.
//   SLOTS-3. Whoever waits (for a slot, for the user) holds none, nor does anybody of a session that is
//       forgotten: it may be suspended in the middle of its work, and go on here under the same ids.

interface Ticket {
  readonly id: string;
  readonly number: number;
  readonly grant: () => void;
}

interface Scope {
  held: number;
  readonly limit: number;
  /** Maps keep the order of arrival and allow leaving from the middle. */
  readonly resumed: Map<string, Ticket>;
  readonly fresh: Map<string, Ticket>;
}

export class Slots {
  readonly #total: number;
  readonly #scopes = new Map<string, Scope>();
  /** Sessions in which somebody waits. */
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

  /** Forgets a session, and whatever its subagents still held (SLOTS-3). */
  close(session: string): void {
    this.#scopes.delete(session);
    this.#waiting.delete(session);
    for (const [id, holder] of this.#holders) if (holder === session) this.#holders.delete(id);
    this.#serve();
  }

  /**
   * Is a slot free for this session at this moment, when so many more are promised to those
   * who have not asked yet: of this session, and of all?
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

  /** Calls `grant` as soon as a slot is free, perhaps before this returns. */
  request(session: string, id: string, resumed: boolean, grant: () => void): void {
    const scope = this.#scopes.get(session);
    if (!scope || this.#holders.has(id)) return;
    const queue = resumed ? scope.resumed : scope.fresh;
    queue.set(id, { id, number: this.#numbers++, grant });
    this.#waiting.add(session);
    this.#serve();
  }

  /** Gives the slot back, or leaves the queue. Doing it twice does nothing. */
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
