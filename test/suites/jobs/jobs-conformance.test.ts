// The conformance suite for jobs: the in-memory engines pass it, and every planted fault makes it fail.

import { describe, expect, test } from 'vitest';
import {
  localJobs,
  packedHandler,
  packedEngine,
  type JobHandler,
  type Jobs,
} from '../../../src/entries/jobs.ts';
import { jobsConformance, type JobsConformanceSetup, type JobsStage } from './index.ts';
import { simulatedEnvironment, simulatedJobs } from '../../../src/testing/index.ts';
import { memoryClaims, realMoment, testCodec } from '../../support/job-packing.ts';

/** Each poll of a case advances the simulated time by 1 ms. */
const environment = simulatedEnvironment();
const moment = realMoment(() => environment.advance(1));
const HURRIED_BYTES = 99_999;
const inAHurry = { environment, longestMs: 10, maxBytes: HURRIED_BYTES };

const simulated = (change: (jobs: Jobs, handler: JobHandler) => Jobs = (jobs) => jobs) => ({
  name: 'simulated',
  shows: ['worker_dies', 'job_hangs', 'worker_refuses'] as const,
  patience: 300,
  moment,
  open(handler: JobHandler): JobsStage {
    const engine = simulatedJobs({ handler, maxBytes: 100_000, offers: 50, environment });
    const jobs = change(engine, handler);
    const hasty = change(simulatedJobs({ handler, offers: 3, ...inAHurry }), handler);
    return { jobs: () => jobs, hasty: () => hasty, killWorkers: () => engine.killWorkers() };
  },
});

const packing = () => ({
  codec: testCodec('a key'),
  claims: memoryClaims(),
  claimAboveBytes: 1_000,
});

const setups: readonly JobsConformanceSetup[] = [
  {
    name: 'local',
    shows: ['job_hangs'],
    moment,
    open: (handler) => {
      const jobs = localJobs({ handler, maxBytes: 100_000 });
      const hasty = localJobs({ handler, ...inAHurry });
      return { jobs: () => jobs, hasty: () => hasty };
    },
  },
  simulated(),
  {
    ...simulated(),
    name: 'simulated, packed',
    patience: 5_000,
    moment,
    open(handler) {
      const own = packing();
      const packed = packedHandler(handler, own);
      const engine = simulatedJobs({ handler: packed, offers: 50, environment });
      const jobs = { ...packedEngine(engine, own), maxBytes: Infinity };
      const hasty = packedEngine(simulatedJobs({ handler: packed, offers: 3, ...inAHurry }), own);
      return { jobs: () => jobs, hasty: () => hasty, killWorkers: () => engine.killWorkers() };
    },
  },
];

describe.each(setups)('$name', (setup) => {
  test.each(jobsConformance(setup).filter(({ skipped }) => skipped === null))('$name', ({ run }) =>
    run(),
  );
});

