// temporalRuns, its activity and its workflow without a server: an in-memory Temporal runs them as the real one does.
// The tests in Temporal's sandbox, and on a real server with everything killed, are in test/engines.

import { describe, expect, test } from 'vitest';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import {
  temporalRunActivities,
  temporalRuns,
  type TemporalActivity,
  type TemporalRunsClient,
} from '../../../src/adapters/temporal/index.ts';
import { runWorkflow, type TemporalRunWorkflow } from '../../../src/adapters/temporal/workflow.ts';
import {
  jobWorker,
  runWorker,
  type Job,
  type JobHandler,
  type RunHandler,
  type RunTurn,
} from '../../../src/entries/jobs.ts';
import { firstTurn } from '../../../src/actors/ports/run-flow.ts';
import { createRuntime, type SubagentConfig } from '../../../src/index.ts';
import { runSubagent } from '../../../src/entries/subagents.ts';
import { runsConformance, runsConformanceAgents } from '../../suites/runs/index.ts';
import { simulatedJobs } from '../../../src/testing/index.ts';
import { askedAgain } from '../../support/asked-again.ts';

const named = (name: string, message = name): Error => Object.assign(new Error(message), { name });
const environment = nodeEnvironment();
const turnOfTheLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const copied = (value: unknown): unknown => JSON.parse(JSON.stringify(value ?? null));

interface Execution {
  readonly updates: Map<string, (arg: unknown) => unknown>;
  memo: Readonly<Record<string, unknown>>;
  /** Cancels the workflow, as an operator would. */
  stop(): void;
  isOver: boolean;
  renewals: number;
  /** The running activities that it has asked to stop. */
  stopped: number;
  readonly ended: PromiseWithResolvers<unknown>;
}

function openTemporal(handler: RunHandler, { renewsAfter = Infinity, isFull = false } = {}) {
  const executions = new Map<string, Execution>();
  let context: ReturnType<TemporalActivity['Context']['current']> | null = null;
  const activity: TemporalActivity = { Context: { current: () => context! } };
  const activities = temporalRunActivities({ activity, handler });

  const begin = (id: string, given: readonly unknown[], from?: Execution): void => {
    const { promise: cancelRequested, reject: stop } = Promise.withResolvers<never>();
    cancelRequested.catch(() => {});
    const one: Execution = {
      updates: new Map(),
      memo: from?.memo ?? {},
      stop: () => stop(named('CancelledFailure')),
      isOver: false,
      renewals: (from?.renewals ?? -1) + 1,
      stopped: from?.stopped ?? 0,
      ended: from?.ended ?? Promise.withResolvers(),
    };
    const closing: (() => Execution)[] = [];
    executions.set(id, one);
    let controller = new AbortController();
    let turns = 0;
    let scope: ((cancel: () => void) => void) | null = null;
    /** The current scopes, which are stopped when the workflow ends. */
    const underWay = new Set<AbortController>();
    const within = <T>(work: () => Promise<T>): Promise<T> => {
      const mine = new AbortController();
      underWay.add(mine);
      controller.signal.addEventListener('abort', () => {
        if (underWay.has(mine)) one.stopped += 1;
        mine.abort(new Error('CANCELLED'));
      });
      context = {
        cancellationSignal: mine.signal,
        info: {},
        heartbeat() {},
        sleep: () => new Promise(() => {}),
      };
      return work().finally(() => underWay.delete(mine));
    };
    const inContext = () => ({
      offstageTurn(turn: RunTurn) {
        turns += 1;
        return within(() => activities.offstageTurn(copied(turn) as RunTurn)).then(copied);
      },
      offstageStep(step: Job) {
        return within(() => activities.offstageStep(copied(step) as Job)).then(copied);
      },
    });
    const workflow: TemporalRunWorkflow = {
      proxyActivities: () => inContext(),
      proxyLocalActivities: () => inContext(),
      patched: () => true,
      isCancellation: (error) => (error as Error).name === 'CancelledFailure',
      async condition(isSo: () => boolean) {
        while (!isSo()) await turnOfTheLoop();
      },
      upsertMemo(memo) {
        one.memo = copied(memo) as Execution['memo'];
      },
      defineUpdate: (name) => name,
      setHandler: (name, handler) =>
        void one.updates.set(name as string, handler as (arg: unknown) => unknown),
      workflowInfo: () => ({
        continueAsNewSuggested: turns >= renewsAfter,
        workflowType: 'offstageRun',
        historyLength: isFull ? 30_000 : 10,
        historySize: 1_000,
      }),
      async startChild(type, options) {
        expect(type).toBe('offstageRun');
        const { workflowId, args, parentClosePolicy } = options as Record<string, unknown>;
        begin(workflowId as string, copied(args) as unknown[]);
        // The child's execution may have been restarted.
        const child = (): Execution => executions.get(workflowId as string)!;
        scope?.(() => child().stop());
        if (parentClosePolicy === 'REQUEST_CANCEL') closing.push(child);
        return { result: () => child().ended.promise };
      },
      continueAsNew(...args) {
        begin(id, copied(args) as unknown[], one);
        return new Promise(() => {});
      },
      CancellationScope: class {
        static current = () => ({ cancelRequested });
        static nonCancellable = <T>(work: () => Promise<T>): Promise<T> => work();
        readonly #controller = new AbortController();
        run<T>(work: () => Promise<T>): Promise<T> {
          scope = (cancel) => this.#controller.signal.addEventListener('abort', cancel);
          controller = this.#controller;
          const done = work();
          scope = null;
          // Work that starts outside the scope is not cancelled.
          controller = new AbortController();
          return done;
        }
        cancel() {
          this.#controller.abort(new Error('CANCELLED'));
        }
      },
    };
    const [order, limits, carried] = given;
    void runWorkflow(workflow)(order as never, limits as never, carried as never).then((last) => {
      one.isOver = true;
      for (const child of closing) child().stop();
      for (const activity of underWay) activity.abort(new Error('NOT_FOUND'));
      one.ended.resolve(copied(last));
    });
  };
  const client: TemporalRunsClient = {
    workflow: {
      async start(type, options) {
        expect(type).toBe('offstageRun');
        const { workflowId, args } = options as { workflowId: string; args: unknown[] };
        if (executions.get(workflowId)?.isOver) throw named('WorkflowExecutionAlreadyStartedError');
        if (!executions.has(workflowId)) begin(workflowId, copied(args) as unknown[]);
      },
      getHandle: (id) => ({
        describe: async () => ({ memo: executions.get(id)?.memo }),
        async executeUpdate(name, { args }) {
          const one = executions.get(id);
          if (!one || one.isOver) throw named('WorkflowNotFoundError');
          return one.updates.get(name)?.(copied(args[0]));
        },
        result: () => executions.get(id)?.ended.promise ?? Promise.reject(new Error('no such run')),
      }),
    },
  };
  return { client, executions };
}

