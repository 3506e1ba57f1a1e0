// Who may come in, and who may run. One for each runtime; sessions are its scopes.
//
// Owns:     the counts behind the limits, and the run slots.
// Does not: start subagents (the session does), or know what they do.
//
// Invariants
//   A1. A request is accepted or rejected, once, and counted in the same step: two
//       requests in the same instant cannot both take the last place, nor the last run slot.
//   A2. Whatever was accepted is counted until it has ended, and then no more.

import type { Failure } from '../../machines/index.ts';
import type { SessionLimits } from './limits.ts';
import { Slots } from './slots.ts';

interface Scope {
  readonly limits: SessionLimits;
  readonly live: Set<string>;
  /** Accepted, and did not ask for a run slot yet: one is promised to each. */
  readonly starting: Set<string>;
  total: number;
}

export type Admission =
  | { readonly status: 'accepted'; readonly queued: boolean }
  | { readonly status: 'rejected'; readonly error: Failure };

export class Supervisor {
  readonly #slots: Slots;
  readonly #maxTotalActive: number;
  readonly #scopes = new Map<string, Scope>();
  #starting = 0;

  constructor(maxTotalActive: number) {
    this.#maxTotalActive = maxTotalActive;
    this.#slots = new Slots(maxTotalActive);
  }

  open(session: string, limits: SessionLimits): void {
    this.#scopes.set(session, { limits, live: new Set(), starting: new Set(), total: 0 });
    this.#slots.open(session, limits.maxConcurrentPerSession);
  }

  close(session: string): void {
    this.#starting -= this.#scopes.get(session)?.starting.size ?? 0;
    this.#scopes.delete(session);
    this.#slots.close(session);
  }

  /** Decides and counts in one step. `depth` is 1 for a subagent of the lead agent. */
  admit(session: string, id: string, depth: number): Admission {
    const scope = this.#scopes.get(session);
    if (!scope) return rejected('SESSION_CLOSED', 'The session is closed');
    const { limits } = scope;
    if (depth > limits.maxDepth)
      return rejected(
        'DEPTH_EXCEEDED',
        `A subagent at depth ${depth} is too deep: maxDepth is ${limits.maxDepth}`,
      );
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
    return { status: 'accepted', queued: !free };
  }

  /** It was admitted here, and refused by somebody else in the same step. */
  retract(session: string, id: string): void {
    this.ended(session, id);
    const scope = this.#scopes.get(session);
    if (scope) scope.total -= 1;
  }

  /** The subagent has ended: its place and its slot are free. */
  ended(session: string, id: string): void {
    this.#started(session, id);
    this.#slots.release(session, id);
    this.#scopes.get(session)?.live.delete(id);
  }

  requestSlot(session: string, id: string, resumed: boolean, grant: () => void): void {
    this.#started(session, id);
    this.#slots.request(session, id, resumed, grant);
  }

  /** It waits for something else than a slot: none is promised to it meanwhile. */
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

/** The admission of what is refused, for a stated reason. */
export function rejected(
  code: string,
  message: string,
): Extract<Admission, { status: 'rejected' }> {
  return { status: 'rejected', error: { code, message, retryable: code !== 'DEPTH_EXCEEDED' } };
}
