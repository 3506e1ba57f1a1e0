import { expect, test } from 'vitest';
import { workingSound } from '../../../src/voice/audio/working-sound.ts';
import { ConfigurationError } from '../../../src/values/errors.ts';

test('lasts two seconds, is soft and repeatable, and starts and ends in silence', () => {
  const { samples, sampleRateHz, itemId } = workingSound();
  expect(samples).toHaveLength(2 * sampleRateHz);
  expect(itemId).toBeUndefined();
  const loudest = Math.max(...samples.map(Math.abs));
  expect(loudest).toBeGreaterThan(2000);
  expect(loudest).toBeLessThanOrEqual(0.08 * 32_767);
  expect(samples[0]).toBe(0);
  expect(samples.at(-1)).toBe(0);
  // No step is large enough to be heard as a click.
  const steps = [...samples].map((sample, n) => Math.abs(sample - (samples[n - 1] ?? 0)));
  expect(Math.max(...steps)).toBeLessThan(400);
  expect(workingSound().samples).toEqual(samples);
});

test('accepts another rate and volume, but refuses invalid ones', () => {
  const { samples, sampleRateHz } = workingSound({ sampleRateHz: 8000, volume: 0.5 });
  expect(sampleRateHz).toBe(8000);
  expect(samples).toHaveLength(16_000);
  expect(Math.max(...samples)).toBeGreaterThan(14_000);
  expect(() => workingSound({ volume: 0 })).toThrow(ConfigurationError);
  expect(() => workingSound({ sampleRateHz: 1 })).toThrow(ConfigurationError);
});
