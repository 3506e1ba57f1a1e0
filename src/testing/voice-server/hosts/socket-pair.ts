// The two ends of a socket that uses no network. Each end receives the other's frames in the next microtask, in order.
// Time passes only because of a fault.
//
// SOCKET-PAIR-1. The client receives nothing before its `open` event or its refusal.
// SOCKET-PAIR-2. `close` is the last event that the client receives, and it is emitted once. The server is notified of
//     it afterwards.

import { Readable } from 'node:stream';
import type { WebSocketLike } from '../../../adapters/socket/web-socket.ts';
import type { FrameTaker, Link } from '../engine/outlet.ts';

export interface SocketPair {
  readonly client: WebSocketLike;
  /** The socket's end that the server uses. */
  readonly link: Link;
  /** Opens the client's socket and passes the client's frames to `taker`. Then calls `opened`. */
  accept(taker: FrameTaker, opened: () => void): void;
  /** Answers the client's upgrade with an HTTP status. */
  refuse(status: number, message: string): void;
}

type EventName = 'open' | 'pong' | 'message' | 'close' | 'error' | 'unexpected-response';
type Listener = (...args: readonly unknown[]) => void;

const CLOSED_WITHOUT_A_WORD = 1006;

export function createSocketPair(): SocketPair {
  const listeners = new Map<EventName, Listener[]>();
  let taker: FrameTaker | null = null;
  let isOver = false;
  /** Frames from the client that are held back by a slow network. */
  let held: (() => void)[] | null = null;
  let heldBytes = 0;

  const emit = (event: EventName, ...args: readonly unknown[]): void => {
    for (const listener of listeners.get(event) ?? []) listener(...args);
  };
  const soon = (task: () => void): void => {
    void Promise.resolve().then(() => {
      if (!isOver) task();
    });
  };
  const upwards = (task: () => void): void => {
    if (held === null) soon(task);
    else held.push(task);
  };
  const end = (code: number, reason: string): void => {
    isOver = true;
    emit('close', code, reason);
    taker?.lost(code);
  };

  const client: WebSocketLike = {
    get bufferedAmount() {
      return heldBytes;
    },
    on(event: EventName, listener: never) {
      const known = listeners.get(event);
      if (known === undefined) listeners.set(event, [listener]);
      else known.push(listener);
      return client;
    },
    send(text, onFlushed) {
      heldBytes += text.length;
      upwards(() => {
        heldBytes -= text.length;
        onFlushed?.();
        taker?.receive(text);
      });
    },
    ping: () => upwards(() => soon(() => emit('pong'))),
    close: (code) => upwards(() => end(code, '')),
    terminate: () => soon(() => end(CLOSED_WITHOUT_A_WORD, '')),
  };
  const link: Link = {
    send: (text) => soon(() => emit('message', text)),
    close: (code, reason) => soon(() => end(code, reason)),
    terminate: () => soon(() => end(CLOSED_WITHOUT_A_WORD, '')),
    hold(on) {
      const waiting = held ?? [];
      held = on ? waiting : null;
      if (!on) for (const task of waiting) soon(task);
    },
  };
  return {
    client,
    link,
    accept: (newTaker, opened) =>
      soon(() => {
        taker = newTaker;
        emit('open');
        opened();
      }),
    refuse: (status, message) =>
      soon(() => {
        const body = Readable.from([JSON.stringify({ error: { message } })]);
        const response = Object.assign(body, { statusCode: status });
        emit('unexpected-response', { destroy: client.terminate }, response);
      }),
  };
}
