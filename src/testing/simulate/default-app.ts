// The default app of `offstage simulate`. It has two lead agents. Its subagents look things up, ask questions, need
// consent, and have effects that must not happen twice. For some seeds, the app also has some of these: steps on an
// engine, subagents of subagents, a service whose agent examines external events, a program that runs errands with
// subagents, tools that run on the user's pages, a tool that takes minutes, a language in which a model interprets
// consent, or channels that reach an absent user.

import { tool } from 'ai';
import { z } from 'zod';
import { defineTool } from '../../actors/session/lead/lead-tools.ts';
import type { SubagentConfig } from '../../actors/contracts/config.ts';
import { chanceOf, type Chance } from '../doubles/chance.ts';
import { scriptedModel } from '../doubles/scripted-model.ts';
import type { AppContext, SimulatedApp, SimulatedProgram } from './log/app.ts';
import {
  createSubAgentTool,
  subAgentTools,
  type SubAgentConfig,
} from '../../actors/subagents/toolsets/sub-agent-tool.ts';
import { createParentSubagentToolset } from '../../actors/subagents/toolsets/parent-toolset.ts';
import type { ServiceSubagentConfig } from '../../actors/services/service-config.ts';
import { THE_LEAD } from '../../actors/contracts/service-types.ts';
import { createSubagentService } from '../../actors/subagents/subagent-service.ts';

const topicInput = z.object({ topic: z.string() });
const order = z.object({ item: z.string(), count: z.number().int().min(1).max(9) });

/** Looking something up a second time is harmless. */
const lookUp = {
  ...tool({
    description: 'Looks something up',
    inputSchema: topicInput,
    execute: ({ topic: about }) => ({ found: `a page about ${about}` }),
  }),
  idempotent: true,
};

const pay = {
  ...tool({
    description: 'Pays for an order',
    inputSchema: order,
    needsApproval: true,
    execute: ({ item, count }) => ({ paid: `${count} of ${item}` }),
  }),
  lasting: { free: ['item', 'count'] },
};

const book = tool({
  description: 'Books something',
  inputSchema: order,
  execute: ({ item }) => ({ booked: item }),
});

