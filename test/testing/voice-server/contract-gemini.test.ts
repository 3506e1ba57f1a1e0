// Messages that the Gemini fake refuses by closing with 1007, and how its models differ.

import { describe, expect, test } from 'vitest';
import { silence } from './support/listening.ts';
import { firstFrame, stage, type Loose, type RawClient } from './support/raw-client.ts';

const WIRE = 'gemini-live';

function answerTo(client: RawClient, id: string, rest: Loose = {}): void {
  const response = { id, name: 'book_ride', response: { output: 'booked' }, ...rest };
  client.send({ toolResponse: { functionResponses: [response] } });
}

/** A setup for a different model. */
function setupFor(model: string, declaration: Loose = {}): Loose {
  const { setup } = firstFrame(WIRE);
  return {
    setup: {
      ...setup,
      model: `models/${model}`,
      tools: [{ functionDeclarations: [{ name: 'book_ride', ...declaration }] }],
    },
  };
}

test('requires the setup as the first message', async () => {
  const { dial, pass } = stage();
  const client = dial(WIRE);
  client.send({ realtimeInput: { text: 'Hello.' } });
  await pass();
  expect(client.closed).toMatchObject({ code: 1007, reason: expect.stringContaining('setup') });
});

test.each<[string, Loose | string]>([
  ['a second setup', firstFrame(WIRE)],
  [
    'a result that is text',
    { toolResponse: { functionResponses: [{ id: '1', name: 'x', response: 'booked' }] } },
  ],
  [
    'a result that is a list',
    { toolResponse: { functionResponses: [{ id: '1', name: 'x', response: ['booked'] }] } },
  ],
  ['no result', { toolResponse: { functionResponses: [{ id: '1', name: 'x', response: null }] } }],
  ['an unknown message', { sessionUpdate: {} }],
  ['an unknown field', { clientContent: { turns: [], done: true } }],
  ['two messages in one', { clientContent: {}, toolResponse: { functionResponses: [] } }],
  ['sound that is no PCM', { realtimeInput: { audio: { mimeType: 'audio/mp3', data: '' } } }],
  ["activity that is not the client's to tell", { realtimeInput: { activityStart: {} } }],
  ['a text that is not JSON', 'hello'],
])('%s ends the connection', async (_, frame) => {
  const { call, pass } = stage();
  const { client, model } = await call(WIRE);
  client.send(frame);
  await pass();
  expect(client.closed?.code).toBe(1007);
  expect(await model.closed).toBe(1007);
});

test('GEMINI-MODEL-TURNS-1: ends a turn when its audio would end, or immediately if interrupted', async () => {
  const { call, pass } = stage({ speed: 10 });
  const { client, model } = await call(WIRE);
  model.answers({ say: 'A story.', durationMs: 2_000 });
  await pass(210);
  const contents = (): string[] =>
    client.events.flatMap(({ serverContent }) => Object.keys((serverContent ?? {}) as object));
  expect(contents()).toContain('generationComplete');
  await pass(1_700);
  expect(contents()).not.toContain('turnComplete');
  await pass(100);
  expect(contents()).toContain('turnComplete');

  model.answers({ say: 'Another.', durationMs: 2_000 });
  await pass(100);
  client.events.length = 0;
  model.user.begins();
  await pass();
  expect(contents()).toEqual(['interrupted', 'turnComplete', 'interactionStatus']);
  await pass(5_000);
  expect(contents()).toHaveLength(3);
});

describe('GEMINI-MODEL-TURNS-2 GEMINI-ENGINE-3: a call that blocks', () => {
  test('keeps the model silent until the call is answered', async () => {
    const { call, pass } = stage();
    const { client, model } = await call(WIRE, setupFor('gemini-3.1-flash-live'));
    model.willAnswer({ call: 'book_ride' });
    model.user.ends('book me a ride');
    await pass(5_000);
    expect(client.events.filter(({ serverContent }) => serverContent?.turnComplete)).toEqual([]);
    answerTo(client, model.openCalls[0]?.callId ?? '', { scheduling: 'SILENT' });
    await pass(5_000);
    expect(model.replies.at(-1)).toMatchObject({
      cause: { type: 'result', name: 'book_ride' },
      status: 'completed',
    });
  });

  test('cancels the call when the user interrupts and ignores its answer', async () => {
    const { call, pass } = stage();
    const { client, model } = await call(WIRE, setupFor('gemini-2.5-flash-native-audio'));
    model.willAnswer({ call: 'book_ride', callId: 'late' });
    model.user.ends('book me a ride');
    await pass(1_000);
    model.user.ends('never mind');
    await pass(5_000);
    expect(client.last('toolCallCancellation')).toEqual({
      toolCallCancellation: { ids: ['late'] },
    });
    answerTo(client, 'late');
    await pass(5_000);
    expect(model.replies.map(({ cause }) => cause.type)).toEqual(['utterance', 'utterance']);
  });
});

