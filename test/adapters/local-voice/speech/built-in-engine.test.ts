import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { CancelledError, ConfigurationError } from '../../../../src/values/errors.ts';
import { createBuiltInEngine } from '../../../../src/adapters/local-voice/speech/built-in-engine.ts';
import { speak } from '../../../support/speech/speak.ts';

const engine = createBuiltInEngine();
beforeAll(() => engine.start());
afterAll(() => engine.close());

const RATE_HZ = 24_000;

describe('the built-in engine', () => {
  test('detects speech window by window, however the audio is divided', async () => {
    const sound = await speak('economy please', { silenceMs: 320 });
    const whole = engine.createDetector(RATE_HZ);
    const windows = await whole.push(sound);
    expect(windows.length).toBe(Math.floor(sound.length / (RATE_HZ * 0.032)));
    expect(Math.max(...windows.slice(0, 10))).toBeLessThan(0.3);
    expect(Math.max(...windows)).toBeGreaterThan(0.9);

    const cut = engine.createDetector(RATE_HZ);
    const pushes: Promise<readonly number[]>[] = [];
    for (let start = 0; start < sound.length; start += 331) {
      pushes.push(cut.push(sound.slice(start, start + 331)));
    }
    const pieces = (await Promise.all(pushes)).flat();
    expect(pieces.length).toBe(windows.length);
    for (const [index, probability] of pieces.entries()) {
      expect(probability).toBeCloseTo(windows[index] as number, 3);
    }
    cut.close();
    expect(await cut.push(sound)).toEqual([]);
  });

  test('keeps two streams separate', async () => {
    const [quiet, loud] = [engine.createDetector(RATE_HZ), engine.createDetector(RATE_HZ)];
    const sound = await speak('economy please');
    const pushes = [loud.push(sound), quiet.push(new Int16Array(sound.length)), loud.push(sound)];
    const [first, silence] = await Promise.all(pushes);
    expect(Math.max(...(first as number[]))).toBeGreaterThan(0.9);
    expect(Math.max(...(silence as number[]))).toBeLessThan(0.3);
  });

  test.each([8_000, 16_000, 48_000])('transcribes speech at %i Hz', async (sampleRateHz) => {
    const samples = await speak('never mind', { sampleRateHz, silenceMs: 200 });
    const text = await engine.transcribe({ samples, sampleRateHz });
    expect(text.toLowerCase()).toContain('never');
  });

  test('returns no text for silence or for audio that is too short', async () => {
    for (const length of [0, 1, 900, 2_399, RATE_HZ]) {
      const samples = new Int16Array(length);
      expect(await engine.transcribe({ samples, sampleRateHz: RATE_HZ })).toBe('');
    }
  });

  test("speaks at the protocol's sample rate", async () => {
    const sound = await engine.synthesize({ text: 'Hello there.', voice: 'rms', speed: 1 });
    expect(sound.sampleRateHz).toBe(RATE_HZ);
    expect(sound.samples.length / RATE_HZ).toBeGreaterThan(0.5);
    const unknown = engine.synthesize({ text: 'Hello', voice: 'marin', speed: 1 });
    await expect(unknown).rejects.toMatchObject({ code: 'UNKNOWN_VOICE' });
    await expect(unknown).rejects.toBeInstanceOf(ConfigurationError);
  });

  test('refuses to start after it has been closed', async () => {
    const other = createBuiltInEngine();
    await other.close();
    await expect(other.start()).rejects.toBeInstanceOf(CancelledError);
  });
});

test('uses replacement parts without loading its own, and still detects speech', async () => {
  const samples = new Int16Array(16_000).fill(3);
  const part = createBuiltInEngine({
    transcriber: { transcribe: async () => 'theirs' },
    voice: { synthesize: async () => ({ samples, sampleRateHz: 16_000 }) },
  });
  onTestFinished(() => part.close());
  await part.start();
  const windows = await part.createDetector(RATE_HZ).push(await speak('economy please'));
  expect(Math.max(...windows)).toBeGreaterThan(0.9);
  expect(await part.transcribe({ samples, sampleRateHz: 16_000 })).toBe('theirs');
  expect(part.voices).toEqual(['own']);
  const said = await part.synthesize({ text: 'Hi.', voice: 'own', speed: 1 });
  expect(said).toEqual({ samples, sampleRateHz: 16_000 });
});
