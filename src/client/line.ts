// One connection to a server, in two forms: a WebSocket, which carries sound too, and a stream of server-sent events
// with a POST for what goes up, where WebSockets are not to be had.
//
// Owns:     one connection, from its opening to its end.
// Does not: connect again (session-client.ts), or know what a frame means.
//
// Invariants
//   LINE-1. `closed` is called once, with the server's last words if it had any; nothing is called after it.
//   LINE-2. Frames leave in the order of `send`. Sound that the network does not take is dropped; frames are not.

import {
  PROTOCOL_VERSION,
  SUBPROTOCOL,
  TOKEN_PREFIX,
  valueOfJson,
  type ClientFrame,
  type HelloFrame,
  type NoticeFrame,
  type ServerFrame,
} from './protocol.ts';
import type { Watchable } from './watchable.ts';

/** The callbacks of a line. */
export interface LineEvents {
  /** The JSON value of a text frame. */
  frame(value: unknown): void;
  sound(bytes: Uint8Array): void;
  /** `reason`: of a refusal before the first frame; null: the connection failed or was lost. */
  closed(refusal: { readonly code: string; readonly message: string } | null): void;
}

export interface Line {
  readonly kind: 'websocket' | 'stream';
  send(frames: readonly ClientFrame[]): void;
  /** False if the sound was dropped. Kept sound comes at once, and is not dropped because of its amount. */
  sendSound(packet: Uint8Array<ArrayBuffer>, isKept?: boolean): boolean;
  close(): void;
}

/** The parts of a connection that the sound of a client needs. */
export interface VoiceLine {
  notice(frame: NoticeFrame): void;
  sendSound(packet: Uint8Array<ArrayBuffer>, isKept?: boolean): boolean;
  readonly onOpen: Watchable<void>;
  readonly onFrame: Watchable<ServerFrame>;
  readonly onSound: Watchable<Uint8Array>;
  readonly onLost: Watchable<void>;
  /** Whether this client is the one that speaks and listens. */
  ownsVoice(): boolean;
  /** Receives the errors of listeners. */
  readonly threw: (error: unknown) => void;
}

export interface LineTarget {
  /** The address of the server's handler, `http:` or `https:`. */
  readonly url: URL;
  readonly token: string | null;
  readonly hello: HelloFrame;
}

/** The used part of a `WebSocket`. */
export interface SocketLike {
  binaryType: string;
  readonly readyState: number;
  readonly bufferedAmount: number;
  send(data: string | Uint8Array<ArrayBuffer>): void;
  close(code?: number, reason?: string): void;
  addEventListener(type: string, listener: (event: never) => void): void;
}

export type SocketClass = new (url: URL, protocols: string[]) => SocketLike;

/** `WebSocket.OPEN` */
const OPEN = 1;
/** More than a second of sound at 24 kHz: the network does not take it. */
const MAX_UNSENT_SOUND_BYTES = 65_536;
const MAX_STREAM_FRAME_CHARS = 32 * 1024 * 1024;
/** The most that one POST carries, unless one frame alone is longer. */
const MAX_POST_CHARS = 16_000;
const STATUS_UNAUTHORIZED = 401;
const STATUS_FORBIDDEN = 403;

/** Opens a WebSocket. Throws what its constructor throws. */
export function openSocketLine(
  Socket: SocketClass,
  { url, token, hello }: LineTarget,
  events: LineEvents,
): Line {
  const address = new URL(url);
  address.protocol = url.protocol === 'https:' || url.protocol === 'wss:' ? 'wss:' : 'ws:';
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
  socket.addEventListener('open', () => write([hello]));
  socket.addEventListener('message', ({ data }: { readonly data: unknown }) => {
    if (isOver) return;
    if (typeof data === 'string') events.frame(valueOfJson(data));
    else if (data instanceof ArrayBuffer) events.sound(new Uint8Array(data));
  });
  let mostUnsent = MAX_UNSENT_SOUND_BYTES;
  // `close` follows an error.
  socket.addEventListener('error', () => undefined);
  socket.addEventListener('close', end);
  return {
    kind: 'websocket',
    send: write,
    sendSound(packet, isKept = false) {
      const { bufferedAmount } = socket;
      // What is said meanwhile stands behind the kept sound, until that has left.
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

/** Opens a stream of events. */
export function openStreamLine(
  fetch: typeof globalThis.fetch,
  { url, token, hello }: LineTarget,
  events: LineEvents,
): Line {
  const address = new URL(url);
  address.protocol = url.protocol === 'https:' || url.protocol === 'wss:' ? 'https:' : 'http:';
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
  const end: LineEvents['closed'] = (refusal) => {
    if (isOver) return;
    isOver = true;
    controller.abort();
    events.closed(refusal);
  };
  const read = async (): Promise<void> => {
    const response = await fetch(down, {
      headers: { ...authorization, accept: 'text/event-stream' },
      credentials: 'include',
      cache: 'no-store',
      signal,
    });
    const { status, body } = response;
    if (status === STATUS_UNAUTHORIZED || status === STATUS_FORBIDDEN)
      return end({
        code: 'UNAUTHORIZED',
        message: `The server refused the connection (${status})`,
      });
    if (!response.ok || !body) return end(null);
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
      const { ok } = await fetch(address, {
        method: 'POST',
        headers: { ...authorization, 'content-type': 'application/json' },
        credentials: 'include',
        body: JSON.stringify({ client: hello.client, frames }),
        signal,
      });
      if (!ok) end(null);
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

function base64url(text: string): string {
  let binary = '';
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}
