// The page's end of the WebSocket, without a page.

import { WebSocket, type ClientOptions } from 'ws';
import {
  SUBPROTOCOL,
  TOKEN_PREFIX,
  type ClientMessage,
  type ServerMessage,
} from '../../../examples/voice-demo/shared/protocol.ts';

interface Address {
  readonly port: number;
  readonly token: string;
}

export interface DialOptions {
  readonly token?: string;
  readonly origin?: string | null;
  readonly path?: string;
  readonly host?: string;
  readonly protocols?: readonly string[];
}

export class PageSocket {
  readonly socket: WebSocket;
  /** Resolves with the code when the connection ends. */
  readonly closed: Promise<number>;
  readonly #received: (ServerMessage | ArrayBuffer)[] = [];
  #wake: () => void = () => undefined;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.binaryType = 'arraybuffer';
    socket.on('message', (data: ArrayBuffer, isBinary: boolean) => {
      this.#received.push(
        isBinary ? data : (JSON.parse(new TextDecoder().decode(data)) as ServerMessage),
      );
      this.#wake();
    });
    this.closed = new Promise((resolve) => {
      socket.on('close', (code: number) => {
        resolve(code);
        this.#wake();
      });
    });
    socket.on('error', () => undefined);
  }

  /** Resolves with a socket, or with the HTTP status of the refusal. */
  static dial(
    { port, token: ours }: Address,
    options: DialOptions = {},
  ): Promise<PageSocket | number> {
    const { token = ours, origin = `http://127.0.0.1:${port}`, path = '/client', host } = options;
    const settings: ClientOptions = {
      ...(origin !== null && { origin }),
      ...(host !== undefined && { headers: { host } }),
    };
    const protocols = options.protocols ?? [SUBPROTOCOL, `${TOKEN_PREFIX}${token}`];
    const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, [...protocols], settings);
    const page = new PageSocket(socket);
    return new Promise((resolve, reject) => {
      socket.on('open', () => resolve(page));
      socket.on('unexpected-response', (_request, response) => resolve(response.statusCode ?? 0));
      socket.on('error', reject);
    });
  }

  static async open(address: Address, options?: DialOptions): Promise<PageSocket> {
    const page = await PageSocket.dial(address, options);
    if (typeof page === 'number') throw new Error(`refused with ${page}`);
    await page.next('welcome');
    return page;
  }

  send(message: ClientMessage | string): void {
    this.socket.send(typeof message === 'string' ? message : JSON.stringify(message));
  }

  sendAudio(bytes: Uint8Array): void {
    this.socket.send(bytes);
  }

  /** The next message of this type; those before it are dropped. Null when the connection ended first. */
  async next<T extends ServerMessage['type']>(
    type: T,
  ): Promise<Extract<ServerMessage, { type: T }>> {
    const message = await this.#take(
      (each) => !(each instanceof ArrayBuffer) && each.type === type,
    );
    return message as Extract<ServerMessage, { type: T }>;
  }

  async nextAudio(): Promise<ArrayBuffer> {
    return (await this.#take((each) => each instanceof ArrayBuffer)) as ArrayBuffer;
  }

  /** What has come and was not taken. */
  get received(): readonly (ServerMessage | ArrayBuffer)[] {
    return this.#received;
  }

  async #take(fits: (message: ServerMessage | ArrayBuffer) => boolean) {
    for (;;) {
      const index = this.#received.findIndex(fits);
      if (index >= 0) return this.#received.splice(0, index + 1).at(-1);
      if (this.socket.readyState === WebSocket.CLOSED) throw new Error('the connection ended');
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
