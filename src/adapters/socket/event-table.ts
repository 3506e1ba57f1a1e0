// Frames of a server that names the type of each event in the field `type`, read with a
// table: each known type has a schema of the fields that we read, or the reason why we do
// not read it. At run time fields that we do not know are fine, missing ones are not.

import type { z } from 'zod';
import { OffstageError, messageOf } from '../../values/errors.ts';
import type { WirePorts } from './wire.ts';

/** By type: what we read of it, or why we do not. */
export type EventTable = Readonly<Record<string, z.ZodType | string>>;

type TypeThatIsRead<Table extends EventTable> = {
  [Type in keyof Table]: Table[Type] extends z.ZodType ? Type : never;
}[keyof Table];

/** An event that is read, with the fields that are read. */
export type EventOf<Table extends EventTable> = {
  [Type in TypeThatIsRead<Table>]: z.output<Extract<Table[Type], z.ZodType>>;
}[TypeThatIsRead<Table>];

/** What a frame of the server turned out to be. */
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

/** Looked at by hand: a schema would copy each frame of sound to learn what it is. */
function typeOf(raw: unknown): string | null {
  if (typeof raw !== 'object' || raw === null || !('type' in raw)) return null;
  return typeof raw.type === 'string' ? raw.type : null;
}

/**
 * Hands an event on that is read; of what is not, the connection learns what it needs to know. What
 * `take` throws is the fault of the event: it is told as malformed, and the connection goes on.
 */
export function takeEvent<Event extends { readonly type: string }>(
  parsed: ParsedEvent<Event>,
  ports: Pick<WirePorts, 'malformed' | 'unknown'>,
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
