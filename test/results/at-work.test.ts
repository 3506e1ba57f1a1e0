// Working memory, claims, failure records and lineage, as subagents use them.

import { describe, expect, test } from 'vitest';
import { createSubagentService } from '../../src/actors/subagents/subagent-service.ts';
import { THE_LEAD } from '../../src/actors/contracts/service-types.ts';
import { isLargeOutput } from '../../src/memory/large-output.ts';
import { createWorkingMemoryToolset } from '../../src/memory/toolset.ts';
import { workingMemory } from '../../src/memory/working-memory.ts';
import { createRuntime, type Outcome, type SubagentConfig } from '../../src/index.ts';
import {
  scriptedModel,
  simulatedEnvironment,
  type Script,
  type ScriptedPrompt,
} from '../../src/testing/index.ts';
import { calls, never, resultsIn, say, simpleTool, steps } from '../support/subagent-runs.ts';

function setUp(scripts: Record<string, Script>, options: object = {}) {
  const environment = simulatedEnvironment();
  const memory = workingMemory({ environment });
  const prompts: ScriptedPrompt[] = [];
  const model = scriptedModel({
    scripts: Object.entries(scripts).map(([when, script]) => ({
      when,
      script: (prompt) => {
        prompts.push(prompt);
        return script(prompt);
      },
    })),
  });
  const service = createSubagentService({
    runtime: createRuntime({ environment }),
    model,
    workingMemory: memory,
    ...options,
  });
  const spawn = (name: string, config: Partial<SubagentConfig> = {}, args: object = {}): string => {
    const receipt = service.spawn({
      config: { name, instructions: `I am ${name}.`, ...config },
      task: { toolName: name, args: { ...args }, description: `Work of ${name}` },
      caller: THE_LEAD,
    });
    if (receipt.status === 'rejected') throw new Error(receipt.error.message);
    return receipt.subagentId;
  };
  const ended = async (id: string): Promise<Outcome> => {
    const waited = await service.await([id], THE_LEAD, { timeoutMs: 1e9 });
    const outcome = waited.ok ? waited.reports[0]?.outcome : null;
    if (!outcome) throw new Error('it has not ended');
    return outcome;
  };
  const lead = { sessionId: service.id, path: [] };
  return { environment, memory, service, prompts, spawn, ended, lead };
}

describe('working memory in subagents', { tags: ['R35', 'R37'] }, () => {
  test("lets a parent read its child's entries but not a sibling's", async () => {
    let found: unknown[] = [];
    const { memory, spawn, ended, lead } = setUp({
      'I am writer': steps(
        calls(['save_to_working_memory', { key: 'table', value: 'rows' }]),
        say('It is in table.'),
      ),
      'I am reader': steps(
        (prompt) =>
          calls([
            'get_from_working_memory',
            { key: /subagent\/\S+/.exec(JSON.stringify(prompt.prompt))?.[0].replace(/\W+$/, '') },
          ]),
        (prompt) => {
          found = resultsIn(prompt)[0] ?? [];
          return say('Read.');
        },
      ),
    });
    const tools = createWorkingMemoryToolset({ memory });
    const writer = spawn('writer', { tools });
    const outcome = await ended(writer);
    expect(outcome.notes).toEqual([`subagent/${writer}/table`]);
    expect(await memory.get(lead, `subagent/${writer}/table`)).toMatchObject({ ok: true });
    await ended(spawn('reader', { tools }, { key: `subagent/${writer}/table` }));
    expect(found[2]).toMatchObject({ found: false, error: { code: 'NOT_FOUND' } });
  });

  test(
    "lets a nested subagent read its ancestors' entries and write in its own namespace",
    { tags: ['R37'] },
    async () => {
      let read: unknown;
      const { memory, service, spawn, ended, lead } = setUp({
        'I am parent': steps(
          calls(['save_to_working_memory', { key: 'plan', value: 'the plan' }]),
          calls(['start']),
          say('Started.'),
        ),
        'I am child': steps(
          ({ prompt }) =>
            calls(
              [
                'get_from_working_memory',
                { key: /subagent\/\w+\/plan/.exec(JSON.stringify(prompt))?.[0] },
              ],
              ['save_to_working_memory', { key: 'found', value: 'x' }],
            ),
          (prompt) => {
            read = resultsIn(prompt).map(([, , value]) => value);
            return say('Done.');
          },
        ),
      });
      const tools = createWorkingMemoryToolset({ memory });
      const start = simpleTool(async (options) => {
        const { offstage } = (
          options as unknown as { context: { offstage: { subagentId: string } } }
        ).context;
        const receipt = service.spawn({
          config: { name: 'child', instructions: 'I am child.', tools },
          task: {
            toolName: 'child',
            args: { key: `subagent/${offstage.subagentId}/plan` },
            description: 'x',
          },
          caller: offstage,
        });
        if (receipt.status === 'accepted') await service.await([receipt.subagentId], offstage);
        return receipt;
      });
      const parent = spawn('parent', { tools: { ...tools, start } });
      await ended(parent);
      expect(read).toEqual([
        expect.objectContaining({ found: true, text: 'the plan' }),
        expect.objectContaining({ saved: true, key: expect.not.stringContaining(parent) }),
      ]);
      expect(await memory.list(lead)).toMatchObject({ total: 2 });
    },
  );
});

