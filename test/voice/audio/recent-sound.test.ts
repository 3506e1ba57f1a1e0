import fc from 'fast-check';
import { expect, test } from 'vitest';
import { RecentSound } from '../../../src/voice/audio/bounded-buffer.ts';

const frame = (samples: readonly number[], sampleRateHz = 8000) => ({
  samples: Int16Array.from(samples),
  sampleRateHz,
});

const allOf = (frames: readonly { readonly samples: Int16Array }[]): number[] =>
  frames.flatMap(({ samples }) => [...samples]);

test('RECENT-SOUND-1, RECENT-SOUND-2: returns the newest audio unchanged for any framing', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 6000 }), { maxLength: 40 }),
      fc.integer({ min: 0, max: 3000 }),
      fc.integer({ min: 0, max: 4000 }),
      (lengths, mostMs, takenMs) => {
        const sound = new RecentSound();
        const given: number[] = [];
        let next = 0;
        for (const length of lengths) {
          const samples = Array.from({ length }, () => (next += 1) % 30_000);
          given.push(...samples);
          sound.add(frame(samples), mostMs);
          expect(sound.durationMs).toBeLessThan(mostMs + 500 + 1);
          expect(sound.durationMs).toBeGreaterThanOrEqual(Math.min(mostMs, given.length / 8));
        }
        const held = sound.durationMs * 8;
        const taken = Math.min(held, takenMs * 8);
        expect(allOf(sound.take(takenMs))).toEqual(taken === 0 ? [] : given.slice(-taken));
        expect(sound.durationMs).toBe(0);
      },
    ),
    { numRuns: 100 },
  );
});

test('returns frames that later audio does not overwrite', () => {
  const sound = new RecentSound();
  sound.add(frame([1, 2, 3]), 1000);
  const [taken] = sound.take(1000);
  sound.add(frame([4, 5, 6]), 1000);
  expect([...(taken?.samples ?? [])]).toEqual([1, 2, 3]);
});

test('drops the buffered audio when the sample rate changes', () => {
  const sound = new RecentSound();
  sound.add(frame([1, 2, 3]), 1000);
  sound.add(frame([4, 5], 16_000), 1000);
  expect(sound.take(1000)).toEqual([frame([4, 5], 16_000)]);
});
