// One WebSocket connection to a voice model, for any protocol: socket, queue, deadlines, ending.
//
//   connecting ──open──▶ configuring ──server is ready──▶ ready ──▶ closing ──▶ closed
//       └──────────────────────┴── refused, timeout, lost ──────────────▲
//
// Owns:     the socket, commands that wait for readiness, the user's audio, keep-alive, and the reason for the end.
// Does not: interpret frames (the `Wire` does), or reconnect (the session does, because a connection ends only once).
//
// SOCKET-CONNECTION-1. Every failure, from a bad URL to a bad frame, is reported as an event. Nothing throws.
// SOCKET-CONNECTION-2. `transport.closed` is emitted exactly once, as the last event. Both streams then complete.
// SOCKET-CONNECTION-3. The first messages on the connection are those that start the session. The messages sent before
//     readiness follow, in order.
//   SOCKET-CONNECTION-4. The memory for a slow connection is limited, and a connection that is too slow is closed.
//   SOCKET-CONNECTION-5. The key is used only where the protocol requires it, and never appears in events, errors or
//                        reasons.
//
// AUDIO-UPLINK-1. Frames are sent in order. On overflow, the oldest frame is dropped and counted.
//   AUDIO-UPLINK-2. The amount of audio that is waiting here and in the socket is limited: `maxBufferedMs` plus about a
//       second.
//   AUDIO-UPLINK-3. Server times (milliseconds of received audio) are converted to session times (milliseconds of sent
//       audio), which include dropped audio.
//
// WIRE-TROUBLES-1. The number of remembered types is limited, because a peer might send any number of invented types.
// WIRE-TROUBLES-2. An unknown type is reported once.

import { Subject, type Observable } from 'rxjs';
import { OffstageError, messageOf } from '../../values/errors.ts';
import { type AudioFrame, frameDurationMs } from '../../voice/audio/audio-frame.ts';
import { type DroppedAudio, createBoundedBuffer } from '../../voice/audio/bounded-buffer.ts';
import type {
  Transport,
  TransportCommand,
  TransportConfiguration,
  TransportConnection,
  TransportContext,
  TransportEvent,
} from '../../voice/connection/transport.ts';
import { classifyClose, classifyError, classifyHttp, type Ending } from './close-codes.ts';
import { createHeldStream } from './held-stream.ts';
import { createKeepAlive, type KeepAlive } from './keep-alive.ts';
import { redact } from './redact.ts';
import { readRefusal, type WebSocketFactory, type WebSocketLike } from './web-socket.ts';
import type { Wire, WireDiagnostics, WireConnection } from './wire.ts';

const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
/**
 * The maximum number of pending commands, here and in the socket. Replaying a long history needs far fewer commands
 * than this.
 */
const MAX_QUEUED_BYTES = 16 * 1024 * 1024;
const CLOSE_TIMEOUT_MS = 1_000;
/** The length of a text that never congests an otherwise empty socket (`CONGESTED_BYTES`), in any script. */
const UNNOTICED_LENGTH = 16_000;

/** The connection settings, for any protocol. */
export interface DialSettings {
  readonly webSocket: WebSocketFactory;
  readonly inputSampleRateHz: number;
  /** The amount of user audio to store while the connection is not ready or is too slow. */
  readonly maxBufferedAudioMs: number;
  /** The maximum time from `connect` to `transport.ready`. */
  readonly connectTimeoutMs: number;
  /** The interval between pings; null disables pings. */
  readonly keepAliveMs: number | null;
  /** Returns the current URL and its secret. If it throws, the connection ends. */
  readonly address: () => Address;
}

/** A URL and its secret. */
export interface Address {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The secret, which must not appear elsewhere. */
  readonly secret: string;
}

/** The messages since `connect` that a connection could not interpret. */
export interface ConnectionDiagnostics extends WireDiagnostics {
  /** User audio that never reached the server. */
  readonly droppedAudio: DroppedAudio;
}

/** A transport whose connections also report the server messages that they could not interpret. */
export interface SocketTransport extends Transport {
  connect(
    configuration: TransportConfiguration,
    context: TransportContext,
  ): TransportConnection & { readonly diagnostics: ConnectionDiagnostics };
}

