// The settings of an AI SDK `ToolLoopAgent` that a subagent accepts, and their validated form.

import type { generateText, LanguageModelCallOptions, ToolLoopAgentSettings, ToolSet } from 'ai';

/** The AI SDK agent settings that a subagent refuses, each with what to use instead. */
export const NOT_KEPT = {
  output: 'give `outputSchema` beside `agent`',
  prepareCall: 'give `createInstance` beside `agent`, which returns a configuration for each run',
  callOptionsSchema: 'give `inputSchema` beside `agent`',
  toolCallConcurrency: 'the calls of a step are run side by side',
  allowSystemInMessages: 'the instructions are the only system message',
  telemetry: '`offstage/otel` has the metrics and spans of subagents',
  experimental_telemetry: '`offstage/otel` has the metrics and spans of subagents',
  include: 'the journal has every answer of the model',
  experimental_toolCallers: 'only the model calls tools',
  experimental_toolApprovalSecret: 'approvals are in the journal, and never come from a client',
  experimental_refineToolInput: 'transform the input in `inputSchema` of the tool',
  experimental_download: 'the SDK downloads what the model cannot read',
  onStart: 'subscribe to the events of the session or the service',
  experimental_onStart: 'subscribe to the events of the session or the service',
  onStepStart: 'subscribe to the events of the session or the service',
  experimental_onStepStart: 'subscribe to the events of the session or the service',
  onLanguageModelCallStart: 'subscribe to the events of the session or the service',
  onLanguageModelCallEnd: 'subscribe to the events of the session or the service',
  onToolExecutionStart: 'subscribe to the events of the session or the service',
  onToolExecutionEnd: 'subscribe to the events of the session or the service',
  onStepEnd: 'subscribe to the events of the session or the service',
  onStepFinish: 'subscribe to the events of the session or the service',
  onStepError: 'give `onError` to the session, the service or the run',
  onError: 'give `onError` to the session, the service or the run',
  onAbort: 'the outcome has the reason of the end',
  onEnd: 'the outcome has the result',
  onFinish: 'the outcome has the result',
  _internal: 'the runtime has an environment of its own',
} as const;

type AnyContext = Record<string, unknown>;

/** The settings of a `ToolLoopAgent`, except those that a subagent refuses; the error names what to use instead. */
export type AgentSettings<
  TOOLS extends ToolSet = ToolSet,
  RUNTIME_CONTEXT extends AnyContext = AnyContext,
> = ToolLoopAgentSettings<never, TOOLS, RUNTIME_CONTEXT> & {
  readonly [Name in keyof typeof NOT_KEPT]?: never;
};

/** The settings of one model call, without its messages. */
export type CallSettings = LanguageModelCallOptions &
  Pick<
    Parameters<typeof generateText>[0],
    'headers' | 'providerOptions' | 'repairToolCall' | 'toolChoice'
  >;

/**
 * The loop of a `ToolLoopAgent`. `agentSubagent({ agent: settings })` creates it from the settings for which a
 * configuration has no field of its own (all except `model`, `tools`, `instructions`, `toolApproval` and
 * `toolsContext`).
 */
export interface AgentLoop {
  /** Executes the loop. */
  readonly steps: { readonly stepsBy: 'agent' };
  /** The settings of every call; a step may override them. */
  readonly call: CallSettings;
  /**
   * The agent's `runtimeContext` for its first step, which `prepareStep` may replace for later steps; empty if the
   * settings have none.
   */
  readonly runtimeContext: AnyContext;
  /** The names of the agent's own tools. */
  readonly toolNames: readonly string[];
  /**
   * The names of the agent's own tools that the model may call; undefined for all of them. Tools that the runtime adds
   * are always available.
   */
  readonly activeTools: readonly string[] | undefined;
  /**
   * The names of tools that are listed first to the model, in this order; the other tools follow alphabetically.
   * Undefined for the original order.
   */
  readonly toolOrder: readonly string[] | undefined;
  /** The stop conditions, which are checked after each step that called tools. */
  readonly stopWhen: readonly ((options: object) => unknown)[];
  /**
   * The agent's `prepareStep`, which is called before each step and may change the step's settings. Undefined if the
   * agent has none.
   */
  readonly prepareStep: ((options: object) => unknown) | undefined;
}
