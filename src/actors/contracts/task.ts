/** What is delegated. */
export interface SubagentTask {
  readonly toolName: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly description: string;
}

/** What a subagent with `stream: true` says and does, while it does. Beside the journal. */
export type StreamedChunk =
  | { readonly type: 'text_delta'; readonly step: number; readonly delta: string }
  | { readonly type: 'thinking'; readonly step: number; readonly delta: string }
  | {
      readonly type: 'tool_start';
      readonly step: number;
      readonly callId: string;
      readonly toolName: string;
      readonly input: unknown;
    }
  | {
      readonly type: 'tool_end';
      readonly step: number;
      readonly callId: string;
      readonly toolName: string;
      readonly output: unknown;
      /** The message of its error, if it failed. */
      readonly error?: string;
    };

/** What a model step was about, once it is committed. */
export interface StepReport {
  readonly step: number;
  readonly toolCalls: readonly string[];
  readonly tokensUsed: number;
}

/** A tool call that was being run when the process ended, and is not run again. */
export interface CallInDoubt {
  readonly callId: string;
  readonly toolName: string;
  readonly input: unknown;
  /** The key that it was run with. */
  readonly idempotencyKey: string;
}

/** What it asks of the agent that gave it the task. */
export interface AskedInput {
  readonly requestId: string;
  readonly subagentId: string;
  readonly subagentName: string;
  readonly question: string;
  readonly context?: string;
  /** Time to answer, in milliseconds, where the call says so; else the scope does. */
  readonly timeoutMs?: number;
}
