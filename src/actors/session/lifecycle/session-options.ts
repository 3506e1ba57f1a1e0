// The options of a session: those of every session, which voice and text sessions extend.

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
  /** Agents that watch external events as long as the session exists. */
  readonly services?: readonly ServiceSubagentConfig[];
  /** The model of subagents without a model. */
  readonly model?: LanguageModel;
  /** Facts about the user, for the subagents' context. */
  readonly memory?: MemoryStore;
  /** The scope of the facts: a user's id. @defaultValue 'default' */
  readonly memoryScope?: string;
  /**
   * The identity of the user, which applies to words, answers and dismissals without `by`. Needed if subagents or tools
   * restrict who may answer (`answerableBy`); tools get it as `requester`. @defaultValue none
   */
  readonly user?: string;
  /** The limits of the conversation, and its memory. */
  readonly conversation?: ConversationOptions;
  /** The limits of the session; each that is absent has its default. @defaultValue the defaults of `SessionLimits` */
  readonly limits?: Partial<SessionLimits>;
  /** The budget of all subagents together; its time begins when the session is created. */
  readonly budget?: BudgetLimits;
  /** Functions of the app that are called when something happens. @defaultValue none */
  readonly hooks?: SessionHooks;
  /**
   * Whether one reply tells the results of all background calls of one request. @defaultValue 'batch' in text; 'off' by
   * voice, because listeners prefer news in small pieces
   */
  readonly consolidation?: Consolidation;
  /** Which progress reports of subagents are spoken. @defaultValue 'off' */
  readonly speakProgress?: SpeakProgress;
  /**
   * The role of the runtime's notes to the lead model in mid-conversation. `system` needs a model that accepts system
   * messages there; most providers refuse them in text. Results, errors, questions and words of the user always have the
   * user role, quoted. @defaultValue 'user' in text; by voice what the transport supports (`takesSystemMessages`)
   */
  readonly systemAs?: SystemAs;
  /**
   * The W3C `traceparent` of the request that opens the session, the parent of the spans of `tracedJournal`. An invalid
   * one is ignored. A resumed session stays in its trace. @defaultValue none: a new trace
   */
  readonly traceparent?: string;
  /** The id of the session in the journal and the inspector. @defaultValue a new id */
  readonly sessionId?: string;
  /** The time that subagents have to stop on `close()`, in milliseconds. @defaultValue 5000 */
  readonly closeGraceMs?: number;
  /**
   * The time without an attached client after which open questions are withdrawn, in milliseconds. @defaultValue null:
   * never
   */
  readonly detachGraceMs?: number | null;
}

/** The options of a session's `start()`. */
export interface StartOptions {
  /**
   * Whether to start only a session that the journal has: otherwise the start rejects with `UNKNOWN_SESSION`, and has no
   * effect. @defaultValue false: a new session begins
   */
  readonly ifKnown?: boolean;
}

const durationMs = z.number().nonnegative().optional();
const name = z.string().min(1).max(200).optional();
/** For options that are checked where they are read. */
const elsewhere = z.unknown().optional();
/** For objects that are checked where they are read. */
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
 * @param type The name of the class in errors.
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
