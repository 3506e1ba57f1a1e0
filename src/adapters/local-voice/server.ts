// The sockets: HTTP (or HTTPS) on the loopback interface, WebSocket upgrades on /v1/realtime, one
// RealtimeSession per connection.
//
// Owns: where it listens, whose key is right, limits of frames and connections. Does not:
// what is said (`realtime-session.ts`), or deal with strangers (`listen/guard.ts`).

import type { IncomingHttpHeaders } from 'node:http';
import type { WebSocket } from 'ws';
import type { Environment } from '../../actors/ports/environment.ts';
import { ConfigurationError, messageOf } from '../../values/errors.ts';
import { isLoopbackName, isSameSecret } from '../listen/access.ts';
import { answerRefusal, createGuard, type Verdict } from '../listen/guard.ts';
import { presentedKey, REALTIME_PROTOCOL } from './access.ts';
import type { RealtimeSession, RealtimeSessionOptions } from './realtime-session.ts';
import type { ServerEventBody } from './wire-events.ts';

/** The only interface of the server. */
const LOOPBACK = '127.0.0.1';
const PATH = '/v1/realtime';
/** The real server's limit for one append. */
const MAX_FRAME_BYTES = 15 * 1024 * 1024;
/** Sound waits while a client has this many unread bytes. */
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
  /** Creates the session of a new connection. */
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
  const { tls, maxConnections, environment, allowedOrigins } = options;
  const guard = await createGuard({
    name: 'localVoice',
    environment,
    tls,
    maxClients: maxConnections,
    isHost: isLoopbackName,
    isOrigin: (origin) => allowedOrigins.includes(origin),
    webSocket: {
      maxMessageBytes: MAX_FRAME_BYTES,
      subprotocol: REALTIME_PROTOCOL,
      keepAliveMs: KEEP_ALIVE_MS,
      upgrade: ({ request, target }): Verdict => {
        if (target.path !== PATH)
          return { type: 'refuse', refusal: { status: 404, message: `Expected ${PATH}.` } };
        const stranger = unauthorized(request.headers, options);
        if (stranger) return stranger;
        const model = target.query.get('model') ?? 'local-voice';
        return { type: 'open', open: (client) => connect(client, model, options) };
      },
    },
    request: ({ response }) =>
      answerRefusal(response, { status: 404, message: `Expected a WebSocket on ${PATH}.` }),
  });
  const { port } = await guard
    .listen({ port: options.port, host: LOOPBACK })
    .catch((cause: unknown) => {
      if (cause instanceof ConfigurationError) throw cause;
      const message = `localVoice could not listen on ${LOOPBACK}:${options.port}: ${messageOf(cause)}`;
      throw new ConfigurationError('LISTEN_FAILED', message, { cause });
    });
  return {
    port,
    url: `${tls === null ? 'ws' : 'wss'}://${LOOPBACK}:${port}${PATH}`,
    close: () => guard.close(),
  };
}

/** Like the real server: a client without a valid key gets an error on the open socket, which then closes. */
function unauthorized(
  headers: IncomingHttpHeaders,
  { apiKey, environment }: ServerOptions,
): Verdict | null {
  const key = presentedKey(headers);
  if (isSameSecret(key, apiKey)) return null;
  const code = key === null ? null : 'invalid_api_key';
  const message =
    key === null
      ? 'Missing bearer or basic authentication in header'
      : 'Incorrect API key provided: the key of a local voice server is minted when it starts.';
  const type = 'invalid_request_error';
  const event: ServerEventBody = { type: 'error', error: { type, code, message, param: null } };
  return {
    type: 'expel',
    tell: (client) => {
      client.send(JSON.stringify({ event_id: environment.ids.next('event'), ...event }));
      client.close(CLOSE_UNAUTHORIZED, code === null ? type : `${type}.${code}`);
    },
  };
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
  client.on('message', (data, isBinary) => {
    if (isBinary) session.receiveBinary();
    else session.receive((data as Buffer).toString('utf8'));
  });
  client.on('close', () => {
    session.close();
  });
  session.open();
}
