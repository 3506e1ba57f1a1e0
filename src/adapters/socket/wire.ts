// The provider-specific part of a connection: the frames to send and to read. The connection is the same for all
// providers (`socket-connection.ts`), but each provider has its own `Wire`.

import type { Environment } from '../../actors/ports/environment.ts';
import type { AudioFrame } from '../../voice/audio/audio-frame.ts';
import type { TransportCommand, TransportEvent } from '../../voice/connection/transport.ts';
import type { Ending } from './close-codes.ts';

/** One provider's protocol. Frames are text, but a server may send them as binary. */
export interface Wire {
  /** The connection's first frames, sent when the socket is open. */
  start(): readonly string[];
  /** Handles a server frame. If it throws, the frame is reported as malformed and the connection continues. */
  read(text: string): void;
  /** Returns the frames for a command; empty if the command needs no frame now. */
  write(command: TransportCommand): readonly string[];
  /** Returns a user audio frame, at `WireOptions.inputSampleRateHz`. */
  writeAudio(frame: AudioFrame): string;
  /**
   * Returns the last frames to send before closing, if the server needs any. After this, the server has a moment to
   * close the connection itself.
   */
  farewell?(): readonly string[];
  /** Handles a close initiated by the server: `ending`: the usual interpretation of the code and the reason. */
  closed?(ending: Ending): Ending;
  /** Handles the end of the connection. No more messages follow, and all timers must be stopped. */
  stop?(): void;
}

/** The functions that a connection offers to its protocol. */
export interface WireConnection {
  readonly environment: Environment;
  emit(event: TransportEvent): void;
  /** Passes on model audio, tagged with its `itemId` and `responseId`. */
  emitAudio(frame: AudioFrame): void;
  /**
   * Reports that the model is configured. The pending commands are sent, and `transport.ready` follows, which states
   * which part of the history the model already has. Called once.
   */
  ready(resumed?: boolean, told?: boolean): void;
  /** Sends a frame that does not belong to a command. Like a command, the frame waits for readiness. */
  send(text: string): void;
  /** Ends the connection. */
  finish(ending: Ending): void;
  /** Reports an error that does not end the connection, as `transport.error`. */
  report(code: string, message: string, raw?: unknown): void;
  /** Counts a malformed frame and reports it. @defaultValue code `MALFORMED_EVENT` */
  malformed(message: string, raw: unknown, code?: string): void;
  /** Counts a well-formed frame of an unknown type, and reports each type once. */
  unknown(type: string, raw: unknown): void;
  /** Converts milliseconds of the server's audio to milliseconds of the session's audio. */
  toSessionMs(serverMs: number): number;
  /** Removes secrets from an external text. */
  redact(text: string): string;
}

/** The numbers of messages since `connect` that a connection could not interpret. */
export interface WireDiagnostics {
  /** The number of well-formed events, for each unknown type. */
  readonly unknownEvents: Readonly<Record<string, number>>;
  /** The number of frames that were not JSON or did not match their type. */
  readonly malformedEvents: number;
}
