// The instance for a run: private or shared, and disposed exactly once however the run ends (SUBAGENT-2).

import { describe, expect, test } from 'vitest';
import type { SubagentConfig } from '../../../src/index.ts';
import type { MemoryStore } from '../../../src/entries/memory.ts';
import { calls, never, say, simpleTool, steps, subagentRuns } from '../../support/subagent-runs.ts';
import { failingJournal } from '../../support/journals.ts';
import { instructionsOf, textTalk } from '../../support/text-talk.ts';

const INSTRUCTIONS = 'You do one thing.';

/** A configuration that creates an instance for each run and counts the instances. */
function counted(config: Partial<SubagentConfig> = {}) {
  const created: number[] = [];
  const disposed: number[] = [];
  return {
    created,
    disposed,
    config: {
      ...config,
      createInstance: (): SubagentConfig => {
        const number = created.length + 1;
        created.push(number);
        return {
          name: `worker ${number}`,
          instructions: INSTRUCTIONS,
          ...config,
          dispose: () => void disposed.push(number),
        };
      },
    },
  };
}

describe('an instance that arrives as a promise', () => {
  /** A configuration whose instance resolves or rejects when the test calls `come` or `fail`. */
  function promised(config: Partial<SubagentConfig> = {}) {
    const disposed: string[] = [];
    const asked: PromiseWithResolvers<SubagentConfig>[] = [];
    const instance = (name: string): SubagentConfig => ({
      name,
      instructions: INSTRUCTIONS,
      tools: { look: simpleTool(() => `seen by ${name}`) },
      dispose: () => void disposed.push(name),
    });
    return {
      disposed,
      asked,
      come: (index: number) => asked[index]?.resolve(instance(`instance ${index}`)),
      fail: (index: number) => asked[index]?.reject(new Error('The server is down')),
      config: {
        ...config,
        createInstance() {
          asked.push(Promise.withResolvers());
          return asked.at(-1)?.promise ?? never();
        },
      },
    };
  }
  const looks = () => subagentRuns(steps(calls(['look']), say('done')));

  test('does the work after it resolves, and is disposed exactly once', async () => {
    const { config, come, disposed } = promised();
    const { run, environment } = looks();
    const { result } = run(config);
    await environment.settle();
    come(0);
    expect(await result).toMatchObject({
      status: 'completed',
      toolLedger: [{ toolName: 'look', output: 'seen by instance 0' }],
    });
    expect(disposed).toEqual(['instance 0']);
  });

  test('fails the run with the reason when its promise rejects', async () => {
    const { config, fail } = promised();
    const { run, environment } = looks();
    const { result } = run(config);
    await environment.settle();
    fail(0);
    expect((await result).error).toMatchObject({
      code: 'PREPARATION_FAILED',
      message: 'The server is down',
    });
  });

  test('disposes itself if it resolves after the run has been cancelled', async () => {
    const { config, come, disposed } = promised();
    const { run, environment } = looks();
    const { result, cancel } = run(config);
    await environment.settle();
    cancel();
    await environment.advance(60_000);
    expect((await result).status).toBe('cancelled');
    come(0);
    await environment.settle();
    expect(disposed).toEqual(['instance 0']);
  });

  test('ends the run when its timeout passes without a result', async () => {
    const { config } = promised({ timeout: 100 });
    const { run, environment } = looks();
    const { result } = run(config);
    await environment.advance(60_000);
    expect((await result).status).toBe('timed_out');
  });
});

