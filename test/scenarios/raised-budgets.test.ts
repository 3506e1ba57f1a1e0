// The budget of a subagent is raised: by the app, by an operator over the network, and in a journal that no process has.

import { expect, onTestFinished, test } from 'vitest';
import { RestingSession } from '../../src/actors/replay/resting-session.ts';
import { replaySession } from '../../src/entries/replay.ts';
import { createRuntime, memoryJournal } from '../../src/index.ts';
import { rideSession, served, testClient } from '../serve/support/served.ts';
import { textLife, turns, world } from '../support/crashes.ts';
import { calls, say } from '../support/subagent-runs.ts';
import { textTalk, type TalkOptions } from '../support/text-talk.ts';

/** It has steps for its question, and none for the answer. */
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

/** Up to the open question of its subagent. */
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

test('as it is, it is used up by its question', async () => {
  const { answer } = await inQuestion();
  expect(await answer()).toMatchObject({ error: { code: 'BUDGET_EXHAUSTED' } });
});

test('BUDGETS-13: raised, it goes on, with a receipt and the name of who did it in the journal', async () => {
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
  // Over: too late.
  expect(talk.session.subagents.raiseBudget(id, { steps: 9 })).toMatchObject({
    error: { code: 'ALREADY_TERMINAL' },
  });
});

test.each([Infinity, 1])(
  'BUDGETS-13: what was raised is raised after a crash, with a snapshot after %s entries',
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

test('BUDGETS-13: a journal that no process has: the next one has the raise', async () => {
  const { of, talk, id, answer } = await inQuestion();
  talk.kill();
  const { journal } = of.begin().runtime;
  const resting = await RestingSession.claim(journal, 'ses', of.environment);
  const by = { by: 'ann' };
  const { length } = of.entries;
  expect(await resting.raiseBudget('sub_9', { steps: 3 }, by)).toMatchObject({ reason: 'unknown' });
  expect(await resting.raiseBudget(id, { agents: 3 }, by)).toMatchObject({
    reason: 'no_such_limit',
  });
  expect(await resting.raiseBudget(id, { tokens: 99_999 }, by)).toMatchObject({ reason: 'lower' });
  for (const limits of [{ steps: 0.5 }, {}, { steps: Number.NaN }])
    await expect(resting.raiseBudget(id, limits, by)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    });
  expect(of.entries).toHaveLength(length);
  expect(await resting.raiseBudget(id, { steps: 3 }, by)).toEqual({
    accepted: true,
    limits: { steps: 3, tokens: 100_000 },
    by: 'ann',
  });
  await resting.release();
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
])('no limits: %j is refused by name, and nothing is written', async (limits) => {
  const { of, talk, id } = await inQuestion();
  const { length } = of.entries;
  expect(() => talk.session.subagents.raiseBudget(id, limits as never)).toThrow(/raiseBudget\(id/);
  expect(talk.session.subagents.raiseBudget('sub_9', { steps: 3 })).toMatchObject({
    error: { code: 'NOT_FOUND' },
  });
  expect(of.entries).toHaveLength(length);
});

test('a subagent raises neither its own budget nor that of its parent', async () => {
  const { session, start, type, state } = textTalk(asking);
  await start();
  await type('use ride');
  const id = state().subagents[0]?.id ?? '';
  const { service } = session.subagents;
  expect(service.raiseBudget(id, { steps: 3 }, { subagentId: id })).toMatchObject({
    error: { code: 'INVALID_STATE', message: expect.stringContaining('Only an agent above') },
  });
});

test('over the network: an operator raises it, a user and a watcher do not', async () => {
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
    await expect(it.raiseBudget(id, { steps: 3 })).rejects.toMatchObject({ code: 'NOT_ALLOWED' });
  }
  const { it } = testClient({ url, token: 'root' });
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
