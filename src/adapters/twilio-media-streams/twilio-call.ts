// One telephone call: a Twilio Media Stream on one side, a session on the other.
//
//   socket opens ─▶ connected ─▶ start ─▶ (caller's audio is kept) ─▶ connect(session)
//                                                                          │
//      stop, socket closed, silence, hangUp(), session ended ─▶ detached, ended
//
// The messages are JSON in text frames. Sources (November 2026): for the messages,
// twilio.com/docs/voice/media-streams/websocket-messages; for Twilio's refusal of binary frames and of messages other
// than `media`, `mark` and `clear`: Twilio's errors 31924 and 31950.
//
// Owns:     the socket, and whether a caller is connected.
// Does not: create or close the session, interpret keys (`keypad.ts`), or verify the socket's peer (`twilio-calls.ts`).
//
// Invariants
//   TWILIO-CALL-1. A call ends exactly once, no matter which side ends it. The session is then detached, and no further
//       messages are sent.
//   TWILIO-CALL-2. No message from the peer causes an exception, because every message is validated before it is used.
//       Messages from other streams are ignored. Too many invalid messages end the call.
//   TWILIO-CALL-3. The caller's audio reaches the session in order, starting with the first frame that was stored.
//   TWILIO-CALL-4. If a method of the socket throws or returns a promise that rejects, only this call can end as a
//       result.
//   OUTGOING-SOUND-1. Audio is reported as played only if its mark has come back and the audio was not cleared before.
//       The reported duration increases in steps of at most `CHUNK_MS`.
//   OUTGOING-SOUND-2. A mark that comes back after a clear does not confirm playback: Twilio also returns the marks of
//       audio that it has dropped. Audio that was played in the meantime counts as not heard.
//   OUTGOING-SOUND-3. Twilio holds at most `maxAheadMs` of audio (plus one chunk). The pace follows the marks that come
//                     back, not a clock.
//   OUTGOING-SOUND-4. Audio is sent in order and without gaps. If audio does not fit into the queue, the end of the
//       audio is dropped. Dropped audio is never reported as played.

import type { Subscription } from 'rxjs';
import { z } from 'zod';
import { propertiesOf } from '../../values/json.ts';
import { check } from '../../values/checks.ts';
import {
  ConfigurationError,
  ProtocolError,
  ProviderError,
  handleRejection,
} from '../../values/errors.ts';
import type { AudioFrame } from '../../voice/audio/audio-frame.ts';
import { createBoundedBuffer } from '../../voice/audio/bounded-buffer.ts';
import { decodeMuLaw, encodeMuLaw } from '../../voice/audio/mu-law.ts';
import { createResampler, type Resampler } from '../../voice/audio/resampler.ts';
import { createKeepAlive } from '../socket/keep-alive.ts';
import { Keypad } from './keypad.ts';
import {
  checkCallOptions,
  type CallSession,
  type CheckedCallOptions,
  type TwilioCallOptions,
  type TwilioSocket,
} from './options.ts';

/**
 * The reason why a call has ended. `stopped`: Twilio reported the end because the caller hung up. `closed`: the socket
 * was closed. `lost`: no more audio arrived. `refused`: too many messages were invalid. `hung_up`: the app hung up, or
 * the session ended.
 */
export type CallEnd = 'stopped' | 'closed' | 'lost' | 'refused' | 'hung_up';

/** A phone call from Twilio whose caller can be connected to a session. */
export interface TwilioCall {
  /** The call id. */
  readonly callSid: string;
  /** The media stream's id. */
  readonly streamSid: string;
  /** The Twilio account's id. */
  readonly accountSid: string;
  /** The parameters that were passed to `streamTwiml`. */
  readonly customParameters: Readonly<Record<string, string>>;
  /** Resolves when the call has ended. Never rejects. */
  readonly ended: Promise<CallEnd>;
  /**
   * Connects the caller to this session. A client is attached until the call ends. When the call ends, the session
   * stays open, because it may have work to finish.
   * @throws {ConfigurationError} `ALREADY_CONNECTED`
   */
  connect(session: CallSession): void;
  /** Ends the stream. Twilio continues with the TwiML after `<Connect>`, or hangs up if there is none. */
  hangUp(): void;
}

const method = z.custom((value) => typeof value === 'function', 'expected a method');
const socketSchema = z.object({ on: method, send: method, close: method });

