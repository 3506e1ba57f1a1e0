// Types for the parts of Cloudflare's Durable Objects that Offstage uses. The app gets the full types from `wrangler
// types` or `@cloudflare/workers-types`, in any version.

import { z } from 'zod';
import { aFunction, checkUnshown } from '../../values/checks.ts';
import { ConfigurationError } from '../../values/errors.ts';

type SqlValue = ArrayBuffer | string | number | null;

interface SqlCursor {
  toArray(): Record<string, SqlValue>[];
}

/** `ctx.storage` of an object with SQLite (`new_sqlite_classes`). */
export interface DurableStorage {
  readonly sql: { exec(query: string, ...bindings: SqlValue[]): SqlCursor };
  transactionSync<T>(work: () => T): T;
  setAlarm(at: number): Promise<void>;
  deleteAlarm(): Promise<void>;
}

/** A WebSocket that outlives the object's memory. */
export interface DurableSocket {
  send(message: string | Uint8Array): void;
  close(code?: number, reason?: string): void;
  serializeAttachment(value: unknown): void;
  deserializeAttachment(): unknown;
}

/** `ctx` of a Durable Object. */
export interface DurableObjectContext<Socket extends DurableSocket = DurableSocket> {
  readonly id: { readonly name?: string | undefined; toString(): string };
  readonly storage: DurableStorage;
  acceptWebSocket(socket: Socket): void;
  getWebSockets(): Socket[];
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
