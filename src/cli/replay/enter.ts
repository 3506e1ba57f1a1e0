// Waits for Enter on an interactive terminal.

import { createInterface } from 'node:readline/promises';

/** Resolves to true at Enter, and to false at `q`. Null without an interactive terminal. */
export type Reader = (() => Promise<boolean>) | null;

export function enterPressed(): Reader {
  if (!process.stdin.isTTY) return null;
  return async () => {
    const lines = createInterface({ input: process.stdin, output: process.stdout });
    try {
      return !/^q/i.test(await lines.question(''));
    } catch {
      // The terminal was closed.
      return false;
    } finally {
      lines.close();
    }
  };
}