describe.each([
  ['conformance, with `steps`', 'steps', Infinity],
  ['conformance, with `steps` and a history that is begun anew for each turn', 'steps', 1],
  ['conformance, with `jobs`', 'jobs', Infinity],
  ['conformance, with `jobs` and a history that is begun anew for each turn', 'jobs', 1],
] as const)('%s', (_, by, renewsAfter) => {
  const cases = runsConformance({
    name: 'temporal',
    shows: [],
    isEngine: true,
    // The sleeps of this double never end.
    passesTime: false,
    moment: turnOfTheLoop,
    open(tell) {
      const { configs, model } = runsConformanceAgents(tell);
      const steps = jobWorker({ environment, configs, model });
      const does = by === 'steps' ? { steps } : { jobs: simulatedJobs({ handler: steps }) };
      const handler = askedAgain(runWorker({ environment, configs, ...does, offerMs: 0 }));
      const { client } = openTemporal(handler, { renewsAfter });
      const engine = temporalRuns({ client, lookMs: 5 });
      return {
        program: () => ({
          options: { runtime: createRuntime({ environment }), engine },
          kill() {},
        }),
      };
    },
  });
  const own = cases.filter(({ skipped }) => skipped === null);
  test.each(own)('$name', ({ run }) => run());
});

const noStep: RunHandler['step'] = () => Promise.reject(new Error('no step is left'));

test("TEMPORAL-WORKFLOW-3: starts another turn to handle an operator's cancellation", async () => {
  const over = { at: 1, journal: [], waiting: [], wakeAt: null, outcome: { status: 'cancelled' } };
  const order = { id: 'r', config: 'a', task: { description: '', toolName: 'a', args: {} } };
  const news: unknown[] = [];
  const handler: RunHandler = {
    step: noStep,
    turn(turn) {
      news.push(turn.news);
      if (turn.news.type === 'cancelled') return Promise.resolve(over);
      return new Promise(() => {});
    },
  };
  const { client, executions } = openTemporal(handler);
  await temporalRuns({ client }).start(order);
  await turnOfTheLoop();
  const [one] = executions.values();
  one?.stop();
  while (!one?.isOver) await turnOfTheLoop();
  expect(news).toEqual([
    { type: 'begun' },
    { type: 'cancelled', reason: 'cancelled at the engine' },
  ]);
});

