// Tests simulations: the same seed produces the same run, a broken promise is found and its script is shrunk, and a run
// in which nothing happens is an error.

import { tool } from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineTool, createSubAgentTool } from '../../../src/index.ts';
import { runSubagent, subAgentTools } from '../../../src/entries/subagents.ts';
import {
  defaultApp,
  defaultFaults,
  parseScript,
  replayScript,
  scriptedModel,
  simulate,
  simulateOnce,
  SimulationError,
  type AppContext,
  type FaultPlan,
  type Script,
  type SimulatedApp,
  type SimulateOptions,
} from '../../../src/testing/index.ts';

const { 'crash.beforeAppend': _, 'crash.afterAppend': __, ...withoutCrashes } = defaultFaults;

test.each(['text', 'voice'] as const)(
  'produces the same run for the same seed, by %s',
  async (session) => {
    for (const seed of [11, 12]) {
      const first = await simulateOnce(seed, { session });
      const second = await simulateOnce(seed, { session });
      expect(JSON.stringify(second.record.log)).toBe(JSON.stringify(first.record.log));
      expect(first.record.log.length).toBeGreaterThan(30);
    }
  },
);

test.each(['text', 'voice'] as const)(
  'replays the faults of a random run from a script with the same log, by %s',
  async (session) => {
    const { record } = await simulateOnce(21, { session });
    const script = parseScript(JSON.stringify(record.script));
    const again = await replayScript(script);
    expect(script.strikes.length).toBeGreaterThan(0);
    expect(JSON.stringify(again.record.log)).toBe(JSON.stringify(record.log));
  },
);

/** An app with one subagent whose tool breaks the promise `MINE`. */
function appOf(execute: (input: { readonly n: number }) => unknown): SimulatedApp {
  return {
    agents: [
      {
        name: 'host',
        instructions: 'You are the host.',
        tools: [
          defineTool({
            name: 'work',
            description: 'Works',
            parameters: z.object({}),
            execution: 'background',
          }),
        ],
      },
    ],
    subagentConfigs: {
      work: {
        name: 'work',
        instructions: 'You work.',
        tools: { act: tool({ inputSchema: z.object({ n: z.number() }), execute }) },
        maxSteps: 4,
      },
    },
  };
}

async function failureOf(options: SimulateOptions) {
  try {
    await simulate(options);
  } catch (error) {
    if (error instanceof SimulationError) return error;
    throw error;
  }
  throw new Error('No promise was broken');
}

describe("a user's app", () => {
  const checks = [
    function* (record: Parameters<NonNullable<SimulateOptions['checks']>[number]>[0]) {
      const failed = record.effects.filter(({ status }) => status === 'threw');
      if (failed.length > 0) yield { promise: 'MINE', what: 'the tool threw' };
    },
  ];
  const app = appOf(({ n }) => {
    if (n % 2 === 1) throw new Error('odd');
    return n;
  });

  test("checks the app's own promise and minimises a run that breaks it", async () => {
    const options: SimulateOptions = {
      app,
      checks,
      session: 'text',
      faults: withoutCrashes,
      seeds: 50,
    };
    const { failure, message } = await failureOf(options);
    expect(failure.broken.map(({ promise }) => promise)).toContain('MINE');
    // The user's request alone causes the failure, so no fault is needed.
    expect(failure.shrunk.strikes).toEqual([]);
    expect(failure.shrunk.steps).toHaveLength(1);
    expect(failure.script.steps.length).toBeGreaterThan(1);
    expect(message).toContain('the user says "Please use work');
    const again = await replayScript(failure.shrunk, options);
    expect(again.broken.map(({ promise }) => promise)).toContain('MINE');
  });

  test('accepts scripts for its models', async () => {
    const { record } = await simulateOnce(1, {
      app,
      session: 'text',
      faults: {},
      models: { work: () => ({ text: 'I did it my way' }) },
    });
    expect(record.state?.deliveries.map(({ text }) => text)).toContain('I did it my way');
    expect(record.effects).toEqual([]);
  });

  test('calls an app that is a function once per process, with the time in that process', async () => {
    const made: number[] = [];
    const waiting = (context: { readonly seed: number }): SimulatedApp => {
      made.push(context.seed);
      return app;
    };
    const steps = [{ at: 0, do: 'crash' }] as const;
    await simulateOnce(9, { app: waiting, session: 'text', faults: {}, steps });
    expect(made).toEqual([9, 9]);
  });
});

describe('subagents that only a tool can start', () => {
  const findings: unknown[] = [];
  const helping = {
    name: 'helping',
    instructions: 'You help.',
    outputSchema: z.object({ finding: z.string() }),
    tools: { look: tool({ inputSchema: z.object({}), execute: () => 'nothing to be seen' }) },
  };
  const asker = (config: typeof helping): SimulatedApp => {
    const app = appOf(() => 'done');
    const work = app.subagentConfigs?.['work'] as NonNullable<
      SimulatedApp['subagentConfigs']
    >[string];
    const help = createSubAgentTool(config, z.object({ topic: z.string() }));
    return { ...app, subagentConfigs: { work: { ...work, tools: subAgentTools(help) } } };
  };
  const play = (app: SimulateOptions['app'], models: SimulateOptions['models'] = {}) =>
    simulateOnce(1, { app: app as SimulatedApp, models, session: 'text', faults: {} });

  test('use a generated model or the script with their name', async () => {
    const once: Script = ({ results }) =>
      results.length > 0
        ? { text: JSON.stringify(findings.push(results[0])) }
        : { calls: [{ name: 'subagent__helping', input: { topic: 'it' } }] };
    await play(asker(helping), { work: once });
    const helped: Script = () => ({ text: '{"finding":"by script"}' });
    await play(asker(helping), { work: once, helping: helped });
    expect(findings[0]).toEqual({ finding: expect.any(String) });
    expect(findings.at(-1)).toEqual({ finding: 'by script' });
  });

  test('let the app observe their tools on request', async () => {
    const models: SimulateOptions['models'] = {
      work: ({ results }) =>
        results.length > 0
          ? { text: 'done' }
          : { calls: [{ name: 'subagent__helping', input: { topic: 'it' } }] },
      helping: ({ results }) =>
        results.length > 0
          ? { text: '{"finding":"it"}' }
          : { calls: [{ name: 'look', input: {} }] },
    };
    const unwatched = await play(asker(helping), models);
    expect(unwatched.record.effects).toEqual([]);
    const watched = await play(({ simulated }: AppContext) => asker(simulated(helping)), models);
    expect(watched.record.effects[0]).toMatchObject({ tool: 'look', status: 'returned' });
    expect(watched.broken).toEqual([]);
  });
});

