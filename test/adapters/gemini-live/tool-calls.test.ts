// Calls that the app never answers do not accumulate, and never block anything permanently.

import { expect, test } from 'vitest';
import { ToolCalls } from '../../../src/adapters/gemini-live/tool-calls.ts';

test('TOOL-CALLS-5: forgets the oldest of 513 calls, and sends its later answer as text', () => {
  const calls = new ToolCalls();
  const ids = Array.from({ length: 513 }, (_, index) => `call_${index}`);
  for (const id of ids) calls.called(id, 'look');
  expect([calls.nameOf('call_0'), calls.wayOf('call_0')]).toEqual([undefined, 'text']);
  expect([calls.nameOf('call_1'), calls.wayOf('call_1')]).toEqual(['look', 'response']);
  for (const id of ids.slice(1)) calls.answer({ callId: id, output: 'ok' }, null);
  expect(calls.areOpen).toBe(false);
});
