import { describe, expect, test } from 'vitest';
import {
  settleOutcome,
  type EndedRun,
  type OutcomeSettings,
} from '../../src/results/outcome-processor.ts';
import type { WorkingMemory } from '../../src/actors/ports/working-memory.ts';
import type { Outcome } from '../../src/actors/contracts/outcome.ts';
import { isLargeOutput } from '../../src/memory/large-output.ts';
import { workingMemory } from '../../src/memory/working-memory.ts';
import { simulatedEnvironment } from '../../src/testing/index.ts';

const owner = { sessionId: 's', path: ['sub_1'] };
const run: EndedRun = {
  owner,
  tools: {},
  readWith: null,
  description: 'Find a flight',
  startedAt: 0,
  endedAt: 10,
  maxSteps: 5,
  timeoutMs: 1000,
  progress: [],
};
const completed: Outcome = {
  status: 'completed',
  output: 'Found it.',
  text: 'Found it.',
  steps: 1,
  usage: { inputTokens: 0, outputTokens: 0, totalTokens: 0 },
  toolLedger: [],
};
const failed: Outcome = {
  ...completed,
  status: 'failed',
  output: null,
  text: '',
  partial: 'Half of it.',
  error: { code: 'MODEL_ERROR', message: 'boom', retryable: false },
};

function setUp(options: Partial<OutcomeSettings> = {}) {
  const environment = simulatedEnvironment();
  const memory = workingMemory({ environment });
  const reports: string[] = [];
  const settings: OutcomeSettings = {
    memory,
    maxInlineBytes: 2000,
    environment,
    report: (error, where) => reports.push(`${where}: ${(error as Error).message}`),
    ...options,
  };
  const settle = (outcome: Outcome, more: Partial<EndedRun> = {}) =>
    settleOutcome(outcome, { ...run, ...more }, settings);
  return { environment, memory, reports, settle };
}

describe('claims in an outcome', { tags: ['R27'] }, () => {
  test('SETTLE-OUTCOME-2: leave a report without claims unchanged and do not wait', () => {
    const { settle } = setUp({ memory: undefined });
    expect(settle(completed)).toBe(completed);
  });

  test('need a matching ledger entry or an effect that the tool declares', () => {
    const { settle } = setUp({ memory: undefined });
    const outcome: Outcome = {
      ...completed,
      text: 'I sent the email.',
      toolLedger: [
        { step: 1, callId: 'c', toolName: 'gmail', input: {}, status: 'ok', output: 'done' },
      ],
    };
    expect(settle(outcome)).toMatchObject({ verification: { verified: true } });
    expect(settle(outcome, { tools: { gmail: { effects: [] } } })).toMatchObject({
      verification: { verified: false, unverified: [{ claim: 'I sent the email.' }] },
    });
  });

  test('get checked by a judge in every completed result, but in no other outcome', async () => {
    const asked: string[] = [];
    const { settle } = setUp({
      memory: undefined,
      judge: async ({ text }) => {
        asked.push(text);
        return { unverified: text.includes('gesendet') ? [text] : [] };
      },
    });
    expect(await settle({ ...completed, text: 'Ich habe sie gesendet.' })).toMatchObject({
      verification: { verified: false },
    });
    expect(await settle(completed)).toEqual(completed);
    expect(settle(failed)).toMatchObject({ status: 'failed' });
    expect(asked).toEqual(['Ich habe sie gesendet.', 'Found it.']);
  });
});

