import { describe, expect, test } from 'vitest';
import { encodePcm16Base64 } from '../../../src/voice/audio/pcm16.ts';
import { gate, startHarness, textOnly, userSays } from './support/harness.ts';
import { MS_PER_CHARACTER, tone } from './support/scripted-speech.ts';
import type { WireClient } from './support/wire-client.ts';

function message(id: string, text: string, role = 'user'): Record<string, unknown> {
  const type = role === 'assistant' ? 'output_text' : 'input_text';
  return { id, type: 'message', role, content: [{ type, text }] };
}

/** Adds an item and waits for it. */
async function create(
  client: WireClient,
  item: Record<string, unknown>,
  after?: string,
): Promise<{ previous_item_id: string | null; item: Record<string, unknown> }> {
  client.send({
    type: 'conversation.item.create',
    item,
    ...(after !== undefined && { previous_item_id: after }),
  });
  const added = await client.next('conversation.item.added');
  expect(await client.next('conversation.item.done')).toMatchObject({ item: added['item'] });
  return added as never;
}

describe('creating an item', () => {
  test('inserts each item after the item that it names, in the order in which the model reads them', async () => {
    const { connect, model } = await startHarness({ answers: [['ok']] });
    const client = await connect();
    client.send(textOnly);
    expect(await create(client, message('b', 'B'))).toMatchObject({
      previous_item_id: null,
      item: { id: 'b', status: 'completed' },
    });
    expect((await create(client, message('d', 'D', 'assistant'))).previous_item_id).toBe('b');
    expect((await create(client, message('c', 'C', 'system'), 'b')).previous_item_id).toBe('b');
    expect((await create(client, message('a', 'A'), 'root')).previous_item_id).toBe(null);
    client.send({ type: 'response.create' });
    await client.next('response.done');
    expect(model.prompt(0)).toMatchObject([
      { role: 'user', content: [{ text: 'A' }] },
      { role: 'user', content: [{ text: 'B' }] },
      // Every model reads a note as a user message.
      { role: 'user', content: [{ text: 'C' }] },
      { role: 'assistant', content: [{ text: 'D' }] },
      { role: 'user', content: [{ text: '[The user has said nothing since.]' }] },
    ]);
  });

  test.each([
    ['a taken id', message('a', 'again'), undefined, 'invalid_value'],
    ['an unknown place', message('x', 'x'), 'nowhere', 'invalid_value'],
    ['an id that is too long', message('x'.repeat(33), 'x'), undefined, 'string_above_max_length'],
    [
      'an output without its call',
      { type: 'function_call_output', call_id: 'call_x', output: 'x' },
      undefined,
      'invalid_tool_call_id',
    ],
    ['an unknown field', { ...message('x', 'x'), extra: 1 }, undefined, 'unknown_parameter'],
    ['no role', { type: 'message', content: [] }, undefined, 'missing_required_parameter'],
    [
      'an unknown kind of content',
      { type: 'message', role: 'user', content: [{ type: 'video' }] },
      undefined,
      'invalid_value',
    ],
    ['an MCP item', { type: 'mcp_call', id: 'x' }, undefined, 'invalid_value'],
  ])('refuses %s', async (_name, item, after, code) => {
    const { connect } = await startHarness();
    const client = await connect();
    await create(client, message('a', 'A'));
    client.send({
      type: 'conversation.item.create',
      event_id: 'mine',
      item,
      ...(after !== undefined && { previous_item_id: after }),
    });
    expect((await client.next('error'))['error']).toMatchObject({
      type: 'invalid_request_error',
      code,
      event_id: 'mine',
    });
    expect(client.count('conversation.item.added')).toBe(1);
  });

  test('transcribes audio in a message, and shows a picture to the model', async () => {
    const { connect, model } = await startHarness({
      answers: [['ok']],
      words: { 4000: 'look at this' },
    });
    const client = await connect();
    client.send(textOnly);
    const audio = encodePcm16Base64(tone(4000, 500));
    const added = await create(client, {
      type: 'message',
      role: 'user',
      content: [
        { type: 'input_audio', audio },
        { type: 'input_image', image_url: 'data:image/png;base64,iVBORw0KGgo=' },
      ],
    });
    expect(JSON.stringify(added.item)).not.toContain(audio);
    client.send({ type: 'conversation.item.retrieve', item_id: added.item['id'] });
    const { item } = await client.next('conversation.item.retrieved');
    expect(item.content[0].audio).toBe(audio);
    client.send({ type: 'response.create' });
    await client.next('response.done');
    expect(model.prompt(0)).toMatchObject([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'look at this' },
          { type: 'file', mediaType: 'image/png' },
        ],
      },
    ]);
  });

  test('joins a restored call and its output', async () => {
    const { connect, model } = await startHarness({ answers: [['ok']] });
    const client = await connect();
    client.send(textOnly);
    await create(client, { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{"a":1}' });
    await create(client, { type: 'function_call_output', call_id: 'c1', output: 'done' });
    client.send({ type: 'response.create' });
    await client.next('response.done');
    expect(model.prompt(0)).toMatchObject([
      { role: 'user', content: [{ text: '[The user has not said anything yet.]' }] },
      { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'c1', input: { a: 1 } }] },
      { role: 'tool', content: [{ toolCallId: 'c1', output: { value: 'done' } }] },
    ]);
  });
});

