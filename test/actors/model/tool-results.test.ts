import { generateText, type ModelMessage } from 'ai';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { closeDanglingCalls, toolMessage } from '../../../src/actors/model/tool-results.ts';
import { answer, model, text } from './fakes.ts';

const calls = [
  { callId: 'c1', toolName: 'weather' },
  { callId: 'c2', toolName: 'book' },
  { callId: 'c3', toolName: 'ask_user' },
];

const user: ModelMessage = { role: 'user', content: 'hi' };

const calling = (...ids: string[]): ModelMessage => ({
  role: 'assistant',
  content: ids.map((toolCallId) => ({ type: 'tool-call', toolCallId, toolName: 't', input: {} })),
});

const answering = (...ids: string[]): ModelMessage => ({
  role: 'tool',
  content: ids.map((toolCallId) => ({
    type: 'tool-result',
    toolCallId,
    toolName: 't',
    output: { type: 'text', value: `of ${toolCallId}` },
  })),
});

describe('toolMessage', () => {
  test('puts results in the order of their calls, regardless of their arrival', () => {
    const message = toolMessage(calls, [
      { callId: 'c3', output: { userResponse: 'economy' } },
      { callId: 'c2', denied: 'Not today' },
      {
        callId: 'c1',
        outcome: { status: 'ok', output: 'sun', modelOutput: { type: 'text', value: 'sun' } },
      },
    ]);
    expect(message).toStrictEqual({
      role: 'tool',
      content: [
        {
          type: 'tool-result',
          toolCallId: 'c1',
          toolName: 'weather',
          output: { type: 'text', value: 'sun' },
        },
        {
          type: 'tool-result',
          toolCallId: 'c2',
          toolName: 'book',
          output: { type: 'execution-denied', reason: 'Not today' },
        },
        {
          type: 'tool-result',
          toolCallId: 'c3',
          toolName: 'ask_user',
          output: { type: 'json', value: { userResponse: 'economy' } },
        },
      ],
    });
  });

  test('gives each call exactly one result: its first, or an error if the call was not run', () => {
    const { content } = toolMessage(calls.slice(0, 2), [
      { callId: 'c1', output: 'first' },
      { callId: 'c1', output: 'second' },
      { callId: 'c9', output: 'nobody asked' },
    ]);
    expect(content).toMatchObject([
      { toolCallId: 'c1', output: { type: 'text', value: 'first' } },
      { toolCallId: 'c2', output: { type: 'error-text', value: 'This call was not run.' } },
    ]);
    expect(content).toHaveLength(2);
  });

  test('converts errors, text, undefined, and values that are not JSON', () => {
    const outputOf = (output: unknown) =>
      toolMessage(calls.slice(0, 1), [{ callId: 'c1', output }]).content[0];
    expect(outputOf('words')).toMatchObject({ output: { type: 'text', value: 'words' } });
    expect(outputOf(undefined)).toMatchObject({ output: { type: 'json', value: null } });
    expect(outputOf(1n)).toMatchObject({ output: { type: 'error-text' } });
    const outcome = {
      status: 'error',
      error: { message: 'Error: boom' },
      modelOutput: { type: 'error-text', value: 'Error: boom' },
    } as const;
    expect(toolMessage(calls.slice(0, 1), [{ callId: 'c1', outcome }]).content[0]).toMatchObject({
      output: { type: 'error-text', value: 'Error: boom' },
    });
  });
});

describe('closeDanglingCalls', () => {
  test('returns well-formed messages unchanged', () => {
    const messages = [user, calling('c1', 'c2'), answering('c1'), answering('c2'), user];
    expect(closeDanglingCalls(messages)).toBe(messages);
    expect(closeDanglingCalls([])).toEqual([]);
  });

  test('adds an error result for a call without a result, before the next message', () => {
    const closed = closeDanglingCalls([user, calling('c1', 'c2'), answering('c2'), user], 'lost');
    expect(closed.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool', 'user']);
    expect(closed[3]?.content).toStrictEqual([
      {
        type: 'tool-result',
        toolCallId: 'c1',
        toolName: 't',
        output: { type: 'error-text', value: 'lost' },
      },
    ]);
    expect(closeDanglingCalls([user, calling('c1')]).at(-1)).toMatchObject({ role: 'tool' });
    expect(
      closeDanglingCalls([calling('c1'), calling('c2'), answering('c2')]).map(({ role }) => role),
    ).toEqual(['assistant', 'tool', 'assistant', 'tool']);
  });

  test('drops a second result, and a result without a call', () => {
    const messages = [user, answering('c9'), calling('c1'), answering('c1', 'c1'), answering('c1')];
    expect(closeDanglingCalls(messages)).toEqual([user, calling('c1'), answering('c1')]);
  });

  test('does not require a result for a provider-executed call, because a later step may contain it', () => {
    const messages: ModelMessage[] = [
      user,
      {
        role: 'assistant',
        content: [
          {
            type: 'tool-call',
            toolCallId: 's1',
            toolName: 'web',
            input: {},
            providerExecuted: true,
          },
        ],
      },
      user,
      answering('s1'),
    ];
    expect(closeDanglingCalls(messages)).toBe(messages);
  });

  test('treats a repeated call id in a later step as a new call', () => {
    const messages = [calling('c1'), answering('c1'), calling('c1'), answering('c1')];
    expect(closeDanglingCalls(messages)).toBe(messages);
    expect(closeDanglingCalls(messages.slice(0, 3))).toHaveLength(4);
  });

  const id = fc.constantFrom('a', 'b', 'c');
  const anyMessage = fc.oneof(
    fc.constant(user),
    fc.uniqueArray(id, { minLength: 1 }).map((ids) => calling(...ids)),
    fc.array(id).map((ids) => answering(...ids)),
  );

  test('answers every call exactly once in a form that the SDK accepts, whichever messages are missing', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyMessage, { maxLength: 8 }), async (messages) => {
        const closed = closeDanglingCalls(messages);
        let open: string[] = [];
        for (const { role, content } of closed) {
          const parts = typeof content === 'string' ? [] : content;
          if (role !== 'tool') expect(open).toEqual([]);
          for (const part of parts) {
            if (part.type === 'tool-call') open.push(part.toolCallId);
            if (part.type !== 'tool-result') continue;
            expect(open).toContain(part.toolCallId);
            open = open.filter((callId) => callId !== part.toolCallId);
          }
        }
        expect(open).toEqual([]);
        expect(closeDanglingCalls(closed)).toBe(closed);
        const said = ({ role }: ModelMessage): boolean => role !== 'tool';
        expect(closed.filter(said)).toEqual(messages.filter(said));
        await generateText({
          model: model(answer([text('ok')])),
          messages: [user, ...closed],
        });
      }),
      { numRuns: 150 },
    );
  });
});
