// The model calls that the runtime makes in addition to those of the agents (summaries, facts, verdicts on claims, the
// meaning of a delegation) are counted once with the conversation, priced, and traced (LEAD-USAGE-1).

import type { LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { describe, expect, test } from 'vitest';
import { replaySession } from '../../src/entries/replay.ts';
import {
  modelDistiller,
  modelSummary,
  type Summarise,
  memoryStore,
} from '../../src/entries/memory.ts';
import { modelClaimJudge } from '../../src/entries/results.ts';
import { tracedJournal } from '../../src/adapters/otel/index.ts';
import { createRuntime, memoryJournal, TextSession } from '../../src/index.ts';
import { runSubagent } from '../../src/entries/subagents.ts';
import type { PricedCall } from '../../src/actors/contracts/usage.ts';
import { scriptedModel, simulatedEnvironment } from '../../src/testing/index.ts';
import { sdk } from '../adapters/otel/support/traces.ts';
import { DELEGATES, FakeTransport } from '../support/fake-transport.ts';
import { textLife, world, type World } from '../support/crashes.ts';
import { calls, say } from '../support/subagent-runs.ts';
import { textTalk, type TalkOptions } from '../support/text-talk.ts';
import { voiceTalk } from '../support/voice-talk.ts';

const limits = { maxItems: 12, maxChars: 2000, maxItemChars: 500 };
const price = ({ usage }: PricedCall): number => usage.totalTokens;

/** Each call uses 10 and 5 tokens. */
const beside = scriptedModel({
  scripts: [{ when: 'You write the summary', script: () => say('In short.') }],
  otherwise: () => say(JSON.stringify({ facts: [{ text: 'Prefers windows' }] })),
});

/** A conversation with a summary and facts after the third turn. */
const long = (): TalkOptions => ({
  memory: memoryStore(),
  memoryScope: 'anna',
  conversation: {
    limits,
    summariseAbove: 0.5,
    keepItems: 2,
    summarise: modelSummary({ model: beside }),
    distil: modelDistiller({ model: beside }),
  },
});

/** Returns the number of calls and the cost of each caller, computed from the entries. */
function counted(entries: World['entries']): Readonly<Record<string, readonly [number, number]>> {
  const sums: Record<string, [number, number]> = {};
  for (const { event } of entries) {
    const { type, agentName, usage } = event as {
      readonly type: string;
      readonly agentName: string;
      readonly usage: { readonly cost: number };
    };
    if (type !== 'usage.reported') continue;
    const [times, cost] = sums[agentName] ?? [0, 0];
    sums[agentName] = [times + 1, cost + usage.cost];
  }
  return sums;
}

describe('summaries and facts', () => {
  test("count towards the conversation's usage and cost and appear in its trace", async () => {
    const { tracerProvider, spans, open } = sdk();
    const asked: string[] = [];
    const environment = simulatedEnvironment();
    const kept = memoryJournal();
    const talk = textTalk({
      ...long(),
      environment,
      runtime: createRuntime({
        environment,
        journal: tracedJournal(kept, { tracerProvider }),
        price: (call) => {
          asked.push(`${call.provider} ${call.modelId} ${call.name}`);
          return price(call);
        },
      }),
      sessionId: 'ses',
    });
    await talk.start();
    for (const word of ['one', 'two', 'three', 'four']) await talk.type(word);
    await talk.close();
    const entries = kept.read();
    // Facts that are extracted after the end have no entry, because the journal is closed.
    const parts = counted(entries);
    expect(parts).toEqual({ lead: [4, 60], summary: [1, 15], facts: [1, 15] });
    expect(asked).toContain('offstage scripted summary');
    const { usage } = talk.state();
    expect(usage.lead).toMatchObject({ inputTokens: 60, outputTokens: 30, cost: 90 });
    expect(usage.total.totalTokens).toBe(90);
    expect([...replaySession(entries)].at(-1)?.view.leadUsage).toEqual(usage.lead);
    const chats = spans().filter(({ name }) => name.startsWith('chat'));
    const used = chats.map(({ attributes }) => [
      attributes['gen_ai.agent.name'],
      attributes['gen_ai.usage.input_tokens'],
      attributes['gen_ai.usage.output_tokens'],
    ]);
    expect(used.filter(([name]) => name === 'summary')).toEqual([['summary', 10, 5]]);
    expect(used.filter(([name]) => name === 'facts')).toHaveLength(1);
    expect(used.filter(([name]) => name === 'lead')).toHaveLength(4);
    expect(open).toEqual([]);
  });

  test('count only once, whenever the process dies', async () => {
    const whole = world({ price });
    const first = textLife(whole, long());
    await first.start();
    for (const word of ['one', 'two', 'three', 'four']) await first.type(word);
    await first.close();
    const last = whole.written;
    const instants = [...whole.entries.keys()]
      .map((at) => at + 1)
      .filter((at) => /usage|summarised/.test(whole.entries[at - 1]?.event.type ?? ''));
    expect(instants.length).toBeGreaterThan(4);
    for (const at of instants)
      for (const when of ['before', 'after'] as const) {
        const of = world({ price });
        of.killAt(at, when);
        const words = ['one', 'two', 'three', 'four'];
        for (;;) {
          const life = textLife(of, long());
          void life.start().catch(() => {});
          await of.environment.settle();
          while (life.isAlive() && words.length > 0) {
            void life.session.sendText(words.shift() ?? '').catch(() => {});
            await of.environment.settle();
          }
          if (!life.isAlive()) continue;
          const { usage } = life.state();
          await life.close();
          const sums = Object.values(counted(of.entries));
          const cost = sums.reduce((sum, [, each]) => sum + each, 0);
          expect(usage.lead.cost).toBe(cost);
          expect([...replaySession(of.entries)].at(-1)?.view.leadUsage.cost).toBe(cost);
          expect(of.written).toBeGreaterThan(last / 2);
          break;
        }
      }
  });

  test('count if the app reports their usage, which the runtime validates', async () => {
    const refused: unknown[] = [];
    const summarise: Summarise = ({ calls: account }) => {
      const use = { provider: 'own', modelId: 'm1', name: 'summary', beganAt: 1 };
      account?.used({ ...use, usage: { inputTokens: 100, outputTokens: 7 } });
      for (const wrong of [{}, null, { ...use, usage: { inputTokens: -1 } }, { ...use, cost: 3 }])
        try {
          account?.used(wrong as never);
        } catch (error) {
          refused.push(error);
        }
      return Promise.resolve('In short.');
    };
    const talk = textTalk({
      conversation: { limits, summarise, summariseAbove: 0.5, keepItems: 2 },
    });
    await talk.start();
    for (const word of ['one', 'two', 'three', 'four']) await talk.type(word);
    expect(talk.state().usage.lead).toMatchObject({ inputTokens: 140, outputTokens: 27 });
    expect(refused).toHaveLength(4);
    for (const error of refused) expect(String(error)).toContain('used(use)');
    await talk.close();
  });

  test('have an estimated cost and unknown tokens if the provider reports no tokens', async () => {
    const asked: PricedCall[] = [];
    const model = {
      ...beside,
      doGenerate: async (call: Parameters<typeof beside.doGenerate>[0]) => ({
        ...(await beside.doGenerate(call)),
        usage: {
          inputTokens: {
            total: undefined,
            noCache: undefined,
            cacheRead: undefined,
            cacheWrite: undefined,
          },
          outputTokens: { total: undefined, text: undefined, reasoning: undefined },
        },
      }),
    };
    const talk = textTalk({
      conversation: {
        limits,
        summarise: modelSummary({ model }),
        summariseAbove: 0.5,
        keepItems: 2,
      },
      price: (call) => {
        if (call.name === 'summary') asked.push(call);
        return call.name === 'summary' ? 1 : 0;
      },
    });
    await talk.start();
    for (const word of ['one', 'two', 'three', 'four']) await talk.type(word);
    expect(asked).toHaveLength(1);
    expect(asked[0]?.usage.inputTokens).toBeGreaterThan(10);
    expect(talk.state().usage.lead).toMatchObject({ inputTokens: 40, cost: 1 });
    await talk.close();
  });
});

test("adds a claim judge's usage to the conversation's usage", async () => {
  const environment = simulatedEnvironment();
  const { tracerProvider, spans } = sdk();
  const model = scriptedModel([{ text: JSON.stringify({ unverified: [] }) }]);
  const talk = textTalk({
    environment,
    runtime: createRuntime({
      environment,
      journal: tracedJournal(memoryJournal(), { tracerProvider }),
      price,
    }),
    subagents: { ride: { script: () => say('Booked.') } },
    claimJudge: modelClaimJudge({ model, environment }),
  });
  await talk.start();
  await talk.type('use ride');
  await environment.advance(5_000);
  const { usage } = talk.state();
  // Three calls of the lead agent and the verdict.
  expect(usage.lead).toMatchObject({ inputTokens: 40, cost: 60 });
  await talk.close();
  const names = spans()
    .filter(({ name }) => name.startsWith('chat'))
    .map(({ attributes }) => attributes['gen_ai.agent.name']);
  expect(names.filter((name) => name === 'claim_judge')).toHaveLength(1);
});

test.each(['close', 'suspend'] as const)(
  'reports the usage of fact extraction after %s to the usage hook, with its cost and the total',
  async (how) => {
    const environment = simulatedEnvironment();
    const told: { total: number; used: number | undefined }[] = [];
    const talk = textTalk({
      ...long(),
      environment,
      runtime: createRuntime({ environment, journal: memoryJournal(), price }),
      hooks: {
        onUsage: ({ usage, used }) =>
          told.push({ total: usage.total.totalTokens, used: used.cost }),
      },
    });
    await talk.start();
    await talk.type('one');
    expect(told).toEqual([{ total: 15, used: 15 }]);
    const left = talk.session[how]();
    await environment.advance(60_000);
    await left;
    expect(told).toEqual([
      { total: 15, used: 15 },
      { total: 30, used: 15 },
    ]);
  },
);

test("counts the judge's usage towards the outcome of a program's subagent", async () => {
  const environment = simulatedEnvironment();
  const names: string[] = [];
  const runtime = createRuntime({
    environment,
    price: (call) => {
      names.push(call.name);
      return price(call);
    },
  });
  const model = scriptedModel({
    scripts: [{ when: 'You check', script: () => say(JSON.stringify({ unverified: [] })) }],
    otherwise: () => say('Booked.'),
  });
  const { result } = runSubagent({ name: 'ride', instructions: 'You book rides.' }, 'a ride', {
    model,
    runtime,
    claimJudge: modelClaimJudge({ model, environment }),
  });
  const outcome = await result;
  expect(names).toEqual(['ride', 'claim_judge']);
  expect(outcome.usage).toMatchObject({ inputTokens: 20, outputTokens: 10, cost: 30 });
});

test('counts the delegation model in addition to the voice model and gives it its own span', async () => {
  const environment = simulatedEnvironment();
  const { tracerProvider, spans } = sdk();
  const asked: string[] = [];
  const talk = voiceTalk({
    environment,
    runtime: createRuntime({
      environment,
      journal: tracedJournal(memoryJournal(), { tracerProvider }),
      price: (call) => {
        asked.push(`${call.provider} ${call.name}`);
        return price(call);
      },
    }),
    transport: new FakeTransport(DELEGATES),
    subagents: { report: { script: () => say('Up.') } },
    delegationModel: scriptedModel([calls(['report', {}])]),
  });
  await talk.start();
  await talk.say('how are sales?');
  talk.model().events.next({ type: 'delegation.created', delegationId: 'd1' });
  await environment.settle();
  expect(talk.state().usage.lead).toMatchObject({ inputTokens: 10, outputTokens: 5, cost: 15 });
  expect(asked[0]).toBe('offstage lead');
  await talk.close();
  const chats = spans().filter(
    ({ name, attributes }) => name.startsWith('chat') && attributes['gen_ai.agent.name'] === 'lead',
  );
  expect(chats.map(({ attributes }) => attributes['gen_ai.usage.input_tokens'])).toContain(10);
});

describe('the usage in the `chat` span of a lead agent', () => {
  const TOKENS = {
    'gen_ai.usage.input_tokens': 1_000,
    'gen_ai.usage.output_tokens': 50,
    'gen_ai.usage.cache_read.input_tokens': 800,
    'gen_ai.usage.cache_write.input_tokens': 100,
    'gen_ai.usage.reasoning.output_tokens': 20,
  };

  test('appears in a text session', async () => {
    const { tracerProvider, spans } = sdk();
    const mind = scriptedModel([{ text: 'Hello.' }]);
    const usage = {
      inputTokens: { total: 1_000, noCache: 100, cacheRead: 800, cacheWrite: 100 },
      outputTokens: { total: 50, text: 30, reasoning: 20 },
    };
    const session = new TextSession({
      environment: simulatedEnvironment(),
      journal: tracedJournal(memoryJournal(), { tracerProvider }),
      agents: [{ name: 'lead', instructions: 'You lead.' }],
      model: {
        ...mind,
        async doStream(call: Parameters<typeof mind.doStream>[0]) {
          const { stream } = await mind.doStream(call);
          const counting = new TransformStream<
            LanguageModelV4StreamPart,
            LanguageModelV4StreamPart
          >({
            transform: (part, controller) =>
              controller.enqueue(part.type === 'finish' ? { ...part, usage } : part),
          });
          return { stream: stream.pipeThrough(counting) };
        },
      },
    });
    await session.start();
    for await (const _ of session.send('hi'));
    await session.close();
    const chats = spans().filter(({ name }) => name.startsWith('chat'));
    expect(chats).toHaveLength(1);
    expect(chats[0]?.attributes).toMatchObject({ 'gen_ai.agent.name': 'lead', ...TOKENS });
  });

  test('appears in a voice session, even if the usage is reported after the response', async () => {
    const { tracerProvider, spans } = sdk();
    const environment = simulatedEnvironment();
    const talk = voiceTalk({
      environment,
      runtime: createRuntime({
        environment,
        journal: tracedJournal(memoryJournal(), { tracerProvider }),
      }),
    });
    await talk.start();
    await talk.say('hi');
    const spoken = talk.model().begin('Hello.', 1_000);
    await environment.settle();
    const report = { type: 'usage.reported', cachedInputTokens: 400, raw: null } as const;
    talk.model().events.next({ ...report, inputTokens: 600, outputTokens: 30 });
    await environment.settle();
    spoken.end();
    await environment.settle();
    talk.model().events.next({ ...report, inputTokens: 400, outputTokens: 20 });
    await environment.settle();
    await talk.play(spoken.itemId);
    await talk.close();
    const chats = spans().filter(({ name }) => name.startsWith('chat'));
    expect(chats).toHaveLength(1);
    expect(chats[0]?.attributes).toMatchObject({
      'gen_ai.agent.name': 'lead',
      'gen_ai.usage.input_tokens': 1_000,
      'gen_ai.usage.output_tokens': 50,
      'gen_ai.usage.cache_read.input_tokens': 800,
    });
  });
});
