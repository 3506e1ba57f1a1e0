// What an app may listen to without subscribing. A hook that throws is reported to
// `onError` and breaks nothing; nobody waits for a hook.

import type { AskedQuestion } from './records.ts';
import type { DeliveryView, SubagentView } from '../session-views.ts';
import type { Outcome } from '../subagent/outcome.ts';

export interface SessionHooks {
  readonly onSessionStart?: (event: { sessionId: string }) => void;
  readonly onSessionEnd?: (event: {
    sessionId: string;
    durationMs: number;
    error: { code: string; message: string } | null;
  }) => void;
  readonly onToolCall?: (event: { callId: string; name: string; input: unknown }) => void;
  readonly onToolResult?: (event: { callId: string; name: string; output: unknown }) => void;
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
  readonly onDelivered?: (event: DeliveryView) => void;
  /** Something went wrong that the session survives: a hook, a journal, a transport. */
  readonly onError?: (error: unknown, where: string) => void;
}