describe('deleting and retrieving an item', () => {
  test('removes a deleted item from the model’s memory', async () => {
    const { connect, model } = await startHarness({ answers: [['ok']] });
    const client = await connect();
    client.send(textOnly);
    await create(client, message('a', 'keep'));
    await create(client, message('b', 'forget'));
    client.send({ type: 'conversation.item.delete', item_id: 'b' });
    expect((await client.next('conversation.item.deleted'))['item_id']).toBe('b');
    client.send({ type: 'response.create' });
    await client.next('response.done');
    expect(model.prompt(0)).toMatchObject([{ content: [{ text: 'keep' }] }]);
  });

  test('retrieves an answer with its audio', async () => {
    const { connect } = await startHarness({ answers: [['Hi.']] });
    const client = await connect();
    client.send({ type: 'response.create' });
    const { response } = await client.next('response.done');
    client.send({ type: 'conversation.item.retrieve', item_id: response.output[0].id });
    const { item } = await client.next('conversation.item.retrieved');
    expect(item).toMatchObject({ role: 'assistant', content: [{ transcript: 'Hi.' }] });
    const bytes = Buffer.from(item.content[0].audio, 'base64').length;
    expect(bytes / 2 / 24).toBe('Hi.'.length * MS_PER_CHARACTER);
  });

  test.each([
    ['delete', 'item_delete_invalid_item_id'],
    ['retrieve', 'item_retrieve_invalid_item_id'],
    ['truncate', 'item_truncate_invalid_item_id'],
  ])('refuses to %s an unknown item', async (verb, code) => {
    const { connect } = await startHarness();
    const client = await connect();
    client.send({
      type: `conversation.item.${verb}`,
      event_id: 'mine',
      item_id: 'nobody',
      ...(verb === 'truncate' && { content_index: 0, audio_end_ms: 0 }),
    });
    const { error } = await client.next('error');
    expect(error).toMatchObject({ code, event_id: 'mine' });
    expect(error.message).toContain("'nobody' does not exist");
  });

  test('does not restore an item that was deleted while it was being spoken', async () => {
    const held = gate();
    const { connect, model } = await startHarness({
      answers: [['Gone', { until: held.opened }], ['ok']],
    });
    const client = await connect();
    client.send(textOnly);
    client.send({ type: 'response.create' });
    const { item } = await client.next('conversation.item.added');
    client.send({ type: 'conversation.item.delete', item_id: item.id });
    await client.next('conversation.item.deleted');
    held.open();
    await client.next('response.done');
    expect(client.count('conversation.item.done')).toBe(0);
    client.send({ type: 'response.create' });
    await client.next('response.done');
    expect(JSON.stringify(model.prompt(1))).not.toContain('Gone');
  });
});

