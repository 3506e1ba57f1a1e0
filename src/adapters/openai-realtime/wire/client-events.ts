// The client events of the GA Realtime wire: one builder per event, typed against the official union. Pure:
// ids come from the caller.

import type { TransportConfiguration } from '../../../voice/connection/transport.ts';
import type { RealtimeClientEvent } from './official.ts';

/** The key under which a response carries the `responseKey` of its request. */
export const RESPONSE_KEY = 'response_key';

export const WIRE_SAMPLE_RATE_HZ = 24_000;

/** The sound settings of a session, fixed when it begins. */
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
  /** Additional fields in the wire's form; the other settings take precedence. */
  readonly session?: Readonly<Record<string, unknown>>;
}

/** The first event of a connection: the whole configuration. */
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

/** Later changes: instructions and tools. The voice can no longer change. */
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

/** The detector reports and never acts: the session decides about answers and interruptions. */
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
  // Speech of the assistant cannot be sent back as sound: it is replayed as text.
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

/** `instructions` replace those of the session for this response: pass both, joined. */
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
      // The response reads the conversation, and adds nothing to it.
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

/** Makes the content of the input buffer a separate item. */
export function audioCommit(eventId: string) {
  return { type: 'input_audio_buffer.commit', event_id: eventId } satisfies RealtimeClientEvent;
}

/**
 * The frame of `input_audio_buffer.append` as text: base64 needs no escaping, so this avoids JSON.stringify
 * (7 times slower).
 */
export function audioAppendText(base64: string): string {
  return `{"type":"input_audio_buffer.append","audio":"${base64}"}`;
}
