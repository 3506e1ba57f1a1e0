// The `openai` package holds conversations with the fake over real sockets: Realtime with both of the package's socket
// classes, and Live.

import { once } from 'node:events';
import OpenAI from 'openai';
import { OpenAIRealtimeWebSocket } from 'openai/realtime/websocket';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import { LiveWS } from 'openai/resources/live/ws';
import type { ServerEvent } from 'openai/resources/live/live';
import type { RealtimeServerEvent } from 'openai/resources/realtime/realtime';
import { expect, onTestFinished, test, vi } from 'vitest';
import { byType, createCollector } from './support/collector.ts';
import { API_KEY, listening, silence } from './support/listening.ts';

const bookRide = { type: 'function', name: 'book_ride', parameters: { type: 'object' } } as const;

test('Realtime over wss: handles a call by voice, its spoken result, a barge-in and a truncation', async () => {
  const { server, address } = await listening({ tls: true });
  const client = new OpenAI({ apiKey: API_KEY, baseURL: `${address.baseUrl}/v1` });
  const options = { ca: address.ca ?? '' };
  const realtime = new OpenAIRealtimeWS({ model: 'gpt-realtime-2.1', options }, client);
  onTestFinished(() => realtime.close());
  const collector = createCollector<RealtimeServerEvent>();
  realtime.on('event', collector.add);
  realtime.on('error', () => undefined);
  const next = byType(collector);
  const model = await server.nextConnection();
  await next('session.created');
  realtime.send({
    type: 'session.update',
    session: {
      type: 'realtime',
      instructions: 'You book rides.',
      tools: [bookRide],
      audio: { input: { transcription: { model: 'gpt-4o-mini-transcribe' } } },
    },
  });
  await next('session.updated');
  expect(model).toMatchObject({ wire: 'openai-realtime', instructions: 'You book rides.' });
  expect(model.tools).toEqual([
    { name: 'book_ride', description: '', parameters: { type: 'object' } },
  ]);

  realtime.send({ type: 'input_audio_buffer.append', audio: silence(200) });
  model.willAnswer({ call: 'book_ride', arguments: { to: 'airport' } });
  await model.user.says('book me a ride', { durationMs: 10 });
  const call = await next('response.function_call_arguments.done');
  expect(call).toMatchObject({ name: 'book_ride', arguments: '{"to":"airport"}' });
  const heard = await next('conversation.item.input_audio_transcription.completed');
  expect(heard.transcript).toBe('book me a ride');
  await next('response.done');
  expect(model.heardMs).toBe(200);
  expect(model.openCalls).toEqual([{ callId: call.call_id, name: 'book_ride' }]);

  realtime.send({
    type: 'conversation.item.create',
    item: { type: 'function_call_output', call_id: call.call_id, output: 'booked' },
  });
  model.willAnswer({ say: 'Your ride is booked.', durationMs: 60_000 });
  realtime.send({ type: 'response.create' });
  const sound = await next('response.output_audio.delta');
  realtime.send({ type: 'response.create', event_id: 'twice' });
  expect((await next('error')).error).toMatchObject({
    code: 'conversation_already_has_active_response',
    event_id: 'twice',
  });

  model.user.begins();
  const { response } = await next('response.done');
  expect(response).toMatchObject({
    status: 'cancelled',
    status_details: { reason: 'turn_detected' },
  });
  const place = { item_id: sound.item_id, content_index: 0 };
  realtime.send({ type: 'conversation.item.truncate', ...place, audio_end_ms: 60 });
  await next('conversation.item.truncated');
  model.user.ends('stop');
  await next('response.done');
  const texts = model.items.map((item) => ('text' in item ? item.text : item.kind));
  expect(texts.slice(0, 3)).toEqual(['book me a ride', 'call', 'result']);
  // The model does not remember the part of the answer that was not heard.
  expect(texts[3]).not.toContain('booked');
  expect(texts.slice(4)).toEqual(['stop', 'You said: stop']);
});

