// Watches a Realtime session's responses: records them for the test, and applies the faults that repeat a part of them.

import type { ServerEventBody } from '../../../adapters/local-voice/wire-events.ts';
import type { VoiceCause } from '../engine/control.ts';
import type { EnginePorts } from '../engine/engine.ts';
import type { ReplyRecord } from '../engine/reply-record.ts';

const BYTES_PER_MS = 48;

type EventOf<Type extends ServerEventBody['type']> = Extract<ServerEventBody, { type: Type }>;
type Delta = EventOf<
  | 'response.output_audio.delta'
  | 'response.output_audio_transcript.delta'
  | 'response.output_text.delta'
>;

interface Watched {
  readonly reply: ReplyRecord;
  readonly isOutOfBand: boolean;
  /** The last delta of each kind. */
  readonly deltas: Map<string, Delta>;
}

export type ResponseWatch = ReturnType<typeof responseWatch>;

export function responseWatch(ports: EnginePorts, say: (event: ServerEventBody) => void) {
  const responses = new Map<string, Watched>();
  /** Items that the model generated. */
  const generated = new Set<string>();

  function end({ response }: EventOf<'response.done'>): void {
    const watched = responses.get(response.id ?? '');
    if (watched === undefined) return;
    responses.delete(response.id ?? '');
    const { status } = response;
    const isPlain = status === 'cancelled' || status === 'failed';
    watched.reply.end(isPlain ? status : 'completed');
    if (status !== 'cancelled' || !ports.faults.deltasAfterCancel) return;
    for (const delta of watched.deltas.values()) say(delta);
  }

  return {
    generated,
    /** Tells whether a response writes to the conversation. */
    get isBusy(): boolean {
      return [...responses.values()].some(({ isOutOfBand }) => !isOutOfBand);
    },
    begin(
      { response }: EventOf<'response.created'>,
      own: ReplyRecord | null,
      cause: VoiceCause,
    ): void {
      const id = response.id ?? '';
      responses.set(id, {
        reply: own ?? ports.beginReply(id, cause),
        isOutOfBand: response.conversation_id === null,
        deltas: new Map(),
      });
    },
    /** Called right before an event is sent. */
    see(event: ServerEventBody): void {
      if (event.type === 'response.output_item.added') {
        generated.add(event.item.id ?? '');
        return;
      }
      if (
        event.type !== 'response.output_audio.delta' &&
        event.type !== 'response.output_audio_transcript.delta' &&
        event.type !== 'response.output_text.delta'
      ) {
        return;
      }
      const watched = responses.get(event.response_id);
      if (watched === undefined) return;
      watched.deltas.set(event.type, event);
      if (event.type === 'response.output_audio.delta') {
        watched.reply.audioMs += Buffer.byteLength(event.delta, 'base64') / BYTES_PER_MS;
      } else {
        watched.reply.text += event.delta;
      }
    },
    /** Called right after an event was sent. */
    after(event: ServerEventBody): void {
      const { faults } = ports;
      if (event.type === 'response.function_call_arguments.done' && faults.duplicateCalls) {
        say(event);
      } else if (
        event.type === 'response.output_item.done' &&
        event.item.type === 'function_call' &&
        faults.duplicateCalls
      ) {
        say(event);
      } else if (event.type === 'response.done') {
        end(event);
      }
    },
  };
}
