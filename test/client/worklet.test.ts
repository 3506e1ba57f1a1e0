// The code for a page's audio thread, run outside that thread: what it plays and what it reports.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CaptureFramer, PlaybackQueue, type WorkletReport } from '../../src/client/worklet.ts';

const RATE_HZ = 24_000;
const samplesOf = (ms: number, value = 1_000): Int16Array =>
  new Int16Array((RATE_HZ * ms) / 1_000).fill(value);
const pull = (queue: PlaybackQueue, ms: number): readonly WorkletReport[] =>
  queue.pull(new Float32Array((RATE_HZ * ms) / 1_000));

describe('the queue of the speaker', () => {
  test('reports the playout of each item to its end, and never more than was played', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 4 }), fc.integer({ min: 1, max: 200 })), {
          minLength: 1,
          maxLength: 20,
        }),
        fc.integer({ min: 1, max: 50 }),
        (chunks, stepMs) => {
          const queue = new PlaybackQueue(RATE_HZ);
          const wanted = new Map<string, number>();
          for (const [item, ms] of chunks.toSorted(([a], [b]) => a - b)) {
            queue.push(`i${item}`, samplesOf(ms));
            wanted.set(`i${item}`, (wanted.get(`i${item}`) ?? 0) + ms);
          }
          const played = new Map<string, number>();
          for (let ms = 0; ms < 5_000; ms += stepMs)
            for (const { itemId, playedMs } of pull(queue, stepMs)) {
              expect(playedMs).toBeGreaterThan(played.get(itemId) ?? 0);
              expect(playedMs).toBeLessThanOrEqual(wanted.get(itemId) ?? 0);
              played.set(itemId, playedMs);
            }
          expect(played).toEqual(wanted);
        },
      ),
    );
  });

  test('plays no cleared audio and reports how much was played', () => {
    const queue = new PlaybackQueue(RATE_HZ);
    queue.push('i1', samplesOf(200));
    queue.push('i2', samplesOf(200));
    pull(queue, 50);
    expect(queue.clear()).toEqual({ itemId: 'i1', playedMs: 50 });
    const output = new Float32Array(2_400);
    expect(queue.pull(output)).toEqual([]);
    expect(output.every((sample) => sample === 0)).toBe(true);
  });

  test('plays audio that belongs to no item but does not report it', () => {
    const queue = new PlaybackQueue(RATE_HZ);
    queue.push(null, samplesOf(300));
    const output = new Float32Array(2_400);
    expect(queue.pull(output)).toEqual([]);
    expect(output[0]).toBeCloseTo(1_000 / 32_768);
    expect(queue.clear()).toBeNull();
  });
});

test('sends one second of silence when the microphone is muted, and then nothing', () => {
  const framer = new CaptureFramer(RATE_HZ);
  const loud = new Float32Array(480).fill(0.5);
  expect(framer.push(loud)).toEqual([]);
  framer.setOpen(true);
  expect(framer.push(loud).map(({ samples, level }) => [samples[0], level])).toEqual([[16_384, 1]]);
  framer.setOpen(false);
  const silent = Array.from({ length: 60 }, () => framer.push(loud)).flat();
  expect(silent).toHaveLength(50);
  expect(silent.every(({ samples, level }) => level === 0 && samples.every((s) => s === 0))).toBe(
    true,
  );
});
