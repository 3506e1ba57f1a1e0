// The budget of a subagent or a session is increased by the app, by an operator over the network, or in a journal that
// no process has open.

import { describe, expect, onTestFinished, test } from 'vitest';
import { UnloadedSession } from '../../src/actors/replay/unloaded-session.ts';
import { replaySession } from '../../src/entries/replay.ts';
import { createRuntime, memoryJournal } from '../../src/index.ts';
import { rideSession, served, testClient } from '../serve/support/served.ts';
import { instantsOf, textLife, turns, world, type World } from '../support/crashes.ts';
import { calls, say } from '../support/subagent-runs.ts';
import { textTalk, type TalkOptions } from '../support/text-talk.ts';

/** The subagent has a step for its question but none for the answer. */
const asking: TalkOptions = {
  subagents: {
    ride: {
      script: turns(calls(['ask_user', { question: 'Which class?' }, 'r1']), say('Booked.')),
      config: { interactive: true, budget: { steps: 1, tokens: 100_000 } },
    },
  },
};

const opened = (state: { questions: readonly { state: string; requestId: string }[] }): string =>
  state.questions.find(({ state: it }) => it === 'open')?.requestId ?? '';

/** Plays until the subagent's question is open. */
async function inQuestion(of = world()) {
  const talk = textLife(of, asking);
  await talk.start();
  await talk.type('use ride');
  await of.environment.advance(1_000);
  expect(opened(talk.state())).not.toBe('');
  const id = talk.state().subagents[0]?.id ?? '';
  const answer = async (later = talk): Promise<unknown> => {
    await later.session.answer(opened(later.state()), { text: 'comfort' });
    await of.environment.advance(1_000);
    return later.state().subagents[0]?.outcome;
  };
  return { of, talk, id, answer };
}

test('exhausts its budget after a question if the budget was not increased', async () => {
  const { answer } = await inQuestion();
  expect(await answer()).toMatchObject({ error: { code: 'BUDGET_EXHAUSTED' } });
});

test('BUDGETS-13: continues after an increase and records which user made it', async () => {
  const { of, talk, id, answer } = await inQuestion();
  const receipt = talk.session.subagents.raiseBudget(id, { steps: 3 }, { by: 'ann' });
  expect(receipt).toMatchObject({
    ok: true,
    budget: { steps: { granted: 3, spent: 1, reserved: 0, left: 2 }, tokens: { granted: 100_000 } },
  });
  expect(await answer()).toMatchObject({ status: 'completed', text: 'Booked.' });
  expect(of.entries.filter(({ event }) => event.type === 'budget.raised')).toMatchObject([
    { unit: id, event: { limits: { steps: 3 }, by: 'ann' } },
  ]);
  const views = new Set<number | undefined>();
  for (const { view } of replaySession(of.entries)) views.add(view.subagents[0]?.budget?.steps);
  expect(views).toEqual(new Set([undefined, 1, 3]));
  // The increase comes too late, because the subagent has ended.
  expect(talk.session.subagents.raiseBudget(id, { steps: 9 })).toMatchObject({
    error: { code: 'ALREADY_TERMINAL' },
  });
});

test.each([Infinity, 1])(
  'BUDGETS-13: keeps an increased budget across a crash, with a snapshot after %s entries',
  async (afterEntries) => {
    const of = world({ snapshots: { afterEntries, trim: true } });
    const { talk, id, answer } = await inQuestion(of);
    expect(talk.session.subagents.raiseBudget(id, { steps: 3 })).toMatchObject({ ok: true });
    await of.environment.settle();
    talk.kill();
    const later = textLife(of, asking);
    await later.start();
    expect(await answer(later)).toMatchObject({ status: 'completed', text: 'Booked.' });
  },
);

