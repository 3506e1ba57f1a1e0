// How many subagents may run in a session and in all sessions of a runtime, what the lead agent learns when no more are
// accepted, and which subagents go first (P7).

import { describe, expect, test } from 'vitest';
import { createRuntime } from '../../src/index.ts';
import { simulatedEnvironment } from '../../src/testing/index.ts';
import { calls, say, steps } from '../support/subagent-runs.ts';
import { textTalk, type ScriptedSubagent, type TalkOptions } from '../support/text-talk.ts';

/** Creates subagents that report their start and work until the test releases them, one at a time. */
function gate() {
  const begun: string[] = [];
  const waiting = new Map<string, (() => void)[]>();
  return {
    begun,
    worker: (name: string): ScriptedSubagent => ({
      script: async ({ user }) => {
        begun.push(`${name}${/"n":(\d+)/.exec(user)?.[1] ?? ''}`);
        await new Promise<void>((resolve) => {
          waiting.set(name, [...(waiting.get(name) ?? []), resolve]);
        });
        return say(`${name} is done`);
      },
    }),
    /** Releases the oldest subagent with this name. */
    release: (name: string) => waiting.get(name)?.shift()?.(),
  };
}

const numbered = (name: string, count: number): string =>
  `use ${Array.from({ length: count }, (_, index) => `${name} {"n":${index + 1}}`).join(' and ')}`;

const answersOf = (options: TalkOptions) => {
  const answers: unknown[] = [];
  const talk = textTalk({
    ...options,
    hooks: { onToolResult: ({ output }) => answers.push(output) },
  });
  const codes = () =>
    answers.map(
      (answer) => (answer as { error?: string }).error ?? (answer as { status?: string }).status,
    );
  return { ...talk, codes };
};

describe('maxConcurrentPerSession', () => {
  test.each([
    [1, ['running']],
    [2, ['running', 'running']],
    [3, ['running', 'running', 'ready']],
  ])('runs 2 of %i at a time and accepts all of them', async (count, expected) => {
    const { worker, begun } = gate();
    const { start, type, state, codes } = answersOf({
      limits: { maxConcurrentPerSession: 2 },
      subagents: { work: worker('work') },
    });
    await start();
    await type(numbered('work', count));
    expect(state().subagents.map((subagent) => subagent.state)).toEqual(expected);
    expect(begun).toHaveLength(Math.min(count, 2));
    // A subagent that is waiting for a slot has been accepted.
    expect(codes()).toEqual(Array.from({ length: count }, () => 'still_in_progress'));
  });

  test(
    'runs subagents in order and frees a slot whenever one ends',
    { tags: ['R12'] },
    async () => {
      const { worker, begun, release } = gate();
      const { start, type, environment } = textTalk({
        limits: { maxConcurrentPerSession: 1 },
        subagents: { work: worker('work') },
      });
      await start();
      await type(numbered('work', 4));
      for (const soFar of [1, 2, 3, 4]) {
        expect(begun).toEqual(['work1', 'work2', 'work3', 'work4'].slice(0, soFar));
        release('work');
        await environment.settle();
      }
    },
  );

  test('skips a subagent that was cancelled in the queue', async () => {
    const { worker, begun, release } = gate();
    const { start, type, environment, session } = textTalk({
      limits: { maxConcurrentPerSession: 1 },
      subagents: { work: worker('work') },
    });
    await start();
    await type(numbered('work', 3));
    session.subagents.cancel(session.subagents.list()[1]?.id ?? '');
    release('work');
    await environment.settle();
    expect(begun).toEqual(['work1', 'work3']);
  });

  test('reject: refuses runs above the limit and gives the reason to the lead agent', async () => {
    const { worker, release } = gate();
    const { start, type, session, codes, environment } = answersOf({
      limits: { maxConcurrentPerSession: 2, whenFull: 'reject' },
      subagents: { work: worker('work') },
    });
    await start();
    await type(numbered('work', 3));
    expect(session.subagents.list()).toHaveLength(2);
    expect(codes()).toEqual([
      'still_in_progress',
      'still_in_progress',
      expect.stringContaining('maxConcurrentPerSession is 2'),
    ]);
    release('work');
    await environment.settle();
    await type('use work');
    expect(session.subagents.list()).toHaveLength(3);
  });

  test(
    'does not hold a slot for a subagent that is waiting for the user (SLOTS-3)',
    { tags: ['BW34'] },
    async () => {
      const { worker, begun } = gate();
      const { start, type } = textTalk({
        limits: { maxConcurrentPerSession: 1 },
        subagents: {
          ask: {
            script: steps(calls(['ask_user', { question: 'Well?' }]), say('done')),
            config: { interactive: true },
          },
          work: worker('work'),
        },
      });
      await start();
      await type('use ask and ask and ask and work');
      expect(begun).toEqual(['work']);
    },
  );

  test('prefers resumed subagents to new ones', async () => {
    const { worker, begun, release } = gate();
    const order: string[] = [];
    const { start, type, environment } = textTalk({
      limits: { maxConcurrentPerSession: 1 },
      subagents: {
        ask: {
          script: steps(calls(['ask_user', { question: 'Well?' }]), () => {
            order.push('resumed');
            return say('done');
          }),
          config: { interactive: true },
        },
        work: worker('work'),
      },
    });
    await start();
    await type(`use ask and ${numbered('work', 2).slice(4)}`);
    expect(begun).toEqual(['work1']);
    await type('The blue one');
    expect(order).toEqual([]);
    release('work');
    await environment.settle();
    expect(order).toEqual(['resumed']);
    expect(begun).toEqual(['work1', 'work2']);
  });
});

