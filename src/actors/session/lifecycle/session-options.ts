// The options that voice and text sessions share, and the options of their conversations.

import type { LanguageModel } from 'ai';
import { z } from 'zod';
import { aFunction, anObject, check, scopeName, type ChecksOf } from '../../../values/checks.ts';
import { ConfigurationError } from '../../../values/errors.ts';
import { modelSummary, type MemoryDistiller, type Summarise } from '../../context/model-upkeep.ts';
import type { UpkeepOptions } from '../../context/upkeep.ts';
import { identity } from '../../contracts/identity.ts';
import { checkedLimits, type ConversationLimits } from '../../conversation/items.ts';
import { aModel } from '../../model/model.ts';
import { outcomeChecks, type OutcomeOptions } from '../../../results/outcome-processor.ts';
import type { SystemAs } from '../../notes/note-marks.ts';
import type { MemoryStore } from '../../ports/memory-store.ts';
import type { ServiceSubagentConfig } from '../../services/service-config.ts';
import {
  SPEAK_PROGRESS,
  type BudgetLimits,
  type SpeakProgress,
  type SubagentConfig,
} from '../../contracts/config.ts';
import type { SessionLimits } from '../../admission/limits.ts';
import { checkAgents, type LeadAgent } from '../lead/lead-agent.ts';
import { reachShape, type ReachOptions } from '../effects/reach.ts';
import { timeZoneName } from '../effects/schedules.ts';
import { hookChecks, type SessionHooks } from '../lead/hooks.ts';
import { checkParts } from '../../subagent/define-subagent.ts';
import type { Consolidation } from '../state/batches.ts';

/** The options that voice and text sessions share. */
export interface SessionOptions extends OutcomeOptions {
  /** The agents that can talk to the user. The first one leads until it transfers the lead. */
  readonly agents: readonly LeadAgent[];
  /** The configurations of background tools, by tool name. */
  readonly subagentConfigs?: Readonly<Record<string, SubagentConfig>>;
  /** Agents that watch external events for as long as the session exists. */
  readonly services?: readonly ServiceSubagentConfig[];
  /** The model for subagents that do not specify one. */
  readonly model?: LanguageModel;
  /**
   * The model that interprets the user's answer to a question (a yes, a no, a choice or a request for time) if Offstage
   * has no tables for the language. If only this model has recognised a yes, the yes counts after the action has been
   * read back and confirmed. Use a small, fast model: its answer is ignored after 1.2 s, and the question is asked
   * again.
   * @defaultValue none: in such a language, questions are settled only by option names, the buttons and the lead agent
   */
  readonly consentModel?: LanguageModel;
  /** Facts about the user, for the subagents' context. */
  readonly memory?: MemoryStore;
  /** The scope of the facts, such as a user's id. @defaultValue 'default' */
  readonly memoryScope?: string;
  /**
   * The user's identity. It applies to input, answers and dismissals that have no `by`. Required if subagents or tools
   * restrict who may answer (`answerableBy`). Tools receive it as `requester`. @defaultValue none
   */
  readonly user?: string;
  /** The limits of the conversation, and its memory. */
  readonly conversation?: ConversationOptions;
  /**
   * The user's time zone, such as `Europe/Vienna`. It is the default for a schedule's `timeZone`. @defaultValue 'UTC',
   * the same in each process that continues the session
   */
  readonly timeZone?: string;
  /**
   * The channels through which a user who has left receives results, notices and questions, and the time after which
   * each channel is used. @defaultValue none: deliveries wait for the next client
   */
  readonly reach?: ReachOptions;
  /** The session's limits. Omitted limits have defaults. @defaultValue the defaults of `SessionLimits` */
  readonly limits?: Partial<SessionLimits>;
  /** The budget of all subagents together. Its time starts when the session is created. */
  readonly budget?: BudgetLimits;
  /** Functions of the app that are called when events occur in the session. @defaultValue none */
  readonly hooks?: SessionHooks;
  /**
   * Whether the lead model has `running_task`, the tool with which it reports on background work, stops it, and passes
   * messages to it. @defaultValue true for each agent without its own tools for this, if there is background work
   */
  readonly steering?: boolean;
  /**
   * Whether the lead model has the tool `reminders`, which sets, lists and cancels reminders for the user. Needs
   * `timeZone`. @defaultValue false
   */
  readonly reminders?: boolean;
  /**
   * Whether a single reply reports the results of all background calls of one request. @defaultValue 'batch' in text;
   * 'off' by voice, because listeners prefer news in small pieces
   */
  readonly consolidation?: Consolidation;
  /** Determines which of the subagents' progress reports are spoken. @defaultValue 'off' */
  readonly speakProgress?: SpeakProgress;
  /**
   * The role of the runtime's notes to the lead model within the conversation. `system` requires a model that accepts
   * system messages there. In text sessions, most providers refuse system messages. Results, errors, questions and the
   * user's words are always quoted, in the user role. @defaultValue 'user' in text; by voice what the transport
   * supports (`takesSystemMessages`)
   */
  readonly systemAs?: SystemAs;
  /**
   * The `traceparent` header (W3C) of the request that opens the session. It is the parent of the spans in
   * `tracedJournal`. An invalid header is ignored. A resumed session stays in its original trace. @defaultValue none: a
   * new trace
   */
  readonly traceparent?: string;
  /** The session's id in the journal and the inspector. @defaultValue a new id */
  readonly sessionId?: string;
  /** The time in milliseconds that subagents have to stop after `close()`. @defaultValue 5000 */
  readonly closeGraceMs?: number;
  /**
   * The time in milliseconds without an attached client after which open questions are withdrawn. @defaultValue null:
   * never
   */
  readonly detachGraceMs?: number | null;
}

