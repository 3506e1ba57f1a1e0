import { describe, expect, onTestFinished, test } from 'vitest';
import { decodePcm16Base64 } from '../../../src/voice/audio/pcm16.ts';
import { configuration } from '../support/configuration.ts';
import { connectTo, startCall, userAudio } from './support/connected.ts';
import { startFakeServer } from './support/fake-server.ts';

describe('the client event of a command', () => {
  test('changes instructions and tools only in response to session.configure', async () => {
    const { client, peer } = await startCall();
    client.send({
      type: 'session.configure',
      configuration: { instructions: 'Be kind.', tools: [] },
    });
    const { session } = await peer.next('session.update');
    expect(session).toEqual({ type: 'realtime', instructions: 'Be kind.', tools: [] });
  });

  test(
    'OPENAI-REALTIME-TRANSLATOR-5: causes one response per change, either session.updated or an error',
    { tags: ['B69'] },
    async () => {
      const { client, peer } = await startCall();
      for (const instructions of ['First.', 'Second.'])
        client.send({ type: 'session.configure', configuration: { instructions, tools: [] } });
      const first = await peer.next('session.update');
      const second = await peer.next('session.update');
      expect(first.session).toMatchObject({ instructions: 'First.' });
      peer.send({ type: 'session.updated', session: { type: 'realtime' } });
      await client.next('session.configured');
      peer.send({
        type: 'error',
        error: {
          type: 'invalid_request_error',
          code: 'invalid_value',
          message: 'No.',
          event_id: second.event_id ?? null,
        },
      });
      expect(await client.next('session.refused')).toEqual({
        type: 'session.refused',
        code: 'invalid_value',
        message: 'No.',
      });
      // The refused instructions do not apply to the next response.
      client.send({ type: 'response.request', responseKey: 'k', instructions: 'Say it.' });
      expect((await peer.next('response.create')).response?.instructions).toBe('First.\n\nSay it.');
      // An update that no request asked for answers nothing.
      peer.send({ type: 'session.updated', session: { type: 'realtime' } });
      peer.send({ type: 'input_audio_buffer.speech_stopped', audio_end_ms: 1, item_id: 'i' });
      await client.next('utterance.ended');
      expect(client.events.filter(({ type }) => type === 'session.configured')).toHaveLength(1);
    },
  );

  test('sends question.expect only to a server that announces the extension', async () => {
    const question = { kind: 'choice', options: [{ id: 'e', label: 'Economy' }] } as const;
    const sent = async (session: Record<string, unknown>): Promise<unknown[]> => {
      const server = await startFakeServer();
      onTestFinished(() => server.close());
      const client = connectTo(server.url);
      const peer = await server.nextPeer();
      await peer.next('session.update');
      peer.sendRaw(JSON.stringify({ type: 'session.updated', event_id: 'e', session }));
      await client.next('transport.ready');
      client.send({ type: 'question.expect', question });
      client.send({ type: 'utterance.end', utteranceId: 'u' });
      await peer.next('input_audio_buffer.commit');
      return peer.received.slice(1);
    };
    expect(await sent({ type: 'realtime', extensions: ['session.open_question'] })).toMatchObject([
      { type: 'session.open_question', event_id: expect.any(String), question },
      { type: 'input_audio_buffer.commit' },
    ]);
    expect(await sent({ type: 'realtime' })).toMatchObject([{ type: 'input_audio_buffer.commit' }]);
  });

  test("adds a message after an item, even if the item's id was shortened", async () => {
    const { client, peer } = await startCall();
    const afterItemId = 'an_id_of_a_session_that_the_wire_does_not_take';
    client.send({ type: 'message.add', itemId: afterItemId, role: 'user', text: 'A' });
    const { item } = await peer.next('conversation.item.create');
    client.send({ type: 'message.add', itemId: 'i2', role: 'assistant', text: 'B', afterItemId });
    const behind = await peer.next('conversation.item.create');
    expect(behind.previous_item_id).toBe(item.id);
    client.send({ type: 'message.add', itemId: 'i3', role: 'user', text: 'C' });
    expect(await peer.next('conversation.item.create')).not.toHaveProperty('previous_item_id');
  });

  test.each([
    ['system', 'input_text'],
    ['user', 'input_text'],
    ['assistant', 'output_text'],
  ] as const)('adds a message with the role %s', async (role, contentType) => {
    const { client, peer } = await startCall();
    client.send({ type: 'message.add', itemId: 'item_1', role, text: 'A “text”' });
    const { item } = await peer.next('conversation.item.create');
    expect(item).toEqual({
      id: 'item_1',
      type: 'message',
      role,
      content: [{ type: contentType, text: 'A “text”' }],
    });
  });

  test('deletes an item', async () => {
    const { client, peer } = await startCall();
    client.send({ type: 'item.delete', itemId: 'item_1' });
    expect(await peer.next('conversation.item.delete')).toMatchObject({ item_id: 'item_1' });
  });

  test('shortens an id that is too long for the protocol, and does so in the same way each time', async () => {
    const { client, peer } = await startCall();
    const itemId = `item_${'x'.repeat(40)}`;
    client.send({ type: 'message.add', itemId, role: 'system', text: 'a' });
    client.send({ type: 'message.add', itemId: `${itemId}y`, role: 'system', text: 'b' });
    client.send({ type: 'item.delete', itemId });
    const first = await peer.next('conversation.item.create');
    const second = await peer.next('conversation.item.create');
    const deleted = await peer.next('conversation.item.delete');
    expect(first.item.id).toHaveLength(32);
    expect(deleted.item_id).toBe(first.item.id);
    expect(second.item.id).not.toBe(first.item.id);
  });

  test("sends a tool's answer without requesting a response", async () => {
    const { client, peer } = await startCall();
    client.send({ type: 'tool.answer', callId: 'call_1', output: '{"status":"working"}' });
    client.send({ type: 'item.delete', itemId: 'mark' });
    const { item } = await peer.next('conversation.item.create');
    expect(item).toEqual({
      type: 'function_call_output',
      call_id: 'call_1',
      output: '{"status":"working"}',
    });
    await peer.next('conversation.item.delete');
    expect(peer.received.map(({ type }) => type)).not.toContain('response.create');
  });

  test('restores an earlier tool call', async () => {
    const { client, peer } = await startCall();
    client.send({
      type: 'tool.recall',
      callId: 'call_1',
      name: 'book_ride',
      arguments: '{"to":"airport"}',
    });
    expect((await peer.next('conversation.item.create')).item).toEqual({
      type: 'function_call',
      call_id: 'call_1',
      name: 'book_ride',
      arguments: '{"to":"airport"}',
    });
  });

  test("includes the key in a response request, and preserves the session's instructions", async () => {
    const { client, peer } = await startCall();
    client.send({ type: 'response.request', responseKey: 'answer_1' });
    expect((await peer.next('response.create')).response).toEqual({
      metadata: { response_key: 'answer_1' },
    });
  });

  test("appends a response's instructions to the session's current instructions", async () => {
    const { client, peer } = await startCall();
    client.send({
      type: 'session.configure',
      configuration: { ...configuration, instructions: 'Be kind.' },
    });
    client.send({ type: 'response.request', responseKey: 'k', instructions: 'Say the result.' });
    expect((await peer.next('response.create')).response?.instructions).toBe(
      'Be kind.\n\nSay the result.',
    );
  });

  test('has a unique id', async () => {
    const { client, peer } = await startCall();
    for (let n = 0; n < 5; n += 1) client.send({ type: 'item.delete', itemId: `item_${n}` });
    for (let n = 0; n < 5; n += 1) await peer.next('conversation.item.delete');
    const ids = peer.received.map(({ event_id: eventId }) => eventId);
    expect(new Set(ids).size).toBe(6);
    expect(ids).not.toContain(undefined);
  });
});

