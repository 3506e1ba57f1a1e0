// Responses that a server starts and never ends do not accumulate.

import { describe, expect, test } from 'vitest';
import { ResponseLedger } from '../../../src/adapters/openai-realtime/translator.ts';

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

describe('RESPONSE-LEDGER-5: the bounds of the ledger', () => {
  test('treat the oldest of 65 unfinished responses as ended', () => {
    const ledger = new ResponseLedger();
    for (const number of numbers(64)) ledger.begin(`resp_${number}`, null);
    expect([ledger.wantsSoundOf('resp_0'), ledger.active('resp_0')?.responseId]).toEqual([
      true,
      'resp_0',
    ]);
    ledger.begin('resp_64', null);
    expect([ledger.wantsSoundOf('resp_0'), ledger.active('resp_0')]).toEqual([false, undefined]);
    expect([ledger.end('resp_0'), ledger.end('resp_1')]).toEqual([false, true]);
  });

  test('drop the oldest of 65 unanswered requests', () => {
    const ledger = new ResponseLedger();
    for (const number of numbers(65)) ledger.request(`event_${number}`, `key_${number}`);
    expect([ledger.refuse('event_0'), ledger.refuse('event_1')]).toEqual([null, 'key_1']);
    for (const number of numbers(64).slice(2)) ledger.refuse(`event_${number}`);
    expect(ledger.soleRequest).toBe('event_64');
  });

  test('drop the oldest of 257 calls in one response, whether held back or complete', () => {
    const record = new ResponseLedger().begin('resp', null);
    for (const number of numbers(257)) {
      const callId = `call_${number}`;
      record?.heldCalls.set(callId, { callId, name: 'look', arguments: '{}' });
      record?.completedCallIds.set(callId, true);
    }
    expect([record?.heldCalls.has('call_0'), record?.completedCallIds.has('call_0')]).toEqual([
      false,
      false,
    ]);
    expect([record?.heldCalls.has('call_1'), record?.completedCallIds.has('call_1')]).toEqual([
      true,
      true,
    ]);
  });
});