type Phase = 'connecting' | 'configuring' | 'ready' | 'closing' | 'closed';

export class SocketConnection implements TransportConnection {
  readonly events: Observable<TransportEvent>;
  readonly audio: Observable<AudioFrame>;

  readonly #settings: DialSettings;
  readonly #context: TransportContext;
  readonly #events = createHeldStream<TransportEvent>();
  readonly #audio = new Subject<AudioFrame>();
  readonly #troubles = new WireTroubles();
  readonly #wire: Wire;
  readonly #uplink: AudioUplink;
  readonly #keepAlive: KeepAlive;
  readonly #closed: Promise<void>;
  #resolveClosed: () => void = () => {};

  #phase: Phase = 'connecting';
  #socket: WebSocketLike | null = null;
  #secret = '';
  /** Commands that are waiting for readiness (SOCKET-CONNECTION-3). */
  #queue: string[] = [];
  #queuedBytes = 0;
  #cancelDeadline: () => void = () => {};
  #reportedWrongRate = false;

  constructor(
    settings: DialSettings,
    context: TransportContext,
    makeWire: (ports: WireConnection) => Wire,
  ) {
    this.#settings = settings;
    this.#context = context;
    this.events = this.#events.stream;
    this.audio = this.#audio.asObservable();
    this.#closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
    this.#wire = makeWire(this.#ports());
    this.#uplink = createAudioUplink({
      maxBufferedMs: settings.maxBufferedAudioMs,
      encode: (frame) => this.#wire.writeAudio(frame),
      write: (text) => this.#write(text),
      bufferedBytes: () => this.#socket?.bufferedAmount ?? 0,
      onCongestion: () =>
        this.#report(
          'AUDIO_DROPPED',
          'The wire is slower than speech: the oldest sound is dropped',
        ),
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
    this.#open();
  }

  sendAudio(frame: AudioFrame): void {
    if (this.#isEnding) return;
    const { inputSampleRateHz } = this.#settings;
    if (frame.sampleRateHz === inputSampleRateHz) {
      this.#uplink.push(frame);
      return;
    }
    if (this.#reportedWrongRate) return;
    this.#reportedWrongRate = true;
    this.#report(
      'WRONG_SAMPLE_RATE',
      `Expected sound at ${inputSampleRateHz} Hz, got ${frame.sampleRateHz} Hz: it is dropped`,
    );
  }

  send(command: TransportCommand): void {
    if (this.#isEnding) return;
    for (const text of this.#wire.write(command)) this.#say(text);
  }

  close(): Promise<void> {
    if (this.#isEnding) return this.#closed;
    const wasOpen = this.#phase !== 'connecting';
    const farewell = this.#phase === 'ready' ? (this.#wire.farewell?.() ?? []) : [];
    this.#phase = 'closing';
    this.#stopTimers();
    for (const text of farewell) this.#write(text);
    if (!wasOpen) this.#finish(closedByUs);
    else if (farewell.length === 0) this.#closeSocket();
    else this.#waitToClose(() => this.#closeSocket());
    return this.#closed;
  }

  get diagnostics(): ConnectionDiagnostics {
    return { ...this.#troubles.diagnostics, droppedAudio: this.#uplink.dropped };
  }

  get #isEnding(): boolean {
    return this.#phase === 'closing' || this.#phase === 'closed';
  }

  #ports(): WireConnection {
    return {
      environment: this.#context.environment,
      emit: (event) => {
        if (!this.#isEnding) this.#events.next(event);
      },
      emitAudio: (frame) => {
        if (!this.#isEnding) this.#audio.next(frame);
      },
      ready: (resumed, told) => this.#becomeReady(resumed, told),
      send: (text) => {
        if (!this.#isEnding) this.#say(text);
      },
      finish: (ending) => this.#finish(ending),
      report: (code, message, raw) => {
        if (!this.#isEnding) this.#report(code, message, raw);
      },
      malformed: (message, raw, code = 'MALFORMED_EVENT') => this.#malformed(code, message, raw),
      unknown: (type, raw) => {
        if (!this.#troubles.unknown(type)) return;
        const message = `The server sent an event of the unknown type \`${type}\``;
        this.#report('UNKNOWN_EVENT', message, raw);
      },
      toSessionMs: (serverMs) => this.#uplink.toSessionMs(serverMs),
      redact: (text) => redact(text, this.#secret),
    };
  }

  #open(): void {
    const settings = this.#settings;
    const { connectTimeoutMs } = settings;
    this.#cancelDeadline = this.#context.environment.scheduler.schedule(() => {
      const missing =
        this.#phase === 'connecting' ? 'no connection' : 'no answer to the configuration';
      this.#finish({
        code: null,
        reason: `Not ready after ${connectTimeoutMs} ms: ${missing}`,
        retryable: true,
      });
    }, connectTimeoutMs);

    let socket: WebSocketLike;
    try {
      const { url, headers, secret } = settings.address();
      this.#secret = secret;
      socket = settings.webSocket(url, {
        headers,
        maxPayload: MAX_MESSAGE_BYTES,
        // Base64 audio does not compress, and trying to compress it takes time for each frame.
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
      for (const text of this.#wire.start()) this.#write(text);
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
      this.#finish(this.#wire.closed?.(ending) ?? ending);
    }
  }

  #onMessage(text: string): void {
    if (this.#isEnding) return;
    this.#keepAlive.heard();
    try {
      this.#wire.read(text);
    } catch (error) {
      const code = error instanceof OffstageError ? error.code : 'INTERNAL';
      this.#malformed(code, messageOf(error), text);
    }
  }

  #becomeReady(resumed = false, told = false): void {
    if (this.#phase !== 'configuring') return;
    this.#cancelDeadline();
    this.#phase = 'ready';
    const waiting = this.#queue;
    this.#queue = [];
    this.#queuedBytes = 0;
    for (const text of waiting) this.#write(text);
    this.#uplink.open();
    this.#keepAlive.start();
    this.#events.next({
      type: 'transport.ready',
      ...(resumed && { resumed }),
      ...(told && { told }),
    });
  }

  /** SOCKET-CONNECTION-3, SOCKET-CONNECTION-4 */
  #say(text: string): void {
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

  #malformed(code: string, message: string, raw: unknown): void {
    this.#troubles.malformed();
    this.#report(code, message, raw);
  }

  #report(code: string, message: string, raw: unknown = null): void {
    this.#events.next({
      type: 'transport.error',
      code,
      message: redact(message, this.#secret),
      responseKey: null,
      raw,
    });
  }

  #write(text: string): void {
    const socket = this.#socket;
    if (!socket) return;
    // Nearly all audio is sent immediately, so a callback for each frame would cost more than it saves.
    const isUnnoticed = socket.bufferedAmount === 0 && text.length <= UNNOTICED_LENGTH;
    // A failed send needs no handling, because the close event that follows reports the cause.
    if (isUnnoticed) socket.send(text);
    else socket.send(text, this.#onFlushed);
  }

  readonly #onFlushed = (): void => this.#uplink.pump();

  #stopTimers(): void {
    this.#cancelDeadline();
    this.#keepAlive.stop();
    this.#wire.stop?.();
  }

  #closeSocket(): void {
    this.#socket?.close(1000);
    // The server may never respond to the close frame.
    this.#waitToClose(() => this.#finish(closedByUs));
  }

  #waitToClose(next: () => void): void {
    const { scheduler } = this.#context.environment;
    this.#cancelDeadline = scheduler.schedule(next, CLOSE_TIMEOUT_MS);
  }

  #finish(ending: Ending): void {
    if (this.#phase === 'closed') return;
    this.#phase = 'closed';
    this.#stopTimers();
    this.#queue = [];
    // The listeners remain, because a socket that is terminated early reports an error.
    this.#socket?.terminate();
    this.#events.next({
      type: 'transport.closed',
      ...ending,
      reason: redact(ending.reason, this.#secret),
    });
    this.#events.complete();
    this.#audio.complete();
    this.#resolveClosed();
  }
}

