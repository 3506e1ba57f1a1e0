// The cases in which a run is broken off: by a death in any of its steps, by time, by a cancel in any state, and by words that
// reach a subagent of it in any state.

import type { Outcome } from '../../../src/actors/contracts/outcome.ts';
import type { RunsBench, RunsScene, WatchedRun } from './bench.ts';
import { BRIEF_MS } from './travel-agent.ts';

/** Cards are charged before steps in which something dies: they must not be charged again. */
const JOURNEY = 'charge, ask, guide charge then look_up then ask, look_up & look_up';
const ANSWER = { answer: { text: 'The left one' } };
/** Its steps that may be done again. */
const STEPS = [
  '/model-1',
  '/model-2',
  '/model-3',
  '-guide/model-1',
  '-guide/model-2',
  '-guide/look_up',
  '-guide/model-3',
  '-guide/model-4',
  '/model-4',
  '/look_up',
  '-2/look_up',
  '/model-5',
] as const;
const ONCE = ['/charge', '-guide/charge'] as const;

/**
 * The state of a trip at its end, as that of any other trip with the same steps. The permission to begin a charge may die with the
 * worker that had it: then nobody knows, and it is not begun again.
 */
function stateOf(trip: string, { toolLedger, ...outcome }: Outcome): string {
  // Calls of one step are in the order in which they ended.
  const ledger = toolLedger
    .map((entry) => ({ ...entry, calledAt: 0, settledAt: 0 }))
    .map((entry) =>
      entry.toolName === 'charge' && entry.status === 'in_flight'
        ? { ...entry, status: 'ok', output: { did: 'charge' } }
        : entry,
    )
    .toSorted((one, other) => (one.callId < other.callId ? -1 : 1));
  return JSON.stringify({ ...outcome, ledger }).replaceAll(trip, 'TRIP');
}

/** One journey for each step, each waiting in that step; then everything that may die does so at once. */
async function deathInEachStep(
  bench: RunsBench,
  isProgramDead: boolean,
  die: () => void | Promise<unknown>,
): Promise<void> {
  const unharmed = bench.trip();
  const first = bench.start(unharmed, JOURNEY, ANSWER);
  const outcome = await bench.outcome(first);
  bench.expectOutcome(outcome, 'completed', 'look_up');
  const expected = stateOf(unharmed, outcome);
  const journeys = STEPS.map((step) => {
    const trip = bench.trip();
    const release = bench.hold(`${trip}${step}`);
    return { step, trip, release, watched: bench.start(trip, JOURNEY, ANSWER) };
  });
  for (const { trip, step } of journeys) await bench.begun(`${trip}${step}`);
  await bench.quiet();
  if (isProgramDead) for (const { watched } of journeys) watched.kill();
  await die();
  for (const { release } of journeys) release();
  for (const { step, trip, watched } of journeys) {
    const after = `after a death in ${step}`;
    const next = isProgramDead ? bench.start(trip, JOURNEY, ANSWER) : watched;
    const ended = await bench.outcome(next);
    const got = stateOf(trip, ended);
    bench.expect(got === expected, `${expected} ${after}, got ${got}`);
    const isCharged = bench.ledger(ended).startsWith('charge ok');
    bench.expect(!isCharged || bench.count(`${trip}/charge`) === 1, `a charge ${after}`);
    for (const once of ONCE)
      bench.expect(bench.count(`${trip}${once}`) <= 1, `${once} to be done once ${after}`);
    for (const other of STEPS) {
      const times = bench.count(`${trip}${other}`);
      // Calls of one step are under way together. A worker that is slow while others start counts as dead, too.
      const mayRepeat = other.endsWith('look_up') ? step.endsWith('look_up') : other === step;
      const isWell = mayRepeat ? times >= 1 : times === 1;
      bench.expect(isWell, `${other} to be done once ${after}, got ${times}`);
    }
    const asked = new Set([...watched.put, ...next.put].map(({ requestId }) => requestId));
    bench.expect(
      asked.size === first.put.length,
      `${first.put.length} questions ${after}, got ${asked.size}`,
    );
  }
}

