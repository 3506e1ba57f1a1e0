import { generateText, type ModelMessage } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { expect, test } from 'vitest';
import { NoteMarks } from '../../../src/actors/notes/note-marks.ts';
import { ConversationLog } from '../../../src/actors/conversation/conversation.ts';

const start = ConversationLog.empty().add({ id: 'u1', role: 'user', at: 1, text: 'Two things.' });

/** The SDK itself decides whether it accepts this history. */
async function promptOf(messages: ModelMessage[]): Promise<string[]> {
  const model = new MockLanguageModelV4({
    doGenerate: {
      content: [{ type: 'text', text: 'ok' }],
      finishReason: { unified: 'stop', raw: 'stop' },
      usage: {
        inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 1, text: 1, reasoning: 0 },
      },
      warnings: [],
    },
  });
  await generateText({ model, messages });
  return model.doGenerateCalls[0]!.prompt.map(({ role }) => role);
}

test('MODEL-MESSAGES-1: puts a result after its call, even if it arrived late', async () => {
  const messages = start
    .toolCall({ callId: 'c1', toolName: 'ride', args: { to: 'airport' }, at: 2 })
    .toolCall({ callId: 'c2', toolName: 'report', args: {}, at: 2 })
    .add({ id: 'a1', role: 'assistant', at: 3, text: 'On it.' })
    .add({ id: 'u2', role: 'user', at: 4, text: 'Thanks.' })
    .toolResult({ callId: 'c1', at: 5, value: { status: 'booked' } })
    .toolResult({ callId: 'c2', at: 6, value: 'done' })
    .toModelMessages();
  expect(messages).toEqual([
    { role: 'user', content: 'Two things.' },
    {
      role: 'assistant',
      content: [
        { type: 'tool-call', toolCallId: 'c1', toolName: 'ride', input: { to: 'airport' } },
        { type: 'tool-call', toolCallId: 'c2', toolName: 'report', input: {} },
      ],
    },
    {
      role: 'tool',
      content: [
        {
          type: 'tool-result',
          toolCallId: 'c1',
          toolName: 'ride',
          output: { type: 'json', value: { status: 'booked' } },
        },
        {
          type: 'tool-result',
          toolCallId: 'c2',
          toolName: 'report',
          output: { type: 'text', value: 'done' },
        },
      ],
    },
    { role: 'assistant', content: [{ type: 'text', text: 'On it.' }] },
    { role: 'user', content: 'Thanks.' },
  ]);
  expect(await promptOf(messages)).toEqual(['user', 'assistant', 'tool', 'assistant', 'user']);
});

test('MODEL-MESSAGES-1: keeps consecutive steps separate', () => {
  const roles = start
    .add({ id: 'a1', role: 'assistant', at: 2, text: 'Let me look.' })
    .toolCall({ callId: 'c1', toolName: 't', args: {}, at: 3 })
    .toolResult({ callId: 'c1', at: 4, value: 1 })
    .toolCall({ callId: 'c2', toolName: 't', args: {}, at: 5 })
    .toolResult({ callId: 'c2', at: 6, value: 2 })
    .add({ id: 'a2', role: 'assistant', at: 7, text: 'There.' })
    .toModelMessages()
    .map(({ role }) => role);
  expect(roles).toEqual(['user', 'assistant', 'tool', 'assistant', 'tool', 'assistant']);
});

test('MODEL-MESSAGES-1: answers a running call with its announcement, or omits it', async () => {
  const log = start
    .toolCall({ callId: 'c1', toolName: 't', args: {}, at: 2, pendingText: 'I am on it.' })
    .toolCall({ callId: 'c2', toolName: 't', args: {}, at: 3 })
    .add({ id: 'u2', role: 'user', at: 4, text: 'And?' });
  const pending = log.toModelMessages();
  expect(JSON.stringify(pending)).toContain('I am on it.');
  expect(JSON.stringify(pending)).toContain('no result yet');
  expect(await promptOf(pending)).toEqual(['user', 'assistant', 'tool', 'user']);
  expect(log.toModelMessages({ openCalls: 'omit' })).toEqual([
    { role: 'user', content: 'Two things.' },
    { role: 'user', content: 'And?' },
  ]);
});

test('MODEL-MESSAGES-2: keeps the error of a failed call', { tags: ['BW9'] }, () => {
  const [, , tool] = start
    .toolCall({ callId: 'c1', toolName: 't', args: {}, at: 2 })
    .toolResult({ callId: 'c1', at: 3, error: 'no such file' })
    .toModelMessages();
  expect(tool?.content).toMatchObject([{ output: { type: 'error-text', value: 'no such file' } }]);
});

test('MODEL-MESSAGES-3: omits replies in progress and silent utterances', () => {
  const log = start
    .begin({ id: 'a1', role: 'assistant', at: 2 })
    .append('a1', 'I was go')
    .add({ id: 'u2', role: 'user', at: 3, text: '  ' });
  expect(log.toModelMessages()).toHaveLength(1);
  expect(log.interrupt('a1').toModelMessages()).toHaveLength(2);
});

test.each([[7], null, '{"to":"air', 7].map((args) => [args]))(
  'MODEL-MESSAGES-4: replaces the arguments %j with an empty object',
  (args) => {
    const messages = start
      .toolCall({ callId: 'c1', toolName: 'ride', args, at: 2 })
      .toModelMessages();
    expect(messages[1]?.content).toMatchObject([{ type: 'tool-call', input: {} }]);
  },
);

test("quotes other parties in the runtime's notes, but leaves notes from earlier versions unchanged", async () => {
  const log = start
    .add({ id: 's1', role: 'system', at: 2, text: 'The report is ready.' })
    .transfer({ id: 't1', at: 3, from: 'front', to: 'billing' });
  const portable = log.toModelMessages();
  expect(portable.slice(1)).toEqual([
    { role: 'user', content: '[SYSTEM: The report is ready.]' },
    {
      role: 'user',
      content:
        '[note] The conversation was handed from one agent to another. You are the quoted "to": ' +
        "reply to the user's last words, and say nothing of the handover. Running work reports by itself.\n" +
        '[data] {"from":"front","to":"billing"}',
    },
  ]);
  expect(await promptOf(portable)).toHaveLength(3);
  const notes = new NoteMarks('a secret', 'system');
  const mark = notes.markOf('t1');
  expect(log.toModelMessages({ notes }).slice(1)).toEqual([
    { role: 'system', content: 'The report is ready.' },
    {
      role: 'system',
      content: expect.stringMatching(
        `^\\[note ${mark}\\] The conversation was handed from one agent`,
      ),
    },
    { role: 'user', content: `[data ${mark}] {"from":"front","to":"billing"}` },
  ]);
});

test(
  'restores messages, calls, outputs and errors on a reconnect, and leaves a running call open',
  { tags: ['B13', 'B66', 'BW9'] },
  () => {
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
  },
);
