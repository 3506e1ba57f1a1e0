// The GA Realtime protocol without a socket. It contains a builder for each client event, typed against the official
// union, and schemas for the fields of server events that this package reads. The functions are pure, and the caller
// provides ids.
//
// One table lists each server event of the official union, either with a schema of the fields that are read or with the
// reason why the event is ignored. If the official union gains an event, compilation fails until the table lists it. A
// type test fails if a field that is read changes. At run time, extra fields are accepted, but a missing required field
// is an error.

import { z } from 'zod';
import type { ExpectedAnswer, TransportConfiguration } from '../../voice/connection/transport.ts';
import { parseEvent, type EventOf, type ParsedEvent } from '../socket/event-table.ts';
import type { RealtimeClientEvent, RealtimeServerEvent } from './official.ts';

/** The metadata key under which a response contains the request's `responseKey`. */
export const RESPONSE_KEY = 'response_key';

export const WIRE_SAMPLE_RATE_HZ = 24_000;

/** The audio settings of a session, which are fixed at its start. */
export interface SessionSettings {
  readonly output: 'audio' | 'text';
  readonly voice: string | { readonly id: string };
  readonly speed?: number;
  readonly transcription: {
    readonly model: string;
    readonly language?: string;
    readonly prompt?: string;
  };
  readonly turnDetection:
    | {
        readonly type: 'server_vad';
        readonly threshold?: number;
        readonly prefixPaddingMs?: number;
        readonly silenceDurationMs?: number;
      }
    | { readonly type: 'semantic_vad'; readonly eagerness?: 'low' | 'medium' | 'high' | 'auto' };
  readonly noiseReduction?: 'near_field' | 'far_field';
  readonly reasoningEffort?: 'minimal' | 'low' | 'medium' | 'high' | 'xhigh';
  readonly maxOutputTokens?: number;
  /** Additional session fields in the protocol's form. The other settings take precedence over them. */
  readonly session?: Readonly<Record<string, unknown>>;
}

/** A connection's first event, which contains the whole configuration. */
export function sessionStart(
  eventId: string,
  settings: SessionSettings,
  configuration: TransportConfiguration,
) {
  const format = { type: 'audio/pcm', rate: WIRE_SAMPLE_RATE_HZ } as const;
  return {
    type: 'session.update',
    event_id: eventId,
    session: {
      ...settings.session,
      type: 'realtime',
      output_modalities: [settings.output],
      ...behaviour(configuration),
      ...(settings.reasoningEffort && { reasoning: { effort: settings.reasoningEffort } }),
      ...(settings.maxOutputTokens && { max_output_tokens: settings.maxOutputTokens }),
      audio: {
        input: {
          format,
          transcription: settings.transcription,
          turn_detection: turnDetection(settings.turnDetection),
          ...(settings.noiseReduction && { noise_reduction: { type: settings.noiseReduction } }),
        },
        output: {
          format,
          voice: settings.voice,
          ...(settings.speed && { speed: settings.speed }),
        },
      },
    },
  } satisfies RealtimeClientEvent;
}

/** Returns a later change of instructions and tools. The voice cannot be changed any more. */
export function sessionChange(eventId: string, configuration: TransportConfiguration) {
  return {
    type: 'session.update',
    event_id: eventId,
    session: { type: 'realtime', ...behaviour(configuration) },
  } satisfies RealtimeClientEvent;
}

function behaviour({ instructions, tools }: TransportConfiguration) {
  return {
    instructions,
    tools: tools.map(({ name, description, parameters }) => ({
      type: 'function' as const,
      name,
      description,
      parameters,
    })),
  };
}

/**
 * Returns the detector's settings. The detector only reports speech, and the session decides about responses and
 * interruptions.
 */
