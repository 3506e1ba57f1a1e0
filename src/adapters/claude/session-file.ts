// The file that keeps, beside Claude's own files, the id of a session and the call that it has put off; and what Claude's
// own files tell of such a call.

import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const call = z.object({ id: z.string(), name: z.string(), input: z.unknown() });
const keptSchema = z.object({
  id: z.string(),
  /** The price of the session so far, in dollars. */
  cost: z.number(),
  /** Claude has the session. */
  isBegun: z.boolean(),
  /** The call that waits for an answer. */
  deferred: call.nullable(),
  /** The last call that was put off and answered: Claude may have been killed before it had written that down. */
  answered: call.nullable().default(null),
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

/**
 * Tells whether Claude still waits with this call: its conversation has the call, and no result of it. It asks again for
 * such a call when it takes the conversation up.
 */
export function isPutOff(configFolder: string, sessionId: string, callId: string): boolean {
  const projects = join(configFolder, 'projects');
  if (!existsSync(projects)) return false;
  const paths = readdirSync(projects).map((name) => join(projects, name, `${sessionId}.jsonl`));
  return paths
    .filter((path) => existsSync(path))
    .map((path) => readFileSync(path, 'utf8'))
    .some(
      (said) =>
        said.includes(`"id":${JSON.stringify(callId)}`) &&
        !said.includes(`"tool_use_id":${JSON.stringify(callId)}`),
    );
}