describe('large outputs in subagents', { tags: ['MW9'] }, () => {
  const rows = JSON.stringify(Array.from({ length: 20_000 }, (_, id) => ({ id })));

  test('store a large tool output completely, and show the model an excerpt and then pages', async () => {
    let excerpt: unknown;
    let page: unknown;
    const { memory, spawn, ended, lead } = setUp({
      'I am reader': steps(
        calls(['fetch', {}, 'call/1']),
        (prompt) => {
          excerpt = resultsIn(prompt)[0]?.[2];
          const key = (excerpt as { reference: string }).reference;
          return calls(['get_from_working_memory', { key, offset: 100_000 }]);
        },
        (prompt) => {
          page = resultsIn(prompt)[0]?.[2];
          return say('Read it.');
        },
      ),
    });
    const id = spawn('reader', {
      tools: { fetch: simpleTool(() => rows), ...createWorkingMemoryToolset({ memory }) },
    });
    const outcome = await ended(id);
    const reference = `subagent/${id}/outputs/fetch-call_1`;
    expect(excerpt).toMatchObject({
      truncated: true,
      originalBytes: rows.length,
      reference,
      howToRead: expect.stringContaining('get_from_working_memory'),
    });
    expect(JSON.stringify(excerpt).length).toBeLessThan(5000);
    expect(page).toMatchObject({ found: true, offset: 100_000, totalChars: rows.length });
    expect(rows).toContain((page as { text: string }).text);
    expect(outcome.toolLedger[0]?.output).toEqual(excerpt);
    expect(await memory.get(lead, reference)).toMatchObject({ entry: { text: rows } });
  });

  test('store a large toModelOutput result completely', async () => {
    let read: unknown;
    const { spawn, ended } = setUp({
      'I am reader': steps(calls(['fetch', {}, 'c1']), (prompt) => {
        read = resultsIn(prompt)[0]?.[2];
        return say('Read it.');
      }),
    });
    const fetch = simpleTool(() => 'small', {
      toModelOutput: () => ({ type: 'text', value: 'x'.repeat(50_000) }),
    });
    const id = spawn('reader', { tools: { fetch } });
    const { toolLedger } = await ended(id);
    expect(toolLedger[0]?.output).toBe('small');
    expect(read).toMatchObject({ reference: `subagent/${id}/outputs/fetch-c1-read` });
  });

  test('get cut after 256 KB, with a remark, if there is no working memory', async () => {
    let read: unknown;
    const { spawn, ended } = setUp(
      {
        'I am reader': steps(calls(['fetch']), (prompt) => {
          read = resultsIn(prompt)[0]?.[2];
          return say('Read it.');
        }),
      },
      { workingMemory: undefined },
    );
    await ended(spawn('reader', { tools: { fetch: simpleTool(() => 'x'.repeat(300_000)) } }));
    expect(read).toMatchObject({ truncated: true, originalBytes: 300_000, reference: null });
  });

  test('give every reader a large result as a summary, an excerpt and a reference', async () => {
    const report = `# Report\n\nIt is long. ${'A line of it. '.repeat(4000)}`;
    const { service, spawn, ended } = setUp({ 'I am writer': () => say(report) });
    const id = spawn('writer');
    const outcome = await ended(id);
    expect(outcome.summary).toMatch(/^Report\. It is long\./);
    expect(isLargeOutput(outcome.output)).toBe(true);
    const checked = service.check(id, THE_LEAD);
    expect(checked).toMatchObject({
      report: { result: { truncated: true, reference: `subagent/${id}/final-result` } },
    });
  });
});

