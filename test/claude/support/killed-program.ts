// A program with a subagent on Claude Code. The test kills it: `node killed-program.ts <folder> <url>`.

import { join } from 'node:path';
import { liveOn } from '../../support/relay-life.ts';
import { stageRelay } from './claude-stage.ts';
import { query } from './sdk.js';

const [folder = '', url = ''] = process.argv.slice(2);

const permission = (path: string) => ({
  permission: { title: 'ask', kind: 'other', input: { path } },
});
await liveOn({
  folder,
  relay: stageRelay(query, url, join(folder, 'claude'), join(folder, 'agent.log')),
  acts: [permission('a'), { question: 'Which one?' }, permission('b'), { say: 'Done.' }],
  allowed: 'a',
});
