// How often progress is said aloud. Screens show all of it; an ear is spared.
//
// Owns:     when each subagent was last heard of, and how far it was.
// Does not: say it, or know the time.

/**
 * `milestones`: when a quarter, a half and three quarters are done. `all`: whatever is reported.
 * Either not more often than the pace allows; what falls between is not said later.
 */
export type SpeakProgress = (typeof SPEAK_PROGRESS)[number];

export const SPEAK_PROGRESS = ['off', 'milestones', 'all'] as const;

/** Of one subagent something is said at most so often, in milliseconds. */
export const PROGRESS_PACE_MS = 30_000;
/** What could not be said by then is stale, in milliseconds. */
export const PROGRESS_TTL_MS = 30_000;

export class ProgressPace {
  readonly #said = new Map<string, { readonly at: number; readonly quarter: number }>();

  /** Shall it be said? `percent` is 0 to 100, or null where nobody knows. */
  allows(subagentId: string, how: SpeakProgress, percent: number | null, at: number): boolean {
    if (how === 'off') return false;
    const last = this.#said.get(subagentId);
    const quarter = percent === null ? 0 : Math.min(3, Math.floor(percent / 25));
    if (how === 'milestones' && quarter <= (last?.quarter ?? 0)) return false;
    if (last !== undefined && at - last.at < PROGRESS_PACE_MS) return false;
    this.#said.set(subagentId, { at, quarter: Math.max(quarter, last?.quarter ?? 0) });
    return true;
  }

  /** It has ended. */
  forget(subagentId: string): void {
    this.#said.delete(subagentId);
  }
}
