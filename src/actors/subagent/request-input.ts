// `request_input`: how a subagent asks the agent that gave it the task. The tool comes from
// the child toolset, under whatever name; the runtime knows it by its role.

import { z } from 'zod';
import type { ModelCall } from '../model/model-step.ts';

const input = z.object({
  question: z.string().catch(''),
  context: z.string().optional().catch(undefined),
  timeoutMs: z.number().positive().optional().catch(undefined),
});

/** What is asked, from the arguments of the call, which fit the schema of the tool. */
export function requestedInput(call: ModelCall | undefined): {
  question: string;
  context?: string;
  timeoutMs?: number;
} {
  const { question, context, timeoutMs } = input.parse(call?.input ?? {});
  return {
    question,
    ...(context === undefined ? {} : { context }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  };
}

/** What the model reads of its request. Withdrawn is not timed out. */
export type InputResult =
  | { readonly responded: true; readonly response: string; readonly timedOut: false }
  | { readonly responded: false; readonly timedOut: boolean };

export const inputGiven = (response: string): InputResult => ({
  responded: true,
  response,
  timedOut: false,
});

export const inputMissing = (timedOut: boolean): InputResult => ({ responded: false, timedOut });
