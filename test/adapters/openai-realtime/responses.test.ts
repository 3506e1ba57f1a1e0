import { describe, expect, test } from 'vitest';
import { startCall, type Call } from './support/connected.ts';
import { responseEvents } from './support/response.ts';

/** Requests a response, and resolves when the server has received the request. */
function request({ client, peer }: Call, responseKey: string) {
  client.send({ type: 'response.request', responseKey });
  return peer.next('response.create');
}

/** Resolves when all earlier events from the server have been handled. */
async function settle({ client, peer }: Call) {
  peer.send({ type: 'input_audio_buffer.speech_stopped', audio_end_ms: 1, item_id: 'mark' });
  await client.next('utterance.ended');
}

describe('OPENAI-REALTIME-TRANSLATOR-1: a response and its request', () => {
  test('emits start, audio, text and end', async () => {
    const call = await startCall();
    const { client, peer } = call;
    await request(call, 'answer_1');
    const response = responseEvents('resp_1', { responseKey: 'answer_1', itemId: 'item_1' });
    peer.send(response.created);
    peer.send(response.text('On '));
    peer.send(response.audio(100, 7));
    peer.send(response.text('it.'));
    peer.send(response.audio(50, 8));
    peer.send(response.textDone('On it.'));
    peer.send(response.done());
    await client.next('response.ended');

    const transcribed = (text: string, final: boolean) => ({
      type: 'assistant.transcribed',
      itemId: 'item_1',
      responseId: 'resp_1',
      text,
      final,
    });
    expect(client.events.slice(1)).toEqual([
      { type: 'response.started', responseId: 'resp_1', responseKey: 'answer_1' },
      transcribed('On ', false),
      transcribed('it.', false),
      transcribed('On it.', true),
      {
        type: 'response.ended',
        responseId: 'resp_1',
        responseKey: 'answer_1',
        status: 'completed',
        reason: null,
        audio: [{ itemId: 'item_1', durationMs: 150 }],
      },
    ]);
    expect(client.frames).toEqual([
      {
        samples: new Int16Array(2_400).fill(7),
        sampleRateHz: 24_000,
        itemId: 'item_1',
        responseId: 'resp_1',
      },
      {
        samples: new Int16Array(1_200).fill(8),
        sampleRateHz: 24_000,
        itemId: 'item_1',
        responseId: 'resp_1',
      },
    ]);
  });

  test('lists the audio of each item in order', async () => {
    const call = await startCall();
    const first = responseEvents('resp_1', { itemId: 'item_1' });
    const second = responseEvents('resp_1', { itemId: 'item_2' });
    call.peer.send(first.created);
    call.peer.send(first.audio(20));
    call.peer.send(second.audio(40));
    call.peer.send(first.audio(20));
    call.peer.send(first.done());
    const { audio, responseKey } = await call.client.next('response.ended');
    expect(responseKey).toBeNull();
    expect(audio).toEqual([
      { itemId: 'item_1', durationMs: 40 },
      { itemId: 'item_2', durationMs: 40 },
    ]);
  });

  test("treats a text part as the assistant's transcript", async () => {
    const { client, peer } = await startCall();
    const part = { response_id: 'r', item_id: 'i', output_index: 0, content_index: 0 };
    peer.send({ type: 'response.output_text.delta', ...part, delta: 'Hi' });
    peer.send({ type: 'response.output_text.done', ...part, text: 'Hi.' });
    expect(await client.next('assistant.transcribed')).toMatchObject({ text: 'Hi', final: false });
    expect(await client.next('assistant.transcribed')).toMatchObject({ text: 'Hi.', final: true });
  });

  test.each([
    ['cancelled', { type: 'cancelled', reason: 'client_cancelled' }, 'client_cancelled'],
    ['incomplete', { type: 'incomplete', reason: 'max_output_tokens' }, 'max_output_tokens'],
    [
      'failed',
      { type: 'failed', error: { code: 'server_error', message: 'Oops, sk-proj-abcdefgh' } },
      'server_error: Oops, [redacted]',
    ],
    ['failed', undefined, null],
  ] as const)('ends as %s, %j', async (status, details, reason) => {
    const { client, peer } = await startCall();
    const response = responseEvents('resp_1');
    peer.send(response.created);
    peer.send(response.done(status, details));
    expect(await client.next('response.ended')).toMatchObject({ status, reason, audio: [] });
  });

  test('counts once, even if the server announces or ends it twice', async () => {
    const call = await startCall();
    const response = responseEvents('resp_1', { responseKey: 'k' });
    for (const event of [response.created, response.created, response.done(), response.done()]) {
      call.peer.send(event);
    }
    await settle(call);
    expect(call.client.events.map(({ type }) => type)).toEqual([
      'transport.ready',
      'response.started',
      'response.ended',
      'utterance.ended',
    ]);
  });

  test('ends as incomplete if its status is unknown', async () => {
    const { client, peer } = await startCall();
    peer.sendRaw('{"type":"response.done","response":{"id":"r","status":"paused"}}');
    expect(await client.next('response.ended')).toMatchObject({ status: 'incomplete' });
  });
});

