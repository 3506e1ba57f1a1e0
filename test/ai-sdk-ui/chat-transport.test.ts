// `offstage/ai-sdk-ui` under the state machine of the official `useChat`, over real sockets.

import { Chat } from '@ai-sdk/react';
import { expect, onTestFinished, test, vi } from 'vitest';
import { chatTransport, type SessionMessage } from '../../src/ai-sdk-ui/index.ts';
import type { ChatTransportOptions } from '../../src/ai-sdk-ui/index.ts';
import type { ConnectOptions } from '../../src/client/index.ts';
import type { TextSession } from '../../src/index.ts';
import { calls, say, simpleTool, steps } from '../support/subagent-runs.ts';
import { rideSession, served, type Served, type TestClient } from '../serve/support/served.ts';

interface Talk {
  readonly chat: Chat<SessionMessage>;
  readonly ann: TestClient;
  readonly transport: ReturnType<typeof chatTransport>;
  readonly statuses: string[];
  /** Resolves when `isWanted` accepts the messages. */
  until(isWanted: (messages: readonly SessionMessage[]) => boolean): Promise<SessionMessage[]>;
}

function talkTo(
  { client }: Served,
  options?: ChatTransportOptions,
  more?: Partial<ConnectOptions>,
): Talk {
  const ann = client(more);
  const transport = chatTransport(ann.it, options);
  const statuses: string[] = [];
  const chat = new Chat<SessionMessage>({
    transport,
  });
  const until: Talk['until'] = (isWanted) =>
    new Promise((resolve) => {
      const look = (): void => {
        if (!isWanted(chat.messages)) return;
        stop();
        resolve(chat.messages);
      };
      const stop = chat['~registerMessagesCallback'](look);
      look();
    });
  chat['~registerStatusCallback'](() => statuses.push(chat.status));
  onTestFinished(transport.follow((update) => (chat.messages = update(chat.messages))));
  onTestFinished(() => chat.dispose());
  return { chat, ann, transport, statuses, until };
}

const textOf = ({ parts }: SessionMessage): string =>
  parts.map((part) => (part.type === 'text' ? part.text : `[${part.type}]`)).join('');
const questionsOf = (messages: readonly SessionMessage[]) =>
  messages.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === 'data-question' ? [part.data] : [])),
  );
const subagentsOf = (messages: readonly SessionMessage[]) =>
  messages.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === 'data-subagent' ? [part.data] : [])),
  );

async function closing<S extends TextSession>(session: S): Promise<S> {
  onTestFinished(() => session.close());
  return session;
}

test.each(['websocket', 'stream'] as const)(
  'transmits a reply, a task, a question with its answer, and an unprompted result over a %s',
  async (way) => {
    const session = await closing(rideSession());
    const it = await served({ session: () => session });
    const { chat, until, transport, statuses } = talkTo(it, {}, { transport: way });
    await chat.sendMessage({ text: 'use book_ride' });
    expect(statuses.slice(0, 2)).toEqual(['submitted', 'streaming']);
    const open = await until((messages) => questionsOf(messages)[0]?.state === 'open');
    expect(open.map(({ role }) => role)).toEqual(['user', 'assistant', 'assistant']);
    expect(open.map(textOf)).toEqual([
      'use book_ride',
      '[data-subagent][data-question]',
      expect.stringContaining('Tools said'),
    ]);
    const [question] = questionsOf(open);
    expect(question?.receipt).toBeNull();
    const receipt = await transport.answer(question?.requestId ?? '', { optionId: 'premium' });
    expect(receipt).toEqual({ accepted: true, by: 'ann' });
    const told = await until((messages) => messages.some((each) => textOf(each).includes('Told')));
    expect(questionsOf(told)[0]).toMatchObject({ state: 'answered', answer: 'Premium', receipt });
    const done = await until((messages) => subagentsOf(messages)[0]?.state === 'completed');
    // Each message keeps its place and occurs once.
    expect(done.map(({ id }) => id).slice(0, 3)).toEqual(open.map(({ id }) => id));
    expect(new Set(done.map(({ id }) => id)).size).toBe(done.length);
    // CHAT-FEED-3
    await expect
      .poll(() =>
        session.store.getSnapshot().context.deliveries.find(({ kind }) => kind === 'result'),
      )
      .toMatchObject({ state: 'delivered', grade: 'shown', by: 'ann' });
    await expect.poll(() => chat.status).toBe('ready');
    expect(chat.error).toBeUndefined();
  },
);

