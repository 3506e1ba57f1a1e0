// A subagent's task, the content of its steps, and the type of Offstage's own toolsets.

import type { Tool } from 'ai';

/** A delegated task. */
export interface SubagentTask {
  /** The called tool. */
  readonly toolName: string;
  /** The tool call's arguments. */
  readonly args: Readonly<Record<string, unknown>>;
  /** The task, in words. */
  readonly description: string;
}

/** Streamed text and calls of a subagent with `stream: true`. They are not in the journal. */
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
  /** The step's number, from 1. */
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

/** A subagent's question to its parent. */
export interface AskedInput {
  readonly requestId: string;
  readonly subagentId: string;
  readonly subagentName: string;
  readonly question: string;
  readonly context?: string;
  /**
   * How long the parent may take to answer, in milliseconds, if the call sets a time; otherwise the scope's default applies.
   */
  readonly timeoutMs?: number;
}

/** AI SDK tools by name. Their inputs are described only by schemas: input types would expose another package's types. */
export type Toolset<Name extends string> = Readonly<Record<Name, Tool>>;
