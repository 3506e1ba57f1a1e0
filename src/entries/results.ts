// The entry `offstage/results`: the claims that subagents make, large outputs, earlier work and details of failures.

export { isLargeOutput } from '../memory/large-output.ts';
export type {
  CompletedOutcome,
  LargeOutput,
  UnfinishedOutcome,
} from '../actors/contracts/outcome.ts';
export { speakable } from '../memory/speakable.ts';
export { verifyClaims } from '../results/verify-claims.ts';
export { modelClaimJudge } from '../results/judge-claims.ts';
export type { ClaimJudge } from '../results/judge-claims.ts';
export type { ClaimVerification, FailureDetails } from '../actors/contracts/outcome.ts';
