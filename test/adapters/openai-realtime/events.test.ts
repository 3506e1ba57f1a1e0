import { describe, expect, test } from 'vitest';
import type { ServerEventBody } from './support/fake-server.ts';
import { startCall, userAudio } from './support/connected.ts';

describe('the speech of the user', () => {
  test('becomes an utterance with growing partial transcripts and a final transcript', async () => {
    const { client, peer } = await startCall();
    const delta = (item: string, text?: string): ServerEventBody => ({
      type: 'conversation.item.input_audio_transcription.delta',
      item_id: item,
      content_index: 0,
      delta: text,
    });
    peer.send({ type: 'input_audio_buffer.speech_started', audio_start_ms: 320, item_id: 'u1' });
    peer.send({ type: 'input_audio_buffer.speech_stopped', audio_end_ms: 900, item_id: 'u1' });
    peer.send({ type: 'input_audio_buffer.committed', item_id: 'u1', previous_item_id: null });
    peer.send(delta('u1', 'Book me'));
    peer.send(delta('u2', 'Other'));
    peer.send(delta('u1'));
    peer.send(delta('u1', ' a ride'));
    peer.send({
      type: 'conversation.item.input_audio_transcription.completed',
      item_id: 'u1',
      content_index: 0,
      transcript: 'Book me a ride.',
      usage: { type: 'duration', seconds: 1 },
    });
    peer.send(delta('u1', 'Anew'));
    peer.send({ type: 'input_audio_buffer.speech_stopped', audio_end_ms: 950, item_id: 'u2' });
    await client.next('utterance.ended');
    await client.next('utterance.ended');
    const transcribed = (utteranceId: string, text: string, final: boolean) => ({
      type: 'utterance.transcribed',
      utteranceId,
      text,
      final,
    });
    expect(client.events).toEqual([
      { type: 'transport.ready' },
      { type: 'utterance.started', utteranceId: 'u1', audioStartMs: 320 },
      { type: 'utterance.ended', utteranceId: 'u1' },
      transcribed('u1', 'Book me', false),
      transcribed('u2', 'Other', false),
      transcribed('u1', 'Book me a ride', false),
      transcribed('u1', 'Book me a ride.', true),
      transcribed('u1', 'Anew', false),
      { type: 'utterance.ended', utteranceId: 'u2' },
    ]);
  });

  test.each([
    ['the same item', 'u1'],
    ['another item', 'i7'],
  ])(
    'OPENAI-REALTIME-TRANSLATOR-6: keeps its id if the session ends it and the server creates %s',
    async (_n, item) => {
      const { client, peer } = await startCall();
      peer.send({ type: 'input_audio_buffer.speech_started', audio_start_ms: 320, item_id: 'u1' });
      await client.next('utterance.started');
      client.send({ type: 'utterance.end', utteranceId: 'u1' });
      await peer.next('input_audio_buffer.commit');
      peer.send({ type: 'input_audio_buffer.committed', item_id: item, previous_item_id: null });
      peer.send({
        type: 'conversation.item.input_audio_transcription.completed',
        item_id: item,
        content_index: 0,
        transcript: 'And now the weather.',
        usage: { type: 'duration', seconds: 1 },
      });
      // The detector was still listening.
      peer.send({ type: 'input_audio_buffer.speech_stopped', audio_end_ms: 9000, item_id: 'u1' });
      peer.send({ type: 'input_audio_buffer.speech_started', audio_start_ms: 9500, item_id: 'u2' });
      await client.next('utterance.started');
      expect(client.events.slice(2)).toEqual([
        { type: 'utterance.ended', utteranceId: 'u1' },
        {
          type: 'utterance.transcribed',
          utteranceId: 'u1',
          text: 'And now the weather.',
          final: true,
        },
        { type: 'utterance.started', utteranceId: 'u2', audioStartMs: 9500 },
      ]);
      client.send({ type: 'item.delete', itemId: 'u1' });
      expect(await peer.next('conversation.item.delete')).toMatchObject({ item_id: item });
    },
  );

  test('OPENAI-REALTIME-TRANSLATOR-6: ends only once if the server ends it first and an empty commit follows', async () => {
    const { client, peer } = await startCall();
    peer.send({ type: 'input_audio_buffer.speech_started', audio_start_ms: 320, item_id: 'u1' });
    await client.next('utterance.started');
    client.send({ type: 'utterance.end', utteranceId: 'u1' });
    peer.send({ type: 'input_audio_buffer.speech_stopped', audio_end_ms: 900, item_id: 'u1' });
    peer.send({ type: 'input_audio_buffer.committed', item_id: 'u1', previous_item_id: null });
    const code = 'input_audio_buffer_commit_empty';
    peer.send({ type: 'error', error: { type: 'invalid_request_error', code, message: 'Empty.' } });
    peer.send({ type: 'input_audio_buffer.speech_started', audio_start_ms: 950, item_id: 'u2' });
    await client.next('utterance.started');
    expect(client.events.slice(2)).toEqual([
      { type: 'utterance.ended', utteranceId: 'u1' },
      { type: 'utterance.started', utteranceId: 'u2', audioStartMs: 950 },
    ]);
  });

  test("counts its start from the session's first audio", async () => {
    const { client, peer } = await startCall({ maxBufferedAudioMs: 100 });
    // More than fits at once; an open connection loses nothing.
    for (let n = 0; n < 5; n += 1) client.connection.sendAudio(userAudio());
    peer.send({ type: 'input_audio_buffer.speech_started', audio_start_ms: 250, item_id: 'u1' });
    expect(await client.next('utterance.started')).toMatchObject({ audioStartMs: 250 });
  });

  test.each([
    [{ code: 'audio_unintelligible', message: 'No words' }, 'audio_unintelligible: No words'],
    [{}, 'The server gave no reason'],
  ])(
    'reports a failed transcription, and names the option for its model: %j',
    async (error, reason) => {
      const { client, peer } = await startCall();
      peer.send({
        type: 'conversation.item.input_audio_transcription.failed',
        item_id: 'u1',
        content_index: 0,
        error,
      });
      expect(await client.next('utterance.untranscribed')).toEqual({
        type: 'utterance.untranscribed',
        utteranceId: 'u1',
        reason: `${reason} (openaiRealtime({ transcription: { model: 'gpt-4o-mini-transcribe' } }))`,
      });
    },
  );
});

