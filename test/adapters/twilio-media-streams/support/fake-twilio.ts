// Twilio and a telephone for tests: the far end of a Media Stream. It plays the audio that it receives in simulated
// time. It returns marks when playback reaches them, or all of them after a clear.

import type { TwilioSocket } from '../../../../src/adapters/twilio-media-streams/index.ts';
import { decodeMuLaw, encodeMuLaw } from '../../../../src/voice/audio/mu-law.ts';
import type { SimulatedEnvironment } from '../../../../src/testing/index.ts';

interface Sent {
  readonly event: string;
  readonly streamSid: string;
  readonly media?: { readonly payload: string };
  readonly mark?: { readonly name: string };
}

type Listeners = {
  message: (data: { toString(): string }, isBinary: boolean) => void;
  close: () => void;
  error: (error: Error) => void;
};

const PHONE_RATE_HZ = 8000;

export class FakeTwilio implements TwilioSocket {
  readonly streamSid = 'MZ1';
  /** All received messages. */
  readonly sent: Sent[] = [];
  /** All the audio that the telephone has received, in samples. */
  readonly heard: number[] = [];
  /** How the other side closed the socket. */
  closedWith: { code: number; reason: string } | null = null;
  readonly #environment: SimulatedEnvironment;
  readonly #listeners: Partial<Listeners> = {};
  #queue: Sent[] = [];
  #cancel: (() => void) | null = null;
  #since = 0;

  constructor(environment: SimulatedEnvironment) {
    this.#environment = environment;
  }

  on<E extends keyof Listeners>(event: E, listener: Listeners[E]): this {
    this.#listeners[event] = listener;
    return this;
  }

  /** Receives text from the adapter; nothing arrives after the socket has closed. */
  send(text: string): void {
    if (this.closedWith) return;
    const sent = JSON.parse(text) as Sent;
    this.sent.push(sent);
    if (sent.event === 'clear') this.#clear();
    else {
      this.#queue.push(sent);
      this.#play();
    }
  }

  close(code: number, reason: string): void {
    this.closedWith = { code, reason };
    this.#listeners.close?.();
  }

  of(event: string): Sent[] {
    return this.sent.filter((sent) => sent.event === event);
  }

  /** Returns how much audio has been played, in milliseconds. */
  get heardMs(): number {
    return (this.heard.length * 1000) / PHONE_RATE_HZ;
  }

  /** Sends a message in Twilio's form. */
  tell(event: string, content: object = {}): void {
    this.tellRaw(JSON.stringify({ event, streamSid: this.streamSid, ...content }));
  }

  tellRaw(text: string, isBinary = false): void {
    this.#listeners.message?.(Buffer.from(text), isBinary);
  }

  start(customParameters: Readonly<Record<string, string>> = {}): void {
    this.tellRaw(JSON.stringify({ event: 'connected', protocol: 'Call', version: '1.0.0' }));
    this.tell('start', {
      sequenceNumber: '1',
      start: {
        accountSid: 'AC1',
        streamSid: this.streamSid,
        callSid: 'CA1',
        tracks: ['inbound'],
        customParameters,
        mediaFormat: { encoding: 'audio/x-mulaw', sampleRate: 8000, channels: 1 },
      },
    });
  }

  /** Sends 20 ms of the caller's voice: one constant value, by which it can be identified. */
  say(value: number, track = 'inbound'): void {
    const codes = encodeMuLaw(new Int16Array(160).fill(value));
    const payload = Buffer.from(codes).toString('base64');
    this.tell('media', { media: { track, chunk: '1', timestamp: '5', payload } });
  }

  press(...digits: string[]): void {
    for (const digit of digits) this.tell('dtmf', { dtmf: { track: 'inbound_track', digit } });
  }

  /** Hangs up as the caller. */
  stop(): void {
    this.tell('stop', { stop: { accountSid: 'AC1', callSid: 'CA1' } });
  }

  /** Drops the network connection. */
  vanish(): void {
    this.#listeners.close?.();
  }

  fail(error: Error): void {
    this.#listeners.error?.(error);
  }

  #play(): void {
    while (this.#cancel === null) {
      const [next] = this.#queue;
      if (!next) return;
      if (next.mark) {
        this.#queue.shift();
        this.tell('mark', { mark: next.mark });
        continue;
      }
      const { scheduler, clock } = this.#environment;
      this.#since = clock.now();
      this.#cancel = scheduler.schedule(
        () => {
          this.#cancel = null;
          this.#queue.shift();
          this.heard.push(...samplesOf(next));
          this.#play();
        },
        (samplesOf(next).length * 1000) / PHONE_RATE_HZ,
      );
    }
  }

  #clear(): void {
    const [playing] = this.#queue;
    if (this.#cancel && playing) {
      const playedMs = this.#environment.clock.now() - this.#since;
      this.heard.push(...samplesOf(playing).slice(0, (playedMs * PHONE_RATE_HZ) / 1000));
    }
    this.#cancel?.();
    this.#cancel = null;
    const dropped = this.#queue;
    this.#queue = [];
    for (const { mark } of dropped) if (mark) this.tell('mark', { mark });
  }
}

function samplesOf({ media }: Sent): Int16Array {
  return decodeMuLaw(Buffer.from(media?.payload ?? '', 'base64'));
}