/** The state in which a run is cancelled, and the way there. */
const CANCELLED_IN: readonly {
  readonly state: string;
  readonly steps: string;
  readonly agent?: string;
  readonly there: (bench: RunsBench, trip: string, watched: WatchedRun) => Promise<unknown>;
}[] = [
  {
    state: 'at once',
    steps: 'charge',
    // Its first step may begin before the cancel is there.
    there: async (bench, trip) => bench.hold(`${trip}/model-1`),
  },
  {
    state: 'while a consent is waited for',
    steps: 'refund, charge',
    there: (bench, _, watched) => bench.asked(watched),
  },
  {
    state: 'while a request to the program waits',
    steps: 'input, charge',
    there: (bench, _, watched) => bench.asked(watched),
  },
  {
    state: 'in a look-up',
    steps: 'look_up, charge',
    async there(bench, trip) {
      bench.hold(`${trip}/look_up`);
      await bench.begun(`${trip}/look_up`);
    },
  },
  {
    state: 'before a model call is tried again',
    steps: 'busy, charge',
    agent: 'patient',
    async there(bench, trip) {
      await bench.begun(`${trip}/model-1`);
      await bench.quiet();
    },
  },
  {
    state: 'while it waits for a subagent in the background',
    steps: 'spawn ask then charge, await, charge',
    there: (bench, _, watched) => bench.asked(watched),
  },
];

/** The state of a subagent which words reach: its model calls in all, and the step that it is in; null: it asks. */
const HURRIED_IN: readonly {
  readonly state: string;
  readonly steps: string;
  readonly step: string | null;
  readonly isModelCall?: boolean;
  /** The run waits meanwhile, for the program. */
  readonly isAtRest?: boolean;
}[] = [
  { state: 'in a model call', steps: 'look_up', step: '-scout/model-1', isModelCall: true },
  { state: 'in a look-up', steps: 'look_up', step: '-scout/look_up' },
  { state: 'in a charge', steps: 'charge', step: '-scout/charge' },
  { state: 'while it asks', steps: 'ask', step: null, isAtRest: true },
  {
    state: 'while it waits for a subagent of its own',
    steps: 'guide charge',
    step: '-scout-guide/charge',
    isAtRest: true,
  },
];

/** Words reach a subagent in a state. `meanwhile`: while a model call reads them. */
async function hurry(
  bench: RunsBench,
  { steps, step, isModelCall = false, isAtRest = false }: (typeof HURRIED_IN)[number],
  meanwhile?: () => Promise<void>,
): Promise<void> {
  const trip = bench.trip();
  const scout = `${trip}-scout`;
  const reads = isModelCall ? 'model-1' : 'model-2';
  const release = isAtRest ? null : bench.hold(`${trip}/model-2`);
  const releaseReader = bench.hold(`${scout}/${reads}`);
  if (step !== null && !isModelCall) bench.hold(`${trip}${step}`);
  const watched = bench.start(trip, `spawn ${steps}, ${isAtRest ? 'input, ' : ''}hurry, await`);
  if (step !== null) await bench.begun(`${trip}${step}`);
  release?.();
  if (isAtRest) {
    await bench.asked(watched, step === null ? 2 : 1);
    watched.put.find(({ kind }) => kind === 'input')?.answer('Seven dollars');
  }
  await bench.begun(`${scout}/${reads}`, isModelCall ? 2 : 1);
  await meanwhile?.();
  releaseReader();
  bench.expectOutcome(await bench.outcome(watched), 'completed', 'in a hurry');
  for (const question of watched.put.filter(({ kind }) => kind === 'question'))
    bench.expect(question.isOver(), 'the question to be over');
  if (!meanwhile) bench.expectCounts(scout, { 'model-1': isModelCall ? 2 : 1, 'model-2': 1 });
  if (step !== null && !isModelCall)
    bench.expect(bench.count(`${trip}${step}`) === 1, `${step} to be done once`);
}

