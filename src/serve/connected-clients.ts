// The clients that are connected to the sessions of a server, over a WebSocket or a stream: a request becomes an identity, or
// a refusal, and a client is found by the name that it has over all its connections.
//
// Owns:     the clients, the streams by their names.
// Does not: accept sockets (serve.ts does in Node.js, `offstage/cloudflare` in a Durable Object), or find the session
//           of a client (they do).
//
// Invariants
//   SERVE-1. No client is served under a foreign Host or Origin, or without an identity of `authorize`.
//   SERVE-2. Nothing that a client sends throws out of a handler, or ends the process.

import { bearerToken, offeredProtocols, protocolToken } from '../adapters/listen/access.ts';
import {
  readText,
  refusal,
  webHandlers,
  type Reachable,
  type WebHandlers,
} from '../adapters/listen/web-requests.ts';
import {
  PROTOCOL_VERSION,
  readPostedFrames,
  SUBPROTOCOL,
  TOKEN_PREFIX,
  valueOfJson,
  type HelloFrame,
  type Position,
} from '../client/protocol.ts';
import { CapacityError } from '../values/errors.ts';
import {
  checkedIdentity,
  type AuthorizeRequest,
  type CheckedServe,
  type ServedIdentity,
} from './options.ts';
import { ServedClient, type Channel, type ClientOwner } from './served-client.ts';
import { openStream } from './stream-channel.ts';

const MAX_TOKEN_CHARS = 8_192;

/** The first and last frame to a client without an identity. A page is not told the status of an upgrade that fails. */
export const unauthorized = {
  type: 'bye',
  code: 'UNAUTHORIZED',
  message: 'The server does not know this client',
  retry: false,
} as const;

/** The server that they are connected to. */
export interface ConnectedClientsOptions {
  /** The name of the server in errors. */
  readonly name: string;
  readonly reachable: Reachable;
  greeted(client: ServedClient, hello: HelloFrame): void;
}

/** The decision on an upgrade. `expel`: the open socket says so. */
export type Admission =
  | { readonly type: 'open'; readonly identity: ServedIdentity }
  | { readonly type: 'expel' }
  | { readonly type: 'refuse'; readonly status: number; readonly message: string };

export class ConnectedClients implements ClientOwner {
  readonly web: WebHandlers;
  readonly environment;
  readonly limits;
  readonly clients = new Set<ServedClient>();
  readonly #options: CheckedServe;
  readonly #server: ConnectedClientsOptions;
  /** The clients of streams, by their name: the receivers of POSTs. */
  readonly #streams = new Map<string, ServedClient>();
  #isClosed = false;

  constructor(options: CheckedServe, server: ConnectedClientsOptions) {
    this.#options = options;
    this.#server = server;
    this.environment = options.environment;
    this.limits = options.limits;
    this.web = webHandlers({
      name: server.name,
      path: options.path,
      reachable: server.reachable,
      methods: ['GET', 'POST'],
      scheduler: options.environment.scheduler,
      maxBytes: options.limits.maxMessageBytes,
      answer: (request, url) => this.#answer(request, url),
      onError: options.onError,
    });
  }

