// SESSION-POOL-1 to SESSION-POOL-4: sessions stay in memory only while they work.

import { describe, expect, test } from 'vitest';
import {
  JournalError,
  memoryWakeTimes,
  type WakeTimes,
  createSessionPool,
  type SessionPool,
  type SessionPoolOptions,
} from '../../../src/entries/journal.ts';
import {
  CapacityError,
  createRuntime,
  memoryJournal,
  type Journal,
  type TextSession,
} from '../../../src/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { textTalk } from '../../support/text-talk.ts';
import { paintingSession } from './painting-session.ts';

const IDLE_MS = 1000;
const ASK_MS = 60_000;

/** Creates the parts that outlive processes. */
function worldOf() {
  const environment = simulatedEnvironment();
  const wakeTimes = memoryWakeTimes();
  const journal: Journal = { ...memoryJournal({ keep: Infinity }), wakeTimes };
  return { environment, journal, wakeTimes };
}

type World = ReturnType<typeof worldOf>;

function poolOf(
  { environment, journal }: World,
  {
    journal: given = journal,
    ...rest
  }: Partial<SessionPoolOptions<TextSession>> & { readonly journal?: Journal } = {},
) {
  const errors: string[] = [];
  const opened: string[] = [];
  const said: string[] = [];
  const runtime = createRuntime({
    environment,
    journal: given,
    snapshots: { trim: true },
  });
  const pool = createSessionPool<TextSession>({
    runtime,
    idleMs: IDLE_MS,
    onError: (_error, where) => errors.push(where),
    open(sessionId) {
      opened.push(sessionId);
      return paintingSession({
        sessionId,
        runtime,
        environment,
        askMs: ASK_MS,
        slowMs: 20_000,
        said,
      });
    },
    ...rest,
  });
  const type = (id: string, text: string): Promise<void> =>
    pool.use(id, (session) => session.sendText(text));
  /** Waits longer than an idle session stays in memory. */
  const idle = (): Promise<void> => environment.advance(2 * IDLE_MS + 1);
  return { pool, errors, opened, said, type, idle };
}

/** Writes of wake times are slow after `begin` has been called, and write number `fails` fails. */
function slowTimes({ environment, wakeTimes: inner }: World, fails = Infinity) {
  let isSlow = false;
  let set = 0;
  const wakeTimes: WakeTimes = {
    async set(scope, at) {
      if (isSlow) {
        await new Promise<void>((resolve) => void environment.scheduler.schedule(resolve, 100));
        set += 1;
        if (set === fails) throw new Error('the disk is full');
      }
      await inner.set(scope, at);
    },
    earliest: (query) => inner.earliest(query),
  };
  return { wakeTimes, begin: () => (isSlow = true), end: () => (isSlow = false) };
}

const openQuestion = (pool: SessionPool<TextSession>, id: string): Promise<string | undefined> =>
  pool.use(
    id,
    (session) =>
      session.store.getSnapshot().context.questions.find(({ state }) => state === 'open')
        ?.requestId,
  );