describe('maxLivePerSession and maxTotalPerSession', () => {
  test('count all subagents that have not ended, including those that are waiting', async () => {
    const { worker, release } = gate();
    const { start, type, codes, environment } = answersOf({
      limits: { maxLivePerSession: 2, maxConcurrentPerSession: 1 },
      subagents: { work: worker('work') },
    });
    await start();
    await type(numbered('work', 3));
    expect(codes()).toEqual([
      'still_in_progress',
      'still_in_progress',
      expect.stringContaining('maxLivePerSession is 2'),
    ]);
    release('work');
    await environment.settle();
    await type('use work');
    expect(codes().at(-1)).toBe('still_in_progress');
  });

  test('count all subagents over the lifetime of a session', async () => {
    const { start, type, codes } = answersOf({
      limits: { maxTotalPerSession: 2 },
      subagents: { work: { script: () => say('done') } },
    });
    await start();
    for (let index = 0; index < 3; index += 1) await type('use work');
    expect(codes()).toEqual([
      'still_in_progress',
      'still_in_progress',
      expect.stringContaining('maxTotalPerSession is 2'),
    ]);
  });

  test('refuse immediately, even if the call would remain open until its result', async () => {
    const { worker } = gate();
    const { start, type, said } = textTalk({
      limits: { maxLivePerSession: 1 },
      subagents: { work: { ...worker('work'), pending: null } },
    });
    await start();
    await type('use work');
    await type('use work {"n":2}');
    expect(said()).toEqual([expect.stringContaining('maxLivePerSession is 1')]);
  });
});

describe('maxTotalActive: two sessions of one runtime', () => {
  function two(options: TalkOptions = {}, maxTotalActive = 2) {
    const environment = simulatedEnvironment();
    const runtime = createRuntime({ environment, maxTotalActive });
    const { worker, begun, release } = gate();
    const talks = ['a', 'b'].map((name) =>
      answersOf({ ...options, environment, runtime, subagents: { [name]: worker(name) } }),
    ) as [ReturnType<typeof answersOf>, ReturnType<typeof answersOf>];
    return { environment, talks, begun, release };
  }

  test('share the slots in order of arrival, without overtaking', async () => {
    const { environment, talks, begun, release } = two();
    const [a, b] = talks;
    for (const talk of talks) await talk.start();
    await a.type(numbered('a', 3));
    await b.type(numbered('b', 2));
    await a.type('use a {"n":4}');
    expect(begun).toEqual(['a1', 'a2']);
    for (const name of ['a', 'a', 'a', 'b']) {
      release(name);
      await environment.settle();
    }
    expect(begun).toEqual(['a1', 'a2', 'a3', 'b1', 'b2', 'a4']);
  });

  test('do not delay each other with their own limits', async () => {
    const { talks, begun } = two({ limits: { maxConcurrentPerSession: 1 } }, 3);
    const [a, b] = talks;
    for (const talk of talks) await talk.start();
    await a.type(numbered('a', 3));
    await b.type('use b {"n":1}');
    expect(begun).toEqual(['a1', 'b1']);
  });

  test('free slots for each other when one closes', async () => {
    const { environment, talks, begun } = two();
    const [a, b] = talks;
    for (const talk of talks) await talk.start();
    await a.type(numbered('a', 3));
    await b.type('use b {"n":1}');
    await a.session.close();
    await environment.settle();
    expect(begun).toEqual(['a1', 'a2', 'b1']);
    expect(b.state().connection).toBe('active');
  });

  test('reject: give the lead agent the name of the shared limit', async () => {
    const { talks } = two({ limits: { whenFull: 'reject' } });
    const [a, b] = talks;
    for (const talk of talks) await talk.start();
    await a.type(numbered('a', 2));
    await b.type('use b');
    expect(b.codes()).toEqual([expect.stringContaining('maxTotalActive is 2')]);
  });

  test('keep their events separate', { tags: ['RW6'] }, async () => {
    const { talks, environment, release } = two();
    const [a, b] = talks;
    for (const talk of talks) await talk.start();
    await a.type('use a');
    await b.type('use b');
    release('a');
    release('b');
    await environment.settle();
    for (const [talk, name] of [
      [a, 'a'],
      [b, 'b'],
    ] as const) {
      expect(talk.state().subagents.map((subagent) => subagent.name)).toEqual([name]);
      expect(talk.said().at(-1)).toContain(`${name} is done`);
    }
  });
});
