import { from, lastValueFrom, toArray } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../../src/values/errors.ts';
import { createResampler } from '../../../src/voice/audio/resampler.ts';
import type { AudioFrame } from '../../../src/voice/audio/audio-frame.ts';
import { concatSamples, tone } from './signals.ts';
import { resampleFrames } from '../../../src/voice/audio/frame-operators.ts';

const sound = tone({ hz: 440, sampleRateHz: 48_000, seconds: 0.06 });
const first: AudioFrame = { samples: sound.subarray(0, 960), sampleRateHz: 48_000 };
const second: AudioFrame = { samples: sound.subarray(960, 1_920), sampleRateHz: 48_000 };
const third: AudioFrame = { samples: sound.subarray(1_920), sampleRateHz: 48_000 };

/** The output of the resampler alone for the same stretches. */
function expectedOf(...stretches: readonly Int16Array[]): {
  parts: Int16Array[];
  tail: Int16Array;
} {
  const resampler = createResampler({ fromHz: 48_000, toHz: 24_000 });
  return { parts: stretches.map((part) => resampler.process(part)), tail: resampler.flush() };
}

function marbles(run: Parameters<TestScheduler['run']>[0]): void {
  new TestScheduler((actual, expected) => expect(actual).toEqual(expected)).run(run);
}

describe('resampleFrames', () => {
  test("keeps the filter's history across the frames of an item, and flushes when the source completes", () => {
    const { parts, tail } = expectedOf(first.samples, second.samples, third.samples);
    marbles(({ cold, expectObservable }) => {
      const source = cold('a-b-c-|', { a: first, b: second, c: third });
      const out = (samples: Int16Array | undefined) => ({ samples, sampleRateHz: 24_000 });
      expectObservable(source.pipe(resampleFrames(24_000))).toBe('a-b-c-(d|)', {
        a: out(parts[0]),
        b: out(parts[1]),
        c: out(parts[2]),
        d: out(tail),
      });
    });
    expect(concatSamples([...parts, tail]).length).toBe(1_440);
  });

  test('flushes an item under its own id when another item begins', () => {
    const a: AudioFrame = { ...first, itemId: 'item_1', responseId: 'resp_1' };
    const b: AudioFrame = { ...first, itemId: 'item_2', responseId: 'resp_1' };
    const { parts, tail } = expectedOf(first.samples);
    const out = (itemId: string, samples: Int16Array | undefined) => ({
      samples,
      sampleRateHz: 24_000,
      itemId,
      responseId: 'resp_1',
    });
    marbles(({ cold, expectObservable }) => {
      // The second item starts from silence, so it sounds exactly like the first one.
      expectObservable(cold('a---b-----|', { a, b }).pipe(resampleFrames(24_000))).toBe(
        'a---(bc)--(d|)',
        {
          a: out('item_1', parts[0]),
          b: out('item_1', tail),
          c: out('item_2', parts[0]),
          d: out('item_2', tail),
        },
      );
    });
  });

  test('flushes immediately on endOfItem and processes the next frame as if after silence', () => {
    const { parts, tail } = expectedOf(first.samples);
    marbles(({ cold, expectObservable }) => {
      const endOfItem = cold('--x', { x: 'response.ended' });
      const source = cold('   a---a-----|', { a: first });
      const out = (samples: Int16Array | undefined) => ({ samples, sampleRateHz: 24_000 });
      expectObservable(source.pipe(resampleFrames(24_000, { endOfItem }))).toBe('a-b-a-----(b|)', {
        a: out(parts[0]),
        b: out(tail),
      });
    });
  });

  test('starts a new stream when the sample rate changes', async () => {
    const frames = await lastValueFrom(
      from<AudioFrame[]>([
        { samples: new Int16Array(960), sampleRateHz: 48_000 },
        { samples: new Int16Array(320), sampleRateHz: 16_000 },
        { samples: new Int16Array(480), sampleRateHz: 24_000 },
      ]).pipe(resampleFrames(24_000), toArray()),
    );
    expect(new Set(frames.map((frame) => frame.sampleRateHz))).toEqual(new Set([24_000]));
    expect(concatSamples(frames.map((frame) => frame.samples)).length).toBe(480 + 480 + 480);
  });

  test('passes frames through unchanged if they already have the target rate', async () => {
    const frame: AudioFrame = { samples: new Int16Array(480), sampleRateHz: 24_000, itemId: 'i' };
    const out = await lastValueFrom(from([frame]).pipe(resampleFrames(24_000)));
    expect(out).toEqual(frame);
    expect(out.samples).toBe(frame.samples);
  });

  test('passes errors through without flushing', () => {
    const { parts } = expectedOf(first.samples);
    marbles(({ cold, expectObservable }) => {
      expectObservable(cold('a-#', { a: first }).pipe(resampleFrames(24_000))).toBe('a-#', {
        a: { samples: parts[0], sampleRateHz: 24_000 },
      });
    });
  });

  test('unsubscribes from source and endOfItem when its subscriber unsubscribes', () => {
    marbles(({ hot, expectObservable, expectSubscriptions }) => {
      const source = hot<AudioFrame>('------');
      const endOfItem = hot('------');
      expectObservable(source.pipe(resampleFrames(24_000, { endOfItem })), '^--!').toBe('----');
      expectSubscriptions(source.subscriptions).toBe('^--!');
      expectSubscriptions(endOfItem.subscriptions).toBe('^--!');
    });
  });

  test('refuses an unsupported rate at construction or with an error on the stream', async () => {
    expect(() => resampleFrames(96_000)).toThrow(ConfigurationError);
    const bad: AudioFrame = { samples: new Int16Array(1), sampleRateHz: 96_000 };
    await expect(lastValueFrom(from([bad]).pipe(resampleFrames(24_000)))).rejects.toThrow(
      /`fromHz` to be a whole number from 8000 to 48000, got `96000`/,
    );
  });
});
