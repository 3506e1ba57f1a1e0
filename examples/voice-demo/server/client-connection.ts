// One page's WebSocket: checks what comes in, bounds what goes out, notices when the
// page is gone. What the messages mean is the hub's business.
//
// CLIENT-CONNECTION-1. What does not fit is answered with `client.error` that says what was expected, and
//     dropped; too much of it closes the connection (1008).
// CLIENT-CONNECTION-2. Nothing that a page sends throws out of here.
// CLIENT-CONNECTION-3. A page that does not take what it is sent is closed (1013) before memory grows.

import { WebSocket, type RawData } from 'ws';
import { z } from 'zod';
import { messageOf } from '../../../src/values/errors.ts';
import type { Environment } from '../../../src/actors/ports/environment.ts';
import type { AudioFrame } from '../../../src/voice/audio/audio-frame.ts';
import { encodeAudioPacket } from '../shared/audio-packet.ts';
import { clientMessageSchema, type ClientMessage, type ServerMessage } from '../shared/protocol.ts';
import type { ServerLimits } from './limits.ts';
import { TokenBucket } from './token-bucket.ts';

/** The callbacks of a connection. */
export interface ClientEvents {
  message(client: ClientConnection, message: ClientMessage): void | Promise<void>;
  audio(client: ClientConnection, frame: AudioFrame): void;
  left(client: ClientConnection): void;
}

export const closeCodes = { goingAway: 1001, refused: 1008, tooSlow: 1013 } as const;

export class ClientConnection {
  readonly #socket: WebSocket;
  readonly #limits: ServerLimits;
  readonly #events: ClientEvents;
  readonly #messages: TokenBucket;
  readonly #audio: TokenBucket;
  readonly #mistakes: TokenBucket;
  readonly #itemRefs = new Map<string, number>();
  #sampleRateHz: number | null = null;
  #isAlive = true;
  #cancelHeartbeat: () => void = () => undefined;

  constructor(
    socket: WebSocket,
    environment: Environment,
    limits: ServerLimits,
    events: ClientEvents,
  ) {
    this.#socket = socket;
    this.#limits = limits;
    this.#events = events;
    this.#messages = new TokenBucket(environment.clock, limits.messages);
    this.#audio = new TokenBucket(environment.clock, limits.audioSeconds);
    this.#mistakes = new TokenBucket(environment.clock, limits.mistakes);
    socket.on('message', (data, isBinary) => this.#receive(data, isBinary));
    // `ws` closes after an error, of a frame that is too large for example.
    socket.on('error', () => undefined);
    socket.on('pong', () => {
      this.#isAlive = true;
    });
    socket.on('close', () => {
      this.#cancelHeartbeat();
      events.left(this);
    });
    this.#beat(environment);
  }

  send(message: ServerMessage): void {
    this.#write(JSON.stringify(message));
  }

  /** Sound of the lead agent at 24 kHz; frames without an item have nowhere to go. */
  sendAudio({ itemId, samples }: AudioFrame): void {
    if (itemId === undefined) return;
    let ref = this.#itemRefs.get(itemId);
    if (ref === undefined) {
      ref = this.#itemRefs.size + 1;
      this.#itemRefs.set(itemId, ref);
      this.send({ type: 'audio.item', ref, itemId });
    }
    this.#write(encodeAudioPacket({ ref, samples }));
  }

  /** Tells the page that its last message was refused. */
  refuse(code: string, message: string): void {
    this.send({ type: 'client.error', code, message });
    if (!this.#mistakes.take()) this.#socket.close(closeCodes.refused, 'too many mistakes');
  }

  close(code: number = closeCodes.goingAway, reason = 'the demo ends'): void {
    this.#socket.close(code, reason);
  }

  /** Gone at once, whatever the page does. */
  terminate(): void {
    this.#socket.terminate();
  }

  #receive(data: RawData, isBinary: boolean): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    // A server without `binaryType` of its own gets Buffers.
    const bytes = data as Buffer;
    if (isBinary) this.#receiveAudio(bytes);
    else void this.#receiveMessage(bytes.toString('utf8'));
  }

  async #receiveMessage(text: string): Promise<void> {
    if (!this.#messages.take()) {
      const { burst, perSecond } = this.#limits.messages;
      this.refuse(
        'RATE_LIMITED',
        `Expected at most ${perSecond} messages a second, ${burst} at once`,
      );
      return;
    }
    const parsed = clientMessageSchema.safeParse(fromJson(text));
    if (!parsed.success) {
      this.refuse(
        'INVALID_MESSAGE',
        `Expected a message of the protocol. ${z.prettifyError(parsed.error)}`,
      );
      return;
    }
    if (parsed.data.type === 'microphone.open') {
      this.#sampleRateHz = parsed.data.sampleRateHz;
      return;
    }
    try {
      await this.#events.message(this, parsed.data);
    } catch (error) {
      this.refuse('FAILED', messageOf(error));
    }
  }

  #receiveAudio(bytes: Buffer): void {
    const sampleRateHz = this.#sampleRateHz;
    if (sampleRateHz === null) {
      this.refuse('UNEXPECTED_AUDIO', 'Expected `microphone.open` before sound');
      return;
    }
    const { maxAudioBytes, audioSeconds } = this.#limits;
    const { byteLength } = bytes;
    if (byteLength === 0 || byteLength % 2 === 1 || byteLength > maxAudioBytes) {
      this.refuse(
        'INVALID_AUDIO',
        `Expected 2 to ${maxAudioBytes} bytes of 16-bit samples, got ${byteLength}`,
      );
      return;
    }
    const samples = new Int16Array(byteLength / 2);
    for (let index = 0; index < samples.length; index++)
      samples[index] = bytes.readInt16LE(index * 2);
    if (!this.#audio.take(samples.length / sampleRateHz)) {
      this.refuse(
        'RATE_LIMITED',
        `Expected sound in real time, ${audioSeconds.burst} s at once at most`,
      );
      return;
    }
    this.#events.audio(this, { samples, sampleRateHz });
  }

  #write(data: string | Uint8Array): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    if (this.#socket.bufferedAmount > this.#limits.maxUnsentBytes) {
      this.#socket.close(closeCodes.tooSlow, 'fell behind');
      return;
    }
    this.#socket.send(data);
  }

  #beat(environment: Environment): void {
    this.#cancelHeartbeat = environment.scheduler.schedule(() => {
      if (!this.#isAlive) {
        this.#socket.terminate();
        return;
      }
      this.#isAlive = false;
      this.#socket.ping();
      this.#beat(environment);
    }, this.#limits.heartbeatMs);
  }
}

/** The value of JSON text; text that is none becomes undefined, which fits no schema. */
function fromJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
