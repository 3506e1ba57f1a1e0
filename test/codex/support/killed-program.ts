// A program with a subagent on Codex. The test kills the program or Codex: `node killed-program.ts <folder> <url>`.

import { liveOn } from '../../support/relay-life.ts';
import { codexRelay } from './codex-relay.ts';

const [folder = '', url = ''] = process.argv.slice(2);

const permission = (path: string) => ({
  permission: { title: `Note ${path}`, kind: 'execute', input: { path } },
});
await liveOn({
  folder,
  relay: codexRelay(folder, url),
  acts: [permission('first'), permission('second'), { say: 'Done.' }],
  allowed: 'execute',
});
