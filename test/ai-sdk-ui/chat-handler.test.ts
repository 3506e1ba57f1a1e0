// A session in the official `useChat` with its standard transport: `chatHandler` behind `DefaultChatTransport`.

import { Chat } from '@ai-sdk/react';
import { DefaultChatTransport } from 'ai';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  chatHandler,
  type ChatHandlerOptions,
  type SessionMessage,
} from '../../src/ai-sdk-ui/index.ts';
import { createRuntime, memoryJournal, TextSession } from '../../src/index.ts';
import { createSessionPool } from '../../src/entries/journal.ts';
import { scriptedModel, simulatedEnvironment } from '../../src/testing/index.ts';
import { calls, say, simpleTool, steps } from '../support/subagent-runs.ts';
import { rideSession } from '../serve/support/served.ts';

const URL_OF_CHAT = 'http://app.example/api/chat';

function closing(session: TextSession): TextSession {
  onTestFinished(() => session.close());
  return session;
}

function handlerOf(session: TextSession, more: Partial<ChatHandlerOptions> = {}) {
  return chatHandler({ authorize: () => ({ session, user: 'ann' }), ...more });
}

function talkTo(handle: (request: Request) => Promise<Response>, { isHeld = true } = {}) {
  const chat: Chat<SessionMessage> = new Chat<SessionMessage>({
    // Messages that do not answer a request arrive through a held request.
    onFinish: ({ isAbort }) => void (isAbort || !isHeld || chat.resumeStream()),
    transport: new DefaultChatTransport<SessionMessage>({
      api: URL_OF_CHAT,
      fetch: (url, init) => handle(new Request(new URL(url, URL_OF_CHAT), init)),
    }),
  });
  onTestFinished(() => chat.dispose());
  const until = (isWanted: (messages: readonly SessionMessage[]) => boolean) =>
    new Promise<readonly SessionMessage[]>((resolve) => {
      const look = (): void => {
        if (!isWanted(chat.messages)) return;
        stop();
        resolve(chat.messages);
      };
      const stop = chat['~registerMessagesCallback'](look);
      look();
    });
  return { chat, until };
}

const questionsOf = (messages: readonly SessionMessage[]) =>
  messages.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === 'data-question' ? [part.data] : [])),
  );
const wordsOf = (messages: readonly SessionMessage[]) =>
  messages.map(({ parts }) =>
    parts.map((part) => (part.type === 'text' ? part.text : '')).join(''),
  );

const post = (body: unknown, headers: Record<string, string> = {}) =>
  new Request(URL_OF_CHAT, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
const words = (text: string, id = 'c1') => ({
  id,
  trigger: 'submit-message',
  messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text }] }],
});

test('sends a reply, a task with its question, an answer by button, and a late result', async () => {
  const session = closing(rideSession());
  const { chat, until } = talkTo(handlerOf(session));
  await chat.sendMessage({ text: 'use book_ride' });
  expect(chat.error).toBeUndefined();
  expect(wordsOf(chat.messages).at(-1)).toContain('Tools said');
  const open = await until((messages) =>
    questionsOf(messages).some(({ state }) => state === 'open'),
  );
  const question = questionsOf(open).at(-1);
  await chat.sendMessage(
    { text: 'Premium' },
    { body: { answer: { requestId: question?.requestId, optionId: 'premium' } } },
  );
  expect(chat.error).toBeUndefined();
  const told = await until((messages) => wordsOf(messages).some((text) => text.includes('Told')));
  expect(questionsOf(told).at(-1)).toMatchObject({ receipt: { accepted: true, by: 'ann' } });
  expect(new Set(told.map(({ id }) => id)).size).toBe(told.length);
  expect(session.store.getSnapshot().context.questions[0]).toMatchObject({
    state: 'answered',
    answer: 'Premium',
  });
});

test.each([
  ['typed words', undefined],
  ['words with the answer beside them', { text: 'Premium' }],
  ['a button', { optionId: 'premium' }],
])(
  'CHAT-FEED-4: sends an answer by %s to all chats except the one that gave it',
  async (_how, answer) => {
    const session = closing(rideSession());
    const handle = handlerOf(session);
    const { chat, until } = talkTo(handle);
    const other = talkTo(handle);
    await chat.sendMessage({ text: 'use book_ride' });
    const open = await until((messages) =>
      questionsOf(messages).some(({ state }) => state === 'open'),
    );
    const requestId = questionsOf(open).at(-1)?.requestId;
    await chat.sendMessage(
      { text: 'Premium' },
      answer && { body: { answer: { requestId, ...answer } } },
    );
    await until((messages) => wordsOf(messages).some((text) => text.includes('Told')));
    const ofUser = (messages: readonly SessionMessage[]) =>
      messages.flatMap(({ parts }) =>
        parts.flatMap((part) => (part.type === 'data-transcript' ? [part.data.text] : [])),
      );
    expect(ofUser(chat.messages)).toEqual([]);
    void other.chat.resumeStream();
    const theirs = await other.until((messages) =>
      wordsOf(messages).some((text) => text.includes('Told')),
    );
    expect(ofUser(theirs)[0]).toBe('use book_ride');
  },
);

