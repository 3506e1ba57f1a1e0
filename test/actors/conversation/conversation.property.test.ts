import type { ModelMessage } from 'ai';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ConversationLog } from '../../../src/actors/conversation/conversation.ts';

const message = fc.record({
  role: fc.constantFrom('user' as const, 'assistant' as const, 'system' as const),
  text: fc.string({ maxLength: 12 }),
});

test('CONVERSATION-1: does not depend on the order of arrival', () => {
  const shuffled = fc
    .array(message, { minLength: 1, maxLength: 12 })
    .chain((messages) =>
      fc.tuple(
        fc.constant(messages),
        fc.shuffledSubarray([...messages.keys()], { minLength: messages.length }),
        fc.shuffledSubarray([...messages.keys()], { minLength: messages.length }),
      ),
    );
  fc.assert(
    fc.property(shuffled, ([messages, begun, finished]) => {
      let log = ConversationLog.empty();
      for (const n of begun) log = log.begin({ id: `m${n}`, role: messages[n]!.role, at: n * 10 });
      for (const n of finished) log = log.finish(`m${n}`, messages[n]!.text);
      expect(log.items.map(({ id }) => id)).toEqual(messages.map((_, n) => `m${n}`));
      expect(log.items.map((item) => ('text' in item ? item.text : ''))).toEqual(
        messages.map(({ text }) => text),
      );
    }),
  );
});

test('CONVERSATION-3: assembles the same text however the deltas are split', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ maxLength: 5 }), { maxLength: 20 }), (deltas) => {
      let log = ConversationLog.empty().begin({ id: 'm', role: 'assistant', at: 0 });
      for (const delta of deltas) log = log.append('m', delta);
      expect(log.finish('m').get('m')).toMatchObject({ text: deltas.join(''), partial: false });
    }),
  );
});

type Step = (log: ConversationLog, n: number) => ConversationLog;

const anyStep: fc.Arbitrary<Step> = fc
  .record({
    kind: fc.constantFrom(
      'begin',
      'append',
      'finish',
      'add',
      'call',
      'result',
      'error',
      'summary',
      'transfer',
      'remove',
    ),
    target: fc.nat(8),
    at: fc.nat(100),
    text: fc.string({ maxLength: 30 }),
    role: fc.constantFrom('user' as const, 'assistant' as const, 'system' as const),
    upTo: fc.option(fc.nat(8)),
  })
  .map(({ kind, target, at, text, role, upTo }): Step => (log, n) => {
    const known = log.items[target % Math.max(1, log.items.length)]?.id ?? 'none';
    switch (kind) {
      case 'begin':
        return log.begin({ id: `i${n}`, role, at });
      case 'append':
        return log.append(known, text);
      case 'finish':
        return log.finish(known, text);
      case 'add':
        return log.add({ id: `i${n}`, role, at, text });
      case 'call':
        return log.toolCall({ callId: `c${n}`, toolName: 't', args: { text }, at });
      case 'result':
        return log.toolResult({ callId: known, value: text, at });
      case 'error':
        return log.toolResult({ callId: known, error: text, at });
      case 'summary':
        return log.setSummary(text, upTo === null ? undefined : known);
      case 'remove':
        return log.remove(known);
      case 'transfer':
        return log.transfer({ id: `i${n}`, at, from: 'a', to: 'b' });
    }
  });

test('CONVERSATION-1, CONVERSATION-4, CONVERSATION-5: keeps every log sorted, paired, bounded and usable', () => {
  const limits = { maxItems: 6, maxChars: 60, maxItemChars: 20 };
  fc.assert(
    fc.property(fc.array(anyStep, { maxLength: 40 }), (steps) => {
      let log = ConversationLog.empty(limits);
      steps.forEach((step, n) => {
        log = step(log, n);
      });
      const times = log.items.map(({ at }) => at);
      expect(times).toEqual(times.toSorted((a, b) => a - b));
      expect(new Set(log.items.map(({ id }) => id)).size).toBe(log.items.length);
      expect(log.items.length).toBeLessThanOrEqual(limits.maxItems);
      expect(log.load).toBeLessThanOrEqual(1);
      expect(resultsWithoutCall(log)).toEqual([]);
      expect(callsWithoutResult(log.toModelMessages())).toEqual([]);
      expect(ConversationLog.fromJSON(JSON.parse(JSON.stringify(log)), limits).toJSON()).toEqual(
        log.toJSON(),
      );
    }),
    { numRuns: 300 },
  );
});

function resultsWithoutCall(log: ConversationLog): string[] {
  const calls = new Set<string>();
  const lost: string[] = [];
  for (const item of log.items) {
    if (item.role === 'tool_call') calls.add(item.callId);
    if (item.role === 'tool_result' && !calls.delete(item.callId)) lost.push(item.callId);
  }
  return lost;
}

/**
 * MODEL-MESSAGES-1, as the AI SDK checks it: no message may follow a call that has no result, and the prompt may not
 * end there.
 */
function callsWithoutResult(messages: readonly ModelMessage[]): string[] {
  const open = new Set<string>();
  const lost: string[] = [];
  for (const { role, content } of messages) {
    if (role === 'user' || role === 'system') lost.push(...open);
    if (typeof content === 'string') continue;
    for (const part of content) {
      if (part.type === 'tool-call') open.add(part.toolCallId);
      if (part.type === 'tool-result' && !open.delete(part.toolCallId)) lost.push(part.toolCallId);
    }
  }
  return [...lost, ...open];
}
