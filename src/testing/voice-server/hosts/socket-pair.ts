// Two ends of a socket without a network: what one end sends the other gets in the
// microtask after, in order. No time passes unless a fault makes it pass.
//
// SOCKET-PAIR-1. The client hears nothing before its `open` or its refusal.
// SOCKET-PAIR-2. `close` is the last event of the client and comes once; then the server has lost it, too.

import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { WebSocketLike } from '../../../adapters/socket/web-socket.ts';
import type { Link } from '../engine/outlet.ts';

/** Who takes the frames of a client. */
export interface FrameTaker {
  receive(text: string): void;
  /** The client is gone, with this close code. */
  lost(code: number): void;
}

export interface SocketPair {
  readonly client: WebSocketLike;
  /** For the connection of the server. */
  readonly link: Link;
  /** The client sees the socket open; frames go to `taker`. Then `opened` is called. */
  accept(taker: FrameTaker, opened: () => void): void;
  /** The client sees its upgrade answered with an HTTP status. */
  refuse(status: number, message: string): void;
}

type EventName = 'open' | 'pong' | 'message' | 'close' | 'error' | 'unexpected-response';
type Listener = (...args: readonly unknown[]) => void;

const CLOSED_WITHOUT_A_WORD = 1006;

export function createSocketPair(): SocketPair {
  const listeners = new Map<EventName, Listener[]>();
  let taker: FrameTaker | null = null;
  let isOver = false;
  /** What the client sends waits while the network is slow. */
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
        const response = Object.assign(body, { statusCode: status }) as unknown as IncomingMessage;
        emit('unexpected-response', { destroy: client.terminate }, response);
      }),
  };
}
