// The events that a client sends in the Live protocol, with a schema for each event. Unknown fields are refused, as by
// the real server. Only client delegation is supported.

import { z } from 'zod';
import { propertiesOf } from '../../../values/json.ts';
import { Refusal } from '../../../adapters/local-voice/wire-events.ts';
import { refusalOf } from '../../../adapters/local-voice/zod-refusal.ts';
import type { ClientEvent as OfficialClientEvent } from './official.ts';

const MAX_INPUT_ITEMS = 128;
const MAX_APPEND_TOKENS = 500;
const MAX_INSTRUCTION_TOKENS = 16_384;
const MAX_INPUT_TOKENS = 8_192;
/**
 * The average for English text, because the fake does not have the real server's tokenizer.
 */
const CHARACTERS_PER_TOKEN = 4;

/** Estimates the number of tokens. */
export function tokensOf(text: string): number {
  return Math.ceil(text.length / CHARACTERS_PER_TOKEN);
}

const eventFields = { event_id: z.string().max(512).nullish() };

const audioFormat = z.union([
  z.strictObject({ type: z.literal('audio/pcm'), rate: z.literal([16_000, 24_000]) }),
  z.strictObject({ type: z.literal(['audio/pcmu', 'audio/pcma']), rate: z.literal(8_000) }),
]);
const delegation = z.strictObject({
  type: z.literal('client', { error: 'only client delegation is served here' }),
  acknowledgement_delay_ms: z.int().nonnegative().optional(),
});
const message = <Role extends string, Part extends z.ZodType>(role: Role, part: Part) =>
  z.strictObject({
    type: z.literal('message').optional(),
    role: z.literal(role),
    id: z.string().nullish(),
    status: z.enum(['completed', 'incomplete']).nullish(),
    content: z.array(part).length(1),
  });
const inputText = z.strictObject({ type: z.literal('input_text').optional(), text: z.string() });
const outputText = z.strictObject({
  type: z.literal(['text', 'output_text']).optional(),
  text: z.string(),
});
const initialItem = z.discriminatedUnion('role', [
  message('developer', inputText),
  message('user', inputText),
  message('assistant', outputText),
]);
const withinTokens = (limit: number): z.ZodString =>
  z.string().refine((text) => tokensOf(text) <= limit, `limited to ${limit} tokens`);

/** The session that a new connection creates. */
export const newSession = z.strictObject({
  model: z.string().min(1),
  instructions: withinTokens(MAX_INSTRUCTION_TOKENS).nullish(),
  audio: z
    .strictObject({
      format: audioFormat.optional(),
      output: z
        .strictObject({
          voice: z.union([z.string().min(1), z.strictObject({ id: z.string() })]).optional(),
        })
        .optional(),
    })
    .optional(),
  delegation: delegation.nullish(),
  input: z
    .array(initialItem)
    .max(MAX_INPUT_ITEMS)
    .refine(
      (items) =>
        tokensOf(items.map(({ content }) => content[0]?.text).join('')) <= MAX_INPUT_TOKENS,
      `limited to ${MAX_INPUT_TOKENS} tokens`,
    )
    .optional(),
  store: z.boolean().optional(),
  triggers: z.array(z.unknown()).max(0).optional(),
});
/** The fields that a fork of a stored session may set. */
export const forkedSession = z.strictObject({
  audio: z.strictObject({ format: audioFormat.optional() }).optional(),
  store: z.boolean().optional(),
});

const append = <Type extends string>(type: Type) =>
  z.strictObject({
    ...eventFields,
    type: z.literal(type),
    content: withinTokens(MAX_APPEND_TOKENS).min(1),
    delegation_id: z.string().nullable(),
  });
const plain = <Type extends string>(type: Type) =>
  z.strictObject({ ...eventFields, type: z.literal(type) });

const clientEventSchemas = {
  'session.start': z.strictObject({
    ...eventFields,
    type: z.literal('session.start'),
    // Checked later, because a new session and a fork allow different fields.
    session: z.record(z.string(), z.unknown()),
  }),
  'session.update': z.strictObject({
    ...eventFields,
    type: z.literal('session.update'),
    session: z.strictObject({
      delegation: delegation.nullish(),
      triggers: z.array(z.unknown()).max(0).optional(),
    }),
  }),
  'session.input_audio.append': z.strictObject({
    ...eventFields,
    type: z.literal('session.input_audio.append'),
    audio: z.string(),
  }),
  'session.input_audio.mute': plain('session.input_audio.mute'),
  'session.input_audio.unmute': plain('session.input_audio.unmute'),
  'session.instructions.append': append('session.instructions.append'),
  'session.thinking.append': append('session.thinking.append'),
  'session.commentary.append': append('session.commentary.append'),
  'session.output_audio.fixture.play': z.strictObject({
    ...eventFields,
    type: z.literal('session.output_audio.fixture.play'),
    audio: z.string(),
  }),
  'session.close': plain('session.close'),
} satisfies Partial<Record<OfficialClientEvent['type'], z.ZodType>>;

/** Events for delegation to OpenAI's backends, which the fake does not support. */
const otherDelegation: ReadonlySet<string> = new Set([
  'decision.create',
  'decision.item.create',
  'decision.item.delete',
  'response.item.create',
  'response.create',
] satisfies OfficialClientEvent['type'][]);

type Schemas = typeof clientEventSchemas;
export type LiveClientEvent = { [Type in keyof Schemas]: z.output<Schemas[Type]> }[keyof Schemas];

export interface ParsedLiveFrame {
  readonly eventId: string | null;
  readonly event: LiveClientEvent | Refusal;
}

/** Parses one text frame. Never throws. */
export function parseLiveFrame(text: string): ParsedLiveFrame {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    const event = new Refusal('invalid_json', 'Invalid event: failed to parse JSON value.');
    return { eventId: null, event };
  }
  const { event_id: id } = propertiesOf(raw);
  return { eventId: typeof id === 'string' ? id : null, event: readEvent(raw) };
}

function readEvent(raw: unknown): LiveClientEvent | Refusal {
  const { type } = propertiesOf(raw);
  if (type === undefined) {
    return new Refusal('missing_required_parameter', "Missing required parameter: 'type'.", 'type');
  }
  if (typeof type === 'string' && otherDelegation.has(type)) {
    return new Refusal('invalid_request', `'${type}' is not for client delegation.`, 'type');
  }
  if (typeof type !== 'string' || !Object.hasOwn(clientEventSchemas, type)) {
    const supported = [...Object.keys(clientEventSchemas), ...otherDelegation]
      .map((name) => `'${name}'`)
      .join(', ');
    const shown = JSON.stringify(type).slice(0, 100);
    const text = `Invalid value: ${shown}. Supported values are: ${supported}.`;
    return new Refusal('invalid_value', text, 'type');
  }
  const checked = clientEventSchemas[type as keyof Schemas].safeParse(raw);
  return checked.success ? checked.data : refusalOf(checked.error, raw);
}
