// The file that keeps, beside Claude's own files, the id of a session and the call that it has put off.

import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { z } from 'zod';

const keptSchema = z.object({
  id: z.string(),
  /** The price of the session so far, in dollars. */
  cost: z.number(),
  /** Claude has the session. */
  isBegun: z.boolean(),
  /** The call that waits for an answer. */
  deferred: z.object({ id: z.string(), name: z.string(), input: z.unknown() }).nullable(),
  /** The keys of calls that the user permitted until the session is over (`againKey`). */
  permitted: z.array(z.string()).default([]),
});

export type Kept = z.infer<typeof keptSchema>;
export type Deferred = NonNullable<Kept['deferred']>;

export class SessionFile {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /** Returns null if there is none, or none that can be read. */
  read(): Kept | null {
    try {
      return keptSchema.parse(JSON.parse(readFileSync(this.#path, 'utf8')));
    } catch {
      return null;
    }
  }

  write(kept: Kept): void {
    const next = `${this.#path}.next`;
    writeFileSync(next, JSON.stringify(kept), { mode: 0o600 });
    renameSync(next, this.#path);
  }
}
