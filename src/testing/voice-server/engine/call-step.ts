// A step in which the model calls a tool, as a model writes it.

import type { VoiceStep } from './control.ts';

export type CallStep = Extract<VoiceStep, { call: string }>;

/** Returns the arguments as JSON text. A text stays unchanged, also if it is no JSON. */
export function argumentsText({ arguments: given = {} }: CallStep): string {
  return typeof given === 'string' ? given : JSON.stringify(given);
}

/** Returns the arguments as an object; null if they are a text that is no JSON object. */
export function argumentsObject(step: CallStep): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(argumentsText(step));
    return typeof value === 'object' && value !== null ? { ...value } : null;
  } catch {
    return null;
  }
}
