import { describe, expect, test } from 'vitest';
import { decodeMuLaw, encodeMuLaw } from '../../../src/voice/audio/mu-law.ts';

const allSamples = Int16Array.from({ length: 65_536 }, (_, index) => index - 32_768);
const allCodes = Uint8Array.from({ length: 256 }, (_, code) => code);
const values = decodeMuLaw(allCodes);

describe('the values of the codes', () => {
  test('match the table in the standard', () => {
    // Table 2a/G.711, times 4: the ends of the segments, loudest first, and then silence.
    const ends = [0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xaf, 0xb0, 0xbf, 0xc0, 0xcf, 0xd0, 0xdf, 0xe0];
    expect([...decodeMuLaw(Uint8Array.from([...ends, 0xef, 0xf0, 0xfe, 0xff]))]).toEqual([
      32_124, 16_764, 15_996, 8316, 7932, 4092, 3900, 1980, 1884, 924, 876, 396, 372, 132, 120, 8,
      0,
    ]);
  });

  test('mirror each other, with the first bit as the sign', () => {
    for (let code = 0; code < 128; code += 1)
      expect(values[code]).toBe(0 - (values[code + 128] as number));
  });

  test('increase with the code for positive values and decrease for negative ones', () => {
    for (let code = 129; code < 256; code += 1)
      expect(values[code]).toBeLessThan(values[code - 1] as number);
    for (let code = 1; code < 128; code += 1)
      expect(values[code]).toBeGreaterThan(values[code - 1] as number);
  });
});

/** Table 2a/G.711 by its differences, times 4: 1, then 15 steps of 2, 16 of 4, … 16 of 256. */
const decisions = [0, 4];
for (const [segment, steps] of [15, 16, 16, 16, 16, 16, 16, 16].entries())
  for (let step = 0; step < steps; step += 1)
    decisions.push((decisions.at(-1) as number) + 4 * 2 ** (segment + 1));

test('MU-LAW-1: encodes each of the 65,536 samples as the code whose decision values enclose it', () => {
  expect(decisions).toHaveLength(129);
  expect(decisions.at(-1)).toBe(8159 * 4);
  const codes = encodeMuLaw(allSamples);
  const wrong = allSamples.filter((sample, index) => {
    const inverted = ~(codes[index] as number) & 0xff;
    const rank = inverted & 0x7f;
    const isNegative = (inverted & 0x80) !== 0;
    const magnitude = Math.min(Math.abs(sample), 8159 * 4 - 1);
    return (
      isNegative !== sample < 0 ||
      magnitude < (decisions[rank] as number) ||
      magnitude >= (decisions[rank + 1] as number)
    );
  });
  expect([...wrong]).toEqual([]);
});

test('MU-LAW-1: decodes a code as the midpoint of its decision values', () => {
  for (let rank = 1; rank < 128; rank += 1)
    expect(values[~rank & 0xff]).toBe(
      ((decisions[rank] as number) + (decisions[rank + 1] as number)) / 2,
    );
});

test('MU-LAW-1: encodes a sample and its negative with only the sign bit different', () => {
  const codes = encodeMuLaw(allSamples);
  for (let sample = 1; sample <= 32_767; sample += 1)
    expect((codes[32_768 + sample] as number) ^ (codes[32_768 - sample] as number)).toBe(0x80);
});

test('MU-LAW-2: re-encodes each of the 256 codes unchanged, except −0', () => {
  const expected = allCodes.slice();
  expected[0x7f] = 0xff;
  expect(encodeMuLaw(values)).toEqual(expected);
});

test('clips the loudest samples instead of wrapping them around', () => {
  expect([...encodeMuLaw(Int16Array.of(32_767, -32_768, 32_636, -32_636))]).toEqual([
    0x80, 0x00, 0x80, 0x00,
  ]);
});
