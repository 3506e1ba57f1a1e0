// A server on 127.0.0.1 that the test controls. Its messages have the official types, so a change to the wire does not
// compile. It logs the messages that it receives as official client events.

import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { RealtimeClientEvent, RealtimeServerEvent } from 'openai/resources/realtime/realtime';
import { WebSocketServer, type WebSocket } from 'ws';
import { createEventLog } from './event-log.ts';

type DistributiveOmit<Union, Key extends PropertyKey> = Union extends unknown
  ? Omit<Union, Key>
  : never;
/** An official server event; `event_id` is added. */
export type ServerEventBody = DistributiveOmit<RealtimeServerEvent, 'event_id'>;
type ClientEventType = RealtimeClientEvent['type'];

/** The server's end of a connection. */
export interface FakePeer {
  readonly socket: WebSocket;
  readonly request: IncomingMessage;
  readonly received: readonly RealtimeClientEvent[];
  /** Returns client events of this type one by one. */
  next<Type extends ClientEventType>(
    type: Type,
  ): Promise<Extract<RealtimeClientEvent, { type: Type }>>;
  send(event: ServerEventBody): void;
  sendRaw(text: string): void;
  /** Waits for session.update and answers it. */
  acceptSession(): Promise<void>;
}

export interface FakeServer {
  readonly url: string;
  /** Returns connections in the order in which they arrive. */
  nextPeer(): Promise<FakePeer>;
  close(): Promise<void>;
}

export interface FakeServerOptions {
  /** Answers the upgrade or leaves it unanswered. @defaultValue a WebSocket */
  readonly onUpgrade?: (request: IncomingMessage, socket: Duplex) => void;
}

export async function startFakeServer(options: FakeServerOptions = {}): Promise<FakeServer> {
  const peers = createEventLog<FakePeer>();
  const http = createServer((_, response) => response.writeHead(404).end());
  const sockets = new WebSocketServer({ noServer: true });
  const open = new Set<Duplex>();
  http.on('upgrade', (request, socket, head) => {
    open.add(socket);
    if (options.onUpgrade) options.onUpgrade(request, socket);
    else
      sockets.handleUpgrade(request, socket, head, (webSocket) =>
        peers.push(createPeer(webSocket, request)),
      );
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const { port } = http.address() as AddressInfo;
  return {
    url: `ws://127.0.0.1:${port}/v1/realtime`,
    nextPeer: () => peers.next('peer', (peer): peer is FakePeer => peer !== undefined),
    close: () =>
      new Promise((resolve) => {
        for (const socket of open) socket.destroy();
        http.close(() => resolve());
      }),
  };
}

function createPeer(socket: WebSocket, request: IncomingMessage): FakePeer {
  const log = createEventLog<RealtimeClientEvent>();
  let sent = 0;
  socket.on('message', (data: Buffer) =>
    log.push(JSON.parse(data.toString()) as RealtimeClientEvent),
  );
  socket.on('error', () => {});
  const peer: FakePeer = {
    socket,
    request,
    received: log.all,
    next: (type) =>
      log.next(
        type,
        (event): event is Extract<RealtimeClientEvent, { type: typeof type }> =>
          event.type === type,
      ),
    send: (event) => {
      sent += 1;
      socket.send(JSON.stringify({ event_id: `server_${sent}`, ...event }));
    },
    sendRaw: (text) => socket.send(text),
    async acceptSession() {
      peer.send({ type: 'session.created', session: { type: 'realtime' } });
      const { session } = await peer.next('session.update');
      peer.send({ type: 'session.updated', session });
    },
  };
  return peer;
}
