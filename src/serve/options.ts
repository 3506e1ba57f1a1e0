// The options of `serve`, their checks and their defaults.

import { z } from 'zod';
import { identity } from '../actors/contracts/identity.ts';
import type { SessionEvent } from '../actors/contracts/session-views.ts';
import type { PooledSession, SessionPool } from '../actors/pool/session-pool.ts';
import type { Environment } from '../actors/ports/environment.ts';
import type { ScopeHolder } from '../actors/ports/journal-error.ts';
import type { BaseSession } from '../actors/session/view/base-session.ts';
import { nodeEnvironment } from '../adapters/node/environment.ts';
import { aFunction, check, type ChecksOf } from '../values/checks.ts';
import { ConfigurationError } from '../values/errors.ts';
import type { VoiceSession } from '../voice-session.ts';
import type { ClientRole } from '../client/protocol.ts';
import type { AnswerLinks } from './answer-links.ts';
import type { ServeRate } from './token-bucket.ts';
import { reporter } from '../values/reporter.ts';

/** The part of a session that clients use; `TextSession` and `VoiceSession` implement it. */
export type ServedSession = Pick<
  BaseSession,
  | 'id'
  | 'start'
  | 'attach'
  | 'listen'
  | 'store'
  | 'events'
  | 'sendText'
  | 'answer'
  | 'questionShown'
  | 'shown'
  | 'dismiss'
  | 'subagents'
  | 'clientCalls'
  | 'committed'
  | 'idle'
> &
  Partial<Pick<VoiceSession, 'audioIn' | 'audioOut' | 'playout'>>;

/** The identity of a client, as `authorize` returns it. */
export interface ServedIdentity {
  /** The session that the client may enter. */
  readonly sessionId: string;
  /** The `by` value of the client's answers, messages and acknowledgements. */
  readonly user: string;
  /** A watcher may only read the session. An operator is a user who may also raise budgets. */
  readonly role: ClientRole;
  /** The client's device in `present`, such as `phone`, at most 200 characters. @defaultValue none */
  readonly device?: string;
  /**
   * Whether this client represents the session's user. If it does, content that it shows or plays counts as shown or
   * heard, and the session listens to its microphone. While it is connected, the user counts as present. Always false
   * for a watcher.
   * @defaultValue true for the role `user` only
   */
  readonly hears?: boolean;
}

/** A client's request. */
export interface AuthorizeRequest {
  /** The token that was passed to `connect`, or null. An app can read its own cookie from `headers` instead. */
  readonly token: string | null;
  /** The session that the client requests. This value is untrusted, so the app must check it. */
  readonly sessionId: string | null;
  /** The request headers. */
  readonly headers: Headers;
  /** The request URL. */
  readonly url: URL;
  /** The transport that the client requests. `link`: a person has opened an answer link in a browser. */
  readonly transport: 'websocket' | 'stream' | 'link';
}

/** The limits per client, per user, and for all clients together. */
export interface ServeLimits {
  /** The maximum number of connected clients. @defaultValue 2000 */
  readonly clients: number;
  /**
   * The maximum number of connected clients per `user`, across all sessions of this server. The server rejects any
   * further client (`TOO_MANY_CLIENTS`, 429). Raise this limit if many people share one `user` in your app.
   * @defaultValue 20
   */
  readonly clientsPerUser: number;
  /**
   * The maximum number of open streams per `user`. One more stream ends the oldest one (`TOO_MANY_STREAMS`), whose
   * client may reconnect. A browser opens at most six connections to an HTTP/1.1 server, and each stream is one of
   * them. Behind HTTP/2, raise this limit to `clientsPerUser`.
   * @defaultValue 5
   */
  readonly streamsPerUser: number;
  /** The maximum size of a client frame or a POST, in bytes. @defaultValue 65_536 */
  readonly maxMessageBytes: number;
  /** The rate of frames from all clients of one user. @defaultValue { burst: 150, perSecond: 30 } */
  readonly messages: ServeRate;
  /**
   * How often the clients of one user may receive the state or missed frames, after `hello` and `resync`. A client that
   * requests them more often is disconnected with `RATE_LIMITED` and may reconnect. @defaultValue { burst: 40,
   * perSecond: 1 }
   */
  readonly welcomes: ServeRate;
  /**
   * The rate of invalid frames from one client. A client that exceeds it is disconnected. @defaultValue { burst: 20,
   * perSecond: 0.2 }
   */
  readonly mistakes: ServeRate;
  /**
   * The rate limit of one client's audio, in seconds of audio. After it reconnects, a client sends up to 10 s of audio
   * without a pause.
   * @defaultValue { burst: 12, perSecond: 1.25 }
   */
  readonly soundSeconds: ServeRate;
  /** The maximum number of unsent bytes per client. Above it, the client is disconnected. @defaultValue 1_048_576 */
  readonly maxUnsentBytes: number;
  /** The number of unsent bytes above which the server drops audio. @defaultValue 262_144 */
  readonly maxUnsentSoundBytes: number;
  /** How long a new connection may take to send its first frame, in milliseconds. @defaultValue 10_000 */
  readonly helloTimeoutMs: number;
  /** The longest time between two frames to a client, in milliseconds. @defaultValue 15_000 */
  readonly aliveMs: number;
  /**
   * How long a session stays ready after its clients have disconnected, in milliseconds. A client that reconnects
   * within this time receives only the missed frames and the receipts for earlier commands, instead of the whole state.
   * @defaultValue 30_000
   */
  readonly resumeMs: number;
  /** The maximum size of the frames that are stored for reconnecting clients, in bytes. @defaultValue 262_144 */
  readonly resumeBytes: number;
}

