// restateJobs and restateJobService without a server: an in-memory ingress calls the service as Restate does. The
// tests on a real server are in test/engines.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  restateJobs,
  restateJobService,
  type RestateJobServiceOptions,
  type RestateSdk,
} from '../../../src/adapters/restate/index.ts';
import type { Job, JobHandler } from '../../../src/entries/jobs.ts';
import { jobsConformance } from '../../suites/jobs/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { realMoment } from '../../support/job-packing.ts';

interface Service {
  readonly name: string;
  readonly handlers: {
    run(ctx: unknown, job: Job): Promise<unknown>;
    cancel(ctx: unknown, id: string): Promise<void>;
  };
}

const restate = {
  service: (definition: unknown) => definition,
  RestatePromise: { race: (promises: readonly Promise<unknown>[]) => Promise.race(promises) },
} as unknown as RestateSdk;

type Durable<T> = Promise<T> & { map<U>(mapper: (value: T) => U): Promise<U> };
const durable = <T>(promise: Promise<T>): Durable<T> =>
  Object.assign(promise, { map: <U>(mapper: (value: T) => U) => promise.then(mapper) });

/** Answers requests with `answer`. */
async function ingress(
  answer: (
    path: string,
    headers: Readonly<Record<string, unknown>>,
    body: string,
  ) => Promise<[number, string]>,
): Promise<string> {
  const server = createServer((request, response) => {
    void text(request).then(async (body) => {
      const [status, said] = await answer(request.url ?? '', request.headers, body);
      response.writeHead(status, { 'content-type': 'application/json' }).end(said);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Time passes while a case polls. */
const environment = simulatedEnvironment();
const moment = realMoment(() => environment.advance(1));

const made = (handler: JobHandler, more: Partial<RestateJobServiceOptions> = {}): Service =>
  restateJobService({
    restate,
    environment,
    handler,
    maxBytes: 100_000,
    ...more,
  }) as Service;

/** Invocations by idempotency key, and how they ended. A worker that dies leaves only recorded state. */
async function openRestate(handler: JobHandler) {
  const services = (): Readonly<Record<string, Service>> => ({
    offstage_jobs: made(handler),
    hasty: made(handler, { service: 'hasty', longestMs: 50, offerMs: 1_000 }),
  });
  let workers = services();
  const invocations = new Map<
    string,
    {
      readonly job: Job;
      readonly service: string;
      readonly steps: Map<number, unknown>;
      readonly end: PromiseWithResolvers<unknown>;
      readonly cancel: PromiseWithResolvers<void>;
      life: number;
      isEnded: boolean;
    }
  >();
  const invoke = (id: string): void => {
    const one = invocations.get(id);
    if (!one || one.isEnded) return;
    one.life += 1;
    const { life, steps } = one;
    const never = new Promise<never>(() => {});
    const isDead = (): boolean => life !== one.life;
    let count = 0;
    const run = (_: string, action: () => unknown): Durable<unknown> => {
      const number = (count += 1);
      const step = async (): Promise<unknown> => {
        if (steps.has(number)) return steps.get(number);
        for (;;)
          try {
            const did = await action();
            if (isDead()) return await never;
            steps.set(number, did);
            return did;
          } catch {
            // The service is called again.
          }
      };
      return durable(step());
    };
    const ctx = {
      run,
      request: () => ({ id }),
      sleep: () => durable(moment()),
      cancellation: () => durable(one.cancel.promise),
    };
    void workers[one.service]?.handlers.run(ctx, one.job).then(
      (end) => {
        if (isDead()) return;
        one.isEnded = true;
        one.end.resolve(end);
      },
      // Makes another attempt.
      () => {
        if (!isDead()) invoke(id);
      },
    );
  };
  const url = await ingress(async (path, headers, body) => {
    const [, service = '', called] = path.split('/');
    if (called === 'run') {
      const id = `inv_${service}_${String(headers['idempotency-key'])}`;
      const status = invocations.has(id) ? 'PreviouslyAccepted' : 'Accepted';
      if (!invocations.has(id)) {
        invocations.set(id, {
          job: JSON.parse(body) as Job,
          service,
          steps: new Map(),
          end: Promise.withResolvers(),
          cancel: Promise.withResolvers(),
          life: 0,
          isEnded: false,
        });
        invoke(id);
      }
      if (!path.endsWith('/send'))
        return [200, JSON.stringify(await invocations.get(id)?.end.promise)];
      return [202, JSON.stringify({ invocationId: id, status })];
    }
    if (called === 'cancel') {
      const cancel = (id: string): void => invocations.get(id)?.cancel.resolve();
      await workers[service]?.handlers.cancel({ cancel }, JSON.parse(body) as string);
      return [202, '{"invocationId":"inv_c","status":"Accepted"}'];
    }
    return [404, '{}'];
  });
  return {
    jobs: () => restateJobs({ ingress: url, maxBytes: 100_000 }),
    hasty: () => restateJobs({ ingress: url, maxBytes: 100_000, service: 'hasty' }),
    killWorkers() {
      workers = services();
      for (const id of invocations.keys()) invoke(id);
    },
  };
}

describe('conformance', () => {
  const shows = ['worker_dies', 'job_hangs', 'worker_refuses'] as const;
  const setup = { name: 'restate', shows, moment, open: openRestate };
  test.each(jobsConformance(setup).filter(({ skipped }) => skipped === null))('$name', ({ run }) =>
    run(),
  );
});

describe('attempts that Restate has not recorded', () => {
  /**
   * The connection ends in the nth step of an attempt. The step was executed, and may or may not have been recorded.
   */
  interface Cut {
    readonly at: number;
    readonly isRecorded: boolean;
  }
  const PERMISSION = 0;
  const THE_JOB = 1;
  const asked = { key: 'ses/sub:1', name: 'charge', once: true, body: '{}' };

  /** Creates one invocation, and returns its attempts, each of which has the earlier records. */
  function invocation(id: string, job: Job = asked) {
    const steps: unknown[] = [];
    return (worker: Service, cut?: Cut): Promise<unknown> => {
      const { promise: isCut, resolve } = Promise.withResolvers<string>();
      let count = 0;
      const run = (_: string, action: () => unknown): Durable<unknown> => {
        const number = count;
        count += 1;
        const step = async (): Promise<unknown> => {
          if (number in steps) return steps[number];
          const did = await action();
          if (cut?.at !== number) return (steps[number] = did);
          if (cut.isRecorded) steps[number] = did;
          resolve('cut');
          return new Promise(() => {});
        };
        return durable(step());
      };
      const ctx = {
        run,
        request: () => ({ id }),
        sleep: () => durable(moment()),
        cancellation: () => durable(new Promise(() => {})),
      };
      return Promise.race([worker.handlers.run(ctx, job), isCut]);
    };
  }
  const counting = () => {
    let times = 0;
    const handler: JobHandler = { do: async () => ({ done: `time ${(times += 1)}` }) };
    return { worker: () => made(handler), begun: () => times };
  };

  test('RESTATE-JOBS-1: cannot run the job once another process has started it', async () => {
    const { worker, begun } = counting();
    const [first, second] = [worker(), worker()];
    const attempt = invocation('inv_1');
    expect(await attempt(first, { at: PERMISSION, isRecorded: false })).toBe('cut');
    expect(await attempt(second, { at: THE_JOB, isRecorded: false })).toBe('cut');
    expect(await attempt(first)).toEqual({ lost: true });
    expect(begun()).toBe(1);
  });

  test.each([true, false])(
    'RESTATE-JOBS-1: run a job once in the process that was interrupted (permission recorded: %s)',
    async (isRecorded) => {
      const { worker, begun } = counting();
      const [first, second] = [worker(), worker()];
      const attempt = invocation('inv_1');
      expect(await attempt(first, { at: PERMISSION, isRecorded })).toBe('cut');
      expect(await attempt(first)).toEqual({ done: 'time 1' });
      expect(await attempt(second)).toEqual({ done: 'time 1' });
      expect(begun()).toBe(1);
    },
  );

  test('RESTATE-JOBS-2: pass a result that was not recorded to the next attempt in the same process', async () => {
    const { worker, begun } = counting();
    const only = worker();
    const attempt = invocation('inv_1');
    expect(await attempt(only, { at: THE_JOB, isRecorded: false })).toBe('cut');
    expect(await attempt(only)).toEqual({ done: 'time 1' });
    expect(begun()).toBe(1);
  });

  test('JOBS-6: distinguish a deleted running job from the next job with the same key', async () => {
    const open: (() => void)[] = [];
    const handler: JobHandler = {
      do: () =>
        new Promise((resolve) => {
          const number = open.length;
          open.push(() => resolve({ done: `time ${number}` }));
        }),
    };
    const only = made(handler);
    void invocation('inv_1')(only);
    while (open.length === 0) await moment();
    const next = invocation('inv_1')(only);
    while (open.length === 1) await moment();
    for (const end of open) end();
    expect(await next).toEqual({ done: 'time 1' });
  });

  test('drop the oldest results if too many are stored', async () => {
    let times = 0;
    const handler: JobHandler = {
      do: async () => ({ done: String((times += 1)).repeat(20_000_000) }),
    };
    const only = made(handler, { maxBytes: 30_000_000 });
    const old = invocation('inv_1');
    await old(only, { at: THE_JOB, isRecorded: false });
    await invocation('inv_2')(only, { at: THE_JOB, isRecorded: false });
    expect(await old(only)).toEqual({ lost: true });
  });
});

describe('an ingress with faults', () => {
  const job = { key: 'ses/sub:1', name: 'a step', once: false, body: '{}' };
  const signal = new AbortController().signal;
  const asked = async (answer: [number, string]) => {
    const url = await ingress(async () => answer);
    return restateJobs({ ingress: `${url}/` }).run(job, { signal });
  };

  test.each([
    ['a service that is not registered yet', [404, 'service not found'], 'JOBS_UNREACHABLE', true],
    ['a server that starts', [503, ''], 'JOBS_UNREACHABLE', true],
    ['too many requests', [429, ''], 'JOBS_UNREACHABLE', true],
    ['a wrong token', [401, 'who are you'], 'JOBS_REFUSED', false],
    ['a proxy in between', [200, '<html>'], 'JOB_UNREADABLE', false],
  ] as const)('causes a JobError: %s', async (_, answer, code, retryable) => {
    await expect(asked([...answer])).rejects.toMatchObject({ name: 'JobError', code, retryable });
  });

  test.each(['{}', '{"done":7}', '{"lost":false}', '[]', 'null'])(
    'reports JOB_UNREADABLE for the result %s',
    async (end) => {
      await expect(asked([200, end])).rejects.toMatchObject({ code: 'JOB_UNREADABLE' });
    },
  );

  test('treats an invocation killed by an operator as a cancelled job', async () => {
    expect(await asked([409, '{"message":"killed"}'])).toMatchObject({
      failed: { code: 'CANCELLED', retryable: false },
    });
  });

  test('reports JOBS_UNREACHABLE if nothing is listening', async () => {
    const jobs = restateJobs({ ingress: 'http://127.0.0.1:9' });
    await expect(jobs.run(job, { signal })).rejects.toMatchObject({
      code: 'JOBS_UNREACHABLE',
      retryable: true,
      message: expect.stringContaining('http://127.0.0.1:9'),
    });
    jobs.cancel(job.key);
  });

  test("receives the app's headers with every request", async () => {
    const seen: unknown[] = [];
    const url = await ingress(async (_, headers) => {
      seen.push(headers['authorization']);
      return [200, '{"done":"x"}'];
    });
    const jobs = restateJobs({ ingress: url, headers: { authorization: 'Bearer key' } });
    expect(await jobs.run(job, { signal })).toEqual({ done: 'x' });
    expect(seen).toEqual(['Bearer key']);
  });
});

test.each([
  [{}, /ingress/],
  [{ ingress: 'ftp://example.com' }, /ingress/],
  [{ ingress: 'http://127.0.0.1', service: 'a b' }, /service/],
  [{ ingress: 'http://127.0.0.1', maxBytes: 0 }, /maxBytes/],
  [{ ingress: 'http://127.0.0.1', secret: 1 }, /secret/],
])('refuses invalid options, and names them in the error: %j', (options, name) => {
  expect(() => restateJobs(options as never)).toThrow(name);
});

test('refuses a service without an SDK or a handler, and says which one is missing', () => {
  const handler = { do: () => Promise.resolve({ done: '' }) };
  expect(() => restateJobService({ handler } as never)).toThrow(/restate/);
  expect(() => restateJobService({ restate } as never)).toThrow(/handler/);
  expect(() => made(handler, { keepMs: -1 })).toThrow(/keepMs/);
  expect(() => restateJobService({ restate, handler } as never)).toThrow(/environment/);
});
