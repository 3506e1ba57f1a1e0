import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { callKey, consentFor } from '../../../src/actors/model/approval.ts';
import type { PreApproval } from '../../../src/actors/contracts/config.ts';

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

  test('APPROVAL-4: a condition that throws approves nothing, and is reported', async () => {
    const { consent, reports } = asked({ preApproved: [small], input: null });
    expect(await consent()).toBe('ask');
    expect(reports).toEqual([expect.stringContaining('preApproved of pay')]);
  });
});

describe('APPROVAL-3: denials are inherited', () => {
  test.each([
    ['by a tool that asks', {}],
    ['by a tool of the same name that does not ask', { needed: () => false }],
    ['though the author approved it beforehand', { preApproved: [{ tool: 'pay' }] }],
  ])('%s', async (_, more) => {
    expect(await asked({ ...more, deniedAbove: () => true }).consent()).toBe('inherited_denial');
  });
});

describe('APPROVAL-2: a call is its tool and its exact arguments', () => {
  test('whatever the order of keys', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (input) => {
        const turned = Object.fromEntries(Object.entries(input).toReversed());
        expect(callKey('pay', turned)).toBe(callKey('pay', input));
        expect(callKey('pays', input)).not.toBe(callKey('pay', input));
      }),
    );
  });

  test('and nothing less', () => {
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
