// Records the traffic of a transport: the session's commands and frames and the transport's events, in order and per
// connection.
//
// Owns:     the record.
// Does not: change the traffic.

import { tap } from 'rxjs';
import type { AudioFrame } from '../../voice/audio/audio-frame.ts';
import type {
  Transport,
  TransportCommand,
  TransportConfiguration,
  TransportConnection,
  TransportContext,
  TransportEvent,
} from '../../voice/connection/transport.ts';

/** A command, an event or a frame. `at` is in milliseconds since 1970. */
export type Passed =
  | { readonly at: number; readonly command: TransportCommand }
  | { readonly at: number; readonly event: TransportEvent }
  | { readonly at: number; readonly frame: Omit<AudioFrame, 'samples'> };

/** A frame with at least this amplitude counts as speech. */
const LOUD = 4000;

/** The traffic on one connection. */
export interface TappedConnection {
  readonly configuration: TransportConfiguration;
  readonly passed: readonly Passed[];
  /** The time since which loud user audio has been sent, in milliseconds since 1970; null if none has been sent. */
  readonly loudSince: number | null;
  /** The session has closed the connection, so later events are ignored. */
  readonly isHungUp: boolean;
}

type Tapped = { -readonly [Key in keyof TappedConnection]: TappedConnection[Key] };

export class WireTap implements Transport {
  readonly name: string;
  readonly capabilities: Transport['capabilities'];
  readonly lead: Transport['lead'];
  readonly connections: Tapped[] = [];
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.name = transport.name;
    this.capabilities = transport.capabilities;
    this.lead = transport.lead;
    this.#transport = transport;
  }

  connect(configuration: TransportConfiguration, context: TransportContext): TransportConnection {
    const passed: Passed[] = [];
    const tapped: Tapped = {
      configuration,
      passed,
      isHungUp: false,
      loudSince: null,
    };
    this.connections.push(tapped);
    const { clock } = context.environment;
    const connection = this.#transport.connect(configuration, context);
    return {
      events: connection.events.pipe(tap((event) => passed.push({ at: clock.now(), event }))),
      audio: connection.audio.pipe(
        tap((frame) => passed.push({ at: clock.now(), frame: withoutSamples(frame) })),
      ),
      sendAudio: (frame) => {
        if (frame.samples.some((sample) => sample >= LOUD)) tapped.loudSince ??= clock.now();
        connection.sendAudio(frame);
      },
      send: (command) => {
        passed.push({ at: clock.now(), command });
        connection.send(command);
      },
      close: () => {
        tapped.isHungUp = true;
        return connection.close();
      },
    };
  }
}

function withoutSamples({ itemId, responseId, sampleRateHz }: AudioFrame) {
  return {
    sampleRateHz,
    ...(itemId !== undefined && { itemId }),
    ...(responseId !== undefined && { responseId }),
  };
}
