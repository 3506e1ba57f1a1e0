import { describe, expect, test } from 'vitest';
import { findSpeech, transcribeSound } from '../../../src/adapters/local-voice/hearing.ts';
import { SoundBuffer } from '../../../src/adapters/local-voice/input-audio.ts';
import { SpokenWords, placeWords } from '../../../src/voice/speech/spoken-words.ts';
import { scriptedSpeech, tone } from './support/scripted-speech.ts';

const windowMs = 100;

function spans(pattern: string): [number, number][] {
  const windows = Array.from(pattern, (mark) => (mark === '#' ? 0.9 : mark === '+' ? 0.4 : 0));
  return findSpeech({ windows, windowMs, threshold: 0.5 }).map(({ startMs, endMs }) => [
    startMs,
    endMs,
  ]);
}

describe('findSpeech', () => {
  test.each([
    ['none', '.....', []],
    ['one', '..###..', [[200, 500]]],
    ['one that fades', '..##++..', [[200, 600]]],
    ['never loud enough', '..++..', []],
    // The longest time that an utterance may wait for its second half.
    ['a pause joins', `##${'.'.repeat(24)}##`, [[0, 2_800]]],
    [
      'a long pause parts',
      `##${'.'.repeat(25)}##`,
      [
        [0, 200],
        [2_700, 2_900],
      ],
    ],
  ])('finds stretches of speech: %s', (_name, pattern, expected) => {
    expect(spans(pattern)).toEqual(expected);
  });

  test('cuts speech longer than 24 s at its quietest point, without losing audio', () => {
    const cut = spans(`${'#'.repeat(200)}+${'#'.repeat(120)}`);
    expect(cut).toEqual([
      [0, 20_000],
      [20_000, 32_100],
    ]);
    const endless = spans('#'.repeat(1_000));
    expect(endless[0]?.[0]).toBe(0);
    expect(endless.at(-1)?.[1]).toBe(100_000);
    for (const [index, [start, end]] of endless.entries()) {
      expect(end - start).toBeLessThanOrEqual(24_000);
      if (index > 0) expect(start).toBe(endless[index - 1]?.[1]);
    }
  });
});

describe('transcribeSound', () => {
  test('adds a little silence around each stretch of speech, and joins the transcripts', async () => {
    const speech = scriptedSpeech({ 1000: 'one', 2000: 'two' });
    const lengths: number[] = [];
    const { transcribe } = speech;
    speech.transcribe = (sound) => {
      lengths.push(sound.samples.length / 24);
      return transcribe(sound);
    };
    const samples = Int16Array.from([
      ...tone(0, 1_000),
      ...tone(1000, 400),
      ...tone(0, 3_000),
      ...tone(2000, 400),
      ...tone(0, 100),
    ]);
    expect(await transcribeSound(speech, { samples, sampleRateHz: 24_000 })).toBe('one two');
    // Each has 250 ms before it and 300 ms after it; the audio ends 100 ms after the second one, and silence follows.
    expect(lengths).toEqual([950, 950]);
  });
});

describe('SoundBuffer', () => {
  test('extracts a stretch of audio by its times, and drops the audio before it', () => {
    const buffer = new SoundBuffer(1_000);
    buffer.append(Int16Array.of(0, 1, 2));
    buffer.append(Int16Array.of(3, 4, 5));
    buffer.append(Int16Array.of(6, 7, 8, 9));
    expect([...buffer.take(2, 7)]).toEqual([2, 3, 4, 5, 6]);
    expect([buffer.startMs, buffer.endMs, buffer.durationMs]).toEqual([7, 10, 3]);
    expect([...buffer.take(0, 8)]).toEqual([7]);
    expect([...buffer.take(9, 99)]).toEqual([9]);
    expect([...buffer.take(0, 99)]).toEqual([]);
    buffer.append(Int16Array.of(10, 11));
    buffer.dropBefore(11);
    expect([...buffer.take(0, 99)]).toEqual([11]);
    expect(buffer.endMs).toBe(12);
  });
});

describe('SpokenWords', () => {
  test("SPOKEN-WORDS-1: spreads words and white space over the sentence's audio without gaps", () => {
    const words = placeWords('It is  booked. ', 1_000, 1_500);
    expect(words.map(({ text }) => text).join('')).toBe('It is  booked. ');
    expect(words[0]?.startMs).toBe(1_000);
    expect(words.at(-1)?.endMs).toBe(2_500);
    for (const [index, word] of words.entries()) {
      expect(word.startMs).toBe(index === 0 ? 1_000 : words[index - 1]?.endMs);
    }
    expect(placeWords('', 0, 0)).toEqual([]);
    expect(placeWords(' ', 0, 0)).toMatchObject([{ text: ' ' }]);
  });

  test('SPOKEN-WORDS-1, SPOKEN-WORDS-2: keeps the words played before a truncation, but adds none later', () => {
    const spoken = new SpokenWords();
    for (const word of placeWords('One two three', 0, 1_300)) spoken.addWord(word);
    spoken.addSound(1_300);
    spoken.truncate(700);
    expect([spoken.text(), spoken.durationMs]).toEqual(['One two ', 700]);
    spoken.addWord({ text: 'four', startMs: 1_300, endMs: 1_700 });
    spoken.addSound(400);
    expect([spoken.text(), spoken.durationMs]).toEqual(['One two ', 700]);
    spoken.truncate(100);
    expect(spoken.text()).toBe('');
  });
});
