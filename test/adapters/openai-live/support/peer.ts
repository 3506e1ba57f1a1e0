// The other end of the wire, in memory: it receives the client's events and sends the test's answers. The answers have
// the official types, so a test cannot send what the server could not.

import type { ClientEvent, ServerEvent, SessionResource } from 'openai/resources/live/live';
import type { ForkClientEvent } from 'openai/resources/live/forks/forks';
import type {
  WebSocketFactory,
  WebSocketLike,
  WebSocketOptions,
} from '../../../../src/adapters/socket/web-socket.ts';
import { encodePcm16Base64 } from '../../../../src/voice/audio/pcm16.ts';

type WithoutId<Event> = Event extends { event_id: string } ? Omit<Event, 'event_id'> : Event;
type Sent = ClientEvent | ForkClientEvent;
type Append = Extract<Sent, { content: string }>;

type Listener = (...args: never[]) => void;

/** A connection from the adapter, as the server sees it. */
export class Peer implements WebSocketLike {
  readonly url: string;
  readonly options: WebSocketOptions;
  readonly sent: Sent[] = [];
  bufferedAmount = 0;
  isClosed = false;
  closeCode: number | null = null;
  readonly #listeners = new Map<string, Listener[]>();
  #events = 0;
  /** The length of the output track, in milliseconds. */
  #trackMs = 0;

  constructor(url: string, options: WebSocketOptions) {
    this.url = url;
    this.options = options;
  }

  on(event: string, listener: Listener): void {
    this.#listeners.set(event, [...(this.#listeners.get(event) ?? []), listener]);
  }

  send(text: string, onFlushed?: (error?: Error) => void): void {
    this.sent.push(JSON.parse(text) as Sent);
    onFlushed?.();
  }

  ping(): void {}

  close(code: number): void {
    this.closeCode = code;
    this.closes(code);
  }

  terminate(): void {
    this.isClosed = true;
  }

  opens(): void {
    this.#emit('open');
  }

  closes(code: number, reason = ''): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#emit('close', code, reason);
  }

  fails(message: string): void {
    this.#emit('error', new Error(message));
    this.closes(1006);
  }

  says(event: WithoutId<ServerEvent>): void {
    this.#events += 1;
    this.saysText(JSON.stringify({ event_id: `server_${this.#events}`, ...event }));
  }

  saysText(text: string): void {
    this.#emit('message', text);
  }

  /** Begins the session. */
  starts(session: Partial<SessionResource> = {}): void {
    this.says({
      type: 'session.started',
      session: { id: 'live_1', expires_at: 0, model: 'gpt-live-1', status: 'active', ...session },
    });
  }

  /** Sends this much of the output track at the given level (0 is silence). */
  sounds(durationMs: number, level = 3000, sampleRateHz = 24_000): void {
    this.#trackMs += durationMs;
    const samples = new Int16Array((durationMs * sampleRateHz) / 1000).fill(level);
    this.says({ type: 'session.output_audio.delta', delta: encodePcm16Base64(samples) });
  }

  /** Sends words from the model, at the current position in the track. */
  speaks(delta: string, startMs = this.#trackMs): void {
    const at = { start_ms: startMs, end_ms: startMs + 200 };
    this.says({ type: 'session.output_transcript.delta', delta, ...at });
  }

  /** Sends words from the user. */
  hears(delta: string, startMs: number, endMs = startMs + 200): void {
    const at = { start_ms: startMs, end_ms: endMs };
    this.says({ type: 'session.input_transcript.delta', delta, ...at });
  }

  /** Speaks as the model, from the first audio to the pause after it. */
  replies(text: string, durationMs = 600): void {
    this.sounds(durationMs / 2);
    this.speaks(text);
    this.sounds(durationMs / 2);
    this.pauses();
  }

  /** Sends a pause that is long enough to end the speech. */
  pauses(durationMs = 800): void {
    for (let ms = 0; ms < durationMs; ms += 100) this.sounds(100, 0);
  }

  delegates(id: string, target: 'client' | 'responses' = 'client'): void {
    this.says({
      type: 'session.delegation.created',
      delegation: { id, type: 'delegation', target },
      offset_ms: this.#trackMs,
    });
  }

  refuses(error: { code: string; message: string; type?: string; client_event_id?: string }): void {
    this.says({ type: 'error', error: { type: 'invalid_request_error', ...error } });
  }

  /** Accepts every append that has not been answered yet. */
  takesIn(): void {
    for (const { type, event_id: id } of this.appends.slice(this.#taken)) {
      const at = { start_ms: this.#trackMs, end_ms: this.#trackMs };
      const answer = { ...at, ...(id && { client_event_id: id }) };
      if (type === 'session.thinking.append')
        this.says({ type: 'session.thinking.appended', ...answer });
      else if (type === 'session.commentary.append')
        this.says({ type: 'session.commentary.appended', ...answer });
      else this.says({ type: 'session.instructions.appended', ...answer });
    }
    this.#taken = this.appends.length;
  }
  #taken = 0;

  get appends(): readonly Append[] {
    return this.sent.filter((event): event is Append => 'content' in event);
  }

  /** Returns the appends in order, each as channel, delegation and text. */
  get told(): readonly (readonly [channel: string, delegationId: string | null, text: string])[] {
    return this.appends.map(
      ({ type, delegation_id: id, content }) => [type.split('.')[1] ?? '', id, content] as const,
    );
  }

  get audioFrames(): readonly Extract<Sent, { type: 'session.input_audio.append' }>[] {
    return this.sent.filter((event) => event.type === 'session.input_audio.append');
  }

  #emit(event: string, ...args: unknown[]): void {
    for (const listener of this.#listeners.get(event) ?? []) listener(...(args as never[]));
  }
}

/** Sockets whose other ends are in `peers`. */
export function memorySockets(): { readonly peers: Peer[]; readonly webSocket: WebSocketFactory } {
  const peers: Peer[] = [];
  return {
    peers,
    webSocket: (url, options) => {
      const peer = new Peer(url, options);
      peers.push(peer);
      return peer;
    },
  };
}
