// One connection to the Realtime endpoint: socket, queue, deadlines, ending.
//
//   connecting ──open──▶ configuring ──session.updated──▶ ready ──▶ closing ──▶ closed
//       └──────────────────────┴── refused, timeout, lost ──────────────▲
//
// Owns: the socket, commands that wait for readiness, keep-alive, why it ended.
// Does not: what events mean (`translator.ts`), sound on its way up (`audio-uplink.ts`),
// reconnecting (the session: a connection ends once and for all).
//
// C1. Whatever goes wrong, from a bad address to a bad frame, arrives as an event; nothing throws.
// C2. `transport.closed` is the last event and comes once; then both streams complete.
// C3. The first thing on the wire is session.update, then what was sent before readiness, in order.
// C4. The memory that a slow wire can take is bounded; a wire that is too slow is given up.
// C5. The key is in the Authorization header and nowhere else.

import { Subject, type Observable } from 'rxjs';
import { OffstageError, messageOf } from '../../errors.ts';
import type { DroppedAudio } from '../../voice/audio/bounded-buffer.ts';
import type { AudioFrame } from '../../voice/audio-frame.ts';
import type {
  TransportCommand,
  TransportConfiguration,
  TransportConnection,
  TransportContext,
  TransportEvent,
} from '../../voice/transport.ts';
import { createAudioUplink, type AudioUplink } from './audio-uplink.ts';
import {
  classifyClose,
  classifyError,
  classifyHttp,
  classifyRefusedStart,
  type Ending,
} from './close-codes.ts';
import { createHeldStream } from './held-stream.ts';
import { createKeepAlive, type KeepAlive } from './keep-alive.ts';
import type { OpenaiRealtimeSettings } from './options.ts';
import { redact } from './redact.ts';
import { Translator, type ClientEvent } from './translator.ts';
import { readRefusal, type WebSocketLike } from './web-socket.ts';
import { WIRE_SAMPLE_RATE_HZ, parseServerEvent, type ServerEvent } from './wire/index.ts';

const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
/** Of commands that wait, here and in the socket. A long history to replay is well below. */
const MAX_QUEUED_BYTES = 16 * 1024 * 1024;
const CLOSE_TIMEOUT_MS = 1_000;
/** A peer that invents types shall not make us remember them all: the rest is counted as one. */
const MAX_UNKNOWN_TYPES = 64;
const OTHER_TYPES = '(others)';

/** What a connection met that it could not use, since `connect`. */
export interface ConnectionDiagnostics {
  /** Well-formed events by type that this version does not know. */
  readonly unknownEvents: Readonly<Record<string, number>>;
  /** Frames that were not JSON, or not what their type says. */
  readonly malformedEvents: number;
  /** Sound of the user that never reached the server. */
  readonly droppedAudio: DroppedAudio;
}

type Phase = 'connecting' | 'configuring' | 'ready' | 'closing' | 'closed';

export class OpenaiRealtimeConnection implements TransportConnection {
  readonly events: Observable<TransportEvent>;
  readonly audio: Observable<AudioFrame>;

  readonly #settings: OpenaiRealtimeSettings;
  readonly #context: TransportContext;
  readonly #events = createHeldStream<TransportEvent>();
  readonly #audio = new Subject<AudioFrame>();
  readonly #translator: Translator;
  readonly #uplink: AudioUplink;
  readonly #keepAlive: KeepAlive;
  readonly #start: ClientEvent;
  readonly #closed: Promise<void>;
  #resolveClosed: () => void = () => {};

  #phase: Phase = 'connecting';
  #socket: WebSocketLike | null = null;
  #apiKey = '';
  /** Client events that wait for readiness, as text (C3). */
  #queue: string[] = [];
  #queuedBytes = 0;
  #cancelDeadline: () => void = () => {};
  /** What the server said about its end before it closed. */
  #isExpired = false;
  readonly #unknownEvents = new Map<string, number>();
  #malformedEvents = 0;
  #reportedWrongRate = false;

