import { describe, expect, test } from 'vitest';
import {
  handOver,
  inputKeys,
  priorResults,
  withPriorWork,
} from '../../../src/actors/lineage/lineage.ts';
import type { Outcome } from '../../../src/actors/subagent/outcome.ts';
import { workingMemory } from '../../../src/actors/working-memory/working-memory.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';

const outcome = (more: Partial<Outcome>): Outcome => ({
  status: 'completed',
  output: 'x',
  text: 'x',
  steps: 1,
  usage: { inputTokens: 0, outputTokens: 0, totalTokens: 0 },
  toolLedger: [],
  ...more,
});

describe('[R26] where the prior work comes from', () => {
  test('results of those that have ended, with what can be read in full', () => {
    const large = { truncated: true, reference: 'subagent/b/final-result', howToRead: '' };
    const base = { name: 'n', task: 't', endedAt: 5 };
    const results = priorResults([
      { ...base, id: 'a', outcome: outcome({}) },
      { ...base, id: 'b', outcome: outcome({ output: large }) },
      {
        ...base,
        id: 'c',
        outcome: outcome({
          status: 'failed',
          text: '',
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
  ])('[R6] inputs %j are the keys %j', (inputs, keys) => {
    expect(inputKeys({ inputs })).toEqual(keys);
  });

  test('P8: an input is read in the name of its giver, and can then be read by its receiver', async () => {
    const memory = workingMemory({ environment: simulatedEnvironment() });
    const a = { sessionId: 's', path: ['a'] };
    const b = { sessionId: 's', path: ['b'] };
    await memory.save(a, { key: 'table', value: 'text' });
    const keys = ['subagent/a/table', 'subagent/a/missing'];
    expect(await handOver(keys, b, 'new', memory)).toEqual([]);
    expect(await memory.get({ sessionId: 's', path: ['new'] }, keys[0] as string)).toMatchObject({
      error: { code: 'NOT_FOUND' },
    });
    expect(await handOver(keys, { sessionId: 's', path: [] }, 'new', memory)).toEqual([
      { key: 'subagent/a/table', text: 'text' },
    ]);
    expect(await memory.get({ sessionId: 's', path: ['new'] }, keys[0] as string)).toMatchObject({
      ok: true,
    });
  });

  test('P8: the block comes before the task, as a user message', () => {
    const briefing = {
      instructions: 'Do.',
      messages: [
        { role: 'assistant' as const, content: 'forked' },
        { role: 'user' as const, content: 'Execute the task' },
      ],
    };
    expect(withPriorWork(briefing, '')).toBe(briefing);
    expect(withPriorWork(briefing, '# Prior').messages).toEqual([
      { role: 'assistant', content: 'forked' },
      { role: 'user', content: '# Prior' },
      { role: 'user', content: 'Execute the task' },
    ]);
    expect(withPriorWork(briefing, '# Prior').instructions).toBe('Do.');
  });
});