/**
 * Accepts a call on a socket that a WebSocket server has just accepted. Resolves when Twilio has identified the call.
 * Before this, verify the request with `isTwilioRequest`. If Twilio does not identify the call, rejects and closes the
 * socket. The error is a `ProtocolError` if another message arrives, and a `ProviderError` (`CALL_LOST`,
 * `START_TIMEOUT`) if no message arrives.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
export function acceptTwilioCall(
  socket: TwilioSocket,
  options: TwilioCallOptions,
): Promise<TwilioCall> {
  check('acceptTwilioCall(socket, options)', socketSchema, socket);
  const checked = checkCallOptions(options);
  return new Promise((resolve, reject) => {
    beginCall(socket, checked, resolve, reject);
  });
}

const closeCodes = { normal: 1000, refused: 1008 } as const;
/**
 * The maximum number of invalid messages per call. Twilio sends no invalid messages, so only other peers exceed this
 * limit.
 */
const MAX_MISTAKES = 10;

function beginCall(
  socket: TwilioSocket,
  options: CheckedCallOptions,
  began: (call: TwilioCall) => void,
  failed: (error: Error) => void,
): void {
  const ending = Promise.withResolvers<CallEnd>();
  const ended = ending.promise;
  let cancelStart: () => void = () => {};
  let start: StartMessage | null = null;
  let connected: CallSession | null = null;
  let subscriptions: Subscription[] = [];
  let leave: () => void = () => {};
  let isOver = false;
  let mistakes = 0;
  const callSid = (): string => start?.start.callSid ?? '';
  const streamSid = (): string => start?.streamSid ?? '';
  const hangUp = (): void => end('hung_up', closeCodes.normal);
  const attempt = (promise: Promise<unknown> | undefined): void =>
    void promise?.catch(options.onError);
  const { scheduler } = options.environment;
  const kept = createBoundedBuffer({ maxMs: options.keptAudioMs, keep: 'newest' });
  const sound = new OutgoingSound(
    {
      send: (message) => send(JSON.stringify({ ...message, streamSid: streamSid() })),
      played: (item) => connected?.playout.next(item),
      overflowed: () => {
        const message = `More than ${options.maxQueuedMs} ms of speech waits for Twilio: its end is cut off`;
        options.onError(new ProviderError('QUEUE_FULL', message));
      },
    },
    options,
  );
  const keypad = new Keypad(
    {
      questions: () => connected?.store.getSnapshot().context.questions ?? [],
      answer: (requestId, optionId) => attempt(connected?.answer(requestId, { optionId })),
      typed: (text) => attempt(connected?.sendText(text)),
    },
    scheduler,
    options.keyPauseMs,
  );
  const keepAlive = createKeepAlive({
    scheduler,
    intervalMs: options.silenceTimeoutMs,
    // Twilio sends audio continuously, so that pings are unnecessary.
    ping: () => {},
    onSilence: () => end('lost', closeCodes.normal),
  });

  function listen(): void {
    const { environment, startTimeoutMs, onError } = options;
    cancelStart = environment.scheduler.schedule(() => {
      const message = `Expected the start of a call within ${startTimeoutMs} ms`;
      refuse(new ProviderError('START_TIMEOUT', message));
    }, startTimeoutMs);
    try {
      for (const listening of [
        socket.on('message', (data, isBinary) => received(data, isBinary)),
        socket.on('close', () => closed()),
        // A socket closes after an error, such as a message that is too large.
        socket.on('error', onError),
      ])
        handleRejection(listening, (cause) => cannotListen(cause));
    } catch (cause) {
      cannotListen(cause);
    }
  }

  function cannotListen(cause: unknown): void {
    const message = 'The socket takes no listener';
    if (!isOver) refuse(new ProviderError('CALL_LOST', message, { cause }));
  }

  function send(text: string): void {
    try {
      const sent: unknown = socket.send(text);
      handleRejection(sent, options.onError);
    } catch (error) {
      options.onError(error);
    }
  }

  function received(data: { toString(): string }, isBinary: boolean): void {
    if (isOver) return;
    keepAlive.heard();
    try {
      const text = data.toString();
      const { maxMessageLength } = options;
      if (isBinary || text.length > maxMessageLength) {
        const got = isBinary ? 'bytes' : `${text.length} characters`;
        const wanted = `Expected text of at most ${maxMessageLength} characters, got ${got}`;
        throw new ProtocolError('INVALID_MESSAGE', wanted);
      }
      const message = readMessage(text);
      if (message) take(message);
    } catch (error) {
      mistaken(error as Error);
    }
  }

  function take(message: IncomingMessage): void {
    if (message.event === 'connected') return;
    if (message.event === 'start' && !start) {
      start = message;
      cancelStart();
      keepAlive.start();
      began(self);
      return;
    }
    if (message.event === 'start' || message.streamSid !== start?.streamSid) {
      const of = `${message.event} of stream ${message.streamSid}`;
      const wanted = start ? `a message of stream ${streamSid()}` : 'start';
      throw new ProtocolError('INVALID_MESSAGE', `Expected ${wanted}, got ${of}`, { raw: message });
    }
    switch (message.event) {
      case 'media':
        if (message.media.track === 'inbound') heard(message.media.payload);
        break;
      case 'mark':
        sound.marked(message.mark.name);
        break;
      case 'dtmf':
        if (connected) keypad.press(message.dtmf.digit);
        break;
      case 'stop':
        end('stopped', closeCodes.normal);
        break;
    }
  }

  function heard(payload: string): void {
    const samples = decodeMuLaw(Buffer.from(payload, 'base64'));
    const frame: AudioFrame = { samples, sampleRateHz: PHONE_RATE_HZ };
    if (connected) connected.audioIn.next(frame);
    else kept.push(frame);
  }

  /** Clears Twilio's audio. The session is still stopping, so it can still receive the played duration. */
  function clear(session: CallSession): void {
    const cut = sound.clear();
    if (cut) options.environment.scheduler.yieldThen(() => session.playout.next(cut));
  }

  function mistaken(error: Error): void {
    if (!start) {
      refuse(error);
      return;
    }
    options.onError(error);
    mistakes += 1;
    if (mistakes > MAX_MISTAKES) end('refused', closeCodes.refused);
  }

  /** Refuses a socket that has no call. */
  function refuse(error: Error): void {
    failed(error);
    end('refused', closeCodes.refused);
  }

  function closed(): void {
    if (!start)
      failed(new ProviderError('CALL_LOST', 'The socket was closed before the call began'));
    end('closed', null);
  }

  function end(reason: CallEnd, closeCode: number | null): void {
    if (isOver) return;
    isOver = true;
    cancelStart();
    keepAlive.stop();
    keypad.stop();
    for (const subscription of subscriptions) subscription.unsubscribe();
    try {
      const closing: unknown = closeCode === null ? undefined : socket.close(closeCode, reason);
      handleRejection(closing, options.onError);
    } catch (error) {
      // The app's socket may throw, but the call has ended in any case.
      options.onError(error);
    }
    leave();
    ending.resolve(reason);
  }

  const self: TwilioCall = {
    ended,
    get callSid() {
      return callSid();
    },
    get streamSid() {
      return streamSid();
    },
    get accountSid() {
      return start?.start.accountSid ?? '';
    },
    get customParameters() {
      return start?.start.customParameters ?? {};
    },
    connect(session) {
      if (connected)
        throw new ConfigurationError(
          'ALREADY_CONNECTED',
          `Call ${callSid()}: expected one connect(session), the call has a session already`,
        );
      // If the session refuses the client (MAILBOX_FULL), the app may call connect again.
      if (!isOver) leave = session.attach();
      connected = session;
      if (isOver) return;
      subscriptions = [
        session.audioOut.subscribe((frame) => sound.spoke(frame)),
        session.events.subscribe({
          next: ({ type }) => {
            if (type === 'playout.clear') clear(session);
          },
          complete: () => hangUp(),
        }),
      ];
      for (const frame of kept.drain()) session.audioIn.next(frame);
    },
    hangUp,
  };
  listen();
}

