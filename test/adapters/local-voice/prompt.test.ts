import { modelMessageSchema } from 'ai';
import { describe, expect, test } from 'vitest';
import type { Remembered } from '../../../src/adapters/local-voice/conversation.ts';
import { INAUDIBLE, toModelMessages } from '../../../src/adapters/local-voice/language-model.ts';

function says(role: 'user' | 'assistant' | 'system', text: string): Remembered {
  return { kind: 'message', role, parts: [{ type: 'text', text }] };
}
const call = (callId: string): Remembered => ({
  kind: 'call',
  callId,
  name: 'report',
  arguments: '{"q":4}',
});
const answer = (callId: string, output: string): Remembered => ({ kind: 'answer', callId, output });

/** Returns the roles, and the content of tool messages. */
async function outline(items: readonly Remembered[]): Promise<string[]> {
  const messages = await toModelMessages(items);
  for (const message of messages) modelMessageSchema.parse(message);
  return messages.map((message) => {
    if (typeof message.content === 'string') return `${message.role}: ${message.content}`;
    const parts = message.content.map((part) => {
      if (part.type === 'tool-call') return `call ${part.toolCallId}`;
      if (part.type === 'tool-result' && part.output.type === 'text')
        return `answer ${part.toolCallId}: ${part.output.value.split('.')[0]}`;
      return 'text' in part ? `${message.role}: ${part.text}` : `${message.role}: ?`;
    });
    return parts.join(', ');
  });
}

describe('toModelMessages', () => {
  test('puts an answer directly after its call', async () => {
    expect(
      await outline([
        says('user', 'Go'),
        call('c1'),
        call('c2'),
        answer('c2', 'B'),
        answer('c1', 'A'),
      ]),
    ).toEqual(['user: Go', 'call c1, call c2', 'answer c1: A, answer c2: B']);
  });

  test('answers an open call with a result that says it was accepted', async () => {
    expect(await outline([says('user', 'Go'), call('c1'), says('user', 'And?')])).toEqual([
      'user: Go',
      'call c1',
      'answer c1: Accepted',
      'user: And?',
    ]);
  });

  test('adds a late answer as a message at the point where it arrived', async () => {
    const items = [says('user', 'Go'), call('c1'), says('user', 'And?'), answer('c1', 'A')];
    expect(await outline(items)).toEqual([
      'user: Go',
      'call c1',
      'answer c1: Accepted',
      'user: And?',
      'call c1_late',
      'answer c1_late: A',
    ]);
  });

  test("merges the assistant's text and calls into one message, and repeats a call with a late answer", async () => {
    const items = [
      says('user', 'Go'),
      says('assistant', 'I look.'),
      call('c1'),
      says('assistant', 'It runs.'),
      answer('c1', 'A'),
    ];
    expect(await outline(items)).toEqual([
      'user: Go',
      'assistant: I look., call c1',
      'answer c1: Accepted',
      'assistant: It runs., call c1_late',
      'answer c1_late: A',
    ]);
  });

  test('assigns system messages the role that the model accepts', async () => {
    const items = [says('user', 'Go'), says('system', 'A note'), says('user', 'And?')];
    expect((await toModelMessages(items)).map(({ role }) => role)).toEqual([
      'user',
      'user',
      'user',
    ]);
    expect((await toModelMessages(items, 'system')).map(({ role }) => role)).toEqual([
      'user',
      'system',
      'user',
    ]);
  });

  test('starts and ends with a user message', async () => {
    expect(await outline([says('assistant', 'Gone.')])).toEqual([
      'user: [The user has not said anything yet.]',
      'assistant: Gone.',
      'user: [The user has said nothing since.]',
    ]);
  });

  test("repeats a call's reasoning and signature with a late answer, except for OpenAI", async () => {
    const providerOptions = (provider: string) => ({ [provider]: { signature: 's' } });
    const made = (provider: string): Remembered => ({
      kind: 'call',
      callId: 'c1',
      name: 'report',
      arguments: '{}',
      echo: {
        reasoning: [{ type: 'reasoning', text: 'Hm', providerOptions: providerOptions(provider) }],
        providerOptions: providerOptions(provider),
      },
    });
    for (const provider of ['anthropic', 'openai']) {
      const parts = (
        await toModelMessages([
          says('assistant', 'Well.'),
          made(provider),
          says('user', 'And?'),
          answer('c1', 'A'),
        ])
      ).flatMap(({ role, content }) => (role === 'assistant' ? [content] : []));
      const reasoning = { type: 'reasoning', providerOptions: providerOptions(provider) };
      const signed = { type: 'tool-call', providerOptions: providerOptions(provider) };
      expect(parts).toMatchObject([
        [reasoning, { type: 'text' }, signed],
        provider === 'openai' ? [{ type: 'tool-call' }] : [reasoning, signed],
      ]);
    }
  });

  test('omits empty messages, and answers to deleted calls', async () => {
    expect(await outline([says('assistant', ' '), answer('c1', 'A'), says('user', 'Hm')])).toEqual([
      'user: Hm',
    ]);
  });

  test('converts arguments that are not JSON to text', async () => {
    const broken: Remembered = { kind: 'call', callId: 'c', name: 'f', arguments: '{"a":' };
    const [, message] = await toModelMessages([broken]);
    expect(message?.content).toMatchObject([{ input: { text: '{"a":' } }]);
  });

  test('marks speech in which no words were recognised', async () => {
    const words = Promise.resolve('');
    const items: Remembered[] = [
      { kind: 'message', role: 'user', parts: [{ type: 'sound', words }] },
    ];
    expect(await outline(items)).toEqual([`user: ${INAUDIBLE}`]);
  });
});
