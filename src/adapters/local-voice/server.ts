// The sockets: HTTP (or HTTPS) on the loopback interface, WebSocket upgrades on
// /v1/realtime, one RealtimeSession for each connection.
//
// Owns: listening, access, limits of frames and connections, keep-alive. Does not:
// what is said (`realtime-session.ts`).

import { createServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { WebSocket } from 'ws';
import type { Environment } from '../../actors/ports/environment.ts';
import { chosenProtocol, forbiddenReason, presentedKey, sameKey } from './access.ts';
import { LOOPBACK, closeServer, listenOnLoopback, refuseUpgrade } from './loopback.ts';
import type { RealtimeSession, RealtimeSessionOptions } from './realtime-session.ts';
import { importPeer } from './speech/peer-packages.ts';
import type { ServerEventBody } from './wire-events.ts';

const PATH = '/v1/realtime';
/** The real server's limit for one append. */
const MAX_FRAME_BYTES = 15 * 1024 * 1024;
/** Sound waits while a client has this much unread. */
const MAX_UNREAD_BYTES = 1024 * 1024;
const UNREAD_POLL_MS = 20;
const KEEP_ALIVE_MS = 20_000;
const CLOSE_UNAUTHORIZED = 3000;

export interface ServerOptions {
  readonly port: number;
  readonly apiKey: string;
  readonly allowedOrigins: readonly string[];
  readonly maxConnections: number;
  readonly tls: { readonly key: string; readonly cert: string } | null;
  readonly environment: Environment;
  /** Makes the session of a new connection. */
  readonly createSession: (
    link: Pick<RealtimeSessionOptions, 'send' | 'whenReady' | 'model'>,
  ) => RealtimeSession;
}

export interface RunningServer {
  readonly port: number;
  readonly url: string;
  /** Closes every connection and the port. */
  close(): Promise<void>;
}

/**
 * Starts to listen.
 * @throws {ConfigurationError} `MISSING_DEPENDENCY` or `LISTEN_FAILED` (the port is taken)
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const ws = await importPeer('ws', () => import('ws'));
  const { tls, maxConnections } = options;
  const server: Server = tls === null ? createServer() : createTlsServer(tls);
  const sockets = new ws.WebSocketServer({
    noServer: true,
    maxPayload: MAX_FRAME_BYTES,
    perMessageDeflate: false,
    handleProtocols: chosenProtocol,
  });
  server.on('request', (_request, response) => {
    response.writeHead(404, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: { message: `Expected a WebSocket on ${PATH}.` } }));
  });
  server.on('upgrade', (request, socket, head) => {
    socket.on('error', () => socket.destroy());
    const url = new URL(request.url?.replace(/^\/+/, '/') ?? '/', 'http://localhost');
    if (url.pathname !== PATH) return refuseUpgrade(socket, '404 Not Found', `Expected ${PATH}.`);
    const forbidden = forbiddenReason(request.headers, options.allowedOrigins);
    if (forbidden !== null) return refuseUpgrade(socket, '403 Forbidden', forbidden);
    if (sockets.clients.size >= maxConnections) {
      const reason = `At most ${maxConnections} connections are served at once.`;
      return refuseUpgrade(socket, '503 Service Unavailable', reason);
    }
    sockets.handleUpgrade(request, socket, head, (client) => {
      admit(client, request, url.searchParams.get('model') ?? 'local-voice', options);
    });
  });
  const port = await listenOnLoopback(server, options.port, 'localVoice');
  return {
    port,
    url: `${tls === null ? 'ws' : 'wss'}://${LOOPBACK}:${port}${PATH}`,
    close: () => closeServer(server, sockets),
  };
}

/** As the real server: whoever has no valid key is told so on the open socket, which then closes. */
function admit(
  client: WebSocket,
  request: IncomingMessage,
  model: string,
  options: ServerOptions,
): void {
  // Of frames that are too long or malformed; `close` follows.
  client.on('error', () => undefined);
  const key = presentedKey(request.headers);
  if (key === null || !sameKey(key, options.apiKey)) {
    const code = key === null ? null : 'invalid_api_key';
    const message =
      key === null
        ? 'Missing bearer or basic authentication in header'
        : 'Incorrect API key provided: the key of a local voice server is minted when it starts.';
    const type = 'invalid_request_error';
    const event: ServerEventBody = { type: 'error', error: { type, code, message, param: null } };
    const eventId = options.environment.ids.next('event');
    client.send(JSON.stringify({ event_id: eventId, ...event }));
    client.close(CLOSE_UNAUTHORIZED, code === null ? type : `${type}.${code}`);
    return;
  }
  connect(client, model, options);
}

function connect(client: WebSocket, model: string, options: ServerOptions): void {
  const { scheduler } = options.environment;
  const isOpen = (): boolean => client.readyState === client.OPEN;
  const session = options.createSession({
    model,
    send: (text) => {
      if (isOpen()) client.send(text);
    },
    whenReady: async () => {
      let delayMs = 0;
      do {
        const waitMs = delayMs;
        await new Promise<void>((resolve) => {
          scheduler.schedule(resolve, waitMs);
        });
        delayMs = UNREAD_POLL_MS;
      } while (isOpen() && client.bufferedAmount > MAX_UNREAD_BYTES);
    },
  });
  const stopPinging = keepAlive(client, options.environment);
  client.on('message', (data, isBinary) => {
    if (isBinary) session.receiveBinary();
    else session.receive((data as Buffer).toString('utf8'));
  });
  client.on('close', () => {
    stopPinging();
    session.close();
  });
  session.open();
}

/** A client that does not answer a ping until the next is gone. */
function keepAlive(client: WebSocket, { scheduler }: Environment): () => void {
  let answered = true;
  let cancel: () => void;
  client.on('pong', () => {
    answered = true;
  });
  const beat = (): void => {
    if (!answered) return client.terminate();
    answered = false;
    client.ping();
    cancel = scheduler.schedule(beat, KEEP_ALIVE_MS);
  };
  cancel = scheduler.schedule(beat, KEEP_ALIVE_MS);
  return () => cancel();
}
