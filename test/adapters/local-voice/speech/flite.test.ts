import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../../../src/values/errors.ts';
import {
  FLITE_VOICES,
  Flite,
  speakableText,
} from '../../../../src/adapters/local-voice/speech/flite.ts';
import { speak, toWav } from '../../../support/speech/speak.ts';

const flite = await Flite.load();

function loudest(samples: Int16Array): number {
  return samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
}

describe('Flite', () => {
  test.each(FLITE_VOICES)('speaks with the voice %s', async (voice) => {
    const sound = await flite.speak({ text: 'Hello', voice, speed: 1 });
    expect(sound.sampleRateHz).toBe(voice === 'kal' ? 8_000 : 16_000);
    expect(sound.samples.length / sound.sampleRateHz).toBeGreaterThan(0.3);
    expect(loudest(sound.samples)).toBeGreaterThan(2_000);
  });

  test('returns the same samples for the same text, and fewer at a higher speed', async () => {
    const request = { text: 'The driver comes at noon.', voice: 'slt', speed: 1 };
    const [one, two] = [await flite.speak(request), await flite.speak(request)];
    expect(two.samples.every((sample, index) => sample === one.samples[index])).toBe(true);
    const fast = await flite.speak({ ...request, speed: 1.5 });
    const ratio = fast.samples.length / one.samples.length;
    expect(ratio).toBeGreaterThan(0.6);
    expect(ratio).toBeLessThan(0.75);
  });

  test('returns no samples if nothing can be pronounced', async () => {
    for (const text of ['', '...', '🚕🚕', '\n']) {
      expect((await flite.speak({ text, voice: 'slt', speed: 1 })).samples.length).toBe(0);
    }
  });

  test('rejects an unknown voice, and still accepts known ones', async () => {
    const wrong = flite.speak({ text: 'Hello', voice: '/etc/passwd', speed: 1 });
    await expect(wrong).rejects.toBeInstanceOf(ConfigurationError);
    // The voice still works.
    expect((await flite.speak({ text: 'Hi', voice: 'slt', speed: 1 })).samples.length).not.toBe(0);
  });
});

describe('speakableText', () => {
  test.each([
    ['plain', 'Your ride is booked.', 'Your ride is booked.'],
    ['quotes and dashes', 'It’s “done” — really', 'It\'s "done" , really'],
    ['markup', '**Bold** and `code` # title', 'Bold and code title'],
    ['a link', 'See [the map](https://maps.example/x).', 'See the map.'],
    ['an address', 'At https://maps.example/x now', 'At a link now'],
    ['signs', '5 € & 20 °', '5 euros and 20 degrees'],
    ['accents', 'Café crème', 'Cafe creme'],
    ['pictures', 'On my way 🚕!', 'On my way !'],
    ['nothing', '🚕 — …', ''],
  ])('makes text speakable: %s', (_name, text, spoken) => {
    expect(speakableText(text)).toBe(spoken);
  });
});

describe('speech for tests', () => {
  test('has the requested rate, silence around it, and a WAV header', async () => {
    const plain = await speak('economy please');
    const padded = await speak('economy please', { silenceMs: 100 });
    expect(padded.length).toBe(plain.length + 2 * 2_400);
    expect(loudest(padded.subarray(0, 2_400))).toBe(0);
    expect((await speak('economy please', { sampleRateHz: 48_000 })).length).toBe(2 * plain.length);
    const wav = toWav(plain);
    expect(wav.toString('latin1', 0, 4)).toBe('RIFF');
    expect(wav.readUInt32LE(24)).toBe(24_000);
    expect(wav.length).toBe(44 + 2 * plain.length);
    expect(wav.readInt16LE(44 + 2 * 5_000)).toBe(plain[5_000]);
  });
});
