// Subagents whose model calls and tool calls are jobs. The session makes the decisions, and work that started before a
// crash is neither repeated nor lost.

import { APICallError, tool } from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  jobWorker,
  localJobs,
  packedHandler,
  packedEngine,
  type JobHandler,
  type JobPacking,
} from '../../../src/entries/jobs.ts';
import type { Jobs } from '../../../src/actors/ports/jobs.ts';
import { relayLoop } from '../../../src/actors/subagent/relay-loop.ts';
import { THE_LEAD, createSubagentService, runSubagent } from '../../../src/entries/subagents.ts';
import { callerOf, createRuntime, type SubagentConfig } from '../../../src/index.ts';
import {
  scriptedModel,
  simulatedEnvironment,
  simulatedJobs,
  type Script,
  type ScriptLike,
} from '../../../src/testing/index.ts';
import { turns, world } from '../../support/crashes.ts';
import { memoryClaims, testCodec } from '../../support/job-packing.ts';
import { calls, never, say } from '../../support/subagent-runs.ts';

const INSTRUCTIONS = 'You book rides.';

/** Creates a ride that is charged once and a lookup that may be repeated. */
function rides() {
  const done: string[] = [];
  /** Started calls wait here while the gate is closed. */
  let opened = Promise.resolve();
  const gate = {
    close: (): (() => void) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      opened = promise;
      return resolve;
    },
  };
  const tools = {
    charge: {
      ...tool({
        description: 'Charges the card',
        inputSchema: z.object({ dollars: z.number() }),
        execute: async ({ dollars }, options) => {
          done.push(`charge ${dollars} ${String(callerOf(options)?.idempotencyKey)}`);
          await opened;
          return { charged: dollars };
        },
      }),
    },
    look_up: {
      ...tool({
        description: 'Looks something up',
        inputSchema: z.object({}),
        execute: async () => {
          done.push('look_up');
          await opened;
          return 'it is far';
        },
      }),
      idempotent: true,
    },
  };
  return { tools, done, gate };
}

const config = (more: Partial<SubagentConfig> = {}): SubagentConfig => ({
  name: 'rides',
  instructions: INSTRUCTIONS,
  runs: 'jobs',
  ...more,
});

const booking: Script = turns(
  calls(['look_up', {}, 'call_look']),
  calls(['charge', { dollars: 7 }, 'call_charge']),
  ({ results }) => say(`Booked: ${JSON.stringify(results[0])}`),
);

/** Creates a worker and an in-memory engine, and records what they do. */
function engine(script: ScriptLike, subagent: SubagentConfig, packing?: JobPacking) {
  const environment = simulatedEnvironment();
  const prompts: string[] = [];
  const model = scriptedModel({
    scripts: [
      {
        when: INSTRUCTIONS,
        script: (prompt) => {
          prompts.push(JSON.stringify(prompt.prompt));
          return typeof script === 'function' ? script(prompt) : say('no');
        },
      },
    ],
  });
  const errors: string[] = [];
  const worker = jobWorker({
    environment,
    model,
    configs: { rides: subagent },
    onError: (error, where) => errors.push(`${where}: ${String(error)}`),
  });
  const handler = packing ? packedHandler(worker, packing) : worker;
  const jobs = simulatedJobs({ handler });
  return { environment, jobs, prompts, errors, seen: packing ? packedEngine(jobs, packing) : jobs };
}