/** The options of `serve`. */
export interface ServeOptions<S extends ServedSession = ServedSession> {
  /** The pool of sessions; a session stays awake while a client is connected. Specify either `pool` or `session`. */
  readonly pool?: SessionPool<S & PooledSession>;
  /**
   * Returns the session with this id, or null if there is none. `serve` starts the session if necessary. A text session
   * starts immediately; a voice session starts with the first client that can hear it or that sends a message. Specify
   * either `session` or `pool`.
   */
  readonly session?: (sessionId: string) => S | null | Promise<S | null>;
  /** Returns a client's identity and session, or null to refuse the client. */
  readonly authorize: (
    request: AuthorizeRequest,
  ) => ServedIdentity | null | Promise<ServedIdentity | null>;
  /** The handler's path. @defaultValue '/offstage' */
  readonly path?: string;
  /**
   * The web origins that may connect, such as `https://app.example.com`. `*` allows any origin.
   * @defaultValue pages on localhost
   */
  readonly origins?: readonly string[];
  /** The host names accepted in `Host`; `*` allows any. @defaultValue localhost, and the hosts in `origins` */
  readonly hosts?: readonly string[];
  /**
   * Returns the URL (`http:`, `https:`, `ws:` or `wss:`) of `serve` on the node that runs the session. The client then
   * connects to that node with its token. The first call is made before the session is opened, and its `holder` is
   * null. If it returns null, this node opens the session. If a shared journal then reports that another process holds
   * the session, there is a second call: `holder` is that process (the `address` that was passed to its
   * `postgresJournal`). If this call returns null, clients wait until the session is free (`SESSION_ELSEWHERE`).
   * @defaultValue null
   */
  readonly locate?: (
    sessionId: string,
    holder: ScopeHolder | null,
  ) => string | null | Promise<string | null>;
  /**
   * Additional events that are shared with clients. By default, the server does not share events about tools, services
   * and memory, nor who is present (`presence.changed`, with the list `present`). The same applies to the tool ledgers of subagents (`subagent.ended` shares them).
   * @defaultValue none
   */
  readonly share?: readonly SessionEvent['type'][];
  /** The server's limits. @defaultValue the defaults of `ServeLimits` */
  readonly limits?: Partial<ServeLimits>;
  /**
   * Serves the page on which a person answers a question from a link (`answerLinks`). It answers requests for the path
   * of the links, and needs no `Origin` in `origins`. With `pool`, opening the page does not wake the session.
   * @defaultValue no page
   */
  readonly links?: AnswerLinks;
  /** Time and randomness. @defaultValue the process's */
  readonly environment?: Environment;
  /** Called with errors that are not sent to any client, and with each client that is disconnected. */
  readonly onError?: (error: unknown, where: string) => void;
}

/** The defaults of `serve({ limits })`. */
export const defaultServeLimits: ServeLimits = {
  clients: 2_000,
  clientsPerUser: 20,
  streamsPerUser: 5,
  maxMessageBytes: 65_536,
  messages: { burst: 150, perSecond: 30 },
  welcomes: { burst: 40, perSecond: 1 },
  mistakes: { burst: 20, perSecond: 0.2 },
  soundSeconds: { burst: 12, perSecond: 1.25 },
  maxUnsentBytes: 1_048_576,
  maxUnsentSoundBytes: 262_144,
  helloTimeoutMs: 10_000,
  aliveMs: 15_000,
  resumeMs: 30_000,
  resumeBytes: 262_144,
};

/** Events that the store or a page needs. They contain no secrets of the app. */
const SHARED = [
  'connection.changed',
  'session.ended',
  'session.suspended',
  'floor.changed',
  'transcript.changed',
  'subagent.changed',
  'subagent.delegated',
  'subagent.progressed',
  'question.changed',
  'delivery.changed',
  'schedule.changed',
  'agent.entered',
  'agent.exited',
  'transfer.completed',
  'transfer.failed',
  'turn.ended',
  'client.json',
  'playout.clear',
  'speech.interrupted',
  'speech.resumed',
  'backchannel.heard',
  'utterance.unanswered',
  'usage.changed',
  'limits.changed',
] as const satisfies readonly SessionEvent['type'][];

