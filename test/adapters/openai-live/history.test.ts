import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { historyOf, estimateTokens } from '../../../src/adapters/openai-live/appends.ts';
import type { TransportCommand } from '../../../src/voice/connection/transport.ts';

const said = (text: string): TransportCommand => ({
  type: 'message.add',
  itemId: text.slice(0, 8),
  role: 'user',
  text,
});
const sentence = 'The train to Rome leaves at noon. ';

describe('historyOf', () => {
  test('HISTORY-1: omits the messages that exceed the maximum number, oldest first', () => {
    const history = historyOf(Array.from({ length: 300 }, (_, index) => said(`Word ${index}.`)));
    expect(history).toHaveLength(128);
    expect(history[0]).toEqual({
      role: 'developer',
      text: '[note] The conversation began earlier: 173 older messages are left out here.',
    });
    expect(history[1]?.text).toBe('Word 173.');
    expect(history.at(-1)?.text).toBe('Word 299.');
  });

  test('HISTORY-1: omits a message that does not fit, and all messages before it', () => {
    const history = historyOf([said('First.'), said(sentence.repeat(700)), said('Last.')]);
    expect(history.map(({ text }) => text)).toEqual([
      expect.stringContaining('2 older messages'),
      'Last.',
    ]);
  });

  test('HISTORY-1: cuts the newest message when it alone does not fit', () => {
    const history = historyOf([said('First.'), said(sentence.repeat(2000))]);
    expect(history).toHaveLength(2);
    expect(history[1]?.text.startsWith(sentence)).toBe(true);
  });

  test("stays within the protocol's limits for any conversation", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom('Rome. ', sentence, '出发。', '🚕'), fc.nat(400)), {
          maxLength: 200,
        }),
        (parts) => {
          const history = historyOf(parts.map(([text, times]) => said(text.repeat(times))));
          const tokens = history.reduce((sum, { text }) => sum + estimateTokens(text), 0);
          expect(history.length).toBeLessThanOrEqual(128);
          expect(tokens).toBeLessThanOrEqual(8192);
        },
      ),
      { numRuns: 30 },
    );
  });

  test('omits items that are not messages', () => {
    expect(historyOf([said('Hi.'), { type: 'response.cancel' }, said('  ')])).toEqual([
      { role: 'user', text: 'Hi.' },
    ]);
  });
});
