// The end of a subagent. A failure in its life is data, never thrown.

/** A failure, as data. */
export interface Failure {
  /** Stable: `STEP_LIMIT`, `INPUT_TIMEOUT`, `TIMEOUT`, `INTERNAL`, … */
  readonly code: string;
  readonly message: string;
  /** Whether the same work may succeed if it is tried again. */
  readonly retryable: boolean;
}

/** The end of a subagent as its machine reports it; the runtime adds the work that was done (`Outcome`). */
export interface Ending {
  readonly status: 'completed' | 'failed' | 'cancelled' | 'timed_out' | 'lost';
  readonly error?: Failure;
  /** Model steps that were begun. */
  readonly steps: number;
}
