// The user's device in a measured session: sends a microphone frame every 20 ms, plays received sound in real time,
// and reports what it has played.

import type { RawData, WebSocket } from 'ws';
import {
  FRAME_MS,
  SAMPLES_PER_MS,
  textOf,
  type FromDevice,
  type TimedSound,
  type ToDevice,
} from './voice-frames.ts';

const BYTES_PER_MS = 2 * SAMPLES_PER_MS;
const TICKS_PER_REPORT = 5;

export interface DevicePorts {
  /** Audio of an item begins to arrive. */
  begun(): void;
  /** The device was told to stop playing, and is silent. */
  cleared(): void;
  /** A result was told. */
  told(): void;
}

interface Item {
  readonly itemId: string;
  receivedMs: number;
  playedMs: number;
}

export class Device {
  readonly #socket: WebSocket;
  readonly #up: TimedSound;
  readonly #down: TimedSound;
  readonly #ports: DevicePorts;
  #items: Item[] = [];
  #itemId = '';
  #ticks = 0;

  constructor(socket: WebSocket, up: TimedSound, down: TimedSound, ports: DevicePorts) {
    this.#socket = socket;
    this.#up = up;
    this.#down = down;
    this.#ports = ports;
    socket.on('message', (data, isBinary) => {
      if (isBinary) this.#heard(data);
      else this.#told(JSON.parse(textOf(data)) as ToDevice);
    });
  }

  /** The played time of the current or the last item, in milliseconds. */
  get playedMs(): number {
    return this.#items[0]?.playedMs ?? 0;
  }

  /** No audio is left to play. */
  get isSilent(): boolean {
    return this.#items.every(({ playedMs, receivedMs }) => playedMs === receivedMs);
  }

  /** Advances by 20 ms. */
  tick(): void {
    this.#socket.send(this.#up.next(FRAME_MS));
    this.#ticks += 1;
    // The next item begins as soon as it arrives.
    if (this.#items.length > 1 && this.#isPlayed) this.#items.shift();
    const [item] = this.#items;
    if (!item || this.#isPlayed) return;
    item.playedMs = Math.min(item.receivedMs, item.playedMs + FRAME_MS);
    if (this.#isPlayed || this.#ticks % TICKS_PER_REPORT === 0) this.#report(item);
  }

  finishWork(): void {
    this.#say({ type: 'finish' });
  }

  get #isPlayed(): boolean {
    const [item] = this.#items;
    return item !== undefined && item.playedMs === item.receivedMs;
  }

  #heard(data: RawData): void {
    const bytes = data as Buffer;
    this.#down.arrived(bytes);
    const durationMs = bytes.length / BYTES_PER_MS;
    const item = this.#items.at(-1);
    if (item?.itemId === this.#itemId) item.receivedMs += durationMs;
    else {
      this.#items.push({ itemId: this.#itemId, receivedMs: durationMs, playedMs: 0 });
      this.#ports.begun();
    }
  }

  #told(message: ToDevice): void {
    if (message.type === 'item') {
      this.#itemId = message.itemId;
      return;
    }
    if (message.type === 'told') {
      this.#ports.told();
      return;
    }
    const [item] = this.#items;
    this.#items = [];
    this.#ports.cleared();
    if (item) this.#report(item);
  }

  #report({ itemId, playedMs }: Item): void {
    this.#say({ type: 'played', itemId, playedMs });
  }

  #say(message: FromDevice): void {
    this.#socket.send(JSON.stringify(message));
  }
}