test('BUDGETS-13: applies an increase that was written while no process was running the session', async () => {
  const { of, talk, id, answer } = await inQuestion();
  talk.kill();
  const { journal } = of.begin().runtime;
  const unloaded = await UnloadedSession.claim(journal, 'ses', of.environment);
  const by = { by: 'ann' };
  const { length } = of.entries;
  expect(await unloaded.raiseBudget('sub_9', { steps: 3 }, by)).toMatchObject({
    reason: 'unknown',
  });
  expect(await unloaded.raiseBudget(id, { agents: 3 }, by)).toMatchObject({
    reason: 'no_such_limit',
  });
  expect(await unloaded.raiseBudget(id, { tokens: 99_999 }, by)).toMatchObject({ reason: 'lower' });
  for (const limits of [{ steps: 0.5 }, {}, { steps: Number.NaN }])
    await expect(unloaded.raiseBudget(id, limits, by)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    });
  expect(of.entries).toHaveLength(length);
  expect(await unloaded.raiseBudget(id, { steps: 3 }, by)).toEqual({
    accepted: true,
    limits: { steps: 3, tokens: 100_000 },
    by: 'ann',
  });
  await unloaded.release();
  const later = textLife(of, asking);
  await later.start();
  expect(await answer(later)).toMatchObject({ status: 'completed' });
});

test.each([
  [{ steps: 0 }],
  [{ steps: '3' }],
  [{ steps: Number.NaN }],
  [{ steps: 3, wings: 2 }],
  [{}],
  [null],
  [{ cost: Infinity }],
])('names %j as invalid and writes nothing', async (limits) => {
  const { of, talk, id } = await inQuestion();
  const { length } = of.entries;
  expect(() => talk.session.subagents.raiseBudget(id, limits as never)).toThrow(/raiseBudget\(id/);
  expect(talk.session.subagents.raiseBudget('sub_9', { steps: 3 })).toMatchObject({
    error: { code: 'NOT_FOUND' },
  });
  expect(of.entries).toHaveLength(length);
});

test("does not let a subagent increase its own budget or its parent's", async () => {
  const { session, start, type, state } = textTalk(asking);
  await start();
  await type('use ride');
  const id = state().subagents[0]?.id ?? '';
  const { service } = session.subagents;
  expect(service.raiseBudget(id, { steps: 3 }, { subagentId: id })).toMatchObject({
    error: { code: 'INVALID_STATE', message: expect.stringContaining('Only an agent above') },
  });
});

test('lets an operator increase a budget over the network, but neither a user nor an observer', async () => {
  const journal = memoryJournal();
  const session = rideSession({
    ...asking,
    runtime: createRuntime({ journal }),
    sessionId: 's1',
  });
  onTestFinished(() => session.close());
  await session.start();
  const { url } = await served({ session: () => session });
  await session.sendText('use ride');
  await expect.poll(() => session.subagents.list()[0]?.state).toBe('waiting_for_input');
  const { id = '' } = session.subagents.list()[0] ?? {};
  for (const token of ['ann', 'eve']) {
    const { it } = testClient({ url, token });
    for (const owner of [id, null])
      await expect(it.raiseBudget(owner, { steps: 3 })).rejects.toMatchObject({
        code: 'NOT_ALLOWED',
      });
  }
  const { it } = testClient({ url, token: 'root' });
  // The session has no budget.
  expect(await it.raiseBudget(null, { steps: 3 })).toMatchObject({
    ok: false,
    error: { code: 'INVALID_STATE', message: expect.stringContaining('it has no budget') },
  });
  expect(await it.raiseBudget(id, { steps: 3 })).toMatchObject({
    ok: true,
    budget: { steps: { granted: 3 } },
  });
  expect(await it.raiseBudget(id, { agents: 3 })).toMatchObject({
    ok: false,
    error: { code: 'INVALID_STATE', message: expect.stringContaining('no limit of agents') },
  });
  await expect(it.raiseBudget(id, { steps: 0.5 })).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
  });
  await expect
    .poll(() => journal.read().map(({ event }) => event))
    .toContainEqual(expect.objectContaining({ type: 'budget.raised', by: 'root' }));
});

