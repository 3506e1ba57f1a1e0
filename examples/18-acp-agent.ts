// Usage: npm run example examples/18-acp-agent.ts
//
// A third-party agent as a subagent. It speaks the Agent Client Protocol, runs as a child process in a temporary
// folder, and asks the user for permission before it changes a file there. The lead agent keeps talking. The agent is
// included in the example; use the command of your own agent instead.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { defineSubagent, defineTool, TextSession } from 'offstage';
import { acpRelay } from 'offstage/acp';
import { scriptedModel } from 'offstage/testing';
import { scriptedLead } from './scripted-lead.ts';

const folder = mkdtempSync(join(tmpdir(), 'offstage-example-'));

const coder = defineSubagent({
  name: 'coder',
  instructions: 'Work in your folder only.',
  relay: acpRelay({
    command: process.execPath,
    args: [fileURLToPath(new URL('acp-agent.ts', import.meta.url))],
    cwd: folder,
  }),
});

const askCoder = defineTool({
  name: 'ask_coder',
  description: 'Let the coding agent change the files',
  parameters: z.object({ task: z.string() }),
  execution: 'background',
  pendingMessage: 'I have passed it on.',
});

const session = new TextSession({
  model: scriptedModel({
    otherwise: scriptedLead((text) =>
      text.includes('menu') ? [{ name: 'ask_coder', input: { task: text } }] : [],
    ),
  }),
  agents: [{ name: 'lead', instructions: 'You talk to the user.', tools: [askCoder] }],
  subagentConfigs: { ask_coder: coder },
});

session.parts.subscribe((part) => {
  if (part.type === 'text.done') console.log(`lead: ${part.text}`);
  if (part.type !== 'question.asked') return;
  console.log(`coder asks: ${part.question}`);
  console.log('user: Yes');
  void session.sendText('Yes');
});

await session.start();
console.log('user: Put soup on the menu.');
await session.sendText('Put soup on the menu.');
await session.nextResult();
await session.close();
console.log(`menu.txt: ${readFileSync(join(folder, 'menu.txt'), 'utf8').trim()}`);
rmSync(folder, { recursive: true });
