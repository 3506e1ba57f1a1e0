// The socket of a connection. It comes from the `ws` package, which is loaded when the first transport is created, or
// from the app's factory.

import { createRequire } from 'node:module';
import type { IncomingMessage } from 'node:http';
import { ConfigurationError } from '../../values/errors.ts';

/** The part of the `ws` package's `WebSocket` that the adapters use. */
export interface WebSocketLike {
  /** The number of bytes that were passed to `send` but not yet to the operating system. */
  readonly bufferedAmount: number;
  /** Like `on` of `ws`: receives the opening, the provider's messages and pongs, and the end of the connection. */
  on(event: 'open' | 'pong', listener: () => void): unknown;
  on(event: 'message', listener: (data: { toString(): string }) => void): unknown;
  on(event: 'close', listener: (code: number, reason: { toString(): string }) => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(
    event: 'unexpected-response',
    listener: (request: { destroy(): unknown }, response: IncomingMessage) => void,
  ): unknown;
  /** `onFlushed`: called when the bytes have been sent, or when it is certain that they will not be sent. */
  send(text: string, onFlushed?: (error?: Error) => void): void;
  /** Sends a ping. */
  ping(): void;
  /** Closes the socket with a code. */
  close(code: number): void;
  /** Terminates the connection immediately. */
  terminate(): void;
}

/** A transport's options for opening its WebSocket. */
export interface WebSocketOptions {
  /** The headers of the upgrade request. */
  readonly headers: Readonly<Record<string, string>>;
  /** The maximum message size, in bytes. */
  readonly maxPayload: number;
  /** Whether messages are compressed. */
  readonly perMessageDeflate: boolean;
}

/** Opens a socket, like `(url, options) => new WebSocket(url, options)` with the `ws` package. */
export type WebSocketFactory = (url: string, options: WebSocketOptions) => WebSocketLike;

type Require = (id: string) => unknown;
type WebSocketClass = new (
  url: string,
  options: WebSocketOptions,
) => Omit<WebSocketLike, 'send'> & {
  send(data: string | Uint8Array, ...rest: readonly unknown[]): void;
};

/** Informs `ws` that the bytes are text. */
const AS_TEXT = { binary: false };

/**
 * Returns the factory of the `ws` package. `transportName` appears in the error.
 * @throws {ConfigurationError} `MISSING_DEPENDENCY` if it is not installed.
 */
export function loadWebSocketFactory(
  transportName: string,
  require: Require = createRequire(import.meta.url),
): WebSocketFactory {
  let WebSocket: WebSocketClass;
  try {
    WebSocket = require('ws') as WebSocketClass;
  } catch (cause) {
    throw new ConfigurationError(
      'MISSING_DEPENDENCY',
      `${transportName} needs the package \`ws\`: run \`npm install ws\`, or pass \`webSocket\``,
      { cause },
    );
  }
  class TextSocket extends WebSocket {
    /** A Buffer is masked and sent in a single write, but a string needs two writes. */
    override send(text: string, onFlushed?: (error?: Error) => void): void {
      super.send(Buffer.from(text), AS_TEXT, onFlushed);
    }
  }
  return (url, options) => new TextSocket(url, options);
}

const MAX_REFUSAL_LENGTH = 4096;

/** Returns the beginning of the response body of a refused upgrade. Never rejects. */
export function readRefusal(response: IncomingMessage): Promise<string> {
  return new Promise((resolve) => {
    let body = '';
    const finish = (): void => resolve(body.slice(0, MAX_REFUSAL_LENGTH));
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => {
      body += chunk;
      if (body.length >= MAX_REFUSAL_LENGTH) finish();
    });
    response.on('end', finish);
    response.on('error', finish);
    response.on('close', finish);
  });
}
