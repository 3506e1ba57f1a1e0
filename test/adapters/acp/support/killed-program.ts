// A program with a subagent on an ACP agent, which is killed by its test: `node killed-program.ts <folder>`. It goes on
// from its journal. A line comes out for each thing that happens; the test kills it, or its agent, at one of them.

import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { createRuntime } from '../../../../src/index.ts';
import { runSubagent } from '../../../../src/actors/subagents/run-subagent.ts';
import { acpRelay } from '../../../../src/adapters/acp/index.ts';
import { nodeEnvironment } from '../../../../src/adapters/node/index.ts';
import { sqliteJournal } from '../../../../src/adapters/sqlite-journal/index.ts';
import { actsPrompt } from '../../../../src/testing/relay-conformance/acts.ts';
import { AGENT } from './agent-path.ts';

const [folder = ''] = process.argv.slice(2);

/** Written down before it is done: the test compares it with what the agent was told. */
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
    relay: acpRelay({
      command: process.execPath,
      args: [AGENT],
      cwd: folder,
      env: { STATE: folder, LOG: join(folder, 'agent.log') },
      stateFolder: join(folder, 'processes'),
    }),
    retry: { maxAttempts: 10, baseDelayMs: 0 },
  },
  actsPrompt(
    { progress: 'looking' },
    { permission: { title: 'Edit', kind: 'edit', input: { path: 'a' } } },
    { question: 'First question?' },
    { tool: { title: 'Read', kind: 'read', input: null } },
    { question: 'Second question?' },
    { permission: { title: 'Delete', kind: 'delete', input: { path: 'b' } } },
    { say: 'Done.' },
  ),
  {
    runtime,
    id: 'run',
    onQuestion({ kind, question, action }) {
      const about = kind === 'approval' ? JSON.stringify(action) : question;
      log(`asked-${kind}`, about);
      if (kind !== 'approval') return { text: `about ${question}` };
      const approved = about.includes('"Edit"');
      log(approved ? 'approved' : 'denied', about);
      return { approved };
    },
    onCallInDoubt: ({ toolName }) => log('in-doubt', toolName),
    onError: (error) => log('error', String(error)),
  },
);
log('begun');
const outcome = await run.result;
log('ended', JSON.stringify(outcome));
