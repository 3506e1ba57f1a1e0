// A subagent's task, the content of its steps, and the type of Offstage's own toolsets.

import type { Tool } from 'ai';

/** A delegated task. */
export interface SubagentTask {
  /** The called tool. */
  readonly toolName: string;
  /** The tool call's arguments. */
  readonly args: Readonly<Record<string, unknown>>;
  /** The task, as text. */
  readonly description: string;
}

/** The streamed text and calls of a subagent with `stream: true`. The journal does not contain them. */
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
      /** The tool's error message, if it failed. */
      readonly error?: string;
    };

/** The content of a committed model step. */
export interface StepReport {
  /** The step's number, counted from 1. */
  readonly step: number;
  /** The names of the tools that the step called. */
  readonly toolCalls: readonly string[];
  /** The tokens of the step. */
  readonly tokensUsed: number;
  /** The cost in the currency of `price`; absent if unknown. */
  readonly cost?: number;
}

/** A tool call that was running when the process ended and is not run again. */
export interface CallInDoubt {
  readonly callId: string;
  readonly toolName: string;
  readonly input: unknown;
  /** The idempotency key of the call. */
  readonly idempotencyKey: string;
}

/** A subagent's question to its parent. */
export interface AskedInput {
  readonly requestId: string;
  readonly subagentId: string;
  readonly subagentName: string;
  readonly question: string;
  readonly context?: string;
  /**
   * How long the parent may take to answer, in milliseconds, if the call specifies this; otherwise the scope's default
   * applies.
   */
  readonly timeoutMs?: number;
}

/** AI SDK tools by name. Only schemas describe their inputs: input types would expose another package's types. */
export type Toolset<Name extends string> = Readonly<Record<Name, Tool>>;
