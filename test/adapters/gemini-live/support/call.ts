// A connection to an in-memory server, with logs of its events, in simulated time.

import { onTestFinished } from 'vitest';
import { geminiLive, type GeminiLiveOptions } from '../../../../src/adapters/gemini-live/index.ts';
import {
  simulatedEnvironment,
  type SimulatedEnvironment,
} from '../../../../src/testing/doubles/simulated-environment.ts';
import { encodePcm16Base64 } from '../../../../src/voice/audio/pcm16.ts';
import type { AudioFrame } from '../../../../src/voice/audio/audio-frame.ts';
import type {
  TransportCommand,
  TransportConnection,
  TransportContext,
  TransportEvent,
} from '../../../../src/voice/connection/transport.ts';
import { configuration } from '../../support/configuration.ts';
import { memoryServer, type MemoryPeer, type Said, type ServerSays } from './memory-socket.ts';

export const API_KEY = 'AIza-test-0123456789';

export class Call {
  readonly environment: SimulatedEnvironment;
  readonly connection: TransportConnection;
  readonly peer: MemoryPeer;
  readonly events: TransportEvent[] = [];
  readonly frames: AudioFrame[] = [];
  #taken = 0;

  constructor(options: GeminiLiveOptions = {}, context: Partial<TransportContext> = {}) {
    const { webSocket, peers } = memoryServer();
    this.environment = (context.environment as SimulatedEnvironment) ?? simulatedEnvironment();
    const transport = geminiLive({
      ...(options.ephemeralToken === undefined && { apiKey: API_KEY }),
      webSocket,
      keepAliveMs: null,
      ...options,
    });
    const { environment } = this;
    this.connection = transport.connect(configuration, { ...context, environment });
    this.connection.events.subscribe((event) => this.events.push(event));
    this.connection.audio.subscribe((frame) => this.frames.push(frame));
    const [peer] = peers;
    if (peer === undefined) throw new Error('No connection was opened');
    this.peer = peer;
    onTestFinished(async () => {
      const closed = this.connection.close();
      await environment.advance(5_000);
      await closed;
    });
  }

  /** Opens the connection and accepts the setup. Discards the earlier messages. */
  async begin(): Promise<this> {
    this.peer.open();
    this.peer.says({ setupComplete: {} });
    await this.settle();
    this.peer.news();
    this.news();
    return this;
  }

  says(...messages: readonly ServerSays[]): void {
    for (const message of messages) this.peer.says(message);
  }

  /** Sends commands in one turn of the event loop and lets the turn end. */
  async sends(...commands: readonly TransportCommand[]): Promise<readonly Said[]> {
    for (const command of commands) this.connection.send(command);
    await this.settle();
    return this.peer.news();
  }

  /** Sends audio from the user's microphone. */
  hears(ms = 100): void {
    this.connection.sendAudio({ samples: new Int16Array(ms * 16), sampleRateHz: 16_000 });
  }

  settle(): Promise<void> {
    return this.environment.settle();
  }

  advance(ms: number): Promise<void> {
    return this.environment.advance(ms);
  }

  /** Returns the events since the last call. */
  news(): readonly TransportEvent[] {
    const news = this.events.slice(this.#taken);
    this.#taken = this.events.length;
    return news;
  }

  /** Returns the last event of this type. */
  last<Type extends TransportEvent['type']>(
    type: Type,
  ): Extract<TransportEvent, { type: Type }> | undefined {
    return this.events.findLast(
      (event): event is Extract<TransportEvent, { type: Type }> => event.type === type,
    );
  }
}

export function startCall(options?: GeminiLiveOptions): Promise<Call> {
  return new Call(options).begin();
}

/** Returns audio from the model. */
export function sound(ms = 100): ServerSays {
  const data = encodePcm16Base64(new Int16Array(ms * 24).fill(7));
  return {
    serverContent: { modelTurn: { parts: [{ inlineData: { data, mimeType: 'audio/pcm' } }] } },
  };
}

export const spoken = (text: string): ServerSays => ({
  serverContent: { outputTranscription: { text } },
});
export const words = (text: string): ServerSays => ({
  serverContent: { inputTranscription: { text } },
});
export const generated: ServerSays = { serverContent: { generationComplete: true } };
export const turnComplete: ServerSays = { serverContent: { turnComplete: true } };
export const interrupted: ServerSays = { serverContent: { interrupted: true } };

export const toolCall = (id: string, name = 'book_ride', args = {}): ServerSays => ({
  toolCall: { functionCalls: [{ id, name, args }] },
});