describe('OPENAI-REALTIME-TRANSLATOR-1: errors', () => {
  const conflict = {
    type: 'invalid_request_error',
    code: 'conversation_already_has_active_response',
    message: 'Conversation already has an active response in progress: resp_0.',
  };

  test('name the refused request', async () => {
    const call = await startCall();
    const { client, peer } = call;
    const create = await request(call, 'answer_1');
    const error = { ...conflict, event_id: create.event_id };
    peer.send({ type: 'error', error });
    expect(await client.next('transport.error')).toEqual({
      type: 'transport.error',
      code: 'conversation_already_has_active_response',
      message: conflict.message,
      responseKey: 'answer_1',
      raw: { type: 'error', error },
    });
  });

  test('distinguish two requests', async () => {
    const call = await startCall();
    const { client, peer } = call;
    await request(call, 'answer_1');
    const second = await request(call, 'answer_2');
    peer.send({ type: 'error', error: { ...conflict, event_id: second.event_id } });
    expect(await client.next('transport.error')).toMatchObject({ responseKey: 'answer_2' });
    peer.send(responseEvents('resp_1', { responseKey: 'answer_1' }).created);
    expect(await client.next('response.started')).toMatchObject({ responseKey: 'answer_1' });
  });

  test('refer to the only open request if a conflict has no event id', async () => {
    const call = await startCall();
    await request(call, 'answer_1');
    call.peer.send({ type: 'error', error: conflict });
    expect(await call.client.next('transport.error')).toMatchObject({ responseKey: 'answer_1' });
    // The request has been answered, so the next error without an id belongs to no request.
    call.peer.send({ type: 'error', error: conflict });
    expect(await call.client.next('transport.error')).toMatchObject({ responseKey: null });
  });

  test('do not name a response for other commands, and use the error type if there is no code', async () => {
    const { client, peer } = await startCall();
    client.send({ type: 'item.delete', itemId: 'gone' });
    const { event_id: eventId } = await peer.next('conversation.item.delete');
    peer.send({
      type: 'error',
      error: { type: 'invalid_request_error', message: 'No such item', event_id: eventId },
    });
    expect(await client.next('transport.error')).toMatchObject({
      code: 'invalid_request_error',
      responseKey: null,
    });
  });
});

