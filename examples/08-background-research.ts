// Usage: npm run example examples/08-background-research.ts
//
// Research runs in the background. The primary agent spawns a subagent with a description and keeps talking. Progress
// reaches the screen directly, without a model. The findings are too long to say aloud, so the subagent saves them in
// its namespace of working memory, and its result names the place. When the user wants details, the primary agent reads
// them there.

import { createWorkingMemoryToolset, workingMemory } from 'offstage/memory';
import { rockbotLimits, rockbotToolset, topic } from 'offstage/compat';
import { tool } from 'ai';
import { z } from 'zod';
import { TextSession } from 'offstage';
import { leadTools } from 'offstage/subagents';
import { scriptedModel, type Script, type ScriptedCall } from 'offstage/testing';
import { scriptedLead } from './scripted-lead.ts';

const memory = workingMemory();
const notes = createWorkingMemoryToolset({ memory });

const fetchPage = tool({
  description: 'Fetch a web page',
  inputSchema: z.object({ url: z.string() }),
  execute: ({ url }) => `Everything that is written at ${url}.`,
});

/** Stands in for the researcher's model: one call per step. */
const research: readonly ScriptedCall[] = [
  { name: 'fetch_page', input: { url: 'example.com/qubits' } },
  {
    name: 'save_to_working_memory',
    input: { key: 'page', value: 'Qubits, in 4,000 words.', category: 'scrape-result' },
  },
  { name: 'ReportProgress', input: { message: 'One page is read and saved' } },
];
const researcher: Script = ({ prompt }) => {
  const call = research[prompt.filter(({ role }) => role === 'tool').length];
  return call ? { calls: [call] } : { text: 'Qubits got better. The page is saved.' };
};

/** The primary agent knows where to read more, because the result names the place. */
let page = '';
const primary = scriptedLead((text) => {
  if (text.includes('research'))
    return [
      { name: 'spawn_subagent', input: { description: 'Find out what is new about qubits' } },
    ];
  if (text.includes('still')) return [{ name: 'list_subagents', input: {} }];
  return text.includes('more') ? [{ name: 'get_from_working_memory', input: { key: page } }] : [];
});

const model = scriptedModel({
  agents: { subagent: researcher },
  otherwise: (prompt) => {
    page = /subagent\/[\w-]+\/page/.exec(prompt.user)?.[0] ?? page;
    return primary(prompt);
  },
});

const session = new TextSession({
  workingMemory: memory,
  limits: rockbotLimits,
  model,
  agents: [
    {
      name: 'primary',
      instructions: 'You talk to the user, and let subagents do what takes long.',
      tools: leadTools({
        ...rockbotToolset({ agent: { tools: { fetch_page: fetchPage, ...notes } } }),
        ...notes,
      }),
    },
  ],
});

session.parts.subscribe((part) => {
  if (part.type === 'subagent.reported') console.log(`${part.subagentName}: ${part.text}`);
  if (part.type === 'text.done') console.log(`primary: ${part.text}`);
});
topic(session, 'subagent.result').subscribe(({ isSuccess, toolCalls }) => {
  const names = toolCalls.map(({ toolName }) => toolName).join(', ');
  console.log(`(${isSuccess ? 'completed' : 'failed'} after ${names})`);
});

async function say(text: string): Promise<void> {
  console.log(`user: ${text}`);
  for await (const _ of session.send(text));
}

await session.start();
await say('Please research qubits');
await say('Are you still at it?');
await session.nextResult();
await say('Tell me more');
await session.close();
