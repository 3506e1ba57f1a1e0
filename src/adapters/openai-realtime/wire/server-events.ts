// The server events of the GA Realtime wire, and the fields that are read.
//
// One table names every server event of the official union: either with a schema of the fields that are read,
// or with the reason why the event is not read. The compiler refuses the table when the official union grows,
// and a type test fails when a field that is read changes; at run time extra fields are accepted, missing
// ones are not.

import { z } from 'zod';
import { parseEvent, type EventOf, type ParsedEvent } from '../../socket/event-table.ts';
import type { RealtimeServerEvent } from './official.ts';

const usage = z
  .object({ input_tokens: z.number().nullish(), output_tokens: z.number().nullish() })
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
    // When the server ends the session; seconds since 1970.
    session: z.object({ expires_at: z.number().nullish() }).nullish(),
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
  // The end of an utterance that the client ended; for others the end was already reported.
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
    usage,
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
    // Other servers of this wire leave it out: then it comes with the item.
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

/** A server event with the fields that are read. */
export type ServerEvent = EventOf<typeof serverEventTable>;

/** Reads one text frame. Never throws. */
export function parseServerEvent(text: string): ParsedEvent<ServerEvent> {
  return parseEvent(serverEventTable, text);
}