  /** Decides on an upgrade whose Host and Origin are served. */
  async admit(headers: Headers, url: URL): Promise<Admission> {
    const offered = { 'sec-websocket-protocol': headers.get('sec-websocket-protocol') ?? '' };
    if (!offeredProtocols(offered).includes(SUBPROTOCOL))
      return refuse(400, `Expected the subprotocol ${SUBPROTOCOL}`);
    if (this.#isClosed) return refuse(503, 'The server is closing');
    const carried = tokenOf(protocolToken(offered, TOKEN_PREFIX));
    const identity = await this.#identify(headers, url, 'websocket', carried);
    return identity ? { type: 'open', identity } : { type: 'expel' };
  }

  opened(channel: Channel, identity: ServedIdentity): ServedClient {
    const client = new ServedClient(channel, identity, this);
    this.clients.add(client);
    return client;
  }

  /** Sends everybody away, who may connect again. */
  close(): void {
    this.#isClosed = true;
    for (const client of this.clients)
      client.bye('SERVER_CLOSING', 'The server is closing', { retry: true });
  }

  // The owner of the clients

  greeted(client: ServedClient, hello: HelloFrame): void {
    if (hello.v !== PROTOCOL_VERSION) {
      const message = `Expected version ${PROTOCOL_VERSION} of the protocol, got ${hello.v}`;
      return client.bye('PROTOCOL_VERSION', message);
    }
    this.#server.greeted(client, hello);
  }

  gone(client: ServedClient): void {
    this.clients.delete(client);
    const { clientId } = client;
    if (clientId !== null && this.#streams.get(clientId) === client) this.#streams.delete(clientId);
  }

  cutOff({ identity }: ServedClient, code: string, message: string): void {
    const { user, sessionId } = identity;
    this.#options.onError(
      new CapacityError('CLIENT_CUT_OFF', `${code}: ${message}`),
      `${this.#server.name}: client of ${user} in ${sessionId}`,
    );
  }

  async #identify(
    headers: Headers,
    url: URL,
    transport: AuthorizeRequest['transport'],
    carried: string | null = null,
  ): Promise<ServedIdentity | null> {
    const token = carried ?? bearerToken({ authorization: headers.get('authorization') ?? '' });
    const sessionId = url.searchParams.get('session');
    return checkedIdentity(
      await this.#options.authorize({ token, sessionId, headers, url, transport }),
    );
  }

  // Web requests

  async #answer(request: Request, url: URL): Promise<Response> {
    if (this.#isClosed) return refusal(503, 'The server is closing');
    const identity = await this.#identify(request.headers, url, 'stream');
    if (!identity) return refusal(401, unauthorized.message);
    return request.method === 'GET'
      ? this.#stream(request, url, identity)
      : this.#posted(request, identity);
  }

  #stream(request: Request, url: URL, identity: ServedIdentity): Response {
    if (this.clients.size >= this.limits.clients)
      return refusal(503, `At most ${this.limits.clients} clients are served at once`);
    const { response, channel, whenClosed } = openStream(this.limits.maxUnsentBytes);
    const client = this.opened(channel, identity);
    whenClosed(() => client.left());
    request.signal.addEventListener('abort', () => client.left(), { once: true });
    const name = url.searchParams.get('client');
    client.receivedFrame({
      type: 'hello',
      v: Number(url.searchParams.get('v')),
      client: name ?? '',
      ...afterOf(url.searchParams),
    });
    if (name && !client.isGone) this.#streams.set(name, client);
    return response;
  }

  async #posted(request: Request, identity: ServedIdentity): Promise<Response> {
    if (!(request.headers.get('content-type') ?? '').startsWith('application/json'))
      return refusal(415, 'Expected content-type application/json');
    const text = await readText(request, this.limits.maxMessageBytes);
    if (text === null) return refusal(413, `Expected at most ${this.limits.maxMessageBytes} bytes`);
    const posted = readPostedFrames(valueOfJson(text));
    if (typeof posted === 'string') return refusal(400, `Expected frames: ${posted}`);
    const client = this.#streams.get(posted.client);
    const isOwn =
      client?.identity.user === identity.user && client.identity.sessionId === identity.sessionId;
    if (!client || !isOwn) return refusal(409, 'Expected an open stream of this client');
    for (const frame of posted.frames) client.receivedFrame(frame);
    return new Response(null, { status: 202 });
  }
}

function refuse(status: number, message: string): Admission {
  return { type: 'refuse', status, message };
}

/** Returns the token of a subprotocol, which is in base64url; null if it is none. */
function tokenOf(encoded: string | null): string | null {
  if (encoded === null || encoded.length > MAX_TOKEN_CHARS) return null;
  const token = Buffer.from(encoded, 'base64url').toString('utf8');
  return token === '' ? null : token;
}

function afterOf(query: URLSearchParams): { readonly after?: Position } {
  const epoch = query.get('epoch');
  const seq = Number(query.get('seq') ?? Number.NaN);
  return epoch !== null && epoch !== '' && Number.isSafeInteger(seq) && seq >= 0
    ? { after: { epoch, seq } }
    : {};
}
