// A subagent's configuration as its author writes it, and its validated form.

import type {
  InferToolInput,
  LanguageModel,
  SingleToolApprovalFunction,
  Tool,
  ToolApprovalConfiguration,
  ToolApprovalStatus,
  ToolSet,
} from 'ai';
import { type DeliveryMode } from '../../machines/index.ts';
import type { Relay } from '../ports/relay.ts';
import type { AgentLoop } from './agent-loop.ts';

/**
 * `milestones`: progress is spoken at a quarter, a half and three quarters of the work. `all`: every progress report is
 * spoken. In both cases, the pace limits how often progress is spoken; skipped progress is not spoken later.
 */
export type SpeakProgress = (typeof SPEAK_PROGRESS)[number];

export const SPEAK_PROGRESS = ['off', 'milestones', 'all'] as const;

/** Where a step runs: in the session's process, or as a job of the engine in the runtime's `jobs`. */
export type RunsWhere = (typeof RUNS_WHERE)[number];

export const RUNS_WHERE = ['here', 'jobs'] as const;

type Context = Record<string, unknown>;

/**
 * Which tool calls need the user's approval, as in the AI SDK's `toolApproval`: `user-approval`, `approved`, `denied`,
 * `not-applicable`, `{ type, reason }` or a function of the input that returns one of these, for each tool; or one
 * function for all tools.
 */
export type ToolApproval =
  | Extract<ToolApprovalConfiguration<ToolSet, Context>, (...given: never[]) => unknown>
  | Readonly<
      Record<
        string,
        | ToolApprovalStatus
        | SingleToolApprovalFunction<InferToolInput<Tool>, Context | undefined, Context>
      >
    >;

