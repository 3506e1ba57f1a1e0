import { describe, expect, test } from 'vitest';
import { decodePcm16Base64 } from '../../../src/voice/audio/pcm16.ts';
import { gate, startHarness, textOnly, userSays } from './support/harness.ts';
import { MS_PER_CHARACTER } from './support/scripted-speech.ts';

const RATE_HZ = 24_000;

describe('a response', () => {
  test('RESPONSE-RUN-1, RESPONSE-MESSAGE-1: sends the same text events in the same order as the real server', async () => {
    const { connect, model } = await startHarness({ answers: [['Hi there, friend!']] });
    const client = await connect();
    client.send({
      ...textOnly,
      session: { ...textOnly.session, instructions: 'Be brief.' },
    });
    client.send(userSays('Say hi'));
    client.send({ type: 'response.create' });
    await client.next('rate_limits.updated');

    expect(client.typesFrom('session.updated')).toEqual([
      'session.updated',
      'conversation.item.added',
      'conversation.item.done',
      'response.created',
      'response.output_item.added',
      'conversation.item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'conversation.item.done',
      'response.output_item.done',
      'response.done',
      'rate_limits.updated',
    ]);
    const deltas = client.events.filter(({ type }) => type === 'response.output_text.delta');
    expect(deltas.length).toBeGreaterThan(1);
    expect(deltas.map(({ delta }) => delta).join('')).toBe('Hi there, friend!');
    expect(model.prompt(0)).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: [{ type: 'text', text: 'Say hi' }] },
    ]);
    const { response } = await client.next('response.done');
    expect(response).toMatchObject({
      status: 'completed',
      status_details: null,
      output: [
        { role: 'assistant', content: [{ type: 'output_text', text: 'Hi there, friend!' }] },
      ],
      output_modalities: ['text'],
    });
    expect(response.conversation_id).toMatch(/^conv_/);
    expect(response.usage).toEqual({
      total_tokens: 120,
      input_tokens: 100,
      output_tokens: 20,
      input_token_details: {
        text_tokens: 100,
        audio_tokens: 0,
        image_tokens: 0,
        cached_tokens: 40,
        cached_tokens_details: { text_tokens: 40, audio_tokens: 0, image_tokens: 0 },
      },
      output_token_details: { text_tokens: 20, audio_tokens: 0 },
    });
  });

  test('speaks sentence by sentence in pieces of at most 100 ms, in step with the text', async () => {
    const text = 'Your ride is booked. The driver comes at noon.';
    const { connect, speech } = await startHarness({ answers: [[text]] });
    const client = await connect();
    client.send({ type: 'response.create' });
    const { response } = await client.next('response.done');

    expect(client.typesFrom('response.created')).toEqual([
      'response.created',
      'response.output_item.added',
      'conversation.item.added',
      'response.content_part.added',
      ...client.typesFrom('response.content_part.added').filter((type) => type.endsWith('.delta')),
      'response.output_audio.done',
      'response.output_audio_transcript.done',
      'response.content_part.done',
      'conversation.item.done',
      'response.output_item.done',
      'response.done',
      'rate_limits.updated',
    ]);
    expect(speech.spoken.map((request) => request.text)).toEqual([
      'Your ride is booked. ',
      'The driver comes at noon.',
    ]);
    expect(response.output[0].content).toEqual([{ type: 'output_audio', transcript: text }]);

    const sounds = client.events
      .filter(({ type }) => type === 'response.output_audio.delta')
      .map(({ delta }) => decodePcm16Base64(delta));
    expect(Math.max(...sounds.map(({ length }) => length))).toBeLessThanOrEqual(RATE_HZ / 10);
    const samples = sounds.reduce((sum, { length }) => sum + length, 0);
    // Includes the pause between the two sentences.
    expect((samples * 1000) / RATE_HZ).toBe(text.length * MS_PER_CHARACTER + 150);

    // Words arrive before their audio, but some audio arrives before the last words.
    const order = client.events
      .filter(({ type }) => type.endsWith('.delta'))
      .map(({ type, delta }) => (type === 'response.output_audio.delta' ? '♪' : delta));
    expect(order[0]).not.toBe('♪');
    expect(order.filter((each) => each !== '♪').join('')).toBe(text);
    const lastWord = order.lastIndexOf(order.findLast((each) => each !== '♪'));
    expect(order.slice(0, lastWord).filter((each) => each === '♪').length).toBeGreaterThan(5);
  });

  test('replaces the silence around each sentence, and keeps the timing of its words', async () => {
    const { connect, speech } = await startHarness({
      answers: [['One. Two three four. Five.']],
    });
    // As with real voices, there is a little noise before and after the words; the second sentence is quiet throughout.
    speech.synthesize = ({ text }) => {
      const isQuiet = text.startsWith('Two');
      const at = (ms: number): number => (ms * RATE_HZ) / 1000;
      const samples = new Int16Array(at(1_000)).fill(isQuiet ? 300 : 50);
      if (!isQuiet) samples.fill(-3_000, at(200), at(850));
      return Promise.resolve({ samples, sampleRateHz: RATE_HZ });
    };
    const client = await connect();
    client.send({ type: 'session.update', session: { type: 'realtime' } });
    client.send(userSays('Count'));
    client.send({ type: 'response.create' });
    const { response } = await client.next('response.done');
    const sound = client.events
      .filter(({ type }) => type === 'response.output_audio.delta')
      .flatMap(({ delta }) => [...decodePcm16Base64(delta)]);
    const loud = sound.flatMap((sample, at) => (sample < -1_000 ? [(at * 1000) / RATE_HZ] : []));
    const [first, last] = [loud[0] as number, loud.at(-1) as number];
    // 20 ms at each end of a sentence, and 150 ms between two.
    expect(first).toBe(20);
    const secondFrom = 20 + 650 + 20 + 150;
    const thirdFrom = secondFrom + 1_000 + 150;
    expect(loud.find((at) => at > secondFrom)).toBe(thirdFrom + 20);
    expect(Math.round(last)).toBe(thirdFrom + 20 + 650);
    expect((sound.length * 1000) / RATE_HZ).toBe(thirdFrom + 20 + 650 + 20);

    // "Two three " fills the first half of its sentence: when the response is cut there, "three" has been heard and
    // "four" has not.
    const itemId = response.output[0].id;
    const audioEndMs = secondFrom + 700;
    client.send({
      type: 'conversation.item.truncate',
      item_id: itemId,
      content_index: 0,
      audio_end_ms: audioEndMs,
    });
    await client.next('conversation.item.truncated');
    client.send({ type: 'conversation.item.retrieve', item_id: itemId });
    const { item } = await client.next('conversation.item.retrieved');
    expect(item.content[0].transcript).toBe('One. Two three ');
  });

  test('RESPONSE-RUN-3: speaks before it calls a tool, and keeps the arguments that the model wrote', async () => {
    const { connect, model } = await startHarness({
      answers: [
        ['One moment.', { call: 'book_ride', input: { to: 'airport' } }],
        ['It is booked.'],
      ],
    });
    const client = await connect();
    const parameters = { type: 'object', properties: { to: { type: 'string' } } };
    const tool = { type: 'function', name: 'book_ride', description: 'Books.', parameters };
    client.send({ type: 'session.update', session: { type: 'realtime', tools: [tool] } });
    client.send(userSays('Book me a ride to the airport'));
    client.send({ type: 'response.create' });
    const { response } = await client.next('response.done');

    const types = client.typesFrom('response.created');
    expect(types.slice(types.lastIndexOf('response.output_item.added'))).toEqual([
      'response.output_item.added',
      'conversation.item.added',
      'response.function_call_arguments.delta',
      'response.function_call_arguments.done',
      'conversation.item.done',
      'response.output_item.done',
      'response.done',
      'rate_limits.updated',
    ]);
    const done = await client.next('response.function_call_arguments.done');
    expect(done).toMatchObject({
      name: 'book_ride',
      arguments: '{"to":"airport"}',
      output_index: 1,
    });
    expect(response.output).toMatchObject([
      { type: 'message', content: [{ transcript: 'One moment.' }] },
      { type: 'function_call', status: 'completed', call_id: done['call_id'], name: 'book_ride' },
    ]);
    expect(model.calls[0]?.tools).toMatchObject([
      { type: 'function', name: 'book_ride', description: 'Books.', inputSchema: parameters },
    ]);

    client.send({
      type: 'conversation.item.create',
      item: { type: 'function_call_output', call_id: done['call_id'], output: 'driver: Ada' },
    });
    client.send({ type: 'response.create' });
    await client.next('response.done');
    expect(model.prompt(1).slice(1)).toEqual([
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'One moment.' },
          {
            type: 'tool-call',
            toolCallId: done['call_id'],
            toolName: 'book_ride',
            input: { to: 'airport' },
          },
        ],
      },
      {
        role: 'tool',
        content: [
          {
            type: 'tool-result',
            toolCallId: done['call_id'],
            toolName: 'book_ride',
            output: { type: 'text', value: 'driver: Ada' },
          },
        ],
      },
    ]);
  });

  test("REALTIME-SESSION-2: refuses a second response with an error that names the client's event", async () => {
    const held = gate();
    const { connect } = await startHarness({ answers: [['a', { until: held.opened }, 'b']] });
    const client = await connect();
    client.send(textOnly);
    client.send({ type: 'response.create' });
    const { response } = await client.next('response.created');
    client.send({ type: 'response.create', event_id: 'second' });
    const { error } = await client.next('error');
    expect(error).toMatchObject({
      type: 'invalid_request_error',
      code: 'conversation_already_has_active_response',
      event_id: 'second',
    });
    expect(error.message).toContain(response.id);
    held.open();
    expect((await client.next('response.done'))['response']).toMatchObject({
      id: response.id,
      status: 'completed',
    });
    client.send({ type: 'response.create' });
    expect((await client.next('response.done'))['response'].status).toBe('failed');
  });

  test('uses the metadata and settings of its request', async () => {
    const { connect, model, speech } = await startHarness({ answers: [['Yes.']] });
    const client = await connect();
    client.send({
      type: 'session.update',
      session: {
        type: 'realtime',
        instructions: 'Of the session.',
        audio: { output: { speed: 1.2 } },
      },
    });
    client.send({
      type: 'response.create',
      response: {
        metadata: { response_key: 'k1' },
        instructions: 'Of this response.',
        max_output_tokens: 50,
        tool_choice: 'none',
        audio: { output: { voice: 'rms' } },
      },
    });
    expect((await client.next('response.created'))['response']).toMatchObject({
      metadata: { response_key: 'k1' },
      max_output_tokens: 50,
      audio: { output: { voice: 'rms' } },
    });
    const { response } = await client.next('response.done');
    expect(response.metadata).toEqual({ response_key: 'k1' });
    expect(model.prompt(0)[0]).toEqual({ role: 'system', content: 'Of this response.' });
    expect(model.calls[0]).toMatchObject({ maxOutputTokens: 50 });
    expect(speech.spoken).toEqual([{ text: 'Yes.', voice: 'rms', speed: 1.2 }]);
  });

  test('speaks in the default voice when the engine lacks the requested voice', async () => {
    const { connect, speech } = await startHarness({ answers: [['Yes.']], voice: 'rms' });
    const client = await connect();
    client.send({
      type: 'session.update',
      session: { type: 'realtime', audio: { output: { voice: 'marin' } } },
    });
    client.send({ type: 'response.create' });
    await client.next('response.done');
    expect(speech.spoken[0]?.voice).toBe('rms');
  });

  test('sends the model a user message if the conversation is empty', async () => {
    const { connect, model } = await startHarness({ answers: [['Hello!']] });
    const client = await connect();
    client.send(textOnly);
    client.send({ type: 'response.create' });
    await client.next('response.done');
    expect(model.prompt(0)).toMatchObject([{ role: 'user' }]);
  });

  test.each([
    ['length', 'max_output_tokens'],
    ['content-filter', 'content_filter'],
  ] as const)('ends as incomplete when cut off by %s', async (finish, reason) => {
    const { connect } = await startHarness({ answers: [['Half a', { finish }]] });
    const client = await connect();
    client.send(textOnly);
    client.send({ type: 'response.create' });
    expect((await client.next('response.done'))['response']).toMatchObject({
      status: 'incomplete',
      status_details: { type: 'incomplete', reason },
      output: [{ content: [{ text: 'Half a' }] }],
    });
  });

  test('RESPONSE-RUN-1: ends as failed with the text so far when the model fails', async () => {
    const { connect } = await startHarness({
      answers: [['Half a', { fail: 'no credit' }], ['ok']],
    });
    const client = await connect();
    client.send(textOnly);
    client.send({ type: 'response.create' });
    expect((await client.next('response.done'))['response']).toMatchObject({
      status: 'failed',
      status_details: {
        type: 'failed',
        error: { type: 'server_error', code: 'MODEL_FAILED', message: 'no credit' },
      },
      output: [{ status: 'incomplete', content: [{ text: 'Half a' }] }],
    });
    client.send({ type: 'response.create' });
    expect((await client.next('response.done'))['response'].status).toBe('completed');
  });

  test('RESPONSE-RUN-1: ends as failed when the voice fails', async () => {
    const { connect, speech } = await startHarness({ answers: [['Hello.']] });
    speech.synthesize = () => Promise.reject(new Error('hoarse'));
    const client = await connect();
    client.send({ type: 'response.create' });
    const { response } = await client.next('response.done');
    expect(response).toMatchObject({
      status: 'failed',
      status_details: { error: { message: 'hoarse' } },
    });
  });
});

