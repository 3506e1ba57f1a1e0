// Usage: npm run example examples/22-agent-by-voice.ts
//
// A third-party agent by voice. It speaks the Agent Client Protocol, runs as a child process in a temporary folder, and
// wants to change a file there. The lead agent asks the user aloud. The user says no the first time and yes the second
// time. The agent is included in the example; use the command of your own agent instead.

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { acpRelay } from 'offstage/acp';
import { spokenCoder } from './spoken-coder.ts';

const folder = mkdtempSync(join(tmpdir(), 'offstage-example-'));
const menu = join(folder, 'menu.txt');
const answers = ['No.', 'Yes, go ahead.'];

const { session, say, close } = await spokenCoder({
  relay: acpRelay({
    command: process.execPath,
    args: [fileURLToPath(new URL('acp-agent.ts', import.meta.url))],
    cwd: folder,
  }),
  instructions: 'Work in your folder only.',
  answer: () => answers.shift() ?? 'No.',
  log: console.log,
});

for (let attempt = 1; attempt <= 2; attempt += 1) {
  const told = session.nextResult();
  await say('Put soup on the menu.');
  await told;
  console.log(`menu.txt: ${existsSync(menu) ? readFileSync(menu, 'utf8').trim() : 'is not there'}`);
}
await close();
rmSync(folder, { recursive: true });
