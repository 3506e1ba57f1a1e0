// One connection to a server. It is a WebSocket, which can also carry audio. If WebSockets are unavailable, it is a
// stream of server-sent events, and the client sends its frames as POST requests.
//
// Owns:     one connection, from opening to closing.
// Does not: reconnect (`session-client.ts`) or interpret frames.
//
// Invariants
//   LINE-1. `closed` is called once, with the server's reason if there is one. No other callback is called after that.
//   LINE-2. Frames are sent in the order of the `send` calls. The line drops audio that the network cannot send in
//       time. It never drops other frames.

import {
  PROTOCOL_VERSION,
  SUBPROTOCOL,
  TOKEN_PREFIX,
  valueOfJson,
  type ClientFrame,
  type ClientRole,
  type HelloFrame,
  type NoticeFrame,
  type ServerFrame,
} from './protocol.ts';
import { ConfigurationError } from '../values/errors.ts';
import { shown } from '../values/plain-checks.ts';
import type { Watchable } from './watchable.ts';

/** The state of the connection to the server. */
export interface ClientStatus {
  /** The current state of the connection. */
  readonly state: 'connecting' | 'open' | 'waiting' | 'closed';
  /** The transport in use; null if there is none. */
  readonly transport: 'websocket' | 'stream' | null;
  /**
   * The time of the next attempt while the state is `waiting`, in milliseconds since 1970; null until the page is
   * visible.
   */
  readonly retryAt: number | null;
  /** The server's reason for losing or refusing the connection, if it gave one. */
  readonly reason: { readonly code: string; readonly message: string } | null;
  /** The identity that `authorize` returned; null before the first connection. */
  readonly user: string | null;
  /** The role that the server assigned to this client; null until the server answers. */
  readonly role: ClientRole | null;
  /** The id of the session; null until the server answers. */
  readonly sessionId: string | null;
  /** Whether the session has a voice and this connection can carry audio. */
  readonly hasVoice: boolean;
  /** Whether the session speaks to this client and listens to its microphone. */
  readonly ownsVoice: boolean;
}

/** The state before the first connection. */
export const noStatus: ClientStatus = Object.freeze({
  state: 'connecting',
  transport: null,
  retryAt: null,
  reason: null,
  user: null,
  role: null,
  sessionId: null,
  hasVoice: false,
  ownsVoice: false,
});

export interface LineReason {
  readonly code: string;
  readonly message: string;
}

/** The callbacks of a line. */
export interface LineEvents {
  /** Receives the parsed JSON of a text frame. */
  frame(value: unknown): void;
  sound(bytes: Uint8Array): void;
  /** Called before a WebSocket sends its first frame. */
  opened?(): void;
  /** `reason`: the server's response, if there was one. `isFinal`: another attempt would get the same response. */
  closed(reason: LineReason | null, isFinal?: boolean): void;
}

export interface Line {
  readonly kind: 'websocket' | 'stream';
  send(frames: readonly ClientFrame[]): void;
  /** Returns false if the audio was dropped. Buffered audio is sent in one burst and is never dropped for its size. */
  sendSound(packet: Uint8Array<ArrayBuffer>, isKept?: boolean): boolean;
  close(): void;
}

/** The parts of a connection that the client's audio needs. */
export interface VoiceLine {
  notice(frame: NoticeFrame): void;
  sendSound(packet: Uint8Array<ArrayBuffer>, isKept?: boolean): boolean;
  readonly onOpen: Watchable<void>;
  readonly onFrame: Watchable<ServerFrame>;
  readonly onSound: Watchable<Uint8Array>;
  readonly onLost: Watchable<void>;
  /** Whether the session speaks to this client and listens to its microphone. */
  ownsVoice(): boolean;
  /** Called with errors that listeners throw. */
  readonly threw: (error: unknown) => void;
}

export interface LineTarget {
  /** The URL of the server's handler, `http:` or `https:`. */
  readonly url: URL;
  readonly token: string | null;
  readonly hello: HelloFrame;
}

