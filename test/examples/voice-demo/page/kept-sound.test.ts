import { expect, test } from 'vitest';
import { KEPT_MS, KeptSound } from '../../../../examples/voice-demo/page/audio/kept-sound.ts';

const RATE = 24_000;
const frame = (value: number): Int16Array => new Int16Array(RATE / 50).fill(value);

test('gives what was kept once, oldest first', () => {
  const kept = new KeptSound();
  kept.push(frame(1), RATE);
  kept.push(frame(2), RATE);
  expect(kept.take().map(([first]) => first)).toEqual([1, 2]);
  expect(kept.take()).toEqual([]);
});

test('keeps the last seconds and no more', () => {
  const kept = new KeptSound();
  for (let index = 0; index < KEPT_MS / 20 + 30; index += 1) kept.push(frame(index), RATE);
  const frames = kept.take();
  expect(frames).toHaveLength(KEPT_MS / 20);
  expect(frames[0]?.[0]).toBe(30);
});
