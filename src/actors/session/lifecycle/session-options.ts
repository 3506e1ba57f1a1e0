// What a session is made of: what every app may give, and what voice and text add to it.

import type { LanguageModel } from 'ai';
import { z } from 'zod';
import { anObject, check, scopeName, type ChecksOf } from '../../../values/checks.ts';
import type { OutboxInput } from '../../../machines/index.ts';
import { identity } from '../../contracts/identity.ts';
import { aModel } from '../../model/model.ts';
import { outcomeChecks, type OutcomeOptions } from '../../../results/outcome-options.ts';
import type { SystemAs } from '../../notes/note-marks.ts';
import type { MemoryStore } from '../../ports/memory-store.ts';
import type { Runtime } from '../../admission/runtime.ts';
import type { ServiceSubagentConfig } from '../../services/service-config.ts';
import { type SubagentConfig, type BudgetLimits } from '../../contracts/config.ts';
import { toolsOf } from '../../subagent/instance.ts';
import type { SessionLimits } from '../../admission/limits.ts';
import { checkAgents, type MainAgent } from '../lead/agents.ts';
import type { Consolidation } from '../state/consolidation.ts';
import type { ConversationOptions } from '../lead/conversation-options.ts';
import { hookChecks, type SessionHooks } from '../lead/hooks.ts';
import type { Lead } from '../lead/lead.ts';
import { SPEAK_PROGRESS, type SpeakProgress } from '../delivery/progress-pace.ts';
import type { SessionInputs } from '../unit/session-inputs.ts';
import type { LeadSession } from '../lead/lead-session.ts';
import type { PromptStyle } from '../state/synthetic-turns.ts';
import { checkSubagentConfig } from '../../subagent/config.ts';

/** What every session takes, whatever it speaks with. */
export interface SessionOptions extends OutcomeOptions {
  /** The agents that can talk to the user; the first leads, until it hands over to another one. */
  readonly agents: readonly [MainAgent, ...MainAgent[]];
  /** How background tools are done, by the name of the tool. */
  readonly subagentConfigs?: Readonly<Record<string, SubagentConfig>>;
  /** Agents that look at what happens outside, for as long as the session lives. */
  readonly services?: readonly ServiceSubagentConfig[];
  /** The model of the subagents that have none of their own. */
  readonly model?: LanguageModel;
  /** Facts about the user, for the subagents' context. */
  readonly memory?: MemoryStore;
  /** Whose facts: a user's id. @defaultValue 'default' */
  readonly memoryScope?: string;
  /**
   * Who the user is: words, answers and dismissals that come without `by` are theirs. It matters where
   * subagents or tools say who may answer (`answerableBy`), and tools read it as `requester`.
   * @defaultValue nobody in particular
   */
  readonly user?: string;
  /** How the conversation is kept small, and what is remembered of it. */
  readonly conversation?: ConversationOptions;
  readonly limits?: Partial<SessionLimits>;
  /** What all its subagents may use together; the time begins when the session is made. */
  readonly budget?: BudgetLimits;
  readonly hooks?: SessionHooks;
  /**
   * Are the results of the background calls that were made for one request told in one reply?
   * @defaultValue 'batch' in text; 'off' by voice: a listener wants news in small pieces, as it comes
   */
  readonly consolidation?: Consolidation;
  /** Is what subagents say of their progress said aloud? @defaultValue 'off' */
  readonly speakProgress?: SpeakProgress;
  /**
   * Which role carries what the runtime itself tells the lead model in mid-conversation. `system` needs a
   * model that takes system messages there; most providers refuse them in text. What results, errors,
   * questions and the user say has the role of the user in either case, quoted.
   * @defaultValue 'user' in text; by voice what the transport can (`takesSystemMessages`)
   */
  readonly systemAs?: SystemAs;
  /** Names the session in the journal and the inspector. @defaultValue a new id */
  readonly sessionId?: string;
  /** Subagents may take so long to stop on `close()`, in milliseconds. @defaultValue 5000 */
  readonly closeGraceMs?: number;
  /** Open questions are withdrawn when nobody was there for so long, in milliseconds. @defaultValue null: never */
  readonly detachGraceMs?: number | null;
}

export interface StartOptions {
  /**
   * Only if there is something to go on with: else it rejects with `UNKNOWN_SESSION`, and nothing was
   * begun. @defaultValue false: it begins
   */
  readonly ifKnown?: boolean;
}

export interface CoreOptions extends SessionOptions {
  readonly runtime: Runtime;
  readonly outbox: Omit<OutboxInput, 'capacity'>;
  readonly settleTimeoutMs: number;
  readonly maxReconnects: number;
  /** @defaultValue 30000 */
  readonly connectTimeoutMs?: number;
  /** @defaultValue 30000 */
  readonly transferTimeoutMs?: number;
  /** Can what the lead agent says be stopped in mid-sentence? */
  readonly canInterrupt: boolean;
  /**
   * The lead model cannot leave a call open: every background call is answered at once, and its
   * result told as a notice. @defaultValue false
   */
  readonly acknowledgesCalls?: boolean;
  /** Is a question heard (voice), or only shown (text)? */
  readonly hasVoice: boolean;
  readonly makeLead: (session: LeadSession) => Lead;
  /** In which form results reach the lead model. @defaultValue 'notice' */
  readonly promptStyle?: PromptStyle;
}

const durationMs = z.number().nonnegative().optional();
const name = z.string().min(1).max(200).optional();
/** Of what has a check of its own, where it is read. */
const elsewhere = z.unknown().optional();

export const sessionChecks = {
  ...outcomeChecks,
  agents: elsewhere,
  subagentConfigs: anObject('configurations by the names of background tools').optional(),
  services: z.array(elsewhere, { error: 'expected an array of defineService(…)' }).optional(),
  model: aModel.optional(),
  memory: anObject('a memory such as memoryStore()', 'facts', 'remember', 'forget').optional(),
  memoryScope: name,
  conversation: elsewhere,
  limits: elsewhere,
  budget: elsewhere,
  hooks: z.strictObject(hookChecks).optional(),
  consolidation: elsewhere,
  speakProgress: z.enum(SPEAK_PROGRESS).optional(),
  systemAs: z.enum(['system', 'user']).optional(),
  sessionId: scopeName.optional(),
  user: identity.optional(),
  closeGraceMs: durationMs,
  detachGraceMs: durationMs.nullable(),
} satisfies ChecksOf<SessionOptions>;

/**
 * The options of a session, before any of them is read.
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
    toolsOf(checkSubagentConfig(config, `subagentConfigs.${key}`));
}

/** What the session's machine begins with. */
export function unitInputs({
  maxReconnects,
  connectTimeoutMs,
  transferTimeoutMs,
  settleTimeoutMs,
  closeGraceMs = 5000,
  detachGraceMs = null,
  canInterrupt,
}: CoreOptions): Pick<SessionInputs, 'session' | 'canInterrupt'> {
  return {
    session: {
      maxReconnects,
      ...(connectTimeoutMs && { connectTimeoutMs }),
      ...(transferTimeoutMs && { transferTimeoutMs }),
      settleTimeoutMs,
      closeGraceMs,
      detachGraceMs,
    },
    canInterrupt,
  };
}
