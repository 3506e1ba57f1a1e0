// The end of a subagent, between the instant in which it is certain and the report to the host: the outcome
// may be processed first.
//
// Owns:     the outcome that is reported, and that it is reported once.
// Does not: build the outcome (outcome-of.ts), or process it (the host does).

import type { Outcome } from '../contracts/outcome.ts';

export class SubagentEnd {
  #outcome: Outcome;
  #tell: ((outcome: Outcome) => void) | null;

  /** Calls `tell` once, with the final outcome. */
  constructor(outcome: Outcome, tell: (outcome: Outcome) => void) {
    this.#outcome = outcome;
    this.#tell = tell;
  }

  get status(): Outcome['status'] {
    return this.#outcome.status;
  }

  /** The reported outcome; null while it is being processed. */
  get told(): Outcome | null {
    return this.#tell ? null : this.#outcome;
  }

  /** Reports the outcome, processed or as it is; at most once. */
  settle(outcome: Outcome = this.#outcome): void {
    const tell = this.#tell;
    if (!tell) return;
    this.#tell = null;
    this.#outcome = outcome;
    tell(outcome);
  }
}
