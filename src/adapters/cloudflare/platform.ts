// The parts of Cloudflare's Durable Objects that Offstage uses, by shape: their types come from `wrangler types`, or from
// `@cloudflare/workers-types`, in any version.

import { z } from 'zod';
import { aFunction, checkUnshown } from '../../values/checks.ts';

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

/** A WebSocket that outlives the memory of its object. */
export interface DurableSocket {
  send(message: string): void;
  close(code?: number, reason?: string): void;
}

/** `ctx` of a Durable Object. */
export interface DurableObjectContext<Socket extends DurableSocket = DurableSocket> {
  readonly id: { readonly name?: string | undefined; toString(): string };
  readonly storage: DurableStorage;
  acceptWebSocket(socket: Socket): void;
  getWebSockets(): Socket[];
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
