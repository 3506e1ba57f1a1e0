// A server with an OpenAI-compatible model that books rides. The lead agent calls `book_ride`, and the subagent asks a
// question and then repeats the answer. A reminder comes after two seconds. The server counts its calls and can make
// the rider's calls wait.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

interface Said {
  readonly role: string;
  readonly content?: unknown;
}

type Reply = { readonly say: string } | { readonly call: string; readonly input: object };

const OPTIONS = ['economy', 'premium'].map((id) => ({ id, label: id }));
const REMINDER = { action: 'set', words: 'Take the pizza out', inMinutes: 0.03 };
const textOf = (said: Said | undefined): string =>
  typeof said?.content === 'string' ? said.content : JSON.stringify(said?.content ?? '');

function replyTo(isRider: boolean, last: Said | undefined): Reply {
  const text = textOf(last);
  if (isRider)
    return last?.role === 'tool'
      ? { say: `Booked: ${/economy|premium|did not respond/.exec(text)?.[0]}` }
      : { call: 'ask_user', input: { question: 'Which one?', options: OPTIONS } };
  if (text.includes('Booked')) return { say: `Done. ${/Booked: [a-z ]+/.exec(text)?.[0]}` };
  if (last?.role === 'tool') return { say: 'I am on it.' };
  if (text.includes('Remind me')) return { call: 'reminders', input: REMINDER };
  return text.includes('ride')
    ? { call: 'book_ride', input: { to: 'airport' } }
    : { say: `You said: ${text}` };
}

export async function rideModel() {
  const calls: string[] = [];
  let isHeld = false;
  const server = createServer((request, response) => {
    void (async () => {
      let body = '';
      for await (const chunk of request) body += String(chunk);
      const { messages } = JSON.parse(body) as { messages: readonly Said[] };
      const isRider = textOf(messages.find(({ role }) => role === 'system')).includes('book rides');
      const reply = replyTo(isRider, messages.at(-1));
      calls.push(`${isRider ? 'rider' : 'lead'}: ${'call' in reply ? reply.call : reply.say}`);
      if (isRider && isHeld) return;
      const call = 'call' in reply && {
        id: `call_${calls.length}`,
        type: 'function',
        index: 0,
        function: { name: reply.call, arguments: JSON.stringify(reply.input) },
      };
      const delta = {
        role: 'assistant',
        content: 'say' in reply ? reply.say : null,
        ...(call && { tool_calls: [call] }),
      };
      const chunk = (choice: object): string =>
        `data: ${JSON.stringify({ id: 'x', created: 1, model: 'fake', object: 'chat.completion.chunk', choices: [{ index: 0, ...choice }] })}\n\n`;
      const reason = call ? 'tool_calls' : 'stop';
      if ((JSON.parse(body) as { stream?: boolean }).stream !== true) {
        response.setHeader('content-type', 'application/json');
        response.end(
          JSON.stringify({
            id: 'x',
            created: 1,
            model: 'fake',
            object: 'chat.completion',
            choices: [{ index: 0, message: delta, finish_reason: reason }],
          }),
        );
        return;
      }
      response.setHeader('content-type', 'text/event-stream');
      response.write(chunk({ delta, finish_reason: null }));
      response.end(`${chunk({ delta: {}, finish_reason: reason })}data: [DONE]\n\n`);
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    calls,
    /** While true, the rider's calls get no answer. */
    hold(isSo: boolean): void {
      isHeld = isSo;
    },
    close(): void {
      server.closeAllConnections();
      server.close();
    },
  };
}
