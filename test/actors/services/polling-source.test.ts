import { describe, expect, test } from 'vitest';
import {
  pollingSource,
  type Polled,
  type PollingSourceOptions,
} from '../../../src/actors/services/polling-source.ts';
import type { ExternalEvent } from '../../../src/actors/ports/event-source.ts';
import { order, serviceStage } from './support.ts';

/** Creates a service with a polling source, and a record of its polls. */
function pollingStage(
  poll: PollingSourceOptions<number>['poll'],
  options: Partial<PollingSourceOptions<number>> = {},
  service: Parameters<typeof serviceStage>[0] = {},
) {
  const polls: { at: number; cursor: number | undefined; signal: AbortSignal }[] = [];
  const source = pollingSource<number>({
    intervalMs: 1_000,
    jitter: 0,
    poll: (signal, cursor) => {
      polls.push({ at: stage.environment.clock.now() - startedAt, cursor, signal });
      return poll(signal, cursor);
    },
    ...options,
  });
  const stage = serviceStage({ ...service, eventSources: [source] }, { autoEnd: true });
  const startedAt = stage.environment.clock.now();
  return { ...stage, polls, seen: () => stage.invoked.map(({ event }) => event.data) };
}

const found = (...ids: number[]): ExternalEvent[] => ids.map((id) => order({ id }));
const never = (): Promise<never> => new Promise(() => {});

