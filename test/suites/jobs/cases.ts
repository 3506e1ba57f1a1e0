// The cases of the suite: what a session relies on, whatever engine runs its jobs.

import type { JobEnd, JobRefusal } from '../../../src/actors/ports/jobs.ts';
import { codeIn, gate, type Act, type JobsBench, type JobsScene } from './bench.ts';

const never: Act = () => new Promise<JobEnd>(() => {});
const text = (done: string): JobEnd => ({ done });

/** The first execution never ends. Later executions return their number. */
const dieFirst: Act = (_, nth) =>
  nth === 1 ? new Promise<JobEnd>(() => {}) : text(`done at time ${nth}`);

const refusal: JobRefusal = {
  refused: { code: 'NOT_RECOVERABLE', message: 'This worker has no configuration "new"' },
};
const refuseFirst: Act = (_, nth) => (nth === 1 ? refusal : text(`time ${nth}`));

/** Both kinds of jobs. The part of a key after the colon is its kind. */
const KINDS = [
  { key: 's/sub:again', once: false },
  { key: 's/sub:once', once: true },
] as const;

const ODD_KEYS = [
  'a key/with: spaces, and "quotes"',
  'ключ/日本語:☃',
  'line\nbreak/tab\t:0',
  '__proto__',
  `long/${'k'.repeat(900)}`,
  '../../etc/passwd',
  'percent%2Fencoded/%:1',
];

const ODD_BODIES = [
  '',
  '{}',
  '{"__proto__":{"polluted":true},"constructor":{"prototype":{}}}',
  '"☃ 日本語 \\u0000 \\n"',
  JSON.stringify({ text: 'x'.repeat(64_000) }),
];

/** The number of jobs in the case with many jobs, and the number of subagents that take turns requesting them. */
const MANY = 1_000;
const SUBAGENTS = 100;

