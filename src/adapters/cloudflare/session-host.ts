// A session in a Durable Object. The object's name is the session's id, its SQLite database is the journal, and its
// alarm is the clock. Its sockets are clients of `offstage/client` and outlive the object's memory.
//
//   fetch ──────────────▶ path, Host, Origin, authorize ─▶ socket of the platform
//   webSocketMessage ───▶ client ─▶ pool: awake ─▶ hub of the session ─▶ receipts, frames to all
//   alarm ──────────────▶ pool: what is due
//
// Owns:     this session's pool, its hub while it is awake, and its clients.
// Does not: interpret the protocol, or limit the messages of clients (`serve` does both, with the same code as in
//           Node.js).
//
// Invariants
//   SESSION-HOST-1. A connected client alone does not keep the session in memory. The platform holds the client's
//       socket, and a message wakes the object. After the object has slept, each client receives the whole state.
//   SESSION-HOST-2. An alarm fires only once, so the next alarm is set before any step that can fail. The next alarm
//       also keeps the object in memory while its session is working.
//   SESSION-HOST-3. A frame reaches the session only while the pool keeps the session in memory. A frame for a session
//       that is being unloaded waits.
//   SESSION-HOST-4. A client without an identity, or with an identity for another session, does not open the session.

import { z } from 'zod';
import { createRuntime, type Runtime } from '../../actors/admission/runtime.ts';
import {
  createSessionPool,
  type PooledSession,
  type SessionPool,
} from '../../actors/pool/session-pool.ts';
import {
  PING,
  PONG,
  PROTOCOL_VERSION,
  SUBPROTOCOL,
  type HelloFrame,
} from '../../client/protocol.ts';
import { ConnectedClients, unauthorized } from '../../serve/connected-clients.ts';
import {
  clientChecks,
  withDefaults,
  type ClientOptions,
  type ServedIdentity,
  type ServedSession,
  identitySchema,
} from '../../serve/options.ts';
import type { Channel, FrameText, ServedClient } from '../../serve/served-client.ts';
import { SessionHub } from '../../serve/session-hub.ts';
import { aFunction, check, type ChecksOf } from '../../values/checks.ts';
import { ConfigurationError } from '../../values/errors.ts';
import { isServedHost, isServedOrigin, refusal } from '../listen/web-requests.ts';
import { durableObjectJournal, WATCHDOG_MS } from './durable-object-journal.ts';
import {
  checkStorage,
  platform,
  type DurableObjectContext,
  type DurableSocket,
} from './platform.ts';
import { workersEnvironment } from './workers-environment.ts';

/**
 * The part of a session that a host needs; `TextSession` implements it. A voice session is refused (`VOICE_NOT_HOSTED`).
 */
export type HostedSession = PooledSession & ServedSession;

/** The options of `hostSession`. */
export interface SessionHostOptions<S extends HostedSession> extends ClientOptions {
  /** Creates the session with this `sessionId` and `runtime`, without starting it. */
  readonly open: (sessionId: string, runtime: Runtime) => S;
  /** The session's id. @defaultValue the object's name, or its id if it has no name */
  readonly sessionId?: string;
  /** The time that a session may be idle before it is unloaded from memory, in milliseconds. @defaultValue 5_000 */
  readonly idleMs?: number;
  /** The Worker's accepted host names in `Host`; `*` allows any. @defaultValue any, as the platform routes by name */
  readonly hosts?: readonly string[];
  /** The web origins that may connect; `*` allows any. @defaultValue the Worker's own pages, and localhost */
  readonly origins?: readonly string[];
}

