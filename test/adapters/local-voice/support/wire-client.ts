// A raw client for the wire. It records every event and checks it with the schemas of an official client
// (@openai/agents-realtime). An unknown event becomes a "generic" event.

import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { WebSocket, type ClientOptions } from 'ws';
import type { RealtimeClientEvent } from '../../../../src/adapters/openai-realtime/official.ts';
import { encodePcm16Base64 } from '../../../../src/voice/audio/pcm16.ts';
import type { LocalVoiceAddress } from '../../../../src/adapters/local-voice/index.ts';

interface OfficialSchemas {
  parseRealtimeEvent(event: { data: string }): { isGeneric: boolean };
}

const require = createRequire(import.meta.url);
// The package does not export this file, so it is found through the package's main file.
const agentsMain = require.resolve('@openai/agents-realtime');
const { parseRealtimeEvent } = (await import(
  pathToFileURL(join(dirname(agentsMain), 'openaiRealtimeEvents.mjs')).href
)) as OfficialSchemas;

/** An event of the server, loosely typed: tests read its fields. */
// oxlint-disable-next-line typescript/no-explicit-any
export type Received = { type: string; event_id: string } & Record<string, any>;

const FRAME_SAMPLES = 480;

export class WireClient {
  readonly events: Received[] = [];
  /** The types of events that the official schemas refuse. */
  readonly invalid: string[] = [];
  readonly socket: WebSocket;
  readonly #seen = new Map<string, number>();
  #waiting: (() => void)[] = [];
  #closed: { code: number; reason: string } | undefined;
  #fences = 0;

  constructor(url: string, options: ClientOptions = {}, protocols: string[] = []) {
    this.socket = new WebSocket(url, protocols, options);
    this.socket.on('message', (data) => {
      const text = (data as Buffer).toString();
      const event = JSON.parse(text) as Received;
      this.events.push(event);
      // The official types include images, which these schemas do not know yet.
      const knownGap = text.includes('"input_image"');
      if (!knownGap && parseRealtimeEvent({ data: text }).isGeneric) this.invalid.push(event.type);
      this.#wake();
    });
    this.socket.on('error', () => undefined);
    this.socket.on('close', (code, reason) => {
      this.#closed = { code, reason: reason.toString() };
      this.#wake();
    });
  }

  static async connect({ url, apiKey }: LocalVoiceAddress): Promise<WireClient> {
    const client = new WireClient(url, { headers: { authorization: `Bearer ${apiKey}` } });
    await client.next('session.created');
    return client;
  }

  send(event: RealtimeClientEvent | Record<string, unknown>): void {
    this.socket.send(JSON.stringify(event));
  }

  /** Returns the first event of this type that has not been returned yet. */
  async next(type: string): Promise<Received> {
    const from = this.#seen.get(type) ?? 0;
    const index = await this.#until(() => {
      const found = this.events.findIndex((event, at) => at >= from && event.type === type);
      return found < 0 ? undefined : found;
    }, type);
    this.#seen.set(type, index + 1);
    return this.events[index] as Received;
  }

  /** Resolves when the server has answered all earlier events. */
  async fence(): Promise<void> {
    const id = `fence_${(this.#fences += 1)}`;
    this.send({ type: 'conversation.item.retrieve', item_id: id, event_id: id });
    await this.#until(
      () => this.events.find((event) => event['error']?.event_id === id),
      `the answer to ${id}`,
    );
  }

  async closed(): Promise<{ code: number; reason: string }> {
    return this.#until(() => this.#closed, 'close', true);
  }

  /** Returns the types of the events from the first `type` on, without fences and without immediate repetitions. */
  typesFrom(type: string): string[] {
    const start = this.events.findIndex((event) => event.type === type);
    const types = this.events
      .slice(start)
      .filter((event) => !String(event['error']?.event_id).startsWith('fence_'))
      .map((event) => event.type);
    return types.filter((each, at) => each !== types[at - 1]);
  }

  count(type: string): number {
    return this.events.filter((event) => event.type === type).length;
  }

  /** Appends audio, 20 ms at a time. */
  speak(samples: Int16Array): void {
    for (let start = 0; start < samples.length; start += FRAME_SAMPLES) {
      const audio = encodePcm16Base64(samples.slice(start, start + FRAME_SAMPLES));
      this.send({ type: 'input_audio_buffer.append', audio });
    }
  }

  async #until<T>(find: () => T | undefined, what: string, evenClosed = false): Promise<T> {
    for (;;) {
      const found = find();
      if (found !== undefined) return found;
      if (this.#closed !== undefined && !evenClosed) {
        const got = this.events.map((event) => event.type).join(', ');
        throw new Error(`closed (${this.#closed.code}) while waiting for ${what}; got: ${got}`);
      }
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    }
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
