// The conformance suite for runs passes in process on a journal and on the in-memory engine, and every planted fault
// makes it fail.

import { chanceOf } from '../../../src/testing/doubles/chance.ts';
import { doStep, refusedEnd } from '../../../src/actors/ports/jobs.ts';
import type { Tool } from 'ai';
import { describe, expect, test } from 'vitest';
import {
  forgetRun,
  jobWorker,
  packedHandler,
  packedEngine,
  runWorker,
  type ForgetRunStores,
  type JobPacking,
  type JobEnd,
  type JobHandler,
  type Jobs,
  type RunChild,
  type RunEngine,
  type RunHandler,
  type RunMessage,
  type RunTurn,
  type RunTurnEnd,
  type RunWorkerOptions,
} from '../../../src/entries/jobs.ts';
import type { Journal } from '../../../src/actors/ports/journal.ts';
import { createRuntime, memoryJournal } from '../../../src/index.ts';
import { memoryClaims, realMoment, testCodec } from '../../support/job-packing.ts';
import {
  runsConformance,
  runsConformanceAgents,
  type AgentsVersion,
  type RunsConformanceSetup,
} from './index.ts';
import {
  simulatedEnvironment,
  simulatedJobs,
  simulatedRuns,
  type ConformanceCase,
  type SimulatedEnvironment,
} from '../../../src/testing/index.ts';

/** A runtime that can be killed. After that, its journal receives no entries, and its timers do not fire. */
function mortal(environment: SimulatedEnvironment, journal: Journal) {
  let isDead = false;
  const alive = (task: () => void) => () => {
    if (!isDead) task();
  };
  return {
    kill() {
      isDead = true;
    },
    runtime: createRuntime({
      environment: {
        ...environment,
        scheduler: {
          schedule: (task, ms, options) => environment.scheduler.schedule(alive(task), ms, options),
          yieldThen: (task) => environment.scheduler.yieldThen(alive(task)),
        },
      },
      journal: {
        append: (entry) => (isDead ? new Promise<void>(() => {}) : journal.append(entry)),
        read: (query) => journal.read(query),
      },
    }),
  };
}

function inProcess(): RunsConformanceSetup {
  const environment = simulatedEnvironment();
  return {
    name: 'in process',
    shows: ['program_dies'],
    isEngine: false,
    patience: 300,
    moment: () => environment.settle(),
    pass: (ms) => environment.advance(ms),
    open(tell) {
      const { model } = runsConformanceAgents(tell);
      const journal = memoryJournal({ keep: Infinity });
      return {
        program() {
          const { kill, runtime } = mortal(environment, journal);
          return { options: { runtime, model }, kill };
        },
      };
    },
  };
}

let salt = 0;

interface Faults {
  /**
   * The steps that a turn runs itself when the worker has `steps`. @defaultValue one, when the worker has `jobs`
   */
  readonly steps?: 'one' | 'none';
  /** No process keeps a run in memory between two turns. */
  readonly forgetful?: boolean;
  readonly packing?: () => JobPacking;
  readonly forgets?: (stores: ForgetRunStores) => ForgetRunStores;
  readonly engine?: (engine: RunEngine) => RunEngine;
  readonly handler?: (handler: RunHandler) => RunHandler;
  readonly jobs?: (jobs: Jobs) => Jobs;
  /** Replaces `jobs` if `steps` is set. */
  readonly own?: (steps: JobHandler) => JobHandler;
  readonly worker?: (options: RunWorkerOptions) => RunWorkerOptions;
}

const simulated = (): RunsConformanceSetup => simulatedWith({});

