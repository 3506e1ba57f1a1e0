// `sleep_until`, the tool with which a subagent pauses until a given time. The runtime adds the tool if `maxSleepMs` is
// set and handles its calls itself, so the tool has no `execute`. The call's journal entry contains the time. A
// deadline of the subagent's machine wakes the subagent.

import { jsonSchema, tool, type Tool } from 'ai';
import { z } from 'zod';
import { objectJson, validatedBy } from '../model/schema.ts';

export const SLEEP_UNTIL = 'sleep_until';

const input = z.object({ minutes: z.number().nullish(), until: z.string().nullish() });
const inputJson = objectJson({ minutes: { type: 'number' }, until: { type: 'string' } }, []);

/** The AI SDK tool, without `execute`. */
export const sleepUntilTool: Tool = tool({
  description:
    'Pauses your work, which goes on at a later time, even after days. Give `minutes` from now, or `until`, a time with its offset, such as 2026-12-24T18:00+01:00. Returns when you wake, with the time. A message wakes you earlier.',
  inputSchema: jsonSchema(inputJson, { validate: validatedBy(input) }),
  outputSchema: jsonSchema<{ status: string; now: string }>({ type: 'object' }),
});

const MINUTE_MS = 60_000;
const WITH_OFFSET = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/;

/** Returns the time until which a call sleeps, in milliseconds since 1970, or an error message for the model. */
export function wakeTime(call: unknown, now: number, maxMs: number): number | string {
  const { minutes, until } = call as z.infer<typeof input>;
  const isNow = `It is now ${new Date(now).toISOString()}.`;
  const hasBoth = Boolean(minutes) && Boolean(until);
  const at = minutes
    ? now + Math.round(minutes * MINUTE_MS)
    : WITH_OFFSET.test(until ?? '')
      ? Date.parse(until ?? '')
      : NaN;
  if (hasBoth || Number.isNaN(at))
    return `Expected either minutes, or until as a time with its offset, such as 2026-12-24T18:00+01:00. ${isNow}`;
  if (at <= now) return `Expected a later time. ${isNow}`;
  if (at - now <= maxMs) return at;
  return `Expected at most ${Math.floor(maxMs / MINUTE_MS)} minutes from now. ${isNow}`;
}
