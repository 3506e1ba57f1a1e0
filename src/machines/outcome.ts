// How a subagent ended. A subagent's failure is data and is not thrown.

/** A failure, as data. */
export interface Failure {
  /** Stable: `STEP_LIMIT`, `INPUT_TIMEOUT`, `TIMEOUT`, `INTERNAL`, … */
  readonly code: string;
  /** A description of the cause. */
  readonly message: string;
  /** Whether the same work may succeed if it is attempted again. */
  readonly retryable: boolean;
}

/** How a subagent ended, as reported by its machine; the runtime adds the completed work (`Outcome`). */
export interface Ending {
  /** How the work ended. */
  readonly status: 'completed' | 'failed' | 'cancelled' | 'timed_out' | 'lost';
  /** The failure, if the work did not complete. @defaultValue none */
  readonly error?: Failure;
  /** The number of model steps that were started. */
  readonly steps: number;
}