/** The Durable Object's session, as `hostSession` returns it. */
export interface SessionHost<S extends HostedSession> {
  /** The id of this object's session. */
  readonly sessionId: string;
  /** Whether the session is in memory. */
  readonly isAwake: boolean;
  /**
   * Calls `use` with the session. If necessary, the session is woken or started first. For use in the object's own
   * methods.
   */
  use<T>(use: (session: S) => T | Promise<T>): Promise<T>;
  /**
   * Call it in `fetch()`. It accepts the WebSocket of an `offstage/client` client at `path`. Any other request is
   * rejected with 426, because an open stream would keep the object in memory. Never rejects.
   */
  fetch(request: Request): Promise<Response>;
  /** Call it in `webSocketMessage()`. Never rejects. */
  webSocketMessage(socket: DurableSocket, message: string | ArrayBuffer): Promise<void>;
  /** Call it in `webSocketClose()` and `webSocketError()`. */
  webSocketClose(socket: DurableSocket): void;
  /** Call it in `alarm()`. */
  alarm(): Promise<void>;
  /**
   * Deletes the session permanently: disconnects its clients (`SESSION_ENDED`) and deletes its rows and alarm. Using it
   * again later starts a new session.
   */
  forget(): Promise<void>;
}

const optionsSchema = z.strictObject({
  ...clientChecks,
  open: aFunction,
  sessionId: z.string().min(1).max(200).optional(),
  idleMs: z.number().nonnegative().optional(),
} satisfies ChecksOf<SessionHostOptions<HostedSession>>);

const contextSchema = z.looseObject({
  getWebSockets: aFunction,
  acceptWebSocket: aFunction,
  setWebSocketAutoResponse: aFunction,
});

/** The data that the platform stores for a socket. A socket is closed if its data has another version. */
const attachmentSchema = z.strictObject({
  id: z.string(),
  identity: identitySchema,
  client: z.string().nullable(),
});
type Attachment = z.infer<typeof attachmentSchema>;

/** WebSocket close codes. Source: RFC 6455, 7.4.1, and the registry that it defines. */
const POLICY = 1008;
const TOO_BIG = 1009;
const RESTARTED = 1012;

/**
 * Hosts a session in a Durable Object with SQLite, for clients of `offstage/client`. Call it in the object's constructor.
 * @throws {ConfigurationError} `INVALID_ARGUMENT`, `INVALID_OPTION`
 */