function simulatedWith({
  engine: change,
  handler: other,
  jobs: odd,
  own: oddSteps,
  worker: changedWorker = (options) => options,
  packing,
  steps,
  forgetful = false,
  forgets: storesOf = (stores) => stores,
}: Faults): RunsConformanceSetup {
  const environment = simulatedEnvironment();
  return {
    name: 'simulated',
    shows: ['program_dies', 'worker_dies'],
    isEngine: true,
    deletes: true,
    deploys: true,
    patience: 300,
    moment: () => environment.settle(),
    pass: (ms) => environment.advance(ms),
    open(tell) {
      const own = packing?.();
      const agents = {
        earlier: runsConformanceAgents(tell, 'earlier'),
        later: runsConformanceAgents(tell),
      };
      const stepsOf = (version: AgentsVersion): JobHandler =>
        jobWorker({ environment, ...agents[version] });
      const worker = stepsOf('later');
      const bare = simulatedJobs({ handler: own ? packedHandler(worker, own) : worker });
      const jobs = own ? packedEngine(bare, own) : bare;
      const start = (version: AgentsVersion): RunHandler => {
        const { configs } = agents[version];
        const bareSteps = stepsOf(version);
        const does = steps
          ? { steps: oddSteps?.(bareSteps) ?? bareSteps }
          : { jobs: odd?.(jobs) ?? jobs };
        const turns = runWorker(
          changedWorker({ environment, configs, ...does, onError: () => {} }),
        );
        return own ? packedHandler(turns, own) : turns;
      };
      let versions: readonly AgentsVersion[] = ['later'];
      let living = versions.map(start);
      const chance = chanceOf(0, 'workers');
      /** Picks a random worker for each turn and step. */
      const taken = (): RunHandler => {
        const next = chance.within(0, living.length - 1);
        return forgetful ? start(versions[next]!) : living[next]!;
      };
      const handler: RunHandler = {
        turn: (turn, signal) => taken().turn(turn, signal),
        step: (job, signal) => taken().step(job, signal),
      };
      const kept = simulatedRuns({
        environment,
        handler: other?.(handler) ?? handler,
        ...(steps ? { steps } : {}),
      });
      const engine = own ? packedEngine(kept, own) : kept;
      return {
        forget: (id) => forgetRun(id, storesOf({ engine, jobs })),
        program() {
          const end = new AbortController();
          const changed = change?.(engine) ?? engine;
          const own: RunEngine = {
            ...changed,
            view: (id, after, signal) =>
              changed.view(id, after, AbortSignal.any([signal, end.signal])),
          };
          return {
            options: { runtime: createRuntime({ environment }), engine: own },
            kill() {
              end.abort(new Error('the program was killed'));
            },
          };
        },
        deploy(deployed) {
          versions = deployed;
          living = versions.map(start);
          kept.killWorkers();
        },
        killWorkers() {
          living = versions.map(start);
          kept.killWorkers();
          bare.killWorkers();
        },
      };
    },
  };
}

const recorded = (steps: 'one' | 'none', forgetful = false): RunsConformanceSetup => ({
  ...simulatedWith({ steps, forgetful }),
  name: `simulated, ${steps} of the steps in a turn${forgetful ? ', played from the journal each time' : ''}`,
});

function packed(faults: Faults = {}): RunsConformanceSetup {
  const setup = simulatedWith({
    ...faults,
    packing: () => ({
      codec: testCodec('a key'),
      claims: memoryClaims(),
      claimAboveBytes: 1_000,
      redact: {},
    }),
  });
  // References to claims contain a digest, which Node computes on another thread.
  return {
    ...setup,
    name: 'simulated, packed',
    patience: 100_000,
    moment: realMoment(setup.moment),
  };
}

const packedSteps = (steps: 'one' | 'none', forgetful = false): RunsConformanceSetup => ({
  ...packed({ steps, forgetful }),
  name: `${recorded(steps, forgetful).name}, packed`,
});

describe.each([
  inProcess(),
  simulated(),
  packed(),
  recorded('one'),
  recorded('none'),
  recorded('one', true),
  recorded('none', true),
  packedSteps('one'),
  packedSteps('none', true),
])('$name', { tags: ['H7'] }, (setup) => {
  // A worker that lives for one turn refuses such a turn each time.
  const hasTime = ({ name }: ConformanceCase): boolean =>
    !setup.name.includes('from the journal') ||
    name !== 'ends the run as lost if no worker has its configuration';
  const cases = runsConformance(setup).filter((one) => one.skipped === null && hasTime(one));
  test.each(cases)('$name', ({ run }) => run());
});

test('skips engine cases and their faults, and gives the reason', () => {
  const skipped = runsConformance(inProcess()).flatMap(({ skipped: why }) => why ?? []);
  expect(skipped.length).toBeGreaterThan(4);
  expect(skipped[0]).toContain('in process');
});

const salted = (jobs: Jobs): Jobs => ({
  ...jobs,
  run: (job, options) => jobs.run({ ...job, key: `${job.key}~${(salt += 1)}` }, options),
});

/** Both kinds of workers. Faults in `jobs` are tested only with `jobs`, and faults in `own` only with `steps`. */
function inBothWays(faults: Faults): readonly Faults[] {
  if (faults.jobs || faults.forgets) return [faults];
  if (faults.own) return [{ ...faults, steps: 'one' }];
  return [faults, { ...faults, steps: 'one' }];
}

