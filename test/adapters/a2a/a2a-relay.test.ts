// How the A2A relay interprets a task: lost connections, agents without events, results that arrived while nobody was
// reading, and where headers are sent (REMOTE-AGENT-1, A2A-SESSION-1 to 3).

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { a2aRelay, type A2aRelayOptions } from '../../../src/adapters/a2a/index.ts';
import { askingOf, contentOf, isWords } from '../../../src/adapters/a2a/mapping.ts';
import { readSessionId, writeSessionId } from '../../../src/adapters/relays/remote-agent.ts';
import type { RelayEvent } from '../../../src/entries/subagents.ts';
import { actsPrompt, simulatedEnvironment, type RelayAct } from '../../../src/testing/index.ts';
import { agentServer, type AgentServerOptions } from './support/agent-server.ts';

async function served(options?: AgentServerOptions) {
  const server = await agentServer(options);
  onTestFinished(() => server.close());
  return server;
}

function stage(url: string, options: Partial<A2aRelayOptions> = {}) {
  const environment = simulatedEnvironment();
  const events: RelayEvent[] = [];
  const errors: unknown[] = [];
  const start = (resume?: string) =>
    a2aRelay({ url, ...options }).start({
      subagentId: 'sub_1',
      ...(resume === undefined ? {} : { resume }),
      signal: new AbortController().signal,
      scheduler: environment.scheduler,
      ids: environment.ids,
      receive: (event) => {
        events.push(event);
      },
      report: (error) => errors.push(error),
    });
  /** Waits for an event, and lets `passing` ms pass before each check. */
  const next = async <Type extends RelayEvent['type']>(type: Type, passing = 0) => {
    for (let turn = 0; turn < 100_000; turn += 1) {
      const found = events.find((event) => event.type === type);
      if (found) return found as Extract<RelayEvent, { type: Type }>;
      if (passing > 0) await environment.advance(passing);
      else await environment.settle();
    }
    throw new Error(`no ${type} among ${JSON.stringify(events)} ${String(errors)}`);
  };
  const words = (): string =>
    events.flatMap((event) => (event.type === 'words' ? [event.text] : [])).join('');
  return { start, next, words, events, errors, environment };
}

const prompt = (...acts: readonly RelayAct[]) => ({ key: 'k', text: actsPrompt(...acts) });

describe('a session with a hosted agent', () => {
  test('learns its full id once the agent has created a task', async () => {
    const server = await served();
    const { start, next } = stage(server.url);
    const session = await start();
    const { conversation, taskId } = readSessionId('a2a', session.id) ?? {};
    expect(taskId).toBeNull();
    session.prompt(prompt({ question: 'When?' }));
    const { id } = await next('session_id');
    expect(readSessionId('a2a', id)).toEqual({ conversation, taskId: expect.any(String) });
    expect(session.id).toBe(id);
    await session.release('ended');
  });

  test('finds its task by context when it is resumed without a task id', async () => {
    const server = await served();
    const first = stage(server.url);
    const session = await first.start();
    const before = session.id;
    session.prompt(prompt({ question: 'When?' }));
    const { requestId } = await first.next('question');
    await session.release('suspended');
    const second = stage(server.url);
    const again = await second.start(before);
    expect(again.isRunning).toBe(true);
    expect(await second.next('question')).toMatchObject({ requestId, text: 'When?' });
    expect(await second.next('session_id')).toEqual({ type: 'session_id', id: again.id });
    await again.release('ended');
  });

  test('continues after its stream is interrupted, without repeating text', async () => {
    const server = await served();
    const { start, next, words, errors, environment } = stage(server.url);
    const session = await start();
    session.prompt(prompt({ say: 'One. ' }, { untilCancelled: true }));
    await next('words');
    server.cut();
    while (errors.length === 0 || server.streams() === 0) await environment.settle();
    expect(errors).toMatchObject([{ code: 'INVALID_EVENT' }]);
    session.interrupt();
    expect(await next('turn_ended')).toMatchObject({ reason: 'cancelled' });
    expect(words()).toBe('One. ');
    expect(server.told).toHaveLength(1);
    await session.release('ended');
  });

  test('polls an agent that does not send events', async () => {
    const server = await served({ streams: false });
    const { start, next, words } = stage(server.url);
    const session = await start();
    session.prompt(prompt({ say: 'One. ' }, { question: 'When?' }, { say: 'Two.' }));
    const { requestId } = await next('question', 2_000);
    session.answer(requestId, { type: 'answered', text: 'now' });
    expect(await next('turn_ended', 2_000)).toMatchObject({ reason: 'completed' });
    expect(words()).toBe('One. answer: now. Two.');
    await session.release('ended');
  });

  test('reports the result of a task that ended before it was resumed', async () => {
    const server = await served();
    const first = stage(server.url);
    const session = await first.start();
    session.prompt(prompt({ question: 'When?' }, { say: 'Booked.' }));
    const { requestId } = await first.next('question');
    const { id } = session;
    session.answer(requestId, { type: 'answered', text: 'now' });
    await first.next('turn_ended');
    await session.release('ended');
    const second = stage(server.url);
    const again = await second.start(id);
    expect(again.isRunning).toBe(true);
    expect(await second.next('turn_ended')).toMatchObject({ reason: 'completed' });
    expect(second.words()).toContain('Booked.');
    // A session that is resumed under its last id after it has ended has no news.
    const third = await stage(server.url).start(session.id);
    expect(third.isRunning).toBe(false);
  });

  test('refuses to resume a task that the agent does not know', async () => {
    const server = await served();
    const { start } = stage(server.url);
    await expect(start(writeSessionId('a2a', 'c', 'gone'))).rejects.toMatchObject({
      code: 'RELAY_FAILED',
      message: expect.stringContaining('gone') as string,
    });
  });
});