describe('claims in subagents', { tags: ['R27'] }, () => {
  test("pass or fail according to a tool's declared effects", async () => {
    const { spawn, ended } = setUp({
      'I am clerk': steps(calls(['post_letter']), say('I sent the email to Anna.')),
    });
    const post = (effects: string[]) => ({
      tools: { post_letter: simpleTool(() => 'done', { effects }) },
    });
    const lying = await ended(spawn('clerk', post(['letter.posted'])));
    expect(lying.verification).toMatchObject({ verified: true });
    const honest = await ended(spawn('clerk', post(['file.saved'])));
    expect(honest).toMatchObject({
      status: 'completed',
      verification: {
        verified: false,
        unverified: [{ claim: 'I sent the email to Anna.', reason: 'no_call' }],
      },
    });
  });
});

describe('failures in subagents', { tags: ['R25'] }, () => {
  test('leave a record of a timeout that occurs during a tool call', async () => {
    const { environment, memory, spawn, ended, lead } = setUp({
      'I am slow': steps({ text: 'I look.', calls: [{ name: 'hang', input: { to: 'LIS' } }] }),
    });
    const id = spawn('slow', { timeout: 1000, tools: { hang: simpleTool(never) } });
    const ending = ended(id);
    await environment.advance(1000);
    const { diagnostics, toolLedger } = await ending;
    expect(toolLedger[0]?.status).toBe('in_flight');
    expect(diagnostics).toMatchObject({
      reason: 'timeout',
      steps: 1,
      toolCalls: 1,
      lastAssistantText: 'I look.',
      lastTool: { name: 'hang', args: '{"to":"LIS"}', status: 'in_flight', settledAt: null },
      limits: { maxSteps: 5, timeoutMs: 1000 },
      reference: `subagent/${id}/failure-details`,
    });
    expect(await memory.get(lead, `subagent/${id}/failure-details`)).toMatchObject({
      entry: { value: { reason: 'timeout', description: 'Work of slow' } },
    });
  });

  test('report a subagent immediately as unverified if it is killed during verification', async () => {
    const { environment, service, spawn, ended } = setUp(
      { 'I am done': () => say('Done.') },
      { claimJudge: () => new Promise(() => {}), graceMs: 10 },
    );
    const ending = ended(spawn('done'));
    await environment.settle();
    expect(service.list(THE_LEAD)).toMatchObject([{ state: 'running', outcome: null }]);
    const closing = service.close();
    await environment.advance(10);
    expect(await ending).toMatchObject({ status: 'completed', text: 'Done.' });
    await closing;
  });
});

describe('lineage in subagents', { tags: ['R26'] }, () => {
  test('gives a new subagent earlier results and its inputs in one user message', async () => {
    const { memory, spawn, ended, lead, prompts } = setUp({
      'I am scout': () => say('Three flights: A, B, C.'),
      'I am broken': () => {
        throw new Error('boom');
      },
      'I am booker': () => say('Done.'),
    });
    await ended(spawn('scout'));
    await ended(spawn('broken', { retry: { maxAttempts: 1 } }));
    await memory.save(lead, { key: 'budget', value: '200 euros' });
    const calls = prompts.length;
    const refused = await ended(spawn('booker', { lineage: true }, { inputs: ['budgte'] }));
    expect(prompts).toHaveLength(calls);
    expect(JSON.stringify(refused)).toMatch(/near matches: .*budget/);
    await ended(spawn('booker', { lineage: true }, { inputs: ['budget'] }));
    const [system, block, task] = prompts.at(-1)?.prompt ?? [];
    expect(JSON.stringify(system)).not.toContain('Three flights');
    const text = JSON.stringify(block);
    expect(text).toContain('# Prior Work in This Conversation');
    expect(text).toMatch(/session\/\w+\/budget:\\\\n {2}200 euros/);
    expect(text).toContain('Three flights: A, B, C.');
    expect(text).toContain('did not complete');
    expect(JSON.stringify(task)).toContain('Execute the quoted task');
    await ended(spawn('booker'));
    expect(JSON.stringify(prompts.at(-1)?.prompt)).not.toContain('Prior Work');
  });
});
