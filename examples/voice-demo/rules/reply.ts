// The reply that the demo's rules produce.

export interface ToolCall {
  readonly toolName: string;
  readonly input: Readonly<Record<string, unknown>>;
}

export interface Reply {
  /** Empty if the reply only calls tools. */
  readonly text: string;
  readonly calls: readonly ToolCall[];
}