describe('OPENAI-REALTIME-TRANSLATOR-4: response.cancel', () => {
  test('sends nothing if no response is active', async () => {
    const { client, peer } = await startCall();
    client.send({ type: 'response.cancel' });
    client.send({ type: 'item.delete', itemId: 'mark' });
    await peer.next('conversation.item.delete');
    expect(peer.received.map(({ type }) => type)).not.toContain('response.cancel');
  });

  test('sends one message when it is called twice', async () => {
    const call = await startCall();
    await request(call, 'k');
    call.client.send({ type: 'response.cancel' });
    call.client.send({ type: 'response.cancel' });
    call.client.send({ type: 'item.delete', itemId: 'mark' });
    await call.peer.next('conversation.item.delete');
    expect(call.peer.received.filter(({ type }) => type === 'response.cancel')).toHaveLength(1);
  });

  test('does not cause an error if it arrives too late', async () => {
    const call = await startCall();
    const { client, peer } = call;
    const response = responseEvents('resp_1', { responseKey: 'k' });
    await request(call, 'k');
    peer.send(response.created);
    await client.next('response.started');
    client.send({ type: 'response.cancel' });
    const { event_id: eventId } = await peer.next('response.cancel');
    peer.send(response.done());
    peer.send({
      type: 'error',
      error: {
        type: 'invalid_request_error',
        code: 'response_cancel_not_active',
        message: 'Cancellation failed: no active response found',
        event_id: eventId,
      },
    });
    await settle(call);
    expect(client.events.map(({ type }) => type)).not.toContain('transport.error');
    expect(await client.next('response.ended')).toMatchObject({ status: 'completed' });
  });
});

describe('OPENAI-REALTIME-TRANSLATOR-2: the generation gate', () => {
  test('drops audio that arrives after the cancel, even after the response has ended', async () => {
    const call = await startCall();
    const { client, peer } = call;
    const response = responseEvents('resp_1', { responseKey: 'k' });
    await request(call, 'k');
    peer.send(response.created);
    peer.send(response.audio(100, 1));
    await client.nextFrame();
    client.send({ type: 'response.cancel' });
    await peer.next('response.cancel');
    peer.send(response.audio(100, 2));
    peer.send(response.textDone('On it, and'));
    peer.send(response.done('cancelled', { type: 'cancelled', reason: 'client_cancelled' }));
    peer.send(response.audio(100, 3));
    await settle(call);
    expect(client.frames.map(({ samples }) => samples[0])).toEqual([1]);
    // OPENAI-REALTIME-TRANSLATOR-3: only audio that has been passed on can be heard.
    expect(await client.next('response.ended')).toMatchObject({
      status: 'cancelled',
      audio: [{ itemId: 'resp_1_item', durationMs: 100 }],
    });
    expect(await client.next('assistant.transcribed')).toMatchObject({ final: true });
  });

  test('drops a response that was requested before the cancel but starts afterwards', async () => {
    const call = await startCall();
    const { client, peer } = call;
    const response = responseEvents('resp_1', { responseKey: 'k' });
    await request(call, 'k');
    client.send({ type: 'response.cancel' });
    await peer.next('response.cancel');
    peer.send(response.created);
    peer.send(response.audio(100));
    peer.send(response.done('cancelled'));
    expect(await client.next('response.ended')).toMatchObject({ audio: [] });
    expect(client.frames).toEqual([]);
  });

  test('lets the next response through', async () => {
    const call = await startCall();
    const { client, peer } = call;
    const first = responseEvents('resp_1', { responseKey: 'k1' });
    const second = responseEvents('resp_2', { responseKey: 'k2' });
    await request(call, 'k1');
    peer.send(first.created);
    await client.next('response.started');
    client.send({ type: 'response.cancel' });
    await peer.next('response.cancel');
    await request(call, 'k2');
    peer.send(first.audio(20, 1));
    peer.send(first.done('cancelled'));
    peer.send(second.created);
    peer.send(second.audio(20, 2));
    expect((await client.nextFrame()).samples[0]).toBe(2);
    expect(client.frames).toHaveLength(1);
  });
});