describe('requests', () => {
  test('sends headers only to their origin, contacts only allowed origins, and does not follow redirects', async () => {
    const agent = await served();
    const seen: unknown[] = [];
    const other = createServer((request, response) => {
      seen.push(request.headers['authorization']);
      response.writeHead(307, { location: agent.url }).end();
    });
    other.listen(0, '127.0.0.1');
    await once(other, 'listening');
    onTestFinished(() => void other.close());
    const { port } = other.address() as AddressInfo;

    const { start, next } = stage(agent.url, { headers: () => ({ authorization: 'Bearer k' }) });
    const session = await start();
    session.prompt(prompt({ say: 'Done.' }));
    await next('turn_ended');
    expect(agent.headers.map(({ authorization }) => authorization)).toEqual(
      agent.headers.map(() => 'Bearer k'),
    );
    await session.release('ended');

    // A card that names another origin.
    const elsewhereUrl = `http://127.0.0.1:${port}`;
    const options = (origins: readonly string[]): Partial<A2aRelayOptions> => ({
      origins,
      headers: { authorization: 'Bearer k' },
      fetch: async (input, init) => {
        const response = await fetch(input, init);
        if (init?.method === 'POST') return response;
        const card = (await response.text()).replaceAll(agent.url, `http://127.0.0.1:${port}`);
        return new Response(card, { headers: { 'content-type': 'application/json' } });
      },
    });
    for (const [origins, requests] of [
      [[], []],
      [[elsewhereUrl], [undefined]],
    ] as const) {
      const elsewhere = stage(agent.url, options(origins));
      const led = await elsewhere.start();
      led.prompt(prompt({ say: 'Done.' }));
      await elsewhere.next('closed');
      expect(seen).toEqual(requests);
      await led.release('ended');
    }
  });

  test.each<[unknown, string]>([
    [{}, 'url'],
    [{ url: 'file:///etc/passwd' }, 'url'],
    [{ url: 'http://127.0.0.1', graceMs: 0 }, 'graceMs'],
    [{ url: 'http://127.0.0.1', token: 'k' }, 'token'],
    [{ url: 'http://127.0.0.1', origins: ['file:///'] }, 'origins'],
  ])('refuses an invalid option by name: %j', (options, named) => {
    expect(() => a2aRelay(options as A2aRelayOptions)).toThrow(
      expect.objectContaining({
        code: 'INVALID_OPTION',
        message: expect.stringContaining(named) as string,
      }) as Error,
    );
  });
});

describe('the mapping of requests', () => {
  const part = (content: unknown, more: object = {}) =>
    ({ content, metadata: undefined, filename: '', mediaType: '', ...more }) as never;

  test('reads a request with its data, and always assigns it the same id', () => {
    const message = { messageId: 'm1', parts: [part({ $case: 'text', value: 'Pay?' })] };
    const status = { state: 6, timestamp: undefined, message } as never;
    expect(askingOf('question', 't1', status)).toEqual({
      type: 'question',
      requestId: 't1:m1',
      text: 'Pay?',
    });
    expect(askingOf('permission', 't1', status)).toMatchObject({ title: 'Pay?', input: null });
    expect(askingOf('question', 't1', {} as never)).toMatchObject({ text: 'It needs your input.' });
  });

  test('separates text parts from files', () => {
    const words = part({ $case: 'text', value: 'Hi' }, { mediaType: 'text/plain' });
    const file = part({ $case: 'text', value: '# Hi' }, { filename: 'a.md' });
    expect([isWords(words), isWords(file)]).toEqual([true, false]);
    expect(contentOf(part({ $case: 'data', value: { a: 1 } }))).toEqual({
      mediaType: 'application/json',
      content: '{"a":1}',
    });
    expect(contentOf(part({ $case: 'raw', value: Buffer.from('a') })).content).toBe(
      'data:application/octet-stream;base64,YQ==',
    );
    expect(contentOf(part({ $case: 'url', value: 'https://a' })).mediaType).toBe('text/uri-list');
  });

  test('parses only ids that it generated', () => {
    const id = writeSessionId('a2a', 'c/1', 't:2');
    expect(readSessionId('a2a', id)).toEqual({ conversation: 'c/1', taskId: 't:2' });
    for (const other of ['', 'a2a:', 'a2a:%', 'a2a:a/b/c', 'x'])
      expect(readSessionId('a2a', other)).toBeNull();
  });
});
