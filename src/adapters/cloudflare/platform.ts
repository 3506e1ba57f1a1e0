// Types for the parts of Cloudflare's Durable Objects that Offstage uses. The app gets the full types from `wrangler
// types` or `@cloudflare/workers-types`, in any version.

import { z } from 'zod';
import { aFunction, checkUnshown } from '../../values/checks.ts';
import { ConfigurationError } from '../../values/errors.ts';

type SqlValue = ArrayBuffer | string | number | null;

interface SqlCursor {
  /** Like `SqlStorageCursor.toArray`: returns all rows of the result. */
  toArray(): Record<string, SqlValue>[];
}

/** `ctx.storage` of an object with SQLite (`new_sqlite_classes`). */
export interface DurableStorage {
  /** Like `ctx.storage.sql`. The journal runs its queries with `exec`. */
  readonly sql: { exec(query: string, ...bindings: SqlValue[]): SqlCursor };
  /** Like `ctx.storage.transactionSync`: makes each append and each deletion of the journal atomic. */
  transactionSync<T>(work: () => T): T;
  /** Like `ctx.storage.setAlarm`: wakes the object at this time, in milliseconds since 1970. */
  setAlarm(at: number): Promise<void>;
  /** Like `ctx.storage.deleteAlarm`. It is called when the session has no time to wake for. */
  deleteAlarm(): Promise<void>;
}

/** A WebSocket that outlives the object's memory. */
export interface DurableSocket {
  /** Like `WebSocket.send`. */
  send(message: string | Uint8Array): void;
  /** Like `WebSocket.close`. The host closes the sockets of clients that it refuses or no longer serves. */
  close(code?: number, reason?: string): void;
  /** Like `serializeAttachment` of Cloudflare: stores the client's identity, which the object needs when it wakes. */
  serializeAttachment(value: unknown): void;
  /** Like `deserializeAttachment` of Cloudflare: returns the stored identity. */
  deserializeAttachment(): unknown;
}

/** `ctx` of a Durable Object. */
export interface DurableObjectContext<Socket extends DurableSocket = DurableSocket> {
  /** Like `ctx.id`. Its name, or else its text, is the default `sessionId`. */
  readonly id: { readonly name?: string | undefined; toString(): string };
  /** Like `ctx.storage`, which contains the journal. */
  readonly storage: DurableStorage;
  /**
   * Like `ctx.acceptWebSocket`: accepts a client's socket, which stays open while the object is evicted from memory.
   */
  acceptWebSocket(socket: Socket): void;
  /** Like `ctx.getWebSockets`: returns the clients' sockets, including those that an earlier process accepted. */
  getWebSockets(): Socket[];
  /** Like `ctx.setWebSocketAutoResponse`: lets the platform answer the clients' pings without waking the object. */
  setWebSocketAutoResponse(pair?: object): void;
}

/** The two ends of a connection, which the platform creates. */
interface SocketPair {
  readonly 0: object;
  readonly 1: DurableSocket & { accept(): void };
}

interface Platform {
  readonly WebSocketPair: new () => SocketPair;
  readonly WebSocketRequestResponsePair: new (request: string, response: string) => object;
}

/**
 * Returns the platform's classes, which only workerd has.
 * @throws {ConfigurationError} `UNSUPPORTED` on any other platform
 */
export function platform(): Platform {
  const host: Partial<Platform> & typeof globalThis = globalThis;
  const { WebSocketPair, WebSocketRequestResponsePair } = host;
  if (WebSocketPair && WebSocketRequestResponsePair)
    return { WebSocketPair, WebSocketRequestResponsePair };
  throw new ConfigurationError(
    'UNSUPPORTED',
    'hostSession: expected to be called in a Durable Object, whose platform has WebSocketPair',
  );
}

const storage = z.looseObject({
  sql: z.looseObject({ exec: aFunction }),
  transactionSync: aFunction,
  setAlarm: aFunction,
  deleteAlarm: aFunction,
});

/** @throws {ConfigurationError} `INVALID_OPTION` */
export function checkStorage(where: string, given: DurableStorage): void {
  checkUnshown(`${where}: \`ctx.storage\` of a Durable Object with SQLite`, storage, given);
}
