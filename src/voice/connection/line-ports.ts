// What the line needs of its session, and what it tells it.

import type { Failure } from '../../machines/index.ts';
import type { AudioFrame } from '../audio/audio-frame.ts';
import type { LineClosed } from './link.ts';
import type { RotationOptions } from './rotation.ts';
import type { TransportCommand, TransportConfiguration, TransportEvent } from './transport.ts';

export interface LineOptions extends RotationOptions {
  readonly keptAudioMs: number;
}

export interface LinePorts {
  /** Who leads, for a connection that takes the place of the one in use. */
  configuration(): TransportConfiguration;
  /** The conversation, as the commands that tell it. */
  history(): readonly TransportCommand[];
  /** What of it the model in use was told, or said itself. */
  told(): readonly TransportCommand[];
  /** Nobody speaks, and nobody is about to. */
  isAtRest(): boolean;
  /** A connection is ready, and is to be told this. */
  ready(untold: readonly TransportCommand[]): void;
  /** The connection in use is gone. */
  lost(event: LineClosed): void;
  /** It was hung up, for another one that is to be dialled to go on. */
  renewing(): void;
  happened(event: TransportEvent): void;
  spoke(frame: AudioFrame): void;
  /** Another connection has taken the place of the one in use, and is to be told this. */
  replaced(untold: readonly TransportCommand[]): void;
  /** The other agent is ready, or why it will not be. Once for each `transfer`. */
  transferred(error: Failure | null): void;
}