test('does not run a tool if its approval is denied', async () => {
  const ran: unknown[] = [];
  const mail = {
    script: steps(calls(['do_mail', { to: 'all' }]), say('It is over.')),
    config: { tools: { do_mail: simpleTool(() => ran.push('mail'), { needsApproval: true }) } },
  };
  const session = closing(rideSession({ subagents: { mail } }));
  const { chat, until } = talkTo(handlerOf(session));
  await chat.sendMessage({ text: 'use mail' });
  const open = await until((messages) =>
    questionsOf(messages).some(({ state }) => state === 'open'),
  );
  const { requestId, kind } = questionsOf(open).at(-1) ?? {};
  expect(kind).toBe('approval');
  await chat.sendMessage({ text: 'No' }, { body: { answer: { requestId, approved: false } } });
  await expect
    .poll(() => session.store.getSnapshot().context.subagents[0]?.state)
    .toBe('completed');
  expect(ran).toEqual([]);
});

test('shows that another user has to answer a question, but not which user', async () => {
  const mail = {
    script: steps(calls(['do_mail', { to: 'all' }]), say('It is over.')),
    config: {
      answerableBy: ['the secret manager'],
      tools: { do_mail: simpleTool(() => 'sent', { needsApproval: true }) },
    },
  };
  const session = closing(rideSession({ subagents: { mail } }));
  const { chat, until } = talkTo(handlerOf(session));
  await chat.sendMessage({ text: 'use mail' });
  const open = await until((messages) =>
    questionsOf(messages).some(({ state }) => state === 'presenting'),
  );
  expect(questionsOf(open).at(-1)).toMatchObject({ mayAnswer: false });
  expect(JSON.stringify(open)).not.toContain('the secret manager');
});

test('sends earlier replies as separate messages, not as part of the current reply', async () => {
  const session = closing(rideSession());
  await session.start();
  await session.sendText('hello');
  await session.idle();
  const before = session.store.getSnapshot().context.transcript.at(-1)?.text;
  const handle = handlerOf(session);
  const { chat } = talkTo(handle, { isHeld: false });
  await chat.sendMessage({ text: 'good morning' });
  expect(wordsOf(chat.messages)).toEqual([
    'good morning',
    expect.not.stringContaining(`${before}`),
  ]);
});

test('does not count a delivery as shown if only an observer has received it', async () => {
  const session = closing(rideSession());
  const along = talkTo(chatHandler({ authorize: () => ({ session, user: 'root', hears: false }) }));
  await along.chat.sendMessage({ text: 'use book_ride' });
  const [question] = questionsOf(await along.until((now) => questionsOf(now).length > 0));
  expect(session.store.getSnapshot().context.questions[0]?.state).toBe('presenting');
  await along.chat.sendMessage(
    { text: 'Premium' },
    { body: { answer: { requestId: question?.requestId, optionId: 'premium' } } },
  );
  await along.until((now) => wordsOf(now).some((text) => text.includes('premium')));
  const { deliveries } = session.store.getSnapshot().context;
  expect(
    deliveries.filter(({ kind }) => kind === 'result').map(({ state }) => state),
  ).not.toContain('delivered');
});

test('names the author of a message, and lists the chats whose responses are open', async () => {
  const session = closing(rideSession());
  const { present } = session.store.getSnapshot().context;
  expect(present).toEqual([]);
  const { chat } = talkTo(handlerOf(session));
  const along = talkTo(chatHandler({ authorize: () => ({ session, user: 'root', hears: false }) }));
  await chat.sendMessage({ text: 'hello' });
  void along.chat.resumeStream();
  const [message] = await along.until((now) => now.some(({ role }) => role === 'assistant'));
  expect(message?.metadata).toMatchObject({ by: 'ann' });
  const here = session.store.getSnapshot().context.present;
  expect(here).toMatchObject([
    { by: 'ann', hears: true },
    { by: 'root', hears: false },
  ]);
});

test('does not count a delivery as shown while no response is open', async () => {
  const session = closing(rideSession());
  const { chat } = talkTo(handlerOf(session), { isHeld: false });
  await chat.sendMessage({ text: 'use book_ride' });
  await expect.poll(() => session.store.getSnapshot().context.questions[0]?.state).toBeDefined();
  expect(session.store.getSnapshot().context.questions[0]?.state).toBe('presenting');
});