describe('a run on an engine', () => {
  test('runs its steps as jobs, decides in the session and does not call models or tools locally', async () => {
    const { tools, done } = rides();
    const { jobs, environment } = engine(booking, config({ tools }));
    const runtime = createRuntime({ environment, jobs });
    const { id, result } = runSubagent(config({ tools }), 'To the airport', { runtime });
    const outcome = await result;
    expect(outcome).toMatchObject({
      status: 'completed',
      text: 'Booked: {"charged":7}',
      steps: 3,
      usage: { totalTokens: 45 },
      toolLedger: [
        { toolName: 'look_up', status: 'ok' },
        { toolName: 'charge', status: 'ok', output: { charged: 7 } },
      ],
    });
    expect(done).toEqual(['look_up', `charge 7 ${id}:2:call_charge`]);
    expect(jobs.begun.map(({ name, once }) => [name, once])).toEqual([
      ['model of rides', false],
      ['tool look_up of rides', false],
      ['model of rides', false],
      ['tool charge of rides', true],
      ['model of rides', false],
    ]);
    const keys = jobs.begun.map(({ key }) => key.slice(key.indexOf(id)));
    expect(new Set(keys).size).toBe(5);
    expect(keys[0]).toBe(`${id}:1:1#1`);
  });

  test('asks for approval in the session and does not create a job for a denied call', async () => {
    const { tools, done } = rides();
    const own = { ...tools, charge: { ...tools.charge, needsApproval: true } };
    const script = turns(calls(['charge', { dollars: 7 }]), say('Not booked'));
    const subagent = config({ tools: own, interactive: true });
    const { jobs, environment } = engine(script, subagent);
    const runtime = createRuntime({ environment, jobs });
    const { result } = runSubagent(subagent, 'Go', {
      runtime,
      onQuestion: () => ({ approved: false }),
    });
    expect(await result).toMatchObject({
      status: 'completed',
      toolLedger: [{ toolName: 'charge', status: 'denied' }],
    });
    expect(done).toEqual([]);
    expect(jobs.begun.filter(({ name }) => name.startsWith('tool'))).toEqual([]);
  });

  test('creates jobs for a single tool if so configured', async () => {
    const { tools } = rides();
    const own = { ...tools, charge: { ...tools.charge, runs: 'jobs' } };
    const { jobs, environment } = engine(booking, config({ tools: own, runs: 'here' }));
    const runtime = createRuntime({ environment, jobs });
    const { result } = runSubagent(config({ tools: own, runs: 'here' }), 'Go', {
      runtime,
      model: scriptedModel({ scripts: [{ when: INSTRUCTIONS, script: booking }] }),
    });
    expect((await result).status).toBe('completed');
    expect(jobs.begun.map(({ name }) => name)).toEqual(['tool charge of rides']);
  });

  test('runs a single tool in the session if so configured', async () => {
    const { tools } = rides();
    const own = { ...tools, look_up: { ...tools.look_up, runs: 'here' } };
    const { jobs, environment } = engine(booking, config({ tools: own }));
    const runtime = createRuntime({ environment, jobs });
    expect((await runSubagent(config({ tools: own }), 'Go', { runtime }).result).status).toBe(
      'completed',
    );
    expect(jobs.begun.some(({ name }) => name.includes('look_up'))).toBe(false);
  });

  test('runs every step in the session without an engine', async () => {
    const { tools, done } = rides();
    const runtime = createRuntime({ environment: simulatedEnvironment() });
    const { result } = runSubagent(config({ tools }), 'Go', {
      runtime,
      model: scriptedModel({ scripts: [{ when: INSTRUCTIONS, script: booking }] }),
    });
    expect((await result).status).toBe('completed');
    expect(done.length).toBe(2);
  });

  test('retries a failed call as a new job that counts towards the budget', async () => {
    let failures = 2;
    const script: Script = () => {
      failures -= 1;
      if (failures >= 0) throw Object.assign(new Error('busy'), { name: 'TimeoutError' });
      return say('done');
    };
    const { jobs, environment } = engine(script, config());
    const runtime = createRuntime({ environment, jobs });
    const { result } = runSubagent(config({ retry: { maxAttempts: 3 } }), 'Go', { runtime });
    await environment.advance(60_000);
    expect((await result).text).toBe('done');
    expect(jobs.begun.map(({ key }) => key.split('#')[1])).toEqual(['1', '2', '3']);
  });

  test('streams through the session if the engine supports it', async () => {
    const environment = simulatedEnvironment();
    const model = scriptedModel([{ text: 'It is far away' }]);
    const own = config({ stream: true });
    const jobs = localJobs({ handler: jobWorker({ environment, model, configs: { own } }) });
    const told: string[] = [];
    const hear: typeof jobs = {
      ...jobs,
      run: (job, { signal, said }) =>
        jobs.run(job, { signal, said: said && ((text) => (told.push(text), said(text))) }),
    };
    const runtime = createRuntime({ environment, jobs: hear });
    await runSubagent(own, 'Go', { runtime }).result;
    expect(told.map((text) => (JSON.parse(text) as { delta: string }).delta).join('')).toBe(
      'It is far away',
    );
  });
});

