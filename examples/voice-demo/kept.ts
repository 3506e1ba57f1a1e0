// What the demo keeps from one start to the next, in a folder of its own: the journal of its conversation, so
// that one that a crash ended goes on, and the token of its link, so that an open page finds it again.

import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OffstageError, type Environment, type Journal } from 'offstage';
import { sqliteJournal } from 'offstage/sqlite-journal';

/** One conversation at a time: one that was closed is over, and the next begins under the same id. */
const SESSION_ID = 'voice_demo';

export interface Kept {
  readonly sessionId: string;
  readonly journal: Journal;
  /** The same at every start. */
  readonly token: string;
  close(): Promise<void>;
}

/**
 * Opens the folder, and makes it where there is none. Null: another demo on this machine has it.
 * @throws {OffstageError} when the journal in it cannot be read
 */
export function openKept(folder: string, environment: Environment): Kept | null {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  try {
    const journal = sqliteJournal({
      path: join(folder, 'conversation.journal'),
      environment,
      // A crash of the demo is survived, which is what it shows; a loss of power may cost the last words.
      synchronous: 'normal',
    });
    return {
      sessionId: SESSION_ID,
      journal,
      token: keptToken(join(folder, 'token')),
      close: async () => journal.close(),
    };
  } catch (error) {
    if (error instanceof OffstageError && error.code === 'JOURNAL_IN_USE') return null;
    throw error;
  }
}

function keptToken(path: string): string {
  try {
    const token = readFileSync(path, 'utf8').trim();
    if (/^[\w-]{32}$/.test(token)) return token;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  const token = randomBytes(24).toString('base64url');
  writeFileSync(path, `${token}\n`, { mode: 0o600 });
  // The mode of a file that was there is not changed by writing it.
  chmodSync(path, 0o600);
  return token;
}
