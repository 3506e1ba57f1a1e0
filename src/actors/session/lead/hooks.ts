// An app's hooks, an alternative to subscriptions. If a hook throws, the error is reported to `onError` and has no
// other effect. No component waits for a hook.

import { aFunction, type ChecksOf } from '../../../values/checks.ts';
import type { CallAnswer, Failure } from '../../../machines/index.ts';
import type { AskedQuestion } from '../../contracts/records.ts';
import type {
  DeliveryView,
  DoubtfulCall,
  LimitView,
  SubagentView,
} from '../../contracts/session-views.ts';
import type { Outcome } from '../../contracts/outcome.ts';
import type { LeadUsage, UsageView } from '../../contracts/usage.ts';

/** An app's hooks for a session, each called when its event happens. */
export interface SessionHooks {
  /** Called when the session starts. */
  readonly onSessionStart?: (event: { sessionId: string }) => void;
  /** Called when the session has ended. */
  readonly onSessionEnd?: (event: {
    sessionId: string;
    durationMs: number;
    error: { code: string; message: string } | null;
  }) => void;
  /** Called when the lead agent calls a tool. */
  readonly onToolCall?: (event: { callId: string; name: string; input: unknown }) => void;
  /** `status` is the kind of answer, or `pending` if the work continues in the background. */
  readonly onToolResult?: (event: {
    callId: string;
    name: string;
    output: unknown;
    status: CallAnswer;
  }) => void;
  /** The error that an inline tool threw, unchanged. Its message is the answer to the call. */
  readonly onToolError?: (event: { callId: string; name: string; error: unknown }) => void;
  /**
   * Called after a crash for a tool call that was running at that time. The call may or may not have been executed. It
   * is not repeated, because its tool is not `idempotent`. The model is also told about the call. `subagentId` is null
   * for a call by the lead agent.
   */
  readonly onCallInDoubt?: (event: DoubtfulCall) => void;
  /** Called when a subagent starts. */
  readonly onSubagentStart?: (event: SubagentView) => void;
  /** Called after each model step of a subagent. */
  readonly onSubagentStep?: (event: {
    subagentId: string;
    subagentName: string;
    stepNumber: number;
    toolCalls: readonly string[];
    tokensUsed: number;
    /** The cost in the currency of `price` (`createRuntime`); absent if unknown. */
    cost?: number;
  }) => void;
  /** Called when a subagent has ended. The outcome says how. */
  readonly onSubagentEnd?: (event: {
    subagentId: string;
    subagentName: string;
    outcome: Outcome;
  }) => void;
  /** Called when a subagent asks the user a question or requests an approval. */
  readonly onQuestion?: (event: AskedQuestion) => void;
  /** Called when the lead agent has changed or, with `error`, when a transfer has failed. */
  readonly onTransfer?: (event: { from: string; to: string; error: Failure | null }) => void;
  /** Called when the model has completed its turn. `turn` counts from 1. */
  readonly onTurnEnd?: (event: { turn: number; agentName: string }) => void;
  /**
   * Called when the lead agent's model reports its usage since the last report (`used`). `usage` is the total. Called
   * once more after the session has ended, with the usage for the last extraction of facts, which no state includes.
   */
  readonly onUsage?: (event: { usage: UsageView; used: LeadUsage }) => void;
  /** Called when the voice model's provider reports its remaining limits. */
  readonly onLimits?: (event: { limits: readonly LimitView[] }) => void;
  /** Called for an event that could not be applied: it was late, a duplicate, or sent to an actor that has ended. */
  readonly onIgnored?: (event: { unit: string; actor: string; type: string }) => void;
  /** Called when a result or notice has been delivered. */
  readonly onDelivered?: (event: DeliveryView) => void;
  /** Called when a hook, a journal or a transport reports an error that does not end the session. */
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
