import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createResampler } from '../../../src/voice/audio/resampler.ts';
import { concatSamples } from './signals.ts';

const rate = fc.oneof(
  fc.constantFrom(8_000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000),
  // Any integer rate. Two such rates have few common factors, so nearly every output sample has its own phase.
  fc.integer({ min: 8_000, max: 48_000 }),
);
const chunks = fc.array(fc.int16Array({ maxLength: 300 }), { maxLength: 12 });

test('RESAMPLER-1: produces bit-identical output however a stream is split', () => {
  fc.assert(
    fc.property(rate, rate, chunks, (fromHz, toHz, cut) => {
      const whole = createResampler({ fromHz, toHz });
      const expected = concatSamples([whole.process(concatSamples(cut)), whole.flush()]);
      const streaming = createResampler({ fromHz, toHz });
      const actual = concatSamples([
        ...cut.map((chunk) => streaming.process(chunk)),
        streaming.flush(),
      ]);
      expect(actual).toEqual(expected);
    }),
    { numRuns: 80 },
  );
});

test('RESAMPLER-2, RESAMPLER-3: produces ceil(n·L/M) samples and holds back at most the look-ahead', () => {
  fc.assert(
    fc.property(rate, rate, fc.nat({ max: 1_000 }), (fromHz, toHz, length) => {
      const resampler = createResampler({ fromHz, toHz });
      const settled = resampler.process(new Int16Array(length)).length;
      const held = resampler.flush().length;
      expect(settled + held).toBe(Math.ceil((length * toHz) / fromHz));
      const lowerHz = Math.min(fromHz, toHz);
      // 64 taps look 32 samples ahead. Rounding to whole samples adds up to one sample on each side.
      expect((held * lowerHz) / toHz).toBeLessThanOrEqual(32 + 2);
    }),
    { numRuns: 80 },
  );
});
