// What an app may listen to without subscribing. A hook that throws is reported to
// `onError` and breaks nothing; nobody waits for a hook.

import { aFunction, type ChecksOf } from '../../../values/checks.ts';
import type { CallAnswer, Failure } from '../../../machines/index.ts';
import type { AskedQuestion } from '../../contracts/records.ts';
import type {
  DeliveryView,
  DoubtfulCall,
  LimitView,
  SubagentView,
  UsageView,
} from '../../contracts/session-views.ts';
import type { Outcome } from '../../contracts/outcome.ts';

export interface SessionHooks {
  readonly onSessionStart?: (event: { sessionId: string }) => void;
  readonly onSessionEnd?: (event: {
    sessionId: string;
    durationMs: number;
    error: { code: string; message: string } | null;
  }) => void;
  readonly onToolCall?: (event: { callId: string; name: string; input: unknown }) => void;
  /** `status`: how it came to its answer; `pending` when the work goes on in the background. */
  readonly onToolResult?: (event: {
    callId: string;
    name: string;
    output: unknown;
    status: CallAnswer;
  }) => void;
  /** What an inline tool threw, as it was thrown; its message is the answer to the call. */
  readonly onToolError?: (event: { callId: string; name: string; error: unknown }) => void;
  /**
   * After a crash: a tool call that was being run, is not known to have been done, and is not run
   * again, since its tool is not `idempotent`. The model is told so, too. `subagentId` null: a call
   * of the lead agent.
   */
  readonly onCallInDoubt?: (event: DoubtfulCall) => void;
  readonly onSubagentStart?: (event: SubagentView) => void;
  readonly onSubagentStep?: (event: {
    subagentId: string;
    subagentName: string;
    stepNumber: number;
    toolCalls: readonly string[];
    tokensUsed: number;
  }) => void;
  readonly onSubagentEnd?: (event: {
    subagentId: string;
    subagentName: string;
    outcome: Outcome;
  }) => void;
  readonly onQuestion?: (event: AskedQuestion) => void;
  /** The lead agent has changed, or (`error`) was to change and has not. */
  readonly onTransfer?: (event: { from: string; to: string; error: Failure | null }) => void;
  /** The model has said what it had to say. `turn` counts from 1. */
  readonly onTurnEnd?: (event: { turn: number; agentName: string }) => void;
  /** The voice model said what it has used: `used` since it last did, `usage` in this session. */
  readonly onUsage?: (event: { usage: UsageView; used: UsageView }) => void;
  /** The provider of the voice model said what it still allows. */
  readonly onLimits?: (event: { limits: readonly LimitView[] }) => void;
  /** Something came that could not be taken at that time: late, double, or not for whom it named. */
  readonly onIgnored?: (event: { unit: string; actor: string; type: string }) => void;
  readonly onDelivered?: (event: DeliveryView) => void;
  /** Something went wrong that the session survives: a hook, a journal, a transport. */
  readonly onError?: (error: unknown, where: string) => void;
}

const hook = aFunction.optional();

export const hookChecks = {
  onSessionStart: hook,
  onSessionEnd: hook,
  onToolCall: hook,
  onToolResult: hook,
  onToolError: hook,
  onCallInDoubt: hook,
  onSubagentStart: hook,
  onSubagentStep: hook,
  onSubagentEnd: hook,
  onQuestion: hook,
  onTransfer: hook,
  onTurnEnd: hook,
  onUsage: hook,
  onLimits: hook,
  onIgnored: hook,
  onDelivered: hook,
  onError: hook,
} satisfies ChecksOf<SessionHooks>;