describe("the user's audio", () => {
  test('arrives unchanged, sample by sample', async () => {
    const { client, peer } = await startCall();
    const samples = Int16Array.of(0, 1, -1, 32_767, -32_768);
    client.connection.sendAudio({ samples, sampleRateHz: 24_000 });
    const { audio } = await peer.next('input_audio_buffer.append');
    expect(decodePcm16Base64(audio)).toEqual(samples);
  });

  test('causes only one error and is dropped if its rate is wrong', async () => {
    const { client, peer } = await startCall();
    for (let n = 0; n < 3; n += 1) {
      client.connection.sendAudio({ samples: new Int16Array(160), sampleRateHz: 16_000 });
    }
    client.connection.sendAudio(userAudio(5));
    const { audio } = await peer.next('input_audio_buffer.append');
    expect(decodePcm16Base64(audio)[0]).toBe(5);
    const errors = client.events.filter(({ type }) => type === 'transport.error');
    expect(errors).toEqual([
      expect.objectContaining({
        code: 'WRONG_SAMPLE_RATE',
        message: 'Expected sound at 24000 Hz, got 16000 Hz: it is dropped',
      }),
    ]);
  });

  test('SOCKET-CONNECTION-4: stays within its buffer limit if the server stalls, and drops the oldest audio', async () => {
    const { client, peer } = await startCall({ maxBufferedAudioMs: 1_000 });
    peer.socket.pause();
    let sent = 0;
    // The operating system buffers several megabytes before it pushes back.
    while (client.connection.diagnostics.droppedAudio.frames === 0 && sent < 20_000) {
      sent += 1;
      client.connection.sendAudio(userAudio(sent));
    }
    const { droppedAudio } = client.connection.diagnostics;
    expect(droppedAudio.frames).toBe(1);
    expect(await client.next('transport.error')).toMatchObject({ code: 'AUDIO_DROPPED' });

    peer.socket.resume();
    const arrived: number[] = [];
    while (arrived.at(-1) !== sent) {
      const { audio } = await peer.next('input_audio_buffer.append');
      arrived.push(decodePcm16Base64(audio)[0] ?? -1);
    }
    expect(arrived).toHaveLength(sent - droppedAudio.frames);
    expect(arrived).toEqual(arrived.toSorted((a, b) => a - b));
  });

  test('SOCKET-CONNECTION-4: gets sent after a long message, even if nothing else is sent', async () => {
    const { client, peer } = await startCall();
    peer.socket.pause();
    const text = 'x'.repeat(12_000_000);
    client.send({ type: 'message.add', itemId: 'item_1', role: 'user', text });
    client.connection.sendAudio(userAudio(7));
    peer.socket.resume();
    const { audio } = await peer.next('input_audio_buffer.append');
    expect(decodePcm16Base64(audio)[0]).toBe(7);
  });
});