const closedByUs: Ending = { code: 1000, reason: 'Closed by the session', retryable: false };

/**
 * The number of bytes in the socket above which no more audio is added. This corresponds to one second of audio, in
 * base64.
 */
const CONGESTED_BYTES = 64_000;
const MAX_GAPS = 64;

interface AudioUplinkOptions {
  readonly maxBufferedMs: number;
  /** Encodes an audio frame for the protocol. */
  readonly encode: (frame: AudioFrame) => string;
  /** Sends one text frame. Call `pump` when bytes have left the socket. */
  readonly write: (text: string) => void;
  readonly bufferedBytes: () => number;
  /** Called when audio starts to be dropped because the open connection is slower than the user's speech. */
  readonly onCongestion: () => void;
}

interface AudioUplink {
  push(frame: AudioFrame): void;
  /** Starts sending, because the connection is now ready. */
  open(): void;
  /** Sends the pending frames for as long as the socket accepts them. */
  pump(): void;
  /** AUDIO-UPLINK-3 */
  toSessionMs(serverMs: number): number;
  readonly dropped: DroppedAudio;
}

/**
 * Sends the user's audio to the server. It encodes the audio and stores a limited amount while the connection is closed
 * or congested. It also maps the audio that the server received to the audio that the session sent.
 */