describe('truncating an item', () => {
  const TEXT = 'One two three four five.';
  const LENGTH_MS = TEXT.length * MS_PER_CHARACTER;

  async function spoken() {
    const harness = await startHarness({ answers: [[TEXT], ['ok']] });
    const client = await harness.connect();
    client.send({ type: 'response.create' });
    const { response } = await client.next('response.done');
    const truncate = (audioEndMs: number, contentIndex = 0): void =>
      client.send({
        type: 'conversation.item.truncate',
        event_id: 'cut',
        item_id: response.output[0].id,
        content_index: contentIndex,
        audio_end_ms: audioEndMs,
      });
    return { ...harness, client, truncate, id: response.output[0].id as string };
  }

  test('removes unheard text from the item and from the model’s memory', async () => {
    const { client, truncate, id, model } = await spoken();
    // 'One two three ' is 14 characters long, so it has been heard after 280 ms.
    truncate(14 * MS_PER_CHARACTER);
    expect(await client.next('conversation.item.truncated')).toMatchObject({
      item_id: id,
      content_index: 0,
      audio_end_ms: 280,
    });
    client.send({ type: 'conversation.item.retrieve', item_id: id });
    const { item } = await client.next('conversation.item.retrieved');
    expect(item.content[0].transcript).toBe('One two three ');
    expect(Buffer.from(item.content[0].audio, 'base64').length / 48).toBe(280);
    client.send(textOnly);
    client.send(userSays('And?'));
    client.send({ type: 'response.create' });
    await client.next('response.done');
    expect(model.prompt(1)).toMatchObject([
      { role: 'user', content: [{ text: '[The user has not said anything yet.]' }] },
      { role: 'assistant', content: [{ text: 'One two three' }] },
      { role: 'user' },
    ]);
  });

  test('keeps the whole text if truncated at its end, and none of it if truncated at 0', async () => {
    const { client, truncate, id, model } = await spoken();
    truncate(LENGTH_MS);
    await client.next('conversation.item.truncated');
    client.send({ type: 'conversation.item.retrieve', item_id: id });
    const { item } = await client.next('conversation.item.retrieved');
    expect(item.content[0].transcript).toBe(TEXT);
    truncate(0);
    await client.next('conversation.item.truncated');
    client.send(textOnly);
    client.send(userSays('And?'));
    client.send({ type: 'response.create' });
    await client.next('response.done');
    expect(model.prompt(1)).toMatchObject([{ role: 'user' }]);
  });

  test('refuses to truncate past the end, at another content index, or in a text item', async () => {
    const { client, truncate } = await spoken();
    truncate(LENGTH_MS + 1);
    expect((await client.next('error'))['error']).toMatchObject({
      code: 'invalid_value',
      event_id: 'cut',
      message: `Audio content of ${LENGTH_MS}ms is already shorter than ${LENGTH_MS + 1}ms`,
    });
    truncate(10, 1);
    expect((await client.next('error'))['error']).toMatchObject({ param: 'content_index' });
    client.send({ type: 'conversation.item.create', item: message('a', 'typed') });
    const typed = { item_id: 'a', content_index: 0, audio_end_ms: 10 };
    client.send({ type: 'conversation.item.truncate', ...typed });
    expect((await client.next('error'))['error']).toMatchObject({
      code: 'unsupported_content_type',
    });
    expect(client.count('conversation.item.truncated')).toBe(0);
  });

  test('SPOKEN-WORDS-2: drops a sentence that the model writes after its item was truncated', async () => {
    const held = gate();
    const { connect, model } = await startHarness({
      answers: [['First. ', { until: held.opened }, 'Second.'], ['ok']],
    });
    const client = await connect();
    client.send({ type: 'response.create' });
    const { item_id: id } = await client.next('response.output_audio.delta');
    client.send({
      type: 'conversation.item.truncate',
      item_id: id,
      content_index: 0,
      audio_end_ms: 100,
    });
    await client.next('conversation.item.truncated');
    held.open();
    await client.next('response.done');
    client.send(textOnly);
    client.send(userSays('And?'));
    client.send({ type: 'response.create' });
    await client.next('response.done');
    expect(JSON.stringify(model.prompt(1))).not.toContain('Second');
  });
});
