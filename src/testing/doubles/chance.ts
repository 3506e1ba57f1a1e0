// Reproducible randomness: a seed and a purpose determine one stream of random numbers. A decision that has its own
// stream does not change when other decisions are removed.

import type { Random } from '../../actors/ports/environment.ts';

export interface Chance extends Random {
  /** Returns a whole number in [0, `count`). */
  below(count: number): number;
  /** Returns a whole number from `least` to `most`, both included. */
  within(least: number, most: number): number;
  /** Returns one of the values. The list must not be empty. */
  pick<T>(from: readonly [T, ...T[]] | readonly T[]): T;
  happens(probability: number): boolean;
}

/** Returns the random stream for this seed and purpose. */
export function chanceOf(seed: number, ...purpose: readonly (string | number)[]): Chance {
  const { next } = mulberry32(hash(`${seed}/${purpose.join('/')}`));
  const below = (count: number): number => Math.floor(next() * count);
  return {
    next,
    below,
    within: (least, most) => least + below(most - least + 1),
    pick: <T>(from: readonly T[]): T => from[below(from.length)] as T,
    happens: (probability) => next() < probability,
  };
}

/** A small generator with 32 bits of state; good enough for choices, not for secrets. Source: Tommy Ettinger, 2017. */
export function mulberry32(seed: number): Random {
  let state = seed >>> 0;
  return {
    next() {
      state = (state + 0x6d2b79f5) >>> 0;
      let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
      mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    },
  };
}

/** FNV-1a, 32 bits. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) {
    value ^= text.charCodeAt(at);
    value = Math.imul(value, 0x01000193);
  }
  return value >>> 0;
}
