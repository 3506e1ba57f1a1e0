// How a subagent has ended, between the instant in which that is certain and the one in which whoever
// runs it is told: what it came to may be looked at first.
//
// Owns:     what is told of it, and that it is told once.
// Does not: find out what it came to (outcome-of.ts), or look at it (who runs it does).

import type { Outcome } from '../contracts/outcome.ts';

export class SubagentEnd {
  #outcome: Outcome;
  #tell: ((outcome: Outcome) => void) | null;

  /** `tell` is called once, with what it came to in the end. */
  constructor(outcome: Outcome, tell: (outcome: Outcome) => void) {
    this.#outcome = outcome;
    this.#tell = tell;
  }

  get status(): Outcome['status'] {
    return this.#outcome.status;
  }

  /** What was told; null: it is still being looked at. */
  get told(): Outcome | null {
    return this.#tell ? null : this.#outcome;
  }

  /** It was looked at, or nobody wants to: it is told now. Not twice. */
  settle(outcome: Outcome = this.#outcome): void {
    const tell = this.#tell;
    if (!tell) return;
    this.#tell = null;
    this.#outcome = outcome;
    tell(outcome);
  }
}
