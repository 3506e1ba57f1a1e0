import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../../src/values/errors.ts';
import { createBoundedBuffer, type DroppedAudio } from '../../../src/voice/audio/bounded-buffer.ts';
import type { AudioFrame } from '../../../src/voice/audio/audio-frame.ts';

/** A frame that can be recognised by its first sample. */
function frame(mark: number, ms = 20): AudioFrame {
  return { samples: new Int16Array(ms * 24).fill(mark), sampleRateHz: 24_000 };
}

function marks(frames: readonly AudioFrame[]): (number | undefined)[] {
  return frames.map(({ samples }) => samples[0]);
}

describe('createBoundedBuffer', () => {
  test('newest: drops the oldest frames to make room', () => {
    const drops: DroppedAudio[] = [];
    const buffer = createBoundedBuffer({ maxMs: 60, keep: 'newest', onDrop: (d) => drops.push(d) });
    for (const mark of [1, 2, 3, 4]) expect(buffer.push(frame(mark))).toBe(true);
    expect(drops).toEqual([{ frames: 1, durationMs: 20 }]);
    expect(buffer.push(frame(5, 40))).toBe(true);
    expect(drops).toEqual([
      { frames: 1, durationMs: 20 },
      { frames: 2, durationMs: 40 },
    ]);
    expect(buffer.dropped).toEqual({ frames: 3, durationMs: 60 });
    expect(buffer.durationMs).toBe(60);
    expect(buffer.size).toBe(2);
    expect(marks(buffer.drain())).toEqual([4, 5]);
  });

  test('oldest: refuses a frame that does not fit', () => {
    const drops: DroppedAudio[] = [];
    const buffer = createBoundedBuffer({ maxMs: 50, keep: 'oldest', onDrop: (d) => drops.push(d) });
    expect([1, 2, 3].map((mark) => buffer.push(frame(mark)))).toEqual([true, true, false]);
    expect(drops).toEqual([{ frames: 1, durationMs: 20 }]);
    expect(buffer.push(frame(4, 10))).toBe(true);
    expect(marks(buffer.drain())).toEqual([1, 2, 4]);
  });

  test.each(['newest', 'oldest'] as const)(
    '%s: drops a frame that is longer than the whole buffer, and keeps the others',
    (keep) => {
      const buffer = createBoundedBuffer({ maxMs: 60, keep });
      buffer.push(frame(1));
      expect(buffer.push(frame(2, 80))).toBe(false);
      expect(buffer.dropped).toEqual({ frames: 1, durationMs: 80 });
      expect(marks(buffer.drain())).toEqual([1]);
    },
  );

  test('clears the buffer without counting drops', () => {
    const buffer = createBoundedBuffer({ maxMs: 60, keep: 'newest' });
    buffer.push(frame(1));
    buffer.clear();
    expect(buffer).toMatchObject({ size: 0, durationMs: 0, dropped: { frames: 0, durationMs: 0 } });
    expect(buffer.shift()).toBeUndefined();
  });

  test('has a duration of exactly 0 ms when it is empty, even after frames of fractional milliseconds', () => {
    const buffer = createBoundedBuffer({ maxMs: 60, keep: 'newest' });
    const lengths = [7, 11, 13];
    for (const length of lengths) {
      buffer.push({ samples: new Int16Array(length), sampleRateHz: 24_000 });
    }
    for (const _ of lengths) buffer.shift();
    expect(buffer.durationMs).toBe(0);
  });

  test.each([0, -1, Number.NaN])('refuses a maxMs of %d', (maxMs) => {
    expect(() => createBoundedBuffer({ maxMs, keep: 'newest' })).toThrow(ConfigurationError);
  });

  const operation = fc.oneof(
    { weight: 4, arbitrary: fc.integer({ min: 1, max: 90 }).map((ms) => ({ push: ms })) },
    { weight: 1, arbitrary: fc.constant({ push: 0 }) },
  );

  test.each(['newest', 'oldest'] as const)(
    'BOUNDED-BUFFER-1, BOUNDED-BUFFER-2, BOUNDED-BUFFER-3: hold for %s',
    (keep) => {
      fc.assert(
        fc.property(fc.array(operation, { maxLength: 60 }), (operations) => {
          const buffer = createBoundedBuffer({ maxMs: 100, keep });
          let pushed = 0;
          let pushedMs = 0;
          let takenMs = 0;
          const taken: AudioFrame[] = [];
          for (const { push } of operations) {
            if (push > 0) {
              buffer.push(frame((pushed += 1), push));
              pushedMs += push;
            } else {
              const out = buffer.shift();
              if (out !== undefined) {
                taken.push(out);
                takenMs += out.samples.length / 24;
              }
            }
            expect(buffer.durationMs).toBeLessThanOrEqual(100);
            expect(pushed).toBe(taken.length + buffer.size + buffer.dropped.frames);
            expect(pushedMs).toBeCloseTo(takenMs + buffer.durationMs + buffer.dropped.durationMs);
          }
          const order = marks([...taken, ...buffer.drain()]) as number[];
          expect(order).toEqual(order.toSorted((a, b) => a - b));
        }),
      );
    },
  );
});
