// Who calls a tool: the runtime says so in the context that every `execute` gets, under
// `offstage`, beside what the author's own context holds.

import type { SubagentService } from '../contracts/service-types.ts';

/** Who called, and what it may talk to. */
export interface Caller {
  readonly sessionId: string;
  /** Null: the lead agent, or a program. */
  readonly subagentId: string | null;
  /** The subagent that spawned it; null for one of the lead agent or of a program. */
  readonly parentId: string | null;
  /** 1 for a subagent of the lead agent or of a program; 0 for these themselves. */
  readonly depth: number;
  /** For whom the work is done, where the app vouched for somebody (`by`, `SessionOptions.user`). */
  readonly requester: string | null;
  /** Who consented to this very call, where the app vouched for somebody; null also where nobody was asked. */
  readonly approver: string | null;
  /** The same for every attempt at this call, also after a crash. */
  readonly idempotencyKey: string;
  readonly service: SubagentService;
}

/** What the `context` of a tool holds under `offstage`. */
export interface CallerContext {
  readonly offstage: Caller;
}

/** The second argument of `execute`, whatever made it: `{ context }`, or the older name. */
interface ToolOptions {
  readonly context?: unknown;
  readonly experimental_context?: unknown;
}

/** Who called this tool; null where it was not called through a session or a subagent. */
export function callerOf(options: object | undefined): Caller | null {
  const { context, experimental_context } = (options ?? {}) as ToolOptions;
  return callerIn(context) ?? callerIn(experimental_context);
}

/** The author's own context with the caller in it. */
export function withCaller(context: unknown, caller: Caller): CallerContext {
  return { ...(context as object | undefined), offstage: caller };
}

function callerIn(context: unknown): Caller | null {
  if (typeof context !== 'object' || context === null || !('offstage' in context)) return null;
  return context.offstage as Caller;
}