describe('cancelling a response', () => {
  test('RESPONSE-RUN-2: takes effect immediately, leaves the item incomplete and stops all output', async () => {
    const held = gate();
    const { connect, model } = await startHarness({
      answers: [['First part. ', { until: held.opened }, 'Second part.'], ['ok']],
    });
    const client = await connect();
    client.send({ type: 'response.create' });
    // All the audio of the first sentence.
    while (client.count('response.output_audio.delta') < 3) {
      await client.next('response.output_audio.delta');
    }
    client.send({ type: 'response.cancel' });
    const { response } = await client.next('response.done');
    expect(response).toMatchObject({
      status: 'cancelled',
      status_details: { type: 'cancelled', reason: 'client_cancelled' },
      output: [{ status: 'incomplete', content: [{ type: 'output_audio' }] }],
    });
    expect('First part. '.startsWith(response.output[0].content[0].transcript)).toBe(true);
    expect(client.typesFrom('response.output_audio.done')).toEqual([
      'response.output_audio.done',
      'response.output_audio_transcript.done',
      'response.content_part.done',
      'conversation.item.done',
      'response.output_item.done',
      'response.done',
      'rate_limits.updated',
    ]);
    expect(model.calls[0]?.abortSignal?.aborted).toBe(true);
    held.open();
    client.send(textOnly);
    client.send({ type: 'response.create' });
    await client.next('response.done');
    const after = client.events.slice(
      client.events.findIndex(({ type }) => type === 'response.done'),
    );
    expect(after.filter(({ response_id: id }) => id === response.id)).toEqual([]);
    // The model remembers the words that it has said, but not the ones that follow.
    expect(JSON.stringify(model.prompt(1))).not.toContain('Second');
  });

  test('RESPONSE-RUN-2: takes effect in the middle of a sentence', async () => {
    const endless = 'and then we went on and on '.repeat(20);
    const { connect } = await startHarness({ answers: [[endless], ['And so it ended.']] });
    const client = await connect();
    client.send({ type: 'response.create' });
    const { response_id: id } = await client.next('response.output_audio.delta');
    client.send({ type: 'response.cancel' });
    const { response } = await client.next('response.done');
    expect(response).toMatchObject({ id, status: 'cancelled' });
    const before = client.events.length;
    // A response that was not cancelled would continue during this one.
    client.send({ type: 'response.create' });
    await client.next('response.done');
    const after = client.events.slice(before);
    expect(after.filter(({ response_id: each }) => each === id)).toEqual([]);
    // The item does not contain words that were not sent.
    const { transcript } = response.output[0].content[0];
    expect(transcript.length).toBeLessThan(endless.length);
    expect(endless.startsWith(transcript)).toBe(true);
  });

  test('RESPONSE-RUN-2: takes effect while the model is still thinking', async () => {
    const held = gate();
    const { connect } = await startHarness({ answers: [[{ until: held.opened }, 'late']] });
    const client = await connect();
    client.send({ type: 'response.create' });
    await client.next('response.created');
    client.send({ type: 'response.cancel' });
    expect((await client.next('response.done'))['response']).toMatchObject({
      status: 'cancelled',
      output: [],
    });
    held.open();
    await client.fence();
    expect(client.count('response.output_item.added')).toBe(0);
  });

  test('fails if no response is active', async () => {
    const { connect } = await startHarness();
    const client = await connect();
    client.send({ type: 'response.cancel', event_id: 'c1' });
    client.send({ type: 'response.cancel', event_id: 'c2', response_id: 'resp_unknown' });
    expect((await client.next('error'))['error']).toMatchObject({
      code: 'response_cancel_not_active',
      event_id: 'c1',
    });
    expect((await client.next('error'))['error']).toMatchObject({
      code: 'response_cancel_not_active',
      event_id: 'c2',
    });
  });
});

