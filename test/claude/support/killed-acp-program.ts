// A program with a subagent on Claude Code behind ACP. The test kills it: `node killed-acp-program.ts <folder> <url>`.

import { join } from 'node:path';
import { liveOn } from '../../support/relay-life.ts';
import { claudeAcpRelay } from './claude-acp-relay.ts';

const [folder = '', url = ''] = process.argv.slice(2);

const permission = (path: string) => ({
  permission: { title: 'ask', kind: 'other', input: { path } },
});
await liveOn({
  folder,
  relay: claudeAcpRelay(join(folder, 'claude'), url, join(folder, 'agent.log')),
  acts: [permission('a'), { question: 'Which one?' }, permission('b'), { say: 'Done.' }],
  allowed: 'a',
});
