// How a tool says that it could not do what it was asked for: as data with a stable code,
// which no text can be mistaken for.

import { codeOf, messageOf } from '../../values/errors.ts';

/** The result of such a call. */
export interface ToolFailure {
  readonly error: { readonly code: string; readonly message: string };
}

export function toolFailure(code: string, message: string): ToolFailure {
  return { error: { code, message } };
}

/** What was thrown, as a result. */
export function thrownFailure(error: unknown): ToolFailure {
  return toolFailure(codeOf(error), messageOf(error));
}

/** Not for reports of subagents: one that failed has an `error`, too. */
export function isToolFailure(output: unknown): output is ToolFailure {
  try {
    if (typeof output !== 'object' || output === null || !('error' in output)) return false;
    const { error } = output;
    return typeof error === 'object' && error !== null && 'code' in error && 'message' in error;
  } catch {
    // A Proxy of somebody, whose traps throw.
    return false;
  }
}