const wayOf = ({ steps }: Faults): string => (steps ? 'with `steps`' : 'with `jobs`');

/** No process keeps the run in memory, and the journal loses the entries that the last turn appended. */
const losesTheLastTurn: Faults = {
  steps: 'one',
  forgetful: true,
  handler: (handler) => ({
    ...handler,
    turn: ({ since = [], ...turn }, signal) =>
      handler.turn({ ...turn, since: since.slice(0, -1) }, signal),
  }),
};

/** Any process that receives the turn starts the step that must not be repeated. */
const beginsTwice: Faults = {
  steps: 'one',
  handler: (handler) => ({
    ...handler,
    turn(turn, signal) {
      const { news } = turn;
      const [lost] = news.type === 'ended' ? news.ends : [];
      if (!lost || !('lost' in lost.end)) return handler.turn(turn, signal);
      const step = { key: lost.key, name: '', once: true };
      return handler.turn({ ...turn, news: { type: 'next', step } }, signal);
    },
  }),
};

const withPolicy = (
  end: RunTurnEnd,
  policyOf: (child: RunChild, at: number) => RunChild | null,
): RunTurnEnd => {
  const { children } = end;
  return children
    ? { ...end, children: children.flatMap((one, at) => policyOf(one, at) ?? []) }
    : end;
};

const withPolicies = (onParentClose: RunChild['onParentClose']): Faults => ({
  handler: (handler) => ({
    ...handler,
    turn: async (turn, signal) =>
      withPolicy(await handler.turn(turn, signal), (child) => ({ ...child, onParentClose })),
  }),
});

/** Simulates a cancel that stops the start of children after the first child. */
const beginsFewer: Faults = {
  handler: (handler) => ({
    ...handler,
    turn: async (turn, signal) =>
      withPolicy(await handler.turn(turn, signal), (child, at) => (at === 0 ? child : null)),
  }),
};

const withEngine = (changed: (engine: RunEngine) => Partial<RunEngine>): Faults => ({
  engine: (engine) => ({ ...engine, ...changed(engine) }),
});

/** Faults in the delivery of messages, each with the start of the name of the case that finds it. */
function faultsOfMessages(): readonly [string, Faults, string][] {
  const sentAs = (changed: (message: RunMessage) => RunMessage): Faults =>
    withEngine((engine) => ({
      message: async (id, message) =>
        (await engine.message?.(id, changed(message))) ?? { refused: 'over' },
    }));
  const withTurns = (changed: (turn: RunTurn) => RunTurn, steps?: 'one'): Faults => ({
    ...(steps ? { steps } : {}),
    handler: (handler) => ({
      ...handler,
      turn: (turn, signal) => handler.turn(changed(turn), signal),
    }),
  });
  const withEnds = (read: (turn: RunTurn) => readonly number[]): Faults => ({
    handler: (handler) => ({
      ...handler,
      turn: async (turn, signal) => ({ ...(await handler.turn(turn, signal)), read: read(turn) }),
    }),
  });
  const lost = withEngine(() => ({ message: async () => ({ nth: 1 }) }));
  const separate = sentAs((message) => ({ ...message, id: `m${(salt += 1)}` }));
  const steered = {
    ...sentAs((message) => ({ ...message, mode: 'steer' })),
    steps: 'one',
  } as const;
  const turned = withTurns((turn) =>
    turn.messages ? { ...turn, messages: turn.messages.toReversed() } : turn,
  );
  const isUnread = ({ messages = [] }: RunTurn): readonly number[] =>
    messages.map(({ nth }) => nth);
  const alwaysRead = withEngine((engine) => ({
    async view(...given) {
      const view = await engine.view(...given);
      return view.outcome ? { ...view, messages: { last: 1_000, unread: [] } } : view;
    },
  }));
  const deafSteps = withTurns(
    ({ messages, ...turn }) =>
      messages && turn.news.type !== 'next' ? { ...turn, messages } : turn,
    'one',
  );
  return [
    ['a message does nothing', lost, 'delivers a message during a question after the answer'],
    [
      'a message does nothing',
      { ...lost, steps: 'one' },
      'delays the end of a run for a message during the last model call',
    ],
    [
      'a message that is sent again is another one',
      separate,
      'delivers a message once even if another program repeats it with its key',
    ],
    [
      'messages come in another order',
      turned,
      'delivers messages once each, in the order of sending',
    ],
    [
      'no turn tells what was read',
      withEnds(() => []),
      'delivers a message during a question after the answer',
    ],
    [
      'a turn tells of what waits',
      withEnds(isUnread),
      'does not deliver a message to a cancelled or ended run',
    ],
    [
      'whoever asks is told that it was read',
      alwaysRead,
      'does not deliver a message to a cancelled or ended run',
    ],
    [
      'a turn that begins with a step gets no messages',
      deafSteps,
      'delivers a message during a tool call at the next step',
    ],
    [
      'a message for the end comes at once',
      steered,
      'delivers a queued message when the run would have ended, and continues the run',
    ],
    ['an interrupting message waits', steered, 'reads an interrupt at once during a look-up'],
    ['an interrupting message waits', steered, 'reads an interrupt at once while it asks'],
  ];
}

