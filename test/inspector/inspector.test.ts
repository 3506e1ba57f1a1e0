// Who may view sessions and act on them, and which data leaves the process.

import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request as ask } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { memoryJournal, createRuntime } from '../../src/index.ts';
import { nodeEnvironment } from '../../src/adapters/node/index.ts';
import { inspector } from '../../src/inspector/index.ts';
import type { Wait } from '../../src/machines/index.ts';
import { turns } from '../support/crashes.ts';
import { orderMonitor } from '../support/order-monitor.ts';
import { simulatedEnvironment } from '../../src/testing/index.ts';
import { textTalk } from '../support/text-talk.ts';
import { calls, say, simpleTool } from '../support/subagent-runs.ts';
import { rideSession } from '../serve/support/served.ts';
import { mounted, TOKEN } from './support.ts';

const SECRET = 'the words of a user';

async function lived() {
  const journal = memoryJournal();
  const session = rideSession({ sessionId: 'ses_1', runtime: createRuntime({ journal }) });
  await session.start();
  await session.sendText(SECRET);
  await session.idle();
  return { journal, session };
}

/** Sends headers that `fetch` does not allow. */
async function statusOf(
  port: number,
  path: string,
  headers: Readonly<Record<string, string>>,
  method = 'GET',
): Promise<number | undefined> {
  const asked = ask({ port, host: '127.0.0.1', path, method, headers });
  asked.end();
  const [answer] = (await once(asked, 'response')) as [{ statusCode?: number; resume(): void }];
  answer.resume();
  return answer.statusCode;
}

test('INSPECTOR-1: refuses requests without the token, under a foreign host name or from a foreign page', async () => {
  const { journal, session } = await lived();
  const { port } = await mounted({ journal });
  const host = `127.0.0.1:${port}`;
  const authorization = `Bearer ${TOKEN}`;
  const path = '/inspect/api/entries?session=ses_1';
  expect(await statusOf(port, path, { host, authorization })).toBe(200);
  expect(await statusOf(port, path, { host })).toBe(401);
  expect(await statusOf(port, path, { host, authorization: `${authorization}x` })).toBe(401);
  expect(await statusOf(port, `${path}&token=${encodeURIComponent(TOKEN)}`, { host })).toBe(401);
  for (const name of [
    'evil.example',
    `127.0.0.1.evil.example:${port}`,
    `localhost.evil.example:${port}`,
    `evil.example@127.0.0.1:${port}`,
    '0.0.0.0',
  ])
    expect([name, await statusOf(port, path, { host: name, authorization })]).toEqual([name, 403]);
  const origin = 'http://evil.example';
  expect(await statusOf(port, path, { host, authorization, origin })).toBe(403);
  expect(await statusOf(port, path, { host, authorization, origin: 'null' })).toBe(403);
  expect(await statusOf(port, path, { host, authorization, origin: `http://${host}.x` })).toBe(403);
  expect(await statusOf(port, path, { host, origin }, 'OPTIONS')).toBe(403);
  const act = { host, authorization, origin, 'content-type': 'application/json' };
  expect(await statusOf(port, '/inspect/api/act', act, 'POST')).toBe(403);
  expect(await statusOf(port, '/inspect', { host }, 'PUT')).toBe(405);
  expect(await statusOf(port, '/inspect', { host })).toBe(200);
  expect(await statusOf(port, '/elsewhere', { host })).toBe(404);
  await session.close();
});

test('INSPECTED-2: sends message text only if the app allows it', async () => {
  const { journal, session } = await lived();
  const hidden = await mounted({ journal });
  const count = journal.read({ scope: 'ses_1' }).length;
  const all = async ({ ask: get }: Awaited<ReturnType<typeof mounted>>) => {
    const texts = [await (await get('entries?session=ses_1')).text()];
    for (let entry = 1; entry <= count; entry += 1)
      for (const id of ['session', 'outbox', 'interaction'])
        texts.push(await (await get(`at?session=ses_1&entry=${entry}&id=${id}`)).text());
    return texts.join('\n');
  };
  expect(await all(hidden)).not.toContain(SECRET);
  expect(await all(await mounted({ journal, redact: false }))).toContain(SECRET);
  await session.close();
});

