// Parses frames from a server that states each event's type in the field `type`. A table has, for each known type, a
// schema of the fields that are used or the reason why the type is ignored. Unknown fields are accepted, but a missing
// field is an error. Protocols without such a field parse their JSON with `jsonOf` and `malformed`.

import type { z } from 'zod';
import { OffstageError, messageOf } from '../../values/errors.ts';
import type { WireConnection } from './wire.ts';

/** For each type: the schema of the fields that are read, or the reason why the type is ignored. */
type EventTable = Readonly<Record<string, z.ZodType | string>>;

type TypeThatIsRead<Table extends EventTable> = {
  [Type in keyof Table]: Table[Type] extends z.ZodType ? Type : never;
}[keyof Table];

/** A known event with only the fields that are read. */
export type EventOf<Table extends EventTable> = {
  [Type in TypeThatIsRead<Table>]: z.output<Extract<Table[Type], z.ZodType>>;
}[TypeThatIsRead<Table>];

/** The result of parsing a frame. */
export type ParsedEvent<Event> =
  | { readonly kind: 'read'; readonly event: Event }
  /** The event is known and deliberately ignored. */
  | { readonly kind: 'ignored'; readonly type: string }
  /** The event is well-formed, but its type is not in the table. */
  | { readonly kind: 'unknown'; readonly type: string; readonly raw: unknown }
  | MalformedFrame;

/** The frame cannot be read, for the given reason. */
export interface MalformedFrame {
  readonly kind: 'malformed';
  readonly message: string;
  readonly raw: unknown;
}

const MAX_RAW_LENGTH = 2_000;

/** Parses a frame as JSON. Never throws. */
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

/** Reports that `what` (`message`, or a type) does not match its schema. */
export function malformed(what: string, { issues }: z.ZodError, raw: unknown): MalformedFrame {
  const reasons = issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  return { kind: 'malformed', message: `Malformed ${what}: ${reasons.join('; ')}`, raw };
}

/** Parses one text frame. Never throws. */
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

/** Checked without a schema, because a schema would copy each audio frame to determine its type. */
function typeOf(raw: unknown): string | null {
  if (typeof raw !== 'object' || raw === null || !('type' in raw)) return null;
  return typeof raw.type === 'string' ? raw.type : null;
}

/**
 * Forwards the events that the table reads, and reports all others to the connection. If `take` throws, its event is
 * reported as malformed and the connection continues.
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
