// A server on the loopback interface: listening, refusing an upgrade, closing everything.

import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { WebSocketServer } from 'ws';
import { ConfigurationError, messageOf } from '../../errors.ts';

/** The only interface that is listened on. */
export const LOOPBACK = '127.0.0.1';
const CLOSE_GOING_AWAY = 1001;

/**
 * Listens on this port, or on a free one for 0; `who` is named in the error.
 * @throws {ConfigurationError} `LISTEN_FAILED` (the port is taken)
 */
export async function listenOnLoopback(server: Server, port: number, who: string): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => {
      const message = `${who} could not listen on ${LOOPBACK}:${port}: ${messageOf(cause)}`;
      reject(new ConfigurationError('LISTEN_FAILED', message, { cause }));
    });
    server.listen(port, LOOPBACK, resolve);
  });
  return (server.address() as AddressInfo).port;
}

/** Answers an upgrade with a status such as `404 Not Found`, and a message in JSON. */
export function refuseUpgrade(socket: Duplex, status: string, message: string): void {
  const body = JSON.stringify({ error: { message } });
  socket.end(
    `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n` +
      `connection: close\r\n\r\n${body}`,
  );
}

/** Resolves when every connection and the port are closed. */
export async function closeServer(server: Server, sockets: WebSocketServer): Promise<void> {
  for (const client of sockets.clients) {
    client.close(CLOSE_GOING_AWAY, 'The server is closing.');
    // Whoever does not answer the closing handshake is not waited for.
    client.terminate();
  }
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
