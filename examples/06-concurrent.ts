// Usage: npm run example examples/06-concurrent.ts
//
// Two background tools at once. Each has its own subagent, timeout and AbortController. The faster result is reported
// first, and never in the middle of another sentence. Meanwhile another lead agent takes over. The work continues, and
// the new lead agent reports its result.

import { tool } from 'ai';
import { z } from 'zod';
import { defineSubagent, defineTool, TextSession } from 'offstage';
import { scriptedModel, type Script } from 'offstage/testing';
import { scriptedLead } from './scripted-lead.ts';

const background = (name: string, pendingMessage: string) =>
  defineTool({
    name,
    description: name.replace('_', ' '),
    parameters: z.object({ prompt: z.string() }),
    execution: 'background',
    pendingMessage,
  });

interface Work {
  readonly ready: Promise<string>;
  readonly finish: (text: string) => void;
}
function work(): Work {
  let finish: Work['finish'] = () => {};
  const ready = new Promise<string>((resolve) => (finish = resolve));
  return { ready, finish };
}
const fix = work();
const image = work();

/** A subagent with one slow tool. */
const worker = (name: string, toolName: string, { ready }: Work) =>
  defineSubagent({
    name,
    instructions: `Use ${toolName} once, and say what came of it.`,
    tools: {
      [toolName]: tool({
        description: toolName,
        inputSchema: z.object({}),
        execute: () => ready,
      }),
    },
  });

const usesItsToolOnce: Script = ({ results: [result], toolNames: [name = ''] }) =>
  typeof result === 'string' ? { text: result } : { calls: [{ name, input: {} }] };

const session = new TextSession({
  model: scriptedModel({
    agents: { ask_coder: usesItsToolOnce, generate_image: usesItsToolOnce },
    scripts: [{ when: 'You talk about bills', script: scriptedLead(() => []) }],
    otherwise: scriptedLead((text) => {
      if (text.includes('bill'))
        return [{ name: 'transfer_to_agent', input: { agent_name: 'billing' } }];
      if (!text.includes('sunset')) return [];
      return [
        { name: 'ask_coder', input: { prompt: 'Fix the auth bug' } },
        { name: 'generate_image', input: { prompt: 'A sunset' } },
      ];
    }),
  }),
  agents: [
    {
      name: 'assistant',
      instructions: 'You talk to the user.',
      tools: [
        background('ask_coder', 'I have a look at the bug.'),
        background('generate_image', 'I paint you a sunset.'),
      ],
    },
    { name: 'billing', instructions: 'You talk about bills.' },
  ],
  subagentConfigs: {
    ask_coder: worker('coder', 'edit_code', fix),
    generate_image: worker('painter', 'paint', image),
  },
  // Reports one result in each turn; by default, the results of one request are reported together.
  consolidation: 'off',
  hooks: {
    onSubagentStep: ({ subagentName, stepNumber, toolCalls, tokensUsed }) =>
      console.log(
        `[${subagentName}] step ${stepNumber}: ${toolCalls.join() || 'says'} (${tokensUsed} tokens)`,
      ),
    onTransfer: ({ from, to }) => console.log(`(${from} hands over to ${to})`),
  },
});

session.parts.subscribe((part) => {
  if (part.type === 'text.done') console.log(`${session.store.get().context.agent}: ${part.text}`);
});

await session.start();
console.log('user: Fix the auth bug and generate an image of a sunset');
await session.sendText('Fix the auth bug and generate an image of a sunset');
image.finish('The image is in sunset.png.');
await session.nextResult();
console.log('user: I have a question about my bill');
for await (const _ of session.send('I have a question about my bill'));
fix.finish('The auth bug is fixed.');
await session.nextResult();
await session.close();
