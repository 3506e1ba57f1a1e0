// Reads frames of a server that states the type of each event in the field `type`, with a table: each known type has a schema
// of the used fields, or the reason why it is not read. Unknown fields are accepted, missing ones are not. A wire without
// such a field reads its JSON with `jsonOf` and `malformed`.

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
  | MalformedFrame;

/** A frame that cannot be read, and the reason. */
export interface MalformedFrame {
  readonly kind: 'malformed';
  readonly message: string;
  readonly raw: unknown;
}

const MAX_RAW_LENGTH = 2_000;

/** Returns the JSON of a frame. Never throws. */
export function jsonOf(
  text: string,
): { readonly kind: 'json'; readonly raw: unknown } | MalformedFrame {
  try {
    return { kind: 'json', raw: JSON.parse(text) };
  } catch {
    const shown = text.slice(0, MAX_RAW_LENGTH);
    return { kind: 'malformed', message: 'Expected JSON, got something else', raw: shown };
  }
}

/** Reports `what` (`message`, or a type) as not fitting its schema. */
export function malformed(what: string, { issues }: z.ZodError, raw: unknown): MalformedFrame {
  const reasons = issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  return { kind: 'malformed', message: `Malformed ${what}: ${reasons.join('; ')}`, raw };
}

/** Reads one text frame. Never throws. */
export function parseEvent<const Table extends EventTable>(
  table: Table,
  text: string,
): ParsedEvent<EventOf<Table>> {
  const parsed = jsonOf(text);
  if (parsed.kind === 'malformed') return parsed;
  const { raw } = parsed;
  const type = typeOf(raw);
  if (type === null) {
    return { kind: 'malformed', message: 'Expected an object with a `type` (string)', raw };
  }
  const schema = Object.hasOwn(table, type) ? table[type] : undefined;
  if (schema === undefined) return { kind: 'unknown', type, raw };
  if (typeof schema === 'string') return { kind: 'ignored', type };
  const event = schema.safeParse(raw);
  return event.success
    ? { kind: 'read', event: event.data as EventOf<Table> }
    : malformed(type, event.error, raw);
}

/** Examined by hand: a schema would copy each frame of audio to determine its type. */
function typeOf(raw: unknown): string | null {
  if (typeof raw !== 'object' || raw === null || !('type' in raw)) return null;
  return typeof raw.type === 'string' ? raw.type : null;
}

/**
 * Forwards an event that the table reads; reports others to the connection. An error of `take` is attributed to the event: it
 * is reported as malformed, and the connection continues.
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
