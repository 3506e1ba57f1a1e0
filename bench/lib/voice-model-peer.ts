// The voice model of a measured session: the part of OpenAI's Realtime wire that a conversation needs, with as little
// work as possible. The fake server of `offstage/testing` checks each frame like the real server, which would cost
// more than the measured code.

import type { RealtimeServerEvent } from 'openai/resources/realtime/realtime';
import type { RawData, WebSocket } from 'ws';
import { FRAME_MS, textOf, type TimedSound } from './voice-frames.ts';

const APPEND = '{"type":"input_audio_buffer.append","audio":"';
/** Base64 of the number of a frame. */
const NUMBER_CHARS = 8;
/** The duration of a delta; deltas arrive at twice the playing speed, as from real models. */
const DELTA_MS = 200;
const TICKS_PER_DELTA = 5;

/** The model's reply to a request. */
export interface Answer {
  /** In whole deltas of 200 ms. */
  readonly soundMs: number;
  /** The tool that the model then calls. */
  readonly calls?: string;
}

export interface ModelPeerPorts {
  /** The session is configured. */
  configured(): void;
  /** Returns the next reply; `metadata` comes from the request. */
  asked(metadata: Record<string, string>): Answer;
}

/** The fields of a client's frame that the model reads. */
interface ClientFrame {
  readonly type: string;
  readonly response?: { readonly metadata?: Record<string, string> };
}

interface Response {
  readonly id: string;
  readonly itemId: string;
  readonly metadata: Record<string, string>;
  readonly calls: string | undefined;
  leftMs: number;
  ticks: number;
}

/** The wire requires `event_id`, but no party here reads it. */
type EventBody = RealtimeServerEvent extends infer Event
  ? Event extends { event_id: string }
    ? Omit<Event, 'event_id'>
    : never
  : never;

export class ModelPeer {
  readonly #socket: WebSocket;
  readonly #up: TimedSound;
  readonly #down: TimedSound;
  readonly #ports: ModelPeerPorts;
  #response: Response | null = null;
  #utteranceId = '';
  #heardMs = 0;
  #ids = 0;

  constructor(socket: WebSocket, up: TimedSound, down: TimedSound, ports: ModelPeerPorts) {
    this.#socket = socket;
    this.#up = up;
    this.#down = down;
    this.#ports = ports;
    socket.on('message', (data) => this.#received(data));
  }

  get isSpeaking(): boolean {
    return this.#response !== null;
  }

  userBegins(): void {
    this.#utteranceId = this.#newId('item');
    this.#say({
      type: 'input_audio_buffer.speech_started',
      item_id: this.#utteranceId,
      audio_start_ms: this.#heardMs,
    });
  }

  /** Reports that the user has ended, with their words. */
  userEnds(transcript: string): void {
    const item_id = this.#utteranceId;
    this.#say({
      type: 'input_audio_buffer.speech_stopped',
      item_id,
      audio_end_ms: this.#heardMs,
    });
    this.#say({ type: 'input_audio_buffer.committed', item_id, previous_item_id: null });
    this.#say({
      type: 'conversation.item.input_audio_transcription.completed',
      item_id,
      content_index: 0,
      transcript,
      usage: { type: 'duration', seconds: 1 },
    });
  }

  /** Advances by 20 ms. */
  tick(): void {
    const response = this.#response;
    if (!response) return;
    response.ticks += 1;
    if (response.ticks % TICKS_PER_DELTA !== 0) return;
    if (response.leftMs > 0) this.#speak(response);
    else this.#complete(response);
  }

  #received(data: RawData): void {
    const bytes = data as Buffer;
    if (bytes.toString('latin1', 0, APPEND.length) === APPEND) {
      const number = bytes.toString('latin1', APPEND.length, APPEND.length + NUMBER_CHARS);
      this.#up.arrived(Buffer.from(number, 'base64'));
      this.#heardMs += FRAME_MS;
      return;
    }
    const frame = JSON.parse(textOf(data)) as ClientFrame;
    if (frame.type === 'session.update') {
      this.#say({ type: 'session.updated', session: { type: 'realtime' } });
      this.#ports.configured();
    } else if (frame.type === 'response.create') this.#begin(frame.response?.metadata ?? {});
    else if (frame.type === 'response.cancel') this.#cancel();
  }

  #begin(metadata: Record<string, string>): void {
    if (this.#response) throw new Error('Two responses were asked for at once');
    const { soundMs, calls } = this.#ports.asked(metadata);
    const [id, itemId] = [this.#newId('resp'), this.#newId('item')];
    const response = { id, itemId, metadata, calls, leftMs: soundMs, ticks: 0 };
    this.#response = response;
    this.#say({
      type: 'response.created',
      response: { id, metadata, status: 'in_progress' },
    });
    this.#say({
      type: 'response.output_item.added',
      response_id: id,
      output_index: 0,
      item: { id: itemId, type: 'message', role: 'assistant', content: [] },
    });
    this.#speak(response);
  }

  #speak(response: Response): void {
    const { id: response_id, itemId: item_id } = response;
    const durationMs = Math.min(DELTA_MS, response.leftMs);
    response.leftMs -= durationMs;
    const place = { response_id, item_id, output_index: 0, content_index: 0 };
    this.#say({ type: 'response.output_audio_transcript.delta', ...place, delta: 'Well, ' });
    this.#say({
      type: 'response.output_audio.delta',
      ...place,
      delta: this.#down.next(durationMs).toString('base64'),
    });
  }

  #complete(response: Response): void {
    const { id: response_id, itemId: item_id, calls } = response;
    const place = { response_id, item_id, output_index: 0, content_index: 0 };
    this.#say({ type: 'response.output_audio.done', ...place });
    const transcript = 'Well, that is what I know.';
    this.#say({ type: 'response.output_audio_transcript.done', ...place, transcript });
    if (calls !== undefined) this.#call(response_id, calls);
    this.#end(response, 'completed');
  }

  #call(response_id: string, name: string): void {
    const [call_id, id] = [this.#newId('call'), this.#newId('item')];
    const json = '{"what":"look something up"}';
    const call = { response_id, output_index: 1, item_id: id, call_id, name, arguments: json };
    this.#say({ type: 'response.function_call_arguments.done', ...call });
    this.#say({
      type: 'response.output_item.done',
      response_id,
      output_index: 1,
      item: { type: 'function_call', id, call_id, name, arguments: json, status: 'completed' },
    });
  }

  #cancel(): void {
    if (this.#response) this.#end(this.#response, 'cancelled');
  }

  #end({ id, metadata }: Response, status: 'completed' | 'cancelled'): void {
    this.#response = null;
    const usage = { input_tokens: 100, output_tokens: 50, total_tokens: 150 };
    this.#say({ type: 'response.done', response: { id, metadata, status, usage } });
  }

  #newId(prefix: string): string {
    this.#ids += 1;
    return `${prefix}_${this.#ids}`;
  }

  #say(event: EventBody): void {
    this.#ids += 1;
    this.#socket.send(JSON.stringify({ event_id: `event_${this.#ids}`, ...event }));
  }
}