export function hostSession<S extends HostedSession>(
  ctx: DurableObjectContext,
  options: SessionHostOptions<S>,
): SessionHost<S> {
  check('hostSession(ctx, options)', contextSchema, ctx, 'INVALID_ARGUMENT');
  checkStorage('hostSession(ctx, options)', ctx.storage);
  check('hostSession(ctx, options)', optionsSchema, options);
  let pool: SessionPool<S>;
  /**
   * The clients by the ids in their sockets' attachments, because the platform may later pass a different object for
   * the same socket.
   */
  const clients = new Map<string, ServedClient>();
  /** The first frames of clients that are waiting for the session. */
  const hellos = new Map<ServedClient, HelloFrame>();
  /** The hub of the session while it is awake. */
  let awakeHub: SessionHub | null = null;
  /** Resolves when the clients of the awake session have joined its hub. */
  let joined: Promise<void> = Promise.resolve();
  const isAwake = (): boolean => pool.awakeCount > 0;
  const { open, idleMs = 5_000, onError, hosts = ['*'], ...others } = options;
  const environment = workersEnvironment();
  const journal = durableObjectJournal({ storage: ctx.storage, environment });
  const runtime = createRuntime({ environment, journal, snapshots: { trim: true } });
  const sessionId = options.sessionId ?? ctx.id.name ?? ctx.id.toString();
  const checked = withDefaults({ ...others, hosts, ...(onError && { onError }) }, environment);
  const makePool = () =>
    createSessionPool<S>({
      runtime,
      idleMs,
      lookMs: Infinity,
      ...(onError && { onError }),
      open: (id) => opened(open(id, runtime)),
    });
  pool = makePool();
  const connected = new ConnectedClients(checked, {
    name: 'hostSession',
    reachable: checked,
    greeted,
  });
  // The platform answers these pings while the object is asleep.
  const pair = new (platform().WebSocketRequestResponsePair)(PING, PONG);
  ctx.setWebSocketAutoResponse(pair);

  async function accept(request: Request): Promise<Response> {
    const { headers } = request;
    const url = new URL(request.url);
    const { path, limits } = checked;
    if (url.pathname !== path) return refusal(404, 'Nothing is here');
    if (headers.get('upgrade')?.toLowerCase() !== 'websocket')
      return refusal(426, 'Expected a WebSocket', { upgrade: 'websocket' });
    if (!isServedHost(headers.get('host') ?? url.host, checked))
      return refusal(403, 'Expected a Host that is served here');
    const origin = headers.get('origin');
    if (origin !== null && !isServedOrigin(origin, checked, url.host))
      return refusal(403, 'Expected an Origin that may connect');
    const admission = await connected.admit(headers, url);
    if (admission.type === 'refuse') return refusal(admission.status, admission.message);
    const { 0: client, 1: socket } = new (platform().WebSocketPair)();
    if (admission.type === 'expel' || !isOwn(admission.identity)) {
      socket.accept();
      const bye = admission.type === 'expel' ? admission.bye : unauthorized;
      socket.send(JSON.stringify(bye));
      socket.close(POLICY, bye.code);
      return switched(client);
    }
    if (ctx.getWebSockets().length >= limits.clients)
      return refusal(503, `At most ${limits.clients} clients are served at once`);
    // SESSION-HOST-1
    ctx.acceptWebSocket(socket);
    const { identity } = admission;
    const id = checked.environment.ids.next('s');
    socket.serializeAttachment({ id, identity, client: null } satisfies Attachment);
    clientOf(socket);
    return switched(client);
  }

  /** SESSION-HOST-4 */
  function isOwn(identity: ServedIdentity): boolean {
    if (identity.sessionId === sessionId) return true;
    const message = `hostSession: expected \`authorize\` to return the session "${sessionId}" of this object, got "${identity.sessionId}"`;
    checked.onError(new ConfigurationError('INVALID_IDENTITY', message), 'hostSession: fetch');
    return false;
  }

  function clientOf(socket: DurableSocket): ServedClient | null {
    const attachment = attachmentOf(socket);
    if (!attachment) {
      socket.close(RESTARTED, 'Connect again');
      return null;
    }
    const { id, identity, client: name } = attachment;
    const known = clients.get(id);
    if (known) return known;
    const client = connected.opened(new SocketChannel(socket), identity);
    if (name !== null) client.restored(name);
    clients.set(id, client);
    return client;
  }

  function greeted(client: ServedClient, hello: HelloFrame): void {
    hellos.set(client, hello);
    for (const socket of ctx.getWebSockets()) {
      const attachment = attachmentOf(socket);
      if (attachment && clients.get(attachment.id) === client)
        socket.serializeAttachment({ ...attachment, client: hello.client });
    }
    if (awakeHub) join(awakeHub);
  }

  function forgetGone(): void {
    for (const [id, client] of clients)
      if (client.isGone) {
        clients.delete(id);
        hellos.delete(client);
      }
  }

  function opened(session: S): S {
    // Voice adapters open sockets with `ws`, which workerd lacks. An open connection would also keep the object in
    // memory.
    if (session.audioOut)
      throw new ConfigurationError(
        'VOICE_NOT_HOSTED',
        'hostSession: expected `open` to make a session of text: a voice session lives in a process of Node.js',
      );
    const hub = new SessionHub(session, checked, {
      parks: true,
      ended: () => {
        if (awakeHub === hub) awakeHub = null;
      },
    });
    awakeHub = hub;
    restore();
    // A connected client counts as a listener for results that are delivered while the session is waking up.
    const isHeard = [...clients.values()].some(({ hears }) => hears);
    const leave = isHeard ? session.listen() : (): void => undefined;
    // The pool starts the session as soon as this function has returned it.
    joined = Promise.resolve()
      .then(() => session.start())
      .then(
        () => join(hub),
        // The error is reported to the caller that woke the session.
        () => undefined,
      )
      .finally(leave);
    return session;
  }

  /** Restores the clients whose sockets have outlived the object's memory. */
  function restore(): void {
    for (const socket of ctx.getWebSockets()) clientOf(socket);
    forgetGone();
  }

  /** Adds all waiting clients to the session. */
  function join(hub: SessionHub): void {
    if (awakeHub !== hub) return;
    restore();
    for (const client of clients.values()) {
      if (!client.isWaiting || client.clientId === null) continue;
      const parked = { type: 'hello', v: PROTOCOL_VERSION, client: client.clientId } as const;
      const hello = hellos.get(client) ?? parked;
      hellos.delete(client);
      hub.add(client, hello);
    }
  }

  return {
    sessionId,
    get isAwake() {
      return isAwake();
    },
    use: (use) => pool.use(sessionId, use),
    async fetch(request) {
      try {
        return await accept(request);
      } catch (error) {
        checked.onError(error, 'hostSession: fetch');
        return refusal(500, 'The server made a mistake');
      }
    },
    async webSocketMessage(socket, message) {
      const client = clientOf(socket);
      if (!client) return;
      const bytes = typeof message === 'string' ? message.length : message.byteLength;
      const { maxMessageBytes } = checked.limits;
      if (bytes > maxMessageBytes) {
        client.left();
        return socket.close(TOO_BIG, `Expected at most ${maxMessageBytes} bytes`);
      }
      try {
        // SESSION-HOST-3
        await pool.use(sessionId, async () => {
          await joined;
          if (typeof message === 'string') client.received(message);
          else client.receivedSound(new Uint8Array(message));
          await awakeHub?.commandsDone();
        });
      } catch (error) {
        checked.onError(error, `hostSession: waking ${sessionId}`);
        client.bye('SESSION_UNAVAILABLE', 'The session could not be opened', { retry: true });
      }
    },
    webSocketClose(socket) {
      const attachment = attachmentOf(socket);
      if (attachment) clients.get(attachment.id)?.left();
      forgetGone();
    },
    async alarm() {
      // SESSION-HOST-2
      await ctx.storage.setAlarm(checked.environment.clock.now() + WATCHDOG_MS);
      await pool.start();
      if (isAwake()) return;
      const [next] = await (journal.wakeTimes?.earliest({ limit: 1 }) ?? []);
      await (next ? ctx.storage.setAlarm(next.at) : ctx.storage.deleteAlarm());
    },
    async forget() {
      restore();
      for (const client of clients.values())
        client.bye('SESSION_ENDED', 'The session was forgotten');
      try {
        await pool.close();
        await journal.forget?.(sessionId);
      } finally {
        pool = makePool();
      }
    },
  };
}

class SocketChannel implements Channel {
  readonly kind = 'websocket';
  /** The platform does not report how many bytes are unsent. */
  readonly unsentBytes = 0;
  readonly #socket: DurableSocket;

  constructor(socket: DurableSocket) {
    this.#socket = socket;
  }

  text({ text }: FrameText): void {
    this.#send(text);
  }

  sound(packet: Uint8Array): void {
    this.#send(packet);
  }

  close(code: number, reason: string): void {
    this.#socket.close(code, reason);
  }

  cut(code: number, reason: string): void {
    this.#socket.close(code, reason);
  }

  #send(message: string | Uint8Array): void {
    try {
      this.#socket.send(message);
    } catch {
      // The socket has closed, so `webSocketClose` follows.
    }
  }
}

function attachmentOf(socket: DurableSocket): Attachment | null {
  return attachmentSchema.safeParse(socket.deserializeAttachment()).data ?? null;
}

function switched(client: object): Response {
  const headers = { 'sec-websocket-protocol': SUBPROTOCOL };
  return new Response(null, { status: 101, headers, webSocket: client } as ResponseInit);
}
