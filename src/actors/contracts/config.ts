// What a subagent is made of, as its author writes it, and the same checked.

import type { LanguageModel } from 'ai';
import { type DeliveryMode } from '../../machines/index.ts';

/** How one kind of subagent works. One configuration serves many runs. */
export interface SubagentConfig {
  /** Names it in events, in the inspector and in what the user hears. */
  readonly name: string;
  /** Its system prompt. */
  readonly instructions: string;
  /** AI SDK `tool()`s by name. `ask_user` is added where `interactive` is true. */
  readonly tools?: Readonly<Record<string, unknown>>;
  /** Model steps at most. @defaultValue 5 */
  readonly maxSteps?: number;
  /**
   * Time it may spend running, in milliseconds; waiting for a slot or for the user does
   * not count. @defaultValue 600000
   */
  readonly timeout?: number;
  /** Another model than the session's. */
  readonly model?: LanguageModel;
  /** It may ask the user. @defaultValue false */
  readonly interactive?: boolean;
  /** Time the user has to answer a question, in milliseconds. @defaultValue 120000 */
  readonly inputTimeout?: number;
  /** Unanswered questions in a row that end it. @defaultValue 3 */
  readonly maxInputRetries?: number;
  /** Time one tool call may take, in milliseconds; none by default (the run's `timeout` holds). */
  readonly toolTimeout?: number;
  /** A configuration of its own for each run, for state that runs must not share. */
  readonly createInstance?: () => SubagentConfig;
  /**
   * Frees what a run used, on every way out, exactly once for each instance; runs that
   * share one instance share its `dispose`, called when the last of them has ended. One that takes
   * longer than 30 seconds is reported, and nobody waits for it any more.
   */
  readonly dispose?: () => void | Promise<void>;
  /**
   * The arguments of its tasks have these names: a zod schema or any Standard Schema of an object.
   * A task that lacks one, or has one more, is refused before anything is begun. Values are the
   * affair of the tool by which it is called.
   */
  readonly inputSchema?: unknown;
  /** The result shall be JSON of this shape: a zod schema or any Standard Schema. */
  readonly outputSchema?: unknown;
  /**
   * `auto`: the provider's structured output is asked for with the schema, beside the instructions;
   * where the provider refuses or ignores it, in words only, which is remembered for the model.
   * `off`: in words only. A result that does not fit is asked for again either way.
   * @defaultValue 'auto'
   */
  readonly structured?: 'auto' | 'off';
  /** How much of the conversation it gets. @defaultValue 'snapshot' */
  readonly context?: 'snapshot' | 'none' | 'summary' | 'recent' | 'fork';
  /**
   * It is told of earlier work in the conversation: the entries of working memory that its
   * arguments name under `inputs`, the results of other subagents, and what the user had asked
   * for, within 24,000 characters. @defaultValue false
   */
  readonly lineage?: boolean;
  /** What it does when the user breaks off the lead agent's speech. @defaultValue 'continue' */
  readonly onBargeIn?: 'continue' | 'cancel';
  /** How often a failed model call is tried again, if that may help. */
  readonly retry?: Partial<RetryOptions>;
  /**
   * When its work is done. `turn`: with the first answer without tool calls, or with
   * `complete_task`. `tool`: with `complete_task` only, which the runtime adds if it is not
   * among the tools; an answer without it is not the end. @defaultValue 'turn'
   */
  readonly completion?: 'turn' | 'tool';
  /** Its words and tool calls are told while they come, at some cost. @defaultValue false */
  readonly stream?: boolean;
  /**
   * `session`: one instance for each session and name, which keeps its history from run to
   * run; its runs wait for each other. @defaultValue 'ephemeral'
   */
  readonly lifetime?: 'ephemeral' | 'session';
  /** Messages that an instance with `lifetime: 'session'` keeps; the oldest go. @defaultValue 200 */
  readonly maxHistory?: number;
  /** What it and all that it spawns may use together; no bound where it does not say. */
  readonly budget?: BudgetLimits;
  /**
   * Tool calls that its author consents to beforehand, so that the user is not asked. What
   * the user has denied above it stays denied. @defaultValue []
   */
  readonly preApproved?: readonly PreApproval[];
  /**
   * Only these identities may answer what it asks the user, and consent to its tool calls; a tool may
   * have an `answerableBy` of its own. Holds for those that it spawns, too, unless their configuration
   * says otherwise. See `SessionOptions.user` and the option `by` of `session.answer`.
   * @defaultValue anybody may
   */
  readonly answerableBy?: readonly string[];
  /** What another call of the lead agent for the same work does while one runs. @defaultValue 'join' */
  readonly duplicates?: 'join' | 'reject' | 'replace' | 'confirm';
  /** Without a sign of life for so long, in milliseconds, it counts as hung; 0: never. @defaultValue 0 */
  readonly inactivityTimeoutMs?: number;
  /** What follows from being hung, beside the mark that everybody sees. @defaultValue 'mark' */
  readonly onHung?: 'mark' | 'cancel' | ((subagent: HungSubagent) => void);
  /** Its result may be told together with those of its siblings. @defaultValue true */
  readonly consolidate?: boolean;
  /**
   * How its result reaches the user, of a background call of the lead agent. `when_idle`: said in
   * the next pause. `interrupt`: said at once, as what is urgent. `silent`: never said; the lead
   * model knows it, and it is a card on the screen until it was shown or dismissed.
   * `skip_if_busy`: said if nobody speaks when it comes, else as `silent`. Results with another
   * mode than `when_idle` are told by themselves (see `consolidate`). @defaultValue 'when_idle'
   */
  readonly delivery?: DeliveryMode;
  /** Is what it says of its progress said aloud? @defaultValue what the session says */
  readonly speakProgress?: 'off' | 'milestones' | 'all';
  /** What `execute` of a tool gets as its `context`, by the name of the tool, as in the AI SDK. */
  readonly toolsContext?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

export interface HungSubagent {
  readonly id: string;
  readonly name: string;
  /** Without a sign of life since then; milliseconds since 1970. */
  readonly lastActiveAt: number;
}

export interface RetryOptions {
  /** Calls in all, the first included. @defaultValue 3 */
  readonly maxAttempts: number;
  /** Before the second call, in milliseconds; doubles each time, with jitter. @defaultValue 1000 */
  readonly baseDelayMs: number;
}

/** A checked configuration with its defaults filled in. */
export interface SubagentDefinition extends Omit<SubagentConfig, 'retry'> {
  readonly tools: Readonly<Record<string, unknown>>;
  readonly maxSteps: number;
  readonly timeout: number;
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
  /** What the author wrote; identifies the instance that runs share. */
  readonly source: SubagentConfig;
}

/** A tool call that an author consents to beforehand. */
export interface PreApproval {
  /** The name of the tool. */
  readonly tool: string;
  /** For these arguments only; without it for any. What it throws is reported and counts as no. */
  readonly when?: (input: unknown) => boolean;
}

/** What a session, or a subagent and its whole subtree, may use. A limit that is not there is none. */
export interface BudgetLimits {
  /** Tokens in and out, of all model calls. Where a provider does not count them they are estimated. */
  readonly tokens?: number;
  /** Model calls of all of them; one that is tried again counts again. */
  readonly steps?: number;
  /**
   * Of a subagent: time since it was accepted, waiting included, in milliseconds. Of a session or a service:
   * time in which it was in some process.
   */
  readonly timeMs?: number;
  /** Subagents that may be spawned below it, over its whole life. */
  readonly agents?: number;
}
