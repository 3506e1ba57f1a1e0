// The cases of the suite: what a program relies on, whether a journal or an engine stores its runs.

import { OFFER_MS } from '../../../src/actors/ports/jobs.ts';
import { codeOf } from '../../../src/values/errors.ts';
import type { RunsScene } from './bench.ts';
import { SLEEP_MS } from './travel-agent.ts';

export const runsScenes: readonly RunsScene[] = [
  {
    name: 'RUN-ENGINE-1: executes each step of a run once, and returns its outcome',
    async play(bench) {
      const trip = bench.trip();
      const outcome = await bench.outcome(bench.start(trip, 'look_up, charge'));
      bench.expectOutcome(outcome, 'completed', 'Done: {"did":"charge"}');
      bench.expect(bench.ledger(outcome) === 'look_up ok, charge ok', 'both calls in the ledger');
      bench.expectCounts(trip, { 'model-1': 1, look_up: 1, 'model-2': 1, charge: 1, 'model-3': 1 });
    },
  },
  {
    name: 'RUN-ENGINE-1: starts one run for two simultaneous requests with one id',
    async play(bench) {
      const trip = bench.trip();
      const program = bench.stage.program();
      const both = [
        bench.start(trip, 'charge', { program }),
        bench.start(trip, 'charge', { program }),
      ];
      const outcomes = await Promise.all(both.map((one) => bench.outcome(one)));
      for (const outcome of outcomes) bench.expectOutcome(outcome, 'completed', 'charge');
      bench.expectCounts(trip, { 'model-1': 1, charge: 1, 'model-2': 1 });
    },
  },
  {
    name: 'RUN-ENGINE-1: keeps the outcome for a later process, and refuses another task under its id',
    async play(bench) {
      const trip = bench.trip();
      const first = await bench.outcome(bench.start(trip, 'charge'));
      const later = await bench.outcome(bench.start(trip, 'charge'));
      bench.expect(later.text === first.text, 'the same outcome');
      const { error } = await bench.outcome(bench.start(trip, 'look_up, look_up'));
      bench.expect(error?.code === 'ID_REUSED', 'another task to be refused');
      bench.expectCounts(trip, { charge: 1, look_up: 0, 'model-2': 1 });
    },
  },
  {
    name: 'asks the program a question once, and passes the answer to the model',
    async play(bench) {
      const trip = bench.trip();
      const watched = bench.start(trip, 'look_up, ask');
      const question = await bench.asked(watched);
      await bench.quiet();
      question.answer({ text: 'The cheap one' });
      bench.expectOutcome(await bench.outcome(watched), 'completed', 'The cheap one');
      bench.expect(watched.put.length === 1, 'one question');
      bench.expectCounts(trip, { look_up: 1, 'model-1': 1, 'model-2': 1, 'model-3': 1 });
    },
  },
  {
    name: 'answers a subagent inside the run while the run works, and lets it continue',
    async play(bench) {
      const trip = bench.trip();
      const release = bench.hold(`${trip}/look_up`);
      const releaseQuestion = bench.hold(`${trip}-scout/model-1`);
      const watched = bench.start(trip, 'spawn ask then charge, look_up, await');
      await bench.begun(`${trip}/look_up`);
      releaseQuestion();
      const question = await bench.asked(watched);
      question.answer({ text: 'The left one' });
      await bench.begun(`${trip}-scout/charge`);
      release();
      bench.expectOutcome(await bench.outcome(watched), 'completed', 'charge');
      bench.expectCounts(trip, { 'model-1': 1, look_up: 1, 'model-2': 1 });
      bench.expectCounts(`${trip}-scout`, { 'model-1': 1, charge: 1 });
    },
  },
  {
    name: 'continues after a question that the program does not answer',
    async play(bench) {
      const trip = bench.trip();
      const watched = bench.start(trip, 'ask');
      (await bench.asked(watched)).answer(null);
      bench.expectOutcome(await bench.outcome(watched), 'completed');
    },
  },
  {
    name: 'reports an answer of an invalid form, and leaves the question unanswered',
    async play(bench) {
      const trip = bench.trip();
      const watched = bench.start(trip, 'ask, look_up');
      (await bench.asked(watched)).answer({ nonsense: true });
      bench.expectOutcome(await bench.outcome(watched), 'completed', 'look_up');
    },
  },
  {
    name: 'runs an approved call, but not a denied one',
    async play(bench) {
      for (const approved of [true, false]) {
        const trip = bench.trip();
        const watched = bench.start(trip, 'refund');
        (await bench.asked(watched)).answer({ approved });
        bench.expectOutcome(await bench.outcome(watched), 'completed');
        bench.expectCounts(trip, { refund: approved ? 1 : 0 });
      }
    },
  },
  {
    name: "returns the program's text to a request",
    async play(bench) {
      const trip = bench.trip();
      const watched = bench.start(trip, 'input');
      (await bench.asked(watched)).answer('Seven dollars');
      bench.expectOutcome(await bench.outcome(watched), 'completed', 'Seven dollars');
    },
  },
  {
    name: 'ends the run after unanswered questions have expired',
    needs: ['passesTime'],
    async play(bench) {
      const trip = bench.trip();
      const watched = bench.start(trip, 'ask, ask, ask', { agent: 'hurried' });
      for (const nth of [1, 2]) {
        const question = await bench.asked(watched, nth);
        await bench.quiet();
        await bench.pass(400);
        await bench.until('the question to be over', () => question.isOver() || undefined);
      }
      const outcome = await bench.outcome(watched);
      bench.expectOutcome(outcome, 'failed');
      bench.expect(
        outcome.error?.code === 'INPUT_TIMEOUT',
        `INPUT_TIMEOUT, got ${outcome.error?.code}`,
      );
    },
  },
  {
    name: 'sleeps for a time without a worker, and then continues',
    needs: ['passesTime'],
    async play(bench) {
      const trip = bench.trip();
      const watched = bench.start(trip, 'look_up, sleep, charge');
      await bench.begun(`${trip}/look_up`);
      await bench.quiet();
      bench.expect(bench.count(`${trip}/model-3`) === 0, 'no model call before the time');
      await bench.pass(SLEEP_MS);
      const outcome = await bench.outcome(watched);
      bench.expectOutcome(outcome, 'completed', 'charge');
      bench.expect(
        bench.ledger(outcome) === 'look_up ok, sleep_until ok, charge ok',
        'the sleep in the ledger',
      );
      bench.expectCounts(trip, { 'model-1': 1, 'model-2': 1, 'model-3': 1, charge: 1 });
    },
  },
  {
    name: 'ends the run at its step limit',
    async play(bench) {
      const trip = bench.trip();
      const steps = Array.from({ length: 12 }, () => 'look_up').join(', ');
      const outcome = await bench.outcome(bench.start(trip, steps));
      bench.expect(bench.count(`${trip}/model-9`) === 0, 'at most 8 model calls');
      bench.expect(outcome.steps === 8, `8 steps, got ${outcome.steps}`);
    },
  },
  {
    name: 'cancels a run while a question waits',
    async play(bench) {
      const trip = bench.trip();
      const watched = bench.start(trip, 'look_up, ask, charge');
      const question = await bench.asked(watched);
      watched.run.cancel('not needed');
      bench.expectOutcome(await bench.outcome(watched), 'cancelled');
      bench.expect(question.isOver(), 'the question to be over');
      bench.expectCounts(trip, { charge: 0 });
    },
  },
  {
    name: 'cancels a run during a model call',
    async play(bench) {
      const trip = bench.trip();
      bench.hold(`${trip}/model-2`);
      const watched = bench.start(trip, 'look_up, charge');
      await bench.begun(`${trip}/model-2`);
      watched.run.cancel('not needed');
      bench.expectOutcome(await bench.outcome(watched), 'cancelled');
      bench.expectCounts(trip, { charge: 0 });
    },
  },
  {
    name: 'cancels a run during a charge, whose outcome is unknown in the ledger',
    async play(bench) {
      const trip = bench.trip();
      bench.hold(`${trip}/charge`);
      const watched = bench.start(trip, 'charge, look_up');
      await bench.begun(`${trip}/charge`);
      watched.run.cancel('not needed');
      const outcome = await bench.outcome(watched);
      bench.expectOutcome(outcome, 'cancelled');
      bench.expect(bench.ledger(outcome) === 'charge in_flight', `got ${bench.ledger(outcome)}`);
      bench.expectCounts(trip, { 'model-1': 1, charge: 1, look_up: 0 });
    },
  },
  {
    name: 'lets a subagent of the run ask, and returns its result to the run',
    async play(bench) {
      const trip = bench.trip();
      const watched = bench.start(trip, 'guide look_up then ask, charge');
      (await bench.asked(watched)).answer({ text: 'The left one' });
      const outcome = await bench.outcome(watched);
      bench.expectOutcome(outcome, 'completed', 'charge');
      const [guide] = outcome.toolLedger;
      bench.expect(
        JSON.stringify(guide?.output).includes('The left one'),
        `the guide's result, got ${JSON.stringify(guide)}`,
      );
      bench.expectCounts(trip, { charge: 1 });
      bench.expectCounts(`${trip}-guide`, { look_up: 1, 'model-1': 1 });
    },
  },
  {
    name: 'returns the results of two simultaneous subagents in the order of the calls',
    async play(bench) {
      const trip = bench.trip();
      const release = bench.hold(`${trip}-guide/look_up`);
      const watched = bench.start(trip, 'guide look_up & guide charge');
      await bench.begun(`${trip}-2-guide/model-2`);
      release();
      const outcome = await bench.outcome(watched);
      bench.expectOutcome(outcome, 'completed', 'look_up');
      const { text } = outcome;
      bench.expect(
        text.indexOf('look_up') < text.indexOf('charge'),
        `the model to read the result of the first call, then that of the second, got ${text}`,
      );
      bench.expectCounts(`${trip}-guide`, { look_up: 1, 'model-2': 1 });
      bench.expectCounts(`${trip}-2-guide`, { charge: 1, 'model-2': 1 });
    },
  },
  {
    name: 'continues the run when a subagent fails, and the model reads the reason',
    async play(bench) {
      const trip = bench.trip();
      const outcome = await bench.outcome(bench.start(trip, 'guide look_up then fail, charge'));
      bench.expectOutcome(outcome, 'completed', 'charge');
      const [guide] = outcome.toolLedger;
      const output = (guide?.output ?? {}) as { readonly error?: string; readonly code?: string };
      bench.expect(
        output.error?.includes('The model is away') === true && typeof output.code === 'string',
        `{ error, code }, got ${JSON.stringify(output)}`,
      );
      bench.expectCounts(trip, { charge: 1 });
    },
  },
  {
    name: 'stops a working subagent when its run is cancelled',
    async play(bench) {
      const trip = bench.trip();
      const release = bench.hold(`${trip}-guide/model-2`);
      const watched = bench.start(trip, 'guide look_up then charge, charge');
      await bench.begun(`${trip}-guide/model-2`);
      const childId = bench.isEngine ? await bench.childOf(trip) : null;
      watched.run.cancel('not needed');
      bench.expectOutcome(await bench.outcome(watched), 'cancelled');
      if (childId !== null) {
        const child = bench.start(childId, 'look_up', { agent: 'guide' });
        bench.expectOutcome(await bench.outcome(child), 'cancelled');
      }
      release();
      await bench.quiet();
      bench.expectCounts(`${trip}-guide`, { charge: 0 });
      bench.expectCounts(trip, { charge: 0 });
    },
  },
  {
    name: 'RUN-ENGINE-5: runs a subagent as a separate run, and keeps its outcome',
    needs: ['engine'],
    async play(bench) {
      const trip = bench.trip();
      const watched = bench.start(trip, 'guide ask then charge, look_up');
      const question = await bench.asked(watched);
      const childId = await bench.childOf(trip);
      question.answer({ text: 'The left one' });
      bench.expectOutcome(await bench.outcome(watched), 'completed', 'look_up');
      const child = await bench.outcome(bench.start(childId, 'look_up', { agent: 'guide' }));
      bench.expectOutcome(child, 'completed');
      bench.expect(bench.ledger(child) === 'ask_user ok, charge ok', `got ${bench.ledger(child)}`);
      bench.expectCounts(`${trip}-guide`, { charge: 1, 'model-1': 1, 'model-2': 1 });
    },
  },
  {
    name: 'cancels an asking subagent when its run is cancelled',
    needs: ['engine'],
    async play(bench) {
      const trip = bench.trip();
      const watched = bench.start(trip, 'guide ask then charge');
      const question = await bench.asked(watched);
      const childId = await bench.childOf(trip);
      watched.run.cancel('not needed');
      bench.expectOutcome(await bench.outcome(watched), 'cancelled');
      const child = bench.start(childId, 'look_up', { agent: 'guide' });
      bench.expectOutcome(await bench.outcome(child), 'cancelled');
      bench.expect(question.isOver(), 'the question to be over');
    },
  },
  {
    name: 'continues and answers an abandoned subagent that asks when its run is cancelled',
    needs: ['engine'],
    async play(bench) {
      const trip = bench.trip();
      const watched = bench.start(trip, 'courier ask then charge');
      const { requestId } = await bench.asked(watched);
      const childId = await bench.childOf(trip);
      watched.run.cancel('not needed');
      bench.expectOutcome(await bench.outcome(watched), 'cancelled');
      await bench.quiet();
      const child = bench.start(childId, 'look_up', { agent: 'courier' });
      const question = await bench.asked(child);
      bench.expect(question.requestId === requestId, `${requestId}, got ${question.requestId}`);
      question.answer({ text: 'The left one' });
      bench.expectOutcome(await bench.outcome(child), 'completed', 'charge');
      bench.expectCounts(`${trip}-courier`, { charge: 1, 'model-1': 1 });
    },
  },
  {
    name: "asks the next program a subagent's question after the program dies",
    needs: ['program_dies'],
    async play(bench) {
      const trip = bench.trip();
      const first = bench.start(trip, 'guide charge then ask, look_up');
      const { requestId } = await bench.asked(first);
      await bench.quiet();
      first.kill();
      const next = bench.start(trip, 'guide charge then ask, look_up');
      const question = await bench.asked(next);
      bench.expect(question.requestId === requestId, `${requestId}, got ${question.requestId}`);
      question.answer({ text: 'The left one' });
      bench.expectOutcome(await bench.outcome(next), 'completed', 'look_up');
      bench.expectCounts(`${trip}-guide`, { charge: 1, 'model-1': 1, 'model-2': 1 });
    },
  },
  {
    name: "does not repeat a subagent's result after the workers die",
    needs: ['worker_dies'],
    async play(bench) {
      const trip = bench.trip();
      const release = bench.hold(`${trip}/model-2`);
      const watched = bench.start(trip, 'guide charge, look_up');
      await bench.begun(`${trip}/model-2`);
      await bench.killWorkers();
      release();
      bench.expectOutcome(await bench.outcome(watched), 'completed', 'look_up');
      bench.expectCounts(`${trip}-guide`, { charge: 1, 'model-1': 1, 'model-2': 1 });
      bench.expectCounts(trip, { 'model-1': 1, look_up: 1 });
    },
  },
  {
    name: "answers a subagent's question after all processes die",
    needs: ['engine_dies', 'worker_dies', 'program_dies'],
    async play(bench) {
      const trip = bench.trip();
      const first = bench.start(trip, 'guide charge then ask, look_up');
      const { requestId } = await bench.asked(first);
      first.kill();
      await Promise.all([bench.killWorkers(), bench.killEngine()]);
      const next = bench.start(trip, 'guide charge then ask, look_up');
      const question = await bench.asked(next);
      bench.expect(question.requestId === requestId, `${requestId}, got ${question.requestId}`);
      question.answer({ text: 'The left one' });
      bench.expectOutcome(await bench.outcome(next), 'completed', 'look_up');
      bench.expectCounts(`${trip}-guide`, { charge: 1, 'model-1': 1, 'model-2': 1 });
    },
  },
  {
    name: 'asks the next program the same question after the program dies',
    needs: ['program_dies'],
    async play(bench) {
      const trip = bench.trip();
      const first = bench.start(trip, 'look_up, ask, charge');
      const { requestId } = await bench.asked(first);
      await bench.quiet();
      first.kill();
      const next = bench.start(trip, 'look_up, ask, charge');
      const question = await bench.asked(next);
      bench.expect(question.requestId === requestId, `${requestId}, got ${question.requestId}`);
      question.answer({ text: 'The cheap one' });
      bench.expectOutcome(await bench.outcome(next), 'completed', 'charge');
      bench.expectCounts(trip, { 'model-1': 1, look_up: 1, 'model-2': 1, charge: 1 });
    },
  },
  {
    name: 'sends the same request to the next program after the program dies',
    needs: ['program_dies'],
    async play(bench) {
      const trip = bench.trip();
      const first = bench.start(trip, 'input');
      const { requestId } = await bench.asked(first);
      await bench.quiet();
      first.kill();
      const next = bench.start(trip, 'input');
      const request = await bench.asked(next);
      bench.expect(request.requestId === requestId, `${requestId}, got ${request.requestId}`);
      request.answer('Seven dollars');
      bench.expectOutcome(await bench.outcome(next), 'completed', 'Seven dollars');
    },
  },
  {
    name: 'continues the run after the program dies during a look-up',
    needs: ['program_dies'],
    async play(bench) {
      const trip = bench.trip();
      const release = bench.hold(`${trip}/look_up`);
      const first = bench.start(trip, 'look_up, charge');
      await bench.begun(`${trip}/look_up`);
      await bench.quiet();
      first.kill();
      release();
      const outcome = await bench.outcome(bench.start(trip, 'look_up, charge'));
      bench.expectOutcome(outcome, 'completed', 'charge');
      bench.expectCounts(trip, { 'model-1': 1, charge: 1 });
    },
  },
  {
    name: "RUN-ENGINE-2: accepts the first of two programs' answers",
    needs: ['engine'],
    async play(bench) {
      const trip = bench.trip();
      const both = [bench.start(trip, 'ask, ask'), bench.start(trip, 'ask, ask')];
      const questions = await Promise.all(both.map((one) => bench.asked(one)));
      questions[0]?.answer({ text: 'The cheap one' });
      questions[1]?.answer({ text: 'The cheap one' });
      const seconds = await Promise.all(both.map((one) => bench.asked(one, 2)));
      bench.expect(
        seconds[0]?.requestId !== questions[0]?.requestId,
        'another question, not the first one again',
      );
      seconds[1]?.answer({ text: 'The blue one' });
      for (const one of both)
        bench.expectOutcome(await bench.outcome(one), 'completed', 'The blue one');
      bench.expectCounts(trip, { 'model-1': 1, 'model-2': 1, 'model-3': 1 });
    },
  },
  {
    name: 'RUN-ENGINE-2: refuses repeated, early and late answers without a change',
    needs: ['engine'],
    async play(bench) {
      const trip = bench.trip();
      const watched = bench.start(trip, 'ask, ask');
      const first = await bench.asked(watched);
      const early = await bench.answer(trip, 'in_not_asked_yet', 'The early one');
      bench.expect(!early, 'an early answer to be refused');
      const both = [
        await bench.answer(trip, first.requestId, 'The cheap one'),
        await bench.answer(trip, first.requestId, 'The double one'),
      ];
      bench.expect(both[0] === true && both[1] === false, `the first to count, got ${both.join()}`);
      const second = await bench.asked(watched, 2);
      const late = await bench.answer(trip, first.requestId, 'The late one');
      bench.expect(!late, 'a late answer to be refused');
      second.answer({ text: 'The blue one' });
      bench.expectOutcome(await bench.outcome(watched), 'completed', 'The blue one');
      const afterwards = await bench.answer(trip, second.requestId, 'The last one');
      bench.expect(!afterwards, 'an answer to a run that has ended to be refused');
      bench.expectCounts(trip, { 'model-1': 1, 'model-2': 1, 'model-3': 1 });
    },
  },
  {
    name: 'RUN-ENGINE-6: starts a new run under the id of a run that was deleted with its subagent',
    needs: ['engine', 'deletes'],
    async play(bench) {
      const [trip, other] = [bench.trip(), bench.trip()];
      for (const one of [trip, other]) {
        const watched = bench.start(one, 'guide ask then charge, look_up');
        (await bench.asked(watched)).answer({ text: 'The left one' });
        bench.expectOutcome(await bench.outcome(watched), 'completed', 'look_up');
      }
      await bench.forget(trip);
      const again = bench.start(trip, 'guide ask then charge, look_up');
      (await bench.asked(again)).answer({ text: 'The right one' });
      bench.expectOutcome(await bench.outcome(again), 'completed', 'look_up');
      const kept = bench.start(other, 'guide ask then charge, look_up');
      bench.expectOutcome(await bench.outcome(kept), 'completed');
      bench.expectCounts(trip, { 'model-1': 2, look_up: 2 });
      bench.expectCounts(`${trip}-guide`, { 'model-1': 2, charge: 2 });
      bench.expectCounts(other, { 'model-1': 1, look_up: 1 });
      bench.expectCounts(`${other}-guide`, { charge: 1 });
      await bench.forget('a run that nobody asked for');
    },
  },
  {
    name: 'RUN-ENGINE-6: does not delete a run that has not ended, and continues it',
    needs: ['engine', 'deletes'],
    async play(bench) {
      const trip = bench.trip();
      const watched = bench.start(trip, 'charge, ask');
      const question = await bench.asked(watched);
      const code = await bench.forget(trip).then(
        () => 'it was deleted',
        (error: unknown) => codeOf(error, 'another error'),
      );
      bench.expect(code === 'RUN_UNDER_WAY', `RUN_UNDER_WAY, got ${code}`);
      question.answer({ text: 'The cheap one' });
      bench.expectOutcome(await bench.outcome(watched), 'completed', 'The cheap one');
      bench.expectCounts(trip, { 'model-1': 1, charge: 1 });
    },
  },
  {
    name: 'RUN-ENGINE-6: deletes a run only once its abandoned subagent has ended, and deletes both',
    needs: ['engine', 'deletes'],
    async play(bench) {
      const trip = bench.trip();
      const watched = bench.start(trip, 'courier ask then charge');
      await bench.asked(watched);
      const childId = await bench.childOf(trip);
      watched.run.cancel('not needed');
      bench.expectOutcome(await bench.outcome(watched), 'cancelled');
      const code = await bench.forget(trip).then(
        () => 'it was deleted',
        (error: unknown) => codeOf(error, 'another error'),
      );
      bench.expect(code === 'RUN_UNDER_WAY', `RUN_UNDER_WAY, got ${code}`);
      const child = bench.start(childId, 'look_up', { agent: 'courier' });
      (await bench.asked(child)).answer({ text: 'The left one' });
      bench.expectOutcome(await bench.outcome(child), 'completed', 'charge');
      await bench.forget(trip);
      // The id now names a new run, which gets no input.
      const again = await bench.outcome(bench.start(childId, 'look_up', { agent: 'courier' }));
      bench.expectOutcome(again, 'lost');
      bench.expect(again.error?.code === 'INVALID_INPUT', `got ${again.error?.code}`);
      bench.expectCounts(`${trip}-courier`, { charge: 1 });
    },
  },
  {
    name: 'ends the run as lost if no worker has its configuration',
    needs: ['engine'],
    async play(bench) {
      const trip = bench.trip();
      const watched = bench.start(trip, 'look_up', { agent: 'stranger' });
      await bench.quiet();
      await bench.pass(OFFER_MS);
      const outcome = await bench.outcome(watched);
      bench.expectOutcome(outcome, 'lost');
      bench.expect(outcome.error?.code === 'NOT_RECOVERABLE', `got ${outcome.error?.code}`);
    },
  },
  {
    name: 'repeats only the model call that runs when the workers die',
    needs: ['worker_dies'],
    async play(bench) {
      const trip = bench.trip();
      const release = bench.hold(`${trip}/model-2`);
      const watched = bench.start(trip, 'charge, look_up');
      await bench.begun(`${trip}/model-2`);
      await bench.killWorkers();
      release();
      bench.expectOutcome(await bench.outcome(watched), 'completed', 'look_up');
      bench.expectCounts(trip, { 'model-1': 1, charge: 1, look_up: 1 });
    },
  },
  {
    name: 'does not repeat a charge during which the workers die, and the model reads that its outcome is unknown',
    needs: ['worker_dies'],
    async play(bench) {
      const trip = bench.trip();
      bench.hold(`${trip}/charge`);
      const watched = bench.start(trip, 'charge');
      await bench.begun(`${trip}/charge`);
      await bench.killWorkers();
      const outcome = await bench.outcome(watched);
      bench.expectOutcome(outcome, 'completed');
      bench.expect(bench.ledger(outcome) === 'charge in_flight', `got ${bench.ledger(outcome)}`);
      bench.expectCounts(trip, { 'model-1': 1, charge: 1 });
    },
  },
  {
    name: 'answers the same question after the workers die while it waits',
    needs: ['worker_dies'],
    async play(bench) {
      const trip = bench.trip();
      const first = bench.start(trip, 'charge, ask, look_up');
      const { requestId } = await bench.asked(first);
      await bench.killWorkers();
      const second = bench.start(trip, 'charge, ask, look_up');
      const question = await bench.asked(second);
      bench.expect(question.requestId === requestId, `${requestId}, got ${question.requestId}`);
      question.answer({ text: 'The cheap one' });
      for (const one of [first, second])
        bench.expectOutcome(await bench.outcome(one), 'completed', 'look_up');
      bench.expectCounts(trip, { charge: 1, look_up: 1 });
    },
  },
  {
    name: 'continues the same subagent after the workers die while it works',
    needs: ['worker_dies'],
    async play(bench) {
      const trip = bench.trip();
      const release = bench.hold(`${trip}-guide/model-2`);
      const watched = bench.start(trip, 'guide charge then ask');
      await bench.begun(`${trip}-guide/model-2`);
      await bench.killWorkers();
      release();
      (await bench.asked(watched)).answer({ text: 'The left one' });
      bench.expectOutcome(await bench.outcome(watched), 'completed', 'The left one');
      bench.expectCounts(`${trip}-guide`, { 'model-1': 1, charge: 1 });
    },
  },
  {
    name: 'answers the same question after engine, workers and program die',
    needs: ['engine_dies', 'worker_dies', 'program_dies'],
    async play(bench) {
      const trip = bench.trip();
      const first = bench.start(trip, 'charge, ask');
      const { requestId } = await bench.asked(first);
      first.kill();
      await Promise.all([bench.killWorkers(), bench.killEngine()]);
      const next = bench.start(trip, 'charge, ask');
      const question = await bench.asked(next);
      bench.expect(question.requestId === requestId, `${requestId}, got ${question.requestId}`);
      question.answer({ text: 'The cheap one' });
      bench.expectOutcome(await bench.outcome(next), 'completed', 'The cheap one');
      bench.expectCounts(trip, { 'model-1': 1, charge: 1 });
    },
  },
  {
    name: 'does not repeat a charge during which engine and workers die',
    needs: ['engine_dies', 'worker_dies'],
    async play(bench) {
      const trip = bench.trip();
      bench.hold(`${trip}/charge`);
      const watched = bench.start(trip, 'charge');
      await bench.begun(`${trip}/charge`);
      await Promise.all([bench.killWorkers(), bench.killEngine()]);
      const outcome = await bench.outcome(watched);
      bench.expectOutcome(outcome, 'completed');
      bench.expect(bench.ledger(outcome) === 'charge in_flight', `got ${bench.ledger(outcome)}`);
      bench.expectCounts(trip, { 'model-1': 1, charge: 1 });
    },
  },
];
