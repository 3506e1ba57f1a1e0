// The options of a session: those that every app may give, and those that voice and text add.

import type { LanguageModel } from 'ai';
import { z } from 'zod';
import { anObject, check, scopeName, type ChecksOf } from '../../../values/checks.ts';
import { identity } from '../../contracts/identity.ts';
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
import type { ConversationOptions } from '../lead/conversation-options.ts';
import { hookChecks, type SessionHooks } from '../lead/hooks.ts';
import { checkParts } from '../../subagent/define-subagent.ts';
import type { Consolidation } from '../state/batches.ts';

/** The options of every session, by voice or text. */
export interface SessionOptions extends OutcomeOptions {
  /** The agents that can talk to the user; the first leads, until it transfers the lead. */
  readonly agents: readonly LeadAgent[];
  /** The configurations of background tools, by the name of the tool. */
  readonly subagentConfigs?: Readonly<Record<string, SubagentConfig>>;
  /** Agents that watch external events, for as long as the session lives. */
  readonly services?: readonly ServiceSubagentConfig[];
  /** The model of the subagents without a model of their own. */
  readonly model?: LanguageModel;
  /** Facts about the user, for the subagents' context. */
  readonly memory?: MemoryStore;
  /** The scope of the facts: a user's id. @defaultValue 'default' */
  readonly memoryScope?: string;
  /**
   * The identity of the user: words, answers and dismissals without `by` are theirs. It matters if subagents
   * or tools restrict who may answer (`answerableBy`), and tools read it as `requester`. @defaultValue no
   * particular user
   */
  readonly user?: string;
  /** The bounds of the conversation, and its memory. */
  readonly conversation?: ConversationOptions;
  /** The limits of the session; each that is absent has its default. @defaultValue the defaults of `SessionLimits` */
  readonly limits?: Partial<SessionLimits>;
  /** The budget of all its subagents together; its time begins when the session is created. */
  readonly budget?: BudgetLimits;
  /** Functions of the app that are called when something happens. @defaultValue none */
  readonly hooks?: SessionHooks;
  /**
   * Decides whether one reply tells the results of all background calls of one request. @defaultValue 'batch'
   * in text; 'off' by voice: a listener wants news in small pieces, as it comes
   */
  readonly consolidation?: Consolidation;
  /** Decides which progress reports of subagents are spoken. @defaultValue 'off' */
  readonly speakProgress?: SpeakProgress;
  /**
   * The role of the runtime's own notes to the lead model in mid-conversation. `system` needs a model that
   * accepts system messages there; most providers refuse them in text. Results, errors, questions and words
   * of the user have the role of the user in either case, quoted. @defaultValue 'user' in text; by voice what
   * the transport can (`takesSystemMessages`)
   */
  readonly systemAs?: SystemAs;
  /**
   * The W3C `traceparent` of the request that opens the session: the trace of `tracedJournal` goes on below it. One that
   * cannot be read is ignored. A session that goes on stays in its trace. @defaultValue none: a trace of its own
   */
  readonly traceparent?: string;
  /** The id of the session in the journal and the inspector. @defaultValue a new id */
  readonly sessionId?: string;
  /** Time that subagents may take to stop on `close()`, in milliseconds. @defaultValue 5000 */
  readonly closeGraceMs?: number;
  /**
   * Time without an attached client after which open questions are withdrawn, in milliseconds. @defaultValue
   * null: never
   */
  readonly detachGraceMs?: number | null;
}

/** The options of a session's `start()`. */
export interface StartOptions {
  /**
   * Starts only a session that the journal knows: otherwise it rejects with `UNKNOWN_SESSION`, and nothing
   * was begun. @defaultValue false: it begins
   */
  readonly ifKnown?: boolean;
}

const durationMs = z.number().nonnegative().optional();
const name = z.string().min(1).max(200).optional();
/** For options with a check of their own, where they are read. */
const elsewhere = z.unknown().optional();
/** The same for an object. */
export const someObject = z.looseObject({}).optional();

export const sessionChecks = {
  ...outcomeChecks,
  agents: elsewhere,
  subagentConfigs: anObject('configurations by the names of background tools').optional(),
  services: z.array(elsewhere, { error: 'expected an array of defineService(…)' }).optional(),
  model: aModel.optional(),
  memory: anObject('a memory such as memoryStore()', 'facts', 'remember', 'forget').optional(),
  memoryScope: name,
  conversation: someObject,
  limits: elsewhere,
  budget: elsewhere,
  hooks: z.strictObject(hookChecks).optional(),
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
 * Checks the options of a session before any of them is read.
 * @param type is the class, as errors name it.
 * @throws {ConfigurationError} for an option that is unknown or wrong.
 */
export function checkSessionOptions(
  type: string,
  schema: z.ZodType,
  options: SessionOptions,
): void {
  const where = `new ${type}(options)`;
  check(where, schema, options);
  checkAgents(options.agents);
  for (const [key, config] of Object.entries(options.subagentConfigs ?? {}))
    checkParts(`subagentConfigs.${key}`, config);
}
