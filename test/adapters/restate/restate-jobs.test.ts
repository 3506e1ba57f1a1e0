// restateJobs and restateJobService without a server: an ingress in memory that calls the service as Restate does. The
// tests on a real server are in test/engines.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  restateJobs,
  restateJobService,
  type RestateSdk,
} from '../../../src/adapters/restate/index.ts';
import type { Job, JobHandler } from '../../../src/entries/jobs.ts';
import { jobsConformance } from '../../../src/testing/index.ts';

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

/** Answers requests as `answer` does. */
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

/** Invocations by idempotency key, and their ends. A worker that dies leaves only what was written down. */
async function openRestate(handler: JobHandler) {
  const made = () => restateJobService({ restate, handler, maxBytes: 100_000 }) as Service;
  let service = made();
  const invocations = new Map<
    string,
    {
      readonly job: Job;
      readonly steps: Map<string, unknown>;
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
    const run = (name: string, action: () => unknown): Durable<unknown> => {
      const step = async (): Promise<unknown> => {
        if (steps.has(name)) return steps.get(name);
        for (;;)
          try {
            const did = await action();
            if (isDead()) return await never;
            steps.set(name, did);
            return did;
          } catch {
            // It is called again.
          }
      };
      return durable(step());
    };
    const ctx = { run, cancellation: () => durable(one.cancel.promise) };
    void service.handlers.run(ctx, one.job).then((end) => {
      if (isDead()) return;
      one.isEnded = true;
      one.end.resolve(end);
    });
  };
  const url = await ingress(async (path, headers, body) => {
    if (path === '/offstage_jobs/run' || path === '/offstage_jobs/run/send') {
      const id = `inv_${String(headers['idempotency-key'])}`;
      const status = invocations.has(id) ? 'PreviouslyAccepted' : 'Accepted';
      if (!invocations.has(id)) {
        invocations.set(id, {
          job: JSON.parse(body) as Job,
          steps: new Map(),
          end: Promise.withResolvers(),
          cancel: Promise.withResolvers(),
          life: 0,
          isEnded: false,
        });
        invoke(id);
      }
      if (path === '/offstage_jobs/run')
        return [200, JSON.stringify(await invocations.get(id)?.end.promise)];
      return [202, JSON.stringify({ invocationId: id, status })];
    }
    if (path === '/offstage_jobs/cancel/send') {
      const cancel = (id: string): void => invocations.get(id)?.cancel.resolve();
      await service.handlers.cancel({ cancel }, JSON.parse(body) as string);
      return [202, '{"invocationId":"inv_c","status":"Accepted"}'];
    }
    return [404, '{}'];
  });
  return {
    jobs: () => restateJobs({ ingress: url, maxBytes: 100_000 }),
    killWorkers() {
      service = made();
      for (const id of invocations.keys()) invoke(id);
    },
  };
}

describe('conformance', () => {
  const moment = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const setup = { name: 'restate', shows: ['worker_dies'] as const, moment, open: openRestate };
  test.each(jobsConformance(setup).filter(({ skipped }) => skipped === null))('$name', ({ run }) =>
    run(),
  );
});

describe('an ingress that does not do as it should', () => {
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
  ] as const)('%s', async (_, answer, code, retryable) => {
    await expect(asked([...answer])).rejects.toMatchObject({ name: 'JobError', code, retryable });
  });

  test.each(['{}', '{"done":7}', '{"lost":false}', '[]', 'null', '{"done":"x","more":1}'])(
    'the end %s',
    async (end) => {
      await expect(asked([200, end])).rejects.toMatchObject({ code: 'JOB_UNREADABLE' });
    },
  );

  test('an invocation that an operator has killed is a cancelled job', async () => {
    expect(await asked([409, '{"message":"killed"}'])).toMatchObject({
      failed: { code: 'CANCELLED', retryable: false },
    });
  });

  test('nothing that listens', async () => {
    const jobs = restateJobs({ ingress: 'http://127.0.0.1:9' });
    await expect(jobs.run(job, { signal })).rejects.toMatchObject({
      code: 'JOBS_UNREACHABLE',
      retryable: true,
      message: expect.stringContaining('http://127.0.0.1:9'),
    });
    jobs.cancel(job.key);
  });

  test('headers of the app are sent with every request', async () => {
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
])('options that are none are refused by name: %j', (options, name) => {
  expect(() => restateJobs(options as never)).toThrow(name);
});

test('a service without an SDK or handler is refused by name', () => {
  const handler = { do: () => Promise.resolve({ done: '' }) };
  expect(() => restateJobService({ handler } as never)).toThrow(/restate/);
  expect(() => restateJobService({ restate } as never)).toThrow(/handler/);
  expect(() => restateJobService({ restate, handler, keepMs: -1 })).toThrow(/keepMs/);
});
