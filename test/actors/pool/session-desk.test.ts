// SESSION-DESK-1 to SESSION-DESK-4: the desk lists what waits in all sessions, even if processes die.

import { describe, expect, test } from 'vitest';
import { sessionDesk } from '../../../src/actors/pool/session-desk.ts';
import { createSessionPool, type Desk } from '../../../src/entries/journal.ts';
import {
  createRuntime,
  memoryJournal,
  type Journal,
  type SessionEvent,
} from '../../../src/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { SimulatedProcess } from '../../../src/testing/doubles/simulated-process.ts';
import { turns } from '../../support/crashes.ts';
import { calls, say, simpleTool } from '../../support/subagent-runs.ts';
import { textTalk } from '../../support/text-talk.ts';
import { SharedJournal } from './shared-journal.ts';

const IDLE_MS = 1000;
const LEASE_MS = 15_000;

interface Home {
  readonly environment: ReturnType<typeof simulatedEnvironment>;
  /** The environment of the process. @defaultValue `environment` */
  readonly own?: SimulatedProcess['environment'];
  readonly journal: Journal;
}

/** A pool whose sessions have the subagents `paint`, which asks, `slow`, which works, and `hers`, which asks Ann. */
function poolOf({ environment, own = environment, journal }: Home) {
  const errors: string[] = [];
  const runtime = createRuntime({ environment: own, journal, snapshots: { trim: true } });
  const slow = () =>
    new Promise((resolve) => void own.scheduler.schedule(() => resolve('done'), 20_000));
  const asking = () =>
    turns(calls(['ask_user', { question: 'Which colour?' }]), ({ results }) =>
      say(`Painted: ${JSON.stringify(results.at(-1))}`),
    );
  const config = { interactive: true, inputTimeout: 600_000 };
  const pool = createSessionPool({
    runtime,
    idleMs: IDLE_MS,
    onError: (_error, where) => errors.push(where),
    open: (sessionId) =>
      textTalk({
        sessionId,
        runtime,
        environment,
        subagents: {
          paint: { script: asking(), config },
          hers: { script: asking(), config: { ...config, answerableBy: ['ann'] } },
          slow: {
            script: turns(calls(['wait', {}]), say('It took a while.')),
            config: { tools: { wait: simpleTool(slow, { idempotent: true }) } },
          },
        },
      }).session,
  });
  const type = (id: string, text: string): Promise<void> =>
    pool.use(id, (session) => session.sendText(text));
  const idle = (): Promise<void> => environment.advance(2 * IDLE_MS + 1);
  const names = async (query: Parameters<typeof pool.desk>[0] = {}): Promise<string[]> =>
    (await pool.desk(query)).items.map(({ sessionId, kind, id }) => `${sessionId} ${kind} ${id}`);
  return { pool, errors, type, idle, names };
}

function homeOf(change: (desk: Desk) => Partial<Desk> = () => ({})) {
  const environment = simulatedEnvironment();
  const inner = memoryJournal({ keep: Infinity });
  const journal: Journal = { ...inner, desk: { ...inner.desk, ...change(inner.desk) } };
  return { environment, journal };
}

