// The default app of `offstage simulate`: two agents who can lead, and subagents that look things up, ask,
// need consent, and have effects that must not happen twice. For some seeds the app has more: subagents of
// subagents, a service, and a program beside it.

import { tool } from 'ai';
import { z } from 'zod';
import { defineTool } from '../../actors/session/lead/lead-tools.ts';
import type { SubagentConfig } from '../../actors/contracts/config.ts';
import { chanceOf } from '../doubles/chance.ts';
import type { AppContext, SimulatedApp } from './log/app.ts';
import { withFamily } from './default-family.ts';
import { errandsOf, watchmanOf } from './default-services.ts';

const topic = z.object({ topic: z.string() });
const order = z.object({ item: z.string(), count: z.number().int().min(1).max(9) });

/** Looking twice does no harm. */
const lookUp = {
  ...tool({
    description: 'Looks something up',
    inputSchema: topic,
    execute: ({ topic: about }) => ({ found: `a page about ${about}` }),
  }),
  idempotent: true,
};

const pay = tool({
  description: 'Pays for an order',
  inputSchema: order,
  needsApproval: true,
  execute: ({ item, count }) => ({ paid: `${count} of ${item}` }),
});

const book = tool({
  description: 'Books something',
  inputSchema: order,
  execute: ({ item }) => ({ booked: item }),
});

const background = (name: string, description: string, pendingMessage?: string) =>
  defineTool({
    name,
    description,
    parameters: topic,
    execution: 'background',
    ...(pendingMessage !== undefined && { pendingMessage }),
  });

const research: SubagentConfig = {
  name: 'research',
  instructions: 'You find things out.',
  tools: { look_up: lookUp },
  maxSteps: 6,
  toolTimeout: 20_000,
};

const booking: SubagentConfig = {
  name: 'booking',
  instructions: 'You book what the user wants, and ask what is not clear.',
  tools: { book, look_up: lookUp },
  interactive: true,
  maxSteps: 6,
  inputTimeout: 60_000,
  toolTimeout: 20_000,
};

const shopping: SubagentConfig = {
  name: 'shopping',
  instructions: 'You buy what the user wants.',
  tools: { pay },
  interactive: true,
  maxSteps: 5,
  inputTimeout: 60_000,
  toolTimeout: 20_000,
};

const watching: SubagentConfig = {
  name: 'watching',
  instructions: 'You watch over something, and stop when the user speaks.',
  tools: { look_up: lookUp },
  onBargeIn: 'cancel',
  maxSteps: 4,
  toolTimeout: 20_000,
};

const planning: SubagentConfig = {
  name: 'planning',
  instructions: 'You plan something with the help of others.',
  maxSteps: 8,
  toolTimeout: 20_000,
};

const tools = [
  background('research', 'Finds something out', 'I am on it.'),
  background('booking', 'Books something'),
  background('shopping', 'Buys something', 'I see to it.'),
  background('watching', 'Watches over something'),
  background('planning', 'Plans something', 'I have it planned.'),
  defineTool({
    name: 'time',
    description: 'Says what time it is',
    parameters: z.object({}),
    idempotent: true,
    execute: () => 'It is noon',
  }),
];

/** The share of seeds whose app has more: most conversations are small. */
const FAMILIES = 0.3;
const SERVICES = 0.25;
const PROGRAMS = 0.15;

export function defaultApp(context: AppContext): SimulatedApp {
  const has = (what: string, share: number): boolean =>
    chanceOf(context.seed, 'app', what).happens(share);
  const plans = has('families', FAMILIES);
  const subagentConfigs: Readonly<Record<string, SubagentConfig>> = plans
    ? { planning: { ...planning, tools: withFamily({ look_up: lookUp }, context) } }
    : { research, booking, shopping, watching };
  const offered = tools.filter(({ name }) => name in subagentConfigs || name === 'time');
  return {
    agents: [
      { name: 'host', instructions: 'You are the host.', tools: offered },
      { name: 'clerk', instructions: 'You are the clerk.', tools: offered },
    ],
    subagentConfigs,
    limits: { maxConcurrentPerSession: 3 },
    ...(has('services', SERVICES) && {
      services: [
        watchmanOf(plans ? withFamily({ look_up: lookUp }, context) : { look_up: lookUp }, context),
      ],
    }),
    ...(has('programs', PROGRAMS) && {
      program: errandsOf({ book, ...withFamily({ look_up: lookUp }, context) }, context),
    }),
  };
}
