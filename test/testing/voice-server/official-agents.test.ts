// `@openai/agents-realtime` holds a conversation with the fake: a session with a tool, spoken messages, and a barge-in.

import { RealtimeAgent, RealtimeSession, tool, type TransportEvent } from '@openai/agents-realtime';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { encodePcm16 } from '../../../src/voice/audio/pcm16.ts';
import { byType, createCollector } from './support/collector.ts';
import { API_KEY, listening } from './support/listening.ts';

test('calls a tool by voice and keeps the interrupted answer in its history', async () => {
  const { server, address } = await listening({
    // The session requests a response on its own after a tool result.
    respond: ({ cause }) => {
      if (cause.type === 'utterance' && cause.text === 'book me a ride') {
        return [{ call: 'book_ride', arguments: { to: 'airport' } }];
      }
      if (cause.type === 'result') return [{ say: `${String(cause.output)}.`, durationMs: 60_000 }];
      return [{ say: 'All right.' }];
    },
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
    config: { audio: { input: { transcription: { model: 'gpt-4o-mini-transcribe' } } } },
    tracingDisabled: true,
  });
  onTestFinished(() => session.close());
  const collector = createCollector<TransportEvent>();
  session.transport.on('*', collector.add);
  const next = byType(collector);
  const errors: unknown[] = [];
  session.on('error', (error) => errors.push(error));
  let interruptions = 0;
  session.on('audio_interrupted', () => {
    interruptions += 1;
  });
  await session.connect({
    apiKey: API_KEY,
    url: `${address.urls['openai-realtime']}?model=gpt-realtime-2.1`,
  });
  const model = await server.nextConnection();
  await model.configured;
  expect(model.instructions).toBe('Book.');
  session.sendAudio(encodePcm16(new Int16Array(4_800)).slice().buffer);
  await model.user.says('book me a ride', { durationMs: 10 });
  await next('response.output_audio.delta');
  expect(booked).toEqual(['airport']);

  await model.user.says('stop', { durationMs: 10 });
  // One for the call, one for the interrupted answer, and one for the last answer.
  for (let count = 0; count < 3; count += 1) await next('response.done');
  expect(interruptions).toBe(1);
  expect(model.replies.map(({ status }) => status)).toEqual([
    'completed',
    'cancelled',
    'completed',
  ]);
  expect(errors).toEqual([]);

  const said = (): string[] =>
    session.history.flatMap((item) =>
      item.type === 'message' && item.role !== 'system'
        ? item.content.flatMap((part) => ('transcript' in part ? [part.transcript ?? ''] : []))
        : [],
    );
  while (!['book me a ride', 'stop', 'All right.'].every((text) => said().includes(text))) {
    await new Promise((resolve) => {
      session.once('history_updated', resolve);
    });
  }
});
