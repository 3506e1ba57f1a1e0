// How a subagent ended. A failure that is part of a life is data, never thrown.

/** Why something did not work, as data. */
export interface Failure {
  /** Stable: `STEP_LIMIT`, `INPUT_TIMEOUT`, `TIMEOUT`, `INTERNAL`, … */
  readonly code: string;
  readonly message: string;
  /** Would the same work have a chance if it were tried again? */
  readonly retryable: boolean;
}

/** What the machine of a subagent says at its end; the runtime adds what was done (`Outcome`). */
export interface Ending {
  readonly status: 'completed' | 'failed' | 'cancelled' | 'timed_out' | 'lost';
  readonly error?: Failure;
  /** Model steps that were begun. */
  readonly steps: number;
}
