// Reads frames of a server that states the type of each event in the field `type`, with a table: each known
// type has a schema of the fields that are read, or the reason why it is not read. At run time unknown fields
// are accepted, missing ones are not.

import type { z } from 'zod';
import { OffstageError, messageOf } from '../../values/errors.ts';
import type { WireConnection } from './wire.ts';

/** By type: the schema of the fields that are read, or the reason why the type is not read. */
type EventTable = Readonly<Record<string, z.ZodType | string>>;

type TypeThatIsRead<Table extends EventTable> = {
  [Type in keyof Table]: Table[Type] extends z.ZodType ? Type : never;
}[keyof Table];

/** An event that is read, with the fields that are read. */
export type EventOf<Table extends EventTable> = {
  [Type in TypeThatIsRead<Table>]: z.output<Extract<Table[Type], z.ZodType>>;
}[TypeThatIsRead<Table>];

/** The result of parsing a frame. */
export type ParsedEvent<Event> =
  | { readonly kind: 'read'; readonly event: Event }
  /** Known, and deliberately not read. */
  | { readonly kind: 'ignored'; readonly type: string }
  /** Well formed, of a type that the table does not know. */
  | { readonly kind: 'unknown'; readonly type: string; readonly raw: unknown }
  | { readonly kind: 'malformed'; readonly message: string; readonly raw: unknown };

const MAX_RAW_LENGTH = 2_000;

/** Reads one text frame. Never throws. */
export function parseEvent<const Table extends EventTable>(
  table: Table,
  text: string,
): ParsedEvent<EventOf<Table>> {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    const shown = text.slice(0, MAX_RAW_LENGTH);
    return { kind: 'malformed', message: 'Expected JSON, got something else', raw: shown };
  }
  const type = typeOf(raw);
  if (type === null) {
    return { kind: 'malformed', message: 'Expected an object with a `type` (string)', raw };
  }
  const schema = Object.hasOwn(table, type) ? table[type] : undefined;
  if (schema === undefined) return { kind: 'unknown', type, raw };
  if (typeof schema === 'string') return { kind: 'ignored', type };
  const event = schema.safeParse(raw);
  if (event.success) return { kind: 'read', event: event.data as EventOf<Table> };
  const issues = event.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  return { kind: 'malformed', message: `Malformed ${type}: ${issues.join('; ')}`, raw };
}

/** Examined by hand: a schema would copy each frame of sound to determine its type. */
function typeOf(raw: unknown): string | null {
  if (typeof raw !== 'object' || raw === null || !('type' in raw)) return null;
  return typeof raw.type === 'string' ? raw.type : null;
}

/**
 * Passes on an event that is read; reports others to the connection. An error of `take` is attributed to the
 * event: it is reported as malformed, and the connection continues.
 */
export function takeEvent<Event extends { readonly type: string }>(
  parsed: ParsedEvent<Event>,
  ports: Pick<WireConnection, 'malformed' | 'unknown'>,
  take: (event: Event) => void,
): void {
  switch (parsed.kind) {
    case 'ignored':
      return;
    case 'unknown':
      return ports.unknown(parsed.type, parsed.raw);
    case 'malformed':
      return ports.malformed(parsed.message, parsed.raw);
    case 'read':
      try {
        take(parsed.event);
      } catch (error) {
        const code = error instanceof OffstageError ? error.code : 'INTERNAL';
        ports.malformed(`${parsed.event.type}: ${messageOf(error)}`, parsed.event, code);
      }
  }
}