/** The options of a session's `start()`. */
export interface StartOptions {
  /**
   * Whether to start only if the journal contains the session. Otherwise, the start rejects with `UNKNOWN_SESSION` and
   * has no effect. @defaultValue false: a new session starts
   */
  readonly ifKnown?: boolean;
}

const durationMs = z.number().nonnegative().optional();
const name = z.string().min(1).max(200).optional();
/** For options that are validated where they are used. */
const elsewhere = z.unknown().optional();
/** For objects that are validated where they are used. */
export const someObject = z.looseObject({}).optional();

export const sessionChecks = {
  ...outcomeChecks,
  agents: elsewhere,
  subagentConfigs: anObject('configurations by the names of background tools').optional(),
  services: z.array(elsewhere, { error: 'expected an array of defineService(…)' }).optional(),
  model: aModel.optional(),
  consentModel: aModel.optional(),
  memory: anObject('a memory such as memoryStore()', 'facts', 'remember', 'forget').optional(),
  memoryScope: name,
  conversation: someObject,
  timeZone: timeZoneName.optional(),
  reach: reachShape.optional(),
  limits: elsewhere,
  budget: elsewhere,
  hooks: z.strictObject(hookChecks).optional(),
  steering: z.boolean().optional(),
  reminders: z.boolean().optional(),
  consolidation: z.union([z.enum(['off', 'batch']), someObject]).optional(),
  speakProgress: z.enum(SPEAK_PROGRESS).optional(),
  systemAs: z.enum(['system', 'user']).optional(),
  traceparent: z.string().optional(),
  sessionId: scopeName.optional(),
  user: identity.optional(),
  closeGraceMs: durationMs,
  detachGraceMs: durationMs.nullable(),
} satisfies ChecksOf<SessionOptions>;

/**
 * Validates a session's options before any of them is used.
 * @param type The class name that errors use.
 * @throws {ConfigurationError} if an option is unknown or invalid.
 */
export function checkSessionOptions(
  type: string,
  schema: z.ZodType,
  options: SessionOptions,
): void {
  const where = `new ${type}(options)`;
  check(where, schema, options);
  checkAgents(options.agents);
  if (options.reminders === true && options.timeZone === undefined)
    throw new ConfigurationError(
      'INVALID_OPTION',
      `${where}: reminders: expected \`timeZone\` to be the user's time zone, got undefined`,
    );
  for (const [key, config] of Object.entries(options.subagentConfigs ?? {}))
    checkParts(`subagentConfigs.${key}`, config);
}

/** The options of a conversation: its length, its summaries and the facts that are remembered. */
export interface ConversationOptions {
  /** The limits of the conversation. @defaultValue 500 items, 200,000 characters, 20,000 per item */
  readonly limits?: Partial<ConversationLimits>;
  /**
   * Summarises the oldest part of a long conversation between turns. With `false`, the oldest items are dropped without
   * a summary. @defaultValue `modelSummary` with the session's `model`; `false` without a model
   */
  readonly summarise?: Summarise | false;
  /**
   * The fill level, as a fraction of the limits from 0 to 1, above which the conversation is summarised. @defaultValue 0.75
   */
  readonly summariseAbove?: number;
  /** The number of newest items that are never summarised. @defaultValue 20 */
  readonly keepItems?: number;
  /**
   * Extracts facts from the conversation for `memory`: `modelDistiller(…)`, or a custom function. @defaultValue none:
   * no facts are remembered
   */
  readonly distil?: MemoryDistiller;
  /**
   * The number of model turns between extractions of facts. Facts are also extracted when the session ends.
   * @defaultValue 5
   */
  readonly distilEveryTurns?: number;
  /** The time limit of a summary or an extraction, in milliseconds. @defaultValue 30000 */
  readonly timeoutMs?: number;
}

const conversationDefaults = {
  summariseAbove: 0.75,
  keepItems: 20,
  distilEveryTurns: 5,
  timeoutMs: 30_000,
} as const satisfies ConversationOptions;

const conversationSchema = z.strictObject({
  limits: z.object({}).loose().optional(),
  summarise: z.union([aFunction, z.literal(false)]).optional(),
  summariseAbove: z.number().gt(0).lt(1),
  keepItems: z.number().int().min(1),
  distil: aFunction.optional(),
  distilEveryTurns: z.number().int().min(1),
  timeoutMs: z.number().positive(),
});

/** @throws {ConfigurationError} if an option is invalid or `distil` is set without a memory. */
export function checkedConversation(
  options: ConversationOptions = {},
  { model, hasMemory }: { readonly model: LanguageModel | undefined; readonly hasMemory: boolean },
): { readonly limits: ConversationLimits; readonly upkeep: UpkeepOptions } {
  const parsed = conversationSchema.safeParse({ ...conversationDefaults, ...options });
  if (!parsed.success)
    throw new ConfigurationError(
      'INVALID_OPTION',
      `conversation: ${z.prettifyError(parsed.error)}`,
    );
  const { summarise, distil } = options;
  if (distil && !hasMemory)
    throw new ConfigurationError(
      'INVALID_OPTION',
      'conversation.distil: expected `memory` to be a store for the facts, got undefined',
    );
  const { summariseAbove, keepItems, distilEveryTurns, timeoutMs } = parsed.data;
  const byModel = model === undefined ? null : modelSummary({ model });
  return {
    limits: checkedLimits(options.limits ?? {}),
    upkeep: {
      summarise: summarise === false ? null : (summarise ?? byModel),
      distil: distil ?? null,
      summariseAbove,
      keepItems,
      distilEveryTurns,
      timeoutMs,
    },
  };
}