describe('GEMINI-ENGINE-4: a call that does not block', () => {
  test.each<[string, Loose, string[]]>([
    ['WHEN_IDLE', {}, ['A story.', 'The result is: {"output":"booked"}']],
    ['SILENT', { scheduling: 'SILENT' }, ['A story.']],
    ['SILENT inside of the response', { response: { scheduling: 'SILENT' } }, ['A story.']],
    ['INTERRUPT', { scheduling: 'INTERRUPT' }, ['A ', 'The result is: {"output":"booked"}']],
  ])('%s', async (_, rest, said) => {
    const { call, pass } = stage();
    const { client, model } = await call(WIRE);
    model.answers({ call: 'book_ride', callId: 'one' }, { say: 'A story.', durationMs: 1_000 });
    await pass(20);
    answerTo(client, 'one', rest);
    await pass(20_000);
    expect(model.replies.map(({ text }) => text)).toEqual(said);
    expect(model.openCalls).toEqual([]);
  });

  test('reads but does not answer content that arrives while the model is generating', async () => {
    const { call, pass } = stage();
    const { client, model } = await call(WIRE);
    model.answers({ say: 'A story.', durationMs: 1_000 });
    await pass(50);
    const turns = [{ role: 'user', parts: [{ text: 'News!' }] }];
    client.send({ clientContent: { turns, turnComplete: true } });
    await pass(5_000);
    expect(model.replies).toHaveLength(1);
    expect(model.items).toContainEqual(expect.objectContaining({ text: 'News!' }));
    client.send({ clientContent: { turns, turnComplete: true } });
    await pass(5_000);
    expect(model.replies).toHaveLength(2);
  });
});

test.each<[string, string, Loose]>([
  ['3.1 does not do without blocking', 'gemini-3.1-flash-live', { behavior: 'NON_BLOCKING' }],
  [
    'extended thinking does not block',
    'gemini-3.8-live-extended-thinking',
    { behavior: 'BLOCKING' },
  ],
  ['extended thinking must be told how much', 'gemini-3.8-live-extended-thinking', {}],
  ['one schema of parameters', 'gemini-3.8-live', { parameters: {}, parametersJsonSchema: {} }],
])('%s', async (_, model, declaration) => {
  const { call } = stage();
  const { client } = await call(WIRE, setupFor(model, declaration));
  expect(client.closed?.code).toBe(1007);
});

test('3.1 accepts content only as initial history and does not answer it', async () => {
  const { call, pass } = stage();
  const first = setupFor('gemini-3.1-flash-live');
  first['setup'].historyConfig = { initialHistoryInClientContent: true };
  const { client, model } = await call(WIRE, first);
  const turns = [{ role: 'model', parts: [{ text: 'Hello.' }] }];
  client.send({ clientContent: { turns, turnComplete: true } });
  await pass(1_000);
  expect(model.items).toHaveLength(1);
  expect(model.replies).toEqual([]);
  client.send({ clientContent: { turns, turnComplete: true } });
  await pass();
  expect(client.closed?.code).toBe(1007);
});

test('shortens the reason to fit a close frame and does not blame the client for server errors', async () => {
  const { call, pass } = stage({
    respond: () => {
      throw new Error('No idea');
    },
  });
  const unknown = await call(WIRE);
  unknown.client.send({ clientContent: { ['x'.repeat(300)]: 1 } });
  await pass();
  expect(unknown.client.closed?.reason).toHaveLength(123);
  const failing = await call(WIRE);
  failing.client.send({ realtimeInput: { text: 'Hello.' } });
  await pass();
  expect(failing.client.closed).toEqual({ code: 1011, reason: 'No idea' });
});

test('ends the turn with the right reason if a call has malformed arguments', async () => {
  const { call, pass } = stage();
  const { client, model } = await call(WIRE);
  model.answers({ call: 'book_ride', arguments: 'airport' });
  await pass();
  expect(client.count('toolCall')).toBe(0);
  const end = client.events.find(({ serverContent }) => serverContent?.turnComplete);
  expect(end?.['serverContent'].turnCompleteReason).toBe('MALFORMED_FUNCTION_CALL');
});

test('lets a client without activity detection report activity itself', async () => {
  const { call, pass } = stage();
  const first = firstFrame(WIRE);
  first['setup'].realtimeInputConfig = { automaticActivityDetection: { disabled: true } };
  const { client, model } = await call(WIRE, first);
  client.send({ realtimeInput: { activityStart: {} } });
  const data = silence(100, 16_000);
  client.send({ realtimeInput: { audio: { mimeType: 'audio/pcm;rate=16000', data } } });
  model.user.ends('hello there');
  await pass(1_000);
  expect(model.replies).toEqual([]);
  client.send({ realtimeInput: { activityEnd: {} } });
  await pass(1_000);
  expect(model.replies).toMatchObject([{ cause: { type: 'utterance', text: 'hello there' } }]);
  expect(model.heardMs).toBe(100);
});

test('resumes from a handle, but refuses a handle that the server has dropped', async () => {
  const { call, pass } = stage();
  const { client, model } = await call(WIRE);
  model.user.ends('I like tea');
  await pass(5_000);
  const handle = client.last('sessionResumptionUpdate')?.['sessionResumptionUpdate'].newHandle;
  const again = firstFrame(WIRE);
  again['setup'].sessionResumption = { handle };
  const resumed = await call(WIRE, again);
  expect(resumed.model.items).toHaveLength(2);
  resumed.model.faults.forgetHandles();
  const { client: third } = await call(WIRE, again);
  expect(third.closed?.code).toBe(1007);
});
