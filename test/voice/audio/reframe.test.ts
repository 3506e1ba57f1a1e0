import fc from 'fast-check';
import { from, lastValueFrom, toArray } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../../src/values/errors.ts';
import type { AudioFrame } from '../../../src/voice/audio/audio-frame.ts';
import { concatSamples, ramp } from './signals.ts';
import { reframe } from '../../../src/voice/audio/frame-operators.ts';

const SAMPLES_20MS = 480;

function frame(samples: Int16Array, itemId = 'item_1'): AudioFrame {
  return { samples, sampleRateHz: 24_000, itemId, responseId: 'resp_1' };
}

function marbles(run: Parameters<TestScheduler['run']>[0]): void {
  new TestScheduler((actual, expected) => expect(actual).toEqual(expected)).run(run);
}

describe('reframe', () => {
  test('splits long frames, joins short ones and emits the remainder at the end', () => {
    marbles(({ cold, expectObservable }) => {
      const source = cold('a---b---c-----|', {
        a: frame(ramp(700)),
        b: frame(ramp(100, 700)),
        c: frame(ramp(700, 800)),
      });
      expectObservable(source.pipe(reframe(20))).toBe('a-------(bc)--(d|)', {
        a: frame(ramp(480)),
        b: frame(ramp(480, 480)),
        c: frame(ramp(480, 960)),
        d: frame(ramp(60, 1440)),
      });
    });
  });

  test('never mixes two items in one frame', () => {
    marbles(({ cold, expectObservable }) => {
      const source = cold('a---b-----|', { a: frame(ramp(500)), b: frame(ramp(480), 'item_2') });
      expectObservable(source.pipe(reframe(20))).toBe('a---(bc)--|', {
        a: frame(ramp(480)),
        b: frame(ramp(20, 480)),
        c: frame(ramp(480), 'item_2'),
      });
    });
  });

  test('emits the remainder immediately on endOfItem', () => {
    marbles(({ cold, expectObservable }) => {
      const source = cold('   a-----|', { a: frame(ramp(100)) });
      const endOfItem = cold('---x');
      expectObservable(source.pipe(reframe(20, { endOfItem }))).toBe('---a--|', {
        a: frame(ramp(100)),
      });
    });
  });

  test('emits 20 ms frames except for the last one, without losing or moving a sample', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.int16Array({ maxLength: 1_500 }), { maxLength: 10 }),
        async (cut) => {
          const frames = await lastValueFrom(
            from(cut.map((samples) => frame(samples))).pipe(reframe(20), toArray()),
          );
          expect(concatSamples(frames.map(({ samples }) => samples))).toEqual(concatSamples(cut));
          for (const { samples } of frames.slice(0, -1)) expect(samples.length).toBe(SAMPLES_20MS);
          const last = frames.at(-1)?.samples.length ?? SAMPLES_20MS;
          expect(last).toBeGreaterThan(0);
          expect(last).toBeLessThanOrEqual(SAMPLES_20MS);
        },
      ),
    );
  });

  test('emits frames that do not share memory', async () => {
    const frames = await lastValueFrom(from([frame(ramp(1_000))]).pipe(reframe(20), toArray()));
    expect(new Set(frames.map(({ samples }) => samples.buffer)).size).toBe(frames.length);
  });

  test.each([0, -20, 1_001, Number.NaN])('refuses frames of %d ms', (frameMs) => {
    expect(() => reframe(frameMs)).toThrow(ConfigurationError);
  });
});
