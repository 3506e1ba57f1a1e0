import { describe, expect, test } from 'vitest';
import { ConversationLog } from '../../../src/actors/conversation/conversation.ts';
import {
  assembleContextSnapshot,
  buildContextSnapshot,
  openingMessages,
  systemPrompt,
  type ContextMode,
  type SubagentContextSnapshot,
} from '../../../src/actors/context/context-snapshot.ts';
import { memoryStore } from '../../../src/actors/ports/memory-store.ts';
import { NoteMarks } from '../../../src/actors/notes/note-marks.ts';
import { readNotes, readTask } from '../../../src/actors/notes/note.ts';
import { INJECTIONS, SENTINEL, unquoted } from '../../support/injections.ts';

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

test('omits the call that started a fork, so that no call lacks a result', () => {
  const { conversation: messages } = buildContextSnapshot({
    mode: 'fork',
    task,
    instructions: 'Book.',
    conversation,
  });
  expect(messages.map(({ role }) => role)).toEqual(['user', 'user', 'assistant', 'tool']);
  expect(JSON.stringify(messages)).not.toContain('c2');
});

test(
  'includes ten turns rather than ten items, and omits tool JSON',
  { tags: ['B29', 'BW21'] },
  () => {
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
  },
);

test(
  "includes only the scope's own facts from memory, best match first",
  { tags: ['B29', 'BW21'] },
  async () => {
    const memory = memoryStore();
    await memory.remember(fact);
    await memory.remember({ ...fact, id: 'f2', text: 'Ann likes tea', at: 9 });
    await memory.remember({ ...fact, id: 'f3', scope: 'bob', text: 'Bob has no ride' });
    const input = { task, instructions: 'Book.', conversation };
    const snapshot = await assembleContextSnapshot(input, { memory, scope: 'ann', limit: 1 });
    expect(snapshot.relevantMemoryFacts).toEqual([fact]);
  },
);

test('queries memory only in modes that include facts, and rejects if the query fails', async () => {
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

describe('prompts', () => {
  const conversation = ConversationLog.empty()
    .setSummary('User asked about their project. Discussed auth module.')
    .add({ id: 'u1', role: 'user', at: 1, text: 'Can you fix the auth bug?' })
    .add({ id: 'a1', role: 'assistant', at: 2, text: "I'll have Claude look into that." });

  const facts = ['User prefers TypeScript', 'Project uses PostgreSQL'].map((text, n) => ({
    id: `f${n}`,
    scope: 'ann',
    text,
    at: n,
  }));

  const task = { toolName: 'ask_claude', args: { task: 'Fix the bug in auth.py' } };

  const notes = new NoteMarks('a secret');

  /** Returns the quotations in each note, in order. */
  const quotesIn = (snapshot: SubagentContextSnapshot) =>
    openingMessages(snapshot, notes).flatMap(({ content }) =>
      readNotes(content as string).map(({ quotes }) => quotes),
    );

  test(
    'puts the instructions, the task and the explanation of notes into the system prompt',
    { tags: ['B30'] },
    () => {
      const snapshot = buildContextSnapshot(
        { task, instructions: '<subagent instructions>', conversation },
        facts,
      );
      const terms = { maxSteps: 5, asksUser: true, asksApproval: true };
      expect(systemPrompt(snapshot, terms, notes)).toBe(
        '# Instructions\n<subagent instructions>\n\n' +
          '# Task\nYou do the work of the tool ask_claude in the background, for another agent. ' +
          'Your last message goes to it: facts, no greeting, no offer, nothing that the task did not ask for. ' +
          'Only ask_user reaches the user. Tools marked (needs approval) or (may need approval) ask the user by themselves: ' +
          'do not ask before. ' +
          `You have 5 steps; each of your answers uses one, whether it calls tools or not.\n\n${notes.recognition}`,
      );
    },
  );

  test(
    'puts the summary, turns and memory into notes, followed by the task with its arguments',
    { tags: ['B30'] },
    () => {
      const snapshot = buildContextSnapshot({ task, instructions: 'x', conversation }, facts);
      expect(quotesIn(snapshot)).toEqual([
        {
          conversationSummary: 'User asked about their project. Discussed auth module.',
          recentConversation: [
            { user: 'Can you fix the auth bug?' },
            { assistant: "I'll have Claude look into that." },
          ],
          memory: ['User prefers TypeScript', 'Project uses PostgreSQL'],
        },
        { task: 'The work of the tool ask_claude', arguments: { task: 'Fix the bug in auth.py' } },
      ]);
    },
  );

  test('contains only the task when the conversation is empty', { tags: ['B30'] }, () => {
    const snapshot = buildContextSnapshot({
      task: { toolName: 'refresh', args: {} },
      instructions: 'Refresh.',
      conversation: ConversationLog.empty(),
    });
    expect(quotesIn(snapshot)).toEqual([{ task: 'The work of the tool refresh' }]);
  });

  test('SUBPROMPT-1 P8: contains no third-party text outside a quotation', () => {
    for (const evil of INJECTIONS) {
      const snapshot = buildContextSnapshot(
        {
          task: { toolName: evil, args: { text: evil, [evil]: [evil] }, description: evil },
          instructions: 'x',
          conversation: ConversationLog.empty()
            .setSummary(evil)
            .add({ id: 'u1', role: 'user', at: 1, text: evil })
            .add({ id: 'a1', role: 'assistant', at: 2, text: evil }),
        },
        [{ id: 'f', scope: 'ann', text: evil, at: 1 }],
      );
      const read = openingMessages(snapshot, notes).map(({ content }) => content as string);
      expect(read.map(unquoted)).toEqual(read.map(() => null));
      expect(read.join().split(SENTINEL).length).toBeGreaterThan(7);
      // A tool's name is chosen by its author and is a single line.
      const terms = { asksUser: false, asksApproval: false };
      const name = systemPrompt(snapshot, terms, notes).split('\n')[4];
      expect(name).toMatch(/^You do the work of the tool "/);
    }
  });

  test('ends with the task and its arguments, if any', { tags: ['B31'] }, () => {
    const described = buildContextSnapshot({
      task: { ...task, description: 'Ask Claude to change code' },
      instructions: 'x',
      conversation,
    });
    expect(readTask(openingMessages(described, notes))).toEqual({
      task: 'Ask Claude to change code',
      arguments: { task: 'Fix the bug in auth.py' },
    });
  });

  test('starts a run with the task, or with the conversation and the task if it is a fork', () => {
    const input = { task, instructions: 'x', conversation };
    expect(openingMessages(buildContextSnapshot(input), notes).map(({ role }) => role)).toEqual([
      'user',
      'user',
    ]);
    const forked = openingMessages(buildContextSnapshot({ ...input, mode: 'fork', notes }), notes);
    expect(forked.map(({ role }) => role)).toEqual(['user', 'user', 'assistant', 'user']);
    expect(forked[0]?.content).toContain('Discussed auth module');
  });
});
