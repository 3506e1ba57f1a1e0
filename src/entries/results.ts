// `offstage/results`: claims of subagents, large outputs, earlier work, details of failures.

export { isLargeOutput } from '../memory/large-output.ts';
export type {
  CompletedOutcome,
  LargeOutput,
  UnfinishedOutcome,
} from '../actors/contracts/outcome.ts';
export { speakable } from '../memory/speakable.ts';
export type { OutcomeOptions } from '../results/outcome-processor.ts';
export { verifyClaims } from '../results/verify-claims.ts';
export type { DeclaredEffects } from '../results/verify-claims.ts';
export type { ModelCalls, ModelUse } from '../actors/contracts/usage.ts';
export { modelClaimJudge } from '../results/judge-claims.ts';
export type { ClaimJudge, ClaimVerdict } from '../results/judge-claims.ts';
export { LINEAGE_BUDGET_CHARS, priorWorkSection } from '../results/prior-work.ts';
export type { PriorInput, PriorResult, PriorWork } from '../results/prior-work.ts';
export type {
  ClaimVerification,
  UnverifiedClaim,
  FailureDetails,
  FailureReason,
  LastTool,
} from '../actors/contracts/outcome.ts';
