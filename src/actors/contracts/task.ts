// The task of a subagent, the content of its steps, and the type of the tools that the runtime ships.

import type { Tool } from 'ai';

/** A delegated task. */
export interface SubagentTask {
  readonly toolName: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly description: string;
}

/** Streamed text and calls of a subagent with `stream: true`. Not in the journal. */
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

/** The content of a committed model step. */
export interface StepReport {
  readonly step: number;
  readonly toolCalls: readonly string[];
  readonly tokensUsed: number;
  /** In the currency of `price`; absent if it is not known. */
  readonly cost?: number;
}

/** A tool call that was being run when the process ended, and is not run again. */
export interface CallInDoubt {
  readonly callId: string;
  readonly toolName: string;
  readonly input: unknown;
  /** The key of the call. */
  readonly idempotencyKey: string;
}

/** A question of a subagent to the agent that gave it the task. */
export interface AskedInput {
  readonly requestId: string;
  readonly subagentId: string;
  readonly subagentName: string;
  readonly question: string;
  readonly context?: string;
  /** The time to answer, in milliseconds, if the call states it; otherwise the scope's default. */
  readonly timeoutMs?: number;
}

/**
 * AI SDK tools, by name. Their schemas describe the inputs; as a type they would expose the types of another
 * package.
 */
export type Toolset<Name extends string> = Readonly<Record<Name, Tool>>;
