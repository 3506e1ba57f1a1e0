// A program whose process dies while its subagents are working, and that is then restarted.

import { describe, expect, test } from 'vitest';
import { THE_LEAD, createSubagentService, runSubagent } from '../../../src/entries/subagents.ts';
import {
  createRuntime,
  ProviderError,
  type DoubtfulCall,
  type Journal,
  createParentSubagentToolset,
} from '../../../src/index.ts';
import { readTask, scriptedModel, simulatedEnvironment } from '../../../src/testing/index.ts';
import { turns, world, type World } from '../../support/crashes.ts';
import { askingOrder, programLife as life, type Work } from '../../support/program-life.ts';
import { calls, never, say, simpleTool } from '../../support/subagent-runs.ts';
import { configOf } from '../../support/text-talk.ts';

describe('a restarted service', () => {
  test('P3: asks again under the original id and returns the existing subagent for a repeated request', async () => {
    const of = world();
    const before = life(of, askingOrder);
    expect(await before.service.recover()).toEqual({ resumed: [], ended: [], lost: [] });
    const id = before.wanted();
    await of.environment.settle();
    expect(before.asked).toEqual([`${id}.q1`]);
    before.kill();

    const asked: string[] = [];
    const after = life(of, askingOrder, {
      onQuestion: ({ requestId }) => {
        asked.push(requestId);
        return { text: 'comfort' };
      },
    });
    expect(await after.service.recover()).toEqual({ resumed: [id], ended: [], lost: [] });
    expect(after.wanted()).toBe(id);
    expect(await after.resultOf(id)).toContain('comfort');
    expect(asked).toEqual(before.asked);
    expect(after.errors).toEqual([]);
    await after.close();
  });

  test('P1, P4: returns an unread result in every process until it is read', async () => {
    const of = world();
    const work = { script: turns(say('Done.')) };
    const before = life(of, work);
    await before.service.recover();
    const id = before.wanted();
    await of.environment.settle();
    before.kill();

    const after = life(of, work);
    const ends: string[] = [];
    after.service.events.subscribe(({ type, subagentId }) => {
      if (type === 'ended') ends.push(subagentId);
    });
    expect(await after.service.recover()).toEqual({ resumed: [], ended: [id], lost: [] });
    expect(after.wanted()).toBe(id);
    expect(await after.resultOf(id)).toBe('Done.');
    expect(ends).toEqual([id]);
    await of.environment.settle();
    after.kill();

    const third = life(of, work);
    expect(await third.service.recover()).toEqual({ resumed: [], ended: [], lost: [] });
    expect(third.service.list(THE_LEAD, { includeEnded: true })).toMatchObject([
      { id, state: 'completed' },
    ]);
    await third.close();
  });

  test('P6: reports a call that must not be repeated as in doubt', async () => {
    const of = world();
    const work = {
      script: turns(calls(['pay', {}, 'p1']), ({ results }) => say(JSON.stringify(results))),
      config: { tools: { pay: simpleTool(never) } },
    };
    const before = life(of, work);
    await before.service.recover();
    const id = before.wanted();
    await of.environment.settle();
    before.kill();
    const doubts: DoubtfulCall[] = [];
    const after = life(of, work, { onCallInDoubt: (call) => void doubts.push(call) });
    await after.service.recover();
    expect(await after.resultOf(id)).toContain('not known');
    expect(doubts).toMatchObject([
      { subagentId: id, subagentName: 'order', toolName: 'pay', idempotencyKey: `${id}:1:p1` },
    ]);
    await after.close();
  });

  test('P1: ends a subagent as lost if its configuration is missing, and gives the reason', async () => {
    const of = world();
    const before = life(of, askingOrder);
    await before.service.recover();
    const id = before.wanted();
    await of.environment.settle();
    before.kill();
    const after = life(of, askingOrder, { configs: {} });
    const { lost } = await after.service.recover();
    expect(lost.map(({ subagentId }) => subagentId)).toEqual([id]);
    expect(lost[0]?.reason).toContain('no configuration "order"');
    expect(after.service.check(id, THE_LEAD)).toMatchObject({
      report: { error: { code: 'NOT_RECOVERABLE' } },
    });
    await after.close();
  });

  test('starts a new service under its id after a close', async () => {
    const of = world();
    const before = life(of, askingOrder);
    await before.service.recover();
    const id = before.wanted();
    await of.environment.settle();
    await before.close();
    const after = life(of, askingOrder);
    expect(await after.service.recover()).toEqual({ resumed: [], ended: [], lost: [] });
    const next = after.wanted();
    expect(next).not.toBe(id);
    await of.environment.settle();
    after.kill();
    const third = life(of, askingOrder);
    expect(await third.service.recover()).toMatchObject({ resumed: [next] });
    await third.close();
  });

  test('refuses to spawn before its recovery, and leaves its work to the next process when closed', async () => {
    const of = world();
    const before = life(of, askingOrder);
    expect(before.wanted).toThrow(/before `recover`/);
    await before.service.recover();
    const id = before.wanted();
    await of.environment.settle();
    before.kill();
    await life(of, askingOrder).close();
    const third = life(of, askingOrder);
    expect(await third.service.recover()).toMatchObject({ resumed: [id] });
    await third.close();
  });

  test('does not recover anything without an id', async () => {
    const of = world();
    const { runtime } = of.begin();
    const service = createSubagentService({ runtime });
    expect(await service.recover()).toEqual({ resumed: [], ended: [], lost: [] });
  });
});