describe('large results', { tags: ['HW7', 'MW9'] }, () => {
  test('store a large text, and return a summary with a reference', async () => {
    const { memory, settle } = setUp();
    const text = `# Flights\n\nThere are 40 of them. ${'One leaves at nine. '.repeat(300)}`;
    const outcome = await settle({ ...completed, text, output: text }, { readWith: 'recall' });
    expect(outcome.output).toEqual({
      truncated: true,
      originalBytes: text.length,
      reference: 'subagent/sub_1/final-result',
      howToRead: expect.stringContaining('recall'),
      excerpt: expect.stringMatching(/^# Flights/),
    });
    expect(outcome.summary).toMatch(/^Flights\. There are 40 of them\. One leaves at nine\./);
    expect(outcome.summary?.length).toBeLessThanOrEqual(400);
    expect(outcome.text).toContain('The whole has');
    expect(outcome.text).toContain('subagent/sub_1/final-result');
    expect(await memory.get(owner, 'final-result')).toMatchObject({ entry: { text } });
    expect(outcome.notes).toEqual(['subagent/sub_1/final-result']);
  });

  test('SETTLE-OUTCOME-3: store the result, and shorten a summary that is too large', async () => {
    const { memory, settle } = setUp();
    const summary = 'One leaves at nine. '.repeat(500);
    const output = { flights: 3 };
    const small = await settle({ ...completed, output, text: summary, summary });
    expect(small.output).toEqual(output);
    const text = 'Flight. '.repeat(2000);
    const large = await settle({ ...completed, output: text, text, summary });
    for (const outcome of [small, large]) {
      expect(outcome.summary?.length).toBeLessThanOrEqual(400);
      expect(outcome.text.length).toBeLessThanOrEqual(2000);
      expect(outcome.text).toMatch(/^One leaves at nine\./);
    }
    expect(await memory.get(owner, 'final-result')).toMatchObject({ entry: { text } });
  });

  test('store large data as data, with a separate summary', async () => {
    const { memory, settle } = setUp();
    const output = { flights: Array.from({ length: 300 }, (_, id) => ({ id })) };
    const outcome = await settle({
      ...completed,
      output,
      text: 'Three hundred.',
      summary: 'Three hundred.',
    });
    expect(isLargeOutput(outcome.output)).toBe(true);
    expect(outcome).toMatchObject({ text: 'Three hundred.', summary: 'Three hundred.' });
    expect(await memory.get(owner, 'final-result')).toMatchObject({ entry: { value: output } });
  });

  test('SETTLE-OUTCOME-3: get cut if there is no memory, and state that the rest was lost', async () => {
    const { settle } = setUp({ memory: undefined });
    const outcome = await settle({
      ...completed,
      text: 'x'.repeat(9000),
      output: 'x'.repeat(9000),
    });
    expect(outcome.output).toMatchObject({ truncated: true, reference: null });
    expect(outcome.text).toContain('it is not kept');
    expect(JSON.stringify(outcome.output).length).toBeLessThanOrEqual(2000);
  });

  test('name entries that were left in memory', async () => {
    const { memory, settle } = setUp();
    expect(await settle(completed)).toEqual(completed);
    await memory.save(owner, { key: 'table', value: 'x' });
    expect(await settle(completed)).toEqual({ ...completed, notes: ['subagent/sub_1/table'] });
  });
});

describe('unsuccessful ends', { tags: ['R25'] }, () => {
  test('store their details in the outcome and in working memory', async () => {
    const { memory, settle } = setUp();
    const outcome = await settle(failed);
    expect(outcome.diagnostics).toMatchObject({
      reason: 'exception',
      lastAssistantText: 'Half of it.',
      reference: 'subagent/sub_1/failure-details',
    });
    const kept = await memory.get({ sessionId: 's', path: [] }, 'subagent/sub_1/failure-details');
    expect(kept).toMatchObject({ entry: { value: { reason: 'exception', code: 'MODEL_ERROR' } } });
  });

  test('SETTLE-OUTCOME-2: store the diagnostics in the outcome if there is no memory', () => {
    const { settle } = setUp({ memory: undefined });
    expect(settle(failed)).toMatchObject({ status: 'failed', diagnostics: { reference: null } });
  });

  test('store a large partial result', async () => {
    const { memory, settle } = setUp();
    const partial = 'A sentence. '.repeat(1000);
    const outcome = await settle({ ...failed, partial });
    expect(outcome.partial).toContain('subagent/sub_1/partial-result');
    expect(await memory.get(owner, 'partial-result')).toMatchObject({ entry: { text: partial } });
  });

  test('SETTLE-OUTCOME-1: report that memory refused the text, and lose only the reference', async () => {
    const environment = simulatedEnvironment();
    const { settle, reports } = setUp({ memory: workingMemory({ environment, maxEntryBytes: 5 }) });
    const outcome = await settle(failed);
    expect(outcome).toMatchObject({ status: 'failed', diagnostics: { reference: null } });
    expect(reports).toEqual([expect.stringContaining('maxEntryBytes')]);
  });

  test('SETTLE-OUTCOME-1: do not wait for a memory that fails or hangs', async () => {
    const broken = {
      save: () => Promise.reject(new Error('disk')),
      list: () => Promise.reject(new Error('disk')),
    } as unknown as WorkingMemory;
    const first = setUp({ memory: broken });
    expect(await first.settle(failed)).toMatchObject({ diagnostics: { reference: null } });
    expect(first.reports).toHaveLength(2);

    const hanging = {
      save: () => new Promise(() => {}),
      list: () => new Promise(() => {}),
    } as unknown as WorkingMemory;
    const second = setUp({ memory: hanging });
    const settling = second.settle(failed);
    await second.environment.advance(5000);
    expect(await settling).toMatchObject({ status: 'failed', diagnostics: { reference: null } });
    expect(second.environment.pendingTimers).toBe(0);
  });
});
