// One telephone call: a Twilio Media Stream on one side, a session on the other.
//
//   socket opens ─▶ connected ─▶ start ─▶ (caller's sound is kept) ─▶ connect(session)
//                                                                          │
//      stop, socket closed, silence, hangUp(), session ended ─▶ detached, ended
//
// Owns:     the socket, and whether a caller is on the telephone.
// Does not: create or close the session, interpret marks (outgoing-sound) or keys (keypad), verify the peer
//           of the socket (signature).
//
// Invariants
//   TWILIO-CALL-1. A call ends once, whichever side ends it: the session is detached, and no message is sent
//       afterwards.
//   TWILIO-CALL-2. No message of the peer makes this component throw, or is used unchecked; messages of other
//       streams are ignored. Too many invalid ones end the call.
//   TWILIO-CALL-3. The caller's sound reaches the session in order, from the first kept word.
//   TWILIO-CALL-4. A method of the socket that throws, or returns a promise that rejects, at most ends this
//       call.

import { z } from 'zod';
import { check } from '../../values/checks.ts';
import type { Subscription } from 'rxjs';
import {
  ConfigurationError,
  ProtocolError,
  ProviderError,
  handleRejection,
} from '../../values/errors.ts';
import { createBoundedBuffer, type BoundedBuffer } from '../../voice/audio/bounded-buffer.ts';
import { decodeMuLaw } from '../../voice/audio/mu-law.ts';
import type { AudioFrame } from '../../voice/audio/audio-frame.ts';
import { createKeepAlive, type KeepAlive } from '../socket/keep-alive.ts';
import { Keypad } from './keypad.ts';
import { readMessage, type IncomingMessage, type StartMessage } from './messages.ts';
import {
  checkCallOptions,
  type CallSession,
  type CheckedCallOptions,
  type TwilioCallOptions,
  type TwilioSocket,
} from './options.ts';
import { OutgoingSound, PHONE_RATE_HZ } from './outgoing-sound.ts';

/**
 * Why a call is over. `stopped`: Twilio reported it, because the caller hung up. `closed`: the socket is
 * gone. `lost`: no sound arrived any more. `refused`: too many messages were invalid. `hung_up`: the app hung
 * up, or the session ended.
 */
export type CallEnd = 'stopped' | 'closed' | 'lost' | 'refused' | 'hung_up';

export interface TwilioCall {
  readonly callSid: string;
  readonly streamSid: string;
  readonly accountSid: string;
  /** The parameters of `streamTwiml`. */
  readonly customParameters: Readonly<Record<string, string>>;
  /** Resolves when it is over. Never rejects. */
  readonly ended: Promise<CallEnd>;
  /**
   * Connects the caller to this session; a client is attached to it until the call ends. The session is not
   * closed with the call: it may have work to finish.
   * @throws {ConfigurationError} `ALREADY_CONNECTED`
   */
  connect(session: CallSession): void;
  /** Ends the stream; Twilio continues with the TwiML after `<Connect>`, and hangs up if there is none. */
  hangUp(): void;
}

const method = z.custom((value) => typeof value === 'function', 'expected a method');
const socketSchema = z.object({ on: method, send: method, close: method });

/**
 * Accepts a call on a socket that a WebSocket server has just accepted. Resolves when Twilio has identified
 * the call. Verify the request with `isTwilioRequest` first. Rejects with a `ProtocolError` for any other
 * message, and with a `ProviderError` (`CALL_LOST`, `START_TIMEOUT`) if no message comes; the socket is
 * closed then.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
export function acceptTwilioCall(
  socket: TwilioSocket,
  options: TwilioCallOptions,
): Promise<TwilioCall> {
  check('acceptTwilioCall(socket, options)', socketSchema, socket);
  const checked = checkCallOptions(options);
  return new Promise((resolve, reject) => {
    new Call(socket, checked, resolve, reject).listen();
  });
}

const closeCodes = { normal: 1000, refused: 1008 } as const;
/** Twilio sends no invalid messages; another peer soon exceeds this. */
const MAX_MISTAKES = 10;

