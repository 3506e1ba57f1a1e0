import { expect, test } from 'vitest';
import { ConversationLog } from '../../../src/actors/conversation/conversation.ts';

test('[B13 B66 BW9] a reconnect restores messages, calls, outputs and errors; a call in flight stays open', () => {
  const replay = ConversationLog.empty()
    .add({ id: 'u0', role: 'user', at: 0, text: 'Hello.' })
    .setSummary('They said hello.')
    .add({ id: 'u1', role: 'user', at: 1, text: 'Two things.' })
    .toolCall({ callId: 'c1', toolName: 'ride', args: { to: 'airport' }, at: 2 })
    .toolCall({ callId: 'c2', toolName: 'report', args: {}, at: 3 })
    .toolCall({ callId: 'c3', toolName: 'mail', args: {}, at: 3 })
    .toolResult({ callId: 'c1', at: 4, error: 'no driver' })
    .toolResult({ callId: 'c3', at: 4, value: { sent: true } })
    .transfer({ id: 't1', at: 5, from: 'front', to: 'billing' })
    .begin({ id: 'u2', role: 'user', at: 6 })
    .append('u2', 'and then')
    .begin({ id: 'a2', role: 'assistant', at: 7 })
    .toReplay();
  expect(replay).toEqual([
    {
      type: 'message',
      itemId: expect.stringMatching(/^preamble_/),
      role: 'system',
      text: expect.stringContaining('{"summary":"They said hello."}'),
      note: expect.objectContaining({ quotes: { summary: 'They said hello.' } }),
    },
    { type: 'message', itemId: 'u1', role: 'user', text: 'Two things.' },
    {
      type: 'tool_call',
      callId: 'c1',
      toolName: 'ride',
      arguments: '{"to":"airport"}',
      open: false,
    },
    { type: 'tool_call', callId: 'c2', toolName: 'report', arguments: '{}', open: true },
    { type: 'tool_call', callId: 'c3', toolName: 'mail', arguments: '{}', open: false },
    { type: 'tool_result', callId: 'c1', output: '{"error":"no driver"}', isError: true },
    { type: 'tool_result', callId: 'c3', output: '{"sent":true}', isError: false },
    {
      type: 'message',
      itemId: 't1',
      role: 'system',
      text: expect.stringContaining('{"from":"front","to":"billing"}'),
      note: expect.objectContaining({ quotes: { from: 'front', to: 'billing' } }),
    },
    { type: 'message', itemId: 'u2', role: 'user', text: 'and then' },
  ]);
});
