// A long conversation is summarised, remembered, and passed on after a reconnect.

import { describe, expect, test } from 'vitest';
import { modelDistiller, type Summarise, memoryStore } from '../../src/entries/memory.ts';
import { ConfigurationError, TextSession } from '../../src/index.ts';
import { scriptedModel } from '../../src/testing/index.ts';
import { say } from '../support/subagent-runs.ts';
import { textTalk } from '../support/text-talk.ts';
import { voiceTalk } from '../support/voice-talk.ts';

const limits = { maxItems: 12, maxChars: 2000, maxItemChars: 500 };
const summarise: Summarise = async ({ items, previous }) =>
  `${previous === null ? '' : 'More. '}They said ${items.length} things.`;

describe('a long conversation', { tags: ['B66', 'BW10', 'BW31'] }, () => {
  test('shrinks to a summary between turns, which the model reads together with the newer messages', async () => {
    const prompts: string[] = [];
    const { start, type, events } = textTalk({
      conversation: { limits, summarise, summariseAbove: 0.5, keepItems: 2 },
      onModelCall: (_, { prompt }) => prompts.push(JSON.stringify(prompt)),
    });
    await start();
    for (const word of ['one', 'two', 'three', 'four']) await type(word);
    expect(events.filter((event) => event.type === 'conversation.summarised')).toEqual([
      { type: 'conversation.summarised', items: 4, summary: 'They said 4 things.' },
    ]);
    expect(prompts[3]).toContain(String.raw`{\"summary\":\"They said 4 things.\"}`);
    expect(prompts[3]).not.toContain('You said: two');
    expect(prompts[3]).toContain('You said: three');
  });

  test("uses the session's model for summaries unless the app provides another one or disables them", async () => {
    const model = scriptedModel({
      scripts: [{ when: 'You write the summary', script: () => say('In short.') }],
      otherwise: ({ user }) => say(`You said: ${user}`),
    });
    const summaries: string[] = [];
    for (const own of [{}, { summarise: false as const }]) {
      const session = new TextSession({
        agents: [{ name: 'lead', instructions: 'You lead.' }],
        model,
        conversation: { limits, summariseAbove: 0.5, keepItems: 2, ...own },
      });
      session.events.subscribe((event) => {
        if (event.type === 'conversation.summarised') summaries.push(event.summary);
      });
      await session.start();
      for (const word of ['one', 'two', 'three', 'four']) for await (const _ of session.send(word));
      await session.close();
    }
    expect(summaries).toEqual(['In short.']);
  });

  test(
    'gives a new connection the summary, followed by the newer messages',
    { tags: ['B71', 'BW9'] },
    async () => {
      const talk = voiceTalk({
        conversation: { limits, summarise, summariseAbove: 0.5, keepItems: 2 },
      });
      const { start, say: utter, speak, model, environment } = talk;
      await start();
      for (const word of ['one', 'two', 'three', 'four']) {
        await utter(word);
        await speak(`You said: ${word}`);
      }
      model().drop();
      await environment.advance(2000);
      const told = model()
        .of('message.add')
        .map(({ text }) => text);
      expect(told[1]).toMatch(/^\[data \S+\] \{"summary":"(More\. )?They said \d things\."\}$/);
      expect(told).toContain('You said: four');
      expect(told).not.toContain('one');
    },
  );

  test('refuses conflicting options', () => {
    const make = (conversation: object) => () =>
      new TextSession({
        agents: [{ name: 'lead', instructions: '' }],
        model: scriptedModel([]),
        conversation,
      });
    expect(make({ summariseAbove: 1 })).toThrow(ConfigurationError);
    expect(make({ keepTurns: 3 })).toThrow('keepTurns');
    expect(make({ limits: { maxItems: 0 } })).toThrow('maxItems');
    expect(make({ distil: async () => [] })).toThrow('expected `memory` to be a store');
  });
});

describe('memory', { tags: ['B7', 'B62', 'BW21'] }, () => {
  test('extracts facts for agents during the conversation and at its end', async () => {
    const memory = memoryStore();
    const model = scriptedModel({
      scripts: [],
      otherwise: ({ user }) =>
        say(
          JSON.stringify({
            facts: user.includes('windows') ? [{ text: 'Prefers window seats' }] : [],
          }),
        ),
    });
    const { start, type, session, environment, events } = textTalk({
      memory,
      memoryScope: 'anna',
      conversation: { distil: modelDistiller({ model }), distilEveryTurns: 2 },
      agent: {
        onTurnCompleted: async (context) => {
          for (const { text } of await context.getMemoryFacts()) seen.push(text);
        },
      },
    });
    const seen: string[] = [];
    await start();
    await type('I like windows');
    expect(await memory.facts({ scope: 'anna', limit: 9 })).toEqual([]);
    await type('and trains');
    expect(events.find((event) => event.type === 'memory.distilled')).toMatchObject({
      facts: [{ text: 'Prefers window seats', scope: 'anna', source: session.id }],
    });
    await type('bye');
    expect(seen).toEqual(['Prefers window seats']);
    const closed = session.close();
    await environment.advance(60_000);
    await closed;
    expect(await memory.facts({ scope: 'anna', limit: 9 })).toHaveLength(1);
    expect(environment.pendingTimers).toBe(0);
  });

  test('reports failing upkeep, continues, and does not delay close()', async () => {
    const { start, type, said, errors, session, environment } = textTalk({
      memory: memoryStore(),
      conversation: { distil: () => new Promise(() => {}), distilEveryTurns: 1 },
    });
    await start();
    await type('hello');
    await type('are you there?');
    expect(said()).toHaveLength(2);
    await environment.advance(30_000);
    expect(errors).toEqual([
      { error: expect.objectContaining({ code: 'UPKEEP_TIMEOUT' }), where: 'memory' },
    ]);
    const closed = session.close();
    await environment.advance(60_000);
    await closed;
    expect(environment.pendingTimers).toBe(0);
  });
});