function turnDetection(detection: SessionSettings['turnDetection']) {
  const reportsOnly = { create_response: false, interrupt_response: false };
  if (detection.type === 'semantic_vad') return { ...detection, ...reportsOnly };
  const { type, threshold, prefixPaddingMs, silenceDurationMs } = detection;
  return {
    type,
    threshold,
    prefix_padding_ms: prefixPaddingMs,
    silence_duration_ms: silenceDurationMs,
    ...reportsOnly,
  };
}

export function messageAdd(
  eventId: string,
  message: {
    readonly itemId: string;
    readonly role: 'system' | 'user' | 'assistant';
    readonly text: string;
    readonly afterItemId?: string;
  },
) {
  const { itemId: id, role, text, afterItemId } = message;
  // The server accepts no audio from the assistant, so the assistant's speech is replayed as text.
  const item =
    role === 'assistant'
      ? { id, type: 'message' as const, role, content: [{ type: 'output_text' as const, text }] }
      : { id, type: 'message' as const, role, content: [{ type: 'input_text' as const, text }] };
  return {
    type: 'conversation.item.create',
    event_id: eventId,
    ...(afterItemId !== undefined && { previous_item_id: afterItemId }),
    item,
  } satisfies RealtimeClientEvent;
}

export function imageAdd(
  eventId: string,
  image: { readonly itemId: string; readonly mediaType: string; readonly data: Uint8Array },
) {
  const data = Buffer.from(image.data.buffer, image.data.byteOffset, image.data.byteLength);
  return {
    type: 'conversation.item.create',
    event_id: eventId,
    item: {
      id: image.itemId,
      type: 'message' as const,
      role: 'user' as const,
      content: [
        {
          type: 'input_image' as const,
          image_url: `data:${image.mediaType};base64,${data.toString('base64')}`,
        },
      ],
    },
  } satisfies RealtimeClientEvent;
}

export function itemDelete(eventId: string, itemId: string) {
  return {
    type: 'conversation.item.delete',
    event_id: eventId,
    item_id: itemId,
  } satisfies RealtimeClientEvent;
}

export function toolAnswer(eventId: string, callId: string, output: string) {
  return {
    type: 'conversation.item.create',
    event_id: eventId,
    item: { type: 'function_call_output', call_id: callId, output },
  } satisfies RealtimeClientEvent;
}

export function toolRecall(
  eventId: string,
  call: { readonly callId: string; readonly name: string; readonly arguments: string },
) {
  return {
    type: 'conversation.item.create',
    event_id: eventId,
    item: {
      type: 'function_call',
      call_id: call.callId,
      name: call.name,
      arguments: call.arguments,
    },
  } satisfies RealtimeClientEvent;
}

/**
 * Requests a response. For this response, `instructions` replace the session's instructions and must therefore repeat
 * them.
 */
export function responseCreate(
  eventId: string,
  responseKey: string,
  instructions?: string,
  outOfBand = false,
) {
  return {
    type: 'response.create',
    event_id: eventId,
    response: {
      metadata: { [RESPONSE_KEY]: responseKey },
      ...(instructions !== undefined && { instructions }),
      // The response uses the conversation but adds no item to it.
      ...(outOfBand && { conversation: 'none' as const }),
    },
  } satisfies RealtimeClientEvent;
}

export function responseCancel(eventId: string) {
  return { type: 'response.cancel', event_id: eventId } satisfies RealtimeClientEvent;
}

export function itemTruncate(
  eventId: string,
  heard: { readonly itemId: string; readonly contentIndex: number; readonly audioEndMs: number },
) {
  return {
    type: 'conversation.item.truncate',
    event_id: eventId,
    item_id: heard.itemId,
    content_index: heard.contentIndex,
    audio_end_ms: heard.audioEndMs,
  } satisfies RealtimeClientEvent;
}

/** The extension event that informs `localVoice` which question the user may be answering. */
export const OPEN_QUESTION = 'session.open_question';