export const interruptionScenes: readonly RunsScene[] = [
  {
    name: 'the workers die in any step: the run ends as one that nobody killed',
    needs: ['worker_dies'],
    play: (bench) => deathInEachStep(bench, false, () => bench.killWorkers()),
  },
  {
    name: 'the program dies in any step: the run ends as one that nobody killed',
    needs: ['program_dies'],
    play: (bench) => deathInEachStep(bench, true, () => {}),
  },
  {
    name: 'engine, workers and program die in any step: the run ends as one that nobody killed',
    needs: ['engine_dies', 'worker_dies', 'program_dies'],
    play: (bench) =>
      deathInEachStep(bench, true, () => Promise.all([bench.killWorkers(), bench.killEngine()])),
  },
  ...(['worker_dies', 'engine_dies'] as const).map((fault): RunsScene => ({
    name: `${fault === 'worker_dies' ? 'the workers are' : 'everything is'} dead when the time of a question is over: it expires`,
    needs: fault === 'worker_dies' ? [fault] : ['worker_dies', fault],
    async play(bench) {
      const trip = bench.trip();
      const watched = bench.start(trip, 'charge, ask, ask', { agent: 'hurried' });
      const first = await bench.asked(watched);
      await bench.quiet();
      await Promise.all([
        bench.killWorkers(),
        ...(fault === 'engine_dies' ? [bench.killEngine()] : []),
      ]);
      await bench.pass(400);
      await bench.asked(watched, 2);
      bench.expect(first.isOver(), 'the first question to be over');
      const late = await bench.answer(trip, first.requestId, 'The late one');
      bench.expect(!late, 'a late answer to be refused');
      await bench.quiet();
      await bench.pass(400);
      const outcome = await bench.outcome(watched);
      bench.expectOutcome(outcome, 'failed');
      bench.expect(outcome.error?.code === 'INPUT_TIMEOUT', `got ${outcome.error?.code}`);
      // The time may be over before the kill: then that meets the next model call.
      bench.expectCounts(trip, { 'model-1': 1, charge: 1, 'model-2': 1 });
    },
  })),
  {
    name: 'the time of a run expires in a model call: what comes later changes nothing',
    async play(bench) {
      const trip = bench.trip();
      const release = bench.hold(`${trip}/model-1`);
      const watched = bench.start(trip, 'charge', { agent: 'brief' });
      // Where time is real, it may be over before the worker has come to the model.
      await bench.begunOrOver(`${trip}/model-1`, watched);
      await bench.pass(BRIEF_MS + 100);
      const outcome = await bench.outcome(watched);
      bench.expectOutcome(outcome, 'timed_out');
      release();
      await bench.quiet();
      const later = await bench.outcome(bench.start(trip, 'charge', { agent: 'brief' }));
      bench.expect(
        stateOf(trip, later) === stateOf(trip, outcome),
        `the same outcome, got ${JSON.stringify(later)}`,
      );
      bench.expectCounts(trip, { charge: 0 });
    },
  },
  ...CANCELLED_IN.map(({ state, steps, agent, there }): RunsScene => ({
    name: `a run is cancelled ${state}`,
    async play(bench) {
      const trip = bench.trip();
      const watched = bench.start(trip, steps, agent === undefined ? {} : { agent });
      await there(bench, trip, watched);
      watched.run.cancel('not needed');
      bench.expectOutcome(await bench.outcome(watched), 'cancelled');
      for (const question of watched.put.filter(({ kind }) => kind === 'question'))
        bench.expect(question.isOver(), 'the question to be over');
      await bench.quiet();
      for (const one of [trip, `${trip}-scout`]) bench.expectCounts(one, { charge: 0, refund: 0 });
    },
  })),
  ...(['guide', 'courier'] as const).map((first): RunsScene => ({
    name: `a ${first} begins first when its run is cancelled: the guide stops, the courier goes on`,
    needs: ['engine'],
    async play(bench) {
      const trip = bench.trip();
      // The trip of a second call in one step has another name.
      const isGuideFirst = first === 'guide';
      const [guide, courier] = isGuideFirst
        ? [`${trip}-guide`, `${trip}-2-courier`]
        : [`${trip}-2-guide`, `${trip}-courier`];
      const [releaseGuide, releaseCourier] = [
        bench.hold(`${guide}/model-1`),
        bench.hold(`${courier}/model-1`),
      ];
      const second = isGuideFirst ? 'courier' : 'guide';
      const watched = bench.start(trip, `${first} charge & ${second} charge`);
      // It may be cancelled before the first one has come to its model.
      await bench.begunOrOver(`${isGuideFirst ? guide : courier}/model-1`, watched);
      watched.run.cancel('not needed');
      bench.expectOutcome(await bench.outcome(watched), 'cancelled');
      await bench.begun(`${courier}/model-1`);
      releaseCourier();
      await bench.begun(`${courier}/model-2`);
      // The cancel has reached the guide by then.
      await bench.quiet();
      releaseGuide();
      await bench.quiet();
      bench.expectCounts(guide, { charge: 0 });
      bench.expectCounts(courier, { charge: 1, 'model-1': 1, 'model-2': 1 });
      bench.expectCounts(trip, { 'model-1': 1, 'model-2': 0 });
    },
  })),
  {
    name: 'a run that has ended is cancelled: its outcome stays',
    async play(bench) {
      const trip = bench.trip();
      const watched = bench.start(trip, 'charge');
      bench.expectOutcome(await bench.outcome(watched), 'completed');
      watched.run.cancel('too late');
      await bench.quiet();
      bench.expectOutcome(await bench.outcome(bench.start(trip, 'charge')), 'completed', 'charge');
      bench.expectCounts(trip, { charge: 1 });
    },
  },
  ...HURRIED_IN.map((state): RunsScene => ({
    name: `words reach a subagent ${state.state}: it reads them at once`,
    play: (bench) => hurry(bench, state),
  })),
  {
    name: 'the workers die when words have reached a subagent: it has read them',
    needs: ['worker_dies'],
    async play(bench) {
      for (const state of HURRIED_IN) await hurry(bench, state, () => bench.killWorkers());
    },
  },
];
