// The result of a tool that could not do its work: data with a stable code, which no text can be mistaken
// for.

import { codeOf, messageOf } from '../../values/errors.ts';

/** The result of such a call. */
export interface ToolFailure {
  readonly error: { readonly code: string; readonly message: string };
}

export function toolFailure(code: string, message: string): ToolFailure {
  return { error: { code, message } };
}

/** Returns a thrown error as a result. */
export function thrownFailure(error: unknown): ToolFailure {
  return toolFailure(codeOf(error), messageOf(error));
}

/** Not for reports on subagents: a failed one has an `error`, too. */
export function isToolFailure(output: unknown): output is ToolFailure {
  try {
    if (typeof output !== 'object' || output === null || !('error' in output)) return false;
    const { error } = output;
    return typeof error === 'object' && error !== null && 'code' in error && 'message' in error;
  } catch {
    // The value is a Proxy whose traps throw.
    return false;
  }
}
