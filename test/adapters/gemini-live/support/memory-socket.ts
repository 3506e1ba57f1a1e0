// An in-memory socket, with a server that the test controls. Its messages have the official types, so a change to the
// wire does not compile.

import type {
  WebSocketFactory,
  WebSocketLike,
  WebSocketOptions,
} from '../../../../src/adapters/socket/web-socket.ts';
import type { OfficialServerMessage } from '../../../../src/adapters/gemini-live/official.ts';

export type ServerSays = OfficialServerMessage;
/** A client message as it appears on the wire. */
export type Said = Readonly<Record<string, unknown>>;

/** The server's end of a connection. */
export class MemoryPeer {
  readonly url: string;
  readonly options: WebSocketOptions;
  /** All messages from the client. */
  readonly said: Said[] = [];
  /** Each frame as text. */
  readonly frames: string[] = [];
  #listeners = new Map<string, (...args: never[]) => void>();
  #taken = 0;
  isClosed = false;

  constructor(url: string, options: WebSocketOptions) {
    this.url = url;
    this.options = options;
  }

  readonly socket = ((): WebSocketLike => {
    const on = (event: string, listener: (...args: never[]) => void): void => {
      this.#listeners.set(event, listener);
    };
    return {
      bufferedAmount: 0,
      on,
      send: (text, onFlushed) => {
        this.frames.push(text);
        this.said.push(JSON.parse(text) as Said);
        onFlushed?.();
      },
      ping: () => {},
      close: (code) => this.close(code),
      terminate: () => {
        this.isClosed = true;
      },
    };
  })();

  open(): void {
    this.#emit('open');
  }

  says(message: ServerSays): void {
    this.saysRaw(JSON.stringify(message));
  }

  saysRaw(text: string): void {
    this.#emit('message', Buffer.from(text));
  }

  close(code: number, reason = ''): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#emit('close', code, Buffer.from(reason));
  }

  /** Returns the client's messages since the last call, except its audio. */
  news(): readonly Said[] {
    const news = this.said.slice(this.#taken);
    this.#taken = this.said.length;
    return news.filter((message) => !isSound(message));
  }

  #emit(event: string, ...args: unknown[]): void {
    this.#listeners.get(event)?.(...(args as never[]));
  }
}

function isSound(message: Said): boolean {
  return JSON.stringify(message).startsWith('{"realtimeInput":{"audio"');
}

export function memoryServer(): {
  readonly webSocket: WebSocketFactory;
  readonly peers: readonly MemoryPeer[];
} {
  const peers: MemoryPeer[] = [];
  return {
    peers,
    webSocket: (url, options) => {
      const peer = new MemoryPeer(url, options);
      peers.push(peer);
      return peer.socket;
    },
  };
}
