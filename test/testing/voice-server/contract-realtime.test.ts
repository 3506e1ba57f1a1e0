// Messages that the Realtime fake refuses, and how it refuses them. The real server is known to refuse them too.

import { expect, test } from 'vitest';
import { silence } from './support/listening.ts';
import { firstFrame, stage, type Loose } from './support/raw-client.ts';

const WIRE = 'openai-realtime';

async function refusalOf(...frames: Loose[]): Promise<Loose> {
  const { call, pass } = stage();
  const { client } = await call(WIRE);
  for (const frame of frames) client.send(frame);
  await pass();
  expect(client.closed).toBeNull();
  expect(client.count('error')).toBe(1);
  return client.last('error')?.['error'] as Loose;
}

test('refuses a second response while one is running, and returns the id of the refused event', async () => {
  const error = await refusalOf(
    { type: 'response.create', event_id: 'first' },
    { type: 'response.create', event_id: 'second' },
  );
  expect(error).toMatchObject({
    type: 'invalid_request_error',
    code: 'conversation_already_has_active_response',
    event_id: 'second',
  });
});

test('runs an out-of-band response at the same time', async () => {
  const { call, pass } = stage();
  const { client } = await call(WIRE);
  client.send({ type: 'response.create' });
  client.send({ type: 'response.create', response: { conversation: 'none' } });
  await pass(1_000);
  expect(client.count('error')).toBe(0);
  expect(client.count('response.done')).toBe(2);
});

test.each<[string, Loose, Loose]>([
  [
    'a cancel when idle',
    { type: 'response.cancel', event_id: 'c' },
    { code: 'response_cancel_not_active', event_id: 'c' },
  ],
  [
    'an empty commit',
    { type: 'input_audio_buffer.commit' },
    { code: 'input_audio_buffer_commit_empty' },
  ],
  [
    'an unknown event',
    { type: 'session.restart' },
    { code: 'invalid_value', param: 'type', message: expect.stringContaining('session.update') },
  ],
  [
    'an unknown field',
    { type: 'response.cancel', loudly: true },
    { code: 'unknown_parameter', param: 'loudly' },
  ],
  [
    'an item id of more than 32 characters',
    {
      type: 'conversation.item.create',
      item: {
        id: 'i'.repeat(33),
        type: 'message',
        role: 'user',
        content: [{ type: 'input_text', text: 'Hello' }],
      },
    },
    { code: 'string_above_max_length', param: 'item.id' },
  ],
  [
    'the answer to a call that nobody made',
    {
      type: 'conversation.item.create',
      item: { type: 'function_call_output', call_id: 'nobody', output: '' },
    },
    { code: 'invalid_tool_call_id' },
  ],
  ['a frame that is not JSON', 'hello' as never, { code: 'invalid_json', event_id: null }],
  [
    'an item that does not exist',
    { type: 'conversation.item.delete', item_id: 'nobody' },
    { code: 'item_delete_invalid_item_id' },
  ],
  [
    'both modalities',
    { type: 'session.update', session: { type: 'realtime', output_modalities: ['text', 'audio'] } },
    { code: 'invalid_value', param: 'session.output_modalities' },
  ],
])('%s', async (_, frame, expected) => {
  expect(await refusalOf(frame)).toMatchObject(expected);
});

test('refuses a truncation past the end, and a change of voice after the first audio', async () => {
  const { call, pass } = stage();
  const { client, model } = await call(WIRE);
  model.answers({ say: 'Hello.', durationMs: 300 });
  await pass(1_000);
  const spoken = client.last('response.output_audio.delta');
  const item = { content_index: 0, item_id: spoken?.['item_id'] };
  client.send({ type: 'conversation.item.truncate', ...item, audio_end_ms: 301 });
  await pass();
  expect(client.last('error')?.['error']).toMatchObject({
    message: 'Audio content of 300ms is already shorter than 301ms',
  });
  client.send({
    type: 'session.update',
    session: { type: 'realtime', audio: { output: { voice: 'cedar' } } },
  });
  await pass();
  expect(client.last('error')?.['error']).toMatchObject({ code: 'cannot_update_voice' });
});

test('lets a client without turn detection commit the audio itself, and then transcribes it', async () => {
  const { call, pass } = stage();
  const first = firstFrame(WIRE);
  first['session'].audio.input.turn_detection = null;
  const { client, model } = await call(WIRE, first);
  client.send({ type: 'input_audio_buffer.append', audio: silence(120) });
  model.user.begins();
  model.user.ends('hello there');
  await pass();
  expect(client.count('input_audio_buffer.speech_started')).toBe(0);
  client.send({ type: 'input_audio_buffer.commit' });
  await pass(1_000);
  const heard = client.last('conversation.item.input_audio_transcription.completed');
  expect(heard).toMatchObject({ transcript: 'hello there' });
  expect(client.count('response.created')).toBe(0);
});

test('answers only on request and cannot be interrupted if turn detection only reports', async () => {
  const { call, pass } = stage();
  const first = firstFrame(WIRE);
  first['session'].audio.input.turn_detection = {
    type: 'semantic_vad',
    create_response: false,
    interrupt_response: false,
  };
  const { client, model } = await call(WIRE, first);
  client.send({ type: 'response.create', response: { instructions: 'Greet.' } });
  await pass(10);
  void model.user.says('hello', { durationMs: 200 });
  await pass(3_000);
  expect(model.replies.map(({ status }) => status)).toEqual(['completed']);
  client.send({ type: 'response.create' });
  await pass(3_000);
  expect(model.replies.map(({ cause }) => cause)).toEqual([
    { type: 'nothing' },
    { type: 'utterance', text: 'hello' },
  ]);
});

test('refuses a session without a model', async () => {
  const { dial, pass } = stage();
  const client = dial(WIRE, 'wss://api.test/v1/realtime');
  await pass();
  expect(client.last('error')?.['error']).toMatchObject({ code: 'missing_model' });
  expect(client.closed).toEqual({ code: 4000, reason: 'invalid_request_error.missing_model' });
});