describe('a planted fault fails a case', () => {
  const planted: readonly [string, Faults][] = [
    [
      'answers are lost on the way to the worker',
      {
        handler: (handler) => ({
          ...handler,
          turn(turn, signal) {
            const news = turn.news.type === 'answered' ? ({ type: 'due' } as const) : turn.news;
            return handler.turn({ ...turn, news }, signal);
          },
        }),
      },
    ],
    ['a job that is asked for again is another job', { jobs: salted }],
    ['what the last turn has added is lost', losesTheLastTurn],
    ['a step is begun by whatever process has its turn', beginsTwice],
    [
      'the end of a step is another one',
      { own: () => ({ do: async () => ({ done: JSON.stringify({ text: 'Done' }) }) }) },
    ],
    [
      'the time of a question begins anew in each turn',
      {
        handler: (handler) => ({
          ...handler,
          turn: (turn, signal) => {
            const { clock } = simulatedEnvironment({ startAt: 4_000_000_000_000 });
            const waiting = turn.waiting.map((wait) => ({ ...wait, askedAt: clock.now() }));
            return handler.turn({ ...turn, waiting }, signal);
          },
        }),
      },
    ],
    ['the steps of a run that was deleted stay', { forgets: ({ engine }) => ({ engine }) }],
    [
      'a deleted run stays',
      {
        forgets: ({ engine, ...rest }) => ({
          ...rest,
          engine: { ...engine, forget: async (id) => [id] },
        }),
      },
    ],
    ['a cancel does nothing', { engine: (engine) => ({ ...engine, cancel: async () => {} }) }],
    [
      'a second answer counts',
      {
        engine: (engine) => ({
          ...engine,
          answer: async (...given) => {
            await engine.answer(...given);
            return true;
          },
        }),
      },
    ],
    ['an answer does nothing', { engine: (engine) => ({ ...engine, answer: async () => true }) }],
    [
      'each start is another run',
      {
        engine: (engine) => {
          const id = `run-${(salt += 1)}`;
          return {
            ...engine,
            start: (order) => engine.start({ ...order, id }),
            view: (_, after, signal) => engine.view(id, after, signal),
            answer: (_, answer) => engine.answer(id, answer),
          };
        },
      },
    ],
    [
      'views come without their questions',
      {
        engine: (engine) => ({
          ...engine,
          view: async (...given) => ({ ...(await engine.view(...given)), waiting: [] }),
        }),
      },
    ],
    [
      'children are not shown',
      {
        engine: (engine) => ({
          ...engine,
          view: async (...given) => ({ ...(await engine.view(...given)), children: [] }),
        }),
      },
    ],
    [
      'the outcome of a child is lost',
      {
        handler: (handler) => ({
          ...handler,
          turn(turn, signal) {
            const { news } = turn;
            const lost = news.type === 'child' ? { ...news, outcome: null } : news;
            return handler.turn({ ...turn, news: lost }, signal);
          },
        }),
      },
    ],
    [
      'a child gets another outcome',
      {
        handler: (handler) => ({
          ...handler,
          async turn(turn, signal) {
            const end = await handler.turn(turn, signal);
            if (!turn.order.above || end.outcome === null) return end;
            return { ...end, outcome: { ...end.outcome, output: { text: 'Nothing' } } };
          },
        }),
      },
    ],
    ['a child is not cancelled with its run', withPolicies('abandon')],
    ['every child is cancelled with its run', withPolicies('cancel')],
  ];
  const all = planted.flatMap(([name, faults]) =>
    (faults.steps ? [faults] : inBothWays(faults)).map((way) => [name, wayOf(way), way] as const),
  );
  test.each(all)('%s, %s', async (_name, _way, faults) => {
    const cases = runsConformance(simulatedWith(faults)).filter(({ skipped }) => skipped === null);
    for (const { run } of cases) {
      const isPassed = await run().then(
        () => true,
        () => false,
      );
      if (!isPassed) return;
    }
    expect.unreachable('no case failed');
  });
});