describe('a worker', () => {
  const once = async (handler: JobHandler, step: object): Promise<unknown> =>
    handler.do(
      { key: 'k', name: 'a step', once: false, body: JSON.stringify(step) },
      new AbortController().signal,
    );
  const caller = {
    sessionId: 'ses',
    subagentId: 'sub',
    parentId: null,
    depth: 1,
    requester: 'ann',
    approver: null,
    idempotencyKey: 'sub:1:call',
  };
  const toolStep = (more: object) => ({
    kind: 'tool',
    config: 'rides',
    tools: ['charge'],
    toolName: 'charge',
    callId: 'call',
    input: { dollars: 1 },
    raw: false,
    messages: [],
    caller,
    ...more,
  });

  test.each([
    ['a configuration', { config: 'unknown' }],
    ['a tool', { tools: ['fly'], toolName: 'fly' }],
    ['a tool that the session did not grant', { tools: ['look_up'] }],
  ])(
    'JOB-WORKER-2: refuses a job with an unknown %s before it calls anything',
    async (_, wrong) => {
      const { tools, done } = rides();
      const handler = jobWorker({
        environment: simulatedEnvironment(),
        configs: { rides: config({ tools }) },
      });
      expect(await once(handler, toolStep(wrong))).toMatchObject({
        refused: { code: 'NOT_RECOVERABLE' },
      });
      expect(done).toEqual([]);
    },
  );

  test('JOB-WORKER-1: gives the model only the tools that the job names', async () => {
    const { tools } = rides();
    const seen: unknown[] = [];
    const handler = jobWorker({
      environment: simulatedEnvironment(),
      configs: { rides: config({ tools, interactive: true }) },
      model: scriptedModel([
        ({ toolNames }) => {
          seen.push(toolNames);
          return say('done');
        },
      ]),
    });
    const messages = [{ role: 'user', content: 'Go' }];
    await once(handler, {
      kind: 'model',
      config: 'rides',
      tools: ['look_up'],
      instructions: INSTRUCTIONS,
      messages,
      final: false,
      stream: false,
    });
    expect(seen).toEqual([['look_up']]);
  });

  test('refuses a body that was not written by a session', async () => {
    const handler = jobWorker({ environment: simulatedEnvironment(), configs: {} });
    for (const body of ['', 'no JSON', '{}', '{"kind":"model","config":7}', '[]', 'null'])
      expect(
        await handler.do({ key: 'k', name: 'x', once: false, body }, new AbortController().signal),
      ).toMatchObject({ refused: { code: 'JOB_UNREADABLE' } });
  });

  test.each<[string, z.ZodObject, object]>([
    ['that it does not take', z.object({ dollars: z.number().max(100) }), { dollars: 900 }],
    [
      'that says too little',
      z.object({ dollars: z.number(), currency: z.string() }),
      { dollars: 9 },
    ],
    [
      'of which it makes something else',
      z.object({ dollars: z.number().transform((dollars) => dollars * 2) }),
      { dollars: 9 },
    ],
  ])('JOB-WORKER-4: refuses an input %s if it has another version', async (_, schema, input) => {
    const charged: unknown[] = [];
    const charge = tool({
      description: 'Charges',
      inputSchema: schema,
      execute: (given) => charged.push(given),
    });
    const handler = jobWorker({
      environment: simulatedEnvironment(),
      configs: { rides: config({ tools: { charge } }) },
    });
    const end = await once(handler, toolStep({ input }));
    expect(end).toMatchObject({ refused: { code: 'NOT_RECOVERABLE' } });
    expect(charged).toEqual([]);
  });

  test("transforms a tool's input with its schema, as a local run does", async () => {
    const got: unknown[] = [];
    const double = tool({
      description: 'Doubles',
      inputSchema: z.object({ n: z.string().transform(Number) }),
      execute: ({ n }) => got.push(n),
    });
    const subagent = config({ tools: { double: { ...double } } });
    const { jobs, environment } = engine(
      turns(calls(['double', { n: '7' }]), say('Done.')),
      subagent,
    );
    const runtime = createRuntime({ environment, jobs });
    const { result } = runSubagent(subagent, 'Double', { runtime });
    expect((await result).status).toBe('completed');
    expect(got).toEqual([7]);
  });

  test("passes the caller to a tool, but not the session's service", async () => {
    const seen: unknown[] = [];
    const look = tool({
      inputSchema: z.object({}),
      execute: (_, options) => {
        const { service, ...others } = callerOf(options)!;
        seen.push(others);
        return service.list({} as never);
      },
    });
    const handler = jobWorker({
      environment: simulatedEnvironment(),
      configs: { rides: config({ tools: { look } }) },
    });
    const end = (await once(
      handler,
      toolStep({ tools: ['look'], toolName: 'look', input: {} }),
    )) as {
      done: string;
    };
    expect(seen).toEqual([caller]);
    expect(JSON.parse(end.done)).toMatchObject({
      status: 'error',
      error: { message: expect.stringContaining("leave `runs: 'here'`") },
    });
  });

  test('throws a named error if it has no model, or two configurations with the same name', async () => {
    const handler = jobWorker({ environment: simulatedEnvironment(), configs: { a: config() } });
    const messages = [{ role: 'user', content: 'Go' }];
    const step = { kind: 'model', config: 'rides', tools: [], instructions: '', messages };
    expect(await once(handler, { ...step, final: false, stream: false })).toMatchObject({
      failed: { code: 'NO_MODEL' },
    });
    expect(() =>
      jobWorker({
        environment: simulatedEnvironment(),
        configs: { a: config(), b: config() },
      }),
    ).toThrow(/one configuration named "rides"/);
  });
});