describe("a session's own budget", () => {
  /** The session's budget has a step for its subagent's question but none for the answer. */
  const own: TalkOptions = {
    subagents: {
      ride: {
        script: turns(calls(['ask_user', { question: 'Which class?' }, 'r1']), say('Booked.')),
        config: { interactive: true },
      },
    },
    budget: { steps: 1, tokens: 100_000 },
  };

  async function begun(of = world(), options = own) {
    const talk = textLife(of, options);
    await talk.start();
    await talk.type('use ride');
    await of.environment.advance(1_000);
    const answer = async (later = talk): Promise<unknown> => {
      await later.session.answer(opened(later.state()), { text: 'comfort' });
      await of.environment.advance(1_000);
      return later.state().subagents[0]?.outcome;
    };
    return { of, talk, answer };
  }

  test('runs out after the question if it was not increased', async () => {
    const { answer } = await begun();
    expect(await answer()).toMatchObject({ error: { code: 'BUDGET_EXHAUSTED' } });
  });

  test('BUDGETS-13: lets the subagent continue after an increase and records which user made it', async () => {
    const { of, talk, answer } = await begun();
    const { subagents } = talk.session;
    expect(subagents.raiseBudget(null, { steps: 3 }, { by: 'ann' })).toMatchObject({
      ok: true,
      budget: {
        steps: { granted: 3, spent: 1, reserved: 0, left: 2 },
        tokens: { granted: 100_000 },
      },
    });
    expect(await answer()).toMatchObject({ status: 'completed', text: 'Booked.' });
    expect(of.entries.filter(({ event }) => event.type === 'budget.raised')).toMatchObject([
      { unit: 'ses', actor: 'budget', event: { limits: { steps: 3 }, by: 'ann' } },
    ]);
    const facts: unknown[] = [];
    let last;
    for (const { view, changes } of replaySession(of.entries)) {
      if (changes['budget'] !== undefined) facts.push(changes['budget']);
      last = view.budget;
    }
    expect(facts).toEqual(['tokens 100000, steps 1', 'tokens 100000, steps 3']);
    expect(last).toEqual({ steps: 3, tokens: 100_000 });
  });

  test.each([
    [{ steps: 0 }, 'INVALID_ARGUMENT'],
    [{ steps: '3' }, 'INVALID_ARGUMENT'],
    [{ steps: 3, wings: 2 }, 'INVALID_ARGUMENT'],
    [{}, 'INVALID_ARGUMENT'],
    [null, 'INVALID_ARGUMENT'],
    [{ cost: Infinity }, 'INVALID_ARGUMENT'],
  ])('names %j as invalid and writes nothing', async (limits, code) => {
    const { of, talk } = await begun();
    const { length } = of.entries;
    let thrown: unknown;
    try {
      talk.session.subagents.raiseBudget(null, limits as never);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toMatchObject({ code, message: expect.stringContaining('raiseBudget(null') });
    expect(of.entries).toHaveLength(length);
  });

  test('refuses a decrease, invalid limits, and any change before the start or after the end', async () => {
    const of = world();
    const early = textLife(of, own);
    expect(early.session.subagents.raiseBudget(null, { steps: 3 })).toMatchObject({
      error: { code: 'INVALID_STATE', message: expect.stringContaining('the session is created') },
    });
    const { talk } = await begun(of);
    const { length } = of.entries;
    const raise = (limits: object) => talk.session.subagents.raiseBudget(null, limits);
    expect(raise({ tokens: 99_999 })).toMatchObject({ error: { code: 'INVALID_STATE' } });
    expect(raise({ steps: 9, agents: 3 })).toMatchObject({
      error: { code: 'INVALID_STATE', message: expect.stringContaining('no limit of agents') },
    });
    expect(of.entries).toHaveLength(length);
    await talk.close();
    const { length: all } = of.entries;
    expect(raise({ steps: 9 })).toMatchObject({ ok: false });
    expect(of.entries).toHaveLength(all);
  });

  test.each([Infinity, 1])(
    'keeps an increase across a crash and applies it once (snapshot after %s entries)',
    async (afterEntries) => {
      const of = world({ snapshots: { afterEntries, trim: true } });
      const { talk, answer } = await begun(of);
      expect(talk.session.subagents.raiseBudget(null, { steps: 2 })).toMatchObject({ ok: true });
      await of.environment.settle();
      talk.kill();
      // A process with a higher limit keeps its limit.
      const higher = textLife(of, { ...own, budget: { steps: 7, tokens: 100_000 } });
      await higher.start();
      const { subagents } = higher.session;
      expect(subagents.raiseBudget(null, { steps: 7 })).toMatchObject({
        budget: { steps: { granted: 7, spent: 1 } },
      });
      higher.kill();
      const later = textLife(of, own);
      await later.start();
      expect(later.session.subagents.raiseBudget(null, { steps: 7 })).toMatchObject({
        budget: { steps: { granted: 7, spent: 1 } },
      });
      expect(await answer(later)).toMatchObject({ status: 'completed', text: 'Booked.' });
    },
  );

  test('ends later if its time limit is increased', async () => {
    const timed: TalkOptions = { ...own, budget: { timeMs: 10_000 } };
    const { of, talk } = await begun(world(), timed);
    expect(talk.session.subagents.raiseBudget(null, { timeMs: 60_000 })).toMatchObject({
      ok: true,
    });
    await of.environment.advance(20_000);
    expect(talk.state().subagents[0]?.state).toBe('waiting_for_input');
    talk.kill();
    const later = textLife(of, timed);
    await later.start();
    await of.environment.advance(10_000);
    expect(later.state().subagents[0]?.state).toBe('waiting_for_input');
    await of.environment.advance(60_000);
    expect(later.state().subagents[0]?.outcome?.error?.code).toBe('BUDGET_EXHAUSTED');
  });

  test('applies an increase from the journal in the next process', async () => {
    const { of, talk, answer } = await begun();
    talk.kill();
    const { journal } = of.begin().runtime;
    const unloaded = await UnloadedSession.claim(journal, 'ses', of.environment);
    const by = { by: 'ann' };
    const { length } = of.entries;
    expect(await unloaded.raiseBudget(null, { agents: 3 }, by)).toMatchObject({
      reason: 'no_such_limit',
    });
    expect(await unloaded.raiseBudget(null, { tokens: 1 }, by)).toMatchObject({ reason: 'lower' });
    await expect(unloaded.raiseBudget(null, {}, by)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    });
    expect(of.entries).toHaveLength(length);
    expect(await unloaded.raiseBudget(null, { steps: 3 }, by)).toEqual({
      accepted: true,
      limits: { steps: 3, tokens: 100_000 },
      by: 'ann',
    });
    await unloaded.release();
    const later = textLife(of, own);
    await later.start();
    expect(await answer(later)).toMatchObject({ status: 'completed' });
  });

  /** A cost budget: a call that a crash interrupts costs nothing and uses up none of the steps of the next attempt. */
  const costly: TalkOptions = { ...own, budget: { cost: 1 } };

  /**
   * While the question is open, makes an operator increase the budget until there is a receipt. Then the user answers.
   */
  async function live(of: World) {
    let isRaised = false;
    for (;;) {
      const life = textLife(of, costly);
      void life.start().catch(() => {});
      await of.environment.settle();
      for (let rounds = 0; life.isAlive() && rounds < 20; rounds += 1) {
        const { transcript, questions, subagents } = life.state();
        const open = questions.find(({ state }) => state === 'open');
        if (subagents[0]?.outcome) return { life, isRaised };
        if (!transcript.some(({ role }) => role === 'user'))
          void life.session.sendText('use ride').catch(() => {});
        else if (open && !isRaised) {
          const raised = life.session.subagents.raiseBudget(null, { cost: 2 });
          if (raised.ok) void life.session.committed().then(() => (isRaised = true));
        } else if (open)
          void life.session.answer(open.requestId, { text: 'comfort' }).catch(() => {});
        await of.environment.advance(1_000);
      }
      if (life.isAlive()) throw new Error('Expected an end');
    }
  }

  describe('a process dies', async () => {
    const of = world({ price: () => 1 });
    const { life } = await live(of);
    const { written } = of;
    await life.close();

    test.each(instantsOf(written))('%s entry %i', async (when, entry) => {
      const dying = world({ price: () => 1 });
      dying.killAt(entry, when);
      const ended = await live(dying);
      expect(ended.isRaised).toBe(true);
      expect(ended.life.state().subagents).toMatchObject([
        { outcome: { status: 'completed', text: 'Booked.' }, step: 2 },
      ]);
      // The budget was increased once, despite repeated requests.
      expect(ended.life.session.subagents.raiseBudget(null, { cost: 2 })).toMatchObject({
        budget: { cost: { granted: 2, spent: 2, left: 0 } },
      });
      await ended.life.close();
    });
  });
});
