// Usage: npm run example examples/07-task-isolation.ts
//
// Runs many tasks on one external agent without mixing them up. Each read task has its own thread (`createInstance`).
// Two run at a time, and the others wait in line. Calendar changes go through one subagent for the whole session
// (`lifetime: 'session'`): its calls run one after the other, and "confirm that" reaches the same thread. No code has
// to guess from the words which thread is meant.

import { tool } from 'ai';
import { z } from 'zod';
import { defineSubagent, defineTool, TextSession, type SubagentConfig } from 'offstage';
import { readTask, scriptedModel, type Script } from 'offstage/testing';
import { scriptedLead } from './scripted-lead.ts';

/** Stands in for the external agent: it remembers the messages of each thread. */
const threads = new Map<string, string[]>();
async function chat(thread: string, message: string): Promise<string> {
  const said = threads.get(thread) ?? [];
  threads.set(thread, [...said, message]);
  return said.length === 0 ? `${message}: done` : `${message}: done, after ${said.join(', ')}`;
}

const chatIn = (thread: () => string) => ({
  agent_chat: tool({
    description: 'Talk to the external agent',
    inputSchema: z.object({ message: z.string() }),
    execute: ({ message }) => chat(thread(), message),
  }),
});

/** Each run has its own thread. */
function createReader(): SubagentConfig {
  let thread: string | undefined;
  return {
    name: 'reader',
    instructions: 'Look it up with agent_chat.',
    tools: chatIn(() => (thread ??= `thread_${threads.size + 1}`)),
    createInstance: createReader,
  };
}

/** One subagent for the whole session. */
const calendar = defineSubagent({
  name: 'calendar',
  instructions: 'Change the calendar with agent_chat.',
  tools: chatIn(() => 'calendar'),
  lifetime: 'session',
});

const relays: Script = ({ prompt, results: [result] }) => {
  if (typeof result === 'string') return { text: result };
  const message = readTask(prompt)?.arguments['task'];
  return { calls: [{ name: 'agent_chat', input: { message } }] };
};

const background = (name: string) =>
  defineTool({
    name,
    description: `${name}: let the external agent do it`,
    parameters: z.object({ task: z.string() }),
    execution: 'background',
    pendingMessage: 'On it.',
  });

const session = new TextSession({
  model: scriptedModel({
    agents: { look_up: relays, change_calendar: relays },
    otherwise: scriptedLead((text) =>
      text.split(', ').map((task) => ({
        name: /look|find/i.test(task) ? 'look_up' : 'change_calendar',
        input: { task },
      })),
    ),
  }),
  agents: [
    {
      name: 'lead',
      instructions: 'You talk to the user.',
      tools: [background('look_up'), background('change_calendar')],
    },
  ],
  subagentConfigs: { look_up: createReader(), change_calendar: calendar },
  limits: { maxConcurrentPerSession: 2 },
});
session.parts.subscribe((part) => {
  if (part.type === 'text.done') console.log(`lead: ${part.text}`);
});
let mostAtWork = 0;
session.events.subscribe(() => {
  const atWork = session.subagents.list().filter(({ state }) => state === 'running');
  mostAtWork = Math.max(mostAtWork, atWork.length);
});

/** Waits until all requested results have been reported. */
async function ask(text: string): Promise<void> {
  console.log(`user: ${text}`);
  await session.sendText(text);
  await session.idle();
}

await session.start();
await ask('look for flights, find a hotel, move the meeting to five, move the dinner to eight');
await ask('confirm that');
console.log(`threads: ${[...threads.keys()].join(', ')}; at most ${mostAtWork} at work`);
await session.close();