describe('an option or engine that cannot work with jobs', () => {
  test.each(['createInstance', 'dispose'])('throws a named error for %s', (option) => {
    expect(() =>
      runSubagent(config({ [option]: () => config() }), 'Go', {
        runtime: createRuntime({ environment: simulatedEnvironment() }),
      }),
    ).toThrow(new RegExp(`${option}: expected none beside runs: 'jobs'`));
  });

  test('throws a named error for an engine that cannot start steps', () => {
    const { steps: _, ...jobs } = simulatedJobs({ handler: { do: never } });
    expect(() =>
      createRuntime({ environment: simulatedEnvironment(), jobs: jobs as unknown as Jobs }),
    ).toThrow(/`steps: stepJobs` of offstage\/jobs/);
  });

  test('throws a named error for a relay', () => {
    const capabilities = {
      openQuestionSurvives: true,
      resumes: true,
      steers: true,
      reportsTools: true,
    };
    const relay = { name: 'agent', loop: relayLoop, start: never, capabilities };
    expect(() =>
      runSubagent(config({ relay }), 'Go', {
        runtime: createRuntime({ environment: simulatedEnvironment() }),
      }),
    ).toThrow(/runs: expected none beside relay/);
  });
});

describe('a run after a crash', () => {
  const setUp = (script: Script, packing?: JobPacking) => {
    const own = rides();
    const subagent = config({ tools: own.tools });
    const it = engine(script, subagent, packing);
    const of = world({ jobs: it.seen });
    const doubts: string[] = [];
    const begin = () => {
      const { process, runtime } = of.begin();
      const run = runSubagent(subagent, 'To the airport', {
        runtime,
        id: 'ride-1',
        onCallInDoubt: ({ toolName }) => doubts.push(toolName),
      });
      return { ...run, process };
    };
    return { ...own, ...it, of, begin, doubts };
  };
  const settle = (of: ReturnType<typeof world>) => of.environment.advance(120_000);

  test('charges only once and receives the result if the crash happened during the charge', async () => {
    const { begin, of, gate, done, doubts } = setUp(booking);
    const open = gate.close();
    const first = begin();
    await of.environment.settle();
    open();
    const openAgain = gate.close();
    await of.environment.settle();
    expect(done.length).toBe(2);
    first.process.kill();
    const { result } = begin();
    await settle(of);
    openAgain();
    expect(await result).toMatchObject({
      status: 'completed',
      toolLedger: [{ status: 'ok' }, { toolName: 'charge', status: 'ok' }],
    });
    expect(done.filter((what) => what.startsWith('charge')).length).toBe(1);
    expect(doubts).toEqual([]);
  });

  test('does not repeat any model or tool call if killed before or after any entry', async () => {
    const whole = setUp(booking);
    const { result } = whole.begin();
    await settle(whole.of);
    await result;
    for (let entry = 1; entry <= whole.of.written; entry += 1)
      for (const when of ['before', 'after'] as const) {
        const { begin, of, done, prompts, doubts } = setUp(booking);
        of.killAt(entry, when);
        const first = begin();
        await settle(of);
        expect(first.process.isAlive).toBe(false);
        const second = begin();
        await settle(of);
        const { status } = await second.result;
        const where = `${when} entry ${entry}`;
        expect([where, status]).toEqual([where, 'completed']);
        // If its first entry was not stored, the subagent is a different one.
        const most = prompts.length;
        expect([where, most <= 3, done.length, doubts]).toEqual([where, true, 2, []]);
      }
  });

  test('reports a charge in doubt once to the app and the model if the worker dies during the charge', async () => {
    const { begin, of, gate, done, jobs, doubts } = setUp(booking);
    const open = gate.close();
    const { result } = begin();
    await of.environment.settle();
    open();
    gate.close();
    await of.environment.settle();
    expect(done.length).toBe(2);
    jobs.killWorkers();
    await settle(of);
    const { status, toolLedger, text } = await result;
    expect(status).toBe('completed');
    expect(toolLedger.map(({ toolName, status: how }) => [toolName, how])).toEqual([
      ['look_up', 'ok'],
      ['charge', 'in_flight'],
    ]);
    expect(text).toContain('whether it was done is not known');
    expect(done.length).toBe(2);
    expect(doubts).toEqual(['charge']);
  });

  test('repeats a look-up under the same key if the worker dies during the look-up', async () => {
    const { begin, of, gate, done, jobs } = setUp(booking);
    const open = gate.close();
    const { result } = begin();
    await of.environment.settle();
    expect(done).toEqual(['look_up']);
    jobs.killWorkers();
    open();
    await settle(of);
    expect((await result).status).toBe('completed');
    expect(done.filter((what) => what === 'look_up').length).toBe(2);
    const looked = jobs.begun.filter(({ name }) => name.includes('look_up'));
    expect(new Set(looked.map(({ key }) => key)).size).toBe(1);
  });

  test('leaves a call in doubt if a process without an engine started it', async () => {
    // A process without an engine started the call, whose outcome is unknown.
    const own = rides();
    const subagent = config({ tools: own.tools });
    const before = engine(booking, subagent);
    const journal = world();
    const first = journal.begin();
    const open = own.gate.close();
    const model = scriptedModel({ scripts: [{ when: INSTRUCTIONS, script: booking }] });
    runSubagent(subagent, 'Go', { runtime: first.runtime, model, id: 'ride-1' });
    await journal.environment.settle();
    open();
    own.gate.close();
    await journal.environment.settle();
    expect(own.done.length).toBe(2);
    first.process.kill();
    const later = world({
      jobs: before.jobs,
      inheritance: { entries: journal.entries, at: journal.environment.clock.now() },
    });
    const { result } = runSubagent(subagent, 'Go', {
      runtime: later.begin().runtime,
      id: 'ride-1',
    });
    await settle(later);
    const { toolLedger } = await result;
    expect(toolLedger.at(-1)).toMatchObject({ toolName: 'charge', status: 'in_flight' });
    expect(own.done.length).toBe(2);
  });

  test('retries under the same key while the engine is unreachable', async () => {
    const { begin, of, jobs } = setUp(booking);
    let down = 3;
    const { run } = jobs;
    Object.assign(jobs, {
      run: async (...given: Parameters<typeof run>) => {
        down -= 1;
        if (down >= 0)
          throw new (await import('../../../src/entries/jobs.ts')).JobError(
            'JOBS_UNREACHABLE',
            'refused',
            { retryable: true },
          );
        return run(...given);
      },
    });
    const { result } = begin();
    await settle(of);
    expect((await result).status).toBe('completed');
    expect(jobs.begun[0]?.key).toMatch(/:1:1#1$/);
  });

  test('leaves its jobs to the next process when it is suspended', async () => {
    const { of, gate, done, jobs, tools } = setUp(booking);
    const cancelled: string[] = [];
    Object.assign(jobs, { cancel: (key: string) => cancelled.push(key) });
    const open = gate.close();
    const subagent = config({ tools });
    const start = () => {
      const { runtime } = of.begin();
      const service = createSubagentService({ runtime, id: 'rides', configs: { rides: subagent } });
      const spawn = () =>
        service.spawn({
          config: subagent,
          task: { toolName: 'rides', args: {}, description: 'Go' },
          caller: THE_LEAD,
          idempotencyKey: 'one',
        });
      return { service, spawn };
    };
    const first = start();
    await first.service.recover();
    first.spawn();
    await of.environment.settle();
    expect(done).toEqual(['look_up']);
    await first.service.suspend();
    expect(cancelled).toEqual([]);
    const second = start();
    await second.service.recover();
    open();
    await settle(of);
    const [report] = second.service.list(THE_LEAD, { includeEnded: true });
    expect(report?.outcome?.status).toBe('completed');
    expect(done.length).toBe(2);
  });

  test('stops its jobs when it is cancelled', async () => {
    const { begin, of, gate, done, jobs } = setUp(booking);
    const cancelled: string[] = [];
    const { cancel } = jobs;
    Object.assign(jobs, { cancel: (key: string) => (cancelled.push(key), cancel(key)) });
    gate.close();
    const { result, cancel: give } = begin();
    await of.environment.settle();
    expect(done).toEqual(['look_up']);
    give('no longer needed');
    await settle(of);
    expect((await result).status).toBe('cancelled');
    expect(cancelled.length).toBe(1);
    expect(cancelled[0]).toMatch(/:1:call_look$/);
  });

  test('notifies the engine when a subagent ends', async () => {
    const { begin, of, jobs } = setUp(booking);
    const ended: string[] = [];
    Object.assign(jobs, { ended: (prefix: string) => void ended.push(prefix) });
    const { result } = begin();
    await settle(of);
    await result;
    expect(ended.length).toBe(1);
    expect(jobs.begun.every(({ key }) => key.startsWith(ended[0] as string))).toBe(true);
  });

  test("leaves no plain text in the engine's storage if all bodies are encrypted and large ones offloaded", async () => {
    const claims = memoryClaims();
    const packing = { codec: testCodec('a key'), claims, claimAboveBytes: 500 };
    const script = turns(calls(['charge', { dollars: 7 }]), say(`PLANTED ${'x'.repeat(2_000)}`));
    const { begin, of, jobs } = setUp(script, packing);
    const stored: string[] = [];
    const { run } = jobs;
    Object.assign(jobs, {
      async run(...given: Parameters<typeof run>) {
        const end = await run(...given);
        stored.push(JSON.stringify([given[0], end]));
        stored.push(...claims.texts.values());
        return end;
      },
    });
    const { result } = begin();
    await settle(of);
    expect((await result).text).toContain('PLANTED');
    expect(stored.length).toBeGreaterThan(3);
    for (const word of ['PLANTED', 'airport', INSTRUCTIONS, 'charged'])
      expect(stored.filter((text) => text.includes(word))).toEqual([]);
    expect(claims.texts.size).toBe(0);
  });

  test('fails with a reason if the keys differ or only one side packs its bodies', async () => {
    const packings: [JobPacking | undefined, JobPacking | undefined][] = [
      [{ codec: testCodec('one') }, { codec: testCodec('other') }],
      [{ codec: testCodec('one') }, undefined],
      [undefined, { codec: testCodec('one') }],
      [{ claims: memoryClaims(), claimAboveBytes: 0 }, { claims: memoryClaims() }],
    ];
    for (const [asked, done] of packings) {
      const it = engine(booking, config());
      const worker = jobWorker({
        environment: it.environment,
        model: scriptedModel([say('done')]),
        configs: { rides: config() },
      });
      const jobs = simulatedJobs({ handler: done ? packedHandler(worker, done) : worker });
      const runtime = createRuntime({
        environment: it.environment,
        jobs: asked ? packedEngine(jobs, asked) : jobs,
      });
      const { error } = await runSubagent(config(), 'Go', { runtime }).result;
      expect(error?.code).toBe('JOB_UNREADABLE');
    }
  });

  test('removes secrets before they are sent to the engine', async () => {
    const packing = { redact: { values: ['sesame-opens-it'] } };
    const it = engine(turns(say('done')), config(), packing);
    const runtime = createRuntime({ environment: it.environment, jobs: it.seen });
    await runSubagent(config(), 'The word is sesame-opens-it', { runtime }).result;
    expect(it.prompts.length).toBe(1);
    expect(JSON.stringify([it.jobs.begun, it.prompts])).not.toContain('sesame');
    expect(it.prompts[0]).toContain('[redacted]');
  });
});

describe('a step that fails permanently', () => {
  const SECRET = 'sk-planted-key';
  const apiError = (statusCode: number): APICallError =>
    new APICallError({
      message: 'Your PLANTED words are too many',
      url: `https://models.test/v1?key=${SECRET}`,
      requestBodyValues: { prompt: SECRET, apiKey: SECRET },
      responseHeaders: { 'x-request': SECRET },
      responseBody: SECRET,
      statusCode,
      isRetryable: statusCode === 429,
      cause: new Error(SECRET),
    });
  /** Runs to the end from any state that the engine had stored. */
  const failing = async (script: Script, subagent: SubagentConfig, packing?: JobPacking) => {
    const it = engine(script, subagent, packing);
    const stored: string[] = [];
    const { run } = it.jobs;
    Object.assign(it.jobs, {
      async run(...given: Parameters<typeof run>) {
        const end = await run(...given);
        stored.push(JSON.stringify([given[0], end]));
        return end;
      },
    });
    const runtime = createRuntime({ environment: it.environment, jobs: it.seen });
    const { result } = runSubagent(subagent, 'Go', { runtime });
    await it.environment.advance(600_000);
    return { ...it, outcome: await result, stored };
  };

  test.each([
    [429, 'RATE_LIMITED', 3],
    [401, 'PROVIDER_UNAUTHORIZED', 1],
  ])(
    'returns only the code and the message if a model fails with status %i',
    async (status, code, times) => {
      const script: Script = () => {
        throw apiError(status);
      };
      const { outcome, stored, jobs } = await failing(
        script,
        config({ retry: { maxAttempts: 3 } }),
      );
      expect(outcome).toMatchObject({
        status: 'failed',
        error: { code, message: expect.stringContaining('too many') },
      });
      expect(jobs.begun.length).toBe(times);
      expect(stored.join()).toContain('too many');
      expect([JSON.stringify(outcome), ...stored].join()).not.toContain(SECRET);
    },
  );

  test('gives the model only the message of an error that a tool throws', async () => {
    const charge = tool({
      inputSchema: z.object({}),
      execute: (): string => {
        throw Object.assign(new Error('the card was refused'), { card: SECRET, cause: SECRET });
      },
    });
    const script = turns(calls(['charge', {}]), ({ results }) => say(JSON.stringify(results)));
    const { outcome, stored } = await failing(script, config({ tools: { charge } }));
    expect(outcome).toMatchObject({
      status: 'completed',
      text: expect.stringContaining('the card was refused'),
      toolLedger: [{ status: 'error' }],
    });
    expect(stored.join()).not.toContain(SECRET);
  });

  test.each<[string, JobPacking]>([
    ['a codec', { codec: testCodec('a key') }],
    ['redaction', { redact: { values: ['PLANTED words'] } }],
  ])('PACKING-1: keeps the words of a failure out of the engine with %s', async (kind, packing) => {
    const script: Script = () => {
      throw apiError(401);
    };
    const { outcome, stored } = await failing(script, config(), packing);
    expect(stored.join()).not.toContain('PLANTED');
    const words = kind === 'a codec' ? 'Your PLANTED words are' : 'Your [redacted] are';
    expect(outcome.error).toMatchObject({
      code: 'PROVIDER_UNAUTHORIZED',
      message: expect.stringContaining(words),
    });
  });

  test('JOBS-7: repeats a hanging model call as a new job and then fails with JOB_TIMEOUT', async () => {
    const { environment } = engine(() => never(), config());
    const keys: string[] = [];
    const worker = jobWorker({
      environment,
      configs: { rides: config() },
      model: scriptedModel([() => never(), () => never()]),
    });
    const handler: JobHandler = {
      do: (job, signal) => (keys.push(job.key), worker.do(job, signal)),
    };
    const jobs = localJobs({ handler, environment, longestMs: 5_000 });
    const runtime = createRuntime({ environment, jobs });
    const { result } = runSubagent(config({ retry: { maxAttempts: 2 } }), 'Go', { runtime });
    await environment.advance(600_000);
    expect((await result).error).toMatchObject({
      code: 'JOB_TIMEOUT',
      message: expect.stringContaining('model of rides: expected its end within 5000 ms'),
    });
    expect(keys.map((key) => key.split('#')[1])).toEqual(['1', '2']);
  });

  test('JOBS-7: marks a hanging tool call as in doubt if it must not run again', async () => {
    const { environment } = engine(booking, config());
    let begun = 0;
    const charge = tool({
      inputSchema: z.object({}),
      execute: (): Promise<string> => {
        begun += 1;
        return new Promise(() => {});
      },
    });
    const script = turns(calls(['charge', {}]), ({ results }) => say(JSON.stringify(results)));
    const subagent = config({ tools: { charge } });
    const handler = jobWorker({
      environment,
      configs: { rides: subagent },
      model: scriptedModel({ scripts: [{ when: INSTRUCTIONS, script }] }),
    });
    const jobs = localJobs({ handler, environment, longestMs: 5_000 });
    const doubts: string[] = [];
    const { result } = runSubagent(subagent, 'Go', {
      runtime: createRuntime({ environment, jobs }),
      onCallInDoubt: ({ toolName }) => doubts.push(toolName),
    });
    await environment.advance(600_000);
    expect(await result).toMatchObject({
      status: 'completed',
      text: expect.stringContaining('not known'),
    });
    expect([doubts, begun]).toEqual([['charge'], 1]);
  });
});

describe('old and new workers at the same time', () => {
  const caller = {
    sessionId: 'ses',
    subagentId: 'sub',
    parentId: null,
    depth: 1,
    requester: null,
    approver: null,
    idempotencyKey: 'sub:2:call',
  };
  /** The bodies that version 0.1.0 writes. */
  const bodies = {
    model:
      '{"kind":"model","config":"rides","tools":["charge","look_up"],"instructions":"You book rides.","messages":[{"role":"user","content":"Go"}],"final":false,"stream":false}',
    tool: '{"kind":"tool","config":"rides","tools":["charge"],"toolName":"charge","callId":"call","input":{"dollars":7},"raw":false,"caller":{"sessionId":"ses","parentId":null,"depth":1,"requester":null,"subagentId":"sub","approver":null,"idempotencyKey":"sub:2:call"},"messages":[]}',
  };
  const worker = (more: Partial<SubagentConfig> = {}, model = scriptedModel([say('done')])) => {
    const own = rides();
    const configs = { rides: config({ tools: own.tools, ...more }) };
    const refusals: string[] = [];
    return {
      ...own,
      refusals,
      handler: jobWorker({
        environment: simulatedEnvironment(),
        configs,
        model,
        onError: (error) => refusals.push(String(error)),
      }),
    };
  };
  const ask = (handler: JobHandler, body: string): Promise<unknown> =>
    handler.do({ key: 'k', name: 'a step', once: true, body }, new AbortController().signal);

  test.each(Object.entries(bodies))(
    'let a new worker run the %s job of an old session',
    async (_, body) => {
      expect(await ask(worker().handler, body)).toMatchObject({ done: expect.any(String) });
    },
  );

  test.each([
    ['a field', { effort: 'high' }],
    ['a field of the caller', { caller: { ...caller, tenant: 'acme' } }],
    ['a kind of step', { kind: 'voice' }],
  ])('STEP-JOBS-3: refuse a job with a %s that the old worker does not know', async (_, more) => {
    const { handler, done, refusals } = worker();
    const body = JSON.stringify({ ...(JSON.parse(bodies.tool) as object), ...more });
    expect(await ask(handler, body)).toMatchObject({ refused: { code: 'JOB_UNREADABLE' } });
    expect(done).toEqual([]);
    expect(refusals.length).toBe(1);
  });

  test('JOBS-8: run a tool once on the new worker if the old worker does not have it', async () => {
    const own = rides();
    const subagent = config({ tools: own.tools });
    const { charge: _, ...before } = own.tools;
    const { environment } = engine(booking, subagent);
    const model = scriptedModel({ scripts: [{ when: INSTRUCTIONS, script: booking }] });
    const of = (tools: SubagentConfig['tools']) =>
      jobWorker({ environment, model, configs: { rides: config({ tools }) } });
    const [old, current] = [of(before), of(own.tools)];
    let offers = 0;
    const jobs = simulatedJobs({
      // The two workers alternate, as when a queue gives jobs to the workers of a deployment.
      handler: { do: (job, signal) => ((offers += 1) % 2 === 1 ? old : current).do(job, signal) },
      offers: 9,
    });
    const doubts: string[] = [];
    const { result } = runSubagent(subagent, 'Go', {
      runtime: createRuntime({ environment, jobs }),
      onCallInDoubt: ({ toolName }) => doubts.push(toolName),
    });
    expect(await result).toMatchObject({ status: 'completed', text: 'Booked: {"charged":7}' });
    expect(own.done.filter((what) => what.startsWith('charge')).length).toBe(1);
    expect(doubts).toEqual([]);
  });

  test('return a result with unknown fields to an old session', async () => {
    const it = engine(turns(say('done')), config());
    const jobs = simulatedJobs({
      handler: {
        async do(job, signal) {
          const [end, later] = [await worker().handler.do(job, signal), { region: 'eu' }];
          if (!('done' in end)) return end;
          const said = JSON.stringify({ ...(JSON.parse(end.done) as object), ...later });
          return { done: said, ...later };
        },
      },
    });
    const runtime = createRuntime({ environment: it.environment, jobs });
    expect((await runSubagent(config(), 'Go', { runtime }).result).text).toBe('done');
  });

  test('keep the job keys of an earlier version, so that jobs are found after a deployment', async () => {
    const own = rides();
    const subagent = config({ tools: own.tools });
    const { jobs, environment } = engine(booking, subagent);
    const runtime = createRuntime({ environment, jobs });
    void runSubagent(subagent, 'Go', { runtime, id: 'ride-1' });
    await environment.settle();
    expect(jobs.begun.map(({ key }) => key)).toEqual([
      'ride-1/sub_1:1:1#1',
      'ride-1/sub_1:1:call_look',
      'ride-1/sub_1:2:3#1',
      'ride-1/sub_1:2:call_charge',
      'ride-1/sub_1:3:5#1',
    ]);
  });
});
