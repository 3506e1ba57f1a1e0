// The page's WebSocket, again and again: after a loss it comes back by itself, later each
// time, until the server says that the link is not valid any more.

import { decodeAudioPacket } from '../shared/audio-packet.ts';
import type { ClientMessage, ServerMessage } from '../shared/protocol.ts';
import type { Link } from './store.ts';

export interface ConnectionEvents {
  link(link: Link): void;
  message(message: ServerMessage): void;
  audio(itemId: string, samples: Int16Array): void;
}

const SUBPROTOCOL = 'offstage-demo';
const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 8000;

export class Connection {
  readonly #token: string;
  readonly #events: ConnectionEvents;
  #socket: WebSocket | null = null;
  #failures = 0;
  #retry: ReturnType<typeof setTimeout> | undefined;

  constructor(token: string, events: ConnectionEvents) {
    this.#token = token;
    this.#events = events;
    // A network that is back makes the timer unnecessary.
    addEventListener('online', () => this.retryNow());
  }

  open(): void {
    clearTimeout(this.#retry);
    this.#events.link({ state: 'connecting' });
    const socket = new WebSocket(`ws://${location.host}/client`, [
      SUBPROTOCOL,
      `token.${this.#token}`,
    ]);
    socket.binaryType = 'arraybuffer';
    this.#socket = socket;
    const items = new Map<number, string>();
    let wasOpen = false;
    socket.addEventListener('open', () => {
      wasOpen = true;
      this.#failures = 0;
      this.#events.link({ state: 'open' });
    });
    socket.addEventListener('message', ({ data }: MessageEvent<string | ArrayBuffer>) => {
      if (typeof data !== 'string') {
        const { ref, samples } = decodeAudioPacket(data);
        const itemId = items.get(ref);
        if (itemId !== undefined) this.#events.audio(itemId, samples);
        return;
      }
      const message = JSON.parse(data) as ServerMessage;
      if (message.type === 'audio.item') items.set(message.ref, message.itemId);
      this.#events.message(message);
    });
    socket.addEventListener('close', () => {
      if (this.#socket !== socket) return;
      this.#socket = null;
      void this.#lost(wasOpen);
    });
  }

  retryNow(): void {
    if (this.#socket === null) this.open();
  }

  /** False when there is no connection: nothing is kept for later. */
  send(message: ClientMessage): boolean {
    return this.#send(JSON.stringify(message));
  }

  sendAudio(samples: Int16Array): void {
    this.#send(samples as Int16Array<ArrayBuffer>);
  }

  #send(data: string | Int16Array<ArrayBuffer>): boolean {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(data);
    return true;
  }

  async #lost(wasOpen: boolean): Promise<void> {
    if (!wasOpen && (await this.#isRefused())) {
      this.#events.link({ state: 'refused' });
      return;
    }
    const delayMs = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** this.#failures++);
    const jittered = delayMs * (0.75 + Math.random() / 2);
    this.#events.link({ state: 'waiting', retryAt: Date.now() + jittered });
    this.#retry = setTimeout(() => this.open(), jittered);
  }

  /** A WebSocket does not tell why it was refused; a request does. */
  async #isRefused(): Promise<boolean> {
    try {
      const headers = { authorization: `Bearer ${this.#token}` };
      const { status } = await fetch('/token', { headers });
      return status === 401;
    } catch {
      return false;
    }
  }
}