test('does not run a tool whose approval is denied', async () => {
  const ran: unknown[] = [];
  const mail = {
    script: steps(calls(['do_mail', { to: 'all' }]), say('It is over.')),
    config: {
      tools: { do_mail: simpleTool(() => ran.push('mail'), { needsApproval: true }) },
    },
  };
  const session = await closing(rideSession({ subagents: { mail } }));
  const { chat, until, transport } = talkTo(await served({ session: () => session }));
  await chat.sendMessage({ text: 'use mail' });
  const [asked] = questionsOf(
    await until((messages) => questionsOf(messages)[0]?.state === 'open'),
  );
  expect(asked).toMatchObject({
    kind: 'approval',
    action: { toolName: 'do_mail', input: { to: 'all' } },
  });
  await transport.answer(asked?.requestId ?? '', { approved: false });
  const over = await until((messages) => subagentsOf(messages)[0]?.state === 'completed');
  expect(questionsOf(over)[0]).toMatchObject({ state: 'answered', receipt: { accepted: true } });
  expect(ran).toEqual([]);
});

test('shows each message once after the connection and the server are lost in mid-question', async () => {
  const session = await closing(rideSession());
  const first = await served({ session: () => session });
  const { chat, until, transport, ann } = talkTo(first);
  await chat.sendMessage({ text: 'use book_ride' });
  const open = await until((messages) => questionsOf(messages)[0]?.state === 'open');
  const ids = open.map(({ id }) => id);
  await first.stop();
  await ann.status(({ state }) => state === 'waiting');
  const answered = transport.answer(questionsOf(open)[0]?.requestId ?? '', { optionId: 'economy' });
  expect(
    questionsOf(await until((messages) => questionsOf(messages)[0]?.receipt === 'pending')),
  ).toHaveLength(1);
  await served({ session: () => session }, { port: Number(new URL(first.url).port) });
  await ann.reconnected();
  expect(await answered).toEqual({ accepted: true, by: 'ann' });
  const told = await until((messages) => textOf(messages.at(-1)!).includes('Told'));
  expect(told.map(({ id }) => id).slice(0, ids.length)).toEqual(ids);
  // The client receives all views again, but an unchanged message remains the same object.
  expect(textOf(open[2]!)).toContain('Tools said');
  expect(told[2]).toBe(open[2]);
  expect(new Set(told.map(({ id }) => id)).size).toBe(told.length);
});

test("shows another chat's messages and answers, but does not repeat its own", async () => {
  const session = await closing(rideSession());
  const it = await served({ session: () => session });
  const [one, two] = [talkTo(it), talkTo(it)];
  await one.chat.sendMessage({ text: ' use book_ride ' });
  const isOpen = (messages: readonly SessionMessage[]): boolean =>
    questionsOf(messages)[0]?.state === 'open';
  const [question] = questionsOf(await one.until(isOpen));
  const seen = await two.until(isOpen);
  expect(seen[0]).toMatchObject({
    role: 'user',
    parts: [{ type: 'text', text: 'use book_ride' }],
  });
  const { requestId = '' } = question ?? {};
  const receipts = await Promise.all([
    one.transport.answer(requestId, { optionId: 'premium' }),
    two.transport.answer(requestId, { optionId: 'economy' }),
  ]);
  expect(receipts.filter(({ accepted }) => accepted)).toHaveLength(1);
  for (const { until } of [one, two])
    await until((messages) => subagentsOf(messages)[0]?.state === 'completed');
  expect(questionsOf(two.chat.messages)[0]).toMatchObject({
    state: 'answered',
    answer: receipts[0]?.accepted ? 'Premium' : 'Economy',
    receipt: receipts[1],
  });
  expect(one.chat.messages.filter(({ role }) => role === 'user')).toHaveLength(1);
});

