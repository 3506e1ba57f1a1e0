// A transport in which a fault has been planted.

import { concatMap, from, map } from 'rxjs';
import type { ConformanceSetup } from '../../../../src/testing/index.ts';
import type {
  AudioFrame,
  Transport,
  TransportCommand,
  TransportConnection,
  TransportEvent,
} from '../../../../src/voice/index.ts';

/** The fault that occurs on each of the transport's connections. */
export interface Mangle {
  /** Replaces an event. `send` sends a command to the provider. */
  readonly event?: (
    event: TransportEvent,
    send: (command: TransportCommand) => void,
  ) => readonly TransportEvent[];
  readonly command?: (command: TransportCommand) => readonly TransportCommand[];
  readonly frame?: (frame: AudioFrame) => AudioFrame;
  readonly close?: (close: () => Promise<void>) => Promise<void>;
}

export function faulty(setup: ConformanceSetup, makeMangle: () => Mangle): ConformanceSetup {
  return {
    ...setup,
    async open(world) {
      const stage = await setup.open(world);
      const mangle = makeMangle();
      return {
        transport: mangled(stage.transport, mangle),
        get models() {
          return stage.models;
        },
        close: () => stage.close?.(),
      };
    },
  };
}

function mangled(transport: Transport, mangle: Mangle): Transport {
  const {
    event = (same) => [same],
    command = (same) => [same],
    frame = (same) => same,
    close = (really) => really(),
  } = mangle;
  return {
    name: transport.name,
    lead: transport.lead,
    capabilities: transport.capabilities,
    connect(configuration, context): TransportConnection {
      const connection = transport.connect(configuration, context);
      const send = (given: TransportCommand): void => connection.send(given);
      return {
        events: connection.events.pipe(concatMap((given) => from(event(given, send)))),
        audio: connection.audio.pipe(map(frame)),
        sendAudio: (sound) => connection.sendAudio(sound),
        send: (given) => command(given).forEach(send),
        close: () => close(() => connection.close()),
      };
    },
  };
}
