import { describe, expect, test } from 'vitest';
import { ProviderError } from '../../../src/values/errors.ts';
import { encodePcm16Base64 } from '../../../src/voice/audio/pcm16.ts';
import { gate, startHarness, type Harness } from './support/harness.ts';
import { tone } from './support/scripted-speech.ts';
import type { WireClient } from './support/wire-client.ts';

const ECONOMY = 4_000;
const PREMIUM = 5_000;
const words = { [ECONOMY]: 'economy please', [PREMIUM]: 'premium' };

function configure(
  client: WireClient,
  turnDetection: Record<string, unknown> | null,
  transcription: Record<string, unknown> | null = { model: 'gpt-4o-mini-transcribe' },
): void {
  client.send({
    type: 'session.update',
    session: {
      type: 'realtime',
      output_modalities: ['text'],
      audio: { input: { transcription, turn_detection: turnDetection } },
    },
  });
}

/** Sends silence, speech, and the silence that ends the speech. */
function say(client: WireClient, loudness: number): void {
  client.speak(tone(0, 1_000));
  client.speak(tone(loudness, 600));
  client.speak(tone(0, 600));
}

async function start(
  options: Parameters<typeof startHarness>[0] = {},
): Promise<Harness & { client: WireClient }> {
  const harness = await startHarness({ words, ...options });
  return { ...harness, client: await harness.connect() };
}

