// Every event that the fake sends passes the schemas of clients that validate events: `@openai/agents-realtime` and the
// AI SDK's realtime codecs.

import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { describe, expect, test } from 'vitest';
import type { FakeVoiceModel, VoiceWire } from '../../../src/testing/voice-server/index.ts';
import { silence } from './support/listening.ts';
import { stage, type RawClient, type Stage } from './support/raw-client.ts';

interface AgentsSchemas {
  parseRealtimeEvent(event: { data: string }): { isGeneric: boolean };
}

// The package does not export this file, so the test locates it next to the main file.
const agentsMain = createRequire(import.meta.url).resolve('@openai/agents-realtime');
const { parseRealtimeEvent } = (await import(
  pathToFileURL(join(dirname(agentsMain), 'openaiRealtimeEvents.mjs')).href
)) as AgentsSchemas;

const openai = createOpenAI({ apiKey: 'some-key' });
const google = createGoogle({ apiKey: 'some-key' });

/** An event as the AI SDK decodes it. */
const parsers: Record<VoiceWire, () => (raw: unknown) => unknown> = {
  'openai-realtime': () => {
    const model = openai.experimental_realtime('gpt-realtime-2.1');
    return (raw) => model.parseServerEvent(raw);
  },
  'openai-live': () => {
    const model = openai.experimental_realtime('gpt-live-1');
    return (raw) => model.parseServerEvent(raw);
  },
  'gemini-live': () => {
    const model = google.experimental_realtime('gemini-3.8-live');
    return (raw) => model.parseServerEvent(raw);
  },
};

type Told = { readonly type: string; readonly code?: string; readonly rawType?: string };

function toldBy(wire: VoiceWire, events: readonly object[]): Told[] {
  const parse = parsers[wire]();
  return events.flatMap((event) => parse(event) as Told | Told[]);
}

/** A conversation in which the model speaks, calls a tool, is interrupted, fails, and receives an invalid message. */
async function wholeConversation(
  { pass }: Stage,
  client: RawClient,
  model: FakeVoiceModel,
  say: { readonly answer: (callId: string) => void; readonly wrong: () => void },
): Promise<void> {
  model.willAnswer({ say: 'One moment.' }, { call: 'book_ride', arguments: { to: 'airport' } });
  void model.user.says('book me a ride', { durationMs: 500 });
  await pass(5_000);
  say.answer(model.openCalls[0]?.callId ?? '');
  await pass(200);
  model.user.begins();
  await pass();
  model.user.ends('stop', { transcript: 'failed' });
  await pass(5_000);
  model.willAnswer({ fail: 'overloaded' });
  model.user.ends('again', { transcript: 'duplicated' });
  await pass(1_000);
  model.faults.deltasAfterCancel();
  model.answers({ say: 'A long story.', durationMs: 10_000 });
  await pass(100);
  model.user.ends('enough');
  await pass(5_000);
  say.wrong();
  await pass(100);
  expect(client.closed).toBeNull();
}

describe('Realtime', () => {
  test('contains no generic event and no error except the intended one', async () => {
    const place = stage();
    const { client, model } = await place.call('openai-realtime');
    client.send({ type: 'input_audio_buffer.append', audio: silence(300) });
    await wholeConversation(place, client, model, {
      answer: (callId) => {
        const item = { type: 'function_call_output', call_id: callId, output: 'booked' };
        client.send({ type: 'conversation.item.create', item });
        client.send({ type: 'response.create' });
      },
      wrong: () => {
        const items = model.items.map(({ id }) => id);
        client.send({ type: 'response.cancel' });
        client.send({ type: 'conversation.item.retrieve', item_id: items[0] });
        client.send({ type: 'conversation.item.delete', item_id: items[0] });
        client.send({ type: 'input_audio_buffer.clear' });
        const response = { output_modalities: ['text'], metadata: { topic: 'tea' } };
        client.send({ type: 'response.create', response: { ...response, conversation: 'none' } });
        const spoken = client.last('response.output_audio.delta');
        const truncation = { content_index: 0, audio_end_ms: 10, item_id: spoken?.['item_id'] };
        client.send({ type: 'conversation.item.truncate', ...truncation });
      },
    });
    await place.pass(1_000);
    const types = new Set(model.sent.map(({ type }) => type));
    expect(types.size).toBeGreaterThan(27);
    const generic = model.sent.filter(
      (event) => parseRealtimeEvent({ data: JSON.stringify(event) }).isGeneric,
    );
    expect(generic).toEqual([]);
    const told = toldBy('openai-realtime', model.sent);
    const errors = model.sent.filter(({ type }) => type === 'error');
    expect(told.filter(({ type }) => type === 'error')).toHaveLength(errors.length);
    expect(errors).toHaveLength(1);
    expect([...types]).toContain('rate_limits.updated');
  });
});