describe('the desk', () => {
  test('lists questions and running work of sleeping and awake sessions until they end', async () => {
    const home = homeOf();
    const { pool, type, idle, names, errors } = poolOf(home);
    await type('a', 'use paint');
    await idle();
    await type('b', 'use slow');
    await home.environment.advance(10);
    expect(pool.awake('a')).toBeUndefined();
    const { items, next } = await pool.desk({ kind: 'question' });
    expect(next).toBeNull();
    expect(items).toEqual([
      {
        sessionId: 'a',
        kind: 'question',
        id: 'sub_1.q1',
        since: expect.any(Number) as number,
        title: 'Which colour?',
        subagentId: 'sub_1',
        subagentName: 'paint',
        expiresAt: null,
        more: 0,
      },
    ]);
    expect(await names({ kind: 'running' })).toEqual(['a running sub_1', 'b running sub_2']);
    await type('a', 'blue');
    await home.environment.advance(30_000);
    // No client is attached, so no user has received the results.
    expect(await names()).toEqual(['a unheard call_1', 'b unheard call_1']);
    expect(errors).toEqual([]);
  });

  test('lists a result until the user has received it', async () => {
    const home = homeOf();
    const { pool, names, idle } = poolOf(home);
    const notice = await pool.use('a', async (session) => {
      const id = session.notifyBackground('The kettle is on.', { label: 'Kettle' });
      await session.committed();
      return id;
    });
    await idle();
    expect(pool.awakeCount).toBe(0);
    const { items } = await pool.desk({ kind: 'unheard' });
    expect(items).toMatchObject([{ id: notice, title: 'Kettle', subagentId: null }]);
    await pool.use('a', async (session) => {
      session.shown(notice);
      await session.committed();
    });
    await idle();
    expect(await names({ kind: 'unheard' })).toEqual([]);
  });

  test('finds the questions that an identity may answer, page by page', async () => {
    const home = homeOf();
    const { pool, type, idle, names } = poolOf(home);
    for (const id of ['a', 'b', 'c', 'd']) {
      await type(id, id < 'c' ? 'use hers' : 'use paint');
      await home.environment.advance(10);
    }
    await idle();
    const question = (id: string): string => `${id} question sub_${'abcde'.indexOf(id) + 1}.q1`;
    const hers = ['a', 'b', 'c', 'd'].map(question);
    expect(await names({ answerableBy: 'ann' })).toEqual(hers);
    for (const other of ['Ann', 'ann ', 'an', '=ann', 'all', 'listed'])
      expect(await names({ answerableBy: other, kind: 'question' })).toEqual(hers.slice(2));
    const first = await pool.desk({ answerableBy: 'ann', limit: 2 });
    expect(first.items.map(({ answerableBy }) => answerableBy)).toEqual([['ann'], ['ann']]);
    // Between two pages, one question is answered and another one is asked.
    await pool.use('c', (session) => {
      session.questionShown('sub_3.q1');
      return session.answer('sub_3.q1', { text: 'blue' });
    });
    await type('e', 'use hers');
    await idle();
    const after = first.next ?? '';
    expect(await names({ answerableBy: 'ann', after })).toEqual([question('d'), question('e')]);
  });

  test('forgets the rows of a session that is closed', async () => {
    const home = homeOf();
    const { pool, type, idle, names, errors } = poolOf(home);
    await type('a', 'use paint');
    await home.environment.advance(10);
    expect(await names()).toHaveLength(2);
    await pool.use('a', (session) => session.close());
    await idle();
    expect(await names()).toEqual([]);
    expect(errors).toEqual([]);
  });

  test.each([
    [{ limit: 0 }, 'limit'],
    [{ limit: 501 }, 'limit'],
    [{ kind: 'others' }, 'kind'],
    [{ after: 'somewhere' }, 'after'],
    [{ after: '[1,"",""]' }, 'after'],
    [{ answerableBy: '' }, 'answerableBy'],
    [{ answerableBy: 'ann', kind: 'running' }, 'answerableBy'],
    [{ offset: 3 }, 'offset'],
  ])('refuses %j', async (query, name) => {
    const { pool } = poolOf(homeOf());
    await expect(pool.desk(query as never)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining(name) as string,
    });
  });

  test('names the member that a journal lacks, and leaves its pool usable', async () => {
    const { environment, journal } = homeOf();
    const { desk: _, ...rest } = journal;
    const { pool, type, idle, errors } = poolOf({ environment, journal: rest });
    await type('a', 'hello');
    await idle();
    await expect(pool.desk()).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('`desk`') as string,
    });
    expect(errors).toEqual([]);
  });
});

describe('SESSION-DESK-3: rows that cannot be stored', () => {
  test('keep the session in memory until they are stored', async () => {
    let isFull = false;
    const home = homeOf((desk) => ({
      set(scope, rows) {
        if (isFull) throw new Error('the disk is full');
        return desk.set(scope, rows);
      },
    }));
    const { pool, type, idle, names, errors } = poolOf(home);
    await type('a', 'hello');
    await home.environment.advance(10);
    isFull = true;
    await type('a', 'use paint');
    await idle();
    expect([pool.awakeCount, errors.length > 0, await names()]).toEqual([1, true, []]);
    isFull = false;
    await idle();
    expect(await names()).toEqual(['a question sub_1.q1', 'a running sub_1']);
    await idle();
    expect(pool.awakeCount).toBe(0);
  });
});

/**
 * Runs a conversation in a process that dies before or after its write number `at`, continues it in another process,
 * and returns the questions on the desk and in the journal's entries.
 */
