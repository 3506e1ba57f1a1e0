// What an adapter says and reads on its socket. The connection is the same for every
// provider (`socket-connection.ts`); a wire is what differs, one for each connection.

import type { Environment } from '../../actors/ports/environment.ts';
import type { AudioFrame } from '../../voice/audio/audio-frame.ts';
import type { TransportCommand, TransportEvent } from '../../voice/connection/transport.ts';
import type { Ending } from './close-codes.ts';

/** The language of one provider. Frames are text; a server may send them as binary. */
export interface Wire {
  /** The first frames of the connection, sent when the socket is open. */
  start(): readonly string[];
  /** A frame of the server. What it throws is reported as malformed, and the connection goes on. */
  read(text: string): void;
  /** The frames that say a command; none where there is nothing to say now. */
  write(command: TransportCommand): readonly string[];
  /** A frame of the user's sound, at `WireOptions.inputSampleRateHz`. */
  writeAudio(frame: AudioFrame): string;
  /**
   * The last frames, where a server must be told before we close. It is given a moment to close
   * by itself.
   */
  farewell?(): readonly string[];
  /** The server closed: `ending` is what its code and reason usually mean. */
  closed?(ending: Ending): Ending;
  /** The connection has ended: nothing is said any more, timers stop. */
  stop?(): void;
}

/** What a connection lends to its wire. */
export interface WirePorts {
  readonly environment: Environment;
  emit(event: TransportEvent): void;
  /** Sound of the model, tagged with its `itemId` and `responseId`. */
  emitAudio(frame: AudioFrame): void;
  /**
   * The model is configured: what waited is sent, and `transport.ready` follows, with what the
   * model knows already. Once.
   */
  ready(resumed?: boolean, told?: boolean): void;
  /** Says something that no command asked for. Waits for readiness like a command. */
  send(text: string): void;
  /** The connection is of no use any more. */
  finish(ending: Ending): void;
  /** Something is wrong that the connection survives; emitted as `transport.error`. */
  report(code: string, message: string, raw?: unknown): void;
  /** A frame that is not what it claims to be: counted and reported. @defaultValue code `MALFORMED_EVENT` */
  malformed(message: string, raw: unknown, code?: string): void;
  /** A well-formed frame of a type that is not known: counted, and reported once for each type. */
  unknown(type: string, raw: unknown): void;
  /** Milliseconds of sound that the server got, as milliseconds of sound that the session gave. */
  toSessionMs(serverMs: number): number;
  /** Takes secrets out of a text that came from outside. */
  redact(text: string): string;
}

/** Counts of what a wire met that it could not use, since `connect`. */
export interface WireDiagnostics {
  /** Well-formed events by type that this version does not know. */
  readonly unknownEvents: Readonly<Record<string, number>>;
  /** Frames that were not JSON, or not what their type says. */
  readonly malformedEvents: number;
}
