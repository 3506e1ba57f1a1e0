// `request_input`: the tool with which a subagent asks the agent that gave it the task. The tool comes from
// the child toolset, under any name; the runtime recognizes it by its role.

import { z } from 'zod';
import type { ModelCall } from '../model/model-step.ts';

const input = z.object({
  question: z.string().catch(''),
  context: z.string().optional().catch(undefined),
  timeoutMs: z.number().positive().optional().catch(undefined),
});

/** Reads the request from the arguments of the call, which fit the schema of the tool. */
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
