// The types of the server events, and the error that rejects a client event. Server events are typed against the
// official package, so that an event with an invalid form does not compile.

import { ProtocolError } from '../../values/errors.ts';
import type { RealtimeServerEvent } from '../openai-realtime/official.ts';

/** The type of a protocol object. The protocol writes `null` for fields that the official types omit. */
type NullForAbsent<T> = unknown extends T
  ? T
  : T extends object
    ? { [Key in keyof T]: NullIfOptional<T[Key]> }
    : T;
type NullIfOptional<T> = undefined extends T ? NullForAbsent<T> | null : NullForAbsent<T>;

export type ServerEvent = NullForAbsent<RealtimeServerEvent>;

/** A server event that has no `event_id` yet. */
export type ServerEventBody = WithoutId<ServerEvent>;
type WithoutId<Event> = Event extends { event_id: string } ? Omit<Event, 'event_id'> : never;

type EventOf<Type extends ServerEvent['type']> = Extract<ServerEvent, { type: Type }>;

/** A conversation item in the client's form. */
export type WireItem = EventOf<'conversation.item.added'>['item'];
export type WireResponse = EventOf<'response.created'>['response'];
export type WireUsage = NonNullable<WireResponse['usage']>;

/** Sends an event to the client. Never throws, and does nothing after the connection has been closed. */
export type Emit = (event: ServerEventBody) => void;

/** Rejects a client event. The client receives an `error` event. */
export class Refusal extends ProtocolError {
  /** The invalid field of the client event, such as `item.content[0].type`. */
  readonly param: string | null;
  constructor(code: string, message: string, param: string | null = null) {
    super(code, message);
    this.param = param;
  }
}
