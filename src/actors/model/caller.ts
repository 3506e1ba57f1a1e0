// A tool's caller, which the runtime adds as `offstage` to the author's context of every `execute`.

import type { SubagentService } from '../contracts/service-types.ts';

/** The calling agent, and the subagents that it may talk to. */
export interface Caller {
  /** The id of the session or run. */
  readonly sessionId: string;
  /** Null for the lead agent, or a program. */
  readonly subagentId: string | null;
  /** The subagent that spawned it; null for a subagent of the lead agent or of a program. */
  readonly parentId: string | null;
  /** 1 for a subagent of the lead agent or of a program; 0 for the lead agent or the program. */
  readonly depth: number;
  /** The identity for which the work is done, if the app vouched for one (`by`, `SessionOptions.user`). */
  readonly requester: string | null;
  /** The identity that approved this call, if the app vouched for one; also null if no approval was needed. */
  readonly approver: string | null;
  /** The same for every attempt at this call, even after a crash. */
  readonly idempotencyKey: string;
  /** The subagents that the caller may start and talk to. */
  readonly service: SubagentService;
}

/** A tool's `context`, as the runtime extends it. */
export interface CallerContext {
  /** The tool's caller. */
  readonly offstage: Caller;
}

/** The second argument of `execute`: `{ context }`, or the older name of that property. */
interface ToolOptions {
  readonly context?: unknown;
  readonly experimental_context?: unknown;
}

/** Returns a tool's caller; null if neither a session nor a subagent called the tool. */
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
