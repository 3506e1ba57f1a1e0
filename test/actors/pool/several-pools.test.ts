// SESSION-POOL-3 to SESSION-POOL-6, WAKE-SCHEDULER-1 to WAKE-SCHEDULER-4: the pools of several processes share one
// journal, and some of the processes die.

import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import {
  JournalError,
  createSessionPool,
  type SessionPoolOptions,
} from '../../../src/entries/journal.ts';
import { createRuntime, type Journal, type TextSession } from '../../../src/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { SimulatedProcess } from '../../../src/testing/doubles/simulated-process.ts';
import { SharedJournal, type SharedJournalOptions } from './shared-journal.ts';
import { paintingSession } from './painting-session.ts';

const IDLE_MS = 1000;
const ASK_MS = 600_000;
const LOOK_MS = 30_000;
const LEASE_MS = 15_000;
/** The time in which every pool completes a round. */
const ROUND_MS = 1.25 * LOOK_MS;
/** The maximum delay before a pool searches after a time that other pools also know. */
const SPREAD_MS = 1000;

function worldOf(options: Partial<SharedJournalOptions> = {}) {
  const environment = simulatedEnvironment();
  return { environment, shared: new SharedJournal(environment, { leaseMs: LEASE_MS, ...options }) };
}

type World = ReturnType<typeof worldOf>;

let processes = 0;

/** A process with a pool. */
function processOf(
  { environment, shared }: World,
  {
    around = (journal) => journal,
    ...rest
  }: Partial<SessionPoolOptions<TextSession>> & {
    readonly around?: (journal: Journal) => Journal;
  } = {},
) {
  processes += 1;
  const process = new SimulatedProcess(processes, environment);
  const errors: string[] = [];
  const opened: string[] = [];
  const said: string[] = [];
  const runtime = createRuntime({
    environment: process.environment,
    journal: around(shared.of(process)),
    snapshots: { trim: true },
  });
  const pool = createSessionPool<TextSession>({
    runtime,
    idleMs: IDLE_MS,
    lookMs: LOOK_MS,
    onError: (_error, where) => errors.push(where),
    open(sessionId) {
      opened.push(sessionId);
      return paintingSession({
        sessionId,
        runtime,
        environment,
        askMs: ASK_MS,
        slowMs: 5000,
        idempotent: true,
        said,
      });
    },
    ...rest,
  });
  const type = (id: string, text: string): Promise<void> =>
    pool.use(id, (session) => session.sendText(text));
  const idle = (): Promise<void> => environment.advance(2 * IDLE_MS + 1);
  const die = (): void => shared.kill(process);
  return { number: process.number, pool, errors, opened, said, type, idle, die };
}

const expired = expect.stringMatching(/^a: Told: .*did not respond in time/s) as string;

describe.each([
  ['a journal that lists them', {}],
  ['a journal that gives each process others', { gives: true }],
])('sessions that another process hibernated, in %s', (_, options) => {
  test("SESSION-POOL-3 WAKE-SCHEDULER-1: wakes when due in a pool that outlived the session's process", async () => {
    const world = worldOf(options);
    const other = processOf(world);
    await other.pool.start();
    const first = processOf(world);
    await first.type('a', 'use paint');
    await first.idle();
    expect(first.pool.awakeCount).toBe(0);
    first.die();
    await world.environment.advance(ASK_MS / 2);
    expect(other.opened).toEqual([]);
    await world.environment.advance(ASK_MS / 2 + ROUND_MS);
    expect(other.said.at(-1)).toEqual(expired);
    await other.idle();
    expect([other.opened, other.pool.awakeCount, other.errors]).toEqual([['a'], 0, []]);
  });

  test('SESSION-POOL-6: wakes in exactly one of the other pools', async () => {
    const world = worldOf(options);
    const others = [processOf(world), processOf(world), processOf(world)];
    for (const { pool } of others) await pool.start();
    const first = processOf(world);
    for (const id of ['a', 'b', 'c']) await first.type(id, 'use paint');
    await first.idle();
    first.die();
    await world.environment.advance(ASK_MS + ROUND_MS + SPREAD_MS);
    expect(others.flatMap(({ opened }) => opened).toSorted()).toEqual(['a', 'b', 'c']);
    expect(others.flatMap(({ said }) => said)).toHaveLength(3);
    expect(others.flatMap(({ errors }) => errors)).toEqual([]);
  });

  test("SESSION-POOL-4: resumes in another process once the dead process's claim has expired", async () => {
    const world = worldOf(options);
    const other = processOf(world);
    await other.pool.start();
    const first = processOf(world);
    await first.type('a', 'use slow');
    await world.environment.advance(10);
    first.die();
    await world.environment.advance(LEASE_MS - 10);
    expect(other.opened).toEqual([]);
    await world.environment.advance(ROUND_MS + 5001);
    expect(other.said.join()).toContain('It took a while.');
    expect([other.opened, other.errors]).toEqual([['a'], []]);
  });
});

