// The adapters hold a conversation with a third-party fake (`@copilotkit/aimock`). This fake answers with text and has
// no speech.

import { LLMock, type ChatCompletionRequest } from '@copilotkit/aimock';
import { expect, onTestFinished, test } from 'vitest';
import { geminiLive } from '../../../src/adapters/gemini-live/index.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { openaiRealtime } from '../../../src/adapters/openai-realtime/index.ts';
import type { Transport, TransportEvent } from '../../../src/voice/connection/transport.ts';
import { byType, createCollector } from './support/collector.ts';

const configuration = {
  instructions: 'Be brief.',
  tools: [{ name: 'book_ride', description: 'Books a ride.', parameters: { type: 'object' } }],
};

/** The message that the model must answer: the last one, unless it is the note that asks the model to speak. */
const about = (request: ChatCompletionRequest): { role: string; content: unknown } | undefined =>
  request.messages.findLast(({ content }) => !JSON.stringify(content).startsWith('"[note'));

async function mock(): Promise<LLMock> {
  const aimock = new LLMock({ port: 0, host: '127.0.0.1', logLevel: 'silent' });
  const when = (role: string, text: string) => ({
    predicate: (request: ChatCompletionRequest): boolean => {
      const message = about(request);
      return message?.role === role && JSON.stringify(message.content).includes(text);
    },
  });
  aimock.on(when('tool', 'booked'), { content: 'Ada comes.' });
  aimock.on(when('user', 'book me a ride'), {
    toolCalls: [{ id: 'call_ride', name: 'book_ride', arguments: '{"to":"airport"}' }],
  });
  aimock.on(when('user', 'hello'), { content: 'Hello there.' });
  await aimock.start();
  onTestFinished(() => aimock.stop());
  return aimock;
}

function talk(transport: Transport) {
  const connection = transport.connect(configuration, { environment: nodeEnvironment() });
  onTestFinished(() => connection.close());
  const collector = createCollector<TransportEvent>();
  connection.events.subscribe(collector.add);
  const said = (): string[] =>
    collector.events.flatMap((event) =>
      event.type === 'assistant.transcribed' ? [event.text] : [],
    );
  return { connection, next: byType(collector), said };
}

// Contrary to the official types, the fake leaves the name out of one event, so the adapter gets the call from another
// event.
test('openaiRealtime: handles text, a call and its result', async () => {
  const aimock = await mock();
  const url = `${aimock.url}/v1/realtime`;
  const { connection, next, said } = talk(openaiRealtime({ apiKey: 'some-key', url }));
  await next('transport.ready');
  connection.send({ type: 'message.add', itemId: 'one', role: 'user', text: 'hello' });
  connection.send({ type: 'response.request', responseKey: 'first' });
  expect(await next('response.ended')).toMatchObject({ status: 'completed' });
  expect(said()).toContain('Hello there.');

  connection.send({ type: 'message.add', itemId: 'two', role: 'user', text: 'book me a ride' });
  connection.send({ type: 'response.request', responseKey: 'second' });
  const call = await next('tool.called');
  expect(call).toMatchObject({ name: 'book_ride', arguments: '{"to":"airport"}' });
  await next('response.ended');
  connection.send({ type: 'tool.answer', callId: call.callId, output: 'booked' });
  connection.send({ type: 'response.request', responseKey: 'third' });
  expect(await next('response.ended')).toMatchObject({ status: 'completed' });
  expect(said()).toContain('Ada comes.');
  expect(aimock.getRequests()).toHaveLength(3);
});

test('geminiLive: handles text, a call and its result', async () => {
  const { url: baseUrl } = await mock();
  const model = 'gemini-2.5-flash-native-audio';
  const { connection, next, said } = talk(geminiLive({ apiKey: 'some-key', baseUrl, model }));
  await next('transport.ready');
  connection.send({ type: 'message.add', itemId: 'one', role: 'user', text: 'hello' });
  connection.send({ type: 'response.request', responseKey: 'first' });
  expect(await next('response.ended')).toMatchObject({ responseKey: 'first' });

  connection.send({ type: 'message.add', itemId: 'two', role: 'user', text: 'book me a ride' });
  connection.send({ type: 'response.request', responseKey: 'second' });
  const call = await next('tool.called');
  expect(call).toMatchObject({ name: 'book_ride', arguments: '{"to":"airport"}' });
  connection.send({ type: 'tool.answer', callId: call.callId, output: 'booked' });
  connection.send({ type: 'response.request', responseKey: 'third' });
  while (!said().includes('Ada comes.')) await next('assistant.transcribed');
});