/** The part of the `WebSocket` interface that the client uses. */
export interface SocketLike {
  /** Like `WebSocket.binaryType`. The client sets it to `arraybuffer`. */
  binaryType: string;
  /** Like `WebSocket.readyState`. The client sends only while it is 1, `OPEN`. */
  readonly readyState: number;
  /** Like `WebSocket.bufferedAmount`. If it grows too large, the client drops microphone audio. */
  readonly bufferedAmount: number;
  /** Like `WebSocket.send`. Commands are sent as text, and the microphone's audio as binary data. */
  send(data: string | Uint8Array<ArrayBuffer>): void;
  /** Like `WebSocket.close`. */
  close(code?: number, reason?: string): void;
  /** Like `WebSocket.addEventListener`. The client listens for `open`, `message` and `close`. */
  addEventListener(type: string, listener: (event: never) => void): void;
}

/** The `WebSocket` class that a client uses. */
export type SocketClass = new (url: URL, protocols: string[]) => SocketLike;

/** `WebSocket.OPEN` */
const OPEN = 1;
/** More than one second of audio at 24 kHz. A larger backlog means that the network is too slow for live audio. */
const MAX_UNSENT_SOUND_BYTES = 65_536;
const MAX_STREAM_FRAME_CHARS = 32 * 1024 * 1024;
/** The maximum size of one POST. A single longer frame is sent anyway. */
const MAX_POST_CHARS = 16_000;
const STATUS_UNAUTHORIZED = 401;
const STATUS_FORBIDDEN = 403;

const isUnknown = (status: number): boolean =>
  status === STATUS_UNAUTHORIZED || status === STATUS_FORBIDDEN;

const isSafe = ({ protocol }: URL): boolean => protocol === 'https:' || protocol === 'wss:';

/** Returns whether a client may follow the server to another URL without exposing its token. */
export function mayDetour(to: URL, from: URL): boolean {
  return isSafe(to) || (!isSafe(from) && (to.protocol === 'http:' || to.protocol === 'ws:'));
}

/** @throws {ConfigurationError} `INVALID_URL` */
export function addressOf(url: string | URL): URL {
  const { location } = globalThis as { readonly location?: { readonly href: string } };
  const address = URL.parse(String(url), location?.href);
  if (address && /^(?:http|ws)s?:$/.test(address.protocol)) return address;
  const hint =
    address === null && location === undefined
      ? ' (a path is one of a page; a server that renders the page connects to nothing: connect in the browser only)'
      : '';
  throw new ConfigurationError(
    'INVALID_URL',
    `connect(options): expected \`url\` to be an address of http:, https:, ws: or wss:, got ${shown(String(url))}${hint}`,
  );
}

/** Opens a WebSocket. Throws whatever the WebSocket constructor throws. */
export function openSocketLine(
  Socket: SocketClass,
  { url, token, hello }: LineTarget,
  events: LineEvents,
): Line {
  const address = new URL(url);
  address.protocol = isSafe(url) ? 'wss:' : 'ws:';
  const protocols = [SUBPROTOCOL, ...(token === null ? [] : [TOKEN_PREFIX + base64url(token)])];
  const socket = new Socket(address, protocols);
  socket.binaryType = 'arraybuffer';
  let isOver = false;
  const end = (): void => {
    if (isOver) return;
    isOver = true;
    events.closed(null);
  };
  const write = (frames: readonly ClientFrame[]): void => {
    if (socket.readyState !== OPEN) return;
    for (const frame of frames) socket.send(JSON.stringify(frame));
  };
  socket.addEventListener('open', () => {
    if (isOver) return;
    events.opened?.();
    write([hello]);
  });
  socket.addEventListener('message', ({ data }: { readonly data: unknown }) => {
    if (isOver) return;
    if (typeof data === 'string') events.frame(valueOfJson(data));
    else if (data instanceof ArrayBuffer) events.sound(new Uint8Array(data));
  });
  let mostUnsent = MAX_UNSENT_SOUND_BYTES;
  // A `close` event follows the error.
  socket.addEventListener('error', () => undefined);
  socket.addEventListener('close', end);
  return {
    kind: 'websocket',
    send: write,
    sendSound(packet, isKept = false) {
      const { bufferedAmount } = socket;
      // Live audio waits until the buffered audio has been sent.
      if (isKept) mostUnsent = bufferedAmount + MAX_UNSENT_SOUND_BYTES;
      else if (bufferedAmount <= MAX_UNSENT_SOUND_BYTES) mostUnsent = MAX_UNSENT_SOUND_BYTES;
      if (socket.readyState !== OPEN || bufferedAmount > mostUnsent) return false;
      socket.send(packet);
      return true;
    },
    close() {
      isOver = true;
      socket.close();
    },
  };
}

