// The eleven client events of the GA Realtime protocol with their schemas and content: conversation items, tools and
// response parameters. Like the real server, this server rejects unknown fields. One event is an extension of this
// server (`OPEN_QUESTION`), which the session announces in the `extensions` field.

import { z } from 'zod';
import { propertiesOf } from '../../values/json.ts';
import type { RealtimeClientEvent } from '../openai-realtime/official.ts';
import { Refusal } from './wire-events.ts';
import { refusalOf } from './zod-refusal.ts';

const MAX_ID_LENGTH = 32;
const MAX_METADATA_PAIRS = 16;
const MAX_METADATA_KEY_LENGTH = 64;
const MAX_METADATA_VALUE_LENGTH = 512;
const MAX_OUTPUT_TOKENS = 4096;

const id = z.string().min(1).max(MAX_ID_LENGTH);
/** Call ids from other servers may be longer. */
const callId = z.string().min(1).max(256);

const itemFields = {
  id: id.nullish(),
  object: z.literal('realtime.item').nullish(),
  status: z.enum(['completed', 'incomplete', 'in_progress']).nullish(),
};

const inputText = z.strictObject({ type: z.literal('input_text'), text: z.string() });
const inputAudio = z.strictObject({
  type: z.literal('input_audio'),
  audio: z.string(),
  transcript: z.string().nullish(),
});
const inputImage = z.strictObject({
  type: z.literal('input_image'),
  image_url: z.string().startsWith('data:image/'),
  detail: z.enum(['auto', 'low', 'high']).nullish(),
});
const outputText = z.strictObject({ type: z.literal('output_text'), text: z.string() });
/** A client can send back only the transcript of the assistant's audio, not the audio itself. */
const outputAudio = z.strictObject({
  type: z.literal('output_audio'),
  transcript: z.string(),
});

const messageItem = z.discriminatedUnion('role', [
  z.strictObject({
    ...itemFields,
    type: z.literal('message'),
    role: z.literal('system'),
    content: z.array(inputText),
  }),
  z.strictObject({
    ...itemFields,
    type: z.literal('message'),
    role: z.literal('user'),
    content: z.array(z.discriminatedUnion('type', [inputText, inputAudio, inputImage])),
  }),
  z.strictObject({
    ...itemFields,
    type: z.literal('message'),
    role: z.literal('assistant'),
    content: z.array(z.discriminatedUnion('type', [outputText, outputAudio])),
  }),
]);
const functionCall = z.strictObject({
  ...itemFields,
  type: z.literal('function_call'),
  call_id: callId.nullish(),
  name: z.string().min(1),
  arguments: z.string(),
});
const functionCallOutput = z.strictObject({
  ...itemFields,
  type: z.literal('function_call_output'),
  call_id: callId,
  output: z.string(),
});

const newItem = z.discriminatedUnion('type', [messageItem, functionCall, functionCallOutput]);
const itemReference = z.strictObject({ type: z.literal('item_reference'), id });
const inputItem = z.discriminatedUnion('type', [
  messageItem,
  functionCall,
  functionCallOutput,
  itemReference,
]);

export const functionTool = z.strictObject({
  type: z.literal('function'),
  name: z.string().min(1).max(64),
  description: z.string().nullish(),
  parameters: z.record(z.string(), z.unknown()).nullish(),
});
export const toolChoice = z.union([
  z.enum(['auto', 'none', 'required']),
  z.strictObject({ type: z.literal('function'), name: z.string() }),
]);
/** Either audio or text, but not both, because audio always includes a transcript. */
export const outputModalities = z.array(z.enum(['text', 'audio'])).length(1);
export const audioFormat = z.strictObject({
  type: z.literal('audio/pcm'),
  rate: z.literal(24_000).nullish(),
});
export const voiceChoice = z.union([z.string().min(1), z.strictObject({ id: z.string().min(1) })]);
export const maxOutputTokens = z.union([z.int().min(1).max(MAX_OUTPUT_TOKENS), z.literal('inf')]);
export const reasoning = z.strictObject({
  effort: z.enum(['minimal', 'low', 'medium', 'high', 'xhigh']).nullish(),
});