const PHONE_RATE_HZ = 8000;
/** The duration of an audio chunk. The mark of a chunk reports that the chunk has been played. */
const CHUNK_MS = 100;
const CHUNK_LENGTH = (PHONE_RATE_HZ * CHUNK_MS) / 1000;

/** The position up to which an item has been played, measured from its start. */
interface PlayedItem {
  readonly itemId: string;
  readonly playedMs: number;
}

interface OutgoingSoundPorts {
  send(message: OutgoingMessage): void;
  played(item: PlayedItem): void;
  /** Each time the queue fills, reports once that the end of the speech was dropped. */
  overflowed(): void;
}

interface OutgoingSoundOptions {
  readonly maxAheadMs: number;
  readonly maxQueuedMs: number;
}

/** The item that is being resampled. Audio without an item is played, but its playback is not reported. */
interface Item {
  readonly head: AudioFrame;
  readonly resampler: Resampler;
  length: number;
}

/** A chunk of audio on its way to Twilio. */
interface Stretch {
  readonly itemId: string | undefined;
  readonly codes: Uint8Array;
  /** The position in the item at which the chunk ends, in samples. */
  readonly end: number;
}

interface Mark extends Pick<Stretch, 'itemId' | 'end'> {
  readonly name: string;
  readonly length: number;
}