const background = (name: string, description: string, pendingMessage?: string) =>
  defineTool({
    name,
    description,
    parameters: topicInput,
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

const leadTools = [
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

/** The share of seeds for which the app has this addition. Most conversations are small. */
const FAMILIES = 0.3;
const SERVICES = 0.25;
const PROGRAMS = 0.15;
const JOBS = 0.3;
const AT_PAGES = 0.25;
const SLOW_TOOLS = 0.2;
const READ_BY_MODELS = 0.3;
const REACHES = 0.4;

/** The app that `simulate` plays by default: two lead agents, and subagents that look things up, ask and book. */
export function defaultApp(context: AppContext): SimulatedApp {
  const { agents, subagentConfigs = {}, ...app } = plainApp(context);
  const chance = chanceOf(context.seed, 'app', 'tools');
  const atPages = chance.happens(AT_PAGES) ? toolAtPages(chance) : null;
  const further = [
    ...(atPages ? [defineTool({ ...atPages, name: 'locate', parameters: topicInput })] : []),
    ...(chance.happens(SLOW_TOOLS) ? [slowTool(context, chance)] : []),
  ];
  const isRead = chance.happens(READ_BY_MODELS);
  const changed = ({ tools = [], ...agent }: SimulatedApp['agents'][0]) => ({
    ...agent,
    tools: [...tools, ...further],
    ...(isRead && { language: 'pt' }),
  });
  const configs = Object.entries(subagentConfigs).map(([name, config]) => [
    name,
    { ...config, tools: { ...config.tools, photo: { ...atPages, inputSchema: topicInput } } },
  ]);
  return {
    ...app,
    agents: agents.map(changed),
    subagentConfigs: atPages ? Object.fromEntries(configs) : subagentConfigs,
    ...(isRead && { consentModel: scriptedModel([]) }),
    ...(chance.happens(REACHES) && { reach: channelsOf(context.seed, chance) }),
  };
}

/** A tool that runs on one of the user's pages. */
function toolAtPages(chance: Chance) {
  return {
    description: 'Looks through the camera of the user',
    runsAt: 'client' as const,
    absent: chance.pick(['wait', 'fail'] as const),
    idempotent: chance.happens(0.3),
    resultSchema: z.object({ seen: z.string() }),
    timeoutMs: chance.pick([20_000, 120_000]),
  };
}

/** A channel that sends a message with the same key only once, and one that may send it again. */
function channelsOf(seed: number, chance: Chance): NonNullable<SimulatedApp['reach']> {
  return {
    channels: {
      mail: { idempotent: true, timeoutMs: 20_000, send: async () => 'sent' },
      push: {
        idempotent: false,
        timeoutMs: 20_000,
        send: async ({ key }) => chanceOf(seed, 'push', key).pick(['sent', 'delivered', 'read']),
      },
    },
    steps: [
      { afterUnheardMs: chance.within(1, 5000), by: 'mail' },
      { afterUnheardMs: chance.within(5000, 20_000), by: 'push' },
    ],
    // The clock of a run starts at 22:13.
    ...(chance.happens(0.2) && { quiet: { from: '22:13', to: '22:14', timeZone: 'Etc/UTC' } }),
  };
}

/** An inline tool that takes up to four minutes. */
function slowTool({ environment: { scheduler }, seed }: AppContext, chance: Chance) {
  const detach = chance.pick([null, { afterMs: 3000 }, { onWords: true }]);
  return defineTool({
    name: 'survey',
    description: 'Surveys something',
    parameters: topicInput,
    timeout: 300_000,
    idempotent: chance.happens(0.5),
    ...(detach && { detach }),
    execute: ({ topic }, { abortSignal }) =>
      new Promise<string>((resolve) => {
        const takesMs = chanceOf(seed, 'survey', topic).within(500, 240_000);
        const cancel = scheduler.schedule(() => resolve(`The survey of ${topic}`), takesMs);
        abortSignal.addEventListener('abort', cancel);
      }),
  });
}

/** The app in English, without tools that run on pages and without a tool that takes minutes. */
export function plainApp(context: AppContext): SimulatedApp {
  const has = (what: string, share: number): boolean =>
    chanceOf(context.seed, 'app', what).happens(share);
  const plans = has('families', FAMILIES);
  const configs: Readonly<Record<string, SubagentConfig>> = plans
    ? { planning: { ...planning, tools: withFamily({ look_up: lookUp }, context) } }
    : { research, booking, shopping, watching };
  const subagentConfigs = has('jobs', JOBS) ? asJobs(configs) : configs;
  const offered = leadTools.filter(({ name }) => name in subagentConfigs || name === 'time');
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

/** Runs the steps of the subagents on an engine's workers. */
function asJobs(
  configs: Readonly<Record<string, SubagentConfig>>,
): Readonly<Record<string, SubagentConfig>> {
  return Object.fromEntries(
    Object.entries(configs).map(([name, config]) => [name, { ...config, runs: 'jobs' as const }]),
  );
}

type Tools = NonNullable<SubagentConfig['tools']>;

/** Gives a subagent its own subagents, which have these tools and tools of their own. */
export function withFamily(tools: Tools, { simulated }: AppContext): Tools {
  const tasting: SubAgentConfig = {
    name: 'tasting',
    instructions: 'You try something, and say how it was.',
    outputSchema: z.object({ finding: z.string(), stars: z.number().int().min(1).max(5) }),
    tools,
    interactive: true,
    maxSteps: 4,
    inputTimeout: 60_000,
    toolTimeout: 20_000,
  };
  const scout: Partial<SubagentConfig> = {
    name: 'scout',
    instructions: 'You look around.',
    interactive: true,
    maxSteps: 5,
    inputTimeout: 60_000,
    toolTimeout: 20_000,
  };
  const { spawn_subagent, await_subagent, send_to_subagent, check_subagent, cancel_subagent } =
    createParentSubagentToolset({ agent: simulated(scout) });
  return {
    ...tools,
    spawn_subagent,
    await_subagent,
    send_to_subagent,
    check_subagent,
    cancel_subagent,
    ...subAgentTools(createSubAgentTool(simulated(tasting), topicInput)),
  };
}

/** The number of events while a process lives, and the time span in which they happen. */
const HAPPENINGS = 2;

const WITHIN_MS = 20_000;

/** Creates a service with events at random times. */
export function watchmanOf(tools: Tools, { seed }: AppContext): ServiceSubagentConfig {
  return {
    agent: {
      name: 'watchman',
      instructions: 'You look at what happens in the yard, and say what matters.',
      tools,
      interactive: true,
      maxSteps: 5,
      inputTimeout: 60_000,
      toolTimeout: 20_000,
    },
    eventSources: [
      {
        name: 'yard',
        start(emit, signal, { environment: { clock, scheduler } }) {
          const begun = clock.now();
          const chance = chanceOf(seed, 'yard', begun);
          for (let nth = 1; nth <= HAPPENINGS; nth += 1) {
            const priority = chance.happens(0.3) ? 'urgent' : 'normal';
            const data = { parcel: `${begun % 10_000_000}-${nth}` };
            const cancel = scheduler.schedule(
              () => void emit({ source: 'yard', type: 'parcel.moved', data, priority }),
              chance.within(500, WITHIN_MS),
            );
            signal.addEventListener('abort', cancel);
          }
        },
      },
    ],
  };
}

/** Creates a program that starts new errands at certain times and continues its errands after a crash. */
export function errandsOf(
  tools: Tools,
  { seed, environment: { clock, scheduler }, simulated }: AppContext,
): NonNullable<SimulatedApp['program']> {
  const errand = simulated({
    name: 'errand',
    instructions: 'You run an errand.',
    tools,
    maxSteps: 6,
    toolTimeout: 20_000,
  });
  return ({ runtime, session }): SimulatedProgram => {
    const service = createSubagentService({ runtime, id: 'errands', configs: { errand } });
    const waiting = new Set<string>(['what there was']);
    const problems: string[] = [];
    let isClosed = false;
    const bring = async (subagentId: string): Promise<void> => {
      waiting.add(subagentId);
      for (;;) {
        const waited = await service.await([subagentId], THE_LEAD);
        if (isClosed || !waited.ok) return;
        const [report] = waited.reports;
        // No user answers the question, so the subagent continues when the question times out.
        if (waited.why === 'asked') await new Promise<void>((go) => scheduler.schedule(go, 1000));
        if (!report || report.endedAt === null) continue;
        waiting.delete(subagentId);
        session.notifyBackground(`${subagentId}: ${report.outcome?.text || report.state}`);
        return;
      }
    };
    const begin = async (): Promise<void> => {
      const { resumed, ended, lost } = await service.recover();
      for (const { subagentId, reason } of lost) problems.push(`${subagentId} is lost: ${reason}`);
      const known = service.list(THE_LEAD, { includeEnded: true });
      // Parents receive the results of their child subagents.
      const errands = new Set(known.flatMap(({ id, parentId }) => (parentId === null ? [id] : [])));
      for (const id of [...resumed, ...ended]) if (errands.has(id)) void bring(id);
      waiting.delete('what there was');
      const begun = clock.now();
      const chance = chanceOf(seed, 'errands', begun);
      for (let nth = 1; nth <= HAPPENINGS; nth += 1)
        scheduler.schedule(
          () => {
            const topic = `${begun % 10_000_000}-${nth}`;
            const description = `Run errand ${topic}`;
            const task = { toolName: 'errand', args: { topic }, description };
            const receipt = service.spawn({ config: errand, task, caller: THE_LEAD });
            if (receipt.status === 'accepted') void bring(receipt.subagentId);
          },
          chance.within(500, WITHIN_MS),
        );
    };
    begin().catch((error: unknown) => problems.push(String(error)));
    return {
      unfinished: () => [
        ...problems,
        ...[...waiting].map((subagentId) => `the program waits for ${subagentId}`),
      ],
      close() {
        isClosed = true;
        return service.close();
      },
    };
  };
}