describe('server_vad', () => {
  test('emits the events of an utterance from its first sound to the response', async () => {
    const { client, model } = await start({ answers: [['Noted.']] });
    configure(client, { type: 'server_vad' });
    say(client, ECONOMY);
    await client.next('response.done');

    const types = client.typesFrom('input_audio_buffer.speech_started');
    const response = types.indexOf('response.created');
    expect(types.slice(0, response + 1)).toEqual([
      'input_audio_buffer.speech_started',
      'input_audio_buffer.speech_stopped',
      'input_audio_buffer.committed',
      'conversation.item.added',
      'conversation.item.done',
      'response.created',
    ]);
    const started = await client.next('input_audio_buffer.speech_started');
    // The speech starts at 1000 ms, and the 300 ms before it belong to the utterance.
    expect(started['audio_start_ms']).toBe(700);
    const stopped = await client.next('input_audio_buffer.speech_stopped');
    // The speech ends at 1600 ms, and the utterance is over after 500 ms of silence.
    expect(stopped['audio_end_ms']).toBe(2100);
    const id = started['item_id'];
    expect(stopped['item_id']).toBe(id);
    expect(await client.next('input_audio_buffer.committed')).toMatchObject({
      item_id: id,
      previous_item_id: null,
    });
    expect((await client.next('conversation.item.added'))['item']).toMatchObject({
      id,
      role: 'user',
      status: 'completed',
      content: [{ type: 'input_audio', transcript: null }],
    });
    const transcription = 'conversation.item.input_audio_transcription';
    expect(await client.next(`${transcription}.delta`)).toMatchObject({
      item_id: id,
      content_index: 0,
      delta: 'economy please',
    });
    expect(await client.next(`${transcription}.completed`)).toMatchObject({
      item_id: id,
      content_index: 0,
      transcript: 'economy please',
      usage: { type: 'duration', seconds: 1.4 },
    });
    expect(model.prompt(0)).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'economy please' }] },
    ]);
  });

  test('creates two items for two utterances, each with its own transcript', async () => {
    const { client } = await start();
    configure(client, { type: 'server_vad', create_response: false });
    say(client, ECONOMY);
    say(client, PREMIUM);
    const transcription = 'conversation.item.input_audio_transcription.completed';
    const first = await client.next(transcription);
    const second = await client.next(transcription);
    expect([first['transcript'], second['transcript']]).toEqual(['economy please', 'premium']);
    const [, committed] = [
      await client.next('input_audio_buffer.committed'),
      await client.next('input_audio_buffer.committed'),
    ];
    expect(committed).toMatchObject({
      item_id: second['item_id'],
      previous_item_id: first['item_id'],
    });
    expect(client.count('response.created')).toBe(0);
  });

  test('applies silence_duration_ms, prefix_padding_ms and threshold', async () => {
    const { client } = await start();
    configure(client, {
      type: 'server_vad',
      create_response: false,
      silence_duration_ms: 300,
      prefix_padding_ms: 100,
    });
    client.speak(tone(0, 1_000));
    client.speak(tone(ECONOMY, 600));
    client.speak(tone(0, 400));
    expect((await client.next('input_audio_buffer.speech_started'))['audio_start_ms']).toBe(900);
    expect((await client.next('input_audio_buffer.speech_stopped'))['audio_end_ms']).toBe(1900);
    // The scripted detector's probability is never above 0.9.
    configure(client, { type: 'server_vad', threshold: 0.95 });
    say(client, PREMIUM);
    await client.fence();
    expect(client.count('input_audio_buffer.speech_started')).toBe(1);
  });

  test('waits according to the eagerness of semantic_vad', async () => {
    const { client } = await start();
    configure(client, { type: 'semantic_vad', eagerness: 'low', create_response: false });
    say(client, ECONOMY);
    await client.next('input_audio_buffer.speech_started');
    await client.fence();
    expect(client.count('input_audio_buffer.speech_stopped')).toBe(0);
    client.speak(tone(0, 700));
    await client.next('input_audio_buffer.speech_stopped');
    expect((await client.next('session.updated'))['session'].audio.input.turn_detection).toEqual({
      type: 'semantic_vad',
      eagerness: 'low',
      create_response: false,
      interrupt_response: true,
    });
  });

  test('cancels the current response on user speech if interrupt_response is on', async () => {
    const held = gate();
    const { client } = await start({ answers: [['Once upon a time', { until: held.opened }]] });
    configure(client, { type: 'server_vad', create_response: false });
    client.send({ type: 'response.create', response: { metadata: { key: 'story' } } });
    await client.next('response.output_text.delta');
    client.speak(tone(PREMIUM, 200));
    expect((await client.next('response.done'))['response']).toMatchObject({
      status: 'cancelled',
      status_details: { type: 'cancelled', reason: 'turn_detected' },
      metadata: { key: 'story' },
      output: [{ status: 'incomplete' }],
    });
    const types = client.events.map(({ type }) => type);
    expect(types.indexOf('input_audio_buffer.speech_started')).toBeLessThan(
      types.indexOf('response.done'),
    );
    held.open();
  });

  test('finishes the response if interrupt_response is off, and refuses a second response meanwhile', async () => {
    const held = gate();
    const { client } = await start({ answers: [['Once', { until: held.opened }, ' more']] });
    configure(client, { type: 'server_vad', interrupt_response: false, create_response: true });
    client.send({ type: 'response.create' });
    await client.next('response.output_text.delta');
    say(client, PREMIUM);
    expect((await client.next('error'))['error']).toMatchObject({
      code: 'conversation_already_has_active_response',
      event_id: null,
    });
    await client.next('conversation.item.input_audio_transcription.completed');
    held.open();
    expect((await client.next('response.done'))['response']).toMatchObject({
      status: 'completed',
      output: [{ content: [{ text: 'Once more' }] }],
    });
  });

  test('does not report a transcript when transcription is off, although the model still hears the user', async () => {
    const { client, model } = await start({ answers: [['Noted.']] });
    configure(client, { type: 'server_vad' }, null);
    say(client, ECONOMY);
    await client.next('response.done');
    expect(JSON.stringify(model.prompt(0))).toContain('economy please');
    expect(client.events.filter(({ type }) => type.includes('transcription'))).toEqual([]);
  });

  test('REALTIME-SESSION-3: reports a failed transcription, but still answers', async () => {
    const { client, model, speech } = await start({ answers: [['Pardon?']] });
    speech.nextTranscriptions.push(() =>
      Promise.reject(new ProviderError('SPEECH_ENGINE_FAILED', 'out of memory')),
    );
    configure(client, { type: 'server_vad' });
    say(client, ECONOMY);
    const type = 'conversation.item.input_audio_transcription.failed';
    expect((await client.next(type))['error']).toEqual({
      type: 'server_error',
      code: 'SPEECH_ENGINE_FAILED',
      message: 'out of memory',
    });
    await client.next('response.done');
    expect(model.prompt(0)).toEqual([
      { role: 'user', content: [{ type: 'text', text: '[inaudible]' }] },
    ]);
  });

  test('REALTIME-SESSION-3: creates the response before the transcript is known, and waits for it', async () => {
    const { client, model, speech } = await start({ answers: [['Noted.']] });
    const held = gate();
    speech.nextTranscriptions.push(async () => {
      await held.opened;
      return 'at last';
    });
    configure(client, { type: 'server_vad' });
    say(client, ECONOMY);
    await client.next('response.created');
    await client.fence();
    expect(model.calls).toEqual([]);
    held.open();
    await client.next('response.done');
    expect(JSON.stringify(model.prompt(0))).toContain('at last');
  });

  test('retries with a different cut of the audio if the first cut yields no text', async () => {
    const { client, speech } = await start();
    speech.nextTranscriptions.push(() => Promise.resolve(''));
    configure(client, { type: 'server_vad', create_response: false });
    say(client, ECONOMY);
    const type = 'conversation.item.input_audio_transcription.completed';
    expect((await client.next(type))['transcript']).toBe('economy please');
  });

  test('reports a failed detector, but detects the next utterance', async () => {
    const { client, speech } = await start();
    configure(client, { type: 'server_vad', create_response: false });
    speech.failDetection();
    client.speak(tone(0, 20));
    expect((await client.next('error'))['error']).toMatchObject({
      type: 'server_error',
      code: 'speech_detection_failed',
      message: 'the transcriber is gone',
    });
    say(client, PREMIUM);
    const type = 'conversation.item.input_audio_transcription.completed';
    expect((await client.next(type))['transcript']).toBe('premium');
  });

  test('INPUT-AUDIO-2: drops the current utterance when the buffer is cleared', async () => {
    const { client } = await start();
    configure(client, { type: 'server_vad', create_response: false });
    client.speak(tone(ECONOMY, 400));
    const first = await client.next('input_audio_buffer.speech_started');
    client.send({ type: 'input_audio_buffer.clear' });
    await client.next('input_audio_buffer.cleared');
    client.speak(tone(0, 1_000));
    await client.fence();
    expect(client.count('input_audio_buffer.speech_stopped')).toBe(0);
    client.speak(tone(PREMIUM, 400));
    client.speak(tone(0, 600));
    const second = await client.next('input_audio_buffer.speech_started');
    expect(second['item_id']).not.toBe(first['item_id']);
    // INPUT-AUDIO-1: 400 ms and 1000 ms were written before, minus 300 ms of padding.
    expect(second['audio_start_ms']).toBe(1100);
    const completed = 'conversation.item.input_audio_transcription.completed';
    expect((await client.next(completed))['transcript']).toBe('premium');
  });

  test('INPUT-AUDIO-2: ignores a late detection after the buffer has been cleared', async () => {
    const { client, speech } = await start();
    configure(client, { type: 'server_vad', create_response: false });
    const held = gate();
    speech.detectionHeldUntil = held.opened;
    client.speak(tone(ECONOMY, 400));
    client.send({ type: 'input_audio_buffer.clear' });
    await client.next('input_audio_buffer.cleared');
    held.open();
    say(client, PREMIUM);
    const completed = 'conversation.item.input_audio_transcription.completed';
    expect((await client.next(completed))['transcript']).toBe('premium');
    expect(client.count('input_audio_buffer.speech_started')).toBe(1);
  });

  test('keeps the id that it has announced if the user commits manually while speaking', async () => {
    const { client } = await start();
    configure(client, { type: 'server_vad', create_response: false });
    client.speak(tone(ECONOMY, 400));
    const { item_id: id } = await client.next('input_audio_buffer.speech_started');
    client.send({ type: 'input_audio_buffer.commit' });
    expect((await client.next('input_audio_buffer.committed'))['item_id']).toBe(id);
    client.speak(tone(0, 1_000));
    const completed = 'conversation.item.input_audio_transcription.completed';
    expect((await client.next(completed))['transcript']).toBe('economy please');
    await client.fence();
    expect(client.count('input_audio_buffer.committed')).toBe(1);
  });
});

