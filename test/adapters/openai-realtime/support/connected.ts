// A connection to a fake server, with logs of its events.

import { onTestFinished } from 'vitest';
import {
  openaiRealtime,
  type OpenaiRealtimeOptions,
} from '../../../../src/adapters/openai-realtime/index.ts';
import type { AudioFrame } from '../../../../src/voice/audio/audio-frame.ts';
import type {
  TransportCommand,
  TransportEvent,
} from '../../../../src/voice/connection/transport.ts';
import { configuration } from '../../support/configuration.ts';
import { createEventLog } from './event-log.ts';
import { startFakeServer, type FakePeer, type FakeServer } from './fake-server.ts';
import { manualEnvironment, type ManualEnvironment } from './manual-environment.ts';

export const API_KEY = 'sk-test-0123456789abcdef';

type EventType = TransportEvent['type'];

export interface Client {
  readonly environment: ManualEnvironment;
  readonly connection: ReturnType<ReturnType<typeof openaiRealtime>['connect']>;
  readonly events: readonly TransportEvent[];
  readonly frames: readonly AudioFrame[];
  next<Type extends EventType>(type: Type): Promise<Extract<TransportEvent, { type: Type }>>;
  nextFrame(): Promise<AudioFrame>;
  send(command: TransportCommand): void;
  /** Resolves when both streams have completed. */
  readonly completed: Promise<void>;
}

/** Connects to `url`, and closes the connection when the test ends. */
export function connectTo(url: string, options: OpenaiRealtimeOptions = {}): Client {
  const environment = manualEnvironment();
  const transport = openaiRealtime({ apiKey: API_KEY, url, ...options });
  const connection = transport.connect(configuration, { environment });
  const events = createEventLog<TransportEvent>();
  const frames = createEventLog<AudioFrame>();
  const completed = Promise.all([
    new Promise<void>((complete) =>
      connection.events.subscribe({ next: (event) => events.push(event), complete }),
    ),
    new Promise<void>((complete) =>
      connection.audio.subscribe({ next: (frame) => frames.push(frame), complete }),
    ),
  ]).then(() => {});
  onTestFinished(async () => {
    const closed = connection.close();
    environment.advance(60_000);
    await closed;
  });
  return {
    environment,
    connection,
    events: events.all,
    frames: frames.all,
    next: (type) =>
      events.next(
        type,
        (event): event is Extract<TransportEvent, { type: typeof type }> => event.type === type,
      ),
    nextFrame: () => frames.next('frame', (frame): frame is AudioFrame => frame !== undefined),
    send: (command) => connection.send(command),
    completed,
  };
}

export interface Call {
  readonly client: Client;
  readonly peer: FakePeer;
  readonly server: FakeServer;
}

/** A client whose session the server has accepted. */
export async function startCall(options?: OpenaiRealtimeOptions): Promise<Call> {
  const server = await startFakeServer();
  onTestFinished(() => server.close());
  const client = connectTo(server.url, options);
  const peer = await server.nextPeer();
  await peer.acceptSession();
  await client.next('transport.ready');
  return { client, peer, server };
}

/** Returns 100 ms of the user's audio, in which each sample has this value. */
export function userAudio(mark = 1, ms = 100): AudioFrame {
  return { samples: new Int16Array(ms * 24).fill(mark), sampleRateHz: 24_000 };
}