test('returns to ready without a reply after a message that answers a question', async () => {
  const session = await closing(rideSession());
  const { chat, until } = talkTo(await served({ session: () => session }));
  await chat.sendMessage({ text: 'use book_ride' });
  await until((messages) => questionsOf(messages)[0]?.state === 'open');
  await chat.sendMessage({ text: 'premium' });
  await until((messages) => questionsOf(messages)[0]?.state === 'answered');
  await expect.poll(() => chat.status).toBe('ready');
});

test('refuses an answer to an ended or unknown question', async () => {
  const session = await closing(rideSession());
  const { chat, until, transport } = talkTo(await served({ session: () => session }));
  await chat.sendMessage({ text: 'use book_ride' });
  const [question] = questionsOf(
    await until((messages) => questionsOf(messages)[0]?.state === 'open'),
  );
  const requestId = question?.requestId ?? '';
  await session.answer(requestId, { optionId: 'premium' });
  const late = await transport.answer(requestId, { optionId: 'economy' });
  expect(late).toEqual({ accepted: false, reason: 'over' });
  await until((messages) => questionsOf(messages)[0]?.receipt === late);
  expect(await transport.answer('none', { text: 'x' })).toMatchObject({ reason: 'unknown' });
  await expect(transport.answer(requestId, { optionId: 3 } as never)).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
  });
  expect(questionsOf(chat.messages)[0]?.receipt).toBeNull();
});

test.each([
  ['words again', (chat: Chat<SessionMessage>) => chat.regenerate()],
  [
    'changed words',
    (chat: Chat<SessionMessage>) =>
      chat.sendMessage({ text: 'other', messageId: chat.messages[0]?.id ?? '' }),
  ],
  ['nothing', (chat: Chat<SessionMessage>) => chat.sendMessage()],
  ['no words', (chat: Chat<SessionMessage>) => chat.sendMessage({ text: '  ' })],
  ['no parts', (chat: Chat<SessionMessage>) => chat.sendMessage({ parts: 3 as never })],
  ['an empty part', (chat: Chat<SessionMessage>) => chat.sendMessage({ parts: [null as never] })],
  [
    'a text that is none',
    (chat: Chat<SessionMessage>) =>
      chat.sendMessage({ parts: [{ type: 'text', text: { toString: 1 } as never }] }),
  ],
  [
    'a file',
    (chat: Chat<SessionMessage>) =>
      chat.sendMessage({ files: [{ type: 'file', mediaType: 'text/plain', url: 'data:,x' }] }),
  ],
  [
    'words of the assistant',
    (chat: Chat<SessionMessage>) =>
      chat.sendMessage({ role: 'assistant', parts: [{ type: 'text', text: 'I said so' }] }),
  ],
])('refuses %s by name without sending the session anything', async (_, send) => {
  const session = await closing(rideSession());
  const { chat } = talkTo(await served({ session: () => session }));
  await chat.sendMessage({ text: 'hello' });
  const before = session.store.getSnapshot().context.transcript;
  await send(chat);
  expect(chat.status).toBe('error');
  expect(chat.error).toMatchObject({ code: 'INVALID_MESSAGE' });
  expect(session.store.getSnapshot().context.transcript).toEqual(before);
  chat.clearError();
  await chat.sendMessage({ text: 'hello again' });
  expect(textOf(chat.messages.at(-1)!)).toBe('You said: hello again');
});

test('lets the page report shown deliveries, if so configured', async () => {
  const session = await closing(rideSession());
  const { chat, until, ann } = talkTo(await served({ session: () => session }), {
    shownBy: 'page',
  });
  await chat.sendMessage({ text: 'use book_ride' });
  const [question] = questionsOf(
    await until((messages) => questionsOf(messages)[0]?.state === 'presenting'),
  );
  await expect.poll(() => chat.status).toBe('ready');
  expect(session.store.getSnapshot().context.questions[0]?.state).toBe('presenting');
  await ann.it.questionShown(question?.requestId ?? '');
  await until((messages) => questionsOf(messages)[0]?.state === 'open');
});

