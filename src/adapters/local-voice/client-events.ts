// The client events of the GA Realtime wire: the eleven events of the official union, each with its schema.

import { z } from 'zod';
import type { RealtimeClientEvent } from '../openai-realtime/official.ts';
import { newItem, responseParameters } from './client-schemas.ts';
import { Refusal } from './wire-events.ts';
import { refusalOf } from './zod-refusal.ts';

const eventFields = { event_id: z.string().max(512).nullish() };
const itemId = z.string();

const clientEventSchemas = {
  // The content of a session is checked against the current session (`session-config.ts`).
  'session.update': z.strictObject({
    ...eventFields,
    type: z.literal('session.update'),
    session: z.record(z.string(), z.unknown()),
  }),
  'input_audio_buffer.append': z.strictObject({
    ...eventFields,
    type: z.literal('input_audio_buffer.append'),
    audio: z.string(),
  }),
  'input_audio_buffer.commit': z.strictObject({
    ...eventFields,
    type: z.literal('input_audio_buffer.commit'),
  }),
  'input_audio_buffer.clear': z.strictObject({
    ...eventFields,
    type: z.literal('input_audio_buffer.clear'),
  }),
  'output_audio_buffer.clear': z.strictObject({
    ...eventFields,
    type: z.literal('output_audio_buffer.clear'),
  }),
  'conversation.item.create': z.strictObject({
    ...eventFields,
    type: z.literal('conversation.item.create'),
    previous_item_id: z.string().nullish(),
    item: newItem,
  }),
  'conversation.item.delete': z.strictObject({
    ...eventFields,
    type: z.literal('conversation.item.delete'),
    item_id: itemId,
  }),
  'conversation.item.retrieve': z.strictObject({
    ...eventFields,
    type: z.literal('conversation.item.retrieve'),
    item_id: itemId,
  }),
  'conversation.item.truncate': z.strictObject({
    ...eventFields,
    type: z.literal('conversation.item.truncate'),
    item_id: itemId,
    content_index: z.int().nonnegative(),
    audio_end_ms: z.number().nonnegative(),
  }),
  'response.create': z.strictObject({
    ...eventFields,
    type: z.literal('response.create'),
    response: responseParameters.nullish(),
  }),
  'response.cancel': z.strictObject({
    ...eventFields,
    type: z.literal('response.cancel'),
    response_id: z.string().nullish(),
  }),
} satisfies Record<RealtimeClientEvent['type'], z.ZodType>;

type Schemas = typeof clientEventSchemas;
export type ClientEvent = { [Type in keyof Schemas]: z.output<Schemas[Type]> }[keyof Schemas];

/** The result of parsing a client frame. */
export interface ParsedFrame {
  /** The client's own id of the event, for the error that answers it. */
  readonly eventId: string | null;
  readonly event: ClientEvent | Refusal;
}

const supportedTypes = Object.keys(clientEventSchemas).map((type) => `'${type}'`);

/** Reads one text frame. Never throws. */
export function parseClientFrame(text: string): ParsedFrame {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    return {
      eventId: null,
      event: new Refusal('invalid_json', 'Invalid event: failed to parse JSON value.'),
    };
  }
  const { event_id: eventId = null } = Object(raw) as { event_id?: unknown };
  return { eventId: typeof eventId === 'string' ? eventId : null, event: readEvent(raw) };
}

function readEvent(raw: unknown): ClientEvent | Refusal {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) {
    return new Refusal('invalid_event', 'Invalid event: expected an object.');
  }
  const { type } = raw as { type?: unknown };
  if (type === undefined) {
    return new Refusal('missing_required_parameter', "Missing required parameter: 'type'.", 'type');
  }
  if (typeof type !== 'string' || !Object.hasOwn(clientEventSchemas, type)) {
    const shown = JSON.stringify(type).slice(0, 100);
    const message = `Invalid value: ${shown}. Supported values are: ${supportedTypes.join(', ')}.`;
    return new Refusal('invalid_value', message, 'type');
  }
  const checked = clientEventSchemas[type as keyof Schemas].safeParse(raw);
  return checked.success ? checked.data : refusalOf(checked.error, raw);
}