export const jobsScenes: readonly JobsScene[] = [
  {
    name: 'JOBS-1: executes a job, and returns its result',
    async play(bench) {
      bench.act('s/sub:1', ({ job }) => text(`did ${job.name} with ${job.body}`));
      const end = await bench.ask('s/sub:1', { name: 'tool charge', body: '{"a":1}' });
      bench.expectEnd(end, text('did tool charge with {"a":1}'), 'the end of the worker');
      bench.expect(bench.executions('s/sub:1').length === 1, 'one execution');
    },
  },
  {
    name: 'JOBS-1: executes one job for two simultaneous requests with one key',
    async play(bench) {
      const wait = gate();
      bench.act('s/sub:1', async () => {
        await wait.passed;
        return text('one');
      });
      // Two callers in one process, for engines that exist in only one process.
      const jobs = bench.stage.jobs();
      const both = [bench.ask('s/sub:1', { jobs }), bench.ask('s/sub:1', { jobs })];
      await bench.begun('s/sub:1');
      await bench.quiet();
      wait.open();
      for (const end of await Promise.all(both)) bench.expectEnd(end, text('one'), 'the same end');
      bench.expect(bench.executions('s/sub:1').length === 1, 'one execution');
    },
  },
  {
    name: 'JOBS-1: executes one job for two processes with one key',
    needs: ['keepsResults'],
    async play(bench) {
      const wait = gate();
      bench.act('s/sub:1', async () => {
        await wait.passed;
        return text('one');
      });
      const both = [bench.ask('s/sub:1'), bench.ask('s/sub:1')];
      await bench.begun('s/sub:1');
      await bench.quiet();
      wait.open();
      for (const end of await Promise.all(both)) bench.expectEnd(end, text('one'), 'the same end');
      bench.expect(bench.executions('s/sub:1').length === 1, 'one execution');
    },
  },
  {
    name: 'JOBS-1: keeps a result for a later process',
    needs: ['keepsResults'],
    async play(bench) {
      bench.act('s/sub:1', (_, nth) => text(`time ${nth}`));
      await bench.ask('s/sub:1', { once: true });
      const again = await bench.ask('s/sub:1', { once: true });
      bench.expectEnd(again, text('time 1'), 'the kept end');
    },
  },
  {
    name: 'JOBS-1: executes another job for another key',
    async play(bench) {
      const first = await bench.ask('s/sub:1#1', { body: '"first"' });
      const second = await bench.ask('s/sub:1#2', { body: '"second"' });
      bench.expectEnd(first, text('"first"'), 'its own end');
      bench.expectEnd(second, text('"second"'), 'its own end');
    },
  },
  {
    name: 'JOBS-1: returns a failure unchanged, and keeps it',
    async play(bench) {
      const failed: JobEnd = {
        failed: { code: 'RATE_LIMITED', message: 'slow down', retryable: true, retryAfterMs: 700 },
      };
      bench.act('s/sub:1', () => failed);
      const end = await bench.ask('s/sub:1');
      bench.expectEnd(end, failed, 'the failure');
      bench.expect(bench.executions('s/sub:1').length === 1, 'no retry by the engine');
    },
  },
  {
    name: 'JOBS-1: passes unusual keys and texts unchanged',
    async play(bench) {
      const asked = ODD_KEYS.flatMap((key) => ODD_BODIES.map((body, at) => [`${key}#${at}`, body]));
      for (const [key = '', body = ''] of asked) {
        bench.act(key, ({ job }) => text(job.body));
        bench.expectEnd(await bench.ask(key, { body }), text(body), `the text of ${key}`);
        bench.expect(bench.executions(key).length === 1, `one execution of ${key}`);
      }
      bench.expect(!('polluted' in {}), 'no prototype to be changed');
      // The trace context of the requesting span also arrives unchanged.
      const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
      const trace = { traceparent, tracestate: 'offstage=odd' };
      bench.act('s/sub:traced', ({ job }) => text(JSON.stringify(job.trace ?? null)));
      const told = await bench.ask('s/sub:traced', { trace });
      bench.expectEnd(told, text(JSON.stringify(trace)), 'the span that asks');
    },
  },
  {
    name: 'JOBS-2: retries a worker that throws, unless the job must not be repeated',
    async play(bench) {
      const throwing: Act = (_, nth) => {
        if (nth === 1) throw new Error('a worker must not throw');
        return text(`time ${nth}`);
      };
      bench.act('s/sub:again', throwing);
      bench.act('s/sub:once', throwing);
      bench.expectEnd(await bench.ask('s/sub:again'), text('time 2'), 'the second time');
      bench.expectEnd(await bench.ask('s/sub:once', { once: true }), { lost: true }, 'lost');
      bench.expect(bench.executions('s/sub:once').length === 1, 'one execution');
    },
  },
  {
    name: "JOBS-2: moves a dead worker's job to another worker",
    needs: ['worker_dies'],
    async play(bench) {
      bench.act('s/sub:1', dieFirst);
      const asked = bench.ask('s/sub:1');
      await bench.begun('s/sub:1');
      await bench.killWorkers();
      bench.expectEnd(await asked, text('done at time 2'), 'the end of the second time');
    },
  },
  {
    name: "JOBS-2: reports a dead worker's job as lost if it must not be repeated",
    needs: ['worker_dies', 'keepsResults'],
    async play(bench) {
      bench.act('s/sub:1', dieFirst);
      const asked = bench.ask('s/sub:1', { once: true });
      await bench.begun('s/sub:1');
      await bench.killWorkers();
      bench.expectEnd(await asked, { lost: true }, 'lost');
      const again = await bench.ask('s/sub:1', { once: true });
      bench.expectEnd(again, { lost: true }, 'lost, asked again');
      bench.expect(bench.executions('s/sub:1').length === 1, 'one execution');
    },
  },
  {
    name: 'JOBS-2: keeps a result whose worker dies afterwards',
    needs: ['worker_dies', 'keepsResults'],
    async play(bench) {
      bench.act('s/sub:1', (_, nth) => text(`time ${nth}`));
      await bench.ask('s/sub:1', { once: true });
      await bench.killWorkers();
      const again = await bench.ask('s/sub:1', { once: true });
      bench.expectEnd(again, text('time 1'), 'the kept end');
    },
  },
  {
    name: "JOBS-1: continues a dead caller's job, and returns its result to another process",
    needs: ['keepsResults'],
    async play(bench) {
      const wait = gate();
      bench.act('s/sub:1', async (_, nth) => {
        await wait.passed;
        return text(`time ${nth}`);
      });
      // A dead process does not learn how the job ended, so its promise stays pending.
      bench.ask('s/sub:1', { once: true }).catch(() => {});
      await bench.begun('s/sub:1');
      const next = bench.ask('s/sub:1', { once: true });
      await bench.quiet();
      wait.open();
      bench.expectEnd(await next, text('time 1'), 'the end of the only time');
    },
  },
  {
    name: 'JOBS-1: completes a running job after the engine dies',
    needs: ['engine_dies', 'keepsResults'],
    async play(bench) {
      const wait = gate();
      bench.act('s/sub:1', async () => {
        await wait.passed;
        return text('done');
      });
      await bench.ask('s/sub:0', { body: '"kept"', once: true });
      const asked = bench.ask('s/sub:1');
      await bench.begun('s/sub:1');
      await bench.killEngine();
      wait.open();
      bench.expectEnd(await asked, text('done'), 'an end');
      const kept = await bench.ask('s/sub:0', { once: true });
      bench.expectEnd(kept, text('"kept"'), 'the end from before');
      bench.expect(bench.executions('s/sub:0').length === 1, 'one execution of the ended one');
    },
  },
  {
    name: 'JOBS-2: starts an unrepeatable job once even if engine and workers die',
    needs: ['engine_dies', 'worker_dies', 'keepsResults'],
    async play(bench) {
      bench.act('s/sub:again', dieFirst);
      bench.act('s/sub:once', dieFirst);
      const again = bench.ask('s/sub:again');
      const once = bench.ask('s/sub:once', { once: true });
      await bench.begun('s/sub:again');
      await bench.begun('s/sub:once');
      await Promise.all([bench.killEngine(), bench.killWorkers()]);
      const end = await again;
      bench.expect('done' in end && end.done.startsWith('done at'), 'the end of a later time');
      bench.expectEnd(await once, { lost: true }, 'lost');
      bench.expect(bench.executions('s/sub:once').length === 1, 'one execution');
    },
  },
  {
    name: 'JOBS-3: releases an aborted caller at once, and continues the job',
    async play(bench) {
      const wait = gate();
      bench.act('s/sub:1', async () => {
        await wait.passed;
        return text('done');
      });
      const controller = new AbortController();
      const jobs = bench.stage.jobs();
      const asked = bench.ask('s/sub:1', { signal: controller.signal, jobs });
      const { signal } = await bench.begun('s/sub:1');
      const reason = new Error('the session was suspended');
      controller.abort(reason);
      bench.expect((await bench.rejection(asked)) === reason, 'the reason of the signal');
      const next = bench.ask('s/sub:1', { jobs });
      await bench.quiet();
      bench.expect(!signal.aborted, 'the job to go on');
      wait.open();
      bench.expectEnd(await next, text('done'), 'its end');
      bench.expect(bench.executions('s/sub:1').length === 1, 'one execution');
    },
  },
  {
    name: 'JOBS-3: starts nothing for a signal that has already aborted',
    async play(bench) {
      const reason = new Error('no longer needed');
      const asked = bench.ask('s/sub:1', { signal: AbortSignal.abort(reason) });
      bench.expect((await bench.rejection(asked)) === reason, 'the reason of the signal');
      await bench.quiet();
      bench.expect(bench.executions('s/sub:1').length === 0, 'no execution');
    },
  },
  {
    name: 'JOBS-3: aborts a cancelled job, and returns the cancellation as its result',
    async play(bench) {
      bench.act('s/sub:1', never);
      const jobs = bench.stage.jobs();
      const asked = bench.ask('s/sub:1', { jobs, once: true });
      const { signal } = await bench.begun('s/sub:1');
      jobs.cancel('s/sub:1');
      await bench.until('its signal to abort', () => (signal.aborted ? true : undefined));
      const end = await asked;
      bench.expect('failed' in end && end.failed.code === 'CANCELLED', 'a cancelled end');
      bench.expect('failed' in end && !end.failed.retryable, 'no retry');
      bench.expect(bench.executions('s/sub:1').length === 1, 'one execution');
    },
  },
  {
    name: 'JOBS-3: ignores a cancellation of an unknown or ended job',
    async play(bench) {
      const jobs = bench.stage.jobs();
      jobs.cancel('s/sub:unknown');
      await bench.ask('s/sub:1', { jobs, body: '"kept"' });
      jobs.cancel('s/sub:1');
      await bench.quiet();
      const other = await bench.ask('s/sub:2', { jobs, body: '"well"' });
      bench.expectEnd(other, text('"well"'), 'the next job untouched');
    },
  },
  {
    name: 'JOBS-5: refuses a body that is too large before the job starts',
    async play(bench) {
      const jobs = bench.stage.jobs();
      if (jobs.maxBytes === Infinity) return;
      const body = JSON.stringify('x'.repeat(jobs.maxBytes));
      const refused = await bench.rejection(bench.ask('s/sub:1', { jobs, body }));
      bench.expect(codeIn(refused) === 'JOB_TOO_LARGE', `JOB_TOO_LARGE, got ${codeIn(refused)}`);
      await bench.quiet();
      bench.expect(bench.executions('s/sub:1').length === 0, 'no execution');
    },
  },
  {
    name: 'JOBS-5: fails for a result that is too large',
    async play(bench) {
      const jobs = bench.stage.jobs();
      if (jobs.maxBytes === Infinity) return;
      bench.act('s/sub:1', () => text('x'.repeat(jobs.maxBytes + 1)));
      const end = await bench.ask('s/sub:1', { jobs });
      bench.expect('failed' in end && end.failed.code === 'JOB_TOO_LARGE', 'JOB_TOO_LARGE');
    },
  },
  {
    name: "streams a job's output in order, and never after its end",
    async play(bench) {
      const told: string[] = [];
      let late: ((said: string) => void) | null = null;
      bench.act('s/sub:1', async ({ say }) => {
        late = say;
        for (const part of ['one', 'two', 'three']) say(part);
        await bench.moment();
        return text('done');
      });
      await bench.ask('s/sub:1', {}, (part) => told.push(part));
      const before = told.length;
      (late as ((said: string) => void) | null)?.('too late');
      await bench.quiet();
      bench.expect(told.length === before, 'nothing after the end');
      const inOrder = ['one', 'two', 'three'].filter((part) => told.includes(part));
      bench.expect(told.join() === inOrder.join(), `its parts in order, got ${told.join()}`);
    },
  },
  {
    name: `executes each of ${MANY} jobs of ${SUBAGENTS} subagents once, in its subagent's order`,
    async play(bench) {
      const ask = async (subagent: number): Promise<void> => {
        for (let step = 0; step < MANY / SUBAGENTS; step += 1) {
          const key = `s/sub${subagent}:${step}`;
          const end = await bench.ask(key, { body: JSON.stringify(key), once: true });
          bench.expectEnd(end, text(JSON.stringify(key)), `the end of ${key}`);
        }
      };
      await Promise.all(Array.from({ length: SUBAGENTS }, (_, subagent) => ask(subagent)));
      const begun = bench.keysBegun;
      bench.expect(
        begun.length === MANY && new Set(begun).size === MANY,
        `${MANY} executions, got ${begun.length}`,
      );
      for (let subagent = 0; subagent < SUBAGENTS; subagent += 1) {
        const own = begun.filter((key) => key.startsWith(`s/sub${subagent}:`));
        const isInOrder = own.every((key, step) => key === `s/sub${subagent}:${step}`);
        bench.expect(isInOrder, `the steps of sub${subagent} in order, got ${own.join()}`);
      }
    },
  },
  {
    name: 'JOBS-6: restarts only a deleted job',
    needs: ['keepsResults', 'forgets'],
    async play(bench) {
      const jobs = bench.stage.jobs();
      const others = ["it's_%/sub10:1", 's/sub1:1', "it's_%x/sub1:1"];
      const keys = ["it's_%/sub1:1", `it's_%/sub1:${'k'.repeat(900)}`, ...others];
      for (const key of keys) bench.act(key, (_, nth) => text(`time ${nth}`));
      for (const key of keys) await bench.ask(key, { jobs, once: true });
      await bench.forget("it's_%/sub1:");
      for (const key of keys) {
        const time = others.includes(key) ? 1 : 2;
        const end = await bench.ask(key, { once: true });
        bench.expectEnd(end, text(`time ${time}`), `the end of ${key.slice(0, 20)}`);
      }
    },
  },
  {
    name: 'JOBS-6: restarts a running job that is deleted, and drops its result',
    needs: ['keepsResults', 'forgets'],
    async play(bench) {
      const wait = gate();
      bench.act('s/sub:1', async (_, nth) => {
        if (nth === 1) await wait.passed;
        return text(`time ${nth}`);
      });
      bench.ask('s/sub:1').catch(() => {});
      await bench.begun('s/sub:1');
      await bench.forget('s/');
      wait.open();
      bench.expectEnd(await bench.ask('s/sub:1'), text('time 2'), 'the end of the second job');
    },
  },
  {
    name: 'JOBS-6: deletes an unknown job without an error',
    needs: ['keepsResults', 'forgets'],
    async play(bench) {
      await bench.forget('stranger/');
      bench.expectEnd(await bench.ask('s/sub:1', { body: '"well"' }), text('"well"'), 'an end');
    },
  },
  {
    name: 'JOBS-7: stops a hanging job with JOB_TIMEOUT, or as lost if it must not be repeated',
    needs: ['job_hangs'],
    async play(bench) {
      for (const { key, once } of KINDS) {
        bench.act(key, never);
        const end = await bench.ask(key, { once, jobs: bench.hasty() });
        expectOverdue(bench, end, once);
        const [execution] = bench.executions(key);
        await bench.until('its signal to abort', () => execution?.signal.aborted || undefined);
        bench.expect(bench.executions(key).length === 1, 'one execution');
      }
    },
  },
  {
    name: 'JOBS-7: ends a job at its timeout even if it ignores the abort, and drops its late result',
    needs: ['job_hangs'],
    async play(bench) {
      const wait = gate();
      for (const { key, once } of KINDS) {
        bench.deafen(key);
        bench.act(key, async () => {
          await wait.passed;
          return text('too late');
        });
        expectOverdue(bench, await bench.ask(key, { once, jobs: bench.hasty() }), once);
      }
      wait.open();
      await bench.quiet();
      if (!bench.stage.jobs().keepsResults) return;
      for (const { key, once } of KINDS) {
        expectOverdue(bench, await bench.ask(key, { once, jobs: bench.hasty() }), once);
        bench.expect(bench.executions(key).length === 1, `one execution of ${key}`);
      }
    },
  },
  {
    name: 'JOBS-8: fails a job with the reason of the workers that refuse it, and keeps the failure',
    needs: ['job_hangs'],
    async play(bench) {
      for (const { key, once } of KINDS) {
        bench.act(key, () => refusal);
        const failed: JobEnd = { failed: { ...refusal.refused, retryable: false } };
        const end = await bench.ask(key, { once, jobs: bench.hasty() });
        bench.expectEnd(end, failed, 'the reason of the worker');
        if (!bench.stage.jobs().keepsResults) continue;
        const before = bench.executions(key).length;
        const again = await bench.ask(key, { once, jobs: bench.hasty() });
        bench.expectEnd(again, failed, 'the kept end');
        bench.expect(bench.executions(key).length === before, 'no further offer');
      }
    },
  },
  {
    name: 'JOBS-8: executes a job that an old worker refuses once on a new worker',
    needs: ['worker_refuses'],
    async play(bench) {
      for (const { key, once } of KINDS) {
        bench.act(key, refuseFirst);
        bench.expectEnd(await bench.ask(key, { once }), text('time 2'), 'the end of the new one');
        bench.expectEnd(await bench.ask(key, { once }), text('time 2'), 'the kept end');
        bench.expect(bench.executions(key).length === 2, 'a refusal and an execution');
      }
    },
  },
  {
    name: 'JOBS-8: executes a refused job once after its workers are replaced',
    needs: ['worker_refuses', 'worker_dies'],
    async play(bench) {
      const asked = KINDS.map(({ key, once }) => {
        bench.act(key, refuseFirst);
        return bench.ask(key, { once });
      });
      for (const { key } of KINDS) await bench.begun(key);
      await bench.killWorkers();
      const [again, once] = await Promise.all(asked);
      bench.expect(again !== undefined && 'done' in again, 'the end of a new one');
      // The workers may have died before the engine recorded the refusal or the end.
      bench.expect(once !== undefined && !('failed' in once), 'done, or lost');
      bench.expect(bench.executions('s/sub:once').length <= 2, 'a refusal and one execution');
    },
  },
  {
    name: 'JOBS-8: cancels a job that is being offered',
    needs: ['worker_refuses'],
    async play(bench) {
      const jobs = bench.stage.jobs();
      bench.act('s/sub:1', () => refusal);
      const asked = bench.ask('s/sub:1', { jobs, once: true });
      await bench.begun('s/sub:1');
      // Once another job has ended, the engine must have recorded the refusal. (Temporal's test server hangs forever if
      // a cancel arrives just as an activity ends.)
      await bench.ask('s/sub:2', { jobs });
      jobs.cancel('s/sub:1');
      const end = await asked;
      bench.expect('failed' in end && end.failed.code === 'CANCELLED', 'a cancelled end');
    },
  },
];

/** JOBS-7 */
function expectOverdue(bench: JobsBench, end: JobEnd, once: boolean): void {
  if (once) bench.expectEnd(end, { lost: true }, 'lost');
  else {
    const isTyped = 'failed' in end && end.failed.code === 'JOB_TIMEOUT' && end.failed.retryable;
    bench.expect(isTyped, `JOB_TIMEOUT, which is retryable, got ${JSON.stringify(end)}`);
  }
}
