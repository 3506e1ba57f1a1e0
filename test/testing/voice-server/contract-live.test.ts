// The refusals and promises of the Live fake, where the types and protocol notes specify them.

import { describe, expect, test } from 'vitest';
import { silence } from './support/listening.ts';
import { firstFrame, stage, type Loose } from './support/raw-client.ts';

const WIRE = 'openai-live';
const append = (content: string, id: string | null = null): Loose => ({
  type: 'session.commentary.append',
  content,
  delegation_id: id,
});

test.each<[string, Loose, Loose]>([
  [
    'an unknown event lists those that are known',
    { type: 'session.sing' },
    { code: 'invalid_value', message: expect.stringContaining('session.commentary.append') },
  ],
  [
    'an unknown field',
    { type: 'session.close', now: true },
    { code: 'unknown_parameter', param: 'now' },
  ],
  [
    'instructions never change',
    { type: 'session.update', session: { instructions: 'x' } },
    { code: 'unknown_parameter', param: 'session.instructions' },
  ],
  [
    'more than 500 tokens',
    append('word '.repeat(500)),
    { code: 'invalid_value', param: 'content' },
  ],
  [
    'a delegation that nobody made',
    append('x', 'nobody'),
    { code: 'invalid_value', param: 'delegation_id' },
  ],
  [
    'no delegation at all',
    { type: 'session.thinking.append', content: 'x' },
    { code: 'missing_required_parameter', param: 'delegation_id' },
  ],
  [
    'half a sample',
    { type: 'session.input_audio.append', audio: 'AAAA' },
    { code: 'invalid_value', param: 'audio' },
  ],
  [
    'a second start',
    { type: 'session.start', session: { model: 'gpt-live-1' } },
    { code: 'session_already_started' },
  ],
  ['events of another delegation', { type: 'response.create' }, { code: 'invalid_request' }],
])('%s', async (_, frame, expected) => {
  const { call, pass } = stage();
  const { client } = await call(WIRE);
  client.send({ ...frame, event_id: 'mine' });
  await pass();
  expect(client.last('error')).toMatchObject({
    client_event_id: 'mine',
    error: { ...expected, client_event_id: 'mine' },
  });
  expect(client.closed).toBeNull();
});

test('accepts a session with telephone audio', async () => {
  const { call, pass } = stage();
  const first = firstFrame(WIRE);
  first['session'].audio = { format: { type: 'audio/pcmu', rate: 8_000 } };
  const { client, model } = await call(WIRE, first);
  const audio = Buffer.alloc(800).toString('base64');
  client.send({ type: 'session.input_audio.append', audio });
  model.answers({ say: 'Hi.', durationMs: 100 });
  await pass(100);
  expect(model.heardMs).toBe(100);
  const spoken = client.last('session.output_audio.delta')?.['delta'] as string;
  expect(Buffer.byteLength(spoken, 'base64')).toBe(800);
});

test('rejects audio before the start and an invalid start, then accepts a correct one', async () => {
  const { dial, pass } = stage();
  const client = dial(WIRE);
  client.send({ type: 'session.input_audio.append', audio: silence(20) });
  client.send({ type: 'session.start', session: { model: 'gpt-live-1', voice: 'marin' } });
  await pass();
  expect(client.events.map(({ error }) => (error as Loose)['code'])).toEqual([
    'session_not_started',
    'unknown_parameter',
  ]);
  client.send(firstFrame(WIRE));
  await pass();
  expect(client.last('session.started')).toBeDefined();
});

describe('the model', () => {
  test('becomes silent when the user starts to speak, without reporting it on the wire', async () => {
    const { call, pass } = stage();
    const { client, model } = await call(WIRE);
    const story = model.answers({ say: 'A long story.', durationMs: 10_000 });
    await pass(450);
    expect(client.count('session.output_audio.delta')).toBe(5);
    model.user.begins();
    await pass(1_000);
    expect(client.count('session.output_audio.delta')).toBe(5);
    expect(story).toMatchObject({ status: 'cancelled', audioMs: 500 });
    expect(client.count('error')).toBe(0);
  });

  test('acknowledges a delegation on its own unless something is appended first', async () => {
    const { call, pass } = stage();
    const first = firstFrame(WIRE);
    first['session'].delegation = { type: 'client', acknowledgement_delay_ms: 400 };
    const { client, model } = await call(WIRE, first);
    model.willAnswer({ delegate: true, delegationId: 'one' });
    model.user.ends('book me a ride');
    await pass(390);
    expect(client.count('session.output_transcript.delta')).toBe(0);
    await pass(2_000);
    expect(model.replies.at(-1)?.text).toBe('One moment.');

    model.willAnswer({ delegate: true, delegationId: 'two' });
    model.user.ends('and one more');
    await pass(100);
    client.send({ ...append('Looking.', 'two'), type: 'session.thinking.append' });
    await pass(2_000);
    expect(model.replies.filter(({ text }) => text === 'One moment.')).toHaveLength(1);
    expect(model.openCalls.map(({ callId }) => callId)).toEqual(['one', 'two']);
  });

  test('plays a fixture, and refuses an append until the fixture has been played', async () => {
    const { call, pass } = stage();
    const { client } = await call(WIRE);
    client.send({ type: 'session.output_audio.fixture.play', audio: silence(500) });
    client.send(append('Hello.'));
    await pass(400);
    expect(client.last('error')?.['error']).toMatchObject({ code: 'audio_fixture_active' });
    expect(client.count('session.output_audio.fixture.played')).toBe(0);
    await pass(100);
    expect(client.count('session.output_audio.fixture.played')).toBe(1);
  });
});

test('forks a session only if the session is stored', async () => {
  const { call, pass } = stage();
  const first = firstFrame(WIRE);
  first['session'].store = true;
  const { client, model } = await call(WIRE, first);
  model.user.ends('I like tea');
  await pass(3_000);
  const id = client.last('session.started')?.['session'].id as string;
  client.close();
  await pass();
  const forkUrl = (of: string): string => `wss://api.test/v1/live/sessions/${of}/fork`;
  const start = { type: 'session.start', session: {} };
  const fork = await call(WIRE, start, forkUrl(id));
  expect(fork.model.instructions).toBe('Be brief.');
  expect(fork.model.items.map((item) => 'text' in item && item.text)).toEqual([
    'I like tea',
    'You said: I like tea',
  ]);
  const unknown = await call(WIRE, start, forkUrl('live_unknown'));
  expect(unknown.client.closed?.code).toBe(1008);
});