test("INSPECTOR-2: acts only if `act` is set, and only through client frames under a user's name", async () => {
  const { journal, session } = await lived();
  const post = (page: Awaited<ReturnType<typeof mounted>>, body: unknown) =>
    page.ask('act', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const frame = { type: 'send', id: 1, text: 'hello' };
  const looks = await mounted({ journal });
  expect(await (await post(looks, { session: 'ses_1', frame })).json()).toMatchObject({
    ok: false,
    code: 'NOT_ALLOWED',
  });
  const acts = await mounted({
    journal,
    user: 'ann',
    act: (id) => (id === 'ses_1' ? session : null),
  });
  expect(await (await post(acts, { session: 'ses_1', frame })).json()).toEqual({
    ok: true,
    value: null,
  });
  expect(await (await post(acts, { session: 'other', frame })).json()).toMatchObject({
    code: 'SESSION_UNKNOWN',
  });
  const answer = { type: 'answer', id: 2, requestId: 'q', answer: { approved: true } };
  expect(await (await post(acts, { session: 'ses_1', frame: answer })).json()).toMatchObject({
    ok: true,
    value: { accepted: false, reason: 'unknown' },
  });
  for (const wrong of [
    null,
    7,
    {},
    { frame: { type: 'voice.take' } },
    { frame: { ...frame, text: 1 } },
  ])
    expect((await post(acts, wrong)).status).toBe(400);
  expect((await acts.ask('act', { method: 'POST', body: 'x' })).status).toBe(415);
  const said = JSON.stringify(journal.read({ scope: 'ses_1' }));
  expect(said).toContain('"by":"ann"');
  await session.close();
});

test('shows which subagents hold the run slots while another subagent is queued', async () => {
  const journal = memoryJournal();
  const worked = Promise.withResolvers<void>();
  const worker = {
    script: turns(calls(['dig', {}, 'c1']), say('done')),
    config: { tools: { dig: simpleTool(() => worked.promise.then(() => 'dug')) } },
  };
  const session = rideSession({
    sessionId: 'ses_1',
    runtime: createRuntime({ journal }),
    limits: { maxConcurrentPerSession: 1 },
    subagents: { left: worker, right: worker },
  });
  await session.start();
  await session.sendText('use left and right');
  const idOf = (wanted: string) =>
    session.subagents.list().find(({ name }) => name === wanted)?.id ?? '';
  const isOver = (): boolean =>
    session.subagents.list().every(({ state }) => state === 'completed');
  const { ask: get } = await mounted({ journal });
  /**
   * INSPECTED-1: the inspector reads the journal at intervals, so this repeats the request until all entries have been
   * read.
   */
  const read = async (): Promise<number> => {
    const { length } = journal.read({ scope: 'ses_1' });
    for (;;) {
      const asked = await get('entries?session=ses_1');
      if (((await asked.json()) as { count: number }).count >= length) return length;
    }
  };
  const at = async <T>(id: string): Promise<T> =>
    (await (
      await get(`at?session=ses_1&entry=${await read()}&id=${encodeURIComponent(id)}`)
    ).json()) as T;
  const waitOf = async (wanted: string): Promise<Wait | null> =>
    (await at<{ wait: Wait | null }>(`subagent ${idOf(wanted)}`)).wait;
  // Both take time on a busy machine.
  const patience = { timeout: 60_000 };
  await expect.poll(() => session.subagents.list().length, patience).toBe(2);
  await expect
    .poll(() => waitOf('right'), patience)
    .toMatchObject({
      cause: 'run_slot',
      on: idOf('left'),
      sentence: 'no run slot: 1 of 1',
      because: { of: 'subagent', id: idOf('left'), cause: 'tools' },
    });
  worked.resolve();
  await expect.poll(isOver, patience).toBe(true);
  expect(await waitOf('right')).toBeNull();
  await session.idle();
  const { usage } = session.store.getSnapshot().context;
  expect(usage.subagents.totalTokens).toBe(60);
  expect(await at('session')).toMatchObject({
    usage: {
      own: { inputTokens: usage.lead.inputTokens, totalTokens: usage.total.totalTokens - 60 },
      whole: usage.total,
    },
  });
  await session.close();
});

test('saves a session up to an entry as a test that fails if the machines behave differently', async () => {
  const journal = memoryJournal();
  const hostile = "`${process.exit(7)}` '); process.exit(7); //\u2028";
  const session = rideSession({ sessionId: 'ses 1/../x', runtime: createRuntime({ journal }) });
  await session.start();
  await session.sendText(hostile);
  await session.idle();
  await session.close();
  const open = await mounted({ journal, redact: false });
  const scope = encodeURIComponent('ses 1/../x');
  const { length } = journal.read({ scope: 'ses 1/../x' });
  const folder = await mkdtemp(join(tmpdir(), 'offstage-saved-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const source = new URL('../../src/entries/replay.ts', import.meta.url).href;
  const run = async (text: string) => {
    const file = join(folder, 'saved.test.mts');
    await writeFile(file, text.replace("'offstage/replay'", `'${source}'`));
    const { status, stdout } = spawnSync(process.execPath, ['--test', file], {
      encoding: 'utf8',
      env: { ...process.env, NODE_OPTIONS: '', NODE_TEST_CONTEXT: undefined },
    });
    return { status, stdout };
  };
  const saved = (await (await open.ask(`test?session=${scope}&entry=${length}`)).json()) as {
    name: string;
    text: string;
  };
  expect(saved.name).toBe(`ses_1_x-${length}.test.ts`);
  expect(saved.text).toContain('process.exit(7)');
  expect(await run(saved.text)).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('leads to the same state') as string,
  });
  const other = saved.text.replace(
    '\\"ledTo\\":{\\"connection\\":\\"',
    '\\"ledTo\\":{\\"connection\\":\\"un',
  );
  expect(other).not.toBe(saved.text);
  expect((await run(other)).status).toBe(1);
  for (const entry of ['0', String(length + 1), 'x'])
    expect((await open.ask(`test?session=${scope}&entry=${entry}`)).status).toBe(404);
  // Redacted text does not leave the process.
  const hidden = await mounted({ journal });
  const refused = await hidden.ask(`test?session=${scope}&entry=${length}`);
  expect(refused.status).toBe(403);
  expect(await refused.text()).not.toContain('process');
});

test('forks a session at an entry if allowed, without changing the original', async () => {
  const { journal, session } = await lived();
  await session.close();
  const before = JSON.stringify(journal.read({ scope: 'ses_1' }));
  const fork = async (page: Awaited<ReturnType<typeof mounted>>, body: unknown) =>
    page.ask('fork', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const wanted = { session: 'ses_1', entry: 3, to: 'ses_1-at-3' };
  const looks = await mounted({ journal, act: () => session });
  expect(await (await fork(looks, wanted)).json()).toMatchObject({ code: 'NOT_ALLOWED' });
  const forks = await mounted({ journal, forks: true });
  expect(await (await fork(forks, wanted)).json()).toEqual({
    ok: true,
    value: { session: 'ses_1-at-3', entries: 3 },
  });
  expect(journal.read({ scope: 'ses_1-at-3' })).toHaveLength(3);
  expect(await (await fork(forks, wanted)).json()).toMatchObject({ code: 'SESSION_EXISTS' });
  expect(await (await fork(forks, { ...wanted, session: 'no', to: 'b' })).json()).toMatchObject({
    code: 'UNKNOWN_SESSION',
  });
  expect(await (await fork(forks, { ...wanted, entry: 999, to: 'b' })).json()).toMatchObject({
    ok: false,
    code: 'INVALID_OPTION',
  });
  for (const wrong of [
    null,
    {},
    { ...wanted, to: '' },
    { ...wanted, to: '../x' },
    { ...wanted, entry: 1.5 },
  ])
    expect((await fork(forks, wrong)).status).toBe(400);
  expect((await forks.ask('fork', { method: 'POST', body: 'x' })).status).toBe(415);
  expect(JSON.stringify(journal.read({ scope: 'ses_1' }))).toBe(before);
});

test('reports a failing journal without ending the process', async () => {
  const { ask: get, errors } = await mounted({
    journal: {
      append() {},
      read: () => {
        throw new Error('the disk of ann');
      },
    },
  });
  const answer = await get('entries?session=ses_1');
  expect(answer.status).toBe(500);
  expect(await answer.text()).not.toContain('ann');
  expect(errors).toHaveLength(1);
  expect(await (await get('sessions')).json()).toEqual([]);
  expect((await get('at?session=ses_1')).status).toBe(500);
});

test.each([true, false])(
  'INSPECTED-4: reads new entries as they arrive, and keeps them when trimmed (readAfter: %s)',
  async (hasIt) => {
    const journal = memoryJournal({ keep: Infinity });
    const session = rideSession({ sessionId: 'ses_1', runtime: createRuntime({ journal }) });
    await session.start();
    const leave = session.attach();
    const whole: number[] = [];
    const later: number[] = [];
    const environment = { ...nodeEnvironment(), clock: { now: () => 1_000 } };
    const { ask } = await mounted({
      environment,
      journal: {
        append: () => {},
        read: (query) => {
          const found = journal.read(query);
          whole.push(found.length);
          return found;
        },
        ...(hasIt && {
          readAfter: (entry) => {
            const found = journal.readAfter(entry);
            later.push(found?.length ?? -1);
            return found;
          },
        }),
      },
    });
    const shown = async () => {
      const answer = await ask('entries?session=ses_1&after=0');
      const { entries } = (await answer.json()) as { entries: { type: string; unit: string }[] };
      return entries.map(({ type, unit }) => `${unit} ${type}`);
    };
    const kept = () => journal.read().map(({ unit, event }) => `${unit} ${event.type}`);
    expect(await shown()).toEqual(kept());
    const { length } = kept();
    await session.sendText('use book_ride');
    await expect.poll(() => session.store.getSnapshot().context.questions.length).toBe(1);
    await expect.poll(shown).toEqual(kept());
    if (hasIt)
      expect([whole, later.reduce((sum, count) => sum + count, 0)]).toEqual([
        [length],
        kept().length - length,
      ]);

    // The trim drops only entries that the inspector has already read, so the page loses nothing.
    const before = kept();
    const last = journal.read().at(-1);
    if (last) journal.trim(last);
    if (hasIt) expect(await shown()).toEqual(before);
    leave();
    await session.close();
    // The session starts again, and the page does not show its earlier entries.
    journal.forget('ses_1');
    const again = rideSession({ sessionId: 'ses_1', runtime: createRuntime({ journal }) });
    await again.start();
    await expect.poll(shown).toEqual(kept());
    await again.close();
  },
);

test('names the option that is invalid', () => {
  const journal = memoryJournal();
  expect(() => inspector({ journal, token: 'short' })).toThrow(/token/);
  expect(() => inspector({ journal, token: TOKEN, path: '/"><script>' })).toThrow(/path/);
  expect(() => inspector({ journal, token: TOKEN, password: 'x' } as never)).toThrow(/password/);
});

test('shows the conversation of a finished subagent, live and from the journal', async () => {
  const journal = memoryJournal({ keep: Infinity });
  const session = rideSession({
    sessionId: 'ses_1',
    runtime: createRuntime({ journal }),
    user: 'ann',
    subagents: {
      asker: {
        script: turns(
          calls(['ask_user', { question: 'Which colour?', options: [] }, 'c1']),
          calls(['pay', { amount: 7 }, 'c2']),
          say('It is blue.'),
        ),
        config: {
          interactive: true,
          tools: { pay: simpleTool(() => 'paid', { needsApproval: true }) },
        },
      },
    },
  });
  await session.start();
  const leave = session.attach();
  await session.sendText('use asker');
  const idOf = () => session.subagents.list()[0]?.id ?? '';
  const patience = { timeout: 20_000 };
  const isOpen = async (kind: string): Promise<string> => {
    const found = () =>
      session.store.getSnapshot().context.questions.find((each) => each.kind === kind)?.requestId;
    await expect.poll(found, patience).toBeDefined();
    return found() ?? '';
  };
  const question = await isOpen('question');
  session.subagents.send(idOf(), { content: 'No green, please' }, { by: 'carl' });
  session.questionShown(question);
  await session.answer(question, { text: 'blue' });
  const approval = await isOpen('approval');
  session.questionShown(approval);
  await session.answer(approval, { approved: true }, { by: 'dora' });
  await expect.poll(() => session.subagents.list()[0]?.state, patience).toBe('completed');
  await session.idle();
  for (let said = 0; said < 8; said += 1) await session.sendText(`word ${said}`);
  await session.idle();
  const id = idOf();
  interface Told {
    readonly said: readonly { readonly role: string; readonly text: string }[];
    readonly exchanged: readonly { readonly role: string; readonly text: string }[];
    readonly detail: { readonly answer?: string; readonly state?: string } | null;
  }
  const exchanged = [
    [`asks ${question}`, 'Which colour?'],
    ['message of carl, read before the next step', 'No green, please'],
    [`answer to ${question}`, 'blue'],
    [`asks ${approval}`, expect.stringContaining('(amount: 7): may I do that?')],
    [`answer to ${approval} of dora`, expect.stringContaining('approved')],
  ];
  const look = async (of: Pick<typeof journal, 'read' | 'append'>) => {
    const { ask: get } = await mounted({ journal: of, redact: false });
    let count = 0;
    await expect
      .poll(async () => {
        const got = (await (await get('entries?session=ses_1')).json()) as { count: number };
        return (count = got.count);
      }, patience)
      .toBe(of.read({ scope: 'ses_1' }).length);
    const at = async (entry: number, what: string): Promise<Told> =>
      (await (
        await get(`at?session=ses_1&entry=${entry}&id=${encodeURIComponent(what)}`)
      ).json()) as Told;
    for (const entry of [count, count - 1]) {
      const told = await at(entry, `subagent ${id}`);
      expect(told.exchanged.map(({ role, text }) => [role, text])).toEqual(exchanged);
      const said = told.said.map(({ text }) => text).join('\n');
      expect(said).toContain('Which colour?');
      expect(said).toContain('No green, please');
      expect(said).toContain('It is blue.');
      expect(await at(entry, `question ${question}`)).toMatchObject({
        detail: { answer: 'blue', state: 'over', question: 'Which colour?' },
      });
    }
    const first = await at(1, `question ${question}`);
    expect(first.detail).toBeNull();
  };
  await look(journal);
  leave();
  await session.close();
  await look(journal);
});

test('shows a service and its source, with their charts and the reasons why they are waiting', async () => {
  const journal = memoryJournal();
  const monitor = orderMonitor();
  const environment = simulatedEnvironment();
  const { session, start } = textTalk({
    sessionId: 'ses_1',
    environment,
    runtime: createRuntime({ journal, environment }),
    services: [monitor.service],
  });
  await start();
  await environment.settle();
  const { ask: get } = await mounted({ journal });
  const { count, entries } = (await (await get('entries?session=ses_1')).json()) as {
    count: number;
    entries: readonly { readonly changes: Readonly<Record<string, string | null>> }[];
  };
  const facts = Object.assign({}, ...entries.map(({ changes }) => changes)) as object;
  expect(facts).toMatchObject({
    'service order_monitor': 'idle',
    'source order_monitor/order-webhook': 'running',
  });
  const at = async (id: string) =>
    (await get(`at?session=ses_1&entry=${count}&id=${encodeURIComponent(id)}`)).json();
  expect(await at('service order_monitor')).toMatchObject({
    chart: 'service',
    value: { working: 'idle' },
    wait: { cause: 'event' },
  });
  expect(await at('source order_monitor/order-webhook')).toMatchObject({
    chart: 'source',
    value: { live: 'running' },
    wait: { sentence: 'it runs: no event has come since' },
  });
  await session.close();
});
