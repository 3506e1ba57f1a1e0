// Outcomes of subagents, for tests of the code that reads them.

import type { CompletedOutcome, UnfinishedOutcome } from '../../src/actors/contracts/outcome.ts';

const facts = {
  steps: 1,
  usage: { inputTokens: 0, outputTokens: 0, totalTokens: 0 },
  toolLedger: [],
};

export function completedOutcome(
  text: string,
  more: Partial<CompletedOutcome> = {},
): CompletedOutcome {
  return { status: 'completed', output: text, text, ...facts, ...more };
}

export function unfinishedOutcome(
  more: Partial<UnfinishedOutcome> & Pick<UnfinishedOutcome, 'status'>,
): UnfinishedOutcome {
  const error = { code: 'MODEL_ERROR', message: 'the provider is down', retryable: true };
  return { output: null, text: '', error, ...facts, ...more };
}