/** The configuration of one kind of subagent. One configuration is used for many runs. */
export interface SubagentConfig {
  /** The subagent's name in events, in the inspector and in texts for the user. */
  readonly name: string;
  /** The system prompt. */
  readonly instructions: string;
  /**
   * Returns a run's title for lists and headings: `A ride to the airport`. Receives the task's arguments, which are
   * `{}` if the task is only text. Called once, before the run starts; the first 200 characters are stored in the
   * journal and shown in the views that clients receive. If the function throws (which is reported) or does not return
   * a string, the default title is used. @defaultValue the task's description
   */
  readonly title?: (args: Readonly<Record<string, unknown>>) => string;
  /** The tools, by name, created with the AI SDK's `tool()`. The runtime adds `ask_user` if `interactive` is true. */
  readonly tools?: Readonly<Record<string, unknown>>;
  /**
   * Decides which tool calls need approval. It takes precedence over the tools' `needsApproval`, which still applies to
   * tools that are not named here. `approved` and `denied` are decisions by the author and appear in the ledger as
   * `pre_authorised` and `author_denied`. If a function throws or returns another value, the error is reported and the
   * user is asked. @defaultValue none
   */
  readonly toolApproval?: ToolApproval;
  /** The maximum number of model steps. @defaultValue 5; 1000 with `relay`, where each tool and each question is a step */
  readonly maxSteps?: number;
  /**
   * The maximum running time, in milliseconds; waiting for a slot or for the user does not count.
   * @defaultValue 600000
   */
  readonly timeout?: number;
  /** The model; if absent, the session's model. */
  readonly model?: LanguageModel;
  /**
   * A third-party agent, such as one from `offstage/acp`, that does the work instead of a model. Its permission
   * requests become approvals for the tool `agent_tool`. The agent brings its own tools and model, so `tools`, `model`
   * and their options are refused together with `relay`.
   */
  readonly relay?: Relay;
  /**
   * The loop of an AI SDK agent: `prepareStep`, `stopWhen` and the settings of its calls. Only
   * `agentSubagent({ agent: settings })` of `offstage/subagents` creates it. @defaultValue none
   */
  readonly agent?: AgentLoop;
  /**
   * Where model calls and tool calls run. `jobs`: on the engine in the runtime's `jobs`, by any `jobWorker` with the
   * same configuration, tools and keys; the session still decides on questions, approvals, budgets and retries. A tool
   * with its own `runs` overrides this; tools that wait for other subagents always run here. Without `jobs` in the
   * runtime, every step runs here. Cannot be combined with `relay`, `createInstance` or `dispose`. The worker's
   * `toolsContext` is used, not the session's. @defaultValue 'here'
   */
  readonly runs?: RunsWhere;
  /** Whether the subagent may ask the user. @defaultValue false; true with `relay` */
  readonly interactive?: boolean;
  /**
   * The longest time that the subagent may sleep with the tool `sleep_until`, in milliseconds; at most one year. A
   * sleeping subagent holds no run slot, its `timeout` is paused, and its session may leave memory. @defaultValue 0:
   * the subagent does not have the tool
   */
  readonly maxSleepMs?: number;
  /** The time that the user has to answer a question, in milliseconds. @defaultValue 120000 */
  readonly inputTimeout?: number;
  /** The number of consecutive unanswered questions after which the subagent ends. @defaultValue 3 */
  readonly maxInputRetries?: number;
  /** The time limit of one tool call, in milliseconds; none by default (the run's `timeout` applies). */
  readonly toolTimeout?: number;
  /**
   * Returns the configuration for one run, or a promise of it. Use it for state that runs must not share, such as a
   * connection or an MCP client. A rejection fails the run (`PREPARATION_FAILED`). The runtime waits for the promise
   * until the run ends or its `timeout` passes; an instance that arrives later is disposed of.
   */
  readonly createInstance?: () => SubagentConfig | Promise<SubagentConfig>;
  /**
   * Frees a run's resources, however the run ends. Called once per instance: if several runs share an instance, it is
   * called when the last of them has ended. The runtime stops waiting for a `dispose` that takes more than 30 seconds,
   * and reports this.
   */
  readonly dispose?: () => void | Promise<void>;
  /**
   * Defines the task's arguments: a zod schema or any Standard Schema that describes an object. A task with a missing
   * or an additional argument is refused before it starts. The tool that starts the task validates the values.
   */
  readonly inputSchema?: unknown;
  /** The schema of the JSON result: a zod schema or any Standard Schema. @defaultValue none: the result is text */
  readonly outputSchema?: unknown;
  /**
   * How the model is asked for the result's format. `auto`: with the provider's structured output, in addition to the
   * instructions. If the provider refuses or ignores that setting, only the instructions are used, including in later
   * runs with that model. `off`: with the instructions alone. In both cases, a result that does not match is requested
   * again.
   * @defaultValue 'auto'
   */
  readonly structured?: 'auto' | 'off';
  /** The part of the conversation that the subagent receives. @defaultValue 'snapshot'; 'none' with `relay` */
  readonly context?: 'snapshot' | 'none' | 'summary' | 'recent' | 'fork';
  /**
   * Whether the subagent receives the conversation's earlier work, up to 24,000 characters: the working memory entries
   * that its arguments name under `inputs`, other subagents' results, and the user's requests.
   * @defaultValue false
   */
  readonly lineage?: boolean;
  /** How the subagent is affected when the user interrupts the lead agent's speech. @defaultValue 'continue' */
  readonly onBargeIn?: 'continue' | 'cancel';
  /** How a failed model call is retried if the error is retryable. */
  readonly retry?: Partial<RetryOptions>;
  /**
   * When the work is complete. `turn`: after the first answer without tool calls, or when the model calls
   * `complete_task`. `tool`: only when the model calls `complete_task`, which the runtime adds if the tools lack it.
   * @defaultValue 'turn'
   */
  readonly completion?: 'turn' | 'tool';
  /**
   * Whether text and tool calls are emitted while they are being streamed, which costs some performance. @defaultValue
   * false
   */
  readonly stream?: boolean;
  /**
   * `session`: one instance per session and name, which keeps its history between runs; its runs are executed one at a
   * time.
   * @defaultValue 'ephemeral': each run is independent
   */
  readonly lifetime?: 'ephemeral' | 'session';
  /**
   * The maximum number of messages that an instance with `lifetime: 'session'` keeps; the oldest are dropped.
   * @defaultValue 200
   */
  readonly maxHistory?: number;
  /** The budget of the subagent and its whole subtree; a limit that is absent does not apply. */
  readonly budget?: BudgetLimits;
  /**
   * Tool calls that the author approves in advance, so that the user is not asked. This does not permit a call that the
   * user denied to an ancestor. @defaultValue []
   */
  readonly preApproved?: readonly PreApproval[];
  /**
   * The identities that may answer the subagent's questions to the user and approve its tool calls; a tool may have its
   * own `answerableBy`. This also applies to subagents below it, unless their own configuration overrides it. The app
   * names these identities in `SessionOptions.user` and in the option `by` of `session.answer`.
   * @defaultValue any identity
   */
  readonly answerableBy?: readonly string[];
  /**
   * How the session handles a second call from the lead agent for work that is already running. @defaultValue 'join'
   */
  readonly duplicates?: 'join' | 'reject' | 'replace' | 'confirm';
  /** A subagent without activity for this time, in milliseconds, is considered hung; 0 for never. @defaultValue 0 */
  readonly inactivityTimeoutMs?: number;
  /** How the session handles a hung subagent, in addition to marking it in the views. @defaultValue 'mark' */
  readonly onHung?: 'mark' | 'cancel' | ((subagent: HungSubagent) => void);
  /** Whether the result may be reported together with sibling subagents' results. @defaultValue true */
  readonly consolidate?: boolean;
  /**
   * How the result of a background call from the lead agent reaches the user. `when_idle`: spoken in the next pause.
   * `interrupt`: spoken immediately, as urgent. `silent`: not spoken; the lead model knows the result, and a card on
   * the screen shows it until it has been seen or dismissed. `skip_if_busy`: spoken if no one is speaking when the
   * result arrives, otherwise handled like `silent`. In all modes except `when_idle`, the result is reported on its own
   * (see `consolidate`).
   * @defaultValue 'when_idle'
   */
  readonly delivery?: DeliveryMode;
  /** Which progress reports are spoken. @defaultValue the session's setting */
  readonly speakProgress?: SpeakProgress;
  /** The `context` that each tool's `execute` receives, by tool name, as in the AI SDK. */
  readonly toolsContext?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** The type of a configuration's results: that of its `outputSchema`, if it is a Standard Schema; otherwise `unknown`. */
export type OutputOf<Config> = Config extends {
  readonly outputSchema: { readonly '~standard': { readonly types?: infer Types } };
}
  ? NonNullable<Types> extends { readonly output: infer Output }
    ? Output
    : unknown
  : unknown;

/** The report that `onHung` receives when a subagent shows no activity. */
export interface HungSubagent {
  readonly id: string;
  readonly name: string;
  /** When the subagent last showed activity, in milliseconds since 1970. */
  readonly lastActiveAt: number;
}

/** How often and with which delay a failed model call is retried. */
export interface RetryOptions {
  /** The maximum number of calls, including the first. @defaultValue 3 */
  readonly maxAttempts: number;
  /** The delay before the second call, in milliseconds; it doubles each time, with jitter. @defaultValue 1000 */
  readonly baseDelayMs: number;
}

/** A validated configuration, including defaults. */
export interface SubagentDefinition extends Omit<SubagentConfig, 'retry'> {
  readonly tools: Readonly<Record<string, unknown>>;
  readonly maxSteps: number;
  readonly timeout: number;
  readonly runs: RunsWhere;
  readonly interactive: boolean;
  readonly maxSleepMs: number;
  readonly inputTimeout: number;
  readonly maxInputRetries: number;
  readonly context: NonNullable<SubagentConfig['context']>;
  readonly onBargeIn: NonNullable<SubagentConfig['onBargeIn']>;
  readonly retry: RetryOptions;
  readonly completion: NonNullable<SubagentConfig['completion']>;
  readonly structured: NonNullable<SubagentConfig['structured']>;
  readonly stream: boolean;
  readonly lifetime: NonNullable<SubagentConfig['lifetime']>;
  readonly maxHistory: number;
  readonly preApproved: readonly PreApproval[];
  readonly duplicates: NonNullable<SubagentConfig['duplicates']>;
  readonly inactivityTimeoutMs: number;
  readonly onHung: NonNullable<SubagentConfig['onHung']>;
  /** The author's configuration object; runs with the same object share one instance. */
  readonly source: SubagentConfig;
}

/** A tool call that an author approves in advance. */
export interface PreApproval {
  /** The name of the tool. */
  readonly tool: string;
  /**
   * Returns whether the approval covers these arguments; absent to cover all arguments. If `when` throws, the error is
   * reported and the call is not pre-approved.
   */
  readonly when?: (input: unknown) => boolean;
}

/** The usage of one limit of a budget. */
export interface BudgetUse {
  /** The whole budget, including later increases. */
  readonly granted: number;
  /** The amount spent. */
  readonly spent: number;
  /** The amount held by running calls or reserved for children. */
  readonly reserved: number;
  /** The amount left. */
  readonly left: number;
}

/** The usage of a budget, by limit. */
export type BudgetReport = { readonly [limit in keyof BudgetLimits]?: BudgetUse };

/** The budget of a session, or of a subagent with its whole subtree. An absent limit does not apply. */
export interface BudgetLimits {
  /**
   * The maximum number of input and output tokens of all model calls. Estimated if a provider does not report token
   * counts.
   */
  readonly tokens?: number;
  /** The maximum number of model calls; each retry counts. */
  readonly steps?: number;
  /**
   * For a subagent: the maximum time since its admission, including waits, in milliseconds. For a session or a service:
   * the maximum time for which it is loaded in a process.
   */
  readonly timeMs?: number;
  /** The maximum number of subagents that may be spawned below the budget's owner over the owner's lifetime. */
  readonly agents?: number;
  /**
   * The maximum cost of all model calls, and of relays that report theirs, in the currency of `price`
   * (`createRuntime`). Once it is used up, no new call starts; running calls may exceed it, because their cost is known
   * only afterwards.
   */
  readonly cost?: number;
}

/** Returns the limits after an increase. A limit that is absent stays absent, and a lower value has no effect. */
export function raisedLimits(limits: BudgetLimits, raised: BudgetLimits = {}): BudgetLimits {
  const total = (name: keyof BudgetLimits) => {
    const limit = limits[name];
    return limit === undefined ? {} : { [name]: Math.max(limit, raised[name] ?? 0) };
  };
  return {
    ...total('tokens'),
    ...total('steps'),
    ...total('timeMs'),
    ...total('agents'),
    ...total('cost'),
  };
}