/**
 * The worker of a turn dies once in each step, and once at the end of the turn, before that end has been recorded. A
 * repeated step ends in the same way. With `steps`, the engine gives no worker a second attempt at a step that must not
 * be repeated.
 */
function dyingInEachStep(steps?: 'one'): Faults {
  /** The number of step ends after which the worker of a run's turn dies. */
  const dying = new Map<
    string,
    { ends: number; readonly after: number; readonly die: () => void }
  >();
  const ended = (key: string): void => {
    const [runId = ''] = /^.*(?=\/[^/]*$)/u.exec(key) ?? [];
    const death = dying.get(runId);
    if (death && (death.ends += 1) === death.after) death.die();
  };
  const known = new Map<string, JobEnd>();
  return {
    ...(steps ? { steps } : {}),
    jobs: (jobs) => ({
      ...jobs,
      async run(job, options) {
        const end = await jobs.run(job, options);
        ended(job.key);
        return end;
      },
    }),
    own: (handler) => ({
      async do(job, signal) {
        const end = known.get(job.key) ?? (await doStep(handler, job, signal));
        if (!signal.aborted) known.set(job.key, end);
        ended(job.key);
        return end;
      },
    }),
    handler: (handler) => ({
      ...handler,
      async turn(turn, signal) {
        const { id } = turn.order;
        const { news } = turn;
        if (news.type === 'next' && news.step.once) return handler.turn(turn, signal);
        const ends: RunTurnEnd[] = [];
        for (let after = 1; ; after += 1) {
          const worker = new AbortController();
          const death = { ends: 0, after, die: () => worker.abort(new Error('the worker died')) };
          dying.set(id, death);
          try {
            ends.push(await handler.turn(turn, AbortSignal.any([signal, worker.signal])));
          } catch (error) {
            if (!worker.signal.aborted) throw error;
          } finally {
            dying.delete(id);
          }
          if (ends.length === 0) continue;
          // The worker died before the end was recorded, so the next worker must reach the same state.
          if (ends.length === 1 && !signal.aborted) continue;
          const [first, second = first] = ends.map(stateOf);
          if (!signal.aborted && news.type !== 'cancelled') expect(second).toEqual(first);
          for (const key of known.keys()) if (key.startsWith(`${id}/`)) known.delete(key);
          return ends.at(-1) as RunTurnEnd;
        }
      },
    }),
  };
}

/**
 * Returns the end of a turn without the parts that depend on the attempt: marker values, and whether the run was
 * replayed from the journal.
 */
function stateOf({ waiting, children, wakeAt, outcome, journal, steps }: RunTurnEnd): unknown {
  const kept = steps ? { steps: steps.map(({ key }) => key) } : { entries: journal.length };
  return { waiting, children, wakeAt, outcome, ...kept };
}

describe.each([undefined, 'one'] as const)(
  'passes with a worker that dies during or after each step of every turn (steps: %s)',
  (steps) => {
    const setup = { ...simulatedWith(dyingInEachStep(steps)), name: 'dying', deploys: false };
    // A step that a timeout interrupted counts as cancelled in the next attempt, and the run fails instead of timing
    // out.
    const isExact = (name: string): boolean =>
      !name.startsWith(
        'ends a run whose time expires during a model call, and ignores later events',
      );
    const cases = runsConformance(setup).filter(
      ({ name, skipped }) => skipped === null && isExact(name),
    );
    test.each(cases)('$name', ({ run }) => run());
  },
);

