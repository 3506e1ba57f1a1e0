import type { SubagentService } from './service-types.ts';
import type { SetDirective } from './directives.ts';
import type { FlexibleSchema } from 'ai';
import type { DeliveryMode } from '../../machines/index.ts';

/** The context that an inline tool receives together with its arguments. */
export interface ToolContext {
  /** The id of the call. */
  readonly callId: string;
  /** The agent whose model made the call. */
  readonly agentName: string;
  /** The id of the session. */
  readonly sessionId: string;
  /**
   * The call's key, which is the same for every attempt, even after a crash: pass it to operations that must not happen
   * twice.
   */
  readonly idempotencyKey: string;
  /**
   * The identity of the user whose utterance caused the call, if the app vouched for one (`SessionOptions.user`, `by`).
   */
  readonly requester: string | null;
  /** The identity that approved this call, if the tool runs in a subagent and the call needed approval. */
  readonly approver: string | null;
  /** Aborts when the call is cancelled or exceeds its time limit. */
  readonly abortSignal: AbortSignal;
  /** All subagents of the session; the lead agent's `Requester` is `THE_LEAD`. */
  readonly subagents: SubagentService;
  /** Sends JSON to the clients, as the event `client.json` of `session.events`. */
  sendJsonToClient(data: unknown): void;
  /**
   * Sets a standing order for the lead agent that applies from its next response on; null removes the order. With the
   * scope `agent`, the order ends when another agent takes the lead. @defaultValue scope 'session'
   * @throws {ConfigurationError} if a key or value is empty or too long.
   * @throws {CapacityError} if there are too many directives.
   */
  readonly setDirective: SetDirective;
}

/** A tool of the lead agent. */
export interface ToolDefinition<Args = never> {
  /** The name by which the model calls the tool, unique among an agent's tools. */
  readonly name: string;
  /** Tells the model what the tool does and when to call it. */
  readonly description: string;
  /**
   * A zod schema, or any other schema that the AI SDK accepts, for an object or a union of objects. The model sees the
   * properties of all objects in a union; the schema validates the value.
   */
  readonly parameters: FlexibleSchema<Args>;
  /**
   * `inline`: the model waits for the result of `execute`. `background`: the subagent whose configuration has this name
   * works while the conversation continues. @defaultValue 'inline'
   */
  readonly execution?: 'inline' | 'background';
  /**
   * Background, or with `detach`: the text that the model receives immediately. If absent, the model receives nothing
   * until the result arrives; for a detached call, it receives a default text.
   */
  readonly pendingMessage?: string;
  /**
   * Background: whether the result may be reported together with the results of other calls that the same utterance
   * caused.
   * @defaultValue the setting of the subagent's configuration, otherwise true
   */
  readonly consolidate?: boolean;
  /**
   * Background, or with `detach`: how the result reaches the user; see `SubagentConfig.delivery`.
   * @defaultValue the setting of the subagent's configuration, else 'when_idle'
   */
  readonly delivery?: DeliveryMode;
  /** Runs an inline tool; required for inline tools. */
  readonly execute?: (args: Args, context: ToolContext) => unknown;
  /**
   * `client`: the user's page or program executes the call, with the handler passed to `client.handle`. Such a tool has
   * no `execute`. @defaultValue the tool runs in the session's process
   */
  readonly runsAt?: 'client';
  /** Client: the schema of the result. A result that does not match is refused. @defaultValue any JSON */
  readonly resultSchema?: FlexibleSchema<unknown>;
  /** Client: whether a call that no client can execute waits, or fails after five seconds. @defaultValue 'wait' */
  readonly absent?: 'wait' | 'fail';
  /** Client: the time limit of a call, in milliseconds, including time without a client. @defaultValue 300000 */
  readonly timeoutMs?: number;
  /** The time limit of `execute`, in milliseconds. @defaultValue 30000 */
  readonly timeout?: number;
  /**
   * Inline: whether a call may run again with the same `idempotencyKey` after it was interrupted because of a crash or
   * because its client left. If not, the model and `onCallInDoubt` are informed that the outcome is unknown.
   * @defaultValue false
   */
  readonly idempotent?: boolean;
  /**
   * Inline: when a call continues in the background. Such a call is detached: it keeps running, within its `timeout`.
   * The output for the model says so, and the result is delivered like a background tool's. `afterMs`: the call is
   * detached after this time, in milliseconds. `onWords`: if true, the call is detached when the user says something to
   * the lead agent; if false, the lead agent answers the user's words only after the tool has finished. @defaultValue
   * the user's words wait for up to two seconds, and the call is detached after a minute; with `onWords: false`, the
   * call is detached only after `afterMs`
   */
  readonly detach?: { readonly afterMs?: number; readonly onWords?: boolean };
}
