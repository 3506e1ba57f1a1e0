import { expect, test } from 'vitest';
import { ConversationLog } from '../../../src/actors/conversation/conversation.ts';
import {
  assembleContextSnapshot,
  buildContextSnapshot,
  type ContextMode,
} from '../../../src/actors/context/context-snapshot.ts';
import { memoryStore } from '../../../src/actors/context/memory-store.ts';

const task = { toolName: 'book_ride', args: { destination: 'airport' } };

const conversation = ConversationLog.empty()
  .add({ id: 'u0', role: 'user', at: 0, text: 'Hello.' })
  .setSummary('They said hello.')
  .add({ id: 'u1', role: 'user', at: 1, text: 'Book me a ride.' })
  .toolCall({ callId: 'c1', toolName: 'weather', args: {}, at: 2 })
  .toolResult({ callId: 'c1', at: 3, value: 'sunny' })
  .toolCall({ callId: 'c2', toolName: 'book_ride', args: task.args, at: 4 });

const fact = { id: 'f1', scope: 'ann', text: 'Ann takes the cheapest ride', at: 1 };

test.each([
  ['snapshot', true, 1, 1, 0],
  ['summary', true, 0, 0, 0],
  ['recent', false, 1, 0, 0],
  ['fork', false, 0, 1, 4],
  ['none', false, 0, 0, 0],
] as const satisfies [ContextMode, boolean, number, number, number][])(
  'mode %s',
  (mode, summary, turns, facts, messages) => {
    const input = { mode, task, instructions: 'Book.', conversation };
    const snapshot = buildContextSnapshot(input, [fact]);
    expect(snapshot.conversationSummary !== null).toBe(summary);
    expect(snapshot.recentTurns).toHaveLength(turns);
    expect(snapshot.relevantMemoryFacts).toHaveLength(facts);
    expect(snapshot.conversation).toHaveLength(messages);
    expect(snapshot.agentInstructions).toBe('Book.');
  },
);

test('a fork has no dangling call: the one that started it is left out', () => {
  const { conversation: messages } = buildContextSnapshot({
    mode: 'fork',
    task,
    instructions: 'Book.',
    conversation,
  });
  expect(messages.map(({ role }) => role)).toEqual(['user', 'user', 'assistant', 'tool']);
  expect(JSON.stringify(messages)).not.toContain('c2');
});

test('[B29 BW21] ten turns, not ten items, and no JSON of tools', () => {
  let long = ConversationLog.empty();
  for (let n = 0; n < 24; n += 1) {
    long = long
      .add({ id: `m${n}`, role: n % 2 ? 'assistant' : 'user', at: n, text: `line ${n}` })
      .toolCall({ callId: `c${n}`, toolName: 't', args: { blob: 'x'.repeat(1_000) }, at: n });
  }
  const { recentTurns } = buildContextSnapshot({ task, instructions: 'x', conversation: long });
  expect(recentTurns.map(({ content }) => content)).toEqual(
    Array.from({ length: 10 }, (_, n) => `line ${14 + n}`),
  );
});

test('[B29 BW21] the facts come from memory, of this scope, those that fit the task first', async () => {
  const memory = memoryStore();
  await memory.remember(fact);
  await memory.remember({ ...fact, id: 'f2', text: 'Ann likes tea', at: 9 });
  await memory.remember({ ...fact, id: 'f3', scope: 'bob', text: 'Bob has no ride' });
  const input = { task, instructions: 'Book.', conversation };
  const snapshot = await assembleContextSnapshot(input, { memory, scope: 'ann', limit: 1 });
  expect(snapshot.relevantMemoryFacts).toEqual([fact]);
});

test('memory is not asked in a mode without facts, and its failure is not hidden', async () => {
  const broken = {
    ...memoryStore(),
    facts: async () => {
      throw new Error('no memory');
    },
  };
  const input = { task, instructions: 'Book.', conversation };
  const source = { memory: broken, scope: 'ann' };
  await expect(assembleContextSnapshot({ ...input, mode: 'none' }, source)).resolves.toMatchObject({
    relevantMemoryFacts: [],
  });
  await expect(assembleContextSnapshot(input, source)).rejects.toThrow('no memory');
  await expect(assembleContextSnapshot(input)).resolves.toBeDefined();
});