/** Returns an event for a server that announces `OPEN_QUESTION`. The official union has no such event. */
export function openQuestion(eventId: string, question: ExpectedAnswer | null) {
  return { type: OPEN_QUESTION, event_id: eventId, question } as const;
}

/** Turns the content of the input buffer into an item. */
export function audioCommit(eventId: string) {
  return { type: 'input_audio_buffer.commit', event_id: eventId } satisfies RealtimeClientEvent;
}

/**
 * Returns the JSON text of an `input_audio_buffer.append` frame. Base64 needs no escaping, and JSON.stringify would be
 * 7 times slower.
 */
export function audioAppendText(base64: string): string {
  return `{"type":"input_audio_buffer.append","audio":"${base64}"}`;
}

/** The breakdown of a token count. Parts that cannot be read are dropped, but the total count remains. */
const audioTokens = z.object({ audio_tokens: z.number().nullish() }).nullish().catch(null);
const inputTokens = z
  .object({ audio_tokens: z.number().nullish(), cached_tokens: z.number().nullish() })
  .nullish()
  .catch(null);
const tokens = {
  input_tokens: z.number().nullish(),
  output_tokens: z.number().nullish(),
};
/** A transcription's usage. */
const heardUsage = z.object({ ...tokens, input_token_details: audioTokens }).nullish();
const usage = z
  .object({ ...tokens, input_token_details: inputTokens, output_token_details: audioTokens })
  .nullish();

const response = z.object({
  id: z.string(),
  status: z.string().nullish(),
  status_details: z
    .object({
      reason: z.string().nullish(),
      error: z.object({ code: z.string().nullish(), message: z.string().nullish() }).nullish(),
    })
    .nullish(),
  metadata: z.record(z.string(), z.unknown()).nullish(),
  usage,
});

const outputItem = z.object({
  type: z.string(),
  status: z.string().nullish(),
  call_id: z.string().nullish(),
  name: z.string().nullish(),
  arguments: z.string().nullish(),
});

const partOf = { response_id: z.string(), item_id: z.string() } as const;

