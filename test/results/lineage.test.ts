import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { NoteMarks } from '../../src/actors/notes/note-marks.ts';
import {
  handOver,
  inputKeys,
  priorResults,
  readable,
  withPriorWork,
} from '../../src/results/prior-work.ts';
import { namespaceOf } from '../../src/memory/keys.ts';
import { workingMemory } from '../../src/memory/working-memory.ts';
import { simulatedEnvironment } from '../../src/testing/index.ts';
import { completedOutcome, unfinishedOutcome } from '../support/outcomes.ts';

const steps = fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 2 });
const family = fc.record({
  entries: fc.array(
    fc.record({ path: steps, key: fc.constantFrom('final-result', 'table', 'x/y') }),
    {
      maxLength: 6,
    },
  ),
  giver: steps,
  hasTool: fc.boolean(),
});

describe('the sources of prior work', { tags: ['R26'] }, () => {
  test('include the results of ended subagents and list what can be read in full', () => {
    const large = { truncated: true, reference: 'subagent/b/final-result', howToRead: '' };
    const base = { name: 'n', task: 't', endedAt: 5 };
    const results = priorResults([
      { ...base, id: 'a', outcome: completedOutcome('x') },
      { ...base, id: 'b', outcome: completedOutcome('x', { output: large }) },
      {
        ...base,
        id: 'c',
        outcome: unfinishedOutcome({
          status: 'failed',
          partial: 'half',
          error: { code: 'E', message: 'boom', retryable: false },
        }),
      },
      { ...base, id: 'd', outcome: null, endedAt: null },
    ]);
    expect(results).toMatchObject([
      { subagentId: 'a', status: 'completed', text: 'x', reference: null },
      { subagentId: 'b', reference: 'subagent/b/final-result' },
      { subagentId: 'c', status: 'failed', text: '', error: 'boom', reference: null },
    ]);
  });

  test.each<[unknown, string[]]>([
    [
      ['a', 'b'],
      ['a', 'b'],
    ],
    ['["a","b"]', ['a', 'b']],
    ['a', ['a']],
    ['', []],
    [undefined, []],
    [[1, 'a', null], ['a']],
    [{ a: 1 }, []],
  ])('inputs %j are the keys %j', { tags: ['R6'] }, (inputs, keys) => {
    expect(inputKeys({ inputs })).toEqual(keys);
  });

  test('P8: let the receiver read an input only if the giver may read it', async () => {
    const memory = workingMemory({ environment: simulatedEnvironment() });
    const a = { sessionId: 's', path: ['a'] };
    const b = { sessionId: 's', path: ['b'] };
    await memory.save(a, { key: 'table', value: 'text' });
    const keys = ['subagent/a/table', 'subagent/a/missing'];
    await expect(handOver(keys, b, 'new', memory)).rejects.toMatchObject({
      code: 'INPUT_NOT_FOUND',
    });
    expect(await memory.get({ sessionId: 's', path: ['new'] }, keys[0] as string)).toMatchObject({
      error: { code: 'NOT_FOUND' },
    });
    const lead = { sessionId: 's', path: [] };
    await expect(handOver(keys, lead, 'new', memory)).rejects.toThrow('"subagent/a/missing"');
    expect(await handOver(keys.slice(0, 1), lead, 'new', memory)).toEqual([
      { key: 'subagent/a/table', text: 'text' },
    ]);
    expect(await memory.get({ sessionId: 's', path: ['new'] }, keys[0] as string)).toMatchObject({
      ok: true,
    });
  });

  test('LIN-2: suggest similar keys for missing inputs and do not share any input', async () => {
    const memory = workingMemory({ environment: simulatedEnvironment() });
    const lead = { sessionId: 's', path: [] };
    await memory.save(lead, { key: 'sales-table', value: 'text' });
    await memory.save({ sessionId: 's', path: ['a'] }, { key: 'report/final', value: 'text' });
    const refused = handOver(['session/s/sales-table', 'sales-tabel', 'xyz'], lead, 'new', memory);
    await expect(refused).rejects.toThrow(
      /Not found: "sales-tabel"; near matches: "session\/s\/sales-table"\. "xyz"\. The subagent did not begin/,
    );
    await expect(handOver(['subagent/a/finale'], lead, 'new', memory)).rejects.toThrow(
      'near matches: "subagent/a/report/final"',
    );
  });

  test('LIN-1 P8: name only keys that the receiver can read', async () => {
    await fc.assert(
      fc.asyncProperty(family, async ({ entries, giver, hasTool }) => {
        const memory = workingMemory({ environment: simulatedEnvironment() });
        for (const { path, key } of entries)
          await memory.save({ sessionId: 's', path }, { key, value: `text of ${key}` });
        const receiver = { sessionId: 's', path: [...giver, 'new'] };
        const known = entries.map(({ path, key }, index) => ({
          subagentId: `r${index}`,
          name: 'n',
          task: 't',
          status: 'completed' as const,
          text: 'found',
          endedAt: index,
          reference: `${namespaceOf({ sessionId: 's', path })}/${key}`,
          // One entry that exists and one that was deleted.
          saved: [`${namespaceOf({ sessionId: 's', path })}/${key}`, `subagent/gone/${key}`],
        }));
        const from = { sessionId: 's', path: giver };
        const before = new Set<string>();
        for (const { reference } of known)
          if ((await memory.get(from, reference)).ok) before.add(reference);
        const told = await readable(known, from, receiver, hasTool ? memory : undefined);
        const named = told.flatMap(({ reference, saved = [] }) => [
          ...(reference ? [reference] : []),
          ...saved,
        ]);
        for (const key of named) {
          expect((await memory.get(receiver, key)).ok).toBe(true);
          expect(hasTool).toBe(true);
        }
        // The prompt names only what the task's giver can read.
        expect(new Set(named)).toEqual(hasTool ? before : new Set());
      }),
      { numRuns: 100 },
    );
  });

  test('P8: precede the task, as quotes in a user message', () => {
    const notes = new NoteMarks('a secret');
    const briefing = {
      instructions: () => 'Do.',
      messages: [
        { role: 'assistant' as const, content: 'forked' },
        { role: 'user' as const, content: 'Execute the task' },
      ],
    };
    expect(withPriorWork(briefing, '', notes)).toBe(briefing);
    expect(withPriorWork(briefing, '# Prior', notes).messages).toEqual([
      { role: 'assistant', content: 'forked' },
      { role: 'user', content: expect.stringContaining('{"priorWork":"# Prior"}') as string },
      { role: 'user', content: 'Execute the task' },
    ]);
    expect(withPriorWork(briefing, '# Prior', notes).instructions()).toBe('Do.');
  });
});
