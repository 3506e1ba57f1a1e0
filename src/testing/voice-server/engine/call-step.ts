// A step in which the model calls a tool, as a model writes it.

import type { VoiceStep } from './control.ts';

export type CallStep = Extract<VoiceStep, { call: string }>;

/** The arguments as JSON text. A text is left as it is, also where it is not JSON. */
export function argumentsText({ arguments: given = {} }: CallStep): string {
  return typeof given === 'string' ? given : JSON.stringify(given);
}

/** The arguments as an object; null where they are a text that is none in JSON. */
export function argumentsObject(step: CallStep): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(argumentsText(step));
    return typeof value === 'object' && value !== null ? { ...value } : null;
  } catch {
    return null;
  }
}