describe('TEMPORAL-WORKFLOW-4: the history of a workflow that always has a running step', () => {
  test.each([
    ['begins anew where it is full', true],
    ['continues where it has room', false],
  ])('%s', async (_, isFull) => {
    let renewals = 0;
    let isScoutDone = false;
    const { configs, model } = runsConformanceAgents(async (what) => {
      const isScout = what.includes('-scout/');
      if (what.endsWith('-scout/model-7')) {
        isScoutDone = true;
        ({ renewals = 0 } = executions.values().next().value ?? {});
      }
      // The steps of the two have different lengths, so one of them always continues.
      for (let moments = isScout ? 7 : 31; moments > 0; moments -= 1) await turnOfTheLoop();
    });
    const steps = jobWorker({ environment, configs, model });
    const handler = runWorker({ environment, configs, steps });
    const { client, executions } = openTemporal(handler, { renewsAfter: 1, isFull });
    const looks = (times: number, between: string): string =>
      Array.from({ length: times }, () => 'look_up').join(between);
    const run = runSubagent(
      configs['tireless'] as SubagentConfig,
      `Travel [trip t: spawn ${looks(6, ' then ')}, ${looks(8, ', ')}, await]`,
      {
        runtime: createRuntime({ environment }),
        engine: temporalRuns({ client, lookMs: 5 }),
        id: 't',
      },
    );
    expect((await run.result).status).toBe('completed');
    expect(isScoutDone).toBe(true);
    expect(renewals > 2).toBe(isFull);
  });
});

test("TEMPORAL-WORKFLOW-6: aborts a cancelled run's model call when the workflow ends", async () => {
  let held: AbortSignal | undefined;
  const { configs } = runsConformanceAgents(() => Promise.resolve());
  const steps: JobHandler = {
    do: (_, signal) => {
      held = signal;
      return new Promise((__, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error));
      });
    },
  };
  const handler = runWorker({ environment, configs, steps, onError: () => {} });
  const { client, executions } = openTemporal(handler);
  const engine = temporalRuns({ client, lookMs: 5 });
  const run = runSubagent(configs['traveller'] as SubagentConfig, 'Travel', {
    runtime: createRuntime({ environment }),
    engine,
    id: 'held',
  });
  while (!held) await turnOfTheLoop();
  run.cancel('not needed');
  expect((await run.result).status).toBe('cancelled');
  const [one] = executions.values();
  expect(one?.stopped).toBe(0);
  expect(held.reason).toMatchObject({ message: 'NOT_FOUND' });
});

describe('the heartbeat of an activity', () => {
  test.each([
    ['never goes out from a local one', true, 0],
    ['goes out from another one', false, 1],
  ])('%s', async (_, isLocal, times) => {
    let beats = 0;
    const activity: TemporalActivity = {
      Context: {
        current: () => ({
          cancellationSignal: new AbortController().signal,
          info: { isLocal },
          heartbeat: () => void (beats += 1),
          sleep: () => new Promise(() => {}),
        }),
      },
    };
    const end = { at: 1, journal: [], waiting: [], wakeAt: null, outcome: { status: 'failed' } };
    const handler: RunHandler = { step: noStep, turn: () => Promise.resolve(end) };
    const order = { id: 'r', config: 'a', task: { description: '', toolName: 'a', args: {} } };
    await temporalRunActivities({ activity, handler }).offstageTurn(firstTurn(order, 'none'));
    expect(beats).toBe(times);
  });
});

describe('options and errors', () => {
  const { client } = openTemporal({
    step: noStep,
    turn: () => Promise.reject(new Error('none')),
  });
  const activity: TemporalActivity = { Context: { current: () => null! } };

  test.each([
    [{}, 'expected a client'],
    [{ client, lookMs: 0 }, 'lookMs'],
    [{ client, heartbeatTimeoutMs: 1 }, 'heartbeatTimeoutMs'],
    [{ client, colour: 'blue' }, 'colour'],
  ])('refuses invalid options in temporalRuns (case %#)', (options, message) => {
    expect(() => temporalRuns(options as never)).toThrow(message);
  });

  test.each([
    [{ handler: { turn() {}, step() {} } }, '@temporalio/activity'],
    [{ activity }, 'a handler such as'],
  ])('temporalRunActivities refuses invalid options (case %#)', (options, message) => {
    expect(() => temporalRunActivities(options as never)).toThrow(message);
  });

  test('RUN-ENGINE-4: reports a silent server as unreachable, and an unknown memo as unreadable', async () => {
    const signal = new AbortController().signal;
    const handleWith = (describeIt: () => Promise<object>) =>
      temporalRuns({
        client: {
          workflow: {
            start: () => Promise.reject(new Error('14 UNAVAILABLE')),
            getHandle: () => ({
              describe: describeIt,
              executeUpdate: () => Promise.reject(new Error('14 UNAVAILABLE')),
              result: () => Promise.reject(new Error('14 UNAVAILABLE')),
            }),
          },
        },
      });
    const away = handleWith(() => Promise.reject(new Error('14 UNAVAILABLE')));
    const unreachable = { code: 'JOBS_UNREACHABLE', retryable: true };
    const order = { id: 'r', config: 'a', task: { description: '', toolName: 'a', args: {} } };
    await expect(away.start(order)).rejects.toMatchObject(unreachable);
    await expect(away.view('r', 0, signal)).rejects.toMatchObject(unreachable);
    await expect(away.answer('r', { requestId: 'q' })).rejects.toMatchObject(unreachable);
    const ofOthers = handleWith(async () => ({ memo: { offstageView: { turn: 'one' } } }));
    await expect(ofOthers.view('r', 0, signal)).rejects.toMatchObject({ code: 'JOB_UNREADABLE' });
  });
});
