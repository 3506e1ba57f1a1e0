// The cases in which a program sends messages to a run: in any state, in any mode, before a kill, and after the end.

import { MAX_UNREAD_MESSAGES } from '../../../src/actors/ports/run-engine.ts';
import { MAX_UNREAD } from '../../../src/actors/subagent/subagent.ts';
import type { RunsBench, RunsScene } from './bench.ts';

/** The state in which an `interrupt` reaches a run, and the calls that the interrupt aborts. */
const INTERRUPTED_IN: readonly {
  readonly state: string;
  readonly steps: string;
  /** The call in progress, or null if the run is waiting for the program. */
  readonly step: string | null;
  /** The number of the model's answers before the call that reads the message. */
  readonly reads: number;
  readonly isModelCall?: boolean;
  /** The state is also tested with a kill. */
  readonly isDeadly?: boolean;
}[] = [
  {
    state: 'during a model call',
    steps: 'look_up',
    step: '/model-1',
    reads: 0,
    isModelCall: true,
    isDeadly: true,
  },
  { state: 'during a look-up', steps: 'look_up', step: '/look_up', reads: 1 },
  { state: 'during a charge', steps: 'charge', step: '/charge', reads: 1, isDeadly: true },
  { state: 'during two look-ups', steps: 'look_up & look_up', step: '-2/look_up', reads: 1 },
  { state: 'while it asks', steps: 'ask', step: null, reads: 1, isDeadly: true },
  { state: 'while its own subagent asks', steps: 'guide ask', step: null, reads: 1 },
];

/**
 * Sends an `interrupt` to a run that is in the given state. `meanwhile` runs while a model call is reading the message.
 */
async function interrupt(
  bench: RunsBench,
  { steps, step, reads, isModelCall = false }: (typeof INTERRUPTED_IN)[number],
  meanwhile?: () => Promise<void>,
): Promise<void> {
  const trip = bench.trip();
  const reader = `${trip}/model-${reads + 1}`;
  const release = bench.hold(reader);
  if (step !== null && !isModelCall) bench.hold(`${trip}${step}`);
  const watched = bench.start(trip, steps);
  if (step === null) await bench.asked(watched);
  else await bench.begun(`${trip}${step}`);
  const sent = bench.send(watched, 'now', { mode: 'interrupt' });
  await bench.begun(reader, isModelCall ? 2 : 1);
  await meanwhile?.();
  release();
  const outcome = await bench.outcome(watched);
  bench.expectOutcome(outcome, 'completed', `heard now after ${reads}`);
  await bench.expectRead(sent, true);
  for (const question of watched.put) bench.expect(question.isOver(), 'the question to be over');
  if (!isModelCall) {
    bench.expectCounts(trip, { 'model-1': 1 });
    if (step !== null) bench.expect(bench.count(`${trip}${step}`) === 1, `${step} to be done once`);
  }
}

/**
 * Sends a message while the first of two tools is running. The model must read the message after `afterSteps` answers.
 */
async function sentDuringTool(
  bench: RunsBench,
  word: string,
  { mode, afterSteps }: { readonly mode: 'steer' | 'queue'; readonly afterSteps: number },
): Promise<void> {
  const trip = bench.trip();
  const release = bench.hold(`${trip}/look_up`);
  const watched = bench.start(trip, 'look_up, charge');
  await bench.begun(`${trip}/look_up`);
  const sent = bench.send(watched, word, { mode });
  await bench.taken(sent);
  release();
  const heard = `heard ${word} after ${afterSteps}`;
  bench.expectOutcome(await bench.outcome(watched), 'completed', heard);
  await bench.expectRead(sent, true);
  bench.expectCounts(trip, { look_up: 1, charge: 1, 'model-1': 1, 'model-2': 1, 'model-3': 1 });
  if (mode === 'steer') bench.expectCounts(trip, { 'model-4': 0 });
}