describe('a session of a pool', () => {
  test('leaves memory when it is idle, and resumes with the whole conversation when it is used', async () => {
    const world = worldOf();
    const { pool, type, idle, opened, said, errors } = poolOf(world);
    await type('a', 'hello');
    await world.environment.advance(10);
    expect(pool.awakeCount).toBe(1);
    await idle();
    expect(pool.awakeCount).toBe(0);
    expect(pool.awake('a')).toBeUndefined();
    await type('a', 'again');
    await idle();
    const transcript = await pool.use('a', (session) =>
      session.store.getSnapshot().context.transcript.map(({ text }) => text),
    );
    expect(transcript).toEqual(['hello', 'You said: hello', 'again', 'You said: again']);
    expect(opened).toEqual(['a', 'a', 'a']);
    expect(said).toEqual(['a: You said: hello', 'a: You said: again']);
    expect(errors).toEqual([]);
  });

  test('SESSION-POOL-2: stays awake while a subagent is working, but not while a question is waiting', async () => {
    const world = worldOf();
    const { pool, type, idle, said } = poolOf(world);
    await type('a', 'use slow');
    await idle();
    expect(pool.awakeCount).toBe(1);
    await world.environment.advance(20_000);
    expect(said.join()).toContain('It took a while.');
    await idle();
    expect(pool.awakeCount).toBe(0);

    await type('b', 'use paint');
    await idle();
    expect(pool.awakeCount).toBe(0);
    const requestId = await openQuestion(pool, 'b');
    await idle();
    await type('b', 'blue');
    await idle();
    expect(requestId).toBe('sub_2.q1');
    expect(said.at(-1)).toMatch(/^b: Told: .*Painted: .*blue/s);
    expect(pool.awakeCount).toBe(0);
  });

  test('shows its open questions without waking up, until it is closed', async () => {
    const world = worldOf();
    const { pool, type, idle, opened } = poolOf(world);
    for (const id of ['asleep', 'awake', 'idle', 'closed'])
      await type(id, id === 'idle' ? 'hello' : 'use paint');
    await idle();
    await pool.use('closed', (session) => session.close());
    await world.environment.advance(10);
    await pool.use('awake', () => undefined);
    expect(pool.awakeCount).toBe(1);
    const wakes = opened.length;
    const found = async (id: string) => (await pool.questions(id)).map(({ question }) => question);
    expect(await found('asleep')).toEqual(['Which colour?']);
    expect(await found('awake')).toEqual(['Which colour?']);
    for (const id of ['idle', 'closed', 'unknown']) expect(await found(id)).toEqual([]);
    expect(opened).toHaveLength(wakes);
  });

  test('reports the error of its journal to a caller that asks for its open questions', async () => {
    const world = worldOf();
    const { journal } = world;
    let isBroken = false;
    const { pool, type, idle } = poolOf(world, {
      journal: {
        ...journal,
        read: (query) => {
          if (query?.scope === 'a' && isBroken) throw new Error('the disk is broken');
          return journal.read(query);
        },
      },
    });
    for (const id of ['a', 'b']) await type(id, 'use paint');
    await idle();
    isBroken = true;
    await expect(pool.questions('a')).rejects.toThrow('the disk is broken');
    expect(await pool.questions('b')).toHaveLength(1);
    for (const id of ['', 'a'.repeat(1e6), 7])
      await expect(pool.questions(id as string)).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
      });
  });

  test('SESSION-POOL-2: stays awake while a caller is using it', async () => {
    const world = worldOf();
    const { pool, idle } = poolOf(world);
    let release = (): void => {};
    const using = pool.use('a', () => new Promise<void>((resolve) => (release = resolve)));
    await idle();
    await idle();
    expect(pool.awakeCount).toBe(1);
    release();
    await using;
    await idle();
    expect(pool.awakeCount).toBe(0);
  });

  test('SESSION-POOL-3: wakes at its own deadline without waking another session', async () => {
    const world = worldOf();
    const { type, idle, said, opened } = poolOf(world);
    await type('a', 'use paint');
    await type('b', 'hello');
    await idle();
    opened.length = 0;
    await world.environment.advance(ASK_MS);
    expect(opened).toEqual(['a']);
    expect(said.at(-1)).toMatch(/^a: Told: .*did not respond in time/s);
  });

  test('SESSION-POOL-3: wakes in the pool of another process', async () => {
    const world = worldOf();
    const first = poolOf(world);
    await first.type('a', 'use paint');
    await first.idle();
    await first.pool.close();
    const second = poolOf(world);
    await second.pool.start();
    expect(second.opened).toEqual([]);
    await world.environment.advance(ASK_MS);
    expect(second.said.at(-1)).toMatch(/^a: Told: .*did not respond in time/s);
    expect(first.opened).toEqual(['a']);
  });

  test('SESSION-POOL-4: resumes in the next process if it was awake when its process died', async () => {
    const world = worldOf();
    let isDead = false;
    const never = new Promise<never>(() => {});
    const dying: Journal = {
      ...world.journal,
      append: (entry) => (isDead ? never : world.journal.append(entry)),
    };
    const times: WakeTimes = {
      set: (scope, at) => (isDead ? never : world.wakeTimes.set(scope, at)),
      earliest: (query) => world.wakeTimes.earliest(query),
    };
    const first = poolOf(world, { journal: { ...dying, wakeTimes: times } });
    for (const id of ['a', 'b', 'c']) await first.type(id, 'use slow');
    await first.type('d', 'hello');
    await world.environment.advance(10);
    isDead = true;
    const second = poolOf(world);
    await second.pool.start();
    expect(second.opened.toSorted()).toEqual(['a', 'b', 'c', 'd']);
    await world.environment.advance(30_000);
    expect(second.said.filter((words) => words.includes('It took a while.'))).toHaveLength(3);
    expect(second.pool.awakeCount).toBe(0);
  });

  test('SESSION-POOL-1: serves a caller that requests it while it is being unloaded', async () => {
    const world = worldOf();
    const { pool, type, idle, opened, errors } = poolOf(world);
    await type('a', 'hello');
    await world.environment.advance(10);
    const live = pool.awake('a');
    const leaving = pool.close();
    await leaving;
    await expect(pool.use('a', () => 1)).rejects.toMatchObject({ code: 'POOL_CLOSED' });
    expect(live?.store.getSnapshot().context.transcript).toHaveLength(2);

    const other = poolOf(world, { maxAwake: 1 });
    await other.type('a', 'one');
    await world.environment.advance(10);
    // The pool hibernates a to make room for b, and a is used again at once.
    const both = Promise.all([other.type('b', 'two'), other.type('a', 'three')]);
    await world.environment.advance(10);
    await both;
    await other.idle();
    expect(other.opened).toEqual(['a', 'b', 'a']);
    expect(other.errors).toEqual([]);
    await idle();
    expect([opened, errors]).toEqual([['a'], []]);
  });

  test('leaves memory when maxAwake is exceeded, if it has been idle longest', async () => {
    const world = worldOf();
    const { pool, type } = poolOf(world, { maxAwake: 2 });
    for (const id of ['a', 'b', 'c']) {
      await type(id, 'hello');
      await world.environment.advance(10);
    }
    expect(pool.awakeCount).toBe(2);
    expect(pool.awake('a')).toBeUndefined();
  });

  test('ends when it is closed, so that its id starts a new session', async () => {
    const world = worldOf();
    const { pool, type, errors } = poolOf(world);
    await type('a', 'hello');
    await pool.use('a', (session) => session.close());
    expect(pool.awakeCount).toBe(0);
    expect(await world.wakeTimes.earliest({ limit: 9 })).toEqual([]);
    await type('a', 'again');
    const transcript = await pool.use(
      'a',
      (session) => session.store.getSnapshot().context.transcript,
    );
    expect(transcript[0]?.text).toBe('again');
    expect(errors).toEqual([]);
  });

  test('rejects the caller after a failed start, but can be started again', async () => {
    const world = worldOf();
    let isInUse = true;
    const claimed: Journal = {
      ...world.journal,
      claim() {
        if (isInUse) throw new CapacityError('SCOPE_IN_USE', 'another process writes it');
      },
    };
    const { pool, type, errors } = poolOf(world, { journal: claimed });
    await expect(type('a', 'hello')).rejects.toMatchObject({ code: 'SCOPE_IN_USE' });
    expect(pool.awakeCount).toBe(0);
    isInUse = false;
    await type('a', 'hello');
    expect(pool.awakeCount).toBe(1);
    expect(errors).toEqual([]);
  });

  test('SESSION-POOL-3: stays awake until its wake time can be stored', async () => {
    const world = worldOf();
    let isBroken = false;
    const wakeTimes: WakeTimes = {
      set(scope, at) {
        if (isBroken) throw new Error('the disk is full');
        return world.wakeTimes.set(scope, at);
      },
      earliest: (query) => world.wakeTimes.earliest(query),
    };
    const { pool, type, idle, errors, opened } = poolOf(world, {
      journal: { ...world.journal, wakeTimes },
    });
    await type('a', 'use paint');
    await world.environment.advance(10);
    isBroken = true;
    await idle();
    expect(pool.awake('a')).toBeDefined();
    expect(errors.at(-1)).toContain('putting a away: the disk is full');
    isBroken = false;
    await idle();
    expect([pool.awakeCount, opened]).toEqual([0, ['a']]);

    // All sessions have to be unloaded, whatever their wake times are.
    await type('a', 'red');
    isBroken = true;
    await pool.close();
    expect(pool.awakeCount).toBe(0);
    expect(errors.at(-1)).toContain('the time of a: the disk is full');
  });

  test('SESSION-POOL-2: stays awake if input arrives while its wake time is being written', async () => {
    const world = worldOf();
    const slow = slowTimes(world);
    const { pool, type, idle, said, opened } = poolOf(world, {
      journal: { ...world.journal, wakeTimes: slow.wakeTimes },
    });
    await type('a', 'hello');
    await world.environment.advance(10);
    const session = pool.awake('a');
    slow.begin();
    while (pool.awake('a')) await world.environment.advance(50);
    await session?.sendText('use slow');
    await world.environment.advance(30_000);
    await idle();
    expect(said.join()).toContain('It took a while.');
    expect([pool.awakeCount, opened]).toEqual([0, ['a']]);
  });

  test.each([
    ['is written down', Infinity],
    ['cannot be written down', 1],
    ['cannot be written down again', 2],
  ])('SESSION-POOL-1: starts again if it ended while its wake time %s', async (_, fails) => {
    const world = worldOf();
    const slow = slowTimes(world, fails);
    const { pool, type, idle, said, errors } = poolOf(world, {
      journal: { ...world.journal, wakeTimes: slow.wakeTimes },
    });
    await type('a', 'hello');
    await world.environment.advance(10);
    const session = pool.awake('a');
    slow.begin();
    while (pool.awake('a')) await world.environment.advance(50);
    const closed = session?.close();
    await world.environment.advance(1000);
    await closed;
    slow.end();
    await idle();
    expect(pool.awakeCount).toBe(0);
    expect(await world.wakeTimes.earliest({ limit: 9 })).toEqual([]);
    await type('a', 'anew');
    await world.environment.advance(10);
    expect(said.at(-1)).toBe('a: You said: anew');
    expect(errors.filter((error) => !error.includes('the disk is full'))).toEqual([]);
  });

  test('keeps its wake time if another process holds or takes over its claim', async () => {
    const world = worldOf();
    await world.wakeTimes.set('a', 42);
    const claimed: Journal = {
      ...world.journal,
      claim() {
        throw new CapacityError('SCOPE_IN_USE', 'another process writes it');
      },
    };
    const { type } = poolOf(world, { journal: claimed });
    await expect(type('a', 'hello')).rejects.toMatchObject({ code: 'SCOPE_IN_USE' });
    expect(await world.wakeTimes.earliest({ limit: 9 })).toEqual([{ scope: 'a', at: 42 }]);

    let isFenced = false;
    const fenced: Journal = {
      ...world.journal,
      append(entry) {
        if (isFenced) throw new JournalError('FENCED', 'no more', { retryable: false });
        return world.journal.append(entry);
      },
    };
    const other = poolOf(world, { journal: fenced });
    await other.type('b', 'hello');
    isFenced = true;
    await world.wakeTimes.set('b', 43);
    await expect(other.type('b', 'again')).rejects.toMatchObject({ code: 'FENCED' });
    await world.environment.advance(10);
    expect(other.pool.awakeCount).toBe(0);
    expect(await world.wakeTimes.earliest({ limit: 9 })).toContainEqual({ scope: 'b', at: 43 });
  });

  test('SESSION-POOL-4: resumes even if a dead process still held its claim when the next process started', async () => {
    const world = worldOf();
    let isDead = false;
    const never = new Promise<never>(() => {});
    const first = poolOf(world, {
      journal: {
        ...world.journal,
        append: (entry) => (isDead ? never : world.journal.append(entry)),
        wakeTimes: {
          ...world.wakeTimes,
          set: (...word) => (isDead ? never : world.wakeTimes.set(...word)),
        },
      },
    });
    await first.type('a', 'use slow');
    await world.environment.advance(10);
    isDead = true;
    let isInUse = true;
    const second = poolOf(world, {
      journal: {
        ...world.journal,
        claim() {
          if (isInUse) throw new CapacityError('SCOPE_IN_USE', 'another process writes it');
        },
      },
    });
    await second.pool.start();
    await world.environment.advance(14_000);
    isInUse = false;
    expect(second.pool.awakeCount).toBe(0);
    await world.environment.advance(60_000);
    expect(second.said.join()).toContain('It took a while.');
    expect(second.errors).toEqual([]);
  });

  test('SESSION-POOL-3: gets checked again later if the check at its wake time failed', async () => {
    const world = worldOf();
    let isBroken = false;
    const wakeTimes: WakeTimes = {
      set: (scope, at) => world.wakeTimes.set(scope, at),
      earliest(query) {
        if (isBroken) throw new Error('nobody answers');
        return world.wakeTimes.earliest(query);
      },
    };
    const { type, idle, said, errors } = poolOf(world, {
      journal: { ...world.journal, wakeTimes },
    });
    await type('a', 'use paint');
    await idle();
    isBroken = true;
    await world.environment.advance(ASK_MS);
    expect(errors.at(-1)).toContain('nobody answers');
    isBroken = false;
    await world.environment.advance(ASK_MS);
    expect(said.at(-1)).toMatch(/^a: Told: .*did not respond in time/s);
  });

  test('SESSION-LIFE-6: completes a close that a crash interrupted, and then starts as a new session', async () => {
    const world = worldOf();
    let isDead = false;
    const journal: Journal = {
      ...world.journal,
      async append(entry) {
        if (!isDead) await world.journal.append(entry);
        isDead ||= entry.event.type === 'session.close';
        if (isDead) await new Promise(() => {});
      },
    };
    const before = poolOf(world, { journal });
    await before.type('a', 'hello');
    void before.pool.use('a', (session) => session.close());
    await world.environment.settle();
    expect(isDead).toBe(true);

    const { pool, type, opened, errors } = poolOf(world);
    await type('a', 'who is there?');
    expect(opened).toEqual(['a', 'a']);
    const texts = await pool.use('a', (session) =>
      session.store.getSnapshot().context.transcript.map(({ text }) => text),
    );
    expect(texts).toContain('who is there?');
    expect(texts).not.toContain('hello');
    expect(errors).toEqual([]);
  });

  test('SESSION-POOL-5: stays closed even if a search finds its wake time', async () => {
    const world = worldOf();
    const first = poolOf(world);
    await first.type('a', 'hello');
    await first.pool.use('a', (session) => session.close());
    // The process died before it could remove the wake time.
    await world.wakeTimes.set('a', 0);
    const entries = (await world.journal.read()).length;
    const { pool, type, said, errors } = poolOf(world);
    const starting = pool.start();
    // A use gets its session even while the scheduler is only searching.
    await Promise.all([starting, type('b', 'hello')]);
    expect((await world.journal.read({ scope: 'a' })).length).toBe(entries);
    expect(pool.awake('a')).toBeUndefined();
    expect(await world.wakeTimes.earliest({ limit: 9 })).toEqual([{ scope: 'b', at: 0 }]);

    await world.wakeTimes.set('a', 0);
    await Promise.all([pool.start(), type('a', 'anew')]);
    await world.environment.advance(10);
    expect(said).toEqual(['b: You said: hello', 'a: You said: anew']);
    expect(errors).toEqual([]);
  });

  test('closes while a session is starting, even if that start fails', async () => {
    const world = worldOf();
    let refuse: (error: Error) => void = () => {};
    const journal: Journal = {
      ...world.journal,
      read: ({ scope } = {}) =>
        scope === 'a'
          ? new Promise((_, reject) => (refuse = reject))
          : world.journal.read({ ...(scope && { scope }) }),
    };
    const { pool, type } = poolOf(world, { journal });
    const all = Promise.allSettled([type('a', 'hello'), type('b', 'hello')]);
    const closing = pool.close();
    await world.environment.settle();
    refuse(new Error('the disk is gone'));
    expect(await all).toMatchObject([
      { reason: { message: 'the disk is gone' } },
      { reason: { code: 'POOL_CLOSED' } },
    ]);
    await closing;
    expect(pool.awakeCount).toBe(0);
  });

  test('unloads sessions after more than maxAwake were busy at the same time', async () => {
    const world = worldOf();
    const { pool, type } = poolOf(world, { maxAwake: 2, idleMs: 100 });
    const all = (text: string) => Promise.all(['a', 'b', 'c', 'd'].map((id) => type(id, text)));
    await all('hello');
    await world.environment.advance(60);
    await all('again');
    expect(pool.awakeCount).toBe(4);
    await world.environment.advance(60);
    expect(pool.awakeCount).toBe(2);
  });

  test('SESSION-POOL-7: refuses callers beyond `maxBusy` until another caller has finished', async () => {
    const world = worldOf();
    const { pool, type, opened, idle } = poolOf(world, { maxBusy: 2 });
    const { promise: over, resolve: end } = Promise.withResolvers<void>();
    const used = Promise.all(['a', 'b'].map((id) => pool.use(id, () => over)));
    const refused = pool.use('c', () => 'never');
    await expect(refused).rejects.toBeInstanceOf(CapacityError);
    await expect(refused).rejects.toMatchObject({
      code: 'POOL_FULL',
      message: expect.stringContaining('at most 2 may be (maxBusy)'),
    });
    expect(opened).toEqual(['a', 'b']);
    // An awake session needs no further capacity.
    await type('a', 'hello');
    end();
    await used;
    await idle();
    await type('c', 'hello');
    expect(opened).toEqual(['a', 'b', 'c']);
  });

  test('refuses a session other than the requested one', async () => {
    const world = worldOf();
    const { pool } = poolOf(world, {
      open: () => textTalk({ environment: world.environment }).session,
    });
    await expect(pool.use('a', () => {})).rejects.toThrow(/asked for the session "a" and made/);
    expect(pool.awakeCount).toBe(0);
  });

  test('passes an error thrown in `use` to the caller, and keeps working', async () => {
    const world = worldOf();
    const { pool, type } = poolOf(world);
    const failing = pool.use('a', () => {
      throw new Error('mine');
    });
    await expect(failing).rejects.toThrow('mine');
    await type('a', 'hello');
    expect(pool.awakeCount).toBe(1);
  });

  test.each([
    [{ idleMs: -1 }, 'idleMs'],
    [{ maxAwake: 0 }, 'maxAwake'],
    [{ maxBusy: 0 }, 'maxBusy'],
    [{ open: 'no' as never }, 'open'],
  ])('refuses %j', (options, name) => {
    expect(() => poolOf(worldOf(), options)).toThrow(
      expect.objectContaining({
        code: 'INVALID_OPTION',
        message: expect.stringContaining(name) as string,
      }) as Error,
    );
  });
});

