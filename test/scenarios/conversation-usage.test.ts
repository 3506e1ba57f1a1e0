// The usage of a whole conversation: of the lead agent's model, of the subagents, and of both together. The state
// contains it, clients and hooks receive it, and it can be computed from the journal at whatever entry a process dies.

import { describe, expect, test } from 'vitest';
import { replaySession, type ReplayStep } from '../../src/entries/replay.ts';
import type { JournalEntry } from '../../src/entries/journal.ts';
import { createRuntime, type SessionState, type UsageView } from '../../src/index.ts';
import type { PricedCall } from '../../src/actors/contracts/usage.ts';
import type { ScriptedLanguageModel } from '../../src/testing/doubles/scripted-model.ts';
import { rideSession, served, testClient } from '../serve/support/served.ts';
import { instantsOf, textLife, turns, voiceLife, world, type World } from '../support/crashes.ts';
import { calls, say } from '../support/subagent-runs.ts';
import { textTalk, type TalkOptions } from '../support/text-talk.ts';

/** The usage of the scripted models. Each call uses 10 input tokens and 5 output tokens. */
const PARTS = { cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
const CALL = { inputTokens: 10, outputTokens: 5, totalTokens: 15, ...PARTS };

const priceOf = ({ name, usage }: PricedCall): number =>
  (name === 'lead' ? 2 : 1) * usage.totalTokens;

const story: TalkOptions = {
  subagents: {
    ride: {
      script: turns(calls(['ask_user', { question: 'Which class?' }, 'r1']), say('Booked.')),
      config: { interactive: true },
    },
  },
};

/** Adds up the usage in the entries. */
function usageIn(entries: readonly JournalEntry[]): { lead: number; subagents: number } {
  const sums = { lead: 0, subagents: 0 };
  for (const { event } of entries) {
    const { usage, response } = event as {
      usage?: { cost?: number };
      response?: { usage: { cost?: number } };
    };
    if (event.type === 'usage.reported') sums.lead += usage?.cost ?? 0;
    if (event.type === 'model.responded') sums.subagents += response?.usage.cost ?? 0;
  }
  return sums;
}

const costsOf = ({ lead, subagents, total }: UsageView) => ({
  lead: lead.cost ?? 0,
  subagents: subagents.cost ?? 0,
  total: total.cost ?? 0,
});

const isOver = ({ deliveries }: SessionState): boolean =>
  deliveries.some(({ kind, state }) => kind === 'result' && state === 'delivered');

/** Plays the story in as many processes as it needs. */
async function live(of: World) {
  for (let lives = 1; ; lives += 1) {
    const life = textLife(of, story);
    void life.start().catch(() => {});
    await of.environment.settle();
    for (let rounds = 0; life.isAlive() && !isOver(life.state()) && rounds < 20; rounds += 1) {
      const { transcript, questions } = life.state();
      const open = questions.find(({ state }) => state === 'open');
      if (!transcript.some(({ role }) => role === 'user'))
        void life.session.sendText('use ride').catch(() => {});
      else if (open) void life.session.answer(open.requestId, { text: 'comfort' }).catch(() => {});
      await of.environment.advance(1_000);
    }
    if (life.isAlive()) return { life, lives };
  }
}

function lastOf(entries: readonly JournalEntry[]): ReplayStep {
  const last = [...replaySession(entries)].at(-1);
  if (!last) throw new Error('Expected entries');
  return last;
}

describe('a text session', () => {
  test('counts the tokens and cost of the lead agent, the subagents and both together', async () => {
    const asked: PricedCall[] = [];
    const told: unknown[] = [];
    const price = (call: PricedCall): number => {
      asked.push(call);
      return priceOf(call);
    };
    const hooks = { onUsage: (event: unknown) => told.push(event) };
    const { start, type, state, events, close } = textTalk({
      subagents: { ride: { script: () => say('Booked.') } },
      price,
      hooks,
    });
    await start();
    await type('use ride');
    const { usage } = state();
    const ofLead = asked.filter(({ name }) => name === 'lead');
    // The call, the text after it, and the delivery.
    expect(ofLead).toHaveLength(3);
    expect(ofLead[0]).toEqual({
      provider: 'offstage',
      modelId: 'scripted',
      name: 'lead',
      usage: CALL,
    });
    expect(usage.lead).toEqual({ inputTokens: 30, outputTokens: 15, ...PARTS, cost: 90 });
    expect(usage.subagents).toEqual({ ...CALL, cost: 15 });
    expect(usage.total).toEqual({
      inputTokens: 40,
      outputTokens: 20,
      totalTokens: 60,
      ...PARTS,
      cost: 105,
    });
    const changes = events.filter((event) => event.type === 'usage.changed');
    expect(changes.filter(({ used }) => used !== undefined)).toHaveLength(3);
    expect(changes.at(-1)?.usage).toEqual(usage);
    expect(told).toHaveLength(3);
    expect(told[0]).toMatchObject({ used: { inputTokens: 10, outputTokens: 5, cost: 30 } });
    await close();
  });

  test('does not count any cost if no price is set', async () => {
    const { start, type, state, close } = textTalk();
    await start();
    await type('hello');
    expect(state().usage.lead).toEqual({ inputTokens: 10, outputTokens: 5, ...PARTS });
    expect(state().usage.total).toEqual(CALL);
    await close();
  });

  test('estimates the cost but not the tokens if the provider reports no tokens', async () => {
    const asked: PricedCall[] = [];
    const uncounted = (mind: ScriptedLanguageModel): ScriptedLanguageModel => ({
      ...mind,
      async doStream(call) {
        const { stream, ...rest } = await mind.doStream(call);
        const without = new TransformStream<unknown, unknown>({
          transform(part, controller) {
            const { type } = part as { readonly type: string };
            const usage = { inputTokens: {}, outputTokens: {} };
            controller.enqueue(type === 'finish' ? { ...(part as object), usage } : part);
          },
        });
        return { ...rest, stream: stream.pipeThrough(without) as typeof stream };
      },
    });
    const { start, type, state, close } = textTalk({
      wire: uncounted,
      price: (call) => asked.push(call),
    });
    await start();
    await type('hello');
    expect(state().usage.lead).toEqual({ inputTokens: null, outputTokens: null, cost: 1 });
    expect(asked).toMatchObject([
      { usage: { outputTokens: Math.ceil('You said: hello'.length / 4) } },
    ]);
    expect(asked[0]?.usage.inputTokens).toBeGreaterThan(0);
    await close();
  });

  test.each([-1, Number.NaN, '1'])(
    'reports an invalid price of %o and does not count any cost for the call',
    async (cost) => {
      const { start, type, state, errors, close } = textTalk({ price: () => cost as number });
      await start();
      await type('hello');
      expect(state().usage.lead).toEqual({ inputTokens: 10, outputTokens: 5, ...PARTS });
      expect(errors).toMatchObject([{ error: { code: 'INVALID_PRICE' } }]);
      await close();
    },
  );

  test('sends the same usage to a client', async () => {
    const session = rideSession({ runtime: createRuntime({ price: () => 1 }) });
    const { url } = await served({ session: () => session });
    const client = testClient({ url, token: 'ann' });
    await client.it.send('use book_ride');
    await client.question();
    await session.idle();
    const { usage } = session.store.getSnapshot().context;
    expect(costsOf(usage).subagents).toBeGreaterThan(0);
    await client.until((now) => now.usage.total.cost === usage.total.cost);
    expect(client.state().usage).toEqual(usage);
    await session.close();
  });
});

describe('LEAD-USAGE-1: the usage across a crash', async () => {
  const length = await (async () => {
    const of = world({ price: priceOf });
    const { life } = await live(of);
    const { usage } = life.state();
    test('includes each call if no process is killed', () => {
      expect(costsOf(usage)).toEqual({ lead: 90, subagents: 30, total: 120 });
    });
    const { written } = of;
    await life.close();
    return written;
  })();

  test.each(instantsOf(length))(
    'includes each call after a kill %s entry %i',
    async (when, entry) => {
      const of = world({ price: priceOf });
      of.killAt(entry, when);
      const { life } = await live(of);
      const inJournal = usageIn(of.entries);
      const total = inJournal.lead + inJournal.subagents;
      expect(costsOf(life.state().usage)).toEqual({ ...inJournal, total });
      const { view } = lastOf(of.entries);
      expect(view.leadUsage).toEqual(life.state().usage.lead);
      life.kill();
      const later = textLife(of, story);
      await later.start();
      // A retried response also counts.
      const then = usageIn(of.entries);
      expect(costsOf(later.state().usage)).toEqual({ ...then, total: then.lead + then.subagents });
      await later.close();
    },
  );

  test('includes each call despite snapshots and a trimmed journal', async () => {
    const of = world({ price: priceOf, snapshots: { afterEntries: 3, trim: true } });
    const { life } = await live(of);
    const { usage } = life.state();
    expect(costsOf(usage)).toEqual({ lead: 90, subagents: 30, total: 120 });
    expect(usageIn(of.entries).lead).toBeLessThan(90);
    life.kill();
    const later = textLife(of, story);
    await later.start();
    expect(later.state().usage).toEqual(usage);
    await later.type('hello');
    expect(later.state().usage.lead.cost).toBe(120);
    await later.close();
  });

  test('includes subagents that have been deleted', async () => {
    const of = world({ price: priceOf, snapshots: { afterEntries: 1, trim: true } });
    const forgetful: TalkOptions = {
      subagents: { ride: { script: () => say('Booked.') } },
      limits: { stateRetentionMs: 0 },
    };
    const before = textLife(of, forgetful);
    await before.start();
    for (let rides = 0; rides < 3; rides += 1) {
      await before.type('use ride');
      await of.environment.advance(1_000);
    }
    const { usage } = before.state();
    expect(usage.subagents).toEqual({
      inputTokens: 30,
      outputTokens: 15,
      totalTokens: 45,
      ...PARTS,
      cost: 45,
    });
    before.kill();
    const later = textLife(of, forgetful);
    await later.start();
    expect(later.session.subagents.list()).toEqual([]);
    expect(later.state().usage).toEqual(usage);
    await later.close();
  });
});

test("prices the usage that a voice session's transport reports, and still counts it after a crash", async () => {
  const asked: PricedCall[] = [];
  const of = world({
    price: (call) => {
      asked.push(call);
      return 0.25;
    },
  });
  const sound = { cachedInputTokens: 4, audioInputTokens: 8, audioOutputTokens: 2, raw: null };
  const report = { type: 'usage.reported', inputTokens: 10, outputTokens: 3, ...sound } as const;
  const nothing = {
    type: 'usage.reported',
    inputTokens: null,
    outputTokens: null,
    raw: 7,
  } as const;
  const before = voiceLife(of);
  await before.start();
  before.model().events.next(report);
  before.model().events.next(nothing);
  expect(asked).toEqual([
    {
      provider: 'fake',
      modelId: 'fake',
      name: 'lead',
      usage: {
        inputTokens: 10,
        outputTokens: 3,
        totalTokens: 13,
        cachedInputTokens: 4,
        audioInputTokens: 8,
        audioOutputTokens: 2,
      },
    },
  ]);
  const { raw: _, ...counted } = sound;
  const once = { inputTokens: 10, outputTokens: 3, ...counted, cost: 0.25 };
  expect(before.state().usage.lead).toEqual(once);
  expect(of.entries.filter(({ event }) => event.type === 'usage.reported')).toHaveLength(1);
  before.kill();
  const later = voiceLife(of);
  await later.start();
  expect(later.state().usage.lead).toEqual(once);
  later.model().events.next(report);
  expect(later.state().usage.lead).toMatchObject({ inputTokens: 20, cost: 0.5 });
  await later.close();
});
