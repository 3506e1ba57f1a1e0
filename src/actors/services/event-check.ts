// Checks the external events that a source emits.

import { z } from 'zod';
import type { JSONValue } from 'ai';
import type { EventPriority } from '../../machines/index.ts';
import { asJson, isLongerThan } from '../../values/json.ts';
import type { EventRefusal } from '../ports/event-source.ts';

/** A valid event: plain JSON, and not too large. */
export interface CheckedEvent {
  readonly source: string;
  readonly type: string;
  readonly data: JSONValue;
  readonly priority: EventPriority;
}

export type EventCheck =
  | { readonly ok: true; readonly event: CheckedEvent }
  | {
      readonly ok: false;
      readonly reason: Extract<EventRefusal, 'invalid' | 'too_large'>;
      readonly message: string;
    };

/** A name, not a sentence: it is shown to models and people unchanged. */
const name = z
  .string()
  .min(1)
  .max(200)
  .regex(/^[^\s"'`<>()[\]{}]+$/u, 'expected a name without blanks, quotes or brackets');

const schema = z.strictObject({
  source: name,
  type: name,
  data: z.unknown(),
  priority: z.enum(['normal', 'urgent']).default('normal'),
});

/** Never throws; the result for an invalid event contains the reason. */
export function checkEvent(emitted: unknown, maxBytes: number): EventCheck {
  const parsed = schema.safeParse(emitted);
  if (!parsed.success)
    return { ok: false, reason: 'invalid', message: z.prettifyError(parsed.error) };
  const { source, type, priority, data } = parsed.data;
  const json = asJson(data);
  if (!json.ok) return { ok: false, reason: 'invalid', message: `data: ${json.message}` };
  if (isLongerThan(json.text, maxBytes))
    return {
      ok: false,
      reason: 'too_large',
      message: `data: expected at most ${maxBytes} bytes of JSON`,
    };
  return { ok: true, event: { source, type, priority, data: json.value } };
}
