import type { SubagentService } from './service-types.ts';
import type { SetDirective } from './directives.ts';
import type { FlexibleSchema } from 'ai';
import type { DeliveryMode } from '../../machines/index.ts';

/** What an inline tool gets beside its arguments. */
export interface ToolContext {
  readonly callId: string;
  /** The agent whose model made the call. */
  readonly agentName: string;
  readonly sessionId: string;
  /** The same for every attempt at this call, also after a crash: pass it on to what must not happen twice. */
  readonly idempotencyKey: string;
  /** Who said what the call was made for, where the app vouched for somebody (`SessionOptions.user`, `by`). */
  readonly requester: string | null;
  /** Who consented to this very call, where a subagent that was granted the tool had to ask. */
  readonly approver: string | null;
  /** Aborts when the call is cancelled or has taken too long. */
  readonly abortSignal: AbortSignal;
  /** All subagents of the session; the lead agent asks as `THE_LEAD`. */
  readonly subagents: SubagentService;
  /** Sends JSON to the clients: a message of the type `json` in `session.clientMessages`. */
  sendJsonToClient(data: unknown): void;
  /**
   * A standing order to the lead agent, from its next response on; null takes it back. With
   * the scope `agent` it ends when another agent leads. @defaultValue scope 'session'
   * @throws {ConfigurationError} for a key or value without words or too long; {CapacityError} for too many.
   */
  readonly setDirective: SetDirective;
}

/** A tool of the lead agent. */
export interface ToolDefinition<Args = never> {
  readonly name: string;
  readonly description: string;
  /** A zod schema, or whatever else the AI SDK takes as a schema. */
  readonly parameters: FlexibleSchema<Args>;
  /**
   * `inline`: the model waits for `execute`. `background`: the subagent configured under
   * this name does the work while the conversation goes on. @defaultValue 'inline'
   */
  readonly execution?: 'inline' | 'background';
  /** Background: what the model says at once. Without it, it hears nothing before the result. */
  readonly pendingMessage?: string;
  /**
   * Background: its result may be told together with those of other calls for the same request.
   * @defaultValue what its subagent's configuration says, else true
   */
  readonly consolidate?: boolean;
  /**
   * Background: how its result reaches the user; see `SubagentConfig.delivery`.
   * @defaultValue what its subagent's configuration says, else 'when_idle'
   */
  readonly delivery?: DeliveryMode;
  /** Required for inline tools. */
  readonly execute?: (args: Args, context: ToolContext) => unknown;
  /** Time `execute` may take, in milliseconds. @defaultValue 30000 */
  readonly timeout?: number;
  /**
   * Inline: after a crash in the middle of a call it may be run again, with the same
   * `idempotencyKey`. Otherwise the model and `onCallInDoubt` are told that nobody knows whether it
   * was done. @defaultValue false
   */
  readonly idempotent?: boolean;
}