describe('Live', () => {
  test('contains no invalid or unknown event', async () => {
    const place = stage();
    const { client, model } = await place.call('openai-live');
    client.send({ type: 'session.input_audio.append', audio: silence(300) });
    const append = (channel: string, id: string | null): void =>
      client.send({ type: `session.${channel}.append`, content: 'booked', delegation_id: id });
    await wholeConversation(place, client, model, {
      answer: (callId) => {
        append('thinking', callId);
        append('instructions', null);
        append('commentary', callId);
      },
      wrong: () => append('thinking', 'nobody'),
    });
    client.send({ type: 'session.input_audio.mute' });
    client.send({ type: 'session.input_audio.unmute' });
    client.send({ type: 'session.update', session: { delegation: { type: 'client' } } });
    client.send({ type: 'session.close' });
    await place.pass();
    expect(client.closed?.code).toBe(1000);
    const told = toldBy('openai-live', model.sent);
    expect(told.filter(({ code }) => code === 'invalid_server_event')).toEqual([]);
    expect(told.filter(({ type }) => type === 'custom')).toEqual([]);
    expect(new Set(told.map(({ type }) => type))).toEqual(
      new Set([
        'session-started',
        'transcript-fragment',
        'audio-chunk',
        'delegation-created',
        'command-acknowledged',
        'session-usage',
        'session-closed',
        'error',
      ]),
    );
    // Only the failure and the invalid message are errors.
    expect(told.filter(({ type }) => type === 'error')).toMatchObject([
      { code: 'server_error' },
      { code: 'invalid_value' },
    ]);
  });
});

describe('Gemini Live', () => {
  test('contains no unknown event', async () => {
    const place = stage({ voiceActivity: true });
    const { client, model } = await place.call('gemini-live');
    await wholeConversation(place, client, model, {
      answer: (id) => {
        const response = { id, name: 'book_ride', response: { output: 'booked' } };
        client.send({ toolResponse: { functionResponses: [response] } });
      },
      wrong: () => model.faults.goAway(60_000),
    });
    model.answers({ call: 'book_ride' });
    await place.pass(100);
    model.faults.cancelCalls();
    const told = toldBy('gemini-live', model.sent);
    const known = new Set([
      'generationComplete',
      'goAway',
      'interactionStatus',
      'sessionResumptionUpdate',
      'toolCallCancellation',
      'usageMetadata',
      // The official types have a name for this event, but the AI SDK does not.
      'voiceActivity',
    ]);
    const custom = new Set(told.flatMap(({ type, rawType }) => (type === 'custom' ? rawType : [])));
    expect([...custom].filter((rawType) => !known.has(rawType ?? ''))).toEqual([]);
    expect(new Set(told.map(({ type }) => type))).toEqual(
      new Set([
        'session-created',
        'input-transcription-completed',
        'audio-delta',
        'audio-transcript-delta',
        'function-call-arguments-delta',
        'function-call-arguments-done',
        'speech-started',
        'audio-done',
        'audio-transcript-done',
        'response-done',
        'custom',
      ]),
    );
  });
});
