// restateRuns and restateRunWorkflow without a server: an in-memory ingress calls the workflow as Restate does. The
// tests on a real server, in which everything is killed, are in test/engines.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  restateRuns,
  restateRunWorkflow,
  type RestateWorkflowSdk,
} from '../../../src/adapters/restate/index.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { jobWorker, runWorker, type RunHandler } from '../../../src/entries/jobs.ts';
import { createRuntime } from '../../../src/index.ts';
import { runsConformance, runsConformanceAgents } from '../../suites/runs/index.ts';
import { simulatedJobs } from '../../../src/testing/index.ts';
import { askedAgain } from '../../support/asked-again.ts';

interface Workflow {
  readonly name: string;
  readonly options: object;
  readonly handlers: Readonly<
    Record<
      'run' | 'view' | 'answer' | 'message' | 'cancel',
      (ctx: unknown, input: unknown) => Promise<unknown>
    >
  >;
}

const sdk = {
  workflow: (definition: unknown) => definition as Workflow,
  handlers: { workflow: { shared: <Handler>(_: object, handler: Handler) => handler } },
  RestatePromise: { race: (promises: readonly Promise<unknown>[]) => Promise.race(promises) },
} as RestateWorkflowSdk<Workflow>;

type Durable<T> = Promise<T> & { map<U>(mapper: (value: T) => U): Durable<U> };
const durable = <T>(promise: Promise<T>): Durable<T> =>
  Object.assign(promise, { map: <U>(to: (value: T) => U) => durable(promise.then(to)) });
const copied = (value: unknown): unknown => JSON.parse(JSON.stringify(value ?? null));

/** Calls a handler of the workflow with this key. */
type Call = (key: string, handler: 'run' | 'cancel', input: unknown) => Promise<unknown>;

/** Creates the state of one workflow, as its handlers access it. */
function contextOf(call: Call = () => Promise.reject(new Error('there is no other workflow'))) {
  const state = new Map<string, unknown>();
  const promises = new Map<
    string,
    { value?: unknown; readonly kept: PromiseWithResolvers<unknown> }
  >();
  const promise = (name: string) => {
    const one = promises.get(name) ?? { kept: Promise.withResolvers<unknown>() };
    promises.set(name, one);
    return {
      get: () => durable(one.kept.promise),
      peek: () => Promise.resolve(one.value),
      async resolve(value: unknown) {
        if (one.value !== undefined)
          throw Object.assign(new Error('completed'), { name: 'TerminalError' });
        one.value = copied(value);
        one.kept.resolve(one.value);
      },
    };
  };
  return {
    get: async (name: string) => state.get(name) ?? null,
    set: (name: string, value: unknown) => void state.set(name, copied(value)),
    promise,
    run: (_: string, action: () => Promise<unknown>) => durable(action().then(copied)),
    sleep: (ms: number) =>
      durable(
        new Promise((resolve) => {
          onTestFinished(nodeEnvironment().scheduler.schedule(() => resolve(null), ms));
        }),
      ),
    cancellation: () => promise('cancellation').get(),
    workflowClient: (_: object, key: string) => ({
      run: (order: unknown) => durable(call(key, 'run', order)),
    }),
    workflowSendClient: (_: object, key: string) => ({
      cancel: (reason: unknown) => void call(key, 'cancel', reason),
    }),
  };
}

