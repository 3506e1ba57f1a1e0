import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../../src/values/errors.ts';
import { createResampler, isSampleRateHz } from '../../../src/voice/audio/resampler.ts';
import { concatSamples, fitTone, levelDb, tone } from './signals.ts';

const RATIOS: readonly (readonly [fromHz: number, toHz: number])[] = [
  [48_000, 24_000],
  [44_100, 24_000],
  [24_000, 16_000],
  [48_000, 16_000],
  [48_000, 8_000],
  [16_000, 24_000],
  [8_000, 24_000],
  [24_000, 48_000],
  [24_000, 44_100],
  [22_050, 24_000],
];

function resampleAll(samples: Int16Array, fromHz: number, toHz: number, taps?: number): Int16Array {
  const resampler = createResampler({ fromHz, toHz, taps });
  return concatSamples([resampler.process(samples), resampler.flush()]);
}

describe('RESAMPLER-4: quality', () => {
  test.each(RATIOS)('keeps tones 85 dB above the error from %i to %i Hz', (fromHz, toHz) => {
    const lower = Math.min(fromHz, toHz);
    for (const hz of [100, 1000, Math.round(lower * 0.25), Math.round(lower * 0.4)]) {
      const out = resampleAll(tone({ hz, sampleRateHz: fromHz, seconds: 1 }), fromHz, toHz);
      const fit = fitTone(out, hz, toHz);
      expect(fit.snrDb, `${hz} Hz`).toBeGreaterThan(85);
      expect(fit.gainDb, `${hz} Hz`).toBeCloseTo(0, 2);
    }
  });

  test.each(RATIOS.filter(([fromHz, toHz]) => fromHz > toHz))(
    'keeps aliases 80 dB down from %i to %i Hz',
    (fromHz, toHz) => {
      for (const share of [0.501, 0.55, 0.625, 0.8, 0.99]) {
        const hz = Math.round(toHz * share);
        if (hz > fromHz * 0.49) continue;
        const input = tone({ hz, sampleRateHz: fromHz, seconds: 1 });
        const out = resampleAll(input, fromHz, toHz);
        expect(levelDb(middle(out)) - levelDb(input), `${hz} Hz`).toBeLessThan(-80);
      }
    },
  );

  test('preserves more of the highest frequencies with more taps', () => {
    const input = tone({ hz: 7_500, sampleRateHz: 24_000, seconds: 0.5 });
    const few = fitTone(resampleAll(input, 24_000, 16_000, 32), 7_500, 16_000);
    const many = fitTone(resampleAll(input, 24_000, 16_000, 256), 7_500, 16_000);
    expect(few.gainDb).toBeLessThan(-20);
    expect(many.gainDb).toBeCloseTo(0, 2);
  });

  test.each(RATIOS)(
    'keeps digital silence silent from %i to %i Hz and leaves the audio around it unchanged',
    (fromHz, toHz) => {
      const sound = tone({ hz: 700, sampleRateHz: fromHz, seconds: 0.05 });
      const zeros = new Int16Array(fromHz);
      const silent = new Int16Array(sound.length);
      const first = resampleAll(concatSamples([sound, zeros, silent]), fromHz, toHz);
      const second = resampleAll(concatSamples([silent, zeros, sound]), fromHz, toHz);
      const both = resampleAll(concatSamples([sound, zeros, sound]), fromHz, toHz);
      expect(both).toEqual(first.map((sample, n) => sample + (second[n] ?? 0)));
      expect([levelDb(first), levelDb(second)].every((level) => level > -60)).toBe(true);
    },
  );

  test('clips at full scale without wrapping around', () => {
    const square = Int16Array.from({ length: 4_800 }, (_, n) => (n % 480 < 240 ? 32_767 : -32_768));
    const out = resampleAll(square, 24_000, 48_000);
    // The filter overshoots at each edge. A sample that wrapped around would have the opposite sign.
    for (let n = 20; n < 460; n += 1) {
      expect(out[960 + n]).toBeGreaterThan(25_000);
      expect(out[1_440 + n]).toBeLessThan(-25_000);
    }
    expect(Math.max(...out)).toBe(32_767);
    expect(Math.min(...out)).toBe(-32_768);
  });
});

describe('RESAMPLER-3: linear phase without delay', () => {
  test.each(RATIOS)('does not shift a tone in time from %i to %i Hz', (fromHz, toHz) => {
    const out = resampleAll(tone({ hz: 1000, sampleRateHz: fromHz, seconds: 1 }), fromHz, toHz);
    expect(fitTone(out, 1000, toHz).delayMs).toBeCloseTo(0, 4);
  });

  test('responds to an impulse symmetrically around its position', () => {
    const impulse = new Int16Array(400);
    impulse[200] = 32_000;
    const out = resampleAll(impulse, 16_000, 48_000);
    for (let n = 1; n < 90; n += 1) expect(out[600 - n]).toBe(out[600 + n]);
    expect(Math.max(...out)).toBe(out[600]);
  });

  test('leaves a constant signal constant in every phase', () => {
    const out = resampleAll(new Int16Array(2_000).fill(10_000), 44_100, 48_000);
    expect([...new Set(middle(out))]).toEqual([10_000]);
  });
});

describe('RESAMPLER-2: length', () => {
  test.each(RATIOS)('produces ceil(n·L/M) samples from %i to %i Hz', (fromHz, toHz) => {
    for (const length of [0, 1, 2, 7, 480, 1_001]) {
      const out = resampleAll(new Int16Array(length), fromHz, toHz);
      expect(out.length, `${length} in`).toBe(Math.ceil((length * toHz) / fromHz));
    }
  });

  test('resets itself on flush', () => {
    const resampler = createResampler({ fromHz: 48_000, toHz: 24_000 });
    const input = tone({ hz: 500, sampleRateHz: 48_000, seconds: 0.05 });
    const first = concatSamples([resampler.process(input), resampler.flush()]);
    const second = concatSamples([resampler.process(input), resampler.flush()]);
    expect(second).toEqual(first);
  });
});

test('returns the input array if the rates are equal', () => {
  const resampler = createResampler({ fromHz: 24_000, toHz: 24_000 });
  const samples = Int16Array.of(1, 2, 3);
  expect(resampler.process(samples)).toBe(samples);
  expect(resampler.flush()).toEqual(new Int16Array(0));
});

describe('configuration', () => {
  test.each([7_999, 48_001, 24_000.5, 0, -1, Number.NaN, Number.POSITIVE_INFINITY])(
    'refuses a rate of %d',
    (rate) => {
      expect(isSampleRateHz(rate)).toBe(false);
      expect(() => createResampler({ fromHz: rate, toHz: 24_000 })).toThrow(ConfigurationError);
      expect(() => createResampler({ fromHz: 24_000, toHz: rate })).toThrow(
        `Expected \`toHz\` to be a whole number from 8000 to 48000, got \`${rate}\``,
      );
    },
  );

  test.each([15, 14, 33, 514, Number.NaN])('refuses %d taps', (taps) => {
    expect(() => createResampler({ fromHz: 48_000, toHz: 24_000, taps })).toThrow(
      /`taps`: expected an even number from 16 to 512/,
    );
  });
});

/** The samples without the edges, where the silence around the stream affects the filter. */
function middle(samples: Int16Array): Int16Array {
  return samples.subarray(200, samples.length - 200);
}
