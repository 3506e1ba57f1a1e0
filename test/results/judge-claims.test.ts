import { describe, expect, test } from 'vitest';
import { judgeClaims, modelClaimJudge, type ClaimJudge } from '../../src/results/judge-claims.ts';
import { verifyClaims } from '../../src/results/verify-claims.ts';
import { scriptedModel, simulatedEnvironment } from '../../src/testing/index.ts';

const german = { text: 'Ich habe die E-Mail gesendet.', toolLedger: [] };
const english = { text: 'I sent the email.', toolLedger: [] };

function setUp(judge: ClaimJudge, report: typeof german = german) {
  const environment = simulatedEnvironment();
  const reports: unknown[] = [];
  const judged = judgeClaims(report, verifyClaims(report), {
    judge,
    environment,
    report: (error, where) => reports.push([(error as Error).message, where]),
  });
  return { environment, reports, judged };
}

describe('a judge model in addition to the rules', { tags: ['R27'] }, () => {
  test('finds claims that the rules do not recognise', async () => {
    const { judged, environment } = setUp(async () => ({ unverified: [german.text] }));
    expect(await judged).toEqual({
      verified: false,
      claims: [german.text],
      unverified: [{ claim: german.text, reason: 'no_call' }],
      incomplete: false,
    });
    expect(environment.pendingTimers).toBe(0);
  });

  test('keeps claims that contradict the ledger, without duplicates', async () => {
    const nothing = await setUp(async () => ({ unverified: [] }), english).judged;
    expect(nothing).toEqual(verifyClaims(english));
    const same = await setUp(async () => ({ unverified: [english.text, ' '] }), english).judged;
    expect(same).toEqual(verifyClaims(english));
  });

  test('recognises an unfinished report', async () => {
    const { judged } = setUp(async () => ({ unverified: [], incomplete: true }));
    expect(await judged).toMatchObject({ verified: false, incomplete: true });
  });

  test.each<[string, ClaimJudge, string]>([
    ['rejects', () => Promise.reject(new Error('no model')), 'no model'],
    ['gives nonsense', async () => 'yes' as never, 'expected object'],
  ])(
    'JUDGE-CLAIMS-1: a judge that %s changes nothing, and is reported',
    async (_, judge, message) => {
      const { judged, reports } = setUp(judge, english);
      expect(await judged).toEqual(verifyClaims(english));
      expect(reports).toEqual([[expect.stringContaining(message), 'judge of claims']]);
    },
  );

  test('JUDGE-CLAIMS-1: aborts and reports a judge that hangs', async () => {
    let signal: AbortSignal | undefined;
    const { environment, judged, reports } = setUp((_, given) => {
      signal = given;
      return new Promise(() => {});
    });
    await environment.advance(9_999);
    expect(signal?.aborted).toBe(false);
    await environment.advance(1);
    expect((await judged).verified).toBe(true);
    expect(signal?.aborted).toBe(true);
    expect(reports).toHaveLength(1);
  });
});

describe('the built-in judge', { tags: ['R27'] }, () => {
  const judgeWith = (answer: string) => {
    const prompts: string[] = [];
    const model = scriptedModel({
      scripts: [
        {
          when: 'check the report',
          script: (prompt) => {
            prompts.push(JSON.stringify(prompt.prompt));
            return { text: answer };
          },
        },
      ],
    });
    return { prompts, judge: modelClaimJudge({ model, environment: simulatedEnvironment() }) };
  };
  const signal = new AbortController().signal;

  test('shows a model the report and the calls and uses its verdict', async () => {
    const { judge, prompts } = judgeWith('{"unverified":["Ich habe sie gesendet."]}');
    const toolLedger = [
      { step: 1, callId: 'c', toolName: 'look', input: {}, status: 'ok' as const, output: 'x' },
    ];
    expect(await judge({ text: 'Ich habe sie gesendet.', toolLedger }, signal)).toEqual({
      unverified: ['Ich habe sie gesendet.'],
    });
    expect(prompts[0]).toContain('look');
    expect(prompts[0]).toContain('Ich habe sie gesendet.');
  });

  test('reports an invalid verdict as an error', async () => {
    await expect(judgeWith('They are fine.').judge(german, signal)).rejects.toThrow('not JSON');
  });
});
