// The pace at which progress is spoken. Screens show all progress; speech skips some.
//
// Owns:     the time and the percentage of each subagent's last spoken progress.
// Does not: speak it, or read a clock.

/**
 * `milestones`: spoken when a quarter, a half and three quarters are done. `all`: every report. Both no more
 * often than the pace allows; skipped progress is not spoken later.
 */
export type SpeakProgress = (typeof SPEAK_PROGRESS)[number];

export const SPEAK_PROGRESS = ['off', 'milestones', 'all'] as const;

/** Shortest interval between two spoken reports of one subagent, in milliseconds. */
export const PROGRESS_PACE_MS = 30_000;
/** Time after which unspoken progress is stale, in milliseconds. */
export const PROGRESS_TTL_MS = 30_000;

export class ProgressPace {
  readonly #said = new Map<string, { readonly at: number; readonly quarter: number }>();

  /** Tells whether a report is to be spoken. `percent` is 0 to 100, or null if unknown. */
  allows(subagentId: string, how: SpeakProgress, percent: number | null, at: number): boolean {
    if (how === 'off') return false;
    const last = this.#said.get(subagentId);
    const quarter = percent === null ? 0 : Math.min(3, Math.floor(percent / 25));
    if (how === 'milestones' && quarter <= (last?.quarter ?? 0)) return false;
    if (last !== undefined && at - last.at < PROGRESS_PACE_MS) return false;
    this.#said.set(subagentId, { at, quarter: Math.max(quarter, last?.quarter ?? 0) });
    return true;
  }

  /** Forgets a subagent that has ended. */
  forget(subagentId: string): void {
    this.#said.delete(subagentId);
  }
}
