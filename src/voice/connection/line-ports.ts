// The functions that the line needs of its session, and the events that it reports to it.

import type { Failure } from '../../machines/index.ts';
import type { AudioFrame } from '../audio/audio-frame.ts';
import type { LineClosed } from './link.ts';
import type { RotationOptions } from './rotation.ts';
import type { TransportCommand, TransportConfiguration, TransportEvent } from './transport.ts';

export interface LineOptions extends RotationOptions {
  readonly keptAudioMs: number;
}

export interface LinePorts {
  /** Returns the configuration of the current lead agent, for a connection that replaces the one in use. */
  configuration(): TransportConfiguration;
  /** Returns the conversation as the commands that tell it. */
  history(): readonly TransportCommand[];
  /** Returns the part of the history that the current model received or said itself. */
  told(): readonly TransportCommand[];
  /** Returns whether no side speaks or is about to. */
  isAtRest(): boolean;
  /** Reports that a connection is ready and needs these messages. */
  ready(untold: readonly TransportCommand[]): void;
  /** Reports that the connection in use is lost. */
  lost(event: LineClosed): void;
  /** Reports that the connection in use was closed and is about to be redialled to continue. */
  renewing(): void;
  happened(event: TransportEvent): void;
  spoke(frame: AudioFrame): void;
  /** Reports that another connection has replaced the one in use and needs these messages. */
  replaced(untold: readonly TransportCommand[]): void;
  /** Reports that the other agent is ready, or the error that prevents it. Once per `transfer`. */
  transferred(error: Failure | null): void;
}