test.each([
  ['another method', () => new Request(URL_OF_CHAT, { method: 'PUT' }), 405],
  ['a form of a foreign page', () => post('a=b', { 'content-type': 'text/plain' }), 415],
  ['no JSON', () => post('{'), 400],
  ['no object', () => post('[]'), 400],
  ['no chat', () => post({ messages: [] }), 400],
  ['too much', () => post({ id: 'c1', padding: 'x'.repeat(2000) }), 413],
  ['no words', () => post({ id: 'c1', trigger: 'submit-message', messages: [] }), 400],
  ['an answer to nothing', () => post({ id: 'c1', answer: { optionId: 'a' } }), 400],
  ['an answer that is none', () => post({ id: 'c1', answer: { requestId: 'r1', hack: 1 } }), 400],
  ['a chat to resume without its id', () => new Request(URL_OF_CHAT), 400],
] as const)('%s is refused', async (_what, request, status) => {
  const session = closing(rideSession());
  const errors: unknown[] = [];
  const handle = handlerOf(session, { maxBodyBytes: 1000, onError: (error) => errors.push(error) });
  const response = await handle(request());
  expect(response.status).toBe(status);
  expect(await response.text()).not.toBe('');
  expect(errors).toEqual([]);
});

test("hides details from a refused client, and reports an app's failure only to the app", async () => {
  const errors: unknown[] = [];
  const refused = chatHandler({ authorize: () => null });
  expect((await refused(post(words('hello')))).status).toBe(403);
  const failing = chatHandler({
    authorize: () => {
      throw new Error('the password of the database');
    },
    onError: (error) => errors.push(error),
  });
  const response = await failing(post(words('hello')));
  expect([response.status, await response.text()]).toEqual([500, 'The server failed']);
  expect(errors).toHaveLength(1);
});

test('drops the least recently used chat, and sends everything again if that chat returns', async () => {
  const session = closing(rideSession());
  const handle = handlerOf(session, { maxChats: 1 });
  const sse = async (id: string, text?: string): Promise<string> => {
    const request = new Request(`${URL_OF_CHAT}/${id}/stream`);
    return (await handle(text === undefined ? request : post(words(text, id)))).text();
  };
  expect(await sse('c1', 'hello')).toContain('text-delta');
  // The new chat shows its own text and the reply, but not the older messages.
  await sse('c2', 'good morning');
  expect(await sse('c1')).toContain('"hello"');
});

test('refuses invalid options, and names them in the error', () => {
  expect(() => chatHandler({} as ChatHandlerOptions)).toThrow('`authorize`: expected a function');
  expect(() => chatHandler({ authorize: () => null, maxChats: 0 })).toThrow('`maxChats`');
});

test('CHAT-HANDLER-4: keeps a session awake while a response is open, and wakes it again later', async () => {
  const environment = simulatedEnvironment();
  const runtime = createRuntime({ environment, journal: memoryJournal() });
  const model = scriptedModel({ otherwise: ({ user }) => ({ text: `You said: ${user}` }) });
  const lead = { name: 'assistant', instructions: 'You repeat.' };
  const pool = createSessionPool({
    runtime,
    idleMs: 1_000,
    open: (sessionId) => new TextSession({ sessionId, runtime, model, agents: [lead] }),
  });
  onTestFinished(() => pool.close());
  const handle = chatHandler({
    pool,
    authorize: ({ headers }) => {
      const user = headers.get('x-user');
      return user ? { sessionId: `chat-${user}`, user } : null;
    },
  });
  const held = new AbortController();
  const hold = handle(
    new Request(`${URL_OF_CHAT}/c1/stream`, { headers: { 'x-user': 'ann' }, signal: held.signal }),
  );
  await environment.advance(60_000);
  expect(pool.awakeCount).toBe(1);
  const reply = handle(post(words('hello'), { 'x-user': 'ben' }));
  await environment.settle();
  expect(await (await reply).text()).toContain('You said: hello');
  held.abort();
  expect((await hold).status).toBe(204);
  await environment.advance(60_000);
  expect(pool.awakeCount).toBe(0);
  const again = handle(post(words('back'), { 'x-user': 'ben' }));
  await environment.settle();
  expect(await (await again).text()).toContain('You said: back');
  void pool.drain();
  await environment.settle();
  expect((await handle(post(words('late'), { 'x-user': 'zoe' }))).status).toBe(503);
});

