// A malicious or broken ACP agent without the SDK. Its argument selects what it does in its turn.

import { spawn } from 'node:child_process';
import { closeSync, writeSync } from 'node:fs';
import process from 'node:process';
import { createInterface } from 'node:readline';

type Id = number | string | undefined;

const sessionId = 's';
let prompt: Id;

const write = (message: object): void => {
  const bytes = Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  // Writes everything, even if the pipe is full.
  for (let at = 0; at < bytes.length;)
    try {
      at += writeSync(1, bytes, at);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
};
const update = (given: object): void =>
  write({ method: 'session/update', params: { sessionId, update: given } });
const say = (text: string): void =>
  update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
const end = (): void => write({ id: prompt, result: { stopReason: 'end_turn' } });
/** Keeps the process alive, whatever happens to its pipes. */
const linger = (): void => void setInterval(() => {}, 60_000);
const permission = (rawInput: unknown, toolCallId = 't'): void =>
  write({
    id: `ask-${toolCallId}`,
    method: 'session/request_permission',
    params: {
      sessionId,
      toolCall: { toolCallId, title: 'Tidy up', kind: 'edit', rawInput },
      options: [
        { optionId: 'once', name: 'Once', kind: 'allow_once' },
        { optionId: 'no', name: 'No', kind: 'reject_once' },
      ],
    },
  });
const form = (properties: object): void =>
  write({
    id: 'ask',
    method: 'elicitation/create',
    params: {
      sessionId,
      mode: 'form',
      message: 'Which one?',
      requestedSchema: { type: 'object', properties },
    },
  });
const nested = (levels: number): unknown =>
  JSON.parse(`${'['.repeat(levels)}${']'.repeat(levels)}`);

const turns: Readonly<Record<string, () => void>> = {
  'closes its output and lives on': () => {
    linger();
    closeSync(1);
  },
  'writes a line without an end': () => {
    linger();
    process.stdout.on('error', () => {});
    const more = (): void => void process.stdout.write('x'.repeat(1024 * 1024), more);
    more();
  },
  'ends as soon as it has answered': () => {
    say('word '.repeat(10_000));
    end();
    process.exit(0);
  },
  'answers its prompt with null': () => write({ id: prompt, result: null }),
  'answers its prompt with a word': () => write({ id: prompt, result: 'done' }),
  'ends for a reason that is none': () =>
    write({ id: prompt, result: { stopReason: 'constructor', usage: 'much' } }),
  'answers its prompt twice': () => {
    say('Once.');
    end();
    say('Twice.');
    end();
  },
  'asks with more choices than buttons': () =>
    form({
      answer: {
        type: 'string',
        oneOf: Array.from({ length: 40 }, (_, at) => ({ const: `c${at}`, title: `City ${at}` })),
      },
    }),
  'asks for a field that every object has': () =>
    form({ constructor: { type: 'array', items: { type: 'string', enum: ['a'] } } }),
  'asks for consent': () => form({ sure: { type: 'boolean' } }),
  'hides its arguments': () => permission(nested(300)),
  'asks for permission with a book': () => permission({ text: 'x'.repeat(4 * 1024 * 1024) }),
  'asks for a tool without a name': () => permission({}, ''),
  'has books for arguments': () => {
    for (let at = 0; at < 20; at += 1)
      update({
        sessionUpdate: 'tool_call',
        toolCallId: `t${at}`,
        title: 'x'.repeat(1024 * 1024),
        status: 'completed',
        rawInput: { text: 'x'.repeat(1024 * 1024) },
      });
    say('Done.');
    end();
  },
  'counts tokens without end': () => {
    update({
      sessionUpdate: 'usage_update',
      used: 1,
      size: 1,
      cost: { amount: 1e308, currency: 'USD' },
    });
    say('Done.');
    write({
      id: prompt,
      result: { stopReason: 'end_turn', usage: { inputTokens: 1.7e308, outputTokens: 1.7e308 } },
    });
  },
  'leaves a child behind': () => {
    spawn(process.execPath, ['-e', 'setInterval(() => {}, 60_000)'], { stdio: 'ignore' });
    say('Done.');
    end();
  },
};

const [, , what = ''] = process.argv;

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, result, error } = JSON.parse(line) as {
    readonly id?: Id;
    readonly method?: string;
    readonly result?: unknown;
    readonly error?: unknown;
  };
  if (method === 'initialize')
    write({
      id,
      result: what === 'is null from the start' ? null : { protocolVersion: 1 },
    });
  else if (method === 'session/new')
    write({ id, result: { sessionId: what === 'numbers its session' ? 42 : sessionId } });
  else if (method === 'session/prompt') {
    prompt = id;
    turns[what]?.();
  } else if (method === undefined) {
    say(JSON.stringify(result ?? error));
    end();
  }
});