test('shows everything to observers, but accepts no messages from them', async () => {
  const session = await closing(rideSession());
  const it = await served({ session: () => session });
  const [ann, eve] = [talkTo(it), talkTo(it, {}, { token: 'eve' })];
  await ann.chat.sendMessage({ text: 'hello' });
  await eve.until((messages) => messages.map(textOf).includes('You said: hello'));
  await eve.chat.sendMessage({ text: 'me, too' });
  expect(eve.chat.error).toMatchObject({ code: 'NOT_ALLOWED' });
});

test('ends a held stream and refuses messages once the client is closed', async () => {
  const session = await closing(rideSession());
  const { chat, ann, transport } = talkTo(await served({ session: () => session }));
  const held = transport.reconnectToStream({ chatId: 'c', abortSignal: undefined });
  ann.it.close();
  expect(await held).toBeNull();
  await chat.sendMessage({ text: 'hello' });
  expect(chat.error).toMatchObject({ code: 'CLIENT_CLOSED' });
});

test.each([
  [null, {}],
  ['a client', {}],
  [{}, {}],
  [undefined, { shownBy: 'nobody' }],
  [undefined, { shown: 'page' }],
] as const)('refuses chatTransport(%s, %s)', async (given, options) => {
  const session = await closing(rideSession());
  const { it } = (await served({ session: () => session })).client();
  expect(() =>
    chatTransport((given === undefined ? it : given) as never, options as never),
  ).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }));
});

test('counts a result as shown only while the page is visible', async () => {
  const page = Object.assign(new EventTarget(), { visibilityState: 'hidden' });
  vi.stubGlobal('document', page);
  onTestFinished(() => void vi.unstubAllGlobals());
  const session = await closing(rideSession());
  const { chat, until, ann, transport } = talkTo(await served({ session: () => session }));
  expect(transport.heard).toBe('shown');
  await chat.sendMessage({ text: 'use book_ride' });
  const [question] = questionsOf(
    await until((messages) => questionsOf(messages)[0]?.state === 'presenting'),
  );
  // Earlier reports have reached the server before this call gets its receipt.
  await ann.it.cancel('none');
  expect(ann.state().questions[0]?.state).toBe('presenting');
  await ann.it.questionShown(question?.requestId ?? '');
  await transport.answer(question?.requestId ?? '', { optionId: 'premium' });
  await until((messages) => textOf(messages.at(-1)!).includes('Told'));
  const result = () => ann.state().deliveries.find(({ kind }) => kind === 'result');
  await ann.it.cancel('none');
  expect(result()?.grade).toBeNull();
  page.visibilityState = 'visible';
  page.dispatchEvent(new Event('visibilitychange'));
  await ann.until(() => result()?.grade === 'shown');
});

test('delivers unprompted messages on a held stream to a chat that has only a transport', async () => {
  const session = await closing(rideSession());
  const it = await served({ session: () => session });
  const transport = chatTransport(it.client().it);
  const chat: Chat<SessionMessage> = new Chat<SessionMessage>({
    transport,
    onFinish: ({ isAbort }) => void (isAbort || chat.resumeStream()),
  });
  onTestFinished(() => chat.dispose());
  void chat.resumeStream();
  expect(chat.status).toBe('ready');
  await chat.sendMessage({ text: 'use book_ride' });
  await expect.poll(() => questionsOf(chat.messages)[0]?.state === 'open').toBe(true);
  const bob = it.client({ token: 'bob' });
  const { requestId } = await bob.question();
  await bob.it.answer(requestId, { optionId: 'premium' });
  await bob.it.send('words of bob');
  await expect.poll(() => chat.messages.map(textOf).includes('[data-transcript]')).toBe(true);
  await expect.poll(() => chat.messages.some((each) => textOf(each).includes('Told'))).toBe(true);
  await expect.poll(() => subagentsOf(chat.messages)[0]?.state === 'completed').toBe(true);
  expect(chat.messages.map(textOf)[0]).toBe('use book_ride');
  expect(new Set(chat.messages.map(({ id }) => id)).size).toBe(chat.messages.length);
  expect(chat.error).toBeUndefined();
});

