// What a stream of a family of subagents is made of: plain JSON, under the ids of whose it is.

/** Whose chunk it is. */
export interface OfAgent {
  /** The id of the subagent. */
  readonly agentId: string;
  /** The name of its configuration. */
  readonly agentType: string;
  /** Milliseconds since 1970. */
  readonly timestamp: number;
}

export interface OfChild {
  readonly subAgentId: string;
  readonly agentType: string;
  /** The subagent that spawned it; the id of the service for one of a lead agent or a program. */
  readonly parentAgentId: string;
  /** The parent's call that it works for. */
  readonly toolCallId: string | null;
  readonly timestamp: number;
}

/**
 * `text_delta`, `thinking`, `tool_start` and `tool_end` come of subagents with `stream: true`
 * only; all others of every subagent.
 */
export type SubAgentStreamChunk =
  | (OfChild & { readonly type: 'subagent_start'; readonly input: unknown })
  | (OfChild & {
      readonly type: 'subagent_end';
      readonly success: boolean;
      /** If it succeeded. */
      readonly result?: unknown;
      /** The message, if it did not. */
      readonly error?: string;
    })
  | (OfAgent & { readonly type: 'text_delta' | 'thinking'; readonly delta: string })
  | (OfAgent & {
      readonly type: 'tool_start';
      readonly toolCallId: string;
      readonly toolName: string;
      readonly input: unknown;
    })
  | (OfAgent & {
      readonly type: 'tool_end';
      readonly toolCallId: string;
      readonly toolName: string;
      readonly output: unknown;
      readonly error?: string;
    })
  /** Its result, before its `subagent_end`. */
  | (OfAgent & { readonly type: 'output'; readonly output: unknown })
  /** Why it has no result, before its `subagent_end`. */
  | (OfAgent & { readonly type: 'error'; readonly code: string; readonly message: string })
  /** What else happens to it: `progress`, `input.requested`, `message.applied`, `hung`, … */
  | (OfAgent & { readonly type: 'custom'; readonly name: string; readonly data: unknown });
