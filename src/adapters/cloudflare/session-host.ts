// A session that lives in a Durable Object: the object's name is its id, its SQLite the journal, its alarm the clock.
//
// Owns:     the pool of this one session, and the sockets of its clients, which outlive the memory of the object.
// Does not: authorise anybody: the Worker does, before it hands a request to the object.
//
// Invariants
//   SESSION-HOST-1. A client that is connected does not keep the session in memory: its socket is the platform's, and
//       wakes the object when it says something.
//   SESSION-HOST-2. An alarm that fired is used up, so the next one is set before anything that can fail. It also keeps
//       an object in memory while its session works.

import { z } from 'zod';
import type { TextSession } from '../../actors/session/view/text-session.ts';
import { createRuntime, type Runtime } from '../../actors/admission/runtime.ts';
import { createSessionPool, type PooledSession } from '../../actors/pool/session-pool.ts';
import { aFunction, check, type ChecksOf } from '../../values/checks.ts';
import { durableObjectJournal, WATCHDOG_MS } from './durable-object-journal.ts';
import { checkStorage, type DurableObjectContext, type DurableSocket } from './platform.ts';
import { workersEnvironment } from './workers-environment.ts';

/** The part of a text session that a host needs. */
export type HostedSession = PooledSession & Pick<TextSession, 'parts'>;

export interface SessionHostOptions<S extends HostedSession> {
  /** Creates the session with this id, not started yet: with this `sessionId` and `runtime`. */
  readonly open: (sessionId: string, runtime: Runtime) => S;
  /**
   * Takes a message of a client, of a socket: `session.sendText`, `session.answer`. What it returns, or resolves to,
   * goes back to that socket as JSON, unless it is undefined. A client may send anything: check it.
   */
  readonly receive: (session: S, message: string) => unknown;
  /** The id of the session. @defaultValue the name of the object, or its id if it has none */
  readonly sessionId?: string;
  /** The time after which an idle session leaves memory, in milliseconds. @defaultValue 5_000 */
  readonly idleMs?: number;
  /** Called with errors that no caller waits for. */
  readonly onError?: (error: unknown, where: string) => void;
}

export interface SessionHost<S extends HostedSession> {
  readonly sessionId: string;
  /** Whether the session is in memory. */
  readonly isAwake: boolean;
  /** Passes the session to `use`: wakes or begins it first. For the object's own methods. */
  use<T>(use: (session: S) => T | Promise<T>): Promise<T>;
  /** Call it in `fetch()`: accepts a WebSocket of a client, and refuses anything else (426). */
  fetch(request: Request): Response;
  /** Call it in `webSocketMessage()`: the client's message goes to `receive`, and its reply back. */
  webSocketMessage(socket: DurableSocket, message: string | ArrayBuffer): Promise<void>;
  /** Call it in `alarm()`. */
  alarm(): Promise<void>;
}

const optionsSchema = z.strictObject({
  open: aFunction,
  receive: aFunction,
  sessionId: z.string().min(1).max(200).optional(),
  idleMs: z.number().nonnegative().optional(),
  onError: aFunction.optional(),
} satisfies ChecksOf<SessionHostOptions<HostedSession>>);

interface SocketPair {
  readonly 0: object;
  readonly 1: DurableSocket;
}

/** Status of a request that is no WebSocket. */
const UPGRADE_REQUIRED = 426;
/** A message that is no text. Source: RFC 6455, 7.4.1. */
const UNSUPPORTED_DATA = 1003;

/**
 * Hosts a session in a Durable Object with SQLite. Call it in the constructor of the object.
 * @throws {ConfigurationError} `INVALID_ARGUMENT`, `INVALID_OPTION`
 */
export function hostSession<S extends HostedSession>(
  ctx: DurableObjectContext,
  options: SessionHostOptions<S>,
): SessionHost<S> {
  check(
    'hostSession(ctx, options)',
    z.looseObject({ getWebSockets: aFunction, acceptWebSocket: aFunction }),
    ctx,
    'INVALID_ARGUMENT',
  );
  checkStorage('hostSession(ctx, options)', ctx.storage);
  check('hostSession(ctx, options)', optionsSchema, options);
  const { open, receive, idleMs = 5_000, onError } = options;
  const sessionId = options.sessionId ?? ctx.id.name ?? ctx.id.toString();
  const environment = workersEnvironment();
  const journal = durableObjectJournal({ storage: ctx.storage, environment });
  const runtime = createRuntime({ environment, journal, snapshots: { trim: true } });
  const pool = createSessionPool<S>({
    runtime,
    idleMs,
    lookMs: Infinity,
    ...(onError && { onError }),
    open(id) {
      const session = open(id, runtime);
      session.parts.subscribe((part) => {
        for (const socket of ctx.getWebSockets()) socket.send(JSON.stringify(part));
      });
      return session;
    },
  });
  return {
    sessionId,
    get isAwake() {
      return pool.awakeCount > 0;
    },
    use: (use) => pool.use(sessionId, use),
    fetch(request) {
      if (request.headers.get('upgrade')?.toLowerCase() !== 'websocket')
        return new Response('Expected a WebSocket', { status: UPGRADE_REQUIRED });
      const WebSocketPair = Reflect.get(globalThis, 'WebSocketPair') as new () => SocketPair;
      const { 0: client, 1: server } = new WebSocketPair();
      // SESSION-HOST-1
      ctx.acceptWebSocket(server);
      return new Response(null, { status: 101, webSocket: client } as ResponseInit);
    },
    async webSocketMessage(socket, message) {
      if (typeof message !== 'string') return socket.close(UNSUPPORTED_DATA, 'Expected text');
      const reply = await pool.use(sessionId, async (session) => receive(session, message));
      if (reply !== undefined) socket.send(JSON.stringify(reply));
    },
    async alarm() {
      // SESSION-HOST-2
      await ctx.storage.setAlarm(environment.clock.now() + WATCHDOG_MS);
      await pool.start();
      if (pool.awakeCount > 0) return;
      const [next] = await (journal.wakeTimes?.earliest({ limit: 1 }) ?? []);
      await (next ? ctx.storage.setAlarm(next.at) : ctx.storage.deleteAlarm());
    },
  };
}
