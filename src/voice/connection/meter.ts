// The usage that the connections of a session have reported, and the limits that the provider reports.
//
// Owns:     the sums over all connections of the session.
// Does not: limit anything, or keep the raw messages (`raw`): they may hold secrets.

import { tokenCount } from '../../actors/model/token-count.ts';
import type { LeadSession } from '../../actors/session/lead/lead-session.ts';
import { callSafely } from '../../actors/runtime/host.ts';
import type { UsageView } from '../../actors/contracts/session-views.ts';
import type { TransportEvent } from './transport.ts';

export class Meter {
  readonly #core: LeadSession;
  #usage: UsageView = { inputTokens: null, outputTokens: null };

  constructor(core: LeadSession) {
    this.#core = core;
  }

  /** Handles an event about usage. Returns whether it was one. */
  handle(event: TransportEvent): boolean {
    const { host, hooks, projection } = this.#core;
    if (event.type === 'usage.reported') {
      const used = {
        inputTokens: tokenCount(event.inputTokens) ?? null,
        outputTokens: tokenCount(event.outputTokens) ?? null,
      };
      const usage = {
        inputTokens: sum(this.#usage.inputTokens, used.inputTokens),
        outputTokens: sum(this.#usage.outputTokens, used.outputTokens),
      };
      this.#usage = usage;
      projection.emit({ type: 'usage.changed', usage, used });
      callSafely(host, 'hook onUsage', () => hooks.onUsage?.({ usage, used }));
      return true;
    }
    if (event.type !== 'limits.reported') return false;
    const limits = event.limits.map(({ name, limit, remaining, resetInMs }) => ({
      name,
      limit,
      remaining,
      resetInMs,
    }));
    projection.emit({ type: 'limits.changed', limits });
    callSafely(host, 'hook onLimits', () => hooks.onLimits?.({ limits }));
    return true;
  }
}

/** Null: never reported. */
function sum(before: number | null, more: number | null): number | null {
  return more === null ? before : (before ?? 0) + more;
}