describe('a session without turn detection', () => {
  test('commits and responds only when the client requests it', async () => {
    const { client } = await start();
    configure(client, null);
    say(client, ECONOMY);
    await client.fence();
    expect(client.count('input_audio_buffer.speech_started')).toBe(0);
    client.send({ type: 'input_audio_buffer.commit' });
    const { item_id: id } = await client.next('input_audio_buffer.committed');
    const completed = await client.next('conversation.item.input_audio_transcription.completed');
    expect(completed).toMatchObject({ item_id: id, transcript: 'economy please' });
    client.send({ type: 'conversation.item.retrieve', item_id: id });
    const { item } = await client.next('conversation.item.retrieved');
    expect(item.content).toMatchObject([{ type: 'input_audio', transcript: 'economy please' }]);
    expect(Buffer.from(item.content[0].audio, 'base64').length).toBe(2_200 * 24 * 2);
    expect(client.count('response.created')).toBe(0);
  });

  test('finds no text when only silence is committed', async () => {
    const { client } = await start();
    configure(client, null);
    client.speak(tone(0, 500));
    client.send({ type: 'input_audio_buffer.commit' });
    const type = 'conversation.item.input_audio_transcription.completed';
    expect((await client.next(type))['transcript']).toBe('');
    expect(client.count('conversation.item.input_audio_transcription.delta')).toBe(0);
  });

  test('refuses an empty commit, even after a clear', async () => {
    const { client } = await start();
    configure(client, null);
    client.send({ type: 'input_audio_buffer.commit', event_id: 'empty' });
    expect((await client.next('error'))['error']).toMatchObject({
      code: 'input_audio_buffer_commit_empty',
      event_id: 'empty',
    });
    client.speak(tone(ECONOMY, 500));
    client.send({ type: 'input_audio_buffer.clear' });
    client.send({ type: 'input_audio_buffer.commit', event_id: 'cleared' });
    expect((await client.next('error'))['error']).toMatchObject({
      code: 'input_audio_buffer_commit_empty',
      event_id: 'cleared',
    });
  });

  test('detects speech once detection has been turned on', async () => {
    const { client } = await start();
    configure(client, null);
    client.speak(tone(0, 330));
    configure(client, { type: 'server_vad', create_response: false });
    say(client, ECONOMY);
    // 330 ms and 1000 ms came before, minus 300 ms of padding.
    expect((await client.next('input_audio_buffer.speech_started'))['audio_start_ms']).toBe(1030);
    const type = 'conversation.item.input_audio_transcription.completed';
    expect((await client.next(type))['transcript']).toBe('economy please');
  });

  test('refuses audio that cannot be decoded', async () => {
    const { client } = await start();
    client.send({ type: 'input_audio_buffer.append', audio: 'AAAA', event_id: 'odd' });
    client.send({ type: 'input_audio_buffer.append', audio: '!!!', event_id: 'rubbish' });
    client.send({ type: 'input_audio_buffer.append', event_id: 'none' });
    expect((await client.next('error'))['error']).toMatchObject({
      param: 'audio',
      event_id: 'odd',
    });
    expect((await client.next('error'))['error']).toMatchObject({ event_id: 'rubbish' });
    expect((await client.next('error'))['error']).toMatchObject({
      code: 'missing_required_parameter',
      event_id: 'none',
    });
  });

  test('INPUT-AUDIO-3: holds at most ten minutes of audio', async () => {
    const { client } = await start();
    configure(client, null);
    const minute = encodePcm16Base64(tone(0, 60_000));
    for (let count = 1; count <= 11; count += 1) {
      client.send({ type: 'input_audio_buffer.append', audio: minute, event_id: `m${count}` });
    }
    expect((await client.next('error'))['error']).toMatchObject({
      code: 'input_audio_buffer_full',
      event_id: 'm11',
    });
  });
});
