// A program with a subagent on Claude Code, which is killed by its test: `node killed-program.ts <folder> <url>`. It goes
// on from its journal. A line comes out for each thing that happens; the test kills it at one of them.

import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { createRuntime } from '../../../src/index.ts';
import { runSubagent } from '../../../src/actors/subagents/run-subagent.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { sqliteJournal } from '../../../src/adapters/sqlite-journal/index.ts';
import { actsPrompt } from '../../../src/testing/relay-conformance/acts.ts';
import { stageRelay } from './claude-stage.ts';
import { query } from './sdk.js';

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
    name: 'coder',
    instructions: 'You write code.',
    relay: stageRelay(query, url, join(folder, 'claude')),
    retry: { maxAttempts: 10, baseDelayMs: 0 },
  },
  actsPrompt(
    { permission: { title: 'ask', kind: 'other', input: { path: 'a' } } },
    {
      question: 'Which one?',
      options: [
        { id: 'one', label: 'One' },
        { id: 'two', label: 'Two' },
      ],
    },
    { permission: { title: 'ask', kind: 'other', input: { path: 'b' } } },
    { say: 'Done.' },
  ),
  {
    runtime,
    id: 'run',
    onQuestion({ kind, question, action }) {
      const about = kind === 'approval' ? JSON.stringify(action) : question;
      log(`asked-${kind}`, about);
      if (kind !== 'approval') return { text: 'Two' };
      return { approved: about.includes('"a"') };
    },
    onCallInDoubt: ({ toolName }) => log('in-doubt', toolName),
    onError: (error) => log('error', String(error)),
  },
);
log('begun');
const outcome = await run.result;
log('ended', JSON.stringify(outcome));