class Call implements TwilioCall {
  readonly ended: Promise<CallEnd>;
  readonly #socket: TwilioSocket;
  readonly #options: CheckedCallOptions;
  readonly #began: (call: TwilioCall) => void;
  readonly #failed: (error: Error) => void;
  readonly #kept: BoundedBuffer;
  readonly #keypad: Keypad;
  readonly #sound: OutgoingSound;
  readonly #keepAlive: KeepAlive;
  #cancelStart: () => void = () => {};
  #start: StartMessage | null = null;
  #session: CallSession | null = null;
  #subscriptions: Subscription[] = [];
  #leave: () => void = () => {};
  #tellEnd: (reason: CallEnd) => void = () => {};
  #isOver = false;
  #mistakes = 0;

  constructor(
    socket: TwilioSocket,
    options: CheckedCallOptions,
    began: (call: TwilioCall) => void,
    failed: (error: Error) => void,
  ) {
    const { scheduler } = options.environment;
    this.#socket = socket;
    this.#options = options;
    this.#began = began;
    this.#failed = failed;
    this.#kept = createBoundedBuffer({ maxMs: options.keptAudioMs, keep: 'newest' });
    this.#sound = new OutgoingSound(
      {
        send: (message) => this.#send(JSON.stringify({ ...message, streamSid: this.streamSid })),
        played: (item) => this.#session?.playout.next(item),
        overflowed: () => {
          const message = `More than ${options.maxQueuedMs} ms of speech waits for Twilio: its end is cut off`;
          options.onError(new ProviderError('QUEUE_FULL', message));
        },
      },
      options,
    );
    this.#keypad = new Keypad(
      {
        questions: () => this.#session?.store.getSnapshot().context.questions ?? [],
        answer: (requestId, optionId) => this.#try(this.#session?.answer(requestId, { optionId })),
        typed: (text) => this.#try(this.#session?.sendText(text)),
      },
      scheduler,
      options.keyPauseMs,
    );
    this.#keepAlive = createKeepAlive({
      scheduler,
      intervalMs: options.silenceTimeoutMs,
      // Twilio sends sound continuously, so pings are unnecessary.
      ping: () => {},
      onSilence: () => this.#end('lost', closeCodes.normal),
    });
    this.ended = new Promise((resolve) => {
      this.#tellEnd = resolve;
    });
  }

  get callSid(): string {
    return this.#start?.start.callSid ?? '';
  }

  get streamSid(): string {
    return this.#start?.streamSid ?? '';
  }

  get accountSid(): string {
    return this.#start?.start.accountSid ?? '';
  }

  get customParameters(): Readonly<Record<string, string>> {
    return this.#start?.start.customParameters ?? {};
  }

  listen(): void {
    const { environment, startTimeoutMs, onError } = this.#options;
    this.#cancelStart = environment.scheduler.schedule(() => {
      const message = `Expected the start of a call within ${startTimeoutMs} ms`;
      this.#refuse(new ProviderError('START_TIMEOUT', message));
    }, startTimeoutMs);
    try {
      for (const listening of [
        this.#socket.on('message', (data, isBinary) => this.#received(data, isBinary)),
        this.#socket.on('close', () => this.#closed()),
        // A socket closes after an error, for example for a message that is too large.
        this.#socket.on('error', onError),
      ])
        handleRejection(listening, (cause) => this.#cannotListen(cause));
    } catch (cause) {
      this.#cannotListen(cause);
    }
  }

  connect(session: CallSession): void {
    if (this.#session)
      throw new ConfigurationError(
        'ALREADY_CONNECTED',
        `Call ${this.callSid}: expected one connect(session), the call has a session already`,
      );
    this.#session = session;
    if (this.#isOver) return;
    this.#leave = session.attach();
    this.#subscriptions = [
      session.audioOut.subscribe((frame) => this.#sound.spoke(frame)),
      session.events.subscribe({
        next: ({ type }) => {
          if (type === 'playout.clear') this.#clear(session);
        },
        complete: () => this.hangUp(),
      }),
    ];
    for (const frame of this.#kept.drain()) session.audioIn.next(frame);
  }

  hangUp(): void {
    this.#end('hung_up', closeCodes.normal);
  }

  #cannotListen(cause: unknown): void {
    const message = 'The socket takes no listener';
    if (!this.#isOver) this.#refuse(new ProviderError('CALL_LOST', message, { cause }));
  }

  #send(text: string): void {
    try {
      const sent: unknown = this.#socket.send(text);
      handleRejection(sent, this.#options.onError);
    } catch (error) {
      this.#options.onError(error);
    }
  }

  #received(data: { toString(): string }, isBinary: boolean): void {
    if (this.#isOver) return;
    this.#keepAlive.heard();
    try {
      const text = data.toString();
      const { maxMessageLength } = this.#options;
      if (isBinary || text.length > maxMessageLength) {
        const got = isBinary ? 'bytes' : `${text.length} characters`;
        const wanted = `Expected text of at most ${maxMessageLength} characters, got ${got}`;
        throw new ProtocolError('INVALID_MESSAGE', wanted);
      }
      const message = readMessage(text);
      if (message) this.#take(message);
    } catch (error) {
      this.#mistaken(error as Error);
    }
  }

  #take(message: IncomingMessage): void {
    if (message.event === 'connected') return;
    if (message.event === 'start' && !this.#start) {
      this.#start = message;
      this.#cancelStart();
      this.#keepAlive.start();
      this.#began(this);
      return;
    }
    if (message.event === 'start' || message.streamSid !== this.#start?.streamSid) {
      const of = `${message.event} of stream ${message.streamSid}`;
      const wanted = this.#start ? `a message of stream ${this.streamSid}` : 'start';
      throw new ProtocolError('INVALID_MESSAGE', `Expected ${wanted}, got ${of}`, { raw: message });
    }
    switch (message.event) {
      case 'media':
        if (message.media.track === 'inbound') this.#heard(message.media.payload);
        break;
      case 'mark':
        this.#sound.marked(message.mark.name);
        break;
      case 'dtmf':
        if (this.#session) this.#keypad.press(message.dtmf.digit);
        break;
      case 'stop':
        this.#end('stopped', closeCodes.normal);
        break;
    }
  }

  #heard(payload: string): void {
    const samples = decodeMuLaw(Buffer.from(payload, 'base64'));
    const frame: AudioFrame = { samples, sampleRateHz: PHONE_RATE_HZ };
    if (this.#session) this.#session.audioIn.next(frame);
    else this.#kept.push(frame);
  }

  /** The session is in the middle of stopping: it gets the played length afterwards. */
  #clear(session: CallSession): void {
    const cut = this.#sound.clear();
    if (cut) this.#options.environment.scheduler.yieldThen(() => session.playout.next(cut));
  }

  #try(promise: Promise<unknown> | undefined): void {
    promise?.catch(this.#options.onError);
  }

  #mistaken(error: Error): void {
    if (!this.#start) {
      this.#refuse(error);
      return;
    }
    this.#options.onError(error);
    this.#mistakes += 1;
    if (this.#mistakes > MAX_MISTAKES) this.#end('refused', closeCodes.refused);
  }

  /** Refuses a socket that is no call. */
  #refuse(error: Error): void {
    this.#failed(error);
    this.#end('refused', closeCodes.refused);
  }

  #closed(): void {
    if (!this.#start)
      this.#failed(new ProviderError('CALL_LOST', 'The socket was closed before the call began'));
    this.#end('closed', null);
  }

  #end(reason: CallEnd, closeCode: number | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#cancelStart();
    this.#keepAlive.stop();
    this.#keypad.stop();
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    try {
      const closing: unknown =
        closeCode === null ? undefined : this.#socket.close(closeCode, reason);
      handleRejection(closing, this.#options.onError);
    } catch (error) {
      // A socket of the app may throw; the call is over all the same.
      this.#options.onError(error);
    }
    this.#leave();
    this.#tellEnd(reason);
  }
}
