// The task of a subagent, the content of its steps, and the type of the toolsets that come with Offstage.

import type { Tool } from 'ai';

/** A delegated task. */
export interface SubagentTask {
  /** The tool that was called. */
  readonly toolName: string;
  /** The arguments of the tool call. */
  readonly args: Readonly<Record<string, unknown>>;
  /** The task, in words. */
  readonly description: string;
}

/** Streamed text and calls of a subagent with `stream: true`. The journal does not have them. */
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
      /** The message of the tool's error, if it failed. */
      readonly error?: string;
    };

/** The content of a committed model step. */
export interface StepReport {
  /** The number of the model step, from 1. */
  readonly step: number;
  /** The names of the tools that the step called. */
  readonly toolCalls: readonly string[];
  /** The tokens of the step. */
  readonly tokensUsed: number;
  /** The cost in the currency of `price`; absent if unknown. */
  readonly cost?: number;
}

/** A tool call that was running when the process ended, and does not run again. */
export interface CallInDoubt {
  readonly callId: string;
  readonly toolName: string;
  readonly input: unknown;
  /** The idempotency key of the call. */
  readonly idempotencyKey: string;
}

/** A question of a subagent to its parent. */
export interface AskedInput {
  readonly requestId: string;
  readonly subagentId: string;
  readonly subagentName: string;
  readonly question: string;
  readonly context?: string;
  /** The time to answer, in milliseconds, if the call sets one; otherwise the scope's default applies. */
  readonly timeoutMs?: number;
}

/**
 * AI SDK tools by name. Their inputs are described by schemas only: types of the inputs would expose the types of
 * another package.
 */
export type Toolset<Name extends string> = Readonly<Record<Name, Tool>>;
