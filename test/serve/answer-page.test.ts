// The page on which a person answers from a link (ANSWER-PAGE-1 to ANSWER-PAGE-4), with a pool whose sessions sleep.

import { describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { createSessionPool, memoryWakeTimes } from '../../src/entries/journal.ts';
import { createRuntime, memoryJournal, type Journal, type TextSession } from '../../src/index.ts';
import { answerLinks, serve, type ServeOptions } from '../../src/serve/index.ts';
import { simulatedEnvironment } from '../../src/testing/index.ts';
import { fakeChannel } from '../support/fake-channel.ts';
import { turns } from '../support/crashes.ts';
import { calls, say } from '../support/subagent-runs.ts';
import { textTalk, type TalkOptions } from '../support/text-talk.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const PAGE = 'https://app.example.com/answer';
const ORIGIN = 'https://app.example.com';

interface Setting {
  readonly links?: Partial<Parameters<typeof answerLinks>[0]>;
  readonly answerableBy?: readonly string[];
  readonly input?: object;
  readonly ask?: object;
  readonly talk?: TalkOptions;
  readonly serve?: Partial<ServeOptions>;
}

/** A session whose user has left while "pay" asks for an approval or "name" asks a question, and its page. */
async function opened({ answerableBy, input, ask, ...setting }: Setting = {}) {
  const environment = simulatedEnvironment({ startAt: Date.UTC(2026, 11, 1, 9) });
  const journal: Journal = { ...memoryJournal({ keep: Infinity }), wakeTimes: memoryWakeTimes() };
  const runtime = createRuntime({ environment, journal });
  const paid: unknown[] = [];
  const mail = fakeChannel();
  const links = answerLinks({ secret: 's'.repeat(32), url: PAGE, ...setting.links });
  const pay = {
    description: 'Pays',
    inputSchema: z.looseObject({}),
    needsApproval: true,
    ...(answerableBy && { answerableBy }),
    execute: (given: unknown) => paid.push(given) && 'paid',
  };
  const errors: unknown[] = [];
  const pool = createSessionPool<TextSession>({
    runtime,
    idleMs: 1000,
    open: (sessionId) =>
      textTalk({
        sessionId,
        runtime,
        environment,
        user: 'ada',
        reach: { channels: { mail }, steps: [{ afterUnheardMs: 5 * MINUTE, by: 'mail' }], links },
        subagents: {
          pay: {
            script: turns(calls(['pay', { amount: 5, ...input }]), say('Paid.')),
            config: { tools: { pay }, inputTimeout: 48 * HOUR },
          },
          name: {
            script: turns(calls(['ask_user', { question: 'Your name?', ...ask }]), say('Thanks.')),
            config: {
              interactive: true,
              inputTimeout: 48 * HOUR,
              ...(answerableBy && { answerableBy }),
            },
          },
        },
        ...setting.talk,
      }).session,
  });
  const asked: string[] = [];
  let user: string | null = 'ada';
  const web = serve({
    pool,
    authorize: ({ sessionId, transport, headers }) => {
      asked.push(`${transport} ${headers.get('cookie') ?? ''}`);
      return user === null ? null : { sessionId: sessionId ?? '', user, role: 'user' };
    },
    links,
    environment,
    onError: (error) => errors.push(error),
    ...setting.serve,
  });
  onTestFinished(async () => {
    const closed = Promise.all([web.close(), pool.close()]);
    await environment.advance(MINUTE);
    await closed;
  });
  const settled = async <T>(result: Promise<T>): Promise<T> => {
    await environment.settle();
    return result;
  };
  const fetched = async (url: string, init: RequestInit = {}) => {
    const response = await settled(web.fetch(new Request(url, init)));
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  const says = (text: string, id = 'ses') =>
    settled(pool.use(id, (session) => session.sendText(text)));
  const linkOf = () => mail.links.find(([link]) => link)?.[0]?.url ?? '';
  const tokenOf = (url = linkOf()) => new URL(url).searchParams.get('t') ?? '';
  return {
    environment,
    pool,
    paid,
    mail,
    errors,
    asked,
    says,
    linkOf,
    tokenOf,
    entries: () => journal.read({}) as readonly { event: { type: string } }[],
    fetch: (url: string, init: RequestInit = {}) => web.fetch(new Request(url, init)),
    signIn: (as: string | null) => (user = as),
    /** Lets the user ask, leave, and receive the message. Then the session sleeps. */
    async mailed(words: string) {
      await says(words);
      await environment.advance(6 * MINUTE);
      expect(mail.links).toHaveLength(1);
      expect(pool.awakeCount).toBe(0);
    },
    get: (url = linkOf(), init: RequestInit = {}) => fetched(url, init),
    post: (form: Record<string, string>, { headers = {}, t = tokenOf() } = {}) =>
      fetched(PAGE, {
        method: 'POST',
        body: new URLSearchParams({ t, ...form }),
        headers: { origin: ORIGIN, ...headers },
      }),
    question: async () => (await pool.questions('ses', { answered: true })).at(-1),
  };
}

describe('an approval', () => {
  test('takes effect once, from a link, in a session that sleeps', async () => {
    const it = await opened();
    await it.mailed('use pay');
    const page = await it.get();
    expect(page.status).toBe(200);
    expect(page.text).toContain('&quot;amount&quot;: 5');
    expect(it.pool.awakeCount).toBe(0);
    const done = await it.post({ approved: 'yes' });
    expect([done.status, done.text]).toEqual([200, expect.stringContaining('Approved')]);
    await it.environment.settle();
    expect(it.paid).toEqual([{ amount: 5 }]);
    expect(await it.question()).toMatchObject({ state: 'answered', answeredBy: 'ada' });
    // ANSWER-PAGE-3: neither the same answer nor another one counts now.
    for (const approved of ['yes', 'no']) {
      const again = await it.post({ approved });
      expect([again.status, again.text]).toEqual([
        409,
        expect.stringContaining('Answered by ada.'),
      ]);
    }
    const after = await it.get();
    expect([after.status, after.text]).toEqual([409, expect.stringContaining('Already answered')]);
    expect(after.text).not.toContain('<form');
    await it.environment.advance(HOUR);
    expect(it.paid).toHaveLength(1);
    expect(it.errors).toEqual([]);
  });

  test('accepts a refusal', async () => {
    const it = await opened();
    await it.mailed('use pay');
    expect((await it.post({ approved: 'no' })).text).toContain('Declined');
    await it.environment.advance(MINUTE);
    expect(it.paid).toEqual([]);
    expect(await it.question()).toMatchObject({ state: 'answered', answeredBy: 'ada' });
  });

  test('ANSWER-PAGE-1: stays open after each GET or HEAD, however often a scanner sends it', async () => {
    const it = await opened();
    await it.mailed('use pay');
    const before = it.entries().length;
    const url = `${it.linkOf()}&approved=yes`;
    for (let sent = 0; sent < 100; sent += 1) {
      expect((await it.fetch(url)).status).toBe(200);
      if (sent % 10 > 0) continue;
      const head = await it.fetch(url, { method: 'HEAD' });
      expect([head.status, await head.text()]).toEqual([200, '']);
    }
    for (const method of ['OPTIONS', 'PUT', 'DELETE'])
      expect((await it.get(it.linkOf(), { method })).status).toBe(405);
    expect(it.entries()).toHaveLength(before);
    expect(it.pool.awakeCount).toBe(0);
    expect(await it.question()).toMatchObject({
      state: expect.stringMatching(/open|presenting|parked/),
    });
  });

  test.each([
    ['another page', { origin: 'https://evil.example' }],
    ['a sandboxed page', { origin: 'null' }],
    ['another port', { origin: `${ORIGIN}:8443` }],
    ['a local page', { origin: 'http://localhost:3000' }],
    ['a program without an Origin', { origin: '' }],
  ])('ANSWER-PAGE-1: stays open after a form from %s', async (_, headers) => {
    const it = await opened();
    await it.mailed('use pay');
    const before = it.entries().length;
    expect((await it.post({ approved: 'yes' }, { headers })).status).toBe(403);
    expect(it.entries()).toHaveLength(before);
  });

  test('does not revoke an approval that lasts', async () => {
    const it = await opened({ links: { trust: 'link' } });
    await it.mailed('use pay');
    const { requestId = '' } = (await it.question()) ?? {};
    const lasts = { approved: true, lasts: 'session' } as const;
    await it.pool.use('ses', async (session) => {
      session.questionShown(requestId);
      expect(await session.answer(requestId, lasts)).toMatchObject({ accepted: true });
      const late = session.answer(requestId, { approved: false }, { onlyOpen: true });
      expect(await late).toEqual({ accepted: false, reason: 'over' });
    });
    expect((await it.post({ approved: 'no' })).status).toBe(409);
    await it.says('use pay');
    await it.environment.advance(MINUTE);
    expect(it.paid).toHaveLength(2);
  });

  test('refuses an answer if the call is no longer the one in the message', async () => {
    const it = await opened();
    await it.mailed('use pay');
    const other = answerLinks({ secret: 's'.repeat(32), url: PAGE });
    const question = await it.question();
    const [link] = other.create(
      { ...it.mail.sent[0], user: 'ada' } as never,
      { ...question, action: { toolName: 'pay', input: { amount: 4 } } } as never,
      it.environment.clock.now(),
    );
    const t = it.tokenOf(link?.url);
    expect((await it.get(link?.url)).text).toContain('The question has changed');
    const refused = await it.post({ approved: 'yes' }, { t });
    expect([refused.status, refused.text]).toEqual([409, expect.stringContaining('has changed')]);
    expect(it.paid).toEqual([]);
    expect((await it.post({ approved: 'yes' })).status).toBe(200);
  });
});

describe('a forwarded link', () => {
  test.each(['ben', null])(
    'ANSWER-PAGE-2: gives %s neither the content nor the answer',
    async (user) => {
      const it = await opened();
      await it.mailed('use pay');
      const before = it.entries().length;
      it.signIn(user);
      const page = await it.get();
      const refused = await it.post({ approved: 'yes' });
      for (const { status, text } of [page, refused]) {
        expect(status).toBe(user === null ? 401 : 403);
        expect(text).not.toMatch(/amount|ada|pay/);
      }
      expect(it.entries()).toHaveLength(before);
      it.signIn('ada');
      expect((await it.post({ approved: 'yes' })).status).toBe(200);
    },
  );

  test.each([
    ['another session', { sessionId: 'other', user: 'ada', role: 'user' }],
    ['a watcher', { sessionId: 'ses', user: 'ada', role: 'watcher' }],
    ['a look-alike', { sessionId: 'ses', user: '\u0430da', role: 'user' }],
  ] as const)('ANSWER-PAGE-2: does not accept the identity of %s', async (_, identity) => {
    const it = await opened({ serve: { authorize: () => identity } });
    await it.mailed('use pay');
    expect((await it.get()).status).toBe(403);
    expect((await it.post({ approved: 'yes' })).status).toBe(403);
    expect(it.paid).toEqual([]);
  });

  test('answers for its person if the app trusts links', async () => {
    const links = { trust: 'link', person: () => 'carl' } as const;
    const it = await opened({ links, answerableBy: ['carl'] });
    it.signIn(null);
    await it.mailed('use pay');
    expect((await it.get()).text).toContain('You answer as carl.');
    expect((await it.post({ approved: 'yes' })).status).toBe(200);
    expect(await it.question()).toMatchObject({ state: 'answered', answeredBy: 'carl' });
    expect(it.asked).toEqual([]);
  });

  test('does not answer for a person who may not answer', async () => {
    const links = { trust: 'link', person: () => 'ada' } as const;
    const it = await opened({ links, answerableBy: ['carl'] });
    await it.mailed('use pay');
    const [page, refused] = [await it.get(), await it.post({ approved: 'yes' })];
    expect([page.status, refused.status]).toEqual([403, 403]);
    expect(page.text).toContain('Another person has to answer');
    expect(it.paid).toEqual([]);
  });

  test('does not exist for a user who may not answer', async () => {
    const it = await opened({ answerableBy: ['carl'] });
    await it.mailed('use pay');
    expect(it.mail.links).toEqual([[]]);
    expect(it.mail.sent[0]).toMatchObject({ answerableBy: ['carl'] });
  });

  test("reads the app's own cookie", async () => {
    const it = await opened();
    await it.mailed('use pay');
    await it.get(it.linkOf(), { headers: { cookie: 'sid=1' } });
    expect(it.asked).toEqual(['link sid=1']);
  });
});

describe('a stale link', () => {
  test('ends exactly at its expiry, and says that the question is still open', async () => {
    const it = await opened();
    await it.mailed('use pay');
    // The message was sent five minutes after the question, one minute ago.
    await it.environment.advance(24 * HOUR - MINUTE - 1);
    expect((await it.get()).status).toBe(200);
    await it.environment.advance(1);
    const [page, refused] = [await it.get(), await it.post({ approved: 'yes' })];
    for (const { status, text } of [page, refused]) {
      expect([status, text]).toEqual([410, expect.stringContaining('This link has expired')]);
      expect(text).not.toContain('amount');
    }
    expect(it.paid).toEqual([]);
  });

  test('says that the question expired', async () => {
    const it = await opened({ links: { expiresAfterMs: 100 * HOUR } });
    await it.mailed('use pay');
    const { requestId = '' } = (await it.question()) ?? {};
    await it.pool.use('ses', (session) => session.questionShown(requestId));
    await it.environment.advance(48 * HOUR);
    expect((await it.get()).text).toContain('not answered in time');
    await it.environment.advance(HOUR);
    for (const { status, text } of [await it.get(), await it.post({ approved: 'yes' })])
      expect([status, text]).toEqual([410, expect.stringContaining('No longer open')]);
    expect(it.paid).toEqual([]);
  });

  test('says that the question was withdrawn', async () => {
    const it = await opened();
    await it.mailed('use pay');
    const { subagentId = '' } = (await it.question()) ?? {};
    await it.pool.use('ses', (session) => session.subagents.cancel(subagentId, 'no longer wanted'));
    await it.environment.settle();
    for (const { status, text } of [await it.get(), await it.post({ approved: 'yes' })])
      expect([status, text]).toEqual([410, expect.stringContaining('Withdrawn')]);
  });

  test('says that the question does not exist any more after the session has ended', async () => {
    const it = await opened();
    await it.mailed('use pay');
    await it.pool.use('ses', (session) => session.close());
    await it.environment.advance(MINUTE);
    for (const { status } of [await it.get(), await it.post({ approved: 'yes' })])
      expect(status).toBe(410);
    expect(it.paid).toEqual([]);
  });

  test.each(['', 'x', 'x.y', 'x'.repeat(1_000_000)])(
    'shows nothing if it is not valid (%.9j)',
    async (t) => {
      const it = await opened();
      await it.mailed('use pay');
      const page = await it.get(`${PAGE}?t=${t}`);
      expect([page.status, it.asked]).toEqual([403, []]);
      expect(page.text).not.toMatch(/amount|ada|ses/);
      expect([403, 413]).toContain((await it.post({ approved: 'yes' }, { t })).status);
      expect((await it.get(PAGE)).status).toBe(403);
    },
  );
});

describe('a question', () => {
  test('takes an answer in words', async () => {
    const it = await opened();
    await it.mailed('use name');
    const page = await it.get();
    expect(page.text).toContain('<textarea');
    expect((await it.post({ text: '  ' })).status).toBe(200);
    expect(await it.question()).toMatchObject({ answer: null });
    expect((await it.post({ text: 'Ada <b>' })).text).toContain('Answered');
    expect((await it.get()).text).toContain('The answer was: Ada &lt;b&gt;');
    expect(await it.question()).toMatchObject({ answer: 'Ada <b>', answeredBy: 'ada' });
  });

  test('takes one of its options as the answer', async () => {
    const it = await opened({
      ask: {
        options: [
          { id: 'a', label: 'A & B' },
          { id: '"', label: 'C' },
        ],
      },
    });
    await it.mailed('use name');
    const page = await it.get();
    expect(page.text).toContain('A &amp; B</button>');
    expect(page.text).toContain('value="&quot;"');
    expect((await it.post({ option: 'x' })).status).toBe(400);
    expect((await it.post({ approved: 'yes' })).status).toBe(400);
    expect((await it.post({ option: '"' })).status).toBe(200);
    expect(await it.question()).toMatchObject({ state: 'answered', answer: 'C' });
  });

  test('refuses more text than the server accepts', async () => {
    const it = await opened();
    await it.mailed('use name');
    expect((await it.post({ text: 'x'.repeat(1_000_000) })).status).toBe(413);
    expect(await it.question()).toMatchObject({ answer: null });
  });
});

describe('the page', () => {
  test('ANSWER-PAGE-4: escapes all text, and shows hidden characters as codes', async () => {
    const evil = `<script>alert(1)</script>"'><img src=x onerror=alert(1)> \u202Eevil`;
    const it = await opened({ input: { [evil]: evil, '</pre>': '\u0430mazon p\u0430ypal' } });
    await it.mailed('use pay');
    const { text } = await it.get();
    expect(text).not.toMatch(/<script|<img|\u202E|p\u0430ypal/);
    expect(text).toContain('&lt;script&gt;');
    expect(text).toContain('p\\u0430ypal');
    expect(text.match(/<\/pre>/g)).toHaveLength(1);
  });

  test('has no script, is not stored, framed or read by other pages, and posts only to itself', async () => {
    const it = await opened();
    await it.mailed('use pay');
    const { headers, text } = await it.get(it.linkOf(), { headers: { origin: ORIGIN } });
    expect(text).not.toMatch(/<script|javascript:| on\w+=| src=|style=/i);
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('referrer-policy')).toBe('same-origin');
    expect(headers.get('access-control-allow-origin')).toBeNull();
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; style-src 'sha256-[^']+'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'$/,
    );
  });

  test('refuses foreign host names, and leaves other paths to the clients', async () => {
    const it = await opened();
    await it.mailed('use pay');
    expect((await it.get(it.linkOf(), { headers: { host: 'evil.example' } })).status).toBe(403);
    expect((await it.get('https://app.example.com/other')).status).toBe(404);
    expect((await it.get('http://localhost/offstage?session=ses')).status).toBe(400);
  });

  test('says that nothing was recorded while no session can be opened', async () => {
    const it = await opened();
    await it.mailed('use pay');
    await it.pool.close();
    const refused = await it.post({ approved: 'yes' });
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5']);
    expect(it.paid).toEqual([]);
  });
});

test('sends the same link with each attempt to send a message', async () => {
  const mail = fakeChannel({ answers: ['fails', 'fails'] });
  const links = answerLinks({ secret: 's'.repeat(32), url: PAGE });
  const reach = { channels: { mail }, steps: [{ afterUnheardMs: 0, by: 'mail' }], links };
  const it = await opened({ talk: { reach } });
  await it.says('use pay');
  await it.environment.advance(HOUR);
  expect(mail.links).toHaveLength(3);
  expect(mail.links[0]).toHaveLength(1);
  expect(new Set(mail.links.map(([link]) => link?.url)).size).toBe(1);
});

test('sends no link with a result or a notice', async () => {
  const it = await opened();
  await it.says('hello');
  await it.pool.use('ses', (session) => void session.notifyBackground('News'));
  await it.environment.advance(HOUR);
  expect(it.mail.links).toEqual([[]]);
});

test.each([
  [{ links: { url: PAGE } }, /links/],
  [
    { links: answerLinks({ secret: 's'.repeat(32), url: `${ORIGIN}/offstage` }) },
    /path other than/,
  ],
])('refuses the option %j', (options, message) => {
  const authorize = () => null;
  expect(() => serve({ authorize, session: () => null, ...(options as object) })).toThrow(message);
});