test('keeps a message separate from an identical one sent before the chat was created', async () => {
  const session = await closing(rideSession());
  const it = await served({ session: () => session });
  const bob = it.client({ token: 'bob' });
  await bob.it.send('hello');
  await bob.until(({ transcript }) => transcript.length === 2);
  const ann = it.client();
  await ann.until(({ transcript }) => transcript.length === 2);
  const chat = new Chat<SessionMessage>({ transport: chatTransport(ann.it) });
  onTestFinished(() => chat.dispose());
  await chat.sendMessage({ text: 'hello' });
  await chat.resumeStream();
  // The chat has not followed this text, so it arrives as a part.
  const [before] = ann.state().transcript;
  await expect
    .poll(() => chat.messages.find((each) => textOf(each) === '[data-transcript]')?.id)
    .toBe(before?.id);
  expect(chat.messages.filter(({ role }) => role === 'user')).toHaveLength(1);
});

test('stop() does not cancel work or affect later messages', async () => {
  const session = await closing(rideSession());
  const { chat, until } = talkTo(await served({ session: () => session }));
  const sent = chat.sendMessage({ parts: [{ type: 'text', text: 'hello' }] });
  await chat.stop();
  await sent;
  const said = await until((messages) => textOf(messages.at(-1)!) === 'You said: hello');
  expect(said).toHaveLength(2);
});

test('leaves a message added by the app in its position', async () => {
  const session = await closing(rideSession());
  const { chat, until } = talkTo(await served({ session: () => session }));
  await chat.sendMessage({ text: 'one' });
  chat.messages = [
    ...chat.messages,
    { id: 'note', role: 'system', parts: [{ type: 'text', text: 'a note of the app' }] },
  ];
  await chat.sendMessage({ text: 'two' });
  await session.sendText('three');
  const all = await until((messages) => textOf(messages.at(-1)!) === 'You said: three');
  expect(all.map(textOf)).toEqual([
    'one',
    'You said: one',
    'a note of the app',
    'two',
    'You said: two',
    'three',
    'You said: three',
  ]);
});

test("extends a reply's text on the screen but never shortens it", async () => {
  const session = await closing(rideSession());
  const { chat } = talkTo(await served({ session: () => session }));
  const lengths: number[] = [];
  const words = 'so many words '.repeat(60);
  chat['~registerMessagesCallback'](() => {
    const last = chat.messages.at(-1);
    if (last?.role === 'assistant') lengths.push(textOf(last).length);
  });
  await chat.sendMessage({ text: words });
  expect(textOf(chat.messages.at(-1)!)).toBe(`You said: ${words.trim()}`);
  expect(lengths.length).toBeGreaterThan(2);
  expect(lengths).toEqual(lengths.toSorted((a, b) => a - b));
});

test('throws an error if `follow` receives a value that is not a function', async () => {
  const session = await closing(rideSession());
  const transport = chatTransport((await served({ session: () => session })).client().it);
  expect(() => transport.follow(null as never)).toThrow(
    expect.objectContaining({ code: 'INVALID_ARGUMENT' }),
  );
});

test('does not connect before the first use, so that server rendering opens no connection', async () => {
  const session = await closing(rideSession());
  const host = await served({ session: () => session });
  let connections = 0;
  const transport = chatTransport(() => {
    connections += 1;
    return host.client().it;
  });
  const chat = new Chat<SessionMessage>({ transport });
  onTestFinished(() => chat.dispose());
  expect(connections).toBe(0);
  onTestFinished(transport.follow((update) => (chat.messages = update(chat.messages))));
  await chat.sendMessage({ text: 'hello' });
  expect([connections, textOf(chat.messages.at(-1)!)]).toEqual([1, 'You said: hello']);
});

test('throws at the first use if the function returns no client', () => {
  const transport = chatTransport(() => null as never);
  expect(() => transport.follow(() => undefined)).toThrow(
    expect.objectContaining({ code: 'INVALID_OPTION' }),
  );
});
