// The life of a program with a subagent on a third-party agent. The program continues from its journal and logs each
// event. Tests kill the programs that use this file.

import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { runSubagent } from '../../src/actors/subagents/run-subagent.ts';
import { nodeEnvironment } from '../../src/adapters/node/index.ts';
import { sqliteJournal } from '../../src/adapters/sqlite-journal/index.ts';
import type { Relay } from '../../src/entries/subagents.ts';
import { createRuntime } from '../../src/index.ts';
import { actsPrompt, type RelayAct } from '../../src/testing/doubles/relay-acts.ts';

export interface RelayLife {
  /** The folder for the journal and the log. */
  readonly folder: string;
  readonly relay: Relay;
  readonly acts: readonly RelayAct[];
  /** The title of the only permission that the user grants. */
  readonly allowed: string;
}

/**
 * Runs until the subagent has ended. It prints a line for each event, and the test kills the program at one of these
 * lines.
 */
export async function liveOn({ folder, relay, acts, allowed }: RelayLife): Promise<void> {
  /** Logs an action before performing it, because the test compares the log with the agent's input. */
  const log = (what: string, detail = ''): void => {
    appendFileSync(join(folder, 'program.log'), `${what} ${detail}\n`);
    process.stdout.write(`${what}\n`);
  };
  const environment = nodeEnvironment();
  const journal = sqliteJournal({ path: join(folder, 'journal.sqlite'), environment });
  const runtime = createRuntime({ environment, journal });
  const run = runSubagent(
    {
      name: 'worker',
      instructions: 'You do the work.',
      relay,
      retry: { maxAttempts: 10, baseDelayMs: 0 },
    },
    actsPrompt(...acts),
    {
      runtime,
      id: 'run',
      onQuestion({ kind, question, action }) {
        const about = kind === 'approval' ? JSON.stringify(action) : question;
        log(`asked-${kind}`, about);
        if (kind !== 'approval') return { text: `about ${question}` };
        const approved = about.includes(JSON.stringify(allowed));
        log(approved ? 'approved' : 'denied', about);
        return { approved };
      },
      onCallInDoubt: ({ toolName }) => log('in-doubt', toolName),
      onError: (error) => log('error', String(error)),
    },
  );
  log('begun');
  log('ended', JSON.stringify(await run.result));
}
