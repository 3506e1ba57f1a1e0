// An ACP v1 agent without the SDK and without a model, small enough to run forty times. It starts a child process,
// requests permission, and reports the answer.

import { spawn } from 'node:child_process';
import process from 'node:process';
import { createInterface } from 'node:readline';

interface Message {
  readonly id?: number | string;
  readonly method?: string;
  readonly result?: unknown;
}

const send = (message: object): void => {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
};
const sessionId = `small-${process.pid}`;
let prompt: Message['id'];

const answers: Readonly<Record<string, (id: Message['id']) => void>> = {
  initialize: (id) => send({ id, result: { protocolVersion: 1, agentCapabilities: {} } }),
  'session/new': (id) => {
    spawn(process.execPath, ['-e', 'setInterval(() => {}, 60_000)'], { stdio: 'ignore' });
    send({ id, result: { sessionId } });
  },
  'session/prompt': (id) => {
    prompt = id;
    const toolCall = { toolCallId: 't', title: 'Edit', kind: 'edit', rawInput: {} };
    const options = [
      { optionId: 'always', name: 'Always', kind: 'allow_always' },
      { optionId: 'once', name: 'Once', kind: 'allow_once' },
    ];
    send({
      id: 'ask',
      method: 'session/request_permission',
      params: { sessionId, toolCall, options },
    });
  },
};

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, result } = JSON.parse(line) as Message;
  if (method !== undefined) answers[method]?.(id);
  else if (id === 'ask') {
    const content = { type: 'text', text: JSON.stringify(result) };
    const update = { sessionUpdate: 'agent_message_chunk', content };
    send({ method: 'session/update', params: { sessionId, update } });
    const usage = { inputTokens: 30, outputTokens: 4, totalTokens: 34 };
    send({ id: prompt, result: { stopReason: 'end_turn', usage } });
  }
});
