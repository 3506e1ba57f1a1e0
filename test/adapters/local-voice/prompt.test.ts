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

/** Role and, of tool messages, the answer. */
async function outline(items: readonly Remembered[]): Promise<string[]> {
  const messages = await toModelMessages(items);
  for (const message of messages) modelMessageSchema.parse(message);
  return messages.map((message) => {
    if (typeof message.content === 'string') return `${message.role}: ${message.content}`;
    const [part] = message.content;
    if (part?.type === 'tool-call') return `call ${part.toolCallId}`;
    if (part?.type === 'tool-result' && part.output.type === 'text') {
      return `answer ${part.toolCallId}: ${part.output.value.split('.')[0]}`;
    }
    return `${message.role}: ?`;
  });
}

describe('toModelMessages', () => {
  test('an answer stands right after its call', async () => {
    expect(
      await outline([
        says('user', 'Go'),
        call('c1'),
        call('c2'),
        answer('c2', 'B'),
        answer('c1', 'A'),
      ]),
    ).toEqual(['user: Go', 'call c1', 'answer c1: A', 'call c2', 'answer c2: B']);
  });

  test('a call that is still open is pending, and the conversation goes on', async () => {
    expect(await outline([says('user', 'Go'), call('c1'), says('user', 'And?')])).toEqual([
      'user: Go',
      'call c1',
      'answer c1: Accepted',
      'user: And?',
    ]);
  });

  test('an answer that came later stands where it came', async () => {
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

  test('an answer whose call was deleted is left out; so are empty messages', async () => {
    expect(await outline([says('assistant', ''), answer('c1', 'A'), says('user', 'Hm')])).toEqual([
      'user: Hm',
    ]);
  });

  test('arguments that are not JSON are passed on as text', async () => {
    const broken: Remembered = { kind: 'call', callId: 'c', name: 'f', arguments: '{"a":' };
    const [message] = await toModelMessages([broken]);
    expect(message?.content).toMatchObject([{ input: { text: '{"a":' } }]);
  });

  test('speech that nobody understood is marked', async () => {
    const words = Promise.resolve('');
    const items: Remembered[] = [
      { kind: 'message', role: 'user', parts: [{ type: 'sound', words }] },
    ];
    expect(await outline(items)).toEqual([`user: ${INAUDIBLE}`]);
  });
});
