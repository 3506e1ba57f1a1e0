// The provider-specific part of a connection: the frames that it sends and reads. The connection is the same
// for every provider (`socket-connection.ts`); each has its own wire object.

import type { Environment } from '../../actors/ports/environment.ts';
import type { AudioFrame } from '../../voice/audio/audio-frame.ts';
import type { TransportCommand, TransportEvent } from '../../voice/connection/transport.ts';
import type { Ending } from './close-codes.ts';

/** The language of one provider. Frames are text; a server may send them as binary. */
export interface Wire {
  /** The first frames of the connection, sent when the socket is open. */
  start(): readonly string[];
  /** Reads a frame of the server. An error is reported as malformed, and the connection continues. */
  read(text: string): void;
  /** Returns the frames for a command; empty if there are none now. */
  write(command: TransportCommand): readonly string[];
  /** Returns a frame of the user's audio, at `WireOptions.inputSampleRateHz`. */
  writeAudio(frame: AudioFrame): string;
  /**
   * Returns the last frames before a close, if the server needs them. The server then has a moment to close the connection.
   */
  farewell?(): readonly string[];
  /** Handles a close of the server: `ending` is the usual meaning of its code and reason. */
  closed?(ending: Ending): Ending;
  /** Handles the end of the connection: no more messages, timers stop. */
  stop?(): void;
}

/** The functions that a connection offers its wire. */
export interface WireConnection {
  readonly environment: Environment;
  emit(event: TransportEvent): void;
  /** Audio of the model, tagged with its `itemId` and `responseId`. */
  emitAudio(frame: AudioFrame): void;
  /**
   * Reports that the model is configured: the waiting commands are sent, and `transport.ready` follows, with the model's
   * existing knowledge. Called once.
   */
  ready(resumed?: boolean, told?: boolean): void;
  /** Sends a frame without a command. The frame waits for readiness like a command. */
  send(text: string): void;
  /** Ends the connection. */
  finish(ending: Ending): void;
  /** Reports an error that the connection survives; emitted as `transport.error`. */
  report(code: string, message: string, raw?: unknown): void;
  /** Reports a malformed frame: counted and emitted. @defaultValue code `MALFORMED_EVENT` */
  malformed(message: string, raw: unknown, code?: string): void;
  /** Reports a well-formed frame of an unknown type: counted, and emitted once per type. */
  unknown(type: string, raw: unknown): void;
  /** Converts milliseconds of the server's audio to milliseconds of the session's audio. */
  toSessionMs(serverMs: number): number;
  /** Removes secrets from an external text. */
  redact(text: string): string;
}

/** Counts of the messages that a wire could not use, since `connect`. */
export interface WireDiagnostics {
  /** The numbers of well-formed events of unknown types. */
  readonly unknownEvents: Readonly<Record<string, number>>;
  /** The number of frames that were not JSON, or did not match their type. */
  readonly malformedEvents: number;
}