const serverEventTable = {
  'session.created': 'a default session; ours begins when our session.update is answered',
  'session.updated': z.object({
    type: z.literal('session.updated'),
    // The time at which the server ends the session, in seconds since 1970.
    session: z
      .object({
        expires_at: z.number().nullish(),
        // The extension events that `localVoice` accepts.
        extensions: z.array(z.string()).nullish(),
      })
      .nullish(),
  }),
  error: z.object({
    type: z.literal('error'),
    error: z.object({
      type: z.string(),
      code: z.string().nullish(),
      message: z.string(),
      event_id: z.string().nullish(),
    }),
  }),

  'input_audio_buffer.speech_started': z.object({
    type: z.literal('input_audio_buffer.speech_started'),
    item_id: z.string(),
    audio_start_ms: z.number(),
  }),
  'input_audio_buffer.speech_stopped': z.object({
    type: z.literal('input_audio_buffer.speech_stopped'),
    item_id: z.string(),
  }),
  // Reports the end of an utterance that the client ended. For all other utterances, the end has already been reported.
  'input_audio_buffer.committed': z.object({
    type: z.literal('input_audio_buffer.committed'),
    item_id: z.string(),
  }),
  'conversation.item.input_audio_transcription.delta': z.object({
    type: z.literal('conversation.item.input_audio_transcription.delta'),
    item_id: z.string(),
    delta: z.string().nullish(),
  }),
  'conversation.item.input_audio_transcription.completed': z.object({
    type: z.literal('conversation.item.input_audio_transcription.completed'),
    item_id: z.string(),
    transcript: z.string(),
    usage: heardUsage,
  }),
  'conversation.item.input_audio_transcription.failed': z.object({
    type: z.literal('conversation.item.input_audio_transcription.failed'),
    item_id: z.string(),
    error: z.object({ code: z.string().nullish(), message: z.string().nullish() }),
  }),

  'response.created': z.object({ type: z.literal('response.created'), response }),
  'response.done': z.object({ type: z.literal('response.done'), response }),
  'response.output_audio.delta': z.object({
    type: z.literal('response.output_audio.delta'),
    ...partOf,
    content_index: z.number(),
    delta: z.string(),
  }),
  'response.output_audio_transcript.delta': z.object({
    type: z.literal('response.output_audio_transcript.delta'),
    ...partOf,
    delta: z.string(),
  }),
  'response.output_audio_transcript.done': z.object({
    type: z.literal('response.output_audio_transcript.done'),
    ...partOf,
    transcript: z.string(),
  }),
  'response.output_text.delta': z.object({
    type: z.literal('response.output_text.delta'),
    ...partOf,
    delta: z.string(),
  }),
  'response.output_text.done': z.object({
    type: z.literal('response.output_text.done'),
    ...partOf,
    text: z.string(),
  }),
  'response.function_call_arguments.done': z.object({
    type: z.literal('response.function_call_arguments.done'),
    response_id: z.string(),
    call_id: z.string(),
    // Some compatible servers omit the name here and send it with the item.
    name: z.string().nullish(),
    arguments: z.string(),
  }),
  'response.output_item.done': z.object({
    type: z.literal('response.output_item.done'),
    response_id: z.string(),
    item: outputItem,
  }),

  'conversation.created': 'there is one conversation',
  'conversation.item.created': 'the older name of conversation.item.added',
  'conversation.item.added': 'items are known by the events of their content',
  'conversation.item.done': 'items are known by the events of their content',
  'conversation.item.deleted': 'confirms what we asked for; a refusal is an error',
  'conversation.item.truncated': 'confirms what we asked for; a refusal is an error',
  'conversation.item.retrieved': 'never asked for',
  'conversation.item.input_audio_transcription.segment': 'the whole text comes with completed',
  'input_audio_buffer.cleared': 'never asked for',
  'input_audio_buffer.timeout_triggered': 'idle timeouts stay off: the session decides who speaks',
  'input_audio_buffer.dtmf_event_received': 'telephone (SIP) only',
  'output_audio_buffer.started': 'WebRTC and SIP only',
  'output_audio_buffer.stopped': 'WebRTC and SIP only',
  'output_audio_buffer.cleared': 'WebRTC and SIP only',
  'response.output_item.added': 'items are known by the events of their content',
  'response.content_part.added': 'parts are known by the events of their content',
  'response.content_part.done': 'parts are known by the events of their content',
  'response.output_audio.done': 'the end that counts is response.done',
  'response.function_call_arguments.delta': 'a call is acted on when it is complete',
  'response.mcp_call_arguments.delta': 'no remote MCP tools are configured',
  'response.mcp_call_arguments.done': 'no remote MCP tools are configured',
  'response.mcp_call.in_progress': 'no remote MCP tools are configured',
  'response.mcp_call.completed': 'no remote MCP tools are configured',
  'response.mcp_call.failed': 'no remote MCP tools are configured',
  'mcp_list_tools.in_progress': 'no remote MCP tools are configured',
  'mcp_list_tools.completed': 'no remote MCP tools are configured',
  'mcp_list_tools.failed': 'no remote MCP tools are configured',
  'rate_limits.updated': z.object({
    type: z.literal('rate_limits.updated'),
    rate_limits: z.array(
      z.object({
        name: z.string().nullish(),
        limit: z.number().nullish(),
        remaining: z.number().nullish(),
        reset_seconds: z.number().nullish(),
      }),
    ),
  }),
} satisfies Record<RealtimeServerEvent['type'], z.ZodType | string>;

/** A server event with only the fields that this package reads. */
export type ServerEvent = EventOf<typeof serverEventTable>;

/** Parses one text frame. Never throws. */
export function parseServerEvent(text: string): ParsedEvent<ServerEvent> {
  return parseEvent(serverEventTable, text);
}
