// Waits for Enter, where somebody sits at a terminal.

import { createInterface } from 'node:readline/promises';

/** Resolves when the reader wants to go on; to `false` when they have seen enough. Null: nobody is there. */
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
