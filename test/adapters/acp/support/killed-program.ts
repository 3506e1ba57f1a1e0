// A program with a subagent on an ACP agent. The test kills the program or the agent: `node killed-program.ts
// <folder>`.

import { join } from 'node:path';
import { acpRelay } from '../../../../src/adapters/acp/index.ts';
import { liveOn } from '../../../support/relay-life.ts';
import { AGENT } from './agent-path.ts';

const [folder = ''] = process.argv.slice(2);

await liveOn({
  folder,
  relay: acpRelay({
    command: process.execPath,
    args: [AGENT],
    cwd: folder,
    env: { STATE: folder, LOG: join(folder, 'agent.log') },
    stateFolder: join(folder, 'processes'),
  }),
  acts: [
    { progress: 'looking' },
    { permission: { title: 'Edit', kind: 'edit', input: { path: 'a' } } },
    { question: 'First question?' },
    { tool: { title: 'Read', kind: 'read', input: null } },
    { question: 'Second question?' },
    { permission: { title: 'Delete', kind: 'delete', input: { path: 'b' } } },
    { say: 'Done.' },
  ],
  allowed: 'Edit',
});