describe('an instance that is disposed once, however its run ends', () => {
  test('disposes the instance when the run completes', async () => {
    const { config, created, disposed } = counted();
    await subagentRuns(() => say('done')).outcome(config);
    expect([created, disposed]).toEqual([[1], [1]]);
  });

  test('disposes the instance when the run fails', async () => {
    const { config, disposed } = counted({ maxSteps: 1 });
    expect((await subagentRuns(() => calls(['none'])).outcome(config)).status).toBe('failed');
    expect(disposed).toEqual([1]);
  });

  test('disposes the instance only once when the run is cancelled twice', async () => {
    const { config, disposed } = counted({ tools: { hang: simpleTool(never) } });
    const { run, environment } = subagentRuns(() => calls(['hang']));
    const { result, cancel } = run(config);
    await environment.settle();
    cancel();
    cancel();
    await result;
    await environment.advance(60_000);
    expect(disposed).toEqual([1]);
  });

  test('disposes the instance when the run times out', async () => {
    const { config, disposed } = counted({ timeout: 100, tools: { hang: simpleTool(never) } });
    const { run, environment } = subagentRuns(() => calls(['hang']));
    const { result } = run(config);
    await environment.advance(100);
    expect((await result).status).toBe('timed_out');
    expect(disposed).toEqual([1]);
  });

  test('disposes the instance when the run is cancelled during its preparation', async () => {
    const { config, created, disposed } = counted();
    const { run, environment } = subagentRuns(() => say('never'));
    const { result, cancel } = run(config);
    cancel();
    await result;
    await environment.advance(60_000);
    expect(disposed).toEqual(created);
  });

  test('disposes the instance when the preparation fails', async () => {
    const { config, disposed } = counted();
    const createInstance = (): SubagentConfig => ({
      ...config.createInstance(),
      tools: { bad: { execute: () => 1 } },
    });
    const outcome = await subagentRuns(() => say('never')).outcome({ createInstance });
    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'TOOL_WITHOUT_SCHEMA' } });
    expect(disposed).toEqual([1]);
  });

  test('disposes the instance when the run is killed because the journal refused its cancellation', async () => {
    const { config, disposed } = counted({
      instructions: instructionsOf('work'),
      tools: { hang: simpleTool(never) },
    });
    const journal = failingJournal('throws');
    const ended: string[] = [];
    const { start, type, session, environment } = textTalk({
      journal: {
        ...journal,
        append(entry) {
          if (entry.event.type === 'subagent.cancel') throw new Error('the disk is full');
          return journal.append(entry);
        },
      },
      subagents: { work: { script: () => calls(['hang']), config } },
      closeGraceMs: 1000,
      hooks: { onSubagentEnd: ({ outcome }) => ended.push(outcome.status), onError() {} },
    });
    await start();
    await type('use work');
    const closed = session.close();
    await environment.advance(999);
    expect(disposed).toEqual([]);
    await environment.advance(1);
    await closed;
    expect(disposed).toEqual([1]);
    expect(ended).toEqual(['lost']);
    expect(environment.pendingTimers).toBe(0);
  });
});

describe('a shared configuration', () => {
  test(
    'gets copied for each run, which disposes only its own copy',
    { tags: ['BW25'] },
    async () => {
      let disposed = 0;
      const release: (() => void)[] = [];
      const { run, environment } = subagentRuns(async () => {
        await new Promise<void>((resolve) => release.push(resolve));
        return say('done');
      });
      const config: SubagentConfig = {
        name: 'worker',
        instructions: INSTRUCTIONS,
        dispose: () => void (disposed += 1),
      };
      const runs = [run(config), run(config), run(config)];
      await environment.settle();
      // `run` copies the configuration, so these three do not share an instance yet.
      for (const free of release) free();
      await Promise.all(runs.map(({ result }) => result));
      expect(disposed).toBe(3);
    },
  );

  test('calls dispose once even if several runs share the same object', async () => {
    let disposed = 0;
    const { start, type, environment, close, session } = textTalk({
      subagents: {
        work: {
          script: steps(calls(['hang'])),
          config: { tools: { hang: simpleTool(never) }, dispose: () => void (disposed += 1) },
        },
      },
    });
    await start();
    await type('use work {"no":1} and work {"no":2} and work {"no":3}');
    const [first, second, third] = session.subagents.list().map(({ id }) => id);
    for (const id of [first, second]) session.subagents.cancel(id ?? '');
    await environment.settle();
    expect(disposed).toBe(0);
    session.subagents.cancel(third ?? '');
    await environment.settle();
    expect(disposed).toBe(1);
    // The instance is disposed again after another use.
    await type('use work');
    await close();
    expect(disposed).toBe(2);
  });
});