/**
 * Sends the lead agent's audio to a telephone and tracks how much of it has been played. Twilio buffers the audio,
 * plays it in order, and returns a mark once all audio before the mark has been played. Playback is not reported in any
 * other way.
 *
 *   24 kHz frames ─▶ 8 kHz ─▶ μ-law ─▶ queue ─▶ media, mark, media, mark … ─▶ Twilio
 *                                        ▲           at most `maxAheadMs` without its mark
 *                                        └──────────── mark comes back ◀──────────┘
 *
 * Owns:     the queue, the pending marks, and the playback that they confirm.
 * Does not: access the socket, or determine why speech stops (the session does).
 */
export class OutgoingSound {
  readonly #ports: OutgoingSoundPorts;
  readonly #maxAhead: number;
  readonly #maxQueued: number;
  #item: Item | null = null;
  #queue: Stretch[] = [];
  #queued = 0;
  #isFull = false;
  #marks: Mark[] = [];
  #ahead = 0;
  #named = 0;
  #proven: { readonly itemId: string; readonly end: number } | null = null;

  constructor(ports: OutgoingSoundPorts, { maxAheadMs, maxQueuedMs }: OutgoingSoundOptions) {
    this.#ports = ports;
    this.#maxAhead = (maxAheadMs * PHONE_RATE_HZ) / 1000;
    this.#maxQueued = (maxQueuedMs * PHONE_RATE_HZ) / 1000;
  }

  spoke(frame: AudioFrame): void {
    if (this.#item && !isSameItem(this.#item.head, frame)) this.#endItem();
    this.#item ??= {
      head: frame,
      resampler: createResampler({ fromHz: frame.sampleRateHz, toHz: PHONE_RATE_HZ }),
      length: 0,
    };
    // The resampling filter holds back the last 4 ms of an item until the next item starts, which is inaudible.
    this.#enqueue(this.#item, this.#item.resampler.process(frame.samples));
    this.#pump();
  }

  /** Handles a mark that has come back. */
  marked(name: string): void {
    const index = this.#marks.findIndex((mark) => mark.name === name);
    // OUTGOING-SOUND-2: the marks of cleared audio are removed.
    if (index < 0) return;
    // Twilio plays audio in order, so earlier audio has been played even if its mark was lost.
    for (const { itemId, end, length } of this.#marks.splice(0, index + 1)) {
      this.#ahead -= length;
      if (itemId === undefined) continue;
      this.#proven = { itemId, end };
      this.#ports.played({ itemId, playedMs: milliseconds(end) });
    }
    this.#pump();
  }

  /**
   * Drops the audio that has not been played. Returns the item that was cut off and how much of it was played.
   */
  clear(): PlayedItem | null {
    const cut = [...this.#marks, ...this.#queue].find(({ itemId }) => itemId !== undefined);
    this.#item = null;
    this.#queue = [];
    this.#queued = 0;
    this.#isFull = false;
    this.#marks = [];
    this.#ahead = 0;
    this.#ports.send({ event: 'clear' });
    const proven = this.#proven;
    this.#proven = null;
    if (cut?.itemId === undefined) return null;
    const end = proven?.itemId === cut.itemId ? proven.end : 0;
    return { itemId: cut.itemId, playedMs: milliseconds(end) };
  }

  #endItem(): void {
    const item = this.#item;
    this.#item = null;
    if (item) this.#enqueue(item, item.resampler.flush());
    this.#isFull = false;
  }

  #enqueue(item: Item, samples: Int16Array): void {
    for (let from = 0; from < samples.length; from += CHUNK_LENGTH) {
      const codes = encodeMuLaw(samples.subarray(from, from + CHUNK_LENGTH));
      // After a gap, audio would be heard at the wrong time (OUTGOING-SOUND-4).
      if (this.#isFull || this.#queued + codes.length > this.#maxQueued) {
        if (!this.#isFull) this.#ports.overflowed();
        this.#isFull = true;
        return;
      }
      item.length += codes.length;
      this.#queued += codes.length;
      this.#queue.push({ itemId: item.head.itemId, codes, end: item.length });
    }
  }