/** Events that `share` may add. */
const SHAREABLE = [
  'tool.called',
  'tool.answered',
  'tool.in_doubt',
  'session.recovered',
  'presence.changed',
  'service.changed',
  'service.dropped',
  'subagent.ended',
  'conversation.summarised',
  'memory.distilled',
  'error.reported',
] as const satisfies readonly SessionEvent['type'][];

const count = z.int().positive();
const milliseconds = z.number().positive();
const rate = z.strictObject({ burst: z.number().positive(), perSecond: z.number().positive() });

const limitsSchema = z.strictObject({
  clients: count.optional(),
  clientsPerUser: count.optional(),
  streamsPerUser: count.optional(),
  maxMessageBytes: z.int().min(1_024).optional(),
  messages: rate.optional(),
  welcomes: rate.optional(),
  mistakes: rate.optional(),
  soundSeconds: rate.optional(),
  maxUnsentBytes: count.optional(),
  maxUnsentSoundBytes: count.optional(),
  helloTimeoutMs: milliseconds.optional(),
  aliveMs: z.int().min(100).optional(),
  resumeMs: z.number().min(0).optional(),
  resumeBytes: z.int().min(0).optional(),
} satisfies ChecksOf<ServeLimits>);

const origin = z
  .string()
  .refine(
    (text) => text === '*' || URL.parse(text)?.origin === text,
    'expected an origin such as https://app.example.com, without a path, or *',
  );

/** The client options that every session host needs. */
export type ClientOptions = Pick<
  ServeOptions,
  'authorize' | 'path' | 'origins' | 'hosts' | 'share' | 'limits' | 'onError'
>;

export const clientChecks = {
  authorize: aFunction,
  path: z
    .string()
    .regex(/^\/[\w./~-]*$/, 'expected a path such as /offstage')
    .optional(),
  origins: z.array(origin).max(1_000).optional(),
  hosts: z.array(z.string().min(1).max(300)).max(1_000).optional(),
  share: z.array(z.enum([...SHARED, ...SHAREABLE])).optional(),
  limits: limitsSchema.optional(),
  onError: aFunction.optional(),
} satisfies ChecksOf<ClientOptions>;

const optionsSchema = z.strictObject({
  ...clientChecks,
  pool: z.looseObject({ use: aFunction }).optional(),
  session: aFunction.optional(),
  locate: aFunction.optional(),
  links: z.looseObject({ create: aFunction, read: aFunction, url: z.instanceof(URL) }).optional(),
  environment: z.looseObject({ clock: z.unknown(), scheduler: z.unknown() }).optional(),
} satisfies ChecksOf<ServeOptions>);

/** The checked options with defaults filled in. */
export interface CheckedServe extends ClientOptions {
  readonly path: string;
  readonly limits: ServeLimits;
  readonly environment: Environment;
  readonly shared: ReadonlySet<string>;
  readonly onError: (error: unknown, where: string) => void;
}

/** @throws {ConfigurationError} `INVALID_OPTION` */
export function checkedServe<S extends ServedSession>(
  options: ServeOptions<S>,
): CheckedServe & ServeOptions<S> {
  check('serve(options)', optionsSchema, options);
  const { pool, session, environment } = options;
  if ((pool === undefined) === (session === undefined))
    throw new ConfigurationError(
      'INVALID_OPTION',
      'serve(options): expected either `pool` or `session`',
    );
  const { path = '/offstage', links } = options;
  if (links?.url.pathname === path)
    throw new ConfigurationError(
      'INVALID_OPTION',
      `serve(options): expected \`links\` with a path other than \`path\` (${path})`,
    );
  return { ...options, ...withDefaults(options, environment ?? nodeEnvironment()) };
}

/** The client options with defaults filled in. */
export function withDefaults(options: ClientOptions, environment: Environment): CheckedServe {
  const { authorize, path = '/offstage', origins, hosts, limits, share = [], onError } = options;
  return {
    authorize,
    path,
    ...(origins && { origins }),
    ...(hosts && { hosts }),
    limits: { ...defaultServeLimits, ...limits },
    environment,
    shared: new Set<string>([...SHARED, ...share]),
    onError: reporter(onError),
  };
}

export const identitySchema = z.strictObject({
  sessionId: z.string().min(1).max(200),
  user: identity,
  role: z.enum(['user', 'watcher', 'operator']),
  device: identity.optional(),
  hears: z.boolean().optional(),
});

/** @throws {ConfigurationError} `INVALID_IDENTITY` */
export function checkedIdentity(given: unknown): ServedIdentity | null {
  if (given === null || given === undefined) return null;
  return check('serve: the result of `authorize`', identitySchema, given, 'INVALID_IDENTITY');
}