describe('a held request', () => {
  const get = (signal?: AbortSignal, id = 'c1') =>
    new Request(`${URL_OF_CHAT}/${id}/stream`, { signal: signal ?? null });

  test('CHAT-HANDLER-6: ends without content after `holdMs`, so that the page repeats the request', async () => {
    const environment = simulatedEnvironment();
    const session = closing(rideSession());
    let asked = 0;
    const handle = handlerOf(session, { environment, holdMs: 8_000 });
    const { chat } = talkTo((request) => {
      asked += Number(request.method === 'GET');
      return handle(request);
    });
    void chat.resumeStream();
    await expect.poll(() => asked).toBe(1);
    await environment.advance(8_000);
    await expect.poll(() => asked).toBe(2);
    expect([chat.error, chat.messages]).toEqual([undefined, []]);
  });

  test('CHAT-HANDLER-5: ends, and is not repeated, if the same user opens too many requests', async () => {
    const session = closing(rideSession());
    const handle = handlerOf(session, { responsesPerUser: 2 });
    const gone = new AbortController();
    const held = ['c1', 'c2', 'c3'].map((id) => handle(get(gone.signal, id)));
    expect((await held[0])?.status).toBe(204);
    // Sending a message also replaces a held request.
    const response = await handle(post(words('hello', 'c4')));
    expect((await held[1])?.status).toBe(204);
    expect(await response.text()).toContain('[DONE]');
    gone.abort();
    await held[2];
    // All connections are free again.
    expect(await (await handle(post(words('hello', 'c4')))).text()).toContain('[DONE]');
  });
});

test('CHAT-HANDLER-5: the handler refuses a user with too many running replies, but not other users', async () => {
  const session = closing(rideSession());
  const handle = handlerOf(session, {
    responsesPerUser: 2,
    authorize: ({ headers }) => ({ session, user: headers.get('x-user') ?? 'ann' }),
  });
  const open = [await handle(post(words('hello', 'c1'))), await handle(post(words('hi', 'c2')))];
  const refused = await handle(post(words('more', 'c3')));
  expect([refused.status, await refused.text()]).toEqual([
    429,
    'Expected at most 2 responses of one user at once',
  ]);
  expect((await handle(post(words('hello', 'c1'), { 'x-user': 'ben' }))).status).toBe(200);
  for (const response of open) await response.body?.cancel();
  expect((await handle(post(words('more', 'c3')))).status).toBe(200);
});

test('CHAT-HANDLER-6: the handler sends headers immediately, and keep-alive parts if the reply is slow', async () => {
  const environment = simulatedEnvironment();
  const runtime = createRuntime({ environment, journal: memoryJournal() });
  const model = scriptedModel({
    environment,
    otherwise: ({ user }) => ({ text: `You said: ${user}`, delayMs: 30_000 }),
  });
  const session = closing(
    new TextSession({
      runtime,
      model,
      agents: [{ name: 'assistant', instructions: 'You repeat.' }],
    }),
  );
  const responding = handlerOf(session, { environment })(post(words('hello')));
  await environment.settle();
  const response = await responding;
  expect(response.headers.get('cache-control')).toBe('no-cache, no-transform');
  const text = response.text();
  await environment.advance(60_000);
  const [alive = '', ...rest] = (await text).split('data: ');
  expect(alive).toBe(':\n\n'.repeat(4));
  expect(rest.join('')).toContain('hello');
});

test("accepts a request with only the last message, as in the AI SDK's recipe for long chats", async () => {
  const session = closing(rideSession());
  const handle = handlerOf(session);
  const message = { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'hello' }] };
  const response = await handle(post({ id: 'c1', message }));
  expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('DONE')]);
  const again = await handle(post({ id: 'c1', message, trigger: 'regenerate-message' }));
  expect(again.status).toBe(400);
});

test('reports an app error if an identity lacks the session id that a pool needs', async () => {
  const errors: unknown[] = [];
  const session = closing(rideSession());
  const handle = chatHandler({
    pool: { use: async (_, use) => use(session) },
    authorize: () => ({ session, user: 'ann' }),
    onError: (error) => errors.push(error),
  });
  expect((await handle(post(words('hello')))).status).toBe(500);
  expect(String(errors[0])).toContain('to return the id of a session and a user');
});

test.each([
  [
    'throws',
    () => {
      throw new Error('the log is full');
    },
  ],
  // Vitest reports unhandled rejections.
  ['rejects', (): unknown => Promise.reject(new Error('the log is full'))],
])('completes the response even if `onError` %s', async (_how, onError) => {
  const handle = chatHandler({
    authorize: () => {
      throw new Error('no database');
    },
    onError,
  });
  expect((await handle(post(words('hello')))).status).toBe(500);
});
