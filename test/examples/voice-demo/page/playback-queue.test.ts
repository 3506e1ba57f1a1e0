import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  PlaybackQueue,
  type PlayoutReport,
} from '../../../../examples/voice-demo/page/audio/playback-queue.ts';

const RATE_HZ = 24_000;
/** What an audio thread asks for at once. */
const QUANTUM = 128;

const tone = (samples: number, value = 1000): Int16Array => new Int16Array(samples).fill(value);

function pull(queue: PlaybackQueue, samples = QUANTUM) {
  const output = new Float32Array(samples);
  const reports = queue.pull(output);
  return { reports, played: [...output].map((value) => Math.round(value * 32_768)) };
}

/** Pulls until the queue is empty. */
function drain(queue: PlaybackQueue) {
  const reports: PlayoutReport[] = [];
  const played: number[] = [];
  while (queue.queuedMs > 0) {
    const step = pull(queue);
    reports.push(...step.reports);
    played.push(...step.played.filter((value) => value !== 0));
  }
  return { reports, played };
}

describe('playing', () => {
  test('is silence when there is nothing', () => {
    const { reports, played } = pull(new PlaybackQueue(RATE_HZ));
    expect(reports).toEqual([]);
    expect(new Set(played)).toEqual(new Set([0]));
  });

  test('waits for 60 ms of sound, then begins at once', () => {
    const queue = new PlaybackQueue(RATE_HZ);
    queue.push('a', tone(480));
    expect(pull(queue).played[0]).toBe(0);
    queue.push('a', tone(960));
    expect(pull(queue).played[0]).toBe(1000);
  });

  test('does not wait for ever: a short item is played', () => {
    const queue = new PlaybackQueue(RATE_HZ);
    queue.push('a', tone(10));
    const { reports, played } = drain(queue);
    expect(played).toHaveLength(10);
    expect(reports).toEqual([{ itemId: 'a', playedMs: (10 * 1000) / RATE_HZ }]);
  });

  test('PLAYBACK-QUEUE-2: reports about every 100 ms, and at the end', () => {
    const queue = new PlaybackQueue(RATE_HZ);
    queue.push('a', tone(RATE_HZ));
    const { reports } = drain(queue);
    const steps = reports.map(
      ({ playedMs }, index) => playedMs - (reports[index - 1]?.playedMs ?? 0),
    );
    expect(Math.max(...steps)).toBeLessThan(110);
    expect(reports.length).toBeLessThanOrEqual(10);
    expect(reports.at(-1)).toEqual({ itemId: 'a', playedMs: 1000 });
  });

  test('PLAYBACK-QUEUE-2: an item is reported to its end before the next one', () => {
    const queue = new PlaybackQueue(RATE_HZ);
    queue.push('a', tone(2000));
    queue.push('b', tone(2000));
    const { reports } = drain(queue);
    const lastOfA = reports.findLastIndex(({ itemId }) => itemId === 'a');
    const firstOfB = reports.findIndex(({ itemId }) => itemId === 'b');
    expect(reports[lastOfA]?.playedMs).toBeCloseTo((2000 * 1000) / RATE_HZ);
    expect(firstOfB).toBeGreaterThan(lastOfA);
  });

  test('an item that ran dry goes on counting where it was', () => {
    const queue = new PlaybackQueue(RATE_HZ);
    queue.push('a', tone(2400));
    drain(queue);
    queue.push('a', tone(2400));
    expect(drain(queue).reports.at(-1)).toEqual({ itemId: 'a', playedMs: 200 });
  });
});

describe('clear', () => {
  test('says exactly how much was played, and nothing is played after', () => {
    const queue = new PlaybackQueue(RATE_HZ);
    queue.push('a', tone(RATE_HZ));
    for (let count = 0; count < 15; count++) pull(queue);
    expect(queue.clear()).toEqual({ itemId: 'a', playedMs: (15 * QUANTUM * 1000) / RATE_HZ });
    expect(queue.queuedMs).toBe(0);
    expect(new Set(pull(queue).played)).toEqual(new Set([0]));
  });

  test('PLAYBACK-QUEUE-3: items that had not begun are reported as such, and only the first of each', () => {
    const queue = new PlaybackQueue(RATE_HZ);
    queue.push('a', tone(RATE_HZ));
    queue.push('b', tone(RATE_HZ));
    expect(queue.clear()).toEqual({ itemId: 'a', playedMs: 0 });
  });

  test('with an empty queue repeats the last word', () => {
    const queue = new PlaybackQueue(RATE_HZ);
    queue.push('a', tone(2400));
    drain(queue);
    expect(queue.clear()).toEqual({ itemId: 'a', playedMs: 100 });
  });

  test('before anything there is nothing to say', () => {
    expect(new PlaybackQueue(RATE_HZ).clear()).toBeNull();
  });
});

test('PLAYBACK-QUEUE-1, PLAYBACK-QUEUE-2: whatever comes is played once and in order, and never more is reported than was played', () => {
  const action = fc.oneof(
    fc.record({
      type: fc.constant('push' as const),
      item: fc.integer({ min: 0, max: 3 }),
      samples: fc.integer({ min: 1, max: 4000 }),
    }),
    fc.record({ type: fc.constant('pull' as const), count: fc.integer({ min: 1, max: 40 }) }),
  );
  fc.assert(
    fc.property(fc.array(action, { maxLength: 40 }), (actions) => {
      const queue = new PlaybackQueue(RATE_HZ);
      const sent: number[] = [];
      const played: number[] = [];
      const last = new Map<string, number>();
      let item = 0;
      let value = 0;
      const check = (step: ReturnType<typeof pull>): void => {
        played.push(...step.played.filter((each) => each !== 0));
        for (const { playedMs } of step.reports)
          expect(playedMs * RATE_HZ).toBeLessThanOrEqual(played.length * 1000 + 1);
        for (const { itemId, playedMs } of step.reports) {
          expect(playedMs).toBeGreaterThanOrEqual(last.get(itemId) ?? 0);
          last.set(itemId, playedMs);
        }
      };
      for (const each of actions) {
        if (each.type === 'push') {
          // Items come one after the other.
          item = Math.max(item, each.item);
          value = (value % 30_000) + 1;
          queue.push(`item ${item}`, tone(each.samples, value));
          sent.push(...tone(each.samples, value));
        } else for (let count = 0; count < each.count; count++) check(pull(queue));
      }
      while (queue.queuedMs > 0) check(pull(queue));
      expect(played).toEqual(sent);
    }),
    { numRuns: 50 },
  );
});
