// A program with a subagent on a hosted agent, which is killed by its test: `node killed-program.ts <folder> <url>`. It
// goes on from its journal. A line comes out for each thing that happens; the test kills it at one of them.

import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { createRuntime } from '../../../../src/index.ts';
import { runSubagent } from '../../../../src/actors/subagents/run-subagent.ts';
import { a2aRelay } from '../../../../src/adapters/a2a/index.ts';
import { nodeEnvironment } from '../../../../src/adapters/node/index.ts';
import { sqliteJournal } from '../../../../src/adapters/sqlite-journal/index.ts';
import { actsPrompt } from '../../../../src/testing/relay-conformance/acts.ts';

const [folder = '', url = ''] = process.argv.slice(2);

function log(what: string, detail = ''): void {
  appendFileSync(join(folder, 'program.log'), `${what} ${detail}\n`);
  process.stdout.write(`${what}\n`);
}

const environment = nodeEnvironment();
const journal = sqliteJournal({ path: join(folder, 'journal.sqlite'), environment });
const runtime = createRuntime({ environment, journal });

const run = runSubagent(
  {
    name: 'booker',
    instructions: 'You book rides.',
    relay: a2aRelay({ url }),
    retry: { maxAttempts: 10, baseDelayMs: 0 },
  },
  actsPrompt(
    { progress: 'looking' },
    { permission: { title: 'Pay', kind: 'authorization', input: { amount: 3 } } },
    { question: 'First question?' },
    { question: 'Second question?' },
    { permission: { title: 'Share', kind: 'authorization', input: { with: 'all' } } },
    { say: 'Done.' },
  ),
  {
    runtime,
    id: 'run',
    onQuestion({ kind, question, action }) {
      const about = kind === 'approval' ? JSON.stringify(action) : question;
      log(`asked-${kind}`, about);
      if (kind !== 'approval') return { text: `about ${question}` };
      const approved = about.includes('"Pay"');
      log(approved ? 'approved' : 'denied', about);
      return { approved };
    },
    onError: (error) => log('error', String(error)),
  },
);
log('begun');
const outcome = await run.result;
log('ended', JSON.stringify(outcome));
