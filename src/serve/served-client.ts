// One client of a served session. Validates its frames, and limits the frames that are sent to it. Frames for the
// session are passed to the hub.
//
// Owns:     the rates of one client, its unsent bytes, its audio packets, and its end. The clients of a user share the
//           user's rates.
// Does not: know the socket (a channel does) or execute commands (`session-hub.ts`).
//
// Invariants
//   SERVED-CLIENT-1. No message from a client causes an exception. A frame is refused if it is invalid or exceeds the
//       rate. A client with too many mistakes is disconnected.
//   SERVED-CLIENT-2. A client that does not read is disconnected (`TOO_SLOW`) before its unsent bytes exceed the limit
//       by more than one frame. Audio is dropped before that point, but state is never dropped.
//   SERVED-CLIENT-3. After a dropped packet, the rest of that item's audio is dropped too, so that the client never
//       plays audio with a gap.

import type { Environment } from '../actors/ports/environment.ts';
import {
  decodeSound,
  encodeSound,
  readClientFrame,
  valueOfJson,
  type CallFrame,
  type ClientFrame,
  type CommandFrame,
  type HelloFrame,
  type NoticeFrame,
  type ServerFrame,
} from '../client/protocol.ts';
import type { AudioFrame } from '../voice/audio/audio-frame.ts';
import type { ServedIdentity, ServeLimits } from './options.ts';
import { TokenBucket } from './token-bucket.ts';

/** The text of a frame that several clients share. It is encoded at most once, if a channel needs bytes. */
export class FrameText {
  readonly text: string;
  #bytes: Uint8Array<ArrayBuffer> | null = null;

  constructor(text: string) {
    this.text = text;
  }

  get bytes(): Uint8Array<ArrayBuffer> {
    return (this.#bytes ??= new TextEncoder().encode(this.text));
  }
}

/** The connection to a client. `close` sends the pending frames first, `cut` does not. */
export interface Channel {
  readonly kind: 'websocket' | 'stream';
  /** The number of written bytes that the channel has not sent yet, as far as it knows. */
  readonly unsentBytes: number;
  text(frame: FrameText): void;
  sound?(packet: Uint8Array): void;
  close(code: number, reason: string): void;
  cut(code: number, reason: string): void;
}

/** The interface that the hub has for its clients. */
export interface ClientHub {
  command(client: ServedClient, frame: CommandFrame | CallFrame): void;
  notice(client: ServedClient, frame: NoticeFrame): void;
  sound(client: ServedClient, frame: AudioFrame): void;
  left(client: ServedClient): void;
}

/** The rates of one user, across all connections. */
export interface UserRates {
  readonly messages: TokenBucket;
  readonly welcomes: TokenBucket;
}

/** The interface that the server has for its clients. */
export interface ClientOwner {
  readonly environment: Environment;
  readonly limits: ServeLimits;
  /** The rates that all clients of a user share. */
  ratesOf(user: string): UserRates;
  /** Called with the first frame of a client. */
  greeted(client: ServedClient, hello: HelloFrame): void;
  gone(client: ServedClient): void;
  cutOff(client: ServedClient, code: string, message: string): void;
}

/** WebSocket close codes. */
const GOING_AWAY = 1001;
const POLICY = 1008;
const TRY_LATER = 1013;

/** The number of item ids that a client remembers. */
const MAX_ITEMS = 256;
/** The maximum number of frames that may arrive before the session is open. */
const MAX_EARLY_FRAMES = 128;

export class ServedClient {
  readonly channel: Channel;
  readonly identity: ServedIdentity;
  /** The client's name on all its connections; null until its `hello` arrives. */
  clientId: string | null = null;
  readonly #owner: ClientOwner;
  readonly #rates: UserRates;
  readonly #mistakes: TokenBucket;
  readonly #soundSeconds: TokenBucket;
  readonly #refs = new Map<string, number>();
  readonly #cancelDeadline: () => void;
  #hub: ClientHub | null = null;
  #early: (CommandFrame | CallFrame | NoticeFrame)[] = [];
  #lastRef = 0;
  #cutItem: string | null = null;
  #microphoneHz: number | null = null;
  #isGone = false;

