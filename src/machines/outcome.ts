// The end of a subagent. A failure of a subagent is data, and is not thrown.

/** A failure, as data. */
export interface Failure {
  /** Stable: `STEP_LIMIT`, `INPUT_TIMEOUT`, `TIMEOUT`, `INTERNAL`, … */
  readonly code: string;
  /** The cause, in words. */
  readonly message: string;
  /** Whether the same work may succeed in another attempt. */
  readonly retryable: boolean;
}

/** The end of a subagent as its machine reports it; the runtime adds the completed work (`Outcome`). */
export interface Ending {
  /** The kind of the end. */
  readonly status: 'completed' | 'failed' | 'cancelled' | 'timed_out' | 'lost';
  /** The failure of work that did not complete. @defaultValue none */
  readonly error?: Failure;
  /** The number of model steps that were started. */
  readonly steps: number;
}