describe('createInstance', () => {
  test('creates a new instance for each run', { tags: ['B27'] }, async () => {
    const memories: string[][] = [];
    const { run } = subagentRuns(({ results }) =>
      results.length === 0 ? calls(['remember']) : say(JSON.stringify(results[0])),
    );
    const config: Partial<SubagentConfig> = {
      createInstance() {
        const memory: string[] = [];
        memories.push(memory);
        const remember = simpleTool(() => memory.push('something'));
        return { name: 'worker', instructions: INSTRUCTIONS, tools: { remember } };
      },
    };
    const outcomes = await Promise.all([run(config).result, run(config).result]);
    expect(memories).toHaveLength(2);
    expect(outcomes.map(({ text }) => text)).toEqual(['1', '1']);
  });

  test('fails the run when it throws, without disposing an instance', async () => {
    let disposed = 0;
    const { outcome } = subagentRuns(() => say('never'));
    expect(
      await outcome({
        createInstance() {
          throw new Error('no more instances');
        },
        dispose: () => void (disposed += 1),
      }),
    ).toMatchObject({
      status: 'failed',
      error: { code: 'PREPARATION_FAILED', message: 'no more instances' },
    });
    expect(disposed).toBe(0);
  });

  test.each([
    ['null', null],
    ['a number', 7],
    ['a promise', Promise.resolve({})],
    ['an incomplete configuration', { name: 'worker' }],
    ['one with an unknown option', { name: 'worker', instructions: '', maxStep: 3 }],
  ])('fails the run when it returns %s', async (_, made) => {
    const { outcome } = subagentRuns(() => say('never'));
    const result = await outcome({ createInstance: () => made as never });
    expect(result).toMatchObject({
      status: 'failed',
      error: {
        code: expect.stringMatching(/^INVALID_(INSTANCE|OPTION)$/),
        message: expect.stringContaining('createInstance'),
      },
    });
  });
});

describe('dispose', () => {
  test.each(['throws', 'rejects'])(
    'keeps the outcome and reports the error when it %s',
    async (how) => {
      const { outcome, errors } = subagentRuns(() => say('done'));
      const result = await outcome({
        dispose() {
          if (how === 'throws') throw new Error('cannot close');
          return Promise.reject(new Error('cannot close'));
        },
      });
      expect(result).toMatchObject({ status: 'completed', text: 'done' });
      expect(errors).toEqual([
        { error: expect.objectContaining({ message: 'cannot close' }), where: 'dispose of worker' },
      ]);
    },
  );

  test('runs after all effects have received their abort signals', async () => {
    const log: string[] = [];
    const { run, environment } = subagentRuns(() => calls(['hang']));
    const { result, cancel } = run({
      tools: {
        hang: simpleTool(({ abortSignal }) => {
          abortSignal?.addEventListener('abort', () => log.push('stopped'));
          return never();
        }),
      },
      dispose: () => void log.push('disposed'),
    });
    await environment.settle();
    cancel();
    await result;
    expect(log).toEqual(['stopped', 'disposed']);
  });
});

describe('preparation while the memory hangs', () => {
  const hanging: MemoryStore = {
    facts: never,
    remember: () => Promise.resolve(),
    forget: () => Promise.resolve(false),
  };

  test('continues without facts after 5 s', async () => {
    const disposed: string[] = [];
    const config = { dispose: () => void disposed.push('work') };
    const { start, type, environment, session, errors } = textTalk({
      memory: hanging,
      subagents: { work: { script: () => say('done'), config } },
    });
    await start();
    await type('use work');
    await environment.advance(4_999);
    expect(session.subagents.list()[0]?.state).toBe('spawning');
    await environment.advance(1);
    expect(session.subagents.list()[0]?.outcome).toMatchObject({ text: 'done' });
    expect(errors).toEqual([
      { error: expect.objectContaining({ code: 'MEMORY_TIMEOUT' }), where: 'memory' },
    ]);
    expect(disposed).toEqual(['work']);
  });

  test('delays closing the session until the subagent is disposed', async () => {
    let disposed: () => void = () => {};
    const { start, type, environment, session } = textTalk({
      memory: hanging,
      subagents: {
        work: {
          script: () => say('never'),
          config: { dispose: () => new Promise<void>((resolve) => (disposed = resolve)) },
        },
      },
    });
    await start();
    await type('use work');
    let closed = false;
    void session.close().then(() => (closed = true));
    await environment.advance(1000);
    expect(closed).toBe(false);
    disposed();
    await environment.settle();
    expect(closed).toBe(true);
  });

  test('does not outlive the session', async () => {
    const { config, disposed } = counted();
    const { start, type, environment, session } = textTalk({
      memory: hanging,
      subagents: { work: { script: () => say('never'), config } },
    });
    await start();
    await type('use work');
    await session.close();
    expect(disposed).toEqual([1]);
    await environment.advance(5000);
    expect(environment.pendingTimers).toBe(0);
  });
});