test('resumes due sessions only on request if searches are turned off', async () => {
  const world = worldOf();
  const { pool, opened } = processOf(world, { lookMs: Infinity });
  await pool.start();
  expect(world.environment.backgroundTimers).toBe(0);
  const first = processOf(world);
  await first.type('a', 'use slow');
  first.die();
  await world.environment.advance(LEASE_MS + ROUND_MS);
  expect(opened).toEqual([]);
  await pool.start();
  expect(opened).toEqual(['a']);
});

describe('a pool that drains', () => {
  test('lets busy sessions finish, refuses new ones, and closes', async () => {
    const world = worldOf({ gives: true });
    const [leaving, staying] = [processOf(world), processOf(world)];
    await leaving.type('waits', 'use paint');
    await leaving.type('busy', 'use slow');
    const drained = leaving.pool.drain();
    let isDrained = false;
    void drained.then(() => (isDrained = true));
    await world.environment.advance(100);
    expect(leaving.pool.awake('waits')).toBeUndefined();
    expect(leaving.pool.awake('busy')).toBeDefined();
    await expect(leaving.type('waits', 'hello')).rejects.toMatchObject({ code: 'POOL_DRAINING' });
    await expect(leaving.type('new', 'hello')).rejects.toMatchObject({ code: 'POOL_DRAINING' });
    await staying.type('waits', 'hello');
    expect(isDrained).toBe(false);
    await world.environment.advance(6000);
    await drained;
    expect(leaving.said.join()).toContain('It took a while.');
    await expect(leaving.type('busy', 'hello')).rejects.toMatchObject({ code: 'POOL_CLOSED' });
    expect([leaving.errors, staying.errors]).toEqual([[], []]);
  });

  test('signals every caller that holds a session, including one that arrives later', async () => {
    const world = worldOf();
    const { pool, type } = processOf(world);
    await type('a', 'use slow');
    const drainings: AbortSignal[] = [];
    const keep = (): Promise<void> =>
      pool.use('a', async (_session, draining) => {
        drainings.push(draining);
        if (!draining.aborted) await once(draining, 'abort');
      });
    const kept = keep();
    await world.environment.settle();
    expect(drainings.map(({ aborted }) => aborted)).toEqual([false]);
    const drained = pool.drain();
    await Promise.all([kept, keep()]);
    expect(drainings.map(({ aborted }) => aborted)).toEqual([true, true]);
    await world.environment.advance(6000);
    await drained;
  });

  test('closes at its time limit even if a session is busy, so that another pool resumes the session', async () => {
    const world = worldOf({ gives: true });
    const [leaving, staying] = [processOf(world), processOf(world)];
    await staying.pool.start();
    await leaving.type('a', 'use slow');
    const drained = leaving.pool.drain({ withinMs: 1000 });
    await world.environment.advance(1001);
    await drained;
    expect(staying.opened).toEqual([]);
    await world.environment.advance(ROUND_MS + 5001);
    expect(staying.said.join()).toContain('It took a while.');
    expect([leaving.errors, staying.errors]).toEqual([[], []]);
  });

  test.each([[{ withinMs: -1 }], [{ soon: true }], [null]])('refuses %j', async (options) => {
    const { pool } = processOf(worldOf());
    await expect(pool.drain(options as never)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });
});

describe('a session of a living process', () => {
  test('moves to another pool if its own process cannot continue it', async () => {
    const world = worldOf();
    const other = processOf(world);
    await other.pool.start();
    let isRefused = false;
    const first = processOf(world, {
      around: (journal) => ({
        ...journal,
        append(entry) {
          if (isRefused) throw new JournalError('TOO_LARGE', 'not this one', { retryable: false });
          return journal.append(entry);
        },
      }),
    });
    await first.type('a', 'use slow');
    await world.environment.advance(10);
    isRefused = true;
    await expect(first.type('a', 'and that')).rejects.toMatchObject({ code: 'TOO_LARGE' });
    await world.environment.advance(10);
    expect([first.pool.awakeCount, world.shared.holderOf('a')]).toEqual([0, null]);
    await world.environment.advance(ROUND_MS + 5001);
    expect(other.said.join()).toContain('It took a while.');
  });

  test('stays in its process, and is not claimed by another pool', async () => {
    const world = worldOf();
    const other = processOf(world);
    await other.pool.start();
    const first = processOf(world);
    let release = (): void => {};
    const using = first.pool.use('a', () => new Promise<void>((resolve) => (release = resolve)));
    await world.environment.advance(20 * ROUND_MS);
    release();
    await using;
    expect([other.opened, other.errors, world.shared.refused]).toEqual([[], [], []]);
  });

  test('SESSION-POOL-6 WAKE-SCHEDULER-2: gets one try per round if the journal cannot show who claimed it', async () => {
    const world = worldOf({ knowsClaims: false });
    const other = processOf(world, { maxAwake: 1, idleMs: 60 * LOOK_MS });
    const first = processOf(world);
    let release = (): void => {};
    const using = first.pool.use('a', () => new Promise<void>((resolve) => (release = resolve)));
    await world.environment.advance(10);
    await other.type('mine', 'hello');
    await other.pool.start();
    // The process that owns the session is late, so the session is due as if it were asleep.
    await world.shared.store.wakeTimes.set('a', 1);
    // The process's other times keep arriving in between.
    for (let count = 0; count < 200; count += 1) {
      await world.shared.store.wakeTimes.set(`gone ${count}`, world.environment.clock.now() + 1000);
      await world.environment.advance(5000);
    }
    const rounds = world.shared.rounds.filter(({ by }) => by === other.number).length;
    const tries = world.shared.refused.filter(({ scope }) => scope === 'a').length;
    expect(tries).toBe(rounds);
    expect(tries).toBeGreaterThan((1_000_000 / ROUND_MS) * 0.9);
    // No session was opened for this, and none was hibernated to make room.
    expect(other.opened.filter((id) => !id.startsWith('gone'))).toEqual(['mine']);
    expect(other.errors).toEqual([]);
    release();
    await using;
  });
});

test('WAKE-SCHEDULER-2: retries a failed start once per round, and releases the claim after each try', async () => {
  const world = worldOf();
  const first = processOf(world);
  await first.type('a', 'hello');
  await first.idle();
  await first.pool.close();
  await world.shared.store.wakeTimes.set('a', 0);
  const other = processOf(world, {
    around: (journal) => ({
      ...journal,
      read: () => {
        throw new Error('the disk is gone');
      },
    }),
  });
  await other.pool.start();
  await world.environment.advance(10 * LOOK_MS);
  const rounds = world.shared.rounds.filter(({ by }) => by === other.number).length;
  expect(rounds).toBeGreaterThan(7);
  expect(other.errors).toHaveLength(rounds);
  expect(other.errors[0]).toContain('waking a: the disk is gone');
  expect(world.shared.holderOf('a')).toBeNull();
});

test('SESSION-POOL-6: releases its claim on a session that it could not resume', async () => {
  const world = worldOf();
  await world.shared.store.wakeTimes.set('nobody', 0);
  const { pool, errors } = processOf(world, {
    open() {
      throw new Error('no room');
    },
  });
  await world.shared.store.wakeTimes.set('failing', 0);
  await pool.start();
  expect(errors).toHaveLength(2);
  expect([world.shared.holderOf('nobody'), world.shared.holderOf('failing')]).toEqual([null, null]);

  const other = processOf(world);
  await other.pool.start();
  expect(await world.shared.store.wakeTimes.earliest({ limit: 9 })).toEqual([]);
  expect(world.shared.holderOf('nobody')).toBeNull();
  expect(other.errors).toEqual([]);
});

test('WAKE-SCHEDULER-3: searches at different times in processes that start at the same instant', async () => {
  const world = worldOf();
  const all = [processOf(world), processOf(world), processOf(world), processOf(world)];
  await Promise.all(all.map(({ pool }) => pool.start()));
  await world.environment.advance(20 * LOOK_MS);
  const later = world.shared.rounds.slice(all.length).map(({ at }) => at);
  expect(later.length).toBeGreaterThan(60);
  expect(new Set(later).size).toBe(later.length);

  // One pool handles a time that all pools know, and the others then drop it.
  const first = processOf(world);
  await first.type('a', 'use paint');
  await first.idle();
  await world.environment.advance(ASK_MS + SPREAD_MS);
  expect([first, ...all].flatMap(({ opened }) => opened)).toEqual(['a', 'a']);
  expect(world.shared.refused).toEqual([]);
});

test('WAKE-SCHEDULER-4: stops searching once closed, and cannot be started again', async () => {
  const world = worldOf();
  const { pool, opened } = processOf(world);
  await pool.start();
  await pool.close();
  const { length } = world.shared.rounds;
  await world.shared.store.wakeTimes.set('a', 0);
  await world.environment.advance(10 * LOOK_MS);
  expect([world.shared.rounds.length, opened]).toEqual([length, []]);
  await expect(pool.start()).rejects.toMatchObject({ code: 'POOL_CLOSED' });

  // This also applies to a pool that was searching when it was closed.
  const claimed: string[] = [];
  const other = processOf(world, {
    around: (journal) => ({
      ...journal,
      claim(scope) {
        claimed.push(scope);
        return journal.claim?.(scope);
      },
    }),
  });
  const looking = other.pool.start();
  await Promise.all([other.pool.close(), looking]);
  expect([claimed, other.errors]).toEqual([[], []]);
});

test('SESSION-POOL-1: releases every claim when a pool is closed during a search', async () => {
  const world = worldOf();
  await world.shared.store.wakeTimes.set('a', 0);
  let answer = (): void => {};
  const { pool, opened } = processOf(world, {
    around: (journal) => ({
      ...journal,
      async claim(scope) {
        await journal.claim?.(scope);
        await new Promise<void>((resolve) => (answer = resolve));
      },
    }),
  });
  const looking = pool.start();
  await world.environment.settle();
  let isClosed = false;
  const closed = pool.close().then(() => (isClosed = true));
  await world.environment.settle();
  // The next pool in this process would lose its claim together with the claim of this search.
  expect(isClosed).toBe(false);
  answer();
  await Promise.all([closed, looking]);
  expect([world.shared.holderOf('a'), opened]).toEqual([null, []]);
});

test('does not get a second claim while its pool is closing', async () => {
  const world = worldOf();
  const claimed: string[] = [];
  const { pool, type } = processOf(world, {
    around: (journal) => ({
      ...journal,
      claim(scope) {
        claimed.push(scope);
        return journal.claim?.(scope);
      },
    }),
  });
  await type('a', 'use slow');
  await world.environment.advance(10);
  await pool.close();
  expect(claimed).toEqual(['a']);
});
