// The reply of the demo's rules.

export interface ToolCall {
  readonly toolName: string;
  readonly input: Readonly<Record<string, unknown>>;
}

export interface Reply {
  /** Empty when it only acts. */
  readonly text: string;
  readonly calls: readonly ToolCall[];
}
