// A library that exports values made with Offstage without annotating their types. The compiler must be able to name
// these types. scripts/consumer-types.ts compiles it.

import { tool } from 'ai';
import {
  createRuntime,
  defineSubagent,
  defineTool,
  memoryJournal,
  TextSession,
  type Outcome,
  createChildSubagentToolset,
  createParentSubagentToolset,
  createSubAgentTool,
} from 'offstage';
import { createWorkingMemoryToolset, workingMemory, type MemoryOwner } from 'offstage/memory';
import type { Recording, ReplayStep } from 'offstage/replay';
import { isLargeOutput } from 'offstage/results';
import type { ServiceView } from 'offstage/services';
import { createSubagentService, runSubagent, THE_LEAD } from 'offstage/subagents';
import { scriptedModel, simulatedEnvironment } from 'offstage/testing';
import type { TwilioCall } from 'offstage/twilio';
import { z } from 'zod';

export const model = scriptedModel({ otherwise: [{ text: 'Done.' }] });
export const runtime = createRuntime({ journal: memoryJournal() });

export const counter = defineSubagent({
  name: 'counter',
  instructions: 'Count what you are asked to count.',
  outputSchema: z.object({ count: z.number() }),
  tools: {
    list: tool({
      description: 'Lists',
      inputSchema: z.object({ folder: z.string() }),
      execute: async ({ folder }) => [folder.toUpperCase()],
    }),
  },
});

export const count = defineTool({
  name: 'count',
  description: 'Count',
  parameters: z.object({ what: z.string() }),
  execute: ({ what }) => ({ seen: what.length }),
});

export const session = new TextSession({
  model,
  agents: [{ name: 'assistant', instructions: 'You help.', tools: [count] }],
  subagentConfigs: { count: counter },
});

export const run = (task: string) => runSubagent(counter, task, { model, runtime });
export const ended = async (task: string) => {
  const outcome = await run(task).result;
  if (outcome.status !== 'completed') return outcome;
  const { output } = outcome;
  return isLargeOutput(output) ? output.excerpt : output.count + 1;
};
export const finished = (outcome: Outcome<{ count: number }>) =>
  outcome.status === 'completed' ? outcome : null;
export const service = createSubagentService({ runtime, model, configs: { counter } });
export const asTool = createSubAgentTool(counter, z.object({ what: z.string() }));
export const environment = simulatedEnvironment();

export const texts: string[] = [];
export const subscription = session.parts.subscribe((part) => {
  if (part.type === 'text.done') texts.push(part.text);
});
export const asked = session.events.subscribe((event) => {
  if (event.type === 'subagent.ended' && event.outcome.status !== 'completed')
    texts.push(event.outcome.error.message);
});

export const said = (task: string) => run(task).send('Count faster.');
export const checked = (id: string) => service.check(id, THE_LEAD);
export const limits = () => session.store.getSnapshot().context.limits;
export const parentTools = createParentSubagentToolset();
export const childTools = createChildSubagentToolset();
export const memory = workingMemory();
export const memoryTools = createWorkingMemoryToolset({ memory });
export const saved = (owner: MemoryOwner) => memory.list(owner);
export const replayed = ({ view: { calls, outbox, subagents, transcript } }: ReplayStep) => [
  calls,
  outbox,
  subagents,
  transcript,
];
export const recorded = ({ steps }: Recording) => steps;
export const sources = (view: ServiceView) => view.sources;
export const over = (call: TwilioCall) => call.ended;