describe('an out-of-band response', () => {
  test('REALTIME-SESSION-2: runs alongside the active response without joining the conversation', async () => {
    const [first, second] = [gate(), gate()];
    const { connect, model } = await startHarness({
      answers: [
        ['Long story', { until: first.opened }],
        ['Aside', { until: second.opened }],
        ['Afterwards'],
      ],
    });
    const client = await connect();
    client.send(textOnly);
    client.send(userSays('Tell me a story'));
    client.send({ type: 'response.create' });
    await client.next('response.output_text.delta');
    client.send({
      type: 'response.create',
      response: {
        conversation: 'none',
        metadata: { topic: 'classify' },
        input: [
          { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Classify.' }] },
        ],
      },
    });
    await client.next('response.created');
    const aside = (await client.next('response.created'))['response'];
    expect(aside).toMatchObject({ conversation_id: null, metadata: { topic: 'classify' } });
    second.open();
    expect((await client.next('response.done'))['response']).toMatchObject({
      id: aside.id,
      conversation_id: null,
      status: 'completed',
      output: [{ content: [{ text: 'Aside' }] }],
    });
    first.open();
    const story = (await client.next('response.done'))['response'];
    expect(story.output[0].content[0].text).toBe('Long story');
    // The question and the story were added with events; the response outside the conversation was not.
    const added = client.events.filter(({ type }) => type === 'conversation.item.added');
    expect(added.map(({ item }) => item.role)).toEqual(['user', 'assistant']);
    expect(model.prompt(1)).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'Classify.' }] },
    ]);
    client.send({ type: 'response.create' });
    await client.next('response.done');
    expect(JSON.stringify(model.prompt(2))).not.toContain('Aside');
  });

  test('ends when it is cancelled by id, while the active response continues', async () => {
    const [first, second] = [gate(), gate()];
    const { connect } = await startHarness({
      answers: [
        ['A', { until: first.opened }],
        ['B', { until: second.opened }],
      ],
    });
    const client = await connect();
    client.send(textOnly);
    client.send({ type: 'response.create' });
    client.send({ type: 'response.create', response: { conversation: 'none' } });
    const active = (await client.next('response.created'))['response'];
    const aside = (await client.next('response.created'))['response'];
    client.send({ type: 'response.cancel', response_id: aside.id });
    expect((await client.next('response.done'))['response']).toMatchObject({
      id: aside.id,
      status: 'cancelled',
    });
    first.open();
    second.open();
    expect((await client.next('response.done'))['response']).toMatchObject({
      id: active.id,
      status: 'completed',
    });
  });

  test('reads the items that its input names, and refuses unknown items', async () => {
    const { connect, model } = await startHarness({ answers: [['ok']] });
    const client = await connect();
    client.send(textOnly);
    client.send({ ...userSays('First'), item: { id: 'one', ...itemOf('First') } });
    client.send(userSays('Second'));
    const reference = (id: string) => ({
      type: 'response.create',
      event_id: id,
      response: { conversation: 'none', input: [{ type: 'item_reference', id }] },
    });
    client.send(reference('two'));
    expect((await client.next('error'))['error']).toMatchObject({
      code: 'invalid_value',
      event_id: 'two',
    });
    client.send(reference('one'));
    await client.next('response.done');
    expect(model.prompt(0)).toEqual([{ role: 'user', content: [{ type: 'text', text: 'First' }] }]);
  });

  test('runs alongside at most seven others', async () => {
    const held = gate();
    const answers = Array.from({ length: 9 }, () => ['x', { until: held.opened }]);
    const { connect } = await startHarness({ answers });
    const client = await connect();
    for (let number = 1; number <= 9; number += 1) {
      client.send({
        type: 'response.create',
        event_id: `r${number}`,
        response: { conversation: 'none', output_modalities: ['text'] },
      });
    }
    expect((await client.next('error'))['error']).toMatchObject({
      code: 'too_many_responses',
      event_id: 'r9',
    });
    held.open();
  });
});

function itemOf(text: string) {
  return { type: 'message', role: 'user', content: [{ type: 'input_text', text }] };
}
