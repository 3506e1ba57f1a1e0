// The facts that outlive a killed process: the user's requests, the effects of tools, and the messages that the user
// has heard. Each fact is one line of JSON that is written at once.

import { openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** The kinds of requests that the user makes. */
export const KINDS = ['ride', 'sum', 'weather', 'trip', 'pay', 'seat', 'remind'] as const;
export type Kind = (typeof KINDS)[number];

export interface Wish {
  readonly kind: Kind;
  readonly n: number;
}

/** Returns request number `n`, counted from 1. The user never requests the same thing twice. */
export function wish(n: number): Wish {
  return { kind: KINDS[(n - 1) % KINDS.length] as Kind, n };
}

export const wordsOf = ({ kind, n }: Wish): string => `use ${kind} ${n}`;

/** Returns the requests as spoken text. */
export function wishesIn(text: string): Wish[] {
  return [...text.matchAll(/\buse (\w+) (\d+)/g)].map(([, kind, n]) => ({
    kind: kind as Kind,
    n: Number(n),
  }));
}

/** Returns a token that can be recognised in any text. */
export const token = (what: string, n: number): string => `<${what} ${n}>`;
export const tokensIn = (text: string): string[] => text.match(/<\w+ \d+>/g) ?? [];

export type Line =
  /** A tool had an effect on the world. */
  | {
      readonly what: 'effect';
      readonly tool: string;
      readonly key: string;
      readonly input: string;
      readonly idempotent: boolean;
    }
  /** The model started to speak this. */
  | { readonly what: 'said'; readonly token: string }
  /** The user heard all of this. */
  | { readonly what: 'heard'; readonly token: string }
  /** The user answered the question about this request. */
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
