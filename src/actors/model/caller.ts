// The caller of a tool, which the runtime adds to the author's context as `offstage` whenever `execute` is called.

import type { SubagentService } from '../contracts/service-types.ts';

/** The agent that calls a tool, and access to the subagents that it may start and talk to. */
export interface Caller {
  /** The id of the session or run. */
  readonly sessionId: string;
  /** Null for the lead agent, or a program. */
  readonly subagentId: string | null;
  /** The subagent that spawned it; null for a subagent of the lead agent or of a program. */
  readonly parentId: string | null;
  /** 1 for a subagent of the lead agent or of a program; 0 for the lead agent or the program. */
  readonly depth: number;
  /** The identity on whose behalf the work is done, if the app vouched for one (`by`, `SessionOptions.user`). */
  readonly requester: string | null;
  /** The identity that approved this call; null if the app vouched for none, or if no approval was needed. */
  readonly approver: string | null;
  /** The call's key, which is the same for every attempt, even after a crash. */
  readonly idempotencyKey: string;
  /** The subagents that the caller may start and talk to. */
  readonly service: SubagentService;
}

/** A tool's `context`, with the properties that the runtime adds. */
export interface CallerContext {
  /** The tool's caller. */
  readonly offstage: Caller;
}

/**
 * The part of the second argument of `execute` that contains the context: `{ context }`, or the property's name in
 * earlier versions of the SDK.
 */
interface ToolOptions {
  readonly context?: unknown;
  readonly experimental_context?: unknown;
}

/** Returns the caller of a tool; null if the tool was called by neither a session nor a subagent. */
export function callerOf(options: object | undefined): Caller | null {
  const { context, experimental_context } = (options ?? {}) as ToolOptions;
  return callerIn(context) ?? callerIn(experimental_context);
}

/** Returns the author's context, with the caller added. */
export function withCaller(context: unknown, caller: Caller): CallerContext {
  return { ...(context as object | undefined), offstage: caller };
}

function callerIn(context: unknown): Caller | null {
  if (typeof context !== 'object' || context === null || !('offstage' in context)) return null;
  return context.offstage as Caller;
}
