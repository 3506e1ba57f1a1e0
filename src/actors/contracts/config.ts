// The configuration of a subagent as its author writes it, and its checked form.

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
 * `milestones`: progress is said when a quarter, a half and three quarters are done. `all`: every report is said. Both are
 * limited by the pace; progress that is skipped is not said later.
 */
export type SpeakProgress = (typeof SPEAK_PROGRESS)[number];

export const SPEAK_PROGRESS = ['off', 'milestones', 'all'] as const;

/** Where a step runs: in the session's process, or as a job of the runtime's `jobs`. */
export type RunsWhere = (typeof RUNS_WHERE)[number];

export const RUNS_WHERE = ['here', 'jobs'] as const;

type Context = Record<string, unknown>;

/**
 * Which tool calls need the user's approval, as in `toolApproval` of the AI SDK: for each tool `user-approval`, `approved`,
 * `denied`, `not-applicable`, `{ type, reason }` or a function of the input that returns one of these; or one function for
 * all tools.
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

/** The configuration of one kind of subagent. One configuration serves many runs. */
export interface SubagentConfig {
  /** The name of the subagent in events, in the inspector and in texts for the user. */
  readonly name: string;
  /** The system prompt. */
  readonly instructions: string;
  /**
   * Returns a title of one run for lists and headings: `A ride to the airport`. Gets the arguments of the task, which are
   * `{}` for a task that is only text. Called once, before the run starts; the first 200 characters are in the journal, and
   * in the views that clients get. After a throw, which is reported, or a value that is not a text, the title is the
   * default. @defaultValue the description of the task
   */
  readonly title?: (args: Readonly<Record<string, unknown>>) => string;
  /** AI SDK `tool()`s by name. The runtime adds `ask_user` if `interactive` is true. */
  readonly tools?: Readonly<Record<string, unknown>>;
  /**
   * Decides which tool calls need approval. It precedes the `needsApproval` of tools, which applies to tools that are not
   * named here. `approved` and `denied` are decisions of the author: `pre_authorised` and `author_denied` in the ledger. If
   * a function throws or returns another value, the error is reported and the user is asked. @defaultValue none
   */
  readonly toolApproval?: ToolApproval;
  /** The limit of model steps. @defaultValue 5; 1000 with `relay`, where each tool and question is a step */
  readonly maxSteps?: number;
  /**
   * The limit of the running time, in milliseconds; waiting for a slot or for the user does not count.
   * @defaultValue 600000
   */
  readonly timeout?: number;
  /** The model; absent: the session's. */
  readonly model?: LanguageModel;
  /**
   * A third-party agent that does the work in place of a model, such as one of `offstage/acp`. Its permission requests are
   * approvals of the tool `agent_tool`. It brings its own tools and model, so `tools`, `model` and the options that concern
   * them are refused beside it.
   */
  readonly relay?: Relay;
  /**
   * The loop of an agent of the AI SDK: `prepareStep`, `stopWhen` and the settings of its calls. Only `agentSubagent({
   * agent: settings })` of `offstage/subagents` makes it. @defaultValue none
   */
  readonly agent?: AgentLoop;
  /**
   * Where model calls and tool calls run. `jobs`: in the runtime's `jobs`, on any `jobWorker` that has the same
   * configuration, with its tools and keys; the session still decides on questions, approvals, budgets and retries. A tool
   * with its own `runs` overrides this; tools that wait for other subagents always run here. Without `jobs` in the runtime,
   * every step runs here. Refused beside `relay`, `createInstance` and `dispose`. The worker's `toolsContext` is used, not
   * the session's. @defaultValue 'here'
   */
  readonly runs?: RunsWhere;
  /** Whether the subagent may ask the user. @defaultValue false; true with `relay` */
  readonly interactive?: boolean;
  /** The time for the user to answer a question, in milliseconds. @defaultValue 120000 */
  readonly inputTimeout?: number;
  /** The number of consecutive unanswered questions that ends the subagent. @defaultValue 3 */
  readonly maxInputRetries?: number;
  /** The time limit of one tool call, in milliseconds; none by default (the run's `timeout` applies). */
  readonly toolTimeout?: number;
  /**
   * Returns a configuration for each run, or a promise of it, for state that runs must not share: a connection, a client of
   * an MCP server. A rejection fails the run (`PREPARATION_FAILED`). The runtime waits until the run ends or its `timeout`
   * is over; an instance that arrives later is disposed.
   */
  readonly createInstance?: () => SubagentConfig | Promise<SubagentConfig>;
  /**
   * Frees the resources of a run after any end, exactly once per instance; runs that share an instance share one `dispose`,
   * called when the last of them has ended. A `dispose` that takes longer than 30 seconds is reported and no longer waited
   * for.
   */
  readonly dispose?: () => void | Promise<void>;
  /**
   * The names of the task's arguments: a zod schema or any Standard Schema of an object. A task with a missing or an
   * additional argument is refused before it begins. The tool that starts the task validates the values.
   */
  readonly inputSchema?: unknown;
  /** The schema of the result as JSON: a zod schema or any Standard Schema. @defaultValue none: the result is text */
  readonly outputSchema?: unknown;
  /**
   * How the format of the result is requested. `auto`: the provider's structured output, beside the instructions; if the
   * provider refuses or ignores it, the instructions alone, also for later runs with that model. `off`: the instructions
   * alone. A result that does not match is requested again in both cases.
   * @defaultValue 'auto'
   */
  readonly structured?: 'auto' | 'off';
  /** The part of the conversation that the subagent gets. @defaultValue 'snapshot'; 'none' with `relay` */
  readonly context?: 'snapshot' | 'none' | 'summary' | 'recent' | 'fork';
  /**
   * Whether the subagent gets earlier work of the conversation: the entries of working memory that its arguments name under
   * `inputs`, the results of other subagents, and the user's requests, within 24,000 characters.
   * @defaultValue false
   */
  readonly lineage?: boolean;
  /** The effect when the user interrupts the lead agent's speech. @defaultValue 'continue' */
  readonly onBargeIn?: 'continue' | 'cancel';
  /** The retries of a failed model call whose error is retryable. */
  readonly retry?: Partial<RetryOptions>;
  /**
   * The condition that completes the work. `turn`: the first answer without tool calls, or `complete_task`. `tool`: only
   * `complete_task`, which the runtime adds if the tools lack it. @defaultValue 'turn'
   */
  readonly completion?: 'turn' | 'tool';
  /** Whether text and tool calls are emitted while they stream, at some cost. @defaultValue false */
  readonly stream?: boolean;
  /**
   * `session`: one instance per session and name, which keeps its history from run to run; its runs are serialised.
   * @defaultValue 'ephemeral': each run is independent
   */
  readonly lifetime?: 'ephemeral' | 'session';
  /**
   * The number of messages that an instance with `lifetime: 'session'` keeps; the oldest are dropped.
   * @defaultValue 200
   */
  readonly maxHistory?: number;
  /** The budget of the subagent and all subagents below it; absent limits do not apply. */
  readonly budget?: BudgetLimits;
  /**
   * Tool calls that the author approves beforehand, so that the user is not asked. A call that the user denied to an
   * ancestor stays denied. @defaultValue []
   */
  readonly preApproved?: readonly PreApproval[];
  /**
   * The identities that may answer the subagent's questions to the user, and approve its tool calls; a tool may have its
   * own `answerableBy`. Also applies to subagents below it, unless their configuration overrides it. See
   * `SessionOptions.user` and the option `by` of `session.answer`.
   * @defaultValue any identity
   */
  readonly answerableBy?: readonly string[];
  /** How the session handles another call of the lead agent for the same work while one runs. @defaultValue 'join' */
  readonly duplicates?: 'join' | 'reject' | 'replace' | 'confirm';
  /** The time without a sign of life after which the subagent counts as hung, in milliseconds; 0: never. @defaultValue 0 */
  readonly inactivityTimeoutMs?: number;
  /** How the session handles a hung subagent, in addition to the mark in its views. @defaultValue 'mark' */
  readonly onHung?: 'mark' | 'cancel' | ((subagent: HungSubagent) => void);
  /** Whether the result may be told together with those of sibling subagents. @defaultValue true */
  readonly consolidate?: boolean;
  /**
   * How the result of a background call of the lead agent reaches the user. `when_idle`: said in the next pause.
   * `interrupt`: said at once, as urgent. `silent`: never said; the lead model knows it, and it is a card on the screen
   * until it was shown or dismissed. `skip_if_busy`: said if no party speaks when it arrives, otherwise like `silent`.
   * Results with another mode than `when_idle` are told separately (see `consolidate`). @defaultValue 'when_idle'
   */
  readonly delivery?: DeliveryMode;
  /** Which progress is said aloud. @defaultValue the session's setting */
  readonly speakProgress?: SpeakProgress;
  /** The `context` that `execute` of a tool gets, by tool name, as in the AI SDK. */
  readonly toolsContext?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** The type of a configuration's results: that of its `outputSchema`, a Standard Schema; `unknown` without one. */
export type OutputOf<Config> = Config extends {
  readonly outputSchema: { readonly '~standard': { readonly types?: infer Types } };
}
  ? NonNullable<Types> extends { readonly output: infer Output }
    ? Output
    : unknown
  : unknown;

/** A subagent without a sign of life, as `onHung` gets it. */
export interface HungSubagent {
  readonly id: string;
  readonly name: string;
  /** The time of the last sign of life, in milliseconds since 1970. */
  readonly lastActiveAt: number;
}

/** How often a failed model call is retried, and after which delay. */
export interface RetryOptions {
  /** The limit of calls, including the first. @defaultValue 3 */
  readonly maxAttempts: number;
  /** The delay before the second call, in milliseconds; doubles each time, with jitter. @defaultValue 1000 */
  readonly baseDelayMs: number;
}

/** A checked configuration with its defaults filled in. */
export interface SubagentDefinition extends Omit<SubagentConfig, 'retry'> {
  readonly tools: Readonly<Record<string, unknown>>;
  readonly maxSteps: number;
  readonly timeout: number;
  readonly runs: RunsWhere;
  readonly interactive: boolean;
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
  /** The author's object; identifies the instance that runs share. */
  readonly source: SubagentConfig;
}

/** A tool call that an author approves beforehand. */
export interface PreApproval {
  /** The name of the tool. */
  readonly tool: string;
  /**
   * Returns whether the approval covers these arguments; absent: it covers all. If `when` throws, the error is reported and
   * the call is not pre-approved.
   */
  readonly when?: (input: unknown) => boolean;
}

/** The use of one limit of a budget. */
export interface BudgetUse {
  /** The whole budget, with what was added to it. */
  readonly granted: number;
  /** The part that is spent. */
  readonly spent: number;
  /** The amount held by running calls, or reserved for children. */
  readonly reserved: number;
  /** The part that is left. */
  readonly left: number;
}

/** The use of a budget, by its limits. */
export type BudgetReport = { readonly [limit in keyof BudgetLimits]?: BudgetUse };

/** The budget of a session, or of a subagent with its whole subtree. An absent limit does not apply. */
export interface BudgetLimits {
  /** Input and output tokens of all model calls. Estimated if a provider does not count them. */
  readonly tokens?: number;
  /** The number of model calls; a retry counts again. */
  readonly steps?: number;
  /**
   * For a subagent: the time since it was accepted, including waits, in milliseconds. For a session or a service: the time
   * for which it was loaded in a process.
   */
  readonly timeMs?: number;
  /** The number of subagents that may be spawned below the owner of the budget, over its whole life. */
  readonly agents?: number;
  /**
   * The cost of all model calls, and of relays that report theirs, in the currency of `price` (`createRuntime`). No call
   * begins once it is spent; running calls may exceed it, because their cost is known only afterwards.
   */
  readonly cost?: number;
}

/** Returns limits at their raised totals. A raise of an absent limit, or below the current one, has no effect. */
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
