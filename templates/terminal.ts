// A chat in the terminal.

import { createInterface } from 'node:readline/promises';
import { TextSession } from 'offstage';
import { lead, subagentConfigs } from './agents.ts';
import { model } from './model.ts';

const session = new TextSession({ model, agents: [lead], subagentConfigs });
const terminal = createInterface({ input: process.stdin });

session.parts.subscribe((part) => {
  if (part.type === 'text.done') console.log(`${lead.name}: ${part.text}`);
  if (part.type === 'question.asked') {
    console.log(`${part.subagentName} asks: ${part.question}`);
    for (const { label, description } of part.options) console.log(`  - ${label}: ${description}`);
  }
});

await session.start();
// You may write at any time. Words that answer an open question, such as the name of an option, reach the subagent.
for await (const line of terminal) if (line.trim() !== '') await session.sendText(line);
await session.idle(); // until no agent has anything left to do or say
await session.close();