const metadata = z
  .record(z.string().max(MAX_METADATA_KEY_LENGTH), z.string().max(MAX_METADATA_VALUE_LENGTH))
  .refine((pairs) => Object.keys(pairs).length <= MAX_METADATA_PAIRS, {
    error: `expected at most ${MAX_METADATA_PAIRS} pairs`,
  });

const responseParameters = z.strictObject({
  conversation: z.enum(['auto', 'none']).nullish(),
  input: z.array(inputItem).nullish(),
  instructions: z.string().nullish(),
  metadata: metadata.nullish(),
  output_modalities: outputModalities.nullish(),
  max_output_tokens: maxOutputTokens.nullish(),
  tools: z.array(functionTool).nullish(),
  tool_choice: toolChoice.nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  reasoning: reasoning.nullish(),
  prompt: z.null().optional(),
  audio: z
    .strictObject({
      output: z
        .strictObject({ format: audioFormat.nullish(), voice: voiceChoice.nullish() })
        .nullish(),
    })
    .nullish(),
});

export type InputItem = z.output<typeof inputItem>;
export type ResponseParameters = z.output<typeof responseParameters>;
export type FunctionTool = z.output<typeof functionTool>;
export type ToolChoice = z.output<typeof toolChoice>;

const eventFields = { event_id: z.string().max(512).nullish() };
const itemId = z.string();

/**
 * The extension event that names the question that the user may be answering, so that an answer ends the user's turn
 * immediately: `{"type": "session.open_question", "question": {"kind": "choice", "options": […]}}`; `null` for none.
 * The server responds only if it rejects the event.
 */
export const OPEN_QUESTION = 'session.open_question';

const openQuestion = z.strictObject({
  kind: z.enum(['choice', 'free_text', 'approval']),
  options: z
    .array(
      z.strictObject({
        id: z.string(),
        label: z.string(),
        description: z.string().exactOptional(),
      }),
    )
    .max(100),
  question: z.string().exactOptional(),
  action: z.string().exactOptional(),
});

const clientEventSchemas = {
  // The content of a session is validated against the current session (`session-config.ts`).
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
  [OPEN_QUESTION]: z.strictObject({
    ...eventFields,
    type: z.literal(OPEN_QUESTION),
    question: openQuestion.nullable(),
  }),
} satisfies Record<RealtimeClientEvent['type'] | typeof OPEN_QUESTION, z.ZodType>;

type Schemas = typeof clientEventSchemas;
export type ClientEvent = { [Type in keyof Schemas]: z.output<Schemas[Type]> }[keyof Schemas];

/** The result of parsing a frame from a client. */
interface ParsedFrame {
  /** The client's event id, which the error repeats. */
  readonly eventId: string | null;
  readonly event: ClientEvent | Refusal;
}

const supportedTypes = Object.keys(clientEventSchemas)
  .filter((type) => type !== OPEN_QUESTION)
  .map((type) => `'${type}'`);

/** Parses one text frame. Never throws. */
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
  const { event_id: eventId = null } = propertiesOf(raw);
  return { eventId: typeof eventId === 'string' ? eventId : null, event: readEvent(raw) };
}

function readEvent(raw: unknown): ClientEvent | Refusal {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) {
    return new Refusal('invalid_event', 'Invalid event: expected an object.');
  }
  const { type } = propertiesOf(raw);
  if (type === undefined) {
    return new Refusal('missing_required_parameter', "Missing required parameter: 'type'.", 'type');
  }
  if (typeof type !== 'string' || !Object.hasOwn(clientEventSchemas, type)) {
    const shown = JSON.stringify(type).slice(0, 100);
    return unsupported(shown);
  }
  const checked = clientEventSchemas[type as keyof Schemas].safeParse(raw);
  return checked.success ? checked.data : refusalOf(checked.error, raw);
}

/** Returns the error for an event whose type the session does not accept. `shown`: the event type, as JSON. */
export function unsupported(shown: string): Refusal {
  const message = `Invalid value: ${shown}. Supported values are: ${supportedTypes.join(', ')}.`;
  return new Refusal('invalid_value', message, 'type');
}
