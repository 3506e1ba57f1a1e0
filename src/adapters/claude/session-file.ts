// A file next to Claude's files that stores a session's id and its deferred call. This module also finds such a call in
// Claude's files.

import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const call = z.object({ id: z.string(), name: z.string(), input: z.unknown() });
const keptSchema = z.object({
  id: z.string(),
  /** The session's cost so far, in dollars. */
  cost: z.number(),
  /** Whether Claude has stored the session. */
  isBegun: z.boolean(),
  /** The deferred call. */
  deferred: call.nullable(),
  /** The deferred call that was answered last: Claude may have been killed before it recorded the answer. */
  answered: call.nullable().default(null),
  /** The keys of the calls that the user has allowed for the whole session (`againKey`). */
  permitted: z.array(z.string()).default([]),
});

export type Kept = z.infer<typeof keptSchema>;
export type Deferred = NonNullable<Kept['deferred']>;

export class SessionFile {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /** Returns null if the file is missing or unreadable. */
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
 * Whether Claude is still waiting for this call: its conversation contains the call without a result. Claude asks about
 * such a call again when it resumes the conversation.
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
