// The facts that outlive a killed process: the user's wishes, the effects of tools, and
// what the user has heard. One line of JSON for each, written at once.

import { openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** What the user may want, and how it is done. */
export const KINDS = ['ride', 'sum', 'weather', 'trip', 'pay', 'seat', 'remind'] as const;
export type Kind = (typeof KINDS)[number];

export interface Wish {
  readonly kind: Kind;
  readonly n: number;
}

/** Wish number `n`, from 1; the user never wants the same thing twice. */
export function wish(n: number): Wish {
  return { kind: KINDS[(n - 1) % KINDS.length] as Kind, n };
}

export const wordsOf = ({ kind, n }: Wish): string => `use ${kind} ${n}`;

/** The wishes in what somebody said. */
export function wishesIn(text: string): Wish[] {
  return [...text.matchAll(/\buse (\w+) (\d+)/g)].map(([, kind, n]) => ({
    kind: kind as Kind,
    n: Number(n),
  }));
}

/** What can be told from others wherever it is said. */
export const token = (what: string, n: number): string => `<${what} ${n}>`;
export const tokensIn = (text: string): string[] => text.match(/<\w+ \d+>/g) ?? [];

export type Line =
  /** A tool did something to the world. */
  | {
      readonly what: 'effect';
      readonly tool: string;
      readonly key: string;
      readonly input: string;
      readonly idempotent: boolean;
    }
  /** The model began to say this. */
  | { readonly what: 'said'; readonly token: string }
  /** It was heard to its end. */
  | { readonly what: 'heard'; readonly token: string }
  /** The user answered the question of this wish. */
  | { readonly what: 'answered'; readonly n: number; readonly how: 'voice' | 'button' }
  | { readonly what: 'doubt'; readonly key: string }
  | { readonly what: 'recovered'; readonly lost: readonly unknown[] }
  | { readonly what: 'error'; readonly where: string; readonly message: string }
  | {
      readonly what: 'rested';
      readonly subagents: readonly { readonly id: string; readonly state: string }[];
    };

export type Written = Line & { readonly life: number; readonly at: number };

export const logIn = (folder: string): string => join(folder, 'world.log');
export const journalIn = (folder: string): string => join(folder, 'journal.db');

export function openWorld(folder: string, life: number): (line: Line) => void {
  const file = openSync(logIn(folder), 'a');
  return (line) => void writeSync(file, `${JSON.stringify({ life, at: Date.now(), ...line })}\n`);
}

export function readWorld(folder: string): Written[] {
  return readFileSync(logIn(folder), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Written);
}
