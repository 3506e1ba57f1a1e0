import { describe, expect, test } from 'vitest';
import { VoicedSound } from '../../../src/voice/audio/voiced-sound.ts';

const RATE_HZ = 16_000;

/** 20 ms of a square wave. */
const frame = (level: number) => ({
  samples: Int16Array.from({ length: RATE_HZ / 50 }, (_, n) => (n % 32 < 16 ? level : -level)),
  sampleRateHz: RATE_HZ,
});

function heard(...levels: number[]) {
  const sound = new VoicedSound();
  for (const level of levels) sound.take(frame(level));
  return sound;
}

const times = (count: number, level: number) => Array.from({ length: count }, () => level);

describe('the voiced time', () => {
  test('counts voice but not pauses', () => {
    expect(heard(...times(10, 8000), ...times(10, 40), ...times(5, 7000)).voicedMs).toBe(300);
  });

  test('does not count sound far below the level of the voice', () => {
    expect(heard(...times(10, 8000), ...times(20, 600)).voicedMs).toBe(200);
  });

  test('does not count anything in a quiet room', () => {
    expect(heard(...times(50, 200)).voicedMs).toBe(0);
  });

  test('counts a softer voice some time after a loud one', () => {
    const sound = heard(...times(10, 20_000), ...times(150, 0));
    sound.voicedMs = 0;
    for (const level of times(10, 2000)) sound.take(frame(level));
    expect(sound.voicedMs).toBe(200);
  });
});

test('counts from zero after a reset, but keeps the level that it has learned', () => {
  const sound = heard(...times(10, 8000));
  sound.voicedMs = 0;
  for (const level of times(10, 500)) sound.take(frame(level));
  expect(sound.voicedMs).toBe(0);
});

test('accepts an empty frame', () => {
  const sound = new VoicedSound();
  sound.take({ samples: new Int16Array(0), sampleRateHz: RATE_HZ });
  expect(sound.voicedMs).toBe(0);
});
