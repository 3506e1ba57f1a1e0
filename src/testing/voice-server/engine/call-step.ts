// The step in which a model calls a tool.

import type { VoiceStep } from './control.ts';

export type CallStep = Extract<VoiceStep, { call: string }>;

/** Returns the arguments as JSON text. A string stays unchanged even if it is not JSON. */
export function argumentsText({ arguments: given = {} }: CallStep): string {
  return typeof given === 'string' ? given : JSON.stringify(given);
}

/** Returns the arguments as an object, or null if the text is not a JSON object. */
export function argumentsObject(step: CallStep): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(argumentsText(step));
    return typeof value === 'object' && value !== null ? { ...value } : null;
  } catch {
    return null;
  }
}
