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
  /** How often the client reports how much it has played. */
  readonly reportMs?: number;
  /** The length of the audio frames that the client sends. */
  readonly ms?: number;
}

/** Plays audio in a room and returns the similarity values after the first second, one every 160 ms. */
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

describe('an echo of the loudspeaker in the microphone', () => {
  const echoes = [-15, -30, -40].flatMap((echoDb) =>
    [60, 150, 280].map((delayMs) => ({ echoDb, delayMs })),
  );

  test.each(echoes)(
    'raises the measured share for an echo of $echoDb dB after $delayMs ms',
    ({ echoDb, delayMs }) => {
      expect(share(listen({ played: speech(1, 8000), echoDb, delayMs }))).toBeGreaterThan(0.8);
    },
  );

  test('raises the measured share even if playout reports are as rare as possible', () => {
    const found = listen({ played: speech(2, 8000), echoDb: -20, reportMs: 200 });
    expect(share(found)).toBeGreaterThan(0.9);
  });
});

describe('another sound in the microphone', () => {
  test.each([3, 4, 5, 6, 7, 8])(
    'does not measure an echo if the user speaks at the same time (%i)',
    (seed) => {
      const found = listen({ played: speech(1, 8000), user: speech(seed, 8000) });
      expect(share(found)).toBeLessThan(0.1);
    },
  );

  test.each([3, 4, 5])('measures little echo if the user speaks over an echo (%i)', (seed) => {
    const found = listen({ played: speech(1, 8000), echoDb: -30, user: speech(seed, 8000) });
    expect(share(found)).toBeLessThan(0.25);
  });

  test('does not measure an echo in silence', () => {
    expect(share(listen({ played: speech(1, 8000) }))).toBe(0);
  });
});

describe('an impossible comparison', () => {
  test('returns null if nothing has been played', () => {
    const meter = new EchoMeter();
    meter.heard({ samples: new Int16Array(SAMPLES), sampleRateHz: RATE_HZ }, 0);
    expect(meter.compare(0)).toBeNull();
  });

  test('returns NaN after the speech has ended', () => {
    const found = listen({ played: speech(1, 3000), user: speech(3, 6000), ms: 6000 });
    expect(found.slice(-8)).toEqual(Array.from({ length: 8 }, () => Number.NaN));
  });

  test('returns null for an unknown item', () => {
    const meter = new EchoMeter();
    meter.played('other', 1000, 0);
    meter.heard({ samples: new Int16Array(SAMPLES), sampleRateHz: RATE_HZ }, 0);
    expect(meter.compare(0)).toBeNull();
  });
});

describe('ECHO-3: the attenuation of a known echo', () => {
  const PLAYED_MS = 8000;
  const levelDb = (samples: ArrayLike<number>): number => {
    let energy = 0;
    for (const sample of Array.from(samples)) energy += (sample / 32_768) ** 2;
    return 10 * Math.log10(energy / samples.length + 1e-12);
  };

  interface Known extends Omit<Room, 'played'> {
    readonly isKnown?: boolean;
    /** From this time on, the microphone no longer picks up the loudspeaker. */
    readonly headsetAfterMs?: number;
  }

  /** Plays speech in a room whose echo is measured in the first two seconds, and returns both sides of the rest. */
  function heardIn({ echoDb = -Infinity, delayMs = 120, user, reportMs = 100, ...rest }: Known) {
    const { isKnown = true, headsetAfterMs = Number.POSITIVE_INFINITY } = rest;
    const played = speech(1, PLAYED_MS);
    const gain = 10 ** (echoDb / 20);
    const meter = new EchoMeter();
    const [before, after]: [number[], number[]] = [[], []];
    // The audio is sent faster than it is played.
    meter.said({ itemId: 'item', samples: toPcm(played), sampleRateHz: RATE_HZ });
    for (let at = FRAME_MS; at <= PLAYED_MS; at += FRAME_MS) {
      const from = ((at - FRAME_MS) * RATE_HZ) / 1000;
      const sound = Float32Array.from({ length: SAMPLES }, (_, index) => {
        const echo =
          at > headsetAfterMs ? 0 : (played[from + index - (delayMs * RATE_HZ) / 1000] ?? 0);
        return gain * echo + (at > 2000 ? (user?.[from + index] ?? 0) : 0);
      });
      const samples = toPcm(sound);
      const now = 1_000_000 + at;
      const heard = meter.heard({ samples, sampleRateHz: RATE_HZ }, now);
      if (at % reportMs === 0) meter.played('item', at, now);
      if (at === 2000) {
        meter.compare(now);
        if (isKnown) meter.wasEcho(now);
      }
      if (at <= 2000) continue;
      before.push(...samples);
      after.push(...heard.samples);
    }
    // Once the meter knows the echo, it delays the microphone by 80 ms.
    const lateMs = after.every((sample, index) => sample === before[index]) ? 0 : 80;
    const late = (RATE_HZ * lateMs) / 1000;
    return { before: before.slice(0, before.length - late), after: after.slice(late) };
  }

  test.each(
    [-15, -20, -30].flatMap((echoDb) =>
      [60, 150, 280].map((delayMs) => ({ echoDb, delayMs, reportMs: delayMs > 100 ? 200 : 100 })),
    ),
  )('gets 20 dB quieter at $echoDb dB, $delayMs ms later', (room) => {
    const { before, after } = heardIn(room);
    expect(levelDb(before) - levelDb(after)).toBeGreaterThan(20);
  });

  test.each([3, 4, 5, 6])('preserves a voice over the echo (%i)', (seed) => {
    const user = speech(seed, PLAYED_MS);
    const { before, after } = heardIn({ echoDb: -20, user });
    expect(levelDb(before) - levelDb(after)).toBeLessThan(0.5);
    // None of the user's syllables is removed.
    const step = (RATE_HZ * 80) / 1000;
    for (let at = 0; at + step < before.length; at += step) {
      const was = levelDb(before.slice(at, at + step));
      // The quiet start of a syllable is not removed either.
      if (was > -30) expect(was - levelDb(after.slice(at, at + step))).toBeLessThan(3);
    }
  });

  test('preserves a voice in a pause of the speech, and never amplifies a quiet voice', () => {
    const meter = heardIn({ echoDb: -20, headsetAfterMs: 2000, user: speech(3, PLAYED_MS) });
    expect(levelDb(meter.before) - levelDb(meter.after)).toBeLessThan(0.5);
    const quiet = speech(3, PLAYED_MS).map((sample) => sample * 0.05);
    const over = heardIn({ echoDb: -20, user: quiet });
    expect(levelDb(over.after)).toBeLessThanOrEqual(levelDb(over.before));
  });

  test('leaves the audio unchanged until an echo is detected', () => {
    const { before, after } = heardIn({ echoDb: -20, isKnown: false });
    expect(after).toEqual(before);
  });

  test('does not attenuate an echo that is as loud as a voice', () => {
    const { before, after } = heardIn({ echoDb: 0 });
    expect(after).toEqual(before);
  });

  test('accepts any rate and empty frames and does not modify the input frame', () => {
    const meter = new EchoMeter();
    meter.said({ itemId: 'item', samples: toPcm(speech(1, 3000)), sampleRateHz: 24_000 });
    meter.wasEcho(0);
    for (const sampleRateHz of [8000, 16_000, 44_100, 48_000])
      for (const length of [0, 1, 7, 480, 4800]) {
        const samples = new Int16Array(length).fill(900);
        const heard = meter.heard({ samples, sampleRateHz }, 20);
        expect(heard.samples.length).toBe(length);
        expect(samples).toEqual(new Int16Array(length).fill(900));
      }
  });
});
