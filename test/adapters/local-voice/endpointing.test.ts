import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  Endpointer,
  endpointingSettings,
  type Endpoint,
} from '../../../src/adapters/local-voice/endpointer.ts';

const settings = { threshold: 0.5, prefixPaddingMs: 300 };
const WINDOW_MS = 32;

function run(
  probabilities: readonly number[],
  { silenceMs = 500, longestMs = 15_000 } = {},
): (Endpoint & { at: number })[] {
  const endpointer = new Endpointer();
  return probabilities.flatMap((probability, at) => {
    const endpoint = endpointer.push({
      probability,
      endMs: (at + 1) * WINDOW_MS,
      windowMs: WINDOW_MS,
      silenceMs,
      longestMs,
      settings,
    });
    return endpoint === null ? [] : [{ ...endpoint, at }];
  });
}

const silence = (count: number): number[] => Array.from({ length: count }, () => 0);
const speech = (count: number): number[] => Array.from({ length: count }, () => 0.9);

describe('Endpointer', () => {
  test('starts at the first speech minus the padding, and stops after the silence', () => {
    const endpoints = run([...silence(20), ...speech(10), ...silence(20)]);
    expect(endpoints).toEqual([
      { type: 'started', startMs: 20 * WINDOW_MS - 300, at: 21 },
      // 500 ms correspond to 16 windows.
      { type: 'stopped', startMs: 20 * WINDOW_MS - 300, endMs: 46 * WINDOW_MS, at: 45 },
    ]);
  });

  test('never starts before the audio does', () => {
    expect(run(speech(2))).toMatchObject([{ type: 'started', startMs: 0 }]);
  });

  test('ENDPOINTING-2: does not start when it hears a click', () => {
    expect(run([...silence(5), 0.99, ...silence(5), 0.99, ...silence(40)])).toEqual([]);
  });

  test('ENDPOINTING-3: keeps a short pause and fading speech in the utterance', () => {
    const pause = [...speech(5), ...silence(15), ...speech(5)];
    expect(run([...pause, ...silence(20)]).map(({ type }) => type)).toEqual(['started', 'stopped']);
    const fading = [...speech(5), ...Array.from({ length: 30 }, () => 0.4)];
    expect(run(fading).map(({ type }) => type)).toEqual(['started']);
  });

  test('ENDPOINTING-1: alternates starts and stops for any input', () => {
    const probabilities = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 400 });
    fc.assert(
      fc.property(probabilities, (given) => {
        const endpoints = run(given, { silenceMs: 64 });
        for (const [index, endpoint] of endpoints.entries()) {
          expect(endpoint.type).toBe(index % 2 === 0 ? 'started' : 'stopped');
          if (endpoint.type === 'stopped') expect(endpoint.endMs).toBeGreaterThan(endpoint.startMs);
        }
      }),
    );
  });

  test('ENDPOINTING-4: cuts audio that never pauses, and starts the next utterance', () => {
    const endpoints = run(speech(100), { longestMs: 50 * WINDOW_MS });
    expect(endpoints.slice(0, 3).map(({ type }) => type)).toEqual([
      'started',
      'stopped',
      'started',
    ]);
    expect(endpoints[1]).toMatchObject({ startMs: 0, endMs: 50 * WINDOW_MS });
    // Two windows of speech start the next one, and only its padding lies between the two.
    expect(endpoints[2]).toMatchObject({ at: 51, startMs: 50 * WINDOW_MS - 300 });
  });

  test('waits according to the eagerness with semantic_vad, and longest after an unfinished sentence', () => {
    const waits = (['low', 'medium', 'auto', 'high'] as const).map(
      (eagerness) =>
        endpointingSettings({
          type: 'semantic_vad',
          eagerness,
          create_response: true,
          interrupt_response: true,
        }).silenceMs,
    );
    expect(waits).toEqual([
      { answered: 500, finished: 1_200, unfinished: 2_500 },
      { answered: 300, finished: 500, unfinished: 1_800 },
      { answered: 300, finished: 500, unfinished: 1_800 },
      { answered: 300, finished: 400, unfinished: 1_500 },
    ]);
  });
});