test("Realtime over the platform's socket: sends its key in a subprotocol", async () => {
  const { server, address } = await listening();
  const client = new OpenAI({
    apiKey: API_KEY,
    baseURL: `${address.baseUrl}/v1`,
    dangerouslyAllowBrowser: true,
  });
  // The client accepts only `wss:`, and the platform's socket does not trust a self-signed certificate.
  class PlainWebSocket extends WebSocket {
    constructor(url: string | URL, protocols?: string | string[]) {
      super(String(url).replace(/^wss:/, 'ws:'), protocols);
    }
  }
  vi.stubGlobal('WebSocket', PlainWebSocket);
  onTestFinished(() => {
    vi.unstubAllGlobals();
  });
  const realtime = new OpenAIRealtimeWebSocket(
    { model: 'gpt-realtime-2.1', dangerouslyAllowBrowser: true },
    client,
  );
  onTestFinished(() => realtime.close());
  const collector = createCollector<RealtimeServerEvent>();
  realtime.on('event', collector.add);
  realtime.on('error', () => undefined);
  const next = byType(collector);
  const model = await server.nextConnection();
  expect(model.headers['sec-websocket-protocol']).toContain(API_KEY);
  await next('session.created');
  realtime.send({
    type: 'session.update',
    session: { type: 'realtime', output_modalities: ['text'] },
  });
  await next('session.updated');
  realtime.send({
    type: 'conversation.item.create',
    item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hello.' }] },
  });
  realtime.send({ type: 'response.create' });
  expect((await next('response.output_text.done')).text).toBe('Hello.');
  await next('response.done');
});

test('Live: handles a delegation, silent progress, a spoken result, an unknown field and the close', async () => {
  const { server, address } = await listening();
  const client = new OpenAI({ apiKey: API_KEY, baseURL: `${address.baseUrl}/v1` });
  const live = new LiveWS(client);
  onTestFinished(() => live.close());
  const collector = createCollector<ServerEvent>();
  live.on('event', collector.add);
  live.on('error', () => undefined);
  const next = byType(collector);
  await once(live.socket as never, 'open');
  live.send({
    type: 'session.start',
    event_id: 'start',
    session: { model: 'gpt-live-1', instructions: 'You book rides.' },
  });
  const started = await next('session.started');
  expect(started).toMatchObject({
    client_event_id: 'start',
    session: { status: 'active', delegation: { type: 'client', acknowledgement_delay_ms: 0 } },
  });
  const model = await server.nextConnection();
  expect(model).toMatchObject({ wire: 'openai-live', instructions: 'You book rides.' });

  live.send({ type: 'session.input_audio.append', audio: silence(200) });
  model.willAnswer({ call: 'book_ride' }, { say: 'On it.' });
  await model.user.says('book me a ride', { durationMs: 10 });
  const { delegation } = await next('session.delegation.created');
  expect(delegation).toEqual({ id: expect.any(String), type: 'delegation', target: 'client' });
  const spoken = (): string =>
    collector.events
      .map((event) => (event.type === 'session.output_transcript.delta' ? event.delta : ''))
      .join('');
  await next('session.usage.updated');
  expect(spoken()).toContain('On it.');
  expect(collector.events.some(({ type }) => type === 'session.output_audio.delta')).toBe(true);

  live.send({
    type: 'session.thinking.append',
    content: 'Looking for a driver.',
    delegation_id: delegation.id,
  });
  expect(await next('session.thinking.appended')).toBeDefined();
  live.send({
    type: 'session.commentary.append',
    event_id: 'result',
    content: 'Ada comes.',
    delegation_id: delegation.id,
  });
  expect(await next('session.commentary.appended')).toMatchObject({ client_event_id: 'result' });
  await next('session.usage.updated');
  expect(spoken()).toContain('Ada comes.');
  expect(spoken()).not.toContain('Looking');
  expect(model.openCalls).toEqual([]);

  live.send({ type: 'session.input_audio.mute', event_id: 'mute', loud: true } as never);
  expect(await next('error')).toMatchObject({
    error: { code: 'unknown_parameter', param: 'loud', client_event_id: 'mute' },
  });
  live.send({ type: 'session.close' });
  expect(await next('session.closed')).toMatchObject({ reason: 'close_requested' });
  expect(await model.closed).toBe(1000);
});
