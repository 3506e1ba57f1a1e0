import { callKey } from '../../../src/values/json.ts';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { approvalNeeded, approvalWords, consentFor } from '../../../src/actors/model/approval.ts';
import { prepareTools, type ToolEntry } from '../../../src/actors/model/tools.ts';
import type { PreApproval } from '../../../src/actors/contracts/config.ts';
import { never, soon } from './fakes.ts';

const asked = (more: Partial<Parameters<typeof consentFor>[0]> = {}) => {
  const reports: string[] = [];
  return {
    reports,
    consent: () =>
      consentFor({
        toolName: 'pay',
        input: { sum: 5 },
        preApproved: [],
        needed: () => true,
        deniedAbove: () => false,
        report: (error, where) => reports.push(`${where}: ${String(error)}`),
        ...more,
      }),
  };
};

const small: PreApproval = {
  tool: 'pay',
  when: (input) => (input as { sum: number }).sum < 10,
};

describe('pre-authorisation', () => {
  test.each([
    ['a tool that needs none', { needed: () => false }, 'not_needed'],
    ['nothing written', {}, 'ask'],
    ['the tool', { preApproved: [{ tool: 'pay' }] }, 'pre_authorised'],
    ['another tool', { preApproved: [{ tool: 'pay_all' }] }, 'ask'],
    ['these arguments', { preApproved: [small] }, 'pre_authorised'],
    ['not these arguments', { preApproved: [small], input: { sum: 10 } }, 'ask'],
    ['one of several', { preApproved: [{ tool: 'x' }, small] }, 'pre_authorised'],
    [
      'a promise, which is no yes',
      { preApproved: [{ tool: 'pay', when: (async () => true) as never }] },
      'ask',
    ],
  ] as const)('%s', async (_, more, expected) => {
    expect(await asked(more).consent()).toBe(expected);
  });

  test('APPROVAL-4: reports a condition that throws, and asks the user', async () => {
    const { consent, reports } = asked({ preApproved: [small], input: null });
    expect(await consent()).toBe('ask');
    expect(reports).toEqual([expect.stringContaining('preApproved of pay')]);
  });
});

describe('APPROVAL-3: inherits denials', () => {
  test.each([
    ['by a tool that asks', {}],
    ['by a tool of the same name that does not ask', { needed: () => false }],
    ['though the author approved it beforehand', { preApproved: [{ tool: 'pay' }] }],
  ])('%s', async (_, more) => {
    expect(await asked({ ...more, deniedAbove: () => true }).consent()).toBe('inherited_denial');
  });
});

describe('APPROVAL-2: the identity of a call, its tool and its exact arguments', () => {
  test('ignores the order of keys', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (input) => {
        const turned = Object.fromEntries(Object.entries(input).toReversed());
        expect(callKey('pay', turned)).toBe(callKey('pay', input));
        expect(callKey('pays', input)).not.toBe(callKey('pay', input));
      }),
    );
  });

  test('differs when any argument differs', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
        fc.pre(JSON.stringify(a ?? {}) !== JSON.stringify(b ?? {}));
        fc.pre(!isObject(a) || !isObject(b));
        expect(callKey('pay', a)).not.toBe(callKey('pay', b));
      }),
    );
    expect(callKey('pay', { to: ['a', 'b'] })).not.toBe(callKey('pay', { to: ['b', 'a'] }));
    expect(callKey('pay', { sum: 5 })).not.toBe(callKey('pay', { sum: '5' }));
    expect(callKey('pay', undefined)).toBe(callKey('pay', {}));
  });
});

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

describe('APPROVAL-5: checking whether approval is needed', () => {
  const inputSchema = z.object({ q: z.string().optional() });
  const entry = (source: Record<string, unknown>): ToolEntry =>
    prepareTools({ lookup: { inputSchema, ...source } }, 'tools').execution.get('lookup')!;
  const options = { callId: 'c1', messages: [{ role: 'user' as const, content: 'hi' }] };

  test.each([
    [undefined, false],
    [false, false],
    [true, true],
    [() => true, true],
    [async () => false, false],
    [({ q }: { q: string }) => q === 'x', true],
  ])('%s', async (needsApproval, expected) => {
    expect(await approvalNeeded(entry({ needsApproval }), { q: 'x' }, options)).toBe(expected);
  });

  test('passes the arguments and the call to the predicate', async () => {
    const seen: unknown[] = [];
    const needsApproval = (...args: unknown[]): boolean => {
      seen.push(...args);
      return false;
    };
    await approvalNeeded(entry({ needsApproval }), { q: 'x' }, { ...options, context: 7 });
    expect(seen).toEqual([
      { q: 'x' },
      { toolCallId: 'c1', messages: options.messages, context: 7 },
    ]);
  });

  test.each([
    [
      'throws',
      () => {
        throw new Error('no rules');
      },
    ],
    ['rejects', () => Promise.reject(new Error('no rules'))],
  ])('a predicate that %s counts as true, and the error is reported', async (_, needsApproval) => {
    const reports: string[] = [];
    const report = (error: unknown, where: string): void =>
      void reports.push(`${where}: ${String(error)}`);
    expect(await approvalNeeded(entry({ needsApproval }), {}, { ...options, report })).toBe(true);
    expect(reports).toEqual(['needsApproval of tool lookup: Error: no rules']);
    expect(await approvalNeeded(entry({ needsApproval }), {}, options)).toBe(true);
  });

  test('requires approval if a predicate has not settled when the run is aborted', async () => {
    const controller = new AbortController();
    const reports: unknown[] = [];
    const asked = approvalNeeded(
      entry({ needsApproval: () => never() }),
      {},
      { ...options, signal: controller.signal, report: (error) => reports.push(error) },
    );
    expect(await soon(asked)).toBe('pending');
    controller.abort('over');
    expect(await soon(asked)).toBe(true);
    expect(reports).toEqual([]);
  });

  test('validates raw input first, and requires approval for invalid input', async () => {
    const guarded = entry({
      inputSchema: z.object({ amount: z.coerce.number().default(100) }),
      needsApproval: ({ amount }: { amount: number }) => amount >= 100,
    });
    const raw = { ...options, raw: true };
    expect(await approvalNeeded(guarded, {}, raw)).toBe(true);
    expect(await approvalNeeded(guarded, { amount: '5' }, raw)).toBe(false);
    expect(await approvalNeeded(guarded, { amount: 'all' }, raw)).toBe(true);
  });

  test('builds the question from validated input, and cuts a long question', async () => {
    const guarded = entry({
      inputSchema: z.object({ amount: z.coerce.number().default(100) }),
      approvalQuestion: ({ amount }: { amount: number }) => `May I pay ${amount.toFixed(2)}?`,
    });
    const raw = { ...options, raw: true };
    expect(await approvalWords(guarded, {}, raw)).toBe('May I pay 100.00?');
    expect(await approvalWords(guarded, { amount: 'all' }, raw)).toBeUndefined();
    const long = entry({ approvalQuestion: () => 'x'.repeat(9_000) });
    expect((await approvalWords(long, {}, options))?.length).toBeLessThan(2_100);
    expect(await approvalWords(entry({}), {}, options)).toBeUndefined();
  });
});
