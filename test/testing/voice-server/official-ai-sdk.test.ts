// The AI SDK's realtime codecs hold a conversation with the fake on each wire: they provide the address, encode
// outgoing messages and decode incoming messages.

import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import type {
  Experimental_RealtimeModelV4 as RealtimeModel,
  Experimental_RealtimeModelV4ClientEvent as ClientEvent,
  Experimental_RealtimeModelV4ServerEvent as ServerEvent,
} from '@ai-sdk/provider';
import { expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { byType, createCollector } from './support/collector.ts';
import { API_KEY, listening, silence, type Listening } from './support/listening.ts';

type Codec = Pick<
  RealtimeModel,
  'getServerWebSocketConfig' | 'parseServerEvent' | 'serializeClientEvent'
>;

const tools = [
  {
    type: 'function' as const,
    name: 'book_ride',
    description: 'Books a ride.',
    parameters: { type: 'object' as const, properties: {} },
  },
];

async function dial(codec: Codec) {
  const { url, headers } = await codec.getServerWebSocketConfig!();
  const socket = new WebSocket(url, { headers });
  onTestFinished(() => socket.terminate());
  const collector = createCollector<ServerEvent>();
  socket.on('message', (data) => {
    const parsed = codec.parseServerEvent(JSON.parse((data as Buffer).toString()));
    for (const event of Array.isArray(parsed) ? parsed : [parsed]) collector.add(event);
  });
  await new Promise((resolve) => {
    socket.once('open', resolve);
  });
  return {
    next: byType(collector),
    collector,
    send: async (event: ClientEvent) => {
      socket.send(JSON.stringify(await codec.serializeClientEvent(event)));
    },
  };
}

function openai({ address }: Listening, model: string): Codec {
  const provider = createOpenAI({ apiKey: API_KEY, baseURL: `${address.baseUrl}/v1` });
  return provider.experimental_realtime(model);
}

test('Realtime', async () => {
  const place = await listening();
  const { next, send } = await dial(openai(place, 'gpt-realtime-2.1'));
  const model = await place.server.nextConnection();
  await next('session-created');
  await send({ type: 'session-update', config: { instructions: 'Book rides.', tools } });
  await next('session-updated');
  await send({ type: 'input-audio-append', audio: silence(200) });
  model.willAnswer({ call: 'book_ride', arguments: { to: 'airport' } });
  await model.user.says('book me a ride', { durationMs: 10 });
  await next('speech-started');
  const call = await next('function-call-arguments-done');
  expect(call).toMatchObject({ name: 'book_ride', arguments: '{"to":"airport"}' });
  await next('response-done');
  const item = { type: 'function-call-output', name: 'book_ride', output: 'booked' } as const;
  await send({
    type: 'conversation-item-create',
    item: { ...item, callId: call.callId },
  });
  await send({ type: 'response-create' });
  await next('audio-delta');
  expect(await next('audio-transcript-done')).toMatchObject({
    transcript: 'The result is: booked',
  });
  expect(await next('response-done')).toMatchObject({ status: 'completed' });
});

test('Live', async () => {
  const place = await listening();
  const { next, send, collector } = await dial(openai(place, 'gpt-live-1'));
  await send({ type: 'session-start', config: { instructions: 'Book rides.' } });
  expect(await next('session-started')).toMatchObject({ delegationMode: 'client' });
  const model = await place.server.nextConnection();
  await send({ type: 'input-audio-append', audio: silence(200) });
  model.willAnswer({ delegate: true }, { say: 'On it.' });
  await model.user.says('book me a ride', { durationMs: 10 });
  const { delegationId } = await next('delegation-created');
  await send({
    type: 'context-append',
    content: 'Ada comes.',
    delegationId,
    providerOptions: { openai: { channel: 'commentary' } },
  });
  await next('command-acknowledged');
  const spoken = (): string =>
    collector.events
      .map((event) =>
        event.type === 'transcript-fragment' && event.speaker === 'assistant' ? event.delta : '',
      )
      .join('');
  await next('audio-chunk');
  while (!spoken().includes('Ada comes.')) await next('session-usage');
  await send({ type: 'session-close' });
  expect(await next('session-closed')).toMatchObject({ reason: 'close_requested' });
});

test('Gemini Live', async () => {
  const place = await listening();
  const provider = createGoogle({ apiKey: API_KEY, baseURL: `${place.address.baseUrl}/v1beta` });
  const codec = provider.experimental_realtime('gemini-3.8-live') as Codec;
  const { next, send } = await dial(codec);
  await send({ type: 'session-update', config: { instructions: 'Book rides.', tools } });
  await next('session-created');
  const model = await place.server.nextConnection();
  await send({ type: 'input-audio-append', audio: silence(200, 16_000) });
  model.willAnswer({ call: 'book_ride', arguments: { to: 'airport' } });
  await model.user.says('book me a ride', { durationMs: 10 });
  const call = await next('function-call-arguments-done');
  expect(call).toMatchObject({ name: 'book_ride', arguments: '{"to":"airport"}' });
  await next('response-done');
  const item = { type: 'function-call-output', name: 'book_ride', output: '{"ok":true}' } as const;
  await send({ type: 'conversation-item-create', item: { ...item, callId: call.callId } });
  await next('audio-delta');
  expect(await next('response-done')).toMatchObject({ status: 'completed' });
  expect(model.openCalls).toEqual([]);
});