describe('an event source that polls', { tags: ['B76'] }, () => {
  test('uses its defaults for undefined options', async () => {
    const stage = pollingStage(() => Promise.resolve(found(1)), { name: undefined });
    await stage.start();
    expect(stage.service.view.sources).toMatchObject([{ name: 'polling' }]);
  });

  test('polls immediately and then at each interval, and passes the last cursor to each poll', async () => {
    const stage = pollingStage(
      (_signal, cursor = 0) => Promise.resolve({ events: found(cursor + 1), cursor: cursor + 1 }),
      { cursor: 40 },
    );
    await stage.start();
    await stage.environment.advance(2_000);
    expect(stage.polls.map(({ at, cursor }) => [at, cursor])).toEqual([
      [0, 40],
      [1_000, 41],
      [2_000, 42],
    ]);
    expect(stage.seen()).toEqual([{ id: 41 }, { id: 42 }, { id: 43 }]);
  });

  test('varies the interval by the configured jitter', async () => {
    const stage = pollingStage(() => Promise.resolve([]), { jitter: 0.5 });
    await stage.start();
    await stage.environment.advance(20_000);
    const gaps = stage.polls.slice(1).map(({ at }, n) => at - (stage.polls[n]?.at ?? 0));
    expect(gaps.length).toBeGreaterThan(10);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(500);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(1_500);
    expect(new Set(gaps).size).toBeGreaterThan(5);
  });

  test('P1: never overlaps a slow poll with the next', async () => {
    let release: (polled: Polled<number>) => void = () => {};
    const stage = pollingStage(() => new Promise((resolve) => (release = resolve)));
    await stage.start();
    await stage.environment.advance(10_000);
    expect(stage.polls).toHaveLength(1);
    release({ events: [] });
    await stage.environment.advance(1_000);
    expect(stage.polls).toHaveLength(2);
  });

  test.each([undefined, null, {}, { events: 'none' }])(
    'reports the expected shape when the result of a poll is not a list of events: %o',
    async (polled) => {
      const stage = pollingStage(() => Promise.resolve(polled as never));
      await stage.start();
      expect(stage.errors.map(String)).toEqual([
        expect.stringContaining('expected poll() to resolve to events, or to { events, cursor }'),
      ]);
    },
  );

  test('P2: skips an event whose key is known, even in a later poll', async () => {
    const stage = pollingStage(() => Promise.resolve(found(1, 2, 2)), {
      keyOf: ({ data }) => String((data as { id: number }).id),
    });
    await stage.start();
    await stage.environment.advance(3_000);
    expect(stage.polls).toHaveLength(4);
    expect(stage.seen()).toEqual([{ id: 1 }, { id: 2 }]);
  });

  test('P2: remembers only the newest keys', async () => {
    let poll = 0;
    const stage = pollingStage(() => Promise.resolve(found((poll += 1) % 3)), {
      maxKeys: 2,
      keyOf: ({ data }) => String((data as { id: number }).id),
    });
    await stage.start();
    await stage.environment.advance(3_000);
    expect(stage.seen()).toEqual([{ id: 1 }, { id: 2 }, { id: 0 }, { id: 1 }]);
  });

  test('P2: offers an event again before the next poll if the queue was full', async () => {
    const source = pollingSource({
      intervalMs: 1_000,
      jitter: 0,
      poll: () => {
        polls += 1;
        return Promise.resolve(polls === 1 ? found(1, 2, 3) : []);
      },
    });
    let polls = 0;
    const stage = serviceStage({ eventSources: [source], maxWaiting: 1 });
    await stage.start();
    expect(polls).toBe(1);
    await stage.end('1');
    await stage.environment.advance(1_000);
    expect(polls).toBe(1);
    await stage.end('2');
    await stage.end('3');
    await stage.environment.advance(1_000);
    expect(stage.invoked.map(({ event }) => event.data)).toEqual([{ id: 1 }, { id: 2 }, { id: 3 }]);
    expect(polls).toBe(2);
    expect(stage.service.view.counts.told).toBe(3);
  });

  test('P3: retries a failed poll after the backoff, with the same cursor', async () => {
    const stage = pollingStage((_signal, cursor = 0) => {
      if (stage.polls.length === 2) return Promise.reject(new Error('503'));
      return Promise.resolve({ events: found(cursor), cursor: cursor + 1 });
    });
    await stage.start();
    await stage.environment.advance(1_000);
    expect(stage.service.view.sources[0]).toMatchObject({ state: 'backing_off', error: '503' });
    await stage.environment.advance(1_000);
    expect(stage.polls.map(({ cursor }) => cursor)).toEqual([undefined, 1, 1]);
    expect(stage.seen()).toEqual([{ id: 0 }, { id: 1 }]);
  });

  test('P1: aborts a poll at its timeout before the next poll starts', async () => {
    let end: () => void = () => {};
    const stage = pollingStage(
      () =>
        stage.polls.length === 1
          ? // The poll ignores its signal.
            new Promise((resolve) => (end = () => resolve([])))
          : Promise.resolve(found(7)),
      { timeoutMs: 5_000 },
    );
    await stage.start();
    await stage.environment.advance(5_000);
    expect(stage.polls[0]?.signal.aborted).toBe(true);
    expect(stage.service.view.sources[0]?.error).toBe('polling: no end of the poll after 5000 ms');
    await stage.environment.advance(3_000);
    expect(stage.polls).toHaveLength(1);
    expect(stage.service.view.sources[0]?.error).toContain('has not ended yet');
    end();
    await stage.environment.advance(60_000);
    expect(stage.seen()[0]).toEqual({ id: 7 });
  });

  test('aborts a running poll when stopped, without reporting a failure', async () => {
    const stage = pollingStage(never);
    await stage.start();
    const isStopped = stage.stop();
    await stage.environment.settle();
    expect(isStopped()).toBe(true);
    expect(stage.polls[0]?.signal.aborted).toBe(true);
    expect(stage.errors).toEqual([]);
    expect(stage.environment.pendingTimers).toBe(0);
  });

  test('validates the result of a poll', async () => {
    const stage = pollingStage(() => Promise.resolve({ items: [] } as never));
    await stage.start();
    expect(String(stage.errors[0])).toContain('expected poll() to resolve to events');
  });

  test.each([
    ['intervalMs', { intervalMs: 0 }],
    ['jitter', { jitter: 2 }],
    ['poll', { poll: undefined }],
  ])('names the invalid option in the error: %s', (name, options) => {
    expect(() =>
      pollingSource({ intervalMs: 1, poll: () => Promise.resolve([]), ...options } as never),
    ).toThrow(name);
  });
});