async function afterKill(at: number, isWritten: boolean) {
  const environment = simulatedEnvironment();
  const shared = new SharedJournal(environment, { leaseMs: LEASE_MS });
  const process = new SimulatedProcess(1, environment);
  const journal = shared.of(process);
  let writes = 0;
  const first = poolOf({
    environment,
    own: process.environment,
    journal: {
      ...journal,
      desk: {
        find: (query) => journal.desk?.find(query) ?? [],
        async set(scope, rows) {
          writes += 1;
          if (writes === at && !isWritten) shared.kill(process);
          await journal.desk?.set(scope, rows);
          if (writes === at) shared.kill(process);
          await journal.desk?.set(scope, rows);
        },
      },
    },
  });
  const steps = [
    () => first.type('a', 'use paint'),
    () => first.type('b', 'use hers'),
    () => first.idle(),
    () => first.type('a', 'blue'),
    () => first.idle(),
    () => first.type('a', 'use slow'),
    () => environment.advance(25_000),
    () => first.type('a', 'use paint'),
    () => first.pool.use('b', (session) => session.close()),
    () => first.idle(),
  ];
  for (const step of steps) {
    if (!process.isAlive) break;
    void step().catch(() => {});
    await environment.advance(50);
  }
  const isKilled = !process.isAlive;
  if (!isKilled) shared.kill(process);
  const heir = new SimulatedProcess(2, environment);
  const second = poolOf({ environment, own: heir.environment, journal: shared.of(heir) });
  await environment.advance(LEASE_MS + 1);
  await second.pool.start();
  await environment.advance(1000);
  const { items } = await second.pool.desk({ kind: 'question' });
  const asked = await Promise.all(
    ['a', 'b'].map(async (id) =>
      (await second.pool.questions(id)).map((it) => ({ ...it, sessionId: id })),
    ),
  );
  const name = ({ sessionId, id }: { sessionId: string; id: string }): string =>
    `${sessionId} ${id}`;
  return {
    isKilled,
    errors: second.errors,
    onDesk: items.map(name),
    inEntries: asked.flat().map(({ sessionId, requestId: id }) => name({ sessionId, id })),
  };
}

describe('SESSION-DESK-2: a process that dies', () => {
  test.each([
    ['before', false],
    ['after', true],
  ])('%s each write leaves rows that the next process corrects', async (_when, isWritten) => {
    let at = 1;
    for (; ; at += 1) {
      const { isKilled, onDesk, inEntries, errors } = await afterKill(at, isWritten);
      expect([at, onDesk.toSorted(), errors]).toEqual([at, inEntries.toSorted(), []]);
      if (!isKilled) break;
    }
    expect(at).toBeGreaterThan(8);
  });
});

describe('SESSION-DESK-2: outdated rows', () => {
  test.each([
    ['a session without anything open', false],
    ['a closed session', true],
  ])('disappear for %s when a pool continues its sessions', async (_whose, isClosed) => {
    const home = homeOf();
    const { pool, type, idle } = poolOf(home);
    await type('a', 'hello');
    if (isClosed) await pool.use('a', (session) => session.close());
    await idle();
    await pool.close();
    // A process that died left the session awake, and its row.
    await home.journal.wakeTimes?.set('a', 0);
    const row = { id: 'question q1', kind: 'question', since: 1, answerableBy: null, body: '{}' };
    await home.journal.desk?.set('a', [row]);
    const next = poolOf(home);
    expect(await next.names()).toHaveLength(1);
    await next.pool.start();
    await home.environment.advance(10);
    expect([await next.names(), next.errors]).toEqual([[], []]);
  });
});

describe('SESSION-DESK-4: a session with very many questions', () => {
  test('has the 50 oldest on the desk, with clipped titles and the number of the others', async () => {
    const { journal } = homeOf();
    if (!journal.desk) throw new Error('Expected a desk');
    const desk = sessionDesk(journal.desk, 'a');
    const question = (number: number, state: 'open' | 'answered'): SessionEvent => ({
      type: 'question.changed',
      question: {
        requestId: `q${number}`,
        subagentId: 'sub_1',
        subagentName: 'paint',
        kind: 'approval',
        question: '😀'.repeat(500_000),
        options: [],
        state,
        askedAt: 1000 - number,
        dueAt: null,
        timeoutMs: 1,
        answer: null,
      },
    });
    for (let number = 0; number < 60; number += 1) desk.take(question(number, 'open'));
    await desk.write();
    const query = { kinds: ['approval'], limit: 100 };
    const found = await journal.desk.find(query);
    expect(found).toHaveLength(50);
    expect(found[0]).toMatchObject({ id: 'approval q59', since: 941 });
    const { title, more } = JSON.parse(found[0]?.body ?? '') as { title: string; more: number };
    expect([title.length < 540, title.isWellFormed(), more]).toEqual([true, true, 10]);
    for (let number = 20; number < 60; number += 1) desk.take(question(number, 'answered'));
    expect(desk.isWritten()).toBe(false);
    await desk.write();
    expect(
      (await journal.desk.find(query)).map(
        ({ body }) => (JSON.parse(body) as { more: number }).more,
      ),
    ).toEqual(Array.from({ length: 20 }, () => 0));
    // An event that changes nothing on the desk causes no write.
    desk.take(question(3, 'open'));
    expect(desk.isWritten()).toBe(true);
  });
});