  constructor(channel: Channel, identity: ServedIdentity, owner: ClientOwner) {
    this.channel = channel;
    this.identity = identity;
    this.#owner = owner;
    const { environment, limits } = owner;
    this.#rates = owner.ratesOf(identity.user);
    this.#mistakes = new TokenBucket(environment.clock, limits.mistakes);
    this.#soundSeconds = new TokenBucket(environment.clock, limits.soundSeconds);
    this.#cancelDeadline = environment.scheduler.schedule(
      () => this.cutOff('NO_HELLO', 'Expected `hello` as the first frame'),
      limits.helloTimeoutMs,
    );
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  get isWatcher(): boolean {
    return this.identity.role === 'watcher';
  }

  /** SESSION-HUB-7 */
  get hears(): boolean {
    const { role, hears = role === 'user' } = this.identity;
    return hears && !this.isWatcher;
  }

  /** Whether the client has sent `hello` and is waiting for its session. */
  get isWaiting(): boolean {
    return this.clientId !== null && this.#hub === null && !this.#isGone;
  }

  /** Returns whether the client may receive the state once more. If not, disconnects the client. */
  takesWelcome(): boolean {
    if (this.#rates.welcomes.take()) return true;
    const { burst, perSecond } = this.#owner.limits.welcomes;
    const message = `Expected the state to be asked for at most ${perSecond} times a second, ${burst} at once`;
    this.bye('RATE_LIMITED', message, { retry: true });
    return false;
  }

  /** Restores a client whose connection still exists although the server's memory was lost. */
  restored(clientId: string): void {
    this.#cancelDeadline();
    this.clientId = clientId;
  }

  /** The session is open, so the hub receives the frames that arrived before. */
  joined(hub: ClientHub): void {
    this.#hub = hub;
    const early = this.#early;
    this.#early = [];
    for (const frame of early) this.#pass(frame);
  }

  /** The session sleeps while the connection stays open. */
  parked(): void {
    this.#hub = null;
  }

  received(text: string): void {
    if (this.#isGone) return;
    this.receivedFrame(readClientFrame(valueOfJson(text)));
  }

  /** `frame`: the frame, or the reason why the text is invalid. */
  receivedFrame(frame: ClientFrame | string): void {
    if (this.#isGone) return;
    if (typeof frame === 'string')
      return this.#refuse('INVALID_FRAME', `Expected a frame of the protocol: ${frame}`);
    if (frame.type === 'hello') {
      if (this.clientId !== null) return this.#refuse('INVALID_FRAME', 'Expected one `hello`');
      this.clientId = frame.client;
      this.#cancelDeadline();
      this.#owner.greeted(this, frame);
      return;
    }
    if (this.clientId === null)
      return this.cutOff('NO_HELLO', 'Expected `hello` as the first frame');
    if (!this.#rates.messages.take()) {
      const { burst, perSecond } = this.#owner.limits.messages;
      const message = `Expected at most ${perSecond} frames a second, ${burst} at once`;
      if ('id' in frame)
        this.send({ type: 'receipt', id: frame.id, ok: false, code: 'RATE_LIMITED', message });
      return this.#refuse('RATE_LIMITED', message);
    }
    if (frame.type === 'ping') return this.send({ type: 'pong' });
    if (frame.type === 'microphone') this.#microphoneHz = frame.sampleRateHz;
    else if (this.#hub) this.#pass(frame);
    else if (this.#early.length < MAX_EARLY_FRAMES) this.#early.push(frame);
    else this.cutOff('TOO_MANY_FRAMES', 'Expected fewer frames before `welcome`');
  }

  receivedSound(bytes: Uint8Array): void {
    if (this.#isGone || !this.#hub) return;
    const sampleRateHz = this.#microphoneHz;
    if (sampleRateHz === null)
      return this.#refuse('UNEXPECTED_SOUND', 'Expected `microphone` before sound');
    const packet = decodeSound(bytes);
    if (typeof packet === 'string') return this.#refuse('INVALID_SOUND', `Sound: ${packet}`);
    const { samples } = packet;
    if (!this.#soundSeconds.take(samples.length / sampleRateHz)) {
      const { burst } = this.#owner.limits.soundSeconds;
      return this.#refuse(
        'RATE_LIMITED',
        `Expected sound in real time, ${burst} s at once at most`,
      );
    }
    this.#hub.sound(this, { samples, sampleRateHz });
  }

  send(frame: ServerFrame): void {
    this.write(new FrameText(JSON.stringify(frame)));
  }

  /** Writes a frame whose text several clients may share. */
  write(frame: FrameText): void {
    if (this.#isGone) return;
    const { unsentBytes } = this.channel;
    const { maxUnsentBytes } = this.#owner.limits;
    if (unsentBytes <= maxUnsentBytes) return this.channel.text(frame);
    // SERVED-CLIENT-2
    const message = `Expected a client that reads: ${unsentBytes} bytes are unsent, at most ${maxUnsentBytes} may be`;
    this.#end('TOO_SLOW', message);
    this.channel.cut(TRY_LATER, 'TOO_SLOW');
  }

  sendSound({ itemId, samples }: AudioFrame): void {
    const { channel } = this;
    if (this.#isGone || !channel.sound) return;
    if (itemId !== undefined && itemId === this.#cutItem) return;
    if (channel.unsentBytes > this.#owner.limits.maxUnsentSoundBytes) {
      // SERVED-CLIENT-3
      this.#cutItem = itemId ?? null;
      return;
    }
    channel.sound(encodeSound({ ref: itemId === undefined ? 0 : this.#refOf(itemId), samples }));
  }

  /** Ends the connection and tells the client why. */
  bye(
    code: string,
    message: string,
    { retry = false, url }: { retry?: boolean; url?: string } = {},
  ): void {
    if (this.#isGone) return;
    this.send({ type: 'bye', code, message, retry, ...(url !== undefined && { url }) });
    if (this.#isGone) return;
    this.left();
    this.channel.close(retry ? GOING_AWAY : POLICY, code);
  }

  /** Ends the connection because the client has made a mistake. */
  cutOff(code: string, message: string): void {
    if (this.#isGone) return;
    this.send({ type: 'bye', code, message, retry: false });
    if (this.#isGone) return;
    this.#end(code, message);
    this.channel.close(POLICY, code);
  }

  /** The connection has ended. */
  left(): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#cancelDeadline();
    this.#early = [];
    this.#hub?.left(this);
    this.#owner.gone(this);
  }

  #end(code: string, message: string): void {
    this.left();
    this.#owner.cutOff(this, code, message);
  }

  #pass(frame: CommandFrame | CallFrame | NoticeFrame): void {
    if (this.#isGone) return;
    if ('id' in frame) this.#hub?.command(this, frame);
    else this.#hub?.notice(this, frame);
  }

  #refuse(code: string, message: string): void {
    this.send({ type: 'refused', code, message });
    if (!this.#mistakes.take()) this.cutOff('TOO_MANY_MISTAKES', `The last one: ${message}`);
  }

  #refOf(itemId: string): number {
    let ref = this.#refs.get(itemId);
    if (ref !== undefined) return ref;
    ref = ++this.#lastRef;
    this.#refs.set(itemId, ref);
    const [oldest] = this.#refs.keys();
    if (this.#refs.size > MAX_ITEMS && oldest !== undefined) this.#refs.delete(oldest);
    this.send({ type: 'audio.item', ref, itemId });
    return ref;
  }
}
