// temporalJobs, its activities and its workflow without a server: an in-memory Temporal runs them as the real one
// does. The tests in Temporal's sandbox and on a real server are in test/engines.

import { describe, expect, test } from 'vitest';
import {
  temporalJobActivities,
  temporalJobs,
  type TemporalActivity,
  type TemporalClient,
} from '../../../src/adapters/temporal/index.ts';
import { jobWorkflow } from '../../../src/adapters/temporal/workflow.ts';
import type { Job, JobHandler } from '../../../src/entries/jobs.ts';
import { jobsConformance } from '../../suites/jobs/index.ts';

const moment = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const named = (name: string, message = name, cause?: unknown): Error =>
  Object.assign(new Error(message, { cause }), { name });

type Limits = { readonly longestMs: number };

interface ActivityOptions {
  readonly retry: { readonly maximumAttempts?: number };
}

/** Workflows by id, and their results. An activity whose worker dies fails or is retried. */
function openTemporal(handler: JobHandler) {
  interface Attempt {
    readonly controller: AbortController;
    readonly dies: () => void;
  }
  const running = new Set<Attempt>();
  const workflows = new Map<
    string,
    {
      readonly result: Promise<unknown>;
      readonly stop: (reason: Error) => void;
      isEnded: boolean;
      attempt: Attempt | null;
    }
  >();
  let context: ReturnType<TemporalActivity['Context']['current']> | null = null;
  const activity: TemporalActivity = { Context: { current: () => context! } };
  const activities = temporalJobActivities({ activity, handler, maxBytes: 100_000 });
  const attempt = (id: string, job: Job, limits: Limits): Promise<unknown> => {
    const controller = new AbortController();
    const { promise: dead, reject } = Promise.withResolvers<never>();
    const own: Attempt = { controller, dies: () => reject(named('ActivityFailure')) };
    running.add(own);
    workflows.get(id)!.attempt = own;
    context = {
      cancellationSignal: controller.signal,
      info: { heartbeatTimeoutMs: 1000 },
      heartbeat() {},
      // Only short sleeps complete.
      sleep: (ms) => (ms < 100 ? moment() : new Promise(() => {})),
    };
    const over = (): boolean => running.delete(own);
    return Promise.race([activities.offstageDoJob(job, limits), dead]).finally(over);
  };
  const proxyOf = (id: string) => (options: ActivityOptions) => ({
    async offstageDoJob(job: Job, limits: Limits) {
      for (;;)
        try {
          return await attempt(id, job, limits);
        } catch (error) {
          if (options.retry.maximumAttempts === 1) throw error;
        }
    },
  });
  const client: TemporalClient = {
    workflow: {
      async start(_type, given) {
        const { workflowId, args } = given as { workflowId: string; args: [Job, never] };
        if (workflowId.length > 1000) throw new Error('the id is too long');
        const known = workflows.get(workflowId);
        if (known?.isEnded) throw named('WorkflowExecutionAlreadyStartedError');
        if (known) return;
        const { promise: stopped, reject: stop } = Promise.withResolvers<never>();
        stopped.catch(() => {});
        const workflow = jobWorkflow({
          proxyActivities: proxyOf(workflowId),
          isCancellation: (error) => (error as Error).name === 'CancelledFailure',
          sleep: () => Promise.race([moment(), stopped]),
        });
        const result = Promise.resolve().then(() => workflow(...args));
        workflows.set(workflowId, { result, stop, isEnded: false, attempt: null });
        const over = (): void => {
          workflows.get(workflowId)!.isEnded = true;
        };
        result.then(over, over);
      },
      getHandle: (id) => ({
        async result() {
          const known = workflows.get(id);
          if (!known) throw named('WorkflowNotFoundError');
          return known.result;
        },
        async cancel() {
          const known = workflows.get(id);
          if (!known || known.isEnded) throw named('WorkflowNotFoundError');
          known.attempt?.controller.abort(new Error('CANCELLED'));
          known.stop(named('CancelledFailure'));
        },
      }),
    },
  };
  return {
    jobs: () => temporalJobs({ client, maxBytes: 100_000 }),
    hasty: () => temporalJobs({ client, maxBytes: 100_000, longestMs: 50, offerMs: 1_000 }),
    killWorkers() {
      for (const one of running) one.dies();
    },
  };
}

describe('conformance', () => {
  const setup = {
    name: 'temporal',
    shows: ['worker_dies', 'job_hangs', 'worker_refuses'] as const,
    open: openTemporal,
  };
  test.each(jobsConformance(setup).filter(({ skipped }) => skipped === null))('$name', ({ run }) =>
    run(),
  );
});

describe('a server with faults', () => {
  const job = { key: 'ses/sub:1', name: 'a step', once: false, body: '{}' };
  const { signal } = new AbortController();
  const run = (result: () => unknown, start: () => unknown = () => null) =>
    temporalJobs({
      client: {
        workflow: {
          start: async () => start(),
          getHandle: () => ({ result: async () => result(), cancel: async () => null }),
        },
      },
    }).run(job, { signal });
  const throws = (error: Error) => () => {
    throw error;
  };

  test('reports a retryable JobError when the server refuses the connection', async () => {
    const refused = named('ServiceError', 'failed', new Error('ECONNREFUSED'));
    const expected = {
      name: 'JobError',
      code: 'JOBS_UNREACHABLE',
      retryable: true,
      message: expect.stringContaining('ECONNREFUSED'),
    };
    await expect(run(() => null, throws(refused))).rejects.toMatchObject(expected);
    await expect(run(throws(refused))).rejects.toMatchObject(expected);
  });

  test.each(['CancelledFailure', 'TerminatedFailure'])('cancels the job by %s', async (name) => {
    const failed = named('WorkflowFailedError', 'failed', named(name));
    expect(await run(throws(failed))).toMatchObject({ failed: { code: 'CANCELLED' } });
  });

  test('fails a job permanently when its workflow has failed', async () => {
    const failed = named('WorkflowFailedError', 'failed', named('ApplicationFailure', 'a bug'));
    expect(await run(throws(failed))).toMatchObject({
      failed: { code: 'JOBS_REFUSED', retryable: false, message: expect.stringContaining('a bug') },
    });
  });

  test.each([null, {}, { done: 7 }, [], 'done', { lost: false }])(
    'reports JOB_UNREADABLE for the result %j',
    async (result) => {
      await expect(run(() => result)).rejects.toMatchObject({ code: 'JOB_UNREADABLE' });
    },
  );
});

test.each([
  [{}, /client/],
  [{ client: {} }, /client/],
  [{ client: { workflow: { start() {}, getHandle() {} } }, taskQueue: '' }, /taskQueue/],
  [{ client: { workflow: { start() {}, getHandle() {} } }, heartbeatTimeoutMs: 1 }, /heartbeat/],
  [{ client: { workflow: { start() {}, getHandle() {} } }, secret: 1 }, /secret/],
])('refuses invalid options by name: %j', (options, name) => {
  expect(() => temporalJobs(options as never)).toThrow(name);
});

test('refuses activities without the package or a handler, and says which one is missing', () => {
  const handler = { do: () => Promise.resolve({ done: '' }) };
  expect(() => temporalJobActivities({ handler } as never)).toThrow(/activity/);
  expect(() => temporalJobActivities({ activity: { Context: {} } } as never)).toThrow(/handler/);
});
