// The cases of a deploy: workers of an earlier and a later version, side by side and one after the other. The earlier
// version lacks tools (`charge`), subagents (`guide`, `scout`) and configurations (`patient`).

import type { RunsScene } from './bench.ts';

/** Every other step needs something that the earlier version lacks. */
const JOURNEY =
  'charge, ask, guide charge then look_up then ask, look_up & charge, spawn look_up then charge, await, look_up';
/** After this much simulated time, an engine has offered a turn again. */
const AGAIN_MS = 2_000;
const ANSWER = { answer: { text: 'The left one' } };

export const deployScenes: readonly RunsScene[] = [
  {
    name: 'completes runs of a configuration that one of two worker versions lacks',
    needs: ['deploys', 'sharesWork'],
    async play(bench) {
      await bench.deploy('earlier', 'later');
      const trips = Array.from({ length: 3 }, () => bench.trip());
      const watched = trips.map((trip) =>
        bench.start(trip, 'look_up, charge', { agent: 'patient' }),
      );
      for (const one of watched)
        bench.expectOutcome(await bench.outcome(one), 'completed', 'charge');
      for (const trip of trips)
        bench.expectCounts(trip, { 'model-1': 1, look_up: 1, charge: 1, 'model-3': 1 });
    },
  },
  {
    name: 'runs a step once on the worker version that has its tool',
    needs: ['deploys', 'sharesWork'],
    async play(bench) {
      await bench.deploy('earlier', 'later');
      const trips = Array.from({ length: 2 }, () => bench.trip());
      const watched = trips.map((trip) =>
        bench.start(trip, JOURNEY, { ...ANSWER, agent: 'tireless' }),
      );
      for (const [at, one] of watched.entries()) {
        const outcome = await bench.outcome(one);
        bench.expectOutcome(outcome, 'completed', 'Done');
        const trip = trips[at] ?? '';
        const failed = outcome.toolLedger.filter(({ status }) => status !== 'ok');
        bench.expect(failed.length === 0, `every call to be done, got ${JSON.stringify(failed)}`);
        for (const once of [trip, `${trip}-2`, `${trip}-guide`, `${trip}-scout`])
          bench.expect(bench.count(`${once}/charge`) <= 1, `${once} to be charged once`);
      }
    },
  },
  {
    name: 'continues a run with later workers that replace the earlier ones during its question',
    needs: ['deploys'],
    async play(bench) {
      await bench.deploy('earlier');
      const trip = bench.trip();
      const watched = bench.start(trip, 'look_up, ask, charge, guide charge then ask');
      const { requestId } = await bench.asked(watched);
      await bench.deploy('later');
      await bench.quiet();
      const [question] = watched.put;
      bench.expect(
        watched.put.length === 1 && question?.requestId === requestId,
        'the same question',
      );
      question?.answer({ text: 'The cheap one' });
      (await bench.asked(watched, 2)).answer({ text: 'The left one' });
      bench.expectOutcome(await bench.outcome(watched), 'completed', 'The left one');
      bench.expectCounts(trip, { 'model-1': 1, look_up: 1, 'model-2': 1, charge: 1 });
      bench.expectCounts(`${trip}-guide`, { 'model-1': 1, charge: 1 });
    },
  },
  {
    name: 'delays a run after a rollback during its question until its workers have what it needs',
    needs: ['deploys'],
    async play(bench) {
      await bench.deploy('later');
      const [trip, plain] = [bench.trip(), bench.trip()];
      const watched = bench.start(trip, 'charge, guide charge then ask then charge, look_up');
      const known = bench.start(plain, 'look_up, ask, look_up');
      const question = await bench.asked(watched);
      const other = await bench.asked(known);
      await bench.deploy('earlier');
      question.answer({ text: 'The left one' });
      other.answer({ text: 'The cheap one' });
      // The earlier workers finish the run that needs nothing new.
      bench.expectOutcome(await bench.outcome(known), 'completed', 'look_up');
      await bench.quiet();
      bench.expectCounts(`${trip}-guide`, { 'model-1': 1, charge: 1, 'model-3': 0 });
      await bench.deploy('later');
      await bench.pass(AGAIN_MS);
      bench.expectOutcome(await bench.outcome(watched), 'completed', 'look_up');
      bench.expectCounts(trip, { 'model-1': 1, charge: 1, look_up: 1 });
      bench.expectCounts(`${trip}-guide`, { 'model-1': 1, 'model-3': 1 });
      bench.expect(bench.count(`${trip}-guide/charge`) <= 2, 'two charges of the subagent');
    },
  },
];
