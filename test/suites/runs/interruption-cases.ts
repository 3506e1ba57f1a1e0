// The cases in which a run is interrupted: by a kill during any of its steps, by a timeout, by a cancel in any state,
// and by a message to one of its subagents in any state.

import type { Outcome } from '../../../src/actors/contracts/outcome.ts';
import type { RunsBench, RunsScene, WatchedRun } from './bench.ts';
import { BRIEF_MS } from './travel-agent.ts';

/** The charges come before the steps in which something is killed, so they must not be repeated. */
const JOURNEY = 'charge, ask, guide charge then look_up then ask, look_up & look_up';
const ANSWER = { answer: { text: 'The left one' } };
/** The steps of the journey that may be repeated. */
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
 * The final state of a trip in a form that can be compared with that of other trips with the same steps. A worker may
 * die after it received permission to start a charge. Then the fate of the charge is unknown, and the charge is not
 * started again.
 */
function stateOf(trip: string, { toolLedger, ...outcome }: Outcome): string {
  // The ledger lists the calls of one step in the order in which they ended.
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

/** Starts one journey for each step, holds it in that step, and then kills everything that may die, all at once. */
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
      // The calls of one step run at the same time. A worker that is slow while others are starting also counts as
      // dead.
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

/** The state in which a run is cancelled, and how the run gets into that state. */
const CANCELLED_IN: readonly {
  readonly state: string;
  readonly steps: string;
  readonly agent?: string;
  readonly there: (bench: RunsBench, trip: string, watched: WatchedRun) => Promise<unknown>;
}[] = [
  {
    state: 'at once',
    steps: 'charge',
    // The first step may start before the cancel arrives.
    there: async (bench, trip) => bench.hold(`${trip}/model-1`),
  },
  {
    state: 'while it waits for consent',
    steps: 'refund, charge',
    there: (bench, _, watched) => bench.asked(watched),
  },
  {
    state: 'while a request to the program waits',
    steps: 'input, charge',
    there: (bench, _, watched) => bench.asked(watched),
  },
  {
    state: 'during a look-up',
    steps: 'look_up, charge',
    async there(bench, trip) {
      bench.hold(`${trip}/look_up`);
      await bench.begun(`${trip}/look_up`);
    },
  },
  {
    state: 'before a model call is retried',
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

/**
 * The state in which a message reaches a subagent, and the step that the subagent is in, or null if it is asking the
 * user.
 */
const HURRIED_IN: readonly {
  readonly state: string;
  readonly steps: string;
  readonly step: string | null;
  readonly isModelCall?: boolean;
  /** In the meantime, the run is waiting for the program. */
  readonly isIdle?: boolean;
}[] = [
  { state: 'during a model call', steps: 'look_up', step: '-scout/model-1', isModelCall: true },
  { state: 'during a look-up', steps: 'look_up', step: '-scout/look_up' },
  { state: 'during a charge', steps: 'charge', step: '-scout/charge' },
  { state: 'while it asks', steps: 'ask', step: null, isIdle: true },
  {
    state: 'while it waits for its own subagent',
    steps: 'guide charge',
    step: '-scout-guide/charge',
    isIdle: true,
  },
];

/**
 * Sends a message to a subagent that is in the given state. `meanwhile` runs while a model call is reading the message.
 */
async function hurry(
  bench: RunsBench,
  { steps, step, isModelCall = false, isIdle = false }: (typeof HURRIED_IN)[number],
  meanwhile?: () => Promise<void>,
): Promise<void> {
  const trip = bench.trip();
  const scout = `${trip}-scout`;
  const reads = isModelCall ? 'model-1' : 'model-2';
  const release = isIdle ? null : bench.hold(`${trip}/model-2`);
  const releaseReader = bench.hold(`${scout}/${reads}`);
  if (step !== null && !isModelCall) bench.hold(`${trip}${step}`);
  const watched = bench.start(trip, `spawn ${steps}, ${isIdle ? 'input, ' : ''}hurry, await`);
  if (step !== null) await bench.begun(`${trip}${step}`);
  release?.();
  if (isIdle) {
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
    name: 'keeps the outcome the same when the workers die in any step',
    needs: ['worker_dies'],
    play: (bench) => deathInEachStep(bench, false, () => bench.killWorkers()),
  },
  {
    name: 'keeps the outcome the same when the program dies in any step',
    needs: ['program_dies'],
    play: (bench) => deathInEachStep(bench, true, () => {}),
  },
  {
    name: 'keeps the outcome the same when engine, workers and program die in any step',
    needs: ['engine_dies', 'worker_dies', 'program_dies'],
    play: (bench) =>
      deathInEachStep(bench, true, () => Promise.all([bench.killWorkers(), bench.killEngine()])),
  },
  ...(['worker_dies', 'engine_dies'] as const).map((fault): RunsScene => ({
    name: `expires a question while ${fault === 'worker_dies' ? 'the workers are' : 'everything is'} dead`,
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
      // The timeout may come before the kill. The kill then hits the next model call.
      bench.expectCounts(trip, { 'model-1': 1, charge: 1, 'model-2': 1 });
    },
  })),
  {
    name: 'ends a run whose time expires during a model call, and ignores later events',
    needs: ['passesTime'],
    async play(bench) {
      const trip = bench.trip();
      const release = bench.hold(`${trip}/model-1`);
      const watched = bench.start(trip, 'charge', { agent: 'brief' });
      // In real time, the run may time out before the worker calls the model.
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
    name: `cancels a run ${state}`,
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
    name: `cancels a run whose ${first} starts first: the guide stops, the courier continues`,
    needs: ['engine'],
    async play(bench) {
      const trip = bench.trip();
      // If one step has two calls, the second call books a trip with a different name.
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
      // The cancel may come before the first subagent calls its model.
      await bench.begunOrOver(`${isGuideFirst ? guide : courier}/model-1`, watched);
      watched.run.cancel('not needed');
      bench.expectOutcome(await bench.outcome(watched), 'cancelled');
      await bench.begun(`${courier}/model-1`);
      releaseCourier();
      await bench.begun(`${courier}/model-2`);
      // By then, the cancel has reached the guide.
      await bench.quiet();
      releaseGuide();
      await bench.quiet();
      bench.expectCounts(guide, { charge: 0 });
      bench.expectCounts(courier, { charge: 1, 'model-1': 1, 'model-2': 1 });
      bench.expectCounts(trip, { 'model-1': 1, 'model-2': 0 });
    },
  })),
  {
    name: 'keeps the outcome of an ended run that is cancelled',
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
    name: `reads words at once ${state.state}, in a subagent`,
    play: (bench) => hurry(bench, state),
  })),
  {
    name: 'delivers words to a subagent although the workers die afterwards',
    needs: ['worker_dies'],
    async play(bench) {
      for (const state of HURRIED_IN) await hurry(bench, state, () => bench.killWorkers());
    },
  },
];
