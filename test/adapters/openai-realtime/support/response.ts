// The events of one response, as the server sends them.

import { encodePcm16Base64 } from '../../../../src/voice/audio/pcm16.ts';
import type { ServerEventBody } from './fake-server.ts';

type EndStatus = 'completed' | 'cancelled' | 'failed' | 'incomplete';
type StatusDetails = Extract<
  ServerEventBody,
  { type: 'response.done' }
>['response']['status_details'];

export function responseEvents(
  id: string,
  options: { readonly responseKey?: string; readonly itemId?: string } = {},
) {
  const { responseKey, itemId = `${id}_item` } = options;
  const metadata = responseKey === undefined ? null : { response_key: responseKey };
  const part = { response_id: id, item_id: itemId, output_index: 0, content_index: 0 } as const;
  return {
    itemId,
    created: {
      type: 'response.created',
      response: { id, status: 'in_progress', metadata },
    } satisfies ServerEventBody,
    audio: (ms: number, mark = 7) =>
      ({
        type: 'response.output_audio.delta',
        ...part,
        delta: encodePcm16Base64(new Int16Array(ms * 24).fill(mark)),
      }) satisfies ServerEventBody,
    text: (delta: string) =>
      ({
        type: 'response.output_audio_transcript.delta',
        ...part,
        delta,
      }) satisfies ServerEventBody,
    textDone: (transcript: string) =>
      ({
        type: 'response.output_audio_transcript.done',
        ...part,
        transcript,
      }) satisfies ServerEventBody,
    callArguments: (callId: string, name: string, text: string) =>
      ({
        type: 'response.function_call_arguments.done',
        response_id: id,
        item_id: `${callId}_item`,
        output_index: 0,
        call_id: callId,
        name,
        arguments: text,
      }) satisfies ServerEventBody,
    callDone: (
      callId: string,
      name: string,
      text: string,
      status: 'completed' | 'incomplete' = 'completed',
    ) =>
      ({
        type: 'response.output_item.done',
        response_id: id,
        output_index: 0,
        item: { type: 'function_call', call_id: callId, name, arguments: text, status },
      }) satisfies ServerEventBody,
    done: (status: EndStatus = 'completed', details?: StatusDetails) =>
      ({
        type: 'response.done',
        response: { id, status, status_details: details, metadata, output: [] },
      }) satisfies ServerEventBody,
  };
}