  #pump(): void {
    while (this.#queue.length > 0 && this.#ahead < this.#maxAhead) {
      const { itemId, codes, end } = this.#take();
      this.#named += 1;
      const mark = { name: `played:${this.#named}`, itemId, end, length: codes.length };
      this.#marks.push(mark);
      this.#ahead += codes.length;
      const payload = Buffer.from(codes.buffer, codes.byteOffset, codes.length).toString('base64');
      this.#ports.send({ event: 'media', media: { payload } });
      this.#ports.send({ event: 'mark', mark: { name: mark.name } });
    }
  }

  /**
   * Removes the first pending audio of one item, at most one chunk. Several frames may be needed, because a frame can
   * be much shorter than a chunk.
   */
  #take(): Stretch {
    const { itemId } = this.#queue[0] as Stretch;
    let count = 0;
    let length = 0;
    for (const stretch of this.#queue) {
      if (stretch.itemId !== itemId || length + stretch.codes.length > CHUNK_LENGTH) break;
      length += stretch.codes.length;
      count += 1;
    }
    const taken = this.#queue.splice(0, count);
    this.#queued -= length;
    const codes =
      count === 1 ? (taken[0] as Stretch).codes : Buffer.concat(taken.map((it) => it.codes));
    return { itemId, codes, end: (taken.at(-1) as Stretch).end };
  }
}

function isSameItem(a: AudioFrame, b: AudioFrame): boolean {
  return (
    a.itemId === b.itemId && a.responseId === b.responseId && a.sampleRateHz === b.sampleRateHz
  );
}

function milliseconds(samples: number): number {
  return (samples * 1000) / PHONE_RATE_HZ;
}

const sid = z.string().min(1).max(64);
const inStream = { streamSid: sid };

const startSchema = z.object({
  event: z.literal('start'),
  ...inStream,
  start: z.object({
    accountSid: sid,
    callSid: sid,
    customParameters: z.record(z.string(), z.string()).default({}),
    mediaFormat: z.object({
      encoding: z.literal('audio/x-mulaw'),
      sampleRate: z.literal(8000),
      channels: z.literal(1),
    }),
  }),
});

const incomingSchema = z.discriminatedUnion('event', [
  z.object({ event: z.literal('connected') }),
  startSchema,
  z.object({
    event: z.literal('media'),
    ...inStream,
    // A unidirectional stream also names its other track. A bidirectional stream has only this track.
    media: z.object({ track: z.string().default('inbound'), payload: z.base64() }),
  }),
  z.object({
    event: z.literal('dtmf'),
    ...inStream,
    dtmf: z.object({ digit: z.string().regex(/^[0-9*#A-D]$/) }),
  }),
  z.object({ event: z.literal('mark'), ...inStream, mark: z.object({ name: z.string() }) }),
  z.object({ event: z.literal('stop'), ...inStream }),
]);

const events: ReadonlySet<unknown> = new Set(
  incomingSchema.options.map(({ shape }) => shape.event.value),
);

/** A message from Twilio. */
export type IncomingMessage = z.output<typeof incomingSchema>;
type StartMessage = z.output<typeof startSchema>;

/** A message to Twilio. */
export type OutgoingMessage =
  | { readonly event: 'media'; readonly media: { readonly payload: string } }
  /** Twilio returns the mark once all audio before it has been played or cleared. */
  | { readonly event: 'mark'; readonly mark: { readonly name: string } }
  /** Drops audio that was sent but has not been played. */
  | { readonly event: 'clear' };

/**
 * Parses a message; null if its event type is unknown.
 * @throws {ProtocolError} `INVALID_MESSAGE`
 */
function readMessage(text: string): IncomingMessage | null {
  const raw = fromJson(text);
  const event = propertiesOf(raw)['event'];
  if (typeof event === 'string' && !events.has(event)) return null;
  const parsed = incomingSchema.safeParse(raw);
  if (parsed.success) return parsed.data;
  throw new ProtocolError(
    'INVALID_MESSAGE',
    `Expected a message of Twilio Media Streams. ${z.prettifyError(parsed.error)}`,
    { raw },
  );
}

/** Parses JSON text. For any other text, returns undefined, which matches no schema. */
function fromJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
