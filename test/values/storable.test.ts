// STORE-1 to STORE-3: texts from models, providers, tools and users are stored exactly as the session uses them.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { nodeEnvironment } from '../../src/adapters/node/index.ts';
import { sqliteJournal } from '../../src/adapters/sqlite-journal/index.ts';
import { storable, storableId, storableText } from '../../src/values/storable.ts';
import { defineTool, memoryJournal, TextSession } from '../../src/index.ts';
import { createSubagentService } from '../../src/entries/subagents.ts';
import { createRuntime } from '../../src/actors/admission/runtime.ts';
import { simulatedEnvironment } from '../../src/testing/index.ts';
import { hostileStory } from '../support/hostile-story.ts';
import { chance } from '../support/mutated-entries.ts';
import { calls, say, simpleTool, steps } from '../support/subagent-runs.ts';
import { agentOf, castOf, textTalk } from '../support/text-talk.ts';
import { voiceTalk } from '../support/voice-talk.ts';

const random = chance(7);
const some = (): string =>
  Array.from({ length: Math.floor(random() * 12) }, () =>
    String.fromCharCode([0, 0xd800, 0xdc00, 0xdfff, 0xfffd, 0x41, 0xe9][Math.floor(random() * 7)]!),
  ).join('');
const texts = Array.from({ length: 2000 }, some);

test('STORE-1, STORE-2: makes strings well-formed for good, and leaves storable ones unchanged', () => {
  for (const text of texts) {
    const stored = storableText(text);
    expect(stored.isWellFormed() && !stored.includes('\0')).toBe(true);
    expect(storableText(stored)).toBe(stored);
    expect(storableId(storableId(text))).toBe(storableId(text));
    expect(stored).toHaveLength(text.length);
  }
  expect(storableText('🚕 é\n')).toBe('🚕 é\n');
  const value = { a: ['🚕', { b: null, c: 1 }], at: new Date(0) };
  expect(storable(value)).toBe(value);
});

test('STORE-3: keeps different ids distinct, even if they are long', () => {
  const ids = new Set([...texts, ...texts.map((text) => `${'x'.repeat(400)}${text}`)]);
  expect(new Set([...ids].map(storableId)).size).toBe(ids.size);
  for (const id of ids) expect(storableId(id).length).toBeLessThanOrEqual(256);
});

test('converts keys and texts at any depth and handles `__proto__`, cycles and big integers', () => {
  const circle: Record<string, unknown> = { name: 'a\0' };
  circle['self'] = circle;
  expect(storable(circle)).toEqual({ name: 'a\uFFFD', self: '[circular]' });
  const proto = JSON.parse('{"__proto__":{"x":"\\u0000"},"k\\ud800":[1,"\\udc00"]}') as object;
  expect(JSON.stringify(storable(proto))).toBe(
    '{"__proto__":{"x":"\uFFFD"},"k\uFFFD":[1,"\uFFFD"]}',
  );
  let deep: unknown = 1;
  for (let level = 0; level < 100_000; level += 1) deep = [deep];
  expect(JSON.stringify(storable(deep))).toContain('[nested too deeply]');
  expect(storable({ n: 12n })).toEqual({ n: '12' });
});

describe('the same story in different journals', () => {
  test(
    'has the same state in memory and in SQLite, both live and after a reload',
    { timeout: 120_000 },
    async () => {
      for (let seed = 1; seed <= 12; seed += 1) {
        const folder = mkdtempSync(join(tmpdir(), 'offstage-hostile-'));
        const environment = nodeEnvironment();
        const sqlite = sqliteJournal({ path: join(folder, 'a.journal'), environment });
        try {
          const inMemory = await hostileStory(memoryJournal({ keep: Infinity }), seed);
          expect(await hostileStory(flushed(sqlite), seed)).toEqual(inMemory);
        } finally {
          sqlite.close();
          rmSync(folder, { recursive: true });
        }
      }
    },
  );
});

/** Writes at once, because the story's time is simulated. */
function flushed(journal: ReturnType<typeof sqliteJournal>) {
  return {
    ...journal,
    append(entry: Parameters<typeof journal.append>[0]) {
      const appended = journal.append(entry);
      journal.read({ scope: '' });
      return appended;
    },
  };
}

test("throws INVALID_OPTION for an app's id that no journal can store", () => {
  const environment = simulatedEnvironment();
  const model = castOf({});
  for (const id of ['a\0b', '\uD800', 'x'.repeat(201), '']) {
    expect(
      () => new TextSession({ environment, model, agents: [agentOf({})], sessionId: id }),
    ).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }));
    expect(() =>
      createSubagentService({ runtime: createRuntime({ environment }), model, id }),
    ).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }));
  }
});

test("CONNECTION-1: answers a call with the transport's original id", async () => {
  const talk = voiceTalk({
    tools: [
      defineTool({
        name: 'look',
        description: 'Looks',
        parameters: z.looseObject({}),
        execute: () => 'seen',
      }),
    ],
  });
  await talk.start();
  const callId = 'c\0\uD800';
  talk.model().events.next({
    type: 'tool.called',
    callId,
    name: 'look',
    arguments: '{}',
    responseId: 'r\0',
  });
  await talk.environment.settle();
  expect(talk.model().commands.find(({ type }) => type === 'tool.answer')).toMatchObject({
    callId,
  });
  expect(talk.errors).toEqual([]);
  await talk.close();
});

describe('STORE-3: two calls whose ids differ only in unstorable characters', () => {
  const IDS = ['c\0', 'c\uD800', 'c\uDC00', `${'c'.repeat(300)}1`, `${'c'.repeat(300)}2`];

  test('remain separate for a text lead agent', async () => {
    const ran: unknown[] = [];
    const journal = memoryJournal();
    const environment = simulatedEnvironment();
    const talk = textTalk({
      environment,
      runtime: createRuntime({ environment, journal }),
      lead: ({ user, prompt }) =>
        prompt.at(-1)?.role !== 'tool' && user === 'go'
          ? { calls: IDS.map((id, at) => ({ name: 'look', input: JSON.stringify({ at }), id })) }
          : { text: 'Done.' },
      tools: [
        defineTool({
          name: 'look',
          description: 'Looks',
          parameters: z.object({ at: z.number() }),
          execute: ({ at }) => void ran.push(at),
        }),
      ],
    });
    await talk.start();
    await talk.type('go');
    expect(new Set(ran)).toEqual(new Set([0, 1, 2, 3, 4]));
    expect(ran).toHaveLength(IDS.length);
    const called = journal
      .read()
      .flatMap(({ event }) => (event.type === 'tool.called' ? event : []));
    const ids = called.map((event) => (event as unknown as { callId: string }).callId);
    expect(new Set(ids).size).toBe(IDS.length);
    for (const id of ids) expect(storableId(id)).toBe(id);
    await talk.close();
  });

  test('remain separate for a subagent', async () => {
    const ran: string[] = [];
    const talk = textTalk({
      subagents: {
        work: {
          script: steps(
            calls(...IDS.map((id, at): [string, unknown, string] => ['look', { at }, id])),
            say('Done.'),
          ),
          config: {
            tools: { look: simpleTool(({ toolCallId }) => ran.push(toolCallId)) },
          },
        },
      },
    });
    await talk.start();
    await talk.type('use work');
    expect(new Set(ran).size).toBe(IDS.length);
    for (const id of ran) expect(storableId(id)).toBe(id);
    await talk.close();
  });
});
