// A transport that is listened to: what a session told it and what it told the session, in
// order, connection by connection.
//
// Owns:     the record.
// Does not: change anything that passes.

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

/** Something that passed; `at`: milliseconds since 1970. */
export type Passed =
  | { readonly at: number; readonly command: TransportCommand }
  | { readonly at: number; readonly event: TransportEvent }
  | { readonly at: number; readonly frame: Omit<AudioFrame, 'samples'> };

/** As loud as a voice. */
const LOUD = 4000;

/** What passed on one connection. */
export interface TappedConnection {
  readonly configuration: TransportConfiguration;
  readonly passed: readonly Passed[];
  /** Since when the sound of the user was sent that is loud; milliseconds since 1970, null: none was. */
  readonly loudSince: number | null;
  /** The session has hung up; what comes after that nobody hears. */
  readonly isHungUp: boolean;
}

type Tapped = { -readonly [Key in keyof TappedConnection]: TappedConnection[Key] };

export class WireTap implements Transport {
  readonly name: string;
  readonly capabilities: Transport['capabilities'];
  readonly connections: Tapped[] = [];
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.name = transport.name;
    this.capabilities = transport.capabilities;
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
