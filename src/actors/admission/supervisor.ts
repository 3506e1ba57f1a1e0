// Decides admission and grants run slots. There is one supervisor per runtime; sessions are its scopes.
//
// Owns:     the counts behind the limits, and the run slots.
// Does not: start subagents (the session does), or know their work.
//
// Invariants
//   SUPERVISOR-1. A request is accepted or rejected once, and counted in the same step: two requests in the
//       same instant cannot both take the last place, or the last run slot.
//   SUPERVISOR-2. An accepted subagent is counted until it has ended, and no longer.

import { ConfigurationError } from '../../values/errors.ts';
import type { SessionLimits } from './limits.ts';
import { Slots } from './slots.ts';

interface Scope {
  readonly limits: SessionLimits;
  readonly live: Set<string>;
  /** Accepted subagents that have not requested a run slot yet: one is promised to each. */
  readonly starting: Set<string>;
  total: number;
}

/** The reason for a rejection: the message names the limit. */
export interface Rejection {
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

  /**
   * @throws {ConfigurationError} `SESSION_ID_TAKEN`: two sessions with one id would share limits, memory and
   *   end.
   */
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

  /** Decides and counts in one step; returns null if the subagent is admitted. */
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

  /** Counts a subagent that an earlier process admitted, whatever the limits are now. */
  readmit(session: string, id: string): void {
    const scope = this.#scopes.get(session);
    if (!scope) return;
    scope.live.add(id);
    scope.total += 1;
  }

  /** Counts subagents that an earlier process admitted, and that ended there. */
  remember(session: string, count: number): void {
    const scope = this.#scopes.get(session);
    if (scope) scope.total += count;
  }

  /** Withdraws an admission, because another component refused the subagent in the same step. */
  retract(session: string, id: string): void {
    this.ended(session, id);
    const scope = this.#scopes.get(session);
    if (scope) scope.total -= 1;
  }

  /** Frees the place and the slot of an ended subagent. */
  ended(session: string, id: string): void {
    this.#started(session, id);
    this.#slots.release(session, id);
    this.#scopes.get(session)?.live.delete(id);
  }

  requestSlot(session: string, id: string, resumed: boolean, grant: () => void): void {
    this.#started(session, id);
    this.#slots.request(session, id, resumed, grant);
  }

  /** Withdraws the promised slot of a subagent that waits for an event other than a slot. */
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
