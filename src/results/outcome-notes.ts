// The runtime's notes on an outcome, for a model that reads it as data: claims of its report without a call
// that fits, and where there is more to read.

import type { Outcome } from '../actors/contracts/outcome.ts';

export interface OutcomeNotes {
  /** Objections to the report, a sentence each. */
  readonly caveats?: readonly string[];
  /** Keys of working memory that the subagent left. */
  readonly workingMemory?: readonly string[];
}

/** Returns the notes; empty if there are none, because a model would follow an empty hint. */
export function outcomeNotes(outcome: Outcome | null): OutcomeNotes {
  const { verification, notes = [] } = outcome ?? {};
  const caveats = (verification?.unverified ?? []).map(({ claim, reason, toolName }) =>
    reason === 'failed'
      ? `The subagent says ${JSON.stringify(claim)}; its call of ${toolName ?? 'the tool'} did not succeed.`
      : `The subagent says ${JSON.stringify(claim)}; the runtime has no record of it.`,
  );
  if (verification?.incomplete === true)
    caveats.push('It ends where work was about to begin: the work may not be finished.');
  return {
    ...(caveats.length > 0 ? { caveats } : {}),
    ...(notes.length > 0 ? { workingMemory: notes } : {}),
  };
}