describe('RUN-FLOW-4: handles a cancellation during the call that starts the first subagent', () => {
  const atOnce = (faults: Faults): Faults => {
    let known: RunEngine | null = null;
    return {
      ...faults,
      engine: (engine) => (known = engine),
      handler: (handler) => ({
        ...handler,
        turn(turn, signal) {
          const [runId] = turn.order.id.split('/');
          if (turn.order.above && turn.number === 1) void known?.cancel(runId ?? '', 'at once');
          return handler.turn(turn, signal);
        },
      }),
    };
  };
  const cases = inBothWays({}).flatMap((way) =>
    runsConformance(simulatedWith(atOnce(way)))
      .filter(({ name }) => /^cancels a run whose (guide|courier) starts first/u.test(name))
      .map((one) => ({ ...one, way: wayOf(way) })),
  );
  test.each(cases)('$name, $way', ({ run }) => run());
});

describe('a planted fault is found by its case', () => {
  /** Each attempt at a turn requests other jobs. */
  const forgetful = (): Faults => {
    let attempt = 0;
    return {
      handler: (handler) => ({
        ...handler,
        turn(turn, signal) {
          attempt += 1;
          return handler.turn(turn, signal);
        },
      }),
      jobs: (jobs) => ({
        ...jobs,
        run: (job, options) => jobs.run({ ...job, key: `${job.key}~${attempt}` }, options),
        cancel: () => {},
      }),
    };
  };
  const anotherRun: Faults = {
    engine: (engine) => {
      const mine = (salt += 1);
      // The id of a child starts with the id of its run.
      const own = (id: string): string => (id.includes('/') ? id : `${id}~${mine}`);
      return {
        ...engine,
        start: (order) => engine.start({ ...order, id: own(order.id) }),
        view: (id, after, signal) => engine.view(own(id), after, signal),
        answer: (id, answer) => engine.answer(own(id), answer),
      };
    },
  };
  const deafToCancel: Faults = { engine: (engine) => ({ ...engine, cancel: async () => {} }) };
  let isCancelled = false;
  const cancelledLate: Faults = {
    engine: (engine) => {
      return {
        ...engine,
        async cancel(...given) {
          isCancelled = true;
          await engine.cancel(...given);
        },
        async view(...given) {
          const view = await engine.view(...given);
          const outcome = view.outcome && { ...view.outcome, status: 'cancelled' };
          return isCancelled ? { ...view, outcome } : view;
        },
      };
    },
  };
  const timeStands: Faults = {
    worker: (options) => {
      const { scheduler } = options.environment;
      return {
        ...options,
        environment: {
          ...options.environment,
          scheduler: {
            yieldThen: (task) => scheduler.yieldThen(task),
            schedule: () => () => {},
          },
        },
      };
    },
  };
  const expiryStands: Faults = {
    handler: (handler) => ({
      ...handler,
      async turn(turn, signal) {
        const end = await handler.turn(turn, signal);
        return { ...end, wakeAt: null };
      },
    }),
  };
  /** A message in mode `interrupt` is sent as `steer`, so the subagent reads it in the next step. */
  const patient: Faults = {
    worker: (options) => ({
      ...options,
      configs: Object.fromEntries(
        Object.entries(options.configs).map(([name, config]) => {
          const { send_to_subagent: send, ...tools } = config.tools ?? {};
          const { execute, ...rest } = send as Tool & { execute: NonNullable<Tool['execute']> };
          const steered = {
            ...rest,
            execute: (input: object, call: Parameters<typeof execute>[1]) =>
              execute({ ...input, mode: 'steer' }, call),
          };
          return [name, { ...config, tools: { ...tools, send_to_subagent: steered } }];
        }),
      ),
    }),
  };
  /** A worker that gives up a turn at once if it lacks something. */
  const hasty: Faults = { worker: (options) => ({ ...options, offerMs: 0 }) };
  const takesForBegun: Faults = {
    steps: 'one',
    handler: (handler) => ({
      ...handler,
      async turn(turn, signal) {
        const end = await handler.turn(turn, signal);
        if (end.missing !== 'another worker' || turn.news.type !== 'next') return end;
        const ends = [{ key: turn.news.step.key, end: { lost: true } as const }];
        return handler.turn({ ...turn, news: { type: 'ended', ends } }, signal);
      },
    }),
  };
  /** Turns the refusal of a step into a failure. */
  const refusedIsFailed: Faults = {
    steps: 'none',
    handler: (handler) => ({
      ...handler,
      async step(job, signal) {
        const end = await handler.step(job, signal);
        return 'refused' in end ? refusedEnd(end) : end;
      },
    }),
  };
  const losesTheQuestion: Faults = {
    steps: 'one',
    handler: (handler) => ({
      ...handler,
      turn: (turn, signal) =>
        handler.turn(
          turn.news.type === 'answered' ? { ...turn, news: { type: 'due' } } : turn,
          signal,
        ),
    }),
  };
  /** Hides a question while a step is in progress. */
  const showsLate: Faults = {
    steps: 'one',
    handler: (handler) => ({
      ...handler,
      async turn(turn, signal) {
        const end = await handler.turn(turn, signal);
        const isWorking = (end.steps ?? []).length > 0;
        return isWorking ? { ...end, waiting: [] } : end;
      },
    }),
  };
  const planted: readonly [string, Faults, string][] = [
    ...faultsOfMessages(),
    [
      'a question is shown when nothing works',
      showsLate,
      'answers a subagent inside the run while the run works, and lets it continue',
    ],
    ['nothing is left to other workers', hasty, 'completes runs of a configuration'],
    [
      'nothing is left to other workers',
      hasty,
      'delays a run after a rollback during its question until its workers have what it needs',
    ],
    [
      'a step that was refused is taken for begun',
      takesForBegun,
      'runs a step once on the worker version',
    ],
    [
      'a step that was refused has failed',
      refusedIsFailed,
      'runs a step once on the worker version',
    ],
    [
      'an answer is lost in a deploy',
      losesTheQuestion,
      'continues a run with later workers that replace the earlier ones during its question',
    ],
    [
      'each attempt at a turn asks for other jobs',
      forgetful(),
      'does not repeat a charge during which the workers die, and the model reads that its outcome is unknown',
    ],
    [
      'each program has a run of its own',
      anotherRun,
      'keeps the outcome the same when the program dies in any step',
    ],
    ['no time is waited for', expiryStands, 'expires a question while the workers are dead'],
    [
      'no clock goes on',
      timeStands,
      'ends a run whose time expires during a model call, and ignores later events',
    ],
    ['a cancel does nothing', deafToCancel, 'cancels a run at once'],
    ['a cancel does nothing', deafToCancel, 'cancels a run while it waits for consent'],
    ['a cancel does nothing', deafToCancel, 'cancels a run while a request to the program waits'],
    ['a cancel does nothing', deafToCancel, 'cancels a run during a look-up'],
    ['a cancel does nothing', deafToCancel, 'cancels a run before a model call is retried'],
    [
      'a cancel does nothing',
      deafToCancel,
      'cancels a run while it waits for a subagent in the background',
    ],
    ['a late cancel counts', cancelledLate, 'keeps the outcome of an ended run that is cancelled'],
    [
      'words wait for the next step',
      patient,
      'reads words at once during a model call, in a subagent',
    ],
    [
      'words wait for the next step',
      patient,
      'reads words at once during a look-up, in a subagent',
    ],
    ['words wait for the next step', patient, 'reads words at once during a charge, in a subagent'],
    ['words wait for the next step', patient, 'reads words at once while it asks, in a subagent'],
    [
      'words wait for the next step',
      patient,
      'reads words at once while it waits for its own subagent, in a subagent',
    ],
    [
      'words wait for the next step',
      patient,
      'delivers words to a subagent although the workers die afterwards',
    ],
    [
      'what the last turn has added is lost',
      losesTheLastTurn,
      'keeps the outcome the same when the workers die in any step',
    ],
    [
      'a step is begun by whatever process',
      beginsTwice,
      'does not repeat a charge during which the workers die, and the model reads that its outcome is unknown',
    ],
    [
      'a run that is cancelled begins no subagent any more',
      beginsFewer,
      'cancels a run whose guide starts first: the guide stops, the courier continues',
    ],
    ...(['guide', 'courier'] as const).flatMap((first): [string, Faults, string][] => {
      const begins = `cancels a run whose ${first} starts first`;
      return [
        ['a cancel does nothing', deafToCancel, begins],
        ['no subagent is cancelled with its run', withPolicies('abandon'), begins],
        ['every subagent is cancelled with its run', withPolicies('cancel'), begins],
      ];
    }),
  ];
  const all = planted.flatMap(([fault, faults, name]) =>
    (faults.steps ? [faults] : inBothWays(faults)).map(
      (way) => [fault, name, wayOf(way), way] as const,
    ),
  );
  test.each(all)('%s: %s, %s', async (_fault, name, _way, faults) => {
    const one = runsConformance(simulatedWith(faults)).find((each) => each.name.startsWith(name));
    await expect(one?.run()).rejects.toMatchObject({ code: 'NOT_CONFORMANT' });
  });
});