export function createAudioUplink(options: AudioUplinkOptions): AudioUplink {
  const { maxBufferedMs, encode, write, bufferedBytes, onCongestion } = options;
  let isOpen = false;
  let isDropping = false;
  let writtenMs = 0;
  /** Audio that was never sent: `durationMs` of it before the server's time `atMs`. */
  const gaps: { readonly atMs: number; durationMs: number }[] = [];

  const noteGap = (durationMs: number): void => {
    const last = gaps.at(-1);
    if (last?.atMs === writtenMs) last.durationMs += durationMs;
    else gaps.push({ atMs: writtenMs, durationMs });
    const [first, second] = gaps;
    if (gaps.length > MAX_GAPS && first !== undefined && second !== undefined) {
      gaps.splice(0, 2, { atMs: second.atMs, durationMs: first.durationMs + second.durationMs });
    }
  };

  const waiting = createBoundedBuffer({
    maxMs: maxBufferedMs,
    keep: 'newest',
    onDrop: (dropped) => {
      // The server would have received the oldest pending frame next.
      noteGap(dropped.durationMs);
      if (isOpen && !isDropping) {
        isDropping = true;
        onCongestion();
      }
    },
  });

  const canWrite = (): boolean => isOpen && bufferedBytes() < CONGESTED_BYTES;
  const writeNow = (frame: AudioFrame): void => {
    writtenMs += frameDurationMs(frame);
    write(encode(frame));
  };

  const pump = (): void => {
    while (canWrite()) {
      const frame = waiting.shift();
      if (frame === undefined) {
        isDropping = false;
        return;
      }
      writeNow(frame);
    }
  };

  return {
    push(frame) {
      if (frame.samples.length === 0) return;
      // Usually no frame is pending, and this frame is sent immediately.
      if (waiting.size === 0 && canWrite() && frameDurationMs(frame) <= maxBufferedMs) {
        isDropping = false;
        writeNow(frame);
        return;
      }
      waiting.push(frame);
      pump();
    },
    open() {
      isOpen = true;
      pump();
    },
    pump,
    toSessionMs(serverMs) {
      let missingMs = 0;
      for (const gap of gaps) if (gap.atMs <= serverMs) missingMs += gap.durationMs;
      return serverMs + missingMs;
    },
    get dropped() {
      return waiting.dropped;
    },
  };
}

const MAX_UNKNOWN_TYPES = 64;
const OTHER_TYPES = '(others)';

/** Counts the messages that a connection could not interpret, so that protocol changes become visible. */
export class WireTroubles {
  readonly #unknown = new Map<string, number>();
  #malformed = 0;

  get diagnostics(): WireDiagnostics {
    return {
      unknownEvents: Object.fromEntries(this.#unknown),
      malformedEvents: this.#malformed,
    };
  }

  malformed(): void {
    this.#malformed += 1;
  }

  /** @returns whether the message is the first of its type */
  unknown(type: string): boolean {
    const isListed = this.#unknown.has(type) || this.#unknown.size < MAX_UNKNOWN_TYPES;
    const key = isListed ? type : OTHER_TYPES;
    const count = (this.#unknown.get(key) ?? 0) + 1;
    this.#unknown.set(key, count);
    return count === 1;
  }
}
