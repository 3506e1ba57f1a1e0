// Usage: npm run example examples/20-mail-assistant.ts
//
// A mail assistant behind the Model Context Protocol as a subagent. The server is a child process. Its tool asks which
// person is meant, and asks for approval of the mail. The user says no to the first mail and yes to the second. The
// server is included in the example; use the command of your own server instead.

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { z } from 'zod';
import { defineSubagent, defineTool, TextSession } from 'offstage';
import { mcpRelay } from 'offstage/mcp';
import { scriptedModel } from 'offstage/testing';
import { scriptedLead } from './scripted-lead.ts';

const folder = mkdtempSync(join(tmpdir(), 'offstage-example-'));
const outbox = join(folder, 'sent.txt');

const mailAssistant = defineSubagent({
  name: 'mail_assistant',
  instructions: 'Write the mail of the task.',
  relay: mcpRelay({
    tool: 'write_mail',
    transport: () =>
      new StdioClientTransport({
        command: process.execPath,
        args: [fileURLToPath(new URL('mail-server.ts', import.meta.url)), outbox],
      }),
  }),
});

const writeMail = defineTool({
  name: 'write_mail',
  description: 'Let the mail assistant write and send a mail',
  parameters: z.object({ task: z.string() }),
  execution: 'background',
  pendingMessage: 'I have passed it on.',
});

const session = new TextSession({
  model: scriptedModel({
    otherwise: scriptedLead((text) =>
      text.startsWith('Invite') ? [{ name: 'write_mail', input: { task: text } }] : [],
    ),
  }),
  agents: [{ name: 'lead', instructions: 'You talk to the user.', tools: [writeMail] }],
  subagentConfigs: { write_mail: mailAssistant },
});

let consent = 'No';
session.parts.subscribe((part) => {
  if (part.type === 'text.done') console.log(`lead: ${part.text}`);
  if (part.type !== 'question.asked') return;
  const answer = part.question === 'Which Bob?' ? 'Bob Stein' : consent;
  console.log(`mail_assistant asks: ${part.question}`);
  console.log(`user: ${answer}`);
  void session.sendText(answer);
});

await session.start();
for (const text of ['Invite Bob to lunch.', 'Invite Bob to lunch, now really.']) {
  console.log(`user: ${text}`);
  await session.sendText(text);
  await session.nextResult();
  console.log(`sent: ${existsSync(outbox) ? readFileSync(outbox, 'utf8').trim() : 'nothing'}`);
  consent = 'Yes';
}
await session.close();
rmSync(folder, { recursive: true });
