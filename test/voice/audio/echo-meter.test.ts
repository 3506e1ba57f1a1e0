import { describe, expect, test } from 'vitest';
import { noise, speechLike, toPcm } from '../../support/speech-like.ts';
import { ECHO_LIKENESS, EchoMeter } from '../../../src/voice/audio/echo-meter.ts';

const RATE_HZ = 16_000;
const FRAME_MS = 20;
const SAMPLES = (RATE_HZ * FRAME_MS) / 1000;

const speech = (seed: number, ms: number) => speechLike(seed, ms, RATE_HZ);

interface Room {
  readonly played: Float32Array;
  readonly echoDb?: number;
  readonly delayMs?: number;
  readonly user?: Float32Array;
  /** How often the client tells what it has played. */
  readonly reportMs?: number;
  /** The client sends its sound in frames of this length. */
  readonly ms?: number;
}

/** Plays a sound in a room; returns the likenesses, every 160 ms from the second second on. */
function listen(room: Room): readonly number[] {
  const { played, echoDb = -Infinity, delayMs = 120, user, reportMs = 100 } = room;
  const gain = 10 ** (echoDb / 20);
  const hiss = noise(99);
  const meter = new EchoMeter();
  const found: number[] = [];
  const ms = room.ms ?? (played.length * 1000) / RATE_HZ;
  meter.said({
    itemId: 'item',
    samples: toPcm(played),
    sampleRateHz: RATE_HZ,
  });
  for (let at = FRAME_MS; at <= ms; at += FRAME_MS) {
    const from = ((at - FRAME_MS) * RATE_HZ) / 1000;
    const sound = Float32Array.from({ length: SAMPLES }, (_, index) => {
      const echo = played[from + index - (delayMs * RATE_HZ) / 1000] ?? 0;
      return gain * echo + (user?.[from + index] ?? 0) + 0.0006 * hiss();
    });
    const samples = toPcm(sound);
    const now = 1_000_000 + at;
    meter.heard({ samples, sampleRateHz: RATE_HZ }, now);
    if (at % reportMs === 0) meter.played('item', at, now);
    if (at >= 1000 && at % 160 === 0) found.push(meter.compare(now)?.likeness ?? Number.NaN);
  }
  return found;
}

const share = (likenesses: readonly number[]): number =>
  likenesses.filter((likeness) => likeness >= ECHO_LIKENESS).length / likenesses.length;

describe('the microphone hears the loudspeaker', () => {
  const echoes = [-15, -30, -40].flatMap((echoDb) =>
    [60, 150, 280].map((delayMs) => ({ echoDb, delayMs })),
  );

  test.each(echoes)('at $echoDb dB, $delayMs ms later', ({ echoDb, delayMs }) => {
    expect(share(listen({ played: speech(1, 8000), echoDb, delayMs }))).toBeGreaterThan(0.8);
  });

  test('with reports as rare as they may be', () => {
    const found = listen({ played: speech(2, 8000), echoDb: -20, reportMs: 200 });
    expect(share(found)).toBeGreaterThan(0.9);
  });
});

describe('the microphone hears somebody else', () => {
  test.each([3, 4, 5, 6, 7, 8])('who speaks at the same time (%i)', (seed) => {
    const found = listen({ played: speech(1, 8000), user: speech(seed, 8000) });
    expect(share(found)).toBeLessThan(0.1);
  });

  test.each([3, 4, 5])('who speaks over an echo (%i)', (seed) => {
    const found = listen({ played: speech(1, 8000), echoDb: -30, user: speech(seed, 8000) });
    expect(share(found)).toBeLessThan(0.25);
  });

  test('who is silent', () => {
    expect(share(listen({ played: speech(1, 8000) }))).toBe(0);
  });
});

describe('nothing can be told', () => {
  test('when nothing was played', () => {
    const meter = new EchoMeter();
    meter.heard({ samples: new Int16Array(SAMPLES), sampleRateHz: RATE_HZ }, 0);
    expect(meter.compare(0)).toBeNull();
  });

  test('when the speech is over', () => {
    const found = listen({ played: speech(1, 3000), user: speech(3, 6000), ms: 6000 });
    expect(found.slice(-8)).toEqual(Array.from({ length: 8 }, () => Number.NaN));
  });

  test('of an item that it does not know', () => {
    const meter = new EchoMeter();
    meter.played('other', 1000, 0);
    meter.heard({ samples: new Int16Array(SAMPLES), sampleRateHz: RATE_HZ }, 0);
    expect(meter.compare(0)).toBeNull();
  });
});