test('asks the program and the session for unfinished work in each process', async () => {
  const begun: string[] = [];
  const app = (context: AppContext): SimulatedApp => ({
    ...appOf(() => 'done'),
    program({ session }) {
      let isDone = false;
      begun.push(session.id);
      context.environment.scheduler.schedule(() => (isDone = true), 50_000);
      return {
        unfinished: () => (isDone ? [] : ['it has not written its letter']),
        close() {
          begun.push('closed');
          return Promise.resolve();
        },
      };
    },
  });
  const steps = [{ at: 0, do: 'crash' }] as const;
  const patient = await simulateOnce(1, { app, session: 'text', faults: {}, steps });
  expect(patient.broken).toEqual([]);
  expect(begun).toEqual(['session_1', 'session_1', 'closed']);
  const options = { app, session: 'text', faults: {}, steps, quietWithinMs: 5000 } as const;
  const hurried = await simulateOnce(1, options);
  expect(hurried.broken).toEqual([
    { promise: 'LIVE', what: 'at the end it has not written its letter' },
  ]);
});

test("keeps the result of a program's run that has an id, without breaking a promise", async () => {
  const ended: string[] = [];
  const app = ({ simulated }: AppContext): SimulatedApp => ({
    ...appOf(() => 'done'),
    program({ runtime }) {
      const errand = simulated({ name: 'errand', instructions: 'You run an errand.' });
      const run = runSubagent(errand, 'Run it', { id: 'errand-1', runtime });
      let isDone = false;
      void run.result.then(({ status }) => {
        isDone = true;
        ended.push(status);
      });
      return { unfinished: () => (isDone ? [] : ['its errand']), close: () => Promise.resolve() };
    },
  });
  for (const at of [200, 5000]) {
    const steps = [{ at, do: 'crash' }] as const;
    const { broken } = await simulateOnce(3, { app, session: 'text', faults: {}, steps });
    expect(broken).toEqual([]);
  }
  // One crash came before the run had ended, and the other one came after it.
  expect(ended).toEqual(['completed', 'completed', 'completed']);
});

test('gives the reason if a program cannot be closed', async () => {
  const app: SimulatedApp = {
    ...appOf(() => 'done'),
    program: () => ({
      unfinished: () => [],
      close: () => Promise.reject(new Error('its letter is not sent')),
    }),
  };
  await expect(simulateOnce(1, { app, session: 'text', faults: {}, steps: [] })).rejects.toThrow(
    'its letter is not sent',
  );
});

describe('a run that does too little', () => {
  test('fails', async () => {
    const idle: SimulatedApp = { agents: [{ name: 'host', instructions: 'You are the host.' }] };
    const { failure } = await failureOf({ app: idle, session: 'text', faults: {}, seed: 1 });
    expect(failure.broken).toEqual([{ promise: 'WORK', what: '0 subagents, expected 1 at least' }]);
  });

  test('fails if most runs lack the required events', async () => {
    const options: SimulateOptions = { session: 'text', faults: {}, seeds: 3 };
    await expect(
      simulate({ ...options, inMostRuns: ['subagents', 'crashes'] }),
    ).rejects.toMatchObject({ code: 'TOO_LITTLE_WORK' });
    expect(await simulate({ ...options, inMostRuns: ['subagents'] })).toMatchObject({ runs: 3 });
  });
});

test('reaches each fault point in at least one run', { timeout: 120_000 }, async () => {
  const struck = new Set<string>();
  const often: FaultPlan = Object.fromEntries(
    Object.keys(defaultFaults).map((point) => [point, { probability: 0.2, most: 2 }]),
  );
  // Few runs reach these points.
  const rare: FaultPlan = { 'consent.lies': 1, 'page.reloads': 1 };
  const app = (context: AppContext): SimulatedApp => {
    const { agents, ...others } = defaultApp(context);
    const read = { consentModel: scriptedModel([]) };
    return { ...others, ...read, agents: agents.map((agent) => ({ ...agent, language: 'pt' })) };
  };
  const wanted = new Set(Object.keys(defaultFaults));
  for (let seed = 1; seed <= 120 && struck.size < wanted.size; seed += 1) {
    // Some points are reached only in a run in which not everything goes wrong.
    const plan = seed % 2 === 0 ? often : defaultFaults;
    const { record } = await simulateOnce(seed, { faults: { ...plan, ...rare }, app });
    for (const { point } of record.script.strikes) struck.add(point);
  }
  expect([...wanted].filter((point) => !struck.has(point))).toEqual([]);
});

test('refuses a simulation without a seed', async () => {
  await expect(simulate({})).rejects.toMatchObject({ code: 'NO_SEED' });
});
