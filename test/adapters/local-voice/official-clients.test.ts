// The official clients hold a conversation with the server: they ask, it calls a tool, they answer, and they interrupt.
// This test does not parse the wire itself.

import { readFileSync } from 'node:fs';
import { once } from 'node:events';
import {
  RealtimeAgent,
  RealtimeSession,
  tool,
  type RealtimeItem,
  type TransportEvent,
} from '@openai/agents-realtime';
import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import type { RealtimeServerEvent } from 'openai/resources/realtime/realtime';
import { describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { encodePcm16, encodePcm16Base64 } from '../../../src/voice/audio/pcm16.ts';
import { gate, startHarness } from './support/harness.ts';
import { tone } from './support/scripted-speech.ts';

const BOOK = 4_000;
const WAIT = 5_000;
const words = { [BOOK]: 'book me a ride', [WAIT]: 'wait' };

const pem = (name: string): string =>
  readFileSync(new URL(`support/test-only-${name}.pem`, import.meta.url), 'utf8');

/** Collects an emitter's events, and waits for them. */
function collector<Event extends { readonly type: string }>() {
  const events: Event[] = [];
  const seen = new Map<string, number>();
  let wake = (): void => undefined;
  return {
    add(event: Event) {
      events.push(event);
      wake();
    },
    /** Returns the first event of this type that has not been returned yet. */
    async next<Type extends Event['type']>(type: Type): Promise<Extract<Event, { type: Type }>> {
      for (;;) {
        const from = seen.get(type) ?? 0;
        const index = events.findIndex((event, at) => at >= from && event.type === type);
        if (index >= 0) {
          seen.set(type, index + 1);
          return events[index] as Extract<Event, { type: Type }>;
        }
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}

/** Returns audio of constant loudness in pieces of 100 ms. */
function pieces(loudness: number, count: number): Int16Array[] {
  return Array.from({ length: count }, () => tone(loudness, 100));
}

describe('the client `openai`', () => {
  test('handles a tool call, a spoken answer, an interruption and a truncation over wss', async () => {
    const held = gate();
    const { address, model } = await startHarness({
      words,
      tls: { key: pem('key'), cert: pem('cert') },
      answers: [
        [{ call: 'book_ride', input: { to: 'airport' } }],
        ['Your ride is booked. ', { until: held.opened }, 'The driver is Ada.'],
        ['Sorry.'],
      ],
    });
    const client = new OpenAI({
      apiKey: address.apiKey,
      baseURL: `https://127.0.0.1:${address.port}/v1`,
    });
    const connection = { model: 'gpt-realtime-2.1', options: { ca: pem('cert') } };
    const realtime = new OpenAIRealtimeWS(connection, client);
    onTestFinished(() => realtime.close());
    const { add, next } = collector<RealtimeServerEvent>();
    realtime.on('event', add);
    realtime.on('error', () => undefined);
    await once(realtime.socket, 'open');

    await next('session.created');
    realtime.send({
      type: 'session.update',
      session: {
        type: 'realtime',
        instructions: 'You book rides.',
        tools: [{ type: 'function', name: 'book_ride', parameters: { type: 'object' } }],
        audio: { input: { transcription: { model: 'gpt-4o-mini-transcribe' } } },
      },
    });
    await next('session.updated');
    const append = (loudness: number, count: number): void => {
      for (const piece of pieces(loudness, count)) {
        realtime.send({ type: 'input_audio_buffer.append', audio: encodePcm16Base64(piece) });
      }
    };
    append(BOOK, 5);
    append(0, 6);
    await next('input_audio_buffer.speech_started');
    const call = await next('response.function_call_arguments.done');
    expect(call).toMatchObject({ name: 'book_ride', arguments: '{"to":"airport"}' });
    const heard = await next('conversation.item.input_audio_transcription.completed');
    expect(heard.transcript).toBe('book me a ride');
    await next('response.done');

    realtime.send({
      type: 'conversation.item.create',
      item: { type: 'function_call_output', call_id: call.call_id, output: '{"ok":true}' },
    });
    realtime.send({ type: 'response.create' });
    const sound = await next('response.output_audio.delta');
    realtime.send({ type: 'response.create', event_id: 'twice' });
    const { error } = await next('error');
    expect(error).toMatchObject({
      code: 'conversation_already_has_active_response',
      event_id: 'twice',
    });

    append(WAIT, 5);
    await next('input_audio_buffer.speech_started');
    const { response } = await next('response.done');
    expect(response).toMatchObject({
      status: 'cancelled',
      status_details: { reason: 'turn_detected' },
    });
    realtime.send({
      type: 'conversation.item.truncate',
      item_id: sound.item_id,
      content_index: 0,
      audio_end_ms: 0,
    });
    await next('conversation.item.truncated');
    held.open();
    append(0, 6);
    const last = await next('response.done');
    expect(last.response).toMatchObject({ status: 'completed' });
    // The model knows the call and its answer, but not the words that were never heard.
    const prompt = JSON.stringify(model.prompt(2));
    expect(prompt).toContain('{\\"ok\\":true}');
    expect(prompt).not.toContain('Your ride is booked');
    expect(model.calls[0]?.prompt[0]).toMatchObject({ role: 'system', content: 'You book rides.' });
  });
});

describe('the client `@openai/agents-realtime`', () => {
  test('preserves its history through a tool call and an interruption', async () => {
    const held = gate();
    const { address } = await startHarness({
      words,
      answers: [
        [{ call: 'book_ride', input: { to: 'airport' } }],
        ['It is booked. ', { until: held.opened }],
        ['All right.'],
      ],
    });
    const booked: string[] = [];
    const bookRide = tool({
      name: 'book_ride',
      description: 'Books a ride.',
      parameters: z.object({ to: z.string() }),
      execute: ({ to }) => {
        booked.push(to);
        return `booked to ${to}`;
      },
    });
    const agent = new RealtimeAgent({ name: 'rides', instructions: 'Book.', tools: [bookRide] });
    const session = new RealtimeSession(agent, {
      transport: 'websocket',
      model: 'gpt-realtime-2.1',
      config: {
        audio: {
          input: {
            transcription: { model: 'gpt-4o-mini-transcribe' },
            turnDetection: { type: 'server_vad', silenceDurationMs: 300 },
          },
        },
      },
      tracingDisabled: true,
    });
    onTestFinished(() => session.close());
    const { add, next } = collector<TransportEvent>();
    session.transport.on('*', add);
    const errors: unknown[] = [];
    session.on('error', (error) => errors.push(error));
    let history: RealtimeItem[] = [];
    session.on('history_updated', (items) => {
      history = items;
    });
    const interruptions: unknown[] = [];
    session.on('audio_interrupted', (...details) => interruptions.push(details));
    let bytesOfSound = 0;
    session.on('audio', ({ data }) => {
      bytesOfSound += data.byteLength;
    });

    await session.connect({ apiKey: address.apiKey, url: address.url });
    await next('session.updated');
    const say = (loudness: number): void => {
      for (const piece of [...pieces(loudness, 5), ...pieces(0, 6)]) {
        session.sendAudio(encodePcm16(piece).slice().buffer);
      }
    };
    say(BOOK);
    await next('response.output_audio.delta');
    expect(booked).toEqual(['airport']);

    say(WAIT);
    // The call, the interrupted response and the last words each end with an event.
    for (let count = 0; count < 3; count += 1) await next('response.done');
    held.open();
    expect(interruptions.length).toBe(1);
    expect(bytesOfSound).toBeGreaterThan(0);
    expect(errors).toEqual([]);

    // The client requests items again in order to have them complete; the last answer is still being sent.
    const said = () =>
      history.flatMap((item) =>
        item.type === 'message' && item.role !== 'system'
          ? item.content.map((part) => ('transcript' in part ? part.transcript : null))
          : [],
      );
    while (!said().includes('wait') || !said().includes('All right.')) {
      await new Promise((resolve) => {
        session.once('history_updated', resolve);
      });
    }
    expect(said()).toContain('book me a ride');
  });
});