/** Opens a stream of server-sent events. */
export function openStreamLine(
  fetch: typeof globalThis.fetch,
  { url, token, hello }: LineTarget,
  events: LineEvents,
): Line {
  const address = new URL(url);
  address.protocol = isSafe(url) ? 'https:' : 'http:';
  const down = new URL(address);
  down.searchParams.set('v', String(PROTOCOL_VERSION));
  down.searchParams.set('client', hello.client);
  if (hello.after) {
    down.searchParams.set('epoch', hello.after.epoch);
    down.searchParams.set('seq', String(hello.after.seq));
  }
  const controller = new AbortController();
  const { signal } = controller;
  const authorization: Record<string, string> =
    token === null ? {} : { authorization: `Bearer ${token}` };
  let isOver = false;
  const end: LineEvents['closed'] = (reason, isFinal) => {
    if (isOver) return;
    isOver = true;
    controller.abort();
    events.closed(reason, isFinal);
  };
  const read = async (): Promise<void> => {
    const response = await fetch(down, {
      headers: { ...authorization, accept: 'text/event-stream' },
      credentials: 'include',
      cache: 'no-store',
      signal,
    });
    const { status, body } = response;
    if (!response.ok) return end(await reasonOf(response), isUnknown(status));
    const type = response.headers.get('content-type') ?? '';
    if (!body || !type.startsWith('text/event-stream'))
      return end({
        code: 'CONNECT_FAILED',
        message: `Expected a stream of events from ${address.origin}${address.pathname}, got ${type || 'nothing'}`,
      });
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done || isOver) return end(null);
      const blocks = `${rest}${value}`.split('\n\n');
      rest = blocks.pop() ?? '';
      if (rest.length > MAX_STREAM_FRAME_CHARS) return end(null);
      for (const block of blocks)
        if (block.startsWith('data: ') && !isOver) events.frame(valueOfJson(block.slice(6)));
    }
  };
  void read().catch(() => end(null));

  let waiting: ClientFrame[] = [];
  let isPosting = false;
  const post = async (): Promise<void> => {
    if (isPosting) return;
    isPosting = true;
    while (waiting.length > 0 && !isOver) {
      const frames: ClientFrame[] = [];
      let chars = 0;
      for (const frame of waiting) {
        chars += JSON.stringify(frame).length;
        if (frames.length > 0 && chars > MAX_POST_CHARS) break;
        frames.push(frame);
      }
      waiting = waiting.slice(frames.length);
      const response = await fetch(address, {
        method: 'POST',
        headers: { ...authorization, 'content-type': 'application/json' },
        credentials: 'include',
        body: JSON.stringify({ client: hello.client, frames }),
        signal,
      });
      if (!response.ok) end(await reasonOf(response));
    }
    isPosting = false;
  };
  return {
    kind: 'stream',
    send(frames) {
      waiting.push(...frames);
      void post().catch(() => end(null));
    },
    sendSound: () => false,
    close() {
      isOver = true;
      controller.abort();
    },
  };
}

/** Returns the reason for the server's refusal. A proxy's refusal is not JSON. */
async function reasonOf(response: Response): Promise<LineReason> {
  const { status } = response;
  const { error } = Object(valueOfJson(await response.text())) as { readonly error?: unknown };
  const { code, message } = Object(error) as {
    readonly code?: unknown;
    readonly message?: unknown;
  };
  return {
    code: typeof code === 'string' ? code : isUnknown(status) ? 'UNAUTHORIZED' : 'CONNECT_FAILED',
    message: `The server refused ${isUnknown(status) ? 'the connection' : 'a request'} (${status})${typeof message === 'string' ? `: ${message}` : ''}`,
  };
}

function base64url(text: string): string {
  let binary = '';
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}
