// One life of a busy voice session, which continues from the journal until it is killed. Usage: `node busy-session.ts
// <folder> <life>`. Its standard input then receives the number of the user's requests, and whether the life may end
// when no work is left. The process prints a line for each append and for each of the user's moments, and a line with a
// name for each effect in the world. The killer counts these lines.

import { createInterface } from 'node:readline';
import { z } from 'zod';
import {
  CapacityError,
  createRuntime,
  defineTool,
  createSubAgentTool,
} from '../../../src/index.ts';
import { VoiceSession } from '../../../src/voice-session.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { readTask, type Script } from '../../../src/testing/index.ts';
import { turns } from '../crashes.ts';
import { calls, say } from '../subagent-runs.ts';
import { agentsOf, castOf, configOf, configsOf, type ScriptedSubagent } from '../text-talk.ts';
import { openJournal } from './journal.ts';
import { LoopTransport } from './loop-model.ts';
import { openWorld, token, type Line } from './world.ts';
import { Listener, talk } from './user.ts';

const WORK_MS = 4;
const LEASE_PAUSE_MS = 20;

const [folder = '', lifeText = '1'] = process.argv.slice(2);
const life = Number(lifeText);

const input = createInterface({ input: process.stdin });
const [count = 0, isLast = 0] = await new Promise<number[]>((resolve) => {
  input.once('line', (line) => resolve(line.split(' ').map(Number)));
  process.stdout.write('ready\n');
});

const environment = nodeEnvironment();
const write = openWorld(folder, life);
const tick = (what = '.'): void => void process.stdout.write(`${what}\n`);
const log = (line: Line): void => {
  write(line);
  tick(line.what);
};
const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => void environment.scheduler.schedule(resolve, ms));

/** Records an effect in the world, with the idempotency key of the call. */
async function effect(tool: string, key = '', args: unknown, idempotent: boolean): Promise<void> {
  await pause(WORK_MS);
  log({ what: 'effect', tool, key, input: JSON.stringify(args), idempotent });
  await pause(WORK_MS);
}

const parameters = z.object({ n: z.number() });

function toolOf(tool: string, idempotent: boolean): unknown {
  return {
    description: 'Does something',
    inputSchema: z.looseObject({}),
    idempotent,
    execute: async (args: unknown, { idempotencyKey }: { idempotencyKey: string }) => {
      await effect(tool, idempotencyKey, args, idempotent);
      return { done: args };
    },
  };
}

/** Returns a script that finds the number of the request in the task. */
const about =
  (script: (n: number) => Script): Script =>
  (prompt) => {
    const task = JSON.stringify(readTask(prompt.prompt));
    return script(Number(/n\\*":(\d+)/.exec(task)?.[1]))(prompt);
  };

const find = toolOf('find', true);
const book = toolOf('book', false);

const helper: ScriptedSubagent = {
  script: about((n) =>
    turns(calls(['find', { n }]), calls(['book', { n, by: 'helper' }]), say(`{"found": ${n}}`)),
  ),
};
const helperTool = createSubAgentTool(
  {
    ...configOf('helper'),
    model: castOf({ subagents: { helper } }),
    tools: { find, book },
    outputSchema: z.object({ found: z.number() }),
  },
  parameters,
);

const config = { context: 'none' } as const;
const subagents: Record<string, ScriptedSubagent> = {
  ride: {
    script: about((n) =>
      turns(
        calls(['find', { n }]),
        calls(['ask_user', { question: `Where to? ${token('question', n)}` }]),
        ({ results }) => calls(['book', { n, answer: results[0] }]),
        ({ results }) => say(`${token('result', n)} ${JSON.stringify(results)}`),
      ),
    ),
    config: { ...config, interactive: true, tools: { find, book } },
  },
  seat: {
    script: about((n) =>
      turns(
        calls([
          'ask_user',
          {
            question: `Which seat? ${token('question', n)}`,
            options: [
              { id: `aisle-${n}`, label: `Aisle ${n}` },
              { id: `window-${n}`, label: `Window ${n}` },
            ],
          },
        ]),
        ({ results }) => calls(['book', { n, answer: results[0] }]),
        ({ results }) => say(`${token('result', n)} ${JSON.stringify(results)}`),
      ),
    ),
    config: { ...config, interactive: true, tools: { book } },
  },
  sum: {
    script: about((n) =>
      turns(calls(['find', { n, of: 1 }], ['find', { n, of: 2 }]), say(token('result', n))),
    ),
    config: { ...config, tools: { find } },
    pending: null,
  },
  trip: {
    script: about((n) =>
      turns(calls(['helper', { n }], ['find', { n }]), ({ results }) =>
        say(`${token('result', n)} ${JSON.stringify(results)}`),
      ),
    ),
    config: { ...config, tools: { helper: helperTool, find } },
  },
};

const transport = new LoopTransport(life, environment.scheduler);
const journal = await openJournal(folder, environment);
const session: VoiceSession = new VoiceSession({
  sessionId: 'ses',
  runtime: createRuntime({
    environment,
    journal: {
      append: (entry) => {
        tick();
        return journal.append(entry);
      },
      read: (query) => journal.read(query),
      claim: (scope) => journal.claim?.(scope),
      release: (scope) => journal.release?.(scope),
    },
    // Snapshots are frequent, so that many lives continue from a snapshot and are killed while they are writing one.
    // The test checks all entries at the end.
    snapshots: { afterEntries: 40, trim: false },
  }),
  transport,
  model: castOf({ subagents }),
  agents: agentsOf({
    subagents,
    tools: [
      defineTool({
        name: 'weather',
        description: 'Looks at the sky',
        parameters,
        idempotent: true,
        execute: async (args, { idempotencyKey }) => {
          await effect('weather', idempotencyKey, args, true);
          return { sky: 'blue' };
        },
      }),
      defineTool({
        name: 'pay',
        description: 'Pays',
        parameters,
        execute: async (args, { idempotencyKey }) => {
          await effect('pay', idempotencyKey, args, false);
          return { paid: true };
        },
      }),
      defineTool({
        name: 'remind',
        description: 'Reminds the user',
        parameters,
        execute: async (args, { idempotencyKey }) => {
          await effect('remind', idempotencyKey, args, false);
          session.notifyBackground(`Mind this: ${token('notice', args.n)}`);
          return { reminded: true };
        },
      }),
    ],
  }),
  subagentConfigs: configsOf({ subagents }),
  conversation: { limits: { maxItems: 5000, maxChars: 1_000_000 }, summarise: false },
  voice: { quietMs: 10, clearReportMs: 10, falseInterruptionMs: 100, settleTimeoutMs: 200 },
  hooks: {
    onError: (error, where) => log({ what: 'error', where, message: String(error) }),
    onCallInDoubt: ({ idempotencyKey: key }) => log({ what: 'doubt', key }),
  },
});
session.events.subscribe((event) => {
  if (event.type === 'session.recovered') log({ what: 'recovered', lost: event.lost });
});

const listener = new Listener(session, transport, environment.scheduler, log);
const leave = session.attach();
for (;;)
  try {
    await session.start();
    break;
  } catch (error) {
    // The killed process keeps its claim until the lease expires.
    if (!(error instanceof CapacityError)) throw error;
    await pause(LEASE_PAUSE_MS);
  }
await talk({ session, transport, listener, count, life, isLast: isLast === 1, pause, log, tick });
leave();
await session.suspend();
await journal.close();
process.exit(0);