describe('OPENAI-REALTIME-TRANSLATOR-3: a truncation', () => {
  async function spoken(ms: number) {
    const call = await startCall();
    const response = responseEvents('resp_1', { itemId: 'item_1' });
    call.peer.send(response.created);
    call.peer.send(response.audio(ms));
    await call.client.nextFrame();
    return call;
  }

  test.each([
    [120.9, 120],
    [0, 0],
    [-5, 0],
    [250, 250],
    [9_999, 250],
  ])('maps %d of 250 ms played to the audio_end_ms %i', async (playedMs, audioEndMs) => {
    const { client, peer } = await spoken(250);
    client.send({ type: 'playout.truncate', itemId: 'item_1', playedMs });
    expect(await peer.next('conversation.item.truncate')).toMatchObject({
      item_id: 'item_1',
      content_index: 0,
      audio_end_ms: audioEndMs,
    });
  });

  test('ignores an item that this connection never played', async () => {
    const { client, peer } = await spoken(100);
    client.send({ type: 'playout.truncate', itemId: 'of_an_older_connection', playedMs: 10 });
    client.send({ type: 'item.delete', itemId: 'mark' });
    await peer.next('conversation.item.delete');
    expect(peer.received.map(({ type }) => type)).not.toContain('conversation.item.truncate');
  });

  test('takes effect even after the response has ended', async () => {
    const { client, peer } = await spoken(100);
    peer.send(responseEvents('resp_1').done());
    await client.next('response.ended');
    client.send({ type: 'playout.truncate', itemId: 'item_1', playedMs: 60 });
    expect(await peer.next('conversation.item.truncate')).toMatchObject({ audio_end_ms: 60 });
  });
});

describe('RESPONSE-LEDGER-4: tool calls', () => {
  const called = {
    type: 'tool.called',
    callId: 'call_1',
    name: 'book_ride',
    arguments: '{"to":"airport"}',
    responseId: 'resp_1',
  };
  const response = responseEvents('resp_1');
  const withArguments = response.callArguments('call_1', 'book_ride', '{"to":"airport"}');
  const itemDone = response.callDone('call_1', 'book_ride', '{"to":"airport"}');

  test('arrive once, before the end of the response, even if the server repeats them', async () => {
    const call = await startCall();
    for (const event of [withArguments, itemDone, withArguments, itemDone, response.done()]) {
      call.peer.send(event);
    }
    await settle(call);
    expect(call.client.events.slice(1, -1)).toEqual([
      { type: 'response.started', responseId: 'resp_1', responseKey: null },
      called,
      expect.objectContaining({ type: 'response.ended' }),
    ]);
  });

  test('arrive from a server that does not send output_item.done', async () => {
    const call = await startCall();
    call.peer.send(withArguments);
    call.peer.send(response.done('completed'));
    expect(await call.client.next('tool.called')).toEqual(called);
  });

  test('arrive from a server that sends only output_item.done', async () => {
    const call = await startCall();
    call.peer.send(itemDone);
    expect(await call.client.next('tool.called')).toEqual(called);
  });

  test('arrive only once they are complete', async () => {
    const call = await startCall();
    call.peer.send(response.callArguments('call_1', 'book_ride', '{"to":"air'));
    call.peer.send(response.callDone('call_1', 'book_ride', '{"to":"air', 'incomplete'));
    call.peer.send(response.callArguments('call_2', 'book_ride', '{"to'));
    call.peer.send(response.done('cancelled'));
    await settle(call);
    expect(call.client.events.map(({ type }) => type)).not.toContain('tool.called');
  });

  test('arrive even if the response is cancelled, provided they were complete', async () => {
    const call = await startCall();
    await request(call, 'k');
    call.peer.send(responseEvents('resp_1', { responseKey: 'k' }).created);
    await call.client.next('response.started');
    call.client.send({ type: 'response.cancel' });
    await call.peer.next('response.cancel');
    call.peer.send(itemDone);
    call.peer.send(response.done('cancelled'));
    expect(await call.client.next('tool.called')).toEqual(called);
  });

  test('arrive separately if a response contains two', async () => {
    const call = await startCall();
    call.peer.send(itemDone);
    call.peer.send(response.callDone('call_2', 'book_ride', '{"to":"station"}'));
    call.peer.send(response.done());
    await call.client.next('response.ended');
    const calls = call.client.events.filter(({ type }) => type === 'tool.called');
    expect(calls).toEqual([called, { ...called, callId: 'call_2', arguments: '{"to":"station"}' }]);
  });
});