export const messageScenes: readonly RunsScene[] = [
  {
    name: 'delivers a message during a tool call at the next step',
    play: (bench) => sentDuringTool(bench, 'left', { mode: 'steer', afterSteps: 1 }),
  },
  {
    name: 'delivers a message during a question after the answer',
    async play(bench) {
      const trip = bench.trip();
      const watched = bench.start(trip, 'ask, charge');
      const question = await bench.asked(watched);
      const sent = bench.send(watched, 'left');
      await bench.taken(sent);
      bench.expect(!question.isOver(), 'the question to be open');
      question.answer({ text: 'The cheap one' });
      bench.expectOutcome(await bench.outcome(watched), 'completed', 'heard left after 1');
      await bench.expectRead(sent, true);
      bench.expect(watched.put.length === 1, 'one question');
      bench.expectCounts(trip, { charge: 1, 'model-1': 1, 'model-2': 1, 'model-3': 1 });
    },
  },
  {
    name: 'delivers messages once each, in the order of sending',
    async play(bench) {
      const trip = bench.trip();
      const watched = bench.start(trip, 'ask, look_up');
      const question = await bench.asked(watched);
      const words = ['one', 'two', 'three', 'four', 'five'];
      const sent = words.map((word) => bench.send(watched, word));
      for (const each of sent) await bench.taken(each);
      question.answer({ text: 'The cheap one' });
      const heard = words.map((word) => `${word} after 1`).join(' ');
      bench.expectOutcome(await bench.outcome(watched), 'completed', `heard ${heard}.`);
      for (const each of sent) await bench.expectRead(each, true);
    },
  },
  {
    name: 'delivers a queued message when the run would have ended, and continues the run',
    play: (bench) => sentDuringTool(bench, 'later', { mode: 'queue', afterSteps: 3 }),
  },
  {
    name: 'delays the end of a run for a message during the last model call',
    async play(bench) {
      for (const mode of ['steer', 'queue'] as const) {
        const trip = bench.trip();
        const release = bench.hold(`${trip}/model-2`);
        const watched = bench.start(trip, 'charge');
        await bench.begun(`${trip}/model-2`);
        const sent = bench.send(watched, 'left', { mode });
        await bench.taken(sent);
        release();
        bench.expectOutcome(await bench.outcome(watched), 'completed', 'heard left after ');
        await bench.expectRead(sent, true);
        bench.expectCounts(trip, { 'model-1': 1, charge: 1 });
      }
    },
  },
  ...INTERRUPTED_IN.map((state): RunsScene => ({
    name: `reads an interrupt at once ${state.state}`,
    play: (bench) => interrupt(bench, state),
  })),
  {
    name: 'repeats nothing when the workers die after an interrupt was read',
    needs: ['worker_dies'],
    async play(bench) {
      for (const state of INTERRUPTED_IN.filter(({ isDeadly }) => isDeadly))
        await interrupt(bench, state, () => bench.killWorkers());
    },
  },
  {
    name: 'delivers a message once even if another program repeats it with its key',
    async play(bench) {
      const trip = bench.trip();
      const program = bench.stage.program();
      const steps = 'ask, look_up, ask';
      const first = bench.start(trip, steps, { program });
      const question = await bench.asked(first);
      const second = bench.isEngine ? bench.start(trip, steps) : first;
      const sent = [first, second, first].map((watched) =>
        bench.send(watched, 'left', { idempotencyKey: 'words' }),
      );
      for (const each of sent) await bench.taken(each);
      question.answer({ text: 'The cheap one' });
      const last = await bench.asked(first, 2);
      sent.push(bench.send(first, 'left', { idempotencyKey: 'words' }));
      await bench.expectRead(sent[3], true);
      last.answer({ text: 'The dear one' });
      bench.expectOutcome(await bench.outcome(first), 'completed', 'heard left after 1.');
      for (const each of sent) await bench.expectRead(each, true);
    },
  },
  ...(['worker_dies', 'engine_dies', 'program_dies'] as const).map((fault): RunsScene => ({
    name: `delivers a message once although ${{ worker_dies: 'the workers', engine_dies: 'engine and workers', program_dies: 'the program' }[fault]} died afterwards`,
    needs: fault === 'engine_dies' ? [fault, 'worker_dies'] : [fault],
    async play(bench) {
      const trip = bench.trip();
      const watched = bench.start(trip, 'charge, ask, look_up');
      const question = await bench.asked(watched);
      await bench.taken(bench.send(watched, 'left', { idempotencyKey: 'words' }));
      if (fault === 'program_dies') watched.kill();
      else if (fault === 'worker_dies') await bench.killWorkers();
      else await Promise.all([bench.killWorkers(), bench.killEngine()]);
      const next = fault === 'program_dies' ? bench.start(trip, 'charge, ask, look_up') : watched;
      const again = fault === 'program_dies' ? await bench.asked(next) : question;
      const sent = bench.send(next, 'left', { idempotencyKey: 'words' });
      await bench.taken(sent);
      again.answer({ text: 'The cheap one' });
      bench.expectOutcome(await bench.outcome(next), 'completed', 'heard left after 2.');
      await bench.expectRead(sent, true);
      bench.expectCounts(trip, { charge: 1, 'model-1': 1, 'model-2': 1 });
    },
  })),
  {
    name: 'does not deliver a message to a cancelled or ended run',
    async play(bench) {
      const trip = bench.trip();
      const watched = bench.start(trip, 'ask');
      await bench.asked(watched);
      const unread = bench.send(watched, 'later', { mode: 'queue' });
      await bench.taken(unread);
      watched.run.cancel('not needed');
      bench.expectOutcome(await bench.outcome(watched), 'cancelled');
      await bench.expectRead(unread, false);
      await bench.expectRead(bench.send(watched, 'left'), false);
      const other = bench.start(bench.trip(), 'look_up');
      bench.expectOutcome(await bench.outcome(other), 'completed');
      await bench.expectRead(bench.send(other, 'left'), false);
    },
  },
  {
    name: 'refuses a message beyond the limit of unread messages, and delivers the unread ones',
    async play(bench) {
      const many = bench.isEngine ? MAX_UNREAD_MESSAGES : MAX_UNREAD;
      const trip = bench.trip();
      const watched = bench.start(trip, 'ask');
      const question = await bench.asked(watched);
      const sent = Array.from({ length: many + 1 }, (_, at) =>
        bench.send(watched, `w${at}`, { mode: 'queue' }),
      );
      await bench.expectRead(sent[many], false);
      question.answer({ text: 'The cheap one' });
      const { text } = await bench.outcome(watched);
      bench.expect(text.includes('heard w0 after 2 w1 after 2 '), `the words, got ${text}`);
      bench.expect(text.includes(`w${many - 1} after 2.`), `all, got ${text}`);
      for (const each of sent.slice(0, -1)) await bench.expectRead(each, true);
    },
  },
];
