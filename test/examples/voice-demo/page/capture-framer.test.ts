import { describe, expect, test } from 'vitest';
import { CaptureFramer } from '../../../../examples/voice-demo/page/audio/capture-framer.ts';

const RATE_HZ = 24_000;
const FRAME = RATE_HZ / 50;

const sound = (samples: number, value = 0.5): Float32Array => new Float32Array(samples).fill(value);

describe('an open microphone', () => {
  test('gives frames of 20 ms, whatever it is fed in', () => {
    const framer = new CaptureFramer(RATE_HZ);
    framer.setOpen(true);
    const frames = [];
    for (let fed = 0; fed < FRAME * 3; fed += 128) frames.push(...framer.push(sound(128)));
    expect(frames.map(({ samples }) => samples.length)).toEqual([FRAME, FRAME, FRAME]);
    expect(new Set(frames.flatMap(({ samples }) => [...samples]))).toEqual(new Set([16_384]));
  });

  test('has frames of 20 ms at any rate', () => {
    const framer = new CaptureFramer(44_100);
    framer.setOpen(true);
    expect(framer.push(sound(882))[0]?.samples).toHaveLength(882);
  });

  test('does not wrap around when it is too loud', () => {
    const framer = new CaptureFramer(RATE_HZ);
    framer.setOpen(true);
    const [loud] = framer.push(sound(FRAME, 3));
    const [low] = framer.push(sound(FRAME, -3));
    expect([loud?.samples[0], low?.samples[0]]).toEqual([32_767, -32_767]);
  });

  test('says how loud it is', () => {
    const framer = new CaptureFramer(RATE_HZ);
    framer.setOpen(true);
    expect(framer.push(sound(FRAME, 0))[0]?.level).toBe(0);
    expect(framer.push(sound(FRAME, 0.1))[0]?.level).toBeCloseTo(0.4);
    expect(framer.push(sound(FRAME, 1))[0]?.level).toBe(1);
  });

  test('frames are not reused', () => {
    const framer = new CaptureFramer(RATE_HZ);
    framer.setOpen(true);
    const [first, second] = framer.push(sound(FRAME * 2));
    expect(first?.samples.buffer).not.toBe(second?.samples.buffer);
  });
});

describe('a shut microphone', () => {
  test('gives nothing', () => {
    expect(new CaptureFramer(RATE_HZ).push(sound(RATE_HZ))).toEqual([]);
  });

  test('sends a second of silence when it is shut, so that the utterance ends, and no more', () => {
    const framer = new CaptureFramer(RATE_HZ);
    framer.setOpen(true);
    framer.push(sound(FRAME));
    framer.setOpen(false);
    const frames = framer.push(sound(RATE_HZ * 3));
    expect(frames).toHaveLength(50);
    expect(frames.every(({ samples }) => samples.every((sample) => sample === 0))).toBe(true);
    expect(framer.push(sound(RATE_HZ))).toEqual([]);
  });

  test('keeps what was said up to the moment', () => {
    const framer = new CaptureFramer(RATE_HZ);
    framer.setOpen(true);
    framer.push(sound(100));
    framer.setOpen(false);
    const [frame] = framer.push(sound(FRAME));
    expect(frame?.samples.slice(0, 100).every((sample) => sample !== 0)).toBe(true);
    expect(frame?.samples.slice(100).every((sample) => sample === 0)).toBe(true);
  });

  test('is at once open again', () => {
    const framer = new CaptureFramer(RATE_HZ);
    framer.setOpen(true);
    framer.setOpen(false);
    framer.push(sound(FRAME));
    framer.setOpen(true);
    expect(framer.push(sound(FRAME))[0]?.samples[0]).toBe(16_384);
  });
});
