import { describe, expect, test } from 'vitest';
import { failureDetails, type RunFacts } from '../../src/results/outcome-processor.ts';
import type { LedgerEntry, UnfinishedOutcome } from '../../src/actors/contracts/outcome.ts';

const facts: RunFacts = {
  description: 'Find a flight',
  startedAt: 1000,
  endedAt: 9000,
  maxSteps: 5,
  timeoutMs: 8000,
  progress: [{ update: 'Looking', percent: 50, at: 2000 }],
};

const failed: UnfinishedOutcome = {
  status: 'timed_out',
  output: null,
  text: '',
  partial: 'Two flights so far.',
  error: { code: 'TIMEOUT', message: 'Timed out after 8000 ms', retryable: true },
  steps: 2,
  usage: { inputTokens: 1, outputTokens: 2, totalTokens: 3 },
  toolLedger: [],
};

const call = (more: Partial<LedgerEntry>): LedgerEntry => ({
  step: 2,
  callId: 'c',
  toolName: 'search',
  input: { to: 'LIS' },
  status: 'in_flight',
  output: null,
  ...more,
});

describe('the record of an unsuccessful end', { tags: ['R25'] }, () => {
  test("states the subagent's activity, progress and limits", () => {
    const toolLedger = [call({ toolName: 'look', status: 'ok' }), call({ calledAt: 3000 })];
    expect(failureDetails({ ...failed, toolLedger }, facts)).toEqual({
      reason: 'timeout',
      code: 'TIMEOUT',
      message: 'Timed out after 8000 ms',
      description: 'Find a flight',
      steps: 2,
      toolCalls: 2,
      lastAssistantText: 'Two flights so far.',
      lastTool: {
        name: 'search',
        args: '{"to":"LIS"}',
        status: 'in_flight',
        calledAt: 3000,
        settledAt: null,
      },
      recentProgress: [{ update: 'Looking', percent: 50, at: 2000 }],
      limits: { maxSteps: 5, timeoutMs: 8000 },
      usage: { inputTokens: 1, outputTokens: 2, totalTokens: 3 },
      startedAt: 1000,
      endedAt: 9000,
    });
  });

  test.each<[UnfinishedOutcome['status'], string, string]>([
    ['timed_out', 'TIMEOUT', 'timeout'],
    ['cancelled', 'CANCELLED', 'cancelled'],
    ['lost', 'KILLED', 'lost'],
    ['failed', 'STEP_LIMIT', 'step_limit'],
    ['failed', 'BUDGET_EXHAUSTED', 'budget'],
    ['failed', 'INPUT_TIMEOUT', 'unanswered'],
    ['failed', 'RATE_LIMITED', 'exception'],
    ['failed', 'toString', 'exception'],
  ])(
    '%s with %s is %s: a timeout and a cancellation are not the same',
    { tags: ['RW2'] },
    (status, code, reason) => {
      const outcome = { ...failed, status, error: { code, message: 'x', retryable: false } };
      expect(failureDetails(outcome, facts)).toMatchObject({ reason, code });
    },
  );

  test('uses null for missing text and calls', () => {
    const { partial: _, ...bare } = failed;
    expect(failureDetails(bare, facts)).toMatchObject({
      lastAssistantText: null,
      lastTool: null,
    });
  });

  test('stays within a size limit for any run', { tags: ['MW9'] }, () => {
    const long = 'x'.repeat(100_000);
    const details = failureDetails(
      {
        ...failed,
        partial: long,
        error: { code: 'E', message: long, retryable: false },
        toolLedger: [call({ input: { long } })],
      },
      {
        ...facts,
        description: long,
        progress: Array.from({ length: 50 }, (_, at) => ({ update: long, percent: null, at })),
      },
    );
    expect(JSON.stringify(details).length).toBeLessThan(12_000);
    expect(details.recentProgress.map(({ at }) => at)).toEqual([
      40, 41, 42, 43, 44, 45, 46, 47, 48, 49,
    ]);
    expect(details.description).toContain('99500 more characters');
  });
});