async function openRestate(handler: RunHandler) {
  const { name, handlers } = restateRunWorkflow({ restate: sdk, handler, service: 'trips' });
  const runs = new Map<string, ReturnType<typeof contextOf>>();
  const outcomes = new Map<string, Promise<unknown>>();
  const call: Call = async (key, handler, input) => {
    const isNew = handler === 'run' && !runs.has(key);
    const ctx = runs.get(key) ?? contextOf(call);
    runs.set(key, ctx);
    if (handler === 'run' && !isNew) return null;
    const result = handlers[handler](ctx, copied(input)).then(copied);
    if (handler === 'run') outcomes.set(key, result);
    return result;
  };
  const server = createServer((request, response) => {
    const answer = async (): Promise<void> => {
      const attach = /^\/restate\/workflow\/trips\/([^/]+)\/attach$/u.exec(request.url ?? '');
      if (attach) {
        const outcome = outcomes.get(decodeURIComponent(attach[1] ?? ''));
        return void (outcome
          ? response.end(JSON.stringify(await outcome))
          : response.writeHead(404).end('no such run'));
      }
      const [, service, path = '', handler = '', send] = (request.url ?? '').split('/');
      const input: unknown = JSON.parse(await text(request));
      expect(service).toBe(name);
      const key = decodeURIComponent(path);
      let result: unknown = { invocationId: `inv_${key}` };
      if (send === 'send') void call(key, 'run', input);
      else result = await handlers[handler as 'view'](runs.get(key), input);
      response.end(JSON.stringify(result));
    };
    answer().catch((error: unknown) => response.writeHead(500).end(String(error)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { ingress: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, runs };
}

describe.each(['steps', 'jobs'] as const)('conformance, with `%s`', (by) => {
  const environment = nodeEnvironment();
  const cases = runsConformance({
    name: 'restate',
    shows: [],
    isEngine: true,
    // The sleeps of this double never end.
    passesTime: false,
    moment: () => new Promise((resolve) => setImmediate(resolve)),
    async open(tell) {
      const { configs, model } = runsConformanceAgents(tell);
      const steps = jobWorker({ environment, configs, model });
      const does = by === 'steps' ? { steps } : { jobs: simulatedJobs({ handler: steps }) };
      const worker = runWorker({ environment, configs, ...does, offerMs: 0 });
      const { ingress } = await openRestate(askedAgain(worker));
      const engine = restateRuns({ ingress, service: 'trips' });
      const program = () => ({
        options: { runtime: createRuntime({ environment }), engine },
        kill() {},
      });
      return { program };
    },
  });
  const own = cases.filter(({ skipped }) => skipped === null);
  test.each(own)('$name', ({ run }) => run());
});

describe("a program's request for the next view", () => {
  /** Restate's ingress, which returns `outcome` to attached requests, and has no view. */
  function waiting(outcome: Promise<object>) {
    const asked = Promise.withResolvers<AbortSignal | null | undefined>();
    const fetching = vi.spyOn(globalThis, 'fetch').mockImplementation(async (url, init) => {
      if (typeof url === 'string' && url.endsWith('/attach')) return Response.json(await outcome);
      const signal = init?.signal;
      asked.resolve(signal);
      return new Promise((_, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason as Error));
      });
    });
    onTestFinished(() => fetching.mockRestore());
    return { engine: restateRuns({ ingress: 'http://127.0.0.1:1' }), asked: asked.promise };
  }

  test('returns on its own when the run ends', async () => {
    const last = { turn: 1, waiting: [], outcome: { status: 'completed' } };
    const outcome = Promise.withResolvers<object>();
    const { engine, asked } = waiting(outcome.promise);
    const over = new AbortController();
    const view = engine.view('r', 0, over.signal);
    const request = await asked;
    outcome.resolve(last);
    expect(await view).toEqual(last);
    over.abort();
    expect(request?.aborted).toBe(false);
  });

  test('aborts when the program stops waiting', async () => {
    const { engine, asked } = waiting(new Promise(() => {}));
    const over = new AbortController();
    const view = engine.view('r', 0, over.signal);
    const request = await asked;
    over.abort(new Error('no longer'));
    await expect(view).rejects.toThrow('no longer');
    expect(request?.aborted).toBe(true);
  });
});

const noStep: RunHandler['step'] = () => Promise.reject(new Error('no step is left'));

describe('the workflow', () => {
  const over = { at: 1, journal: [], waiting: [], wakeAt: null, outcome: { status: 'completed' } };
  const order = { id: 'r', config: 'a', task: { description: '', toolName: 'a', args: {} } };

  test('cancels the run when an operator cancels the workflow in Restate', async () => {
    let reason: unknown;
    const handler: RunHandler = {
      step: noStep,
      turn: (_, signal) =>
        new Promise((resolve) => {
          signal.addEventListener('abort', () => {
            ({ reason } = signal);
            resolve(over);
          });
        }),
    };
    const { handlers } = restateRunWorkflow({ restate: sdk, handler });
    const ctx = contextOf();
    const end = handlers.run(ctx, order);
    await ctx.promise('cancellation').resolve(true);
    expect(await end).toMatchObject({ outcome: { status: 'completed' } });
    expect(reason).toMatchObject({ code: 'CANCELLED', message: 'cancelled at the engine' });
  });

  test('RESTATE-RUNS-2: lets another attempt in the same process join the running turn', async () => {
    const gate = Promise.withResolvers<void>();
    let turns = 0;
    const handler: RunHandler = {
      step: noStep,
      async turn() {
        turns += 1;
        await gate.promise;
        return over;
      },
    };
    const { handlers } = restateRunWorkflow({ restate: sdk, handler });
    const both = [handlers.run(contextOf(), order), handlers.run(contextOf(), order)];
    gate.resolve();
    await Promise.all(both);
    expect(turns).toBe(1);
  });

  /** Replays Restate's records and runs the rest. */
  const recordedThen = (ends: readonly unknown[]) => {
    const ctx = contextOf();
    let at = 0;
    const run = (name: string, action: () => Promise<unknown>) => {
      const isRecorded = at < ends.length;
      const end = ends[at];
      at += 1;
      return isRecorded ? durable(Promise.resolve(end)) : ctx.run(name, action);
    };
    return { ...ctx, run };
  };
  const rest = { at: 1, journal: [], waiting: [], wakeAt: null, outcome: null };
  const charge = { key: 'r/sub:1:call', name: 'tool charge', once: true };

  test("RESTATE-RUNS-3: runs a non-repeatable step only once, in the previous turn's process", async () => {
    const news: unknown[] = [];
    const handler = (mark: string): RunHandler => ({
      step: () => Promise.reject(new Error('the turn does it')),
      async turn(turn) {
        news.push(turn.news);
        return turn.number === 1 ? { ...rest, steps: [charge], mark } : over;
      },
    });
    const { handlers } = restateRunWorkflow({ restate: sdk, handler: handler('m1') });
    await handlers.run(contextOf(), order);
    expect(news).toEqual([{ type: 'begun' }, { type: 'next', step: charge }]);
    const lost = { type: 'ended', ends: [{ key: charge.key, end: { lost: true } }] };
    // The same process again, after its permission was used, and then another process.
    for (const again of [
      handlers,
      restateRunWorkflow({ restate: sdk, handler: handler('m2') }).handlers,
    ]) {
      news.length = 0;
      await again.run(recordedThen([{ ...rest, steps: [charge], mark: 'm1' }]), order);
      expect(news).toEqual([lost]);
    }
    // A process whose attempt at the turn was not recorded, because another process's attempt was.
    news.length = 0;
    const { handlers: third } = restateRunWorkflow({ restate: sdk, handler: handler('m3') });
    const never = new Promise<never>(() => {});
    const cut = {
      ...contextOf(),
      run: (_: string, action: () => Promise<unknown>) => durable(action().then(() => never)),
    };
    void third.run(cut, order);
    await new Promise((resolve) => setImmediate(resolve));
    await third.run(recordedThen([{ ...rest, steps: [charge], mark: 'm4' }]), order);
    expect(news).toEqual([{ type: 'begun' }, lost]);
  });

  test('RESTATE-RUNS-3: reports a non-repeatable step as lost in another process, but runs the other steps', async () => {
    const done: string[] = [];
    const news: unknown[] = [];
    const steps = [
      { ...charge, body: '{}' },
      { key: 'r/sub:1:other', name: 'tool look_up', once: false, body: '{}' },
    ];
    const handler: RunHandler = {
      async step({ key }) {
        done.push(key);
        return { done: 'yes' };
      },
      async turn(turn) {
        news.push(turn.news);
        const left = steps.filter(({ key }) => turn.underWay?.includes(key));
        return left.length > 0 ? { ...rest, steps: left, mark: 'm2' } : over;
      },
    };
    const { handlers } = restateRunWorkflow({ restate: sdk, handler });
    await handlers.run(recordedThen([{ ...rest, steps, mark: 'm1' }]), order);
    expect(done).toEqual(['r/sub:1:other']);
    expect(news).toEqual([
      { type: 'ended', ends: [{ key: charge.key, end: { lost: true } }] },
      { type: 'ended', ends: [{ key: 'r/sub:1:other', end: { done: 'yes' } }] },
    ]);
  });

  /**
   * Plays a run whose first letter an earlier process has opened. Restate replays that letter before it runs the steps
   * that have not ended.
   */
  async function newsAfter(letter: object): Promise<readonly unknown[]> {
    const news: unknown[] = [];
    const handler: RunHandler = {
      async turn({ news: given, messages = [], steps }) {
        news.push({ ...given, ...(messages.length > 0 ? { messages, steps } : {}) });
        return over;
      },
      step: async () => ({ lost: true }),
    };
    const { handlers } = restateRunWorkflow({ restate: sdk, handler });
    const ctx = contextOf();
    await ctx.promise('letter/0').resolve(letter);
    const { run } = ctx;
    const late = (name: string, action: () => Promise<unknown>) =>
      durable(
        Promise.resolve()
          .then(() => new Promise((resolve) => setImmediate(resolve)))
          .then(() => run(name, action)),
      );
    await handlers.run({ ...ctx, run: late }, order);
    return news;
  }

  test('starts the next turn with a cancellation that an earlier process received', async () => {
    const news = await newsAfter({ type: 'cancel', reason: 'not needed' });
    expect(news).toEqual([{ type: 'cancelled', reason: 'not needed' }]);
  });

  test('starts a turn with the message that interrupted the turn in an earlier process', async () => {
    const message = { id: 'm', content: 'Stop', mode: 'interrupt' };
    const news = await newsAfter({ type: 'message', message });
    const messages = [{ ...message, nth: 1 }];
    expect(news).toEqual([{ type: 'begun', messages, steps: 'none' }]);
  });
});

describe('options', () => {
  const handler: RunHandler = { step: noStep, turn: () => Promise.reject(new Error('none')) };

  test.each([
    [{}, 'ingress'],
    [{ ingress: 'ftp://x' }, 'http'],
    [{ ingress: 'http://x', service: 'a b' }, 'a name of letters'],
    [{ ingress: 'http://x', colour: 'blue' }, 'colour'],
  ])('refuses %j in restateRuns', (options, message) => {
    expect(() => restateRuns(options as never)).toThrow(message);
  });

  test.each([
    [{ handler }, 'the SDK'],
    [{ restate: sdk }, 'a handler such as'],
    [{ restate: sdk, handler, keepMs: 0 }, 'keepMs'],
    [{ restate: sdk, handler, longestMs: 1.5 }, 'longestMs'],
  ])('refuses invalid options in restateRunWorkflow (case %#)', (options, message) => {
    expect(() => restateRunWorkflow(options as never)).toThrow(message);
  });
});