describe('a meaningless message', () => {
  const stillWorks = async ({ client, peer }: Awaited<ReturnType<typeof startCall>>) => {
    peer.send({ type: 'input_audio_buffer.speech_started', audio_start_ms: 0, item_id: 'after' });
    expect(await client.next('utterance.started')).toMatchObject({ utteranceId: 'after' });
  };

  test('counts as unknown, and is reported once per type', async () => {
    const call = await startCall();
    const { client, peer } = call;
    for (let n = 0; n < 3; n += 1) peer.sendRaw('{"type":"response.sung","melody":"la"}');
    peer.sendRaw('{"type":"__proto__"}');
    await stillWorks(call);
    expect(client.events.filter(({ type }) => type === 'transport.error')).toEqual([
      {
        type: 'transport.error',
        code: 'UNKNOWN_EVENT',
        message: 'The server sent an event of the unknown type `response.sung`',
        responseKey: null,
        raw: { type: 'response.sung', melody: 'la' },
      },
      expect.objectContaining({ code: 'UNKNOWN_EVENT' }),
    ]);
    expect(client.connection.diagnostics.unknownEvents['response.sung']).toBe(3);
  });

  test('uses a limited amount of memory when a peer invents types', async () => {
    const call = await startCall();
    const { client, peer } = call;
    for (let n = 0; n < 200; n += 1) peer.sendRaw(`{"type":"invented.${n}"}`);
    await stillWorks(call);
    const { unknownEvents } = client.connection.diagnostics;
    expect(Object.keys(unknownEvents)).toHaveLength(65);
    expect(unknownEvents['(others)']).toBe(136);
  });

  test.each([
    'not json',
    'null',
    '{"type":"response.created"}',
    '{"type":"response.output_audio.delta","response_id":"r","item_id":"i","delta":7}',
  ])('counts as malformed: %s', async (text) => {
    const call = await startCall();
    const { client, peer } = call;
    peer.sendRaw(text);
    await stillWorks(call);
    expect(client.events.filter(({ type }) => type === 'transport.error')).toEqual([
      expect.objectContaining({ code: 'MALFORMED_EVENT', responseKey: null }),
    ]);
    expect(client.connection.diagnostics.malformedEvents).toBe(1);
  });

  test('causes an error if its audio contains incomplete samples', async () => {
    const call = await startCall();
    call.peer.send({
      type: 'response.output_audio.delta',
      response_id: 'r',
      item_id: 'i',
      output_index: 0,
      content_index: 0,
      delta: 'AAAA',
    });
    await stillWorks(call);
    expect(await call.client.next('transport.error')).toMatchObject({ code: 'MALFORMED_AUDIO' });
    expect(call.client.frames).toEqual([]);
  });

  test('counts as text even when its frame is binary', async () => {
    const call = await startCall();
    call.peer.socket.send(Buffer.from([0xff, 0x00, 0x7b]), { binary: true });
    await stillWorks(call);
    expect(await call.client.next('transport.error')).toMatchObject({ code: 'MALFORMED_EVENT' });
  });
});