/** Each entry breaks one promise of the in-memory engine. */
const faults: Readonly<Record<string, (jobs: Jobs, handler: JobHandler) => Jobs>> = {
  'forgets ends at once': (jobs) => ({
    ...jobs,
    async run(job, options) {
      const end = await jobs.run(job, options);
      await jobs.forget?.(job.key);
      return end;
    },
  }),
  'begins one key twice': (jobs) => {
    let asked = 0;
    return {
      ...jobs,
      run: (job, options) => jobs.run({ ...job, key: `${job.key}~${(asked += 1)}` }, options),
    };
  },
  'repeats what must not be repeated': (jobs) => ({
    ...jobs,
    run: (job, options) => jobs.run({ ...job, once: false }, options),
  }),
  'loses what may be repeated': (jobs) => ({
    ...jobs,
    run: (job, options) => jobs.run({ ...job, once: true }, options),
  }),
  'stops the job when a caller leaves': (jobs) => ({
    ...jobs,
    run(job, options) {
      options.signal.addEventListener('abort', () => jobs.cancel(job.key));
      return jobs.run(job, options);
    },
  }),
  'keeps an aborted caller': (jobs) => ({
    ...jobs,
    run: (job) => jobs.run(job, { signal: new AbortController().signal }),
  }),
  'begins for a signal that has aborted': (jobs) => ({
    ...jobs,
    run(job, options) {
      jobs.run(job, { signal: new AbortController().signal }).catch(() => {});
      return jobs.run(job, options);
    },
  }),
  'cancels nothing': (jobs) => ({ ...jobs, cancel() {} }),
  'tries a failed job again': (jobs) => ({
    ...jobs,
    async run(job, options) {
      const end = await jobs.run(job, options);
      return 'failed' in end ? jobs.run({ ...job, key: `${job.key}~` }, options) : end;
    },
  }),
  'does not limit bodies': (jobs, handler) => ({
    ...simulatedJobs({ handler }),
    maxBytes: jobs.maxBytes,
  }),
  'mangles texts': (jobs) => ({
    ...jobs,
    run: (job, options) =>
      jobs.run({ ...job, body: job.body.replace(/[^\x20-\x7e]/gu, '?') }, options),
  }),
  'takes long keys for one': (jobs) => ({
    ...jobs,
    run: (job, options) => jobs.run({ ...job, key: job.key.slice(0, 64) }, options),
  }),
  'says parts in the wrong order': (jobs) => ({
    ...jobs,
    async run(job, { signal, said }) {
      const told: string[] = [];
      const end = await jobs.run(job, { signal, said: (text) => told.unshift(text) });
      for (const text of told) said?.(text);
      return end;
    },
  }),
  'deletes too much': (jobs) => ({ ...jobs, forget: () => jobs.forget?.('') }),
  'deletes nothing': (jobs) => ({ ...jobs, forget() {} }),
  'leaves what is under way': (jobs) => {
    const underWay = new Set<string>();
    return {
      ...jobs,
      async run(job, options) {
        underWay.add(job.key);
        try {
          return await jobs.run(job, options);
        } finally {
          underWay.delete(job.key);
        }
      },
      forget: (prefix) => (underWay.size > 0 ? undefined : jobs.forget?.(prefix)),
    };
  },
  'lets a job hang': (jobs, handler) => ({
    ...jobs,
    ...(jobs.maxBytes === HURRIED_BYTES ? simulatedJobs({ handler }) : {}),
  }),
  'begins a job that hangs again': (jobs) => {
    let times = 0;
    return {
      ...jobs,
      async run(job, options) {
        const end = await jobs.run(job, options);
        const isOverdue = 'failed' in end && end.failed.code === 'JOB_TIMEOUT';
        return isOverdue ? jobs.run({ ...job, key: `${job.key}~${(times += 1)}` }, options) : end;
      },
    };
  },
  'says that a job that hangs has failed, though it must not be repeated': (jobs) => ({
    ...jobs,
    async run(job, options) {
      const end = await jobs.run(job, options);
      const failed = { code: 'JOB_TIMEOUT', message: 'late', retryable: true };
      return 'lost' in end && jobs.maxBytes === HURRIED_BYTES ? { failed } : end;
    },
  }),
  'takes a refusal for an end': (jobs, handler) =>
    simulatedJobs({ handler, maxBytes: jobs.maxBytes }),
  'takes a refused job for begun': (jobs, handler) => ({
    ...jobs,
    ...simulatedJobs({
      handler: {
        async do(job, signal, said) {
          const end = await handler.do(job, signal, said);
          return 'refused' in end && job.once ? { lost: true } : end;
        },
      },
      maxBytes: jobs.maxBytes,
      offers: 50,
      environment,
    }),
  }),
  'hides why no worker takes a job': (jobs) => ({
    ...jobs,
    async run(job, options) {
      const end = await jobs.run(job, options);
      if (!('failed' in end) || end.failed.code !== 'NOT_RECOVERABLE') return end;
      return { failed: { ...end.failed, message: 'it failed' } };
    },
  }),
  'rejects with any error': (jobs) => ({
    ...jobs,
    async run(job, options) {
      const end = await jobs.run(job, options);
      if ('failed' in end) throw new Error(end.failed.message);
      return end;
    },
  }),
};

describe('a planted fault is found', () => {
  test.each(Object.keys(faults))('%s', async (name) => {
    const failed: string[] = [];
    for (const one of jobsConformance(simulated(faults[name])))
      if (one.skipped === null) await one.run().catch(() => failed.push(one.name));
    expect(failed).not.toEqual([]);
  });
});

test('names the invalid part of a setup', () => {
  expect(() => jobsConformance({ ...simulated(), shows: ['flood'] } as never)).toThrow(/shows/);
});
