// The end of a subagent. A failure in its life is data, never thrown.

/** A failure, as data. */
export interface Failure {
  /** Stable: `STEP_LIMIT`, `INPUT_TIMEOUT`, `TIMEOUT`, `INTERNAL`, … */
  readonly code: string;
  /** The cause, in words. */
  readonly message: string;
  /** Whether the same work may succeed if it is tried again. */
  readonly retryable: boolean;
}

/** The end of a subagent as its machine reports it; the runtime adds the work that was done (`Outcome`). */
export interface Ending {
  /** The kind of the end. */
  readonly status: 'completed' | 'failed' | 'cancelled' | 'timed_out' | 'lost';
  /** The failure of work that did not complete. @defaultValue none */
  readonly error?: Failure;
  /** Model steps that were begun. */
  readonly steps: number;
}
