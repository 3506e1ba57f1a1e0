// Offers subagents to MCP clients as tools that may be called as tasks, over streamable HTTP and stdio.
//
//   fetch ──▶ Host, Origin ──▶ authorize ─┬─▶ answer2026 ────────────────────────────┬─▶ the user's tasks
//                                         └─▶ connection of this user ─┬─▶ server2025 ─┘
//   stdio ─────────────────────────────────────────────────────────────┘
//
// Owns:     the access control, the connections, and the users whose tasks are in memory.
// Does not: run tasks (`served-tasks.ts`), or listen on a port (the app does).
//
// Invariants
//   MCP-SERVER-1. A request is refused if its Host or Origin is untrusted, or if `authorize` returns no user. Every
//       request is authorized separately, and a connection is invisible to other users.
//   MCP-SERVER-2. No message from a client can cause an exception in a handler or end the process.

import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import process from 'node:process';
import type { Readable, Writable } from 'node:stream';
import type { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import { z } from 'zod';
import { identity } from '../../actors/contracts/identity.ts';
import { anObject, check, type ChecksOf } from '../../values/checks.ts';
import { OffstageError } from '../../values/errors.ts';
import { bearerToken } from '../listen/access.ts';
import { readText, refusal, webHandlers } from '../listen/web-requests.ts';
import { server2025, type ConnectedUser } from './generation-2025.ts';
import { answer2026, is2026 } from './generation-2026.ts';
import { keptEntries, type KeptEntries } from './kept-entries.ts';
import { loadServerSdk, type ServerSdk } from './load-sdk.ts';
import { checkedMcp, checkedUser, type CheckedMcp, type McpServerOptions } from './options.ts';
import { UserTasks } from './served-tasks.ts';

/** The options of an MCP server's `stdio()`. */
export interface McpStdioOptions {
  /** The user whose tasks the client sees. @defaultValue 'local' */
  readonly user?: string;
  /** @defaultValue standard input, which only this server may read */
  readonly input?: Readable;
  /** @defaultValue standard output, to which only this server may write: log to standard error */
  readonly output?: Writable;
}

/** The connection to the client that started this program. */
export interface McpStdio {
  /** Resolves when the client has disconnected. Its tasks continue. */
  readonly closed: Promise<void>;
}

/** The server that `mcpServer` returns. It offers subagents as MCP tools. */
export interface McpServer {
  /** The number of HTTP connections, and the number of users whose tasks are in memory. */
  readonly size: { readonly connections: number; readonly users: number };
  /** Handles a request in Hono, Next.js and other frameworks that use web requests. Never rejects. */
  readonly fetch: (request: Request) => Promise<Response>;
  /**
   * Like `fetch`, but for `node:http`, Express, Fastify and Koa. For any other path, it calls `next`, or responds with
   * 404 if `next` is absent.
   */
  readonly handle: (request: IncomingMessage, response: ServerResponse, next?: () => void) => void;
  /** Serves the client that started this program. */
  stdio(options?: McpStdioOptions): Promise<McpStdio>;
  /** Ends all connections. The journal stores the tasks, and the next server with the same name continues them. */
  close(): Promise<void>;
}

/**
 * Serves subagents to MCP clients with protocol 2025-11-25, and over HTTP also with 2026-07-28. Needs the package
 * `@modelcontextprotocol/sdk`. The server immediately continues the tasks of an earlier process.
 * @throws {ConfigurationError} `INVALID_OPTION`, `INVALID_SCHEMA`, `MISSING_DEPENDENCY` (rejects)
 */
export async function mcpServer(options: McpServerOptions): Promise<McpServer> {
  const checked = checkedMcp(options);
  const server = new Server(await loadServerSdk(), checked);
  server.continueTasks();
  return server;
}

interface Connection {
  readonly user: string;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  lastUsedAt: number;
  /** The number of requests in progress. */
  busy: number;
  close(): Promise<void>;
}

/** A user's tasks in memory. */
interface OpenTasks {
  readonly opening: Promise<UserTasks>;
  users: number;
  waits: number;
  lastUsedAt: number;
}

const stdioSchema = z.strictObject({
  user: identity.optional(),
  input: anObject('a stream to read', 'pipe').optional(),
  output: anObject('a stream to write', 'write').optional(),
} satisfies ChecksOf<McpStdioOptions>);

const CORS = {
  headers:
    'authorization, content-type, accept, last-event-id, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name',
  expose: 'mcp-session-id',
};

class Server implements McpServer {
  readonly fetch: McpServer['fetch'];
  readonly handle: McpServer['handle'];
  readonly #sdk: ServerSdk;
  readonly #options: CheckedMcp;
  readonly #kept: KeptEntries;
  readonly #connections = new Map<string, Connection>();
  /** The connections that are handling their first request. These connections count towards the limit. */
  readonly #connecting = new Set<Connection>();
  readonly #tasks = new Map<string, OpenTasks>();
  /** The tasks that are being unloaded. The scope of these tasks can be opened again only afterwards. */
  readonly #leaving = new Map<string, Promise<void>>();
  readonly #stdio = new Set<{ close(): Promise<void> }>();
  #stopSweep: () => void = () => undefined;
  #closed: Promise<void> | null = null;

  constructor(sdk: ServerSdk, options: CheckedMcp) {
    this.#sdk = sdk;
    this.#options = options;
    this.#kept = keptEntries(options.runtime.journal);
    const { fetch, handle } = webHandlers({
      name: 'mcpServer',
      path: options.path,
      reachable: options,
      methods: ['GET', 'POST', 'DELETE'],
      cors: CORS,
      scheduler: options.runtime.environment.scheduler,
      maxBytes: options.limits.maxMessageBytes,
      answer: (request, url) => this.#answer(request, url),
      onError: options.onError,
    });
    this.fetch = fetch;
    this.handle = handle;
    this.#sweepLater();
  }

  get size(): McpServer['size'] {
    return { connections: this.#connections.size, users: this.#tasks.size };
  }

  /** Continues the tasks of an earlier process. */
  continueTasks(): void {
    const resume = async (): Promise<void> => {
      const scopes = (await this.#options.runtime.journal.scopes?.()) ?? [];
      for (const { scope } of scopes) {
        if (this.#closed) return;
        if (!scope.startsWith(this.#prefix)) continue;
        await this.#opened(scope).catch((error: unknown) =>
          this.#options.onError(error, `tasks of ${scope}`),
        );
      }
    };
    resume().catch((error: unknown) => this.#options.onError(error, 'tasks of earlier processes'));
  }

  async stdio(options: McpStdioOptions = {}): Promise<McpStdio> {
    const {
      user = 'local',
      input = process.stdin,
      output = process.stdout,
    } = check('stdio(options)', stdioSchema, options) as McpStdioOptions;
    if (this.#closed) throw new OffstageError('SESSION_CLOSED', 'The server is closed');
    const server = server2025(this.#sdk, this.#options, this.#connected(user));
    const transport = new this.#sdk.StdioServerTransport(input, output);
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    const kept = { close: () => server.close() };
    this.#stdio.add(kept);
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a class of the SDK has no other way
    server.onclose = () => {
      this.#stdio.delete(kept);
      resolve();
    };
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a class of the SDK has no other way
    server.onerror = (error) => this.#options.onError(error, 'a message on standard input');
    // The SDK does not detect the end of its input.
    const left = (): void => void server.close();
    input.once('end', left).once('close', left);
    await server.connect(transport);
    return { closed };
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #answer(request: Request, url: URL): Promise<Response> {
    const { method, headers } = request;
    if (this.#closed) return refusal(503, 'The server is closing');
    const user = await this.#userOf(request, url);
    if (user === null)
      return refusal(401, 'The server does not know this client', { 'www-authenticate': 'Bearer' });
    const { maxMessageBytes } = this.#options.limits;
    const text = method === 'POST' ? await readText(request, maxMessageBytes) : '';
    if (text === null) return refusal(413, `Expected at most ${maxMessageBytes} bytes`);
    const message = method === 'POST' ? valueOf(text) : undefined;
    if (method === 'POST' && is2026(headers, message))
      return answer2026(message, request, this.#options, this.#connected(user));
    const known = headers.get('mcp-session-id');
    const connection =
      known === null ? await this.#connect(user) : (this.#connections.get(known) ?? null);
    if (connection instanceof Response) return connection;
    // MCP-SERVER-1
    if (connection?.user !== user) return refusal(404, 'Expected an open session of yours');
    connection.lastUsedAt = this.#now;
    connection.busy += 1;
    try {
      const answer = await connection.transport.handleRequest(
        method === 'POST' ? copyOf(request, text) : request,
      );
      // If the first request is not `initialize`, the connection is dropped.
      if (known === null && connection.transport.sessionId === undefined) await connection.close();
      return answer;
    } catch (error) {
      if (known === null && connection.transport.sessionId === undefined) await connection.close();
      throw error;
    } finally {
      connection.busy -= 1;
    }
  }

  async #userOf({ headers }: Request, url: URL): Promise<string | null> {
    const { authorize } = this.#options;
    const token = bearerToken({ authorization: headers.get('authorization') ?? '' });
    const given: unknown = await authorize?.({ token, headers, url });
    return checkedUser('mcpServer: the result of `authorize`', given);
  }

  async #connect(user: string): Promise<Connection | Response> {
    const { sessions, sessionsPerUser } = this.#options.limits;
    const all = [...this.#connections.values(), ...this.#connecting];
    const own = all.filter((each) => each.user === user).length;
    if (all.length >= sessions || own >= sessionsPerUser)
      return refusal(503, 'There are too many sessions at once');
    const tasks = this.#connected(user);
    const server = server2025(this.#sdk, this.#options, {
      use: tasks.use,
      // A connection with a waiting request is not idle.
      async wait(work) {
        connection.busy += 1;
        try {
          return await tasks.wait(work);
        } finally {
          connection.busy -= 1;
        }
      },
    });
    const transport = new this.#sdk.WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => this.#options.runtime.environment.ids.next('mcp'),
      maxRequestBodySize: this.#options.limits.maxMessageBytes,
      onsessioninitialized: (id) => {
        this.#connecting.delete(connection);
        this.#connections.set(id, connection);
      },
    });
    const connection: Connection = {
      user,
      transport,
      lastUsedAt: this.#now,
      busy: 0,
      close: () => server.close(),
    };
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a class of the SDK has no other way
    server.onclose = () => {
      this.#connecting.delete(connection);
      const { sessionId } = transport;
      if (sessionId !== undefined) this.#connections.delete(sessionId);
    };
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a class of the SDK has no other way
    server.onerror = (error) => this.#options.onError(error, 'a message of a client');
    this.#connecting.add(connection);
    await server.connect(transport);
    return connection;
  }

  get #now(): number {
    return this.#options.runtime.environment.clock.now();
  }

  get #prefix(): string {
    return `mcp:${this.#options.name}:`;
  }

  #connected(user: string): ConnectedUser {
    // Uses a hash, because a user name may be too long for a journal.
    const scope = this.#prefix + createHash('sha256').update(user).digest('base64url');
    return {
      use: (work) => this.#use(scope, user, work),
      wait: (work) =>
        this.#use(scope, user, async (tasks, open) => {
          if (open.waits >= this.#options.limits.waitsPerUser)
            throw new OffstageError('SESSION_LIMIT', 'Too many requests of yours wait at once');
          open.waits += 1;
          try {
            return await work(tasks);
          } finally {
            open.waits -= 1;
          }
        }),
    };
  }

  async #use<Result>(
    scope: string,
    user: string,
    work: (tasks: UserTasks, open: OpenTasks) => Promise<Result>,
  ): Promise<Result> {
    if (this.#closed) throw new OffstageError('SESSION_CLOSED', 'The server is closing');
    const open = this.#openOf(scope);
    open.users += 1;
    try {
      const tasks = await open.opening;
      tasks.user = user;
      return await work(tasks, open);
    } finally {
      open.users -= 1;
      open.lastUsedAt = this.#now;
    }
  }

  #opened(scope: string): Promise<UserTasks> {
    return this.#openOf(scope).opening;
  }

  #openOf(scope: string): OpenTasks {
    const known = this.#tasks.get(scope);
    if (known) return known;
    const opening = (async () => {
      await this.#leaving.get(scope);
      const tasks = new UserTasks(scope, this.#options, this.#kept);
      try {
        await tasks.open();
        return tasks;
      } catch (error) {
        this.#tasks.delete(scope);
        await tasks.close().catch(() => undefined);
        throw error;
      }
    })();
    opening.catch(() => undefined);
    const open: OpenTasks = { opening, users: 0, waits: 0, lastUsedAt: this.#now };
    this.#tasks.set(scope, open);
    return open;
  }

  #sweepLater(): void {
    const { idleMs } = this.#options.limits;
    const { scheduler } = this.#options.runtime.environment;
    this.#stopSweep = scheduler.schedule(
      () => {
        this.#sweep().catch((error: unknown) => this.#options.onError(error, 'idle connections'));
        if (!this.#closed) this.#sweepLater();
      },
      Math.ceil(idleMs / 2),
      { isBackground: true },
    );
  }

  /** Drops connections and users that have been unused for `idleMs`. */
  async #sweep(): Promise<void> {
    const before = this.#now - this.#options.limits.idleMs;
    for (const connection of this.#connections.values())
      if (connection.busy === 0 && connection.lastUsedAt <= before) await connection.close();
    for (const [scope, open] of this.#tasks) {
      if (open.users > 0 || open.lastUsedAt > before) continue;
      const tasks = await open.opening.catch(() => null);
      if (!tasks || tasks.isBusy || open.users > 0) continue;
      this.#tasks.delete(scope);
      const left = tasks.close().finally(() => this.#leaving.delete(scope));
      this.#leaving.set(scope, left);
      await left;
    }
  }

  async #close(): Promise<void> {
    this.#stopSweep();
    const connections = [...this.#connections.values(), ...this.#stdio];
    await Promise.allSettled(connections.map((each) => each.close()));
    const all = [...this.#tasks.values()];
    this.#tasks.clear();
    const left = await Promise.allSettled(all.map(async ({ opening }) => (await opening).close()));
    for (const each of left)
      if (each.status === 'rejected') this.#options.onError(each.reason, 'mcpServer: close');
    await Promise.allSettled(this.#leaving.values());
  }
}

/** Parses JSON text. Returns undefined if the text is not JSON. */
function valueOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns a copy of the request with its body, which has already been read. */
function copyOf(request: Request, body: string): Request {
  const { url, headers, signal } = request;
  return new Request(url, { method: 'POST', headers, signal, body });
}