  constructor(
    settings: OpenaiRealtimeSettings,
    configuration: TransportConfiguration,
    context: TransportContext,
  ) {
    this.#settings = settings;
    this.#context = context;
    this.events = this.#events.stream;
    this.audio = this.#audio.asObservable();
    this.#closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
    this.#uplink = createAudioUplink({
      maxBufferedMs: settings.maxBufferedAudioMs,
      write: (text) => this.#write(text),
      bufferedBytes: () => this.#socket?.bufferedAmount ?? 0,
      onCongestion: () =>
        this.#report(
          'AUDIO_DROPPED',
          'The wire is slower than speech: the oldest sound is dropped',
        ),
    });
    this.#translator = new Translator({
      configuration,
      emit: (event) => this.#events.next(event),
      emitAudio: (frame) => this.#audio.next(frame),
      toSessionMs: (serverMs) => this.#uplink.toSessionMs(serverMs),
      redact: (text) => redact(text, this.#apiKey),
    });
    const { keepAliveMs } = settings;
    this.#keepAlive = createKeepAlive({
      scheduler: context.environment.scheduler,
      intervalMs: keepAliveMs,
      ping: () => this.#socket?.ping(),
      onSilence: () => {
        const reason = `The server did not answer a ping within ${keepAliveMs} ms`;
        this.#finish({ code: null, reason, retryable: true });
      },
    });
    this.#start = this.#translator.start(settings);
    this.#open();
  }

  sendAudio(frame: AudioFrame): void {
    if (this.#isEnding) return;
    if (frame.sampleRateHz === WIRE_SAMPLE_RATE_HZ) {
      this.#uplink.push(frame);
      return;
    }
    if (this.#reportedWrongRate) return;
    this.#reportedWrongRate = true;
    this.#report(
      'WRONG_SAMPLE_RATE',
      `Expected sound at ${WIRE_SAMPLE_RATE_HZ} Hz, got ${frame.sampleRateHz} Hz: it is dropped`,
    );
  }

  send(command: TransportCommand): void {
    if (this.#isEnding) return;
    const event = this.#translator.toWire(command);
    if (event === null) return;
    const text = JSON.stringify(event);
    const isReady = this.#phase === 'ready';
    const waitingBytes = isReady ? (this.#socket?.bufferedAmount ?? 0) : this.#queuedBytes;
    if (waitingBytes + text.length > MAX_QUEUED_BYTES) {
      this.#finish({
        code: null,
        reason: `The wire is too slow: more than ${MAX_QUEUED_BYTES} bytes wait to be sent`,
        retryable: true,
      });
    } else if (isReady) {
      this.#write(text);
    } else {
      this.#queue.push(text);
      this.#queuedBytes += text.length;
    }
  }

  close(): Promise<void> {
    if (this.#isEnding) return this.#closed;
    const wasOpen = this.#phase !== 'connecting';
    this.#phase = 'closing';
    this.#stopTimers();
    if (wasOpen) {
      this.#socket?.close(1000);
      // The answer to the close frame may never come.
      this.#cancelDeadline = this.#context.environment.scheduler.schedule(
        () => this.#finish(closedByUs),
        CLOSE_TIMEOUT_MS,
      );
    } else {
      this.#finish(closedByUs);
    }
    return this.#closed;
  }

  get diagnostics(): ConnectionDiagnostics {
    return {
      unknownEvents: Object.fromEntries(this.#unknownEvents),
      malformedEvents: this.#malformedEvents,
      droppedAudio: this.#uplink.dropped,
    };
  }

  get #isEnding(): boolean {
    return this.#phase === 'closing' || this.#phase === 'closed';
  }

  #open(): void {
    const settings = this.#settings;
    const { connectTimeoutMs } = settings;
    this.#cancelDeadline = this.#context.environment.scheduler.schedule(() => {
      const missing =
        this.#phase === 'connecting' ? 'no connection' : 'no answer to session.update';
      this.#finish({
        code: null,
        reason: `Not ready after ${connectTimeoutMs} ms: ${missing}`,
        retryable: true,
      });
    }, connectTimeoutMs);

    let socket: WebSocketLike;
    try {
      this.#apiKey = settings.apiKey();
      socket = settings.webSocket(settings.url(), {
        headers: { ...settings.headers, Authorization: `Bearer ${this.#apiKey}` },
        maxPayload: MAX_MESSAGE_BYTES,
        // Base64 of sound does not compress; trying costs time on each frame.
        perMessageDeflate: false,
      });
    } catch (error) {
      this.#finish(classifyError(error));
      return;
    }
    this.#socket = socket;
    let lastError: Error | null = null;
    socket.on('open', () => {
      if (this.#phase !== 'connecting') return;
      this.#phase = 'configuring';
      this.#write(JSON.stringify(this.#start));
    });
    socket.on('message', (data) => this.#onMessage(data.toString()));
    socket.on('pong', () => this.#keepAlive.heard());
    socket.on('error', (error) => {
      lastError = error;
    });
    socket.on('unexpected-response', (request, response) => {
      void readRefusal(response).then((body) => {
        request.destroy();
        this.#finish(classifyHttp(response.statusCode ?? 0, body));
      });
    });
    socket.on('close', (code, reason) => this.#onClose(code, reason.toString(), lastError));
  }

  #onClose(code: number, reason: string, lastError: Error | null): void {
    if (this.#phase === 'closing') this.#finish(closedByUs);
    else if (this.#phase === 'connecting') this.#finish(classifyError(lastError ?? reason));
    else {
      const ending = classifyClose(code, reason || (lastError?.message ?? ''));
      this.#finish({ ...ending, retryable: ending.retryable || this.#isExpired });
    }
  }

  #onMessage(text: string): void {
    if (this.#isEnding) return;
    this.#keepAlive.heard();
    const parsed = parseServerEvent(text);
    switch (parsed.kind) {
      case 'ignored':
        return;
      case 'unknown':
        return this.#onUnknown(parsed.type, parsed.raw);
      case 'malformed':
        this.#malformedEvents += 1;
        return this.#report('MALFORMED_EVENT', parsed.message, parsed.raw);
      case 'read':
        try {
          this.#onEvent(parsed.event);
        } catch (error) {
          this.#malformedEvents += 1;
          const code = error instanceof OffstageError ? error.code : 'INTERNAL';
          this.#report(code, `${parsed.event.type}: ${messageOf(error)}`, parsed.event);
        }
    }
  }

  #onEvent(event: ServerEvent): void {
    if (event.type === 'session.updated') {
      if (this.#phase === 'configuring') this.#becomeReady();
      else this.#translator.configured();
      return;
    }
    this.#translator.fromWire(event);
    if (event.type !== 'error') return;
    if (event.error.code === 'session_expired') this.#isExpired = true;
    // Nothing else was said yet, so it can only be meant for session.update, event id or not.
    if (this.#phase === 'configuring') this.#finish(classifyRefusedStart(event.error));
  }

  #becomeReady(): void {
    this.#cancelDeadline();
    this.#phase = 'ready';
    const waiting = this.#queue;
    this.#queue = [];
    this.#queuedBytes = 0;
    for (const text of waiting) this.#write(text);
    this.#uplink.open();
    this.#keepAlive.start();
    this.#events.next({ type: 'transport.ready' });
  }

  #onUnknown(type: string, raw: unknown): void {
    const isListed = this.#unknownEvents.has(type) || this.#unknownEvents.size < MAX_UNKNOWN_TYPES;
    const key = isListed ? type : OTHER_TYPES;
    const count = (this.#unknownEvents.get(key) ?? 0) + 1;
    this.#unknownEvents.set(key, count);
    if (count > 1) return;
    this.#report('UNKNOWN_EVENT', `The server sent an event of the unknown type \`${type}\``, raw);
  }

  #report(code: string, message: string, raw: unknown = null): void {
    this.#events.next({
      type: 'transport.error',
      code,
      message: redact(message, this.#apiKey),
      responseKey: null,
      raw,
    });
  }

  #write(text: string): void {
    // An error of a single send needs no answer: the close that follows says what happened.
    this.#socket?.send(text, this.#onFlushed);
  }

  readonly #onFlushed = (): void => this.#uplink.pump();

  #stopTimers(): void {
    this.#cancelDeadline();
    this.#keepAlive.stop();
  }

  #finish(ending: Ending): void {
    if (this.#phase === 'closed') return;
    this.#phase = 'closed';
    this.#stopTimers();
    this.#queue = [];
    // Its listeners stay: a socket that is torn down early reports that as an error.
    this.#socket?.terminate();
    this.#events.next({
      type: 'transport.closed',
      ...ending,
      reason: redact(ending.reason, this.#apiKey),
    });
    this.#events.complete();
    this.#audio.complete();
    this.#resolveClosed();
  }
}

const closedByUs: Ending = { code: 1000, reason: 'Closed by the session', retryable: false };