describe.each([
  ['of all entries', {}],
  ['of the last snapshot', { snapshots: { afterEntries: 3, trim: true } }],
] as const)('P1, P4, P6: the outcome after a kill at each entry, with %s', async (_, on) => {
  const effects = new Map<string, number>();
  const work = (): Work => ({
    script: (prompt) =>
      readTask(prompt.prompt)?.arguments['instructions'] === 'Be a helper.'
        ? turns(calls(['look', {}, 'l1']), calls(['complete_task', { result: 'A map.' }]))(prompt)
        : turns(
            calls([
              'spawn_subagent',
              { task: 'Find it', contextMode: 'fresh', systemPrompt: 'Be a helper.' },
            ]),
            ({ results }) =>
              calls([
                'await_subagent',
                { subagentId: (results[0] as { subagentId: string }).subagentId },
              ]),
            calls(['ask_user', { question: 'Which class?' }]),
            ({ results }) => say(`A map, and ${JSON.stringify(results[0])}`),
          )(prompt),
    config: {
      interactive: true,
      maxSteps: 10,
      tools: {
        look: simpleTool(
          ({ idempotencyKey = '' }) => {
            effects.set(idempotencyKey, (effects.get(idempotencyKey) ?? 0) + 1);
            return { seen: 'a map' };
          },
          { idempotent: true },
        ),
        ...createParentSubagentToolset({ agent: configOf('order') }),
      },
    },
  });
  const live = async (of: World) => {
    effects.clear();
    const asked = new Set<string>();
    const told: unknown[] = [];
    for (;;) {
      const program = life(of, work(), {
        onQuestion: ({ requestId }) => {
          asked.add(requestId);
          return { text: 'comfort' };
        },
      });
      const recovering = program.service.recover();
      await of.environment.settle();
      if (!program.isAlive()) continue;
      await recovering;
      const id = program.wanted();
      await of.environment.advance(5000);
      const result = program.isAlive() ? await program.resultOf(id) : null;
      await of.environment.settle();
      if (result !== null) told.push(result);
      if (!program.isAlive()) continue;
      const all = program.service.list(THE_LEAD, { includeEnded: true });
      await program.close();
      const { errors } = program;
      return {
        states: all.map(({ state }) => state),
        asked: asked.size,
        looked: effects.size,
        told: told.at(-1),
        errors,
      };
    }
  };
  const whole = {
    states: ['completed', 'completed'],
    asked: 1,
    looked: 1,
    told: 'A map, and {"userResponse":"comfort"}',
    errors: [],
  };
  const of = world(on);
  const first = await live(of);
  // The last entry records that the service was closed.
  const instants = Array.from({ length: of.written - 1 }, (__, index) => index + 1);

  test('completes the story without a kill and produces results', () => {
    expect(first).toEqual(whole);
    expect(instants.length).toBeGreaterThan(15);
  });

  test.each(instants)(
    'has the same outcome after a kill at entry %i as without a kill',
    async (entry) => {
      const killed = world(on);
      killed.killAt(entry, 'after');
      expect(await live(killed)).toEqual(whole);
    },
  );
});

describe('work without an id', () => {
  const config = { name: 'worker', instructions: 'You work.' };
  const model = scriptedModel({ otherwise: () => ({ text: 'Done.' }) });

  test('remains in memory if several processes share the journal', async () => {
    const appended: unknown[] = [];
    const shared: Journal = {
      append: (entry) => void appended.push(entry),
      read: () => [],
      claim: () => {},
    };
    const runtime = createRuntime({ environment: simulatedEnvironment(), journal: shared });
    expect(await runSubagent(config, 'Do it', { runtime, model }).result).toMatchObject({
      status: 'completed',
    });
    expect(appended).toEqual([]);
  });

  test('ends as lost if its journal refuses it permanently', async () => {
    const refusing: Journal = {
      append() {
        throw new ProviderError('JOURNAL_CLOSED', 'it was closed', { retryable: false });
      },
      read: () => [],
    };
    const runtime = createRuntime({ environment: simulatedEnvironment(), journal: refusing });
    expect(await runSubagent(config, 'Do it', { runtime, model }).result).toMatchObject({
      status: 'lost',
      error: { code: 'JOURNAL_REFUSED' },
    });
  });
});