describe('sleeping sessions with a schedule', () => {
  test('wake once, each at its own time, and use no memory until then', async () => {
    const world = worldOf();
    const { pool, said, opened, errors } = poolOf(world, { lookMs: Infinity, maxAwake: 20 });
    const HOUR = 3_600_000;
    const start = world.environment.clock.now();
    // A real session writes its wake time; the others belong to sessions that another process has put to sleep.
    for (const id of ['a', 'b'])
      await pool.use(id, (session) =>
        session.schedule({ key: 'k', at: start + (id === 'a' ? 1 : 2) * HOUR, say: `for ${id}` }),
      );
    for (let n = 0; n < 10_000; n += 1)
      await world.wakeTimes.set(`other-${n}`, start + 10 * HOUR + n);
    await world.environment.advance(10 * IDLE_MS);
    expect(pool.awakeCount).toBe(0);
    await world.environment.advance(HOUR);
    expect(opened).toEqual(['a', 'b', 'a']);
    await world.environment.advance(HOUR + 10 * IDLE_MS);
    expect(opened.filter((id) => id === 'b')).toHaveLength(2);
    expect(said.filter((line) => line.includes('for a'))).toHaveLength(1);
    expect(said.filter((line) => line.includes('for b'))).toHaveLength(1);
    expect(errors).toEqual([]);
    await pool.close();
  });
});
