// A subagent on an existing AI SDK agent (AGENT-RELAY-1, AGENT-RELAY-2): its tool calls are in the ledger, and the user
// answers its approvals and questions. An interrupted turn never runs a tool and never leaves a call without a result.

import type { LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { isStepCount, simulateReadableStream, tool, ToolLoopAgent } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { memoryJournal } from '../../../src/actors/runtime/memory-journal.ts';
import { runSubagent } from '../../../src/actors/subagents/run-subagent.ts';
import type { AskedQuestion } from '../../../src/actors/contracts/records.ts';
import { agentRelay, type RelayEvent } from '../../../src/entries/subagents.ts';
import { createRuntime, type GivenAnswer } from '../../../src/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';

type Said =
  | Extract<LanguageModelV4StreamPart, { type: 'tool-call' }>
  | { type: 'text'; text: string };

const usage = {
  inputTokens: { total: 3, noCache: 3, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 2, text: 2, reasoning: 0 },
};
const text = (words: string): Said => ({ type: 'text', text: words });
const call = (toolName: string, input: object): Said => ({
  type: 'tool-call',
  toolCallId: `${toolName}-1`,
  toolName,
  input: JSON.stringify(input),
});

/** A model that plays these steps. */
function saying(...steps: readonly (readonly Said[])[]) {
  const prompts: LanguageModelV4CallOptions['prompt'][] = [];
  const model = new MockLanguageModelV4({
    doStream: ({ prompt }) => {
      const parts = steps[prompts.length] ?? [];
      prompts.push(prompt);
      const unified = parts.some(({ type }) => type === 'tool-call') ? 'tool-calls' : 'stop';
      return Promise.resolve({
        stream: simulateReadableStream<LanguageModelV4StreamPart>({
          initialDelayInMs: null,
          chunkDelayInMs: null,
          chunks: [
            { type: 'stream-start', warnings: [] },
            ...parts.flatMap((part, at): LanguageModelV4StreamPart[] =>
              part.type === 'tool-call'
                ? [part]
                : [
                    { type: 'text-start', id: `${at}` },
                    { type: 'text-delta', id: `${at}`, delta: part.text },
                    { type: 'text-end', id: `${at}` },
                  ],
            ),
            { type: 'finish', finishReason: { unified, raw: unified }, usage },
          ],
        }),
      });
    },
  });
  return { model, prompts };
}

const inputSchema = z.object({ to: z.string() });

function run(relay: ReturnType<typeof agentRelay>, answer: GivenAnswer = { approved: true }) {
  const asked: AskedQuestion[] = [];
  const runtime = createRuntime({ environment: simulatedEnvironment(), journal: memoryJournal() });
  const { result } = runSubagent({ name: 'mailer', instructions: 'You mail.', relay }, 'Mail Ann', {
    runtime,
    id: 'run',
    onQuestion: (question) => {
      asked.push(question);
      return Promise.resolve(answer);
    },
  });
  return { result, asked };
}

describe('a subagent that runs an AI SDK agent', () => {
  test('returns the text after the last tool call, and lists the tool in the ledger', async () => {
    const { model } = saying([text('Looking.'), call('send', { to: 'Ann' })], [text('Sent.')]);
    const send = tool({ inputSchema, execute: ({ to }) => `sent to ${to}` });
    const outcome = await run(agentRelay(new ToolLoopAgent({ model, tools: { send } }))).result;
    expect(outcome).toMatchObject({ status: 'completed', text: 'Sent.' });
    expect(outcome.toolLedger.filter(({ toolName }) => toolName === 'agent_tool')).toEqual([
      expect.objectContaining({
        input: { title: 'send', kind: 'other', input: { to: 'Ann' } },
        status: 'ok',
        output: 'sent to Ann',
      }),
    ]);
  });

  test.each([
    [true, ['Ann']],
    [false, []],
  ])(
    'asks the user for an approval that the agent requests, and passes on the answer %s',
    async (approved, expected) => {
      const sent: string[] = [];
      const { model, prompts } = saying([call('send', { to: 'Ann' })], [text('Well.')]);
      const send = tool({ inputSchema, execute: ({ to }) => void sent.push(to) });
      const agent = new ToolLoopAgent({
        model,
        tools: { send },
        toolApproval: { send: 'user-approval' },
      });
      const { result, asked } = run(agentRelay(agent), { approved });
      expect(await result).toMatchObject({ status: 'completed', text: 'Well.' });
      expect(asked).toHaveLength(1);
      expect(JSON.stringify(asked[0])).toContain('send');
      expect(sent).toEqual(expected);
      expect(JSON.stringify(prompts[1])).toContain(approved ? '"tool-result"' : 'execution-denied');
    },
  );

  test('asks the user to answer a tool without execute if `questions` lists the tool', async () => {
    const { model, prompts } = saying([call('ask', { to: 'Which Ann?' })], [text('Thanks.')]);
    const tools = { ask: tool({ inputSchema, outputSchema: z.unknown() }) };
    const questions = { ask: (input: unknown) => ({ text: (input as { to: string }).to }) };
    const relay = agentRelay(new ToolLoopAgent({ model, tools }), { questions });
    const { result, asked } = run(relay, { text: 'Ann Smith' });
    expect(await result).toMatchObject({ status: 'completed', text: 'Thanks.' });
    expect(asked[0]).toMatchObject({ question: 'Which Ann?' });
    expect(JSON.stringify(prompts[1])).toContain('"answer":"Ann Smith"');
  });

  test('fails for a tool without execute that is not listed in `questions`', async () => {
    const { model } = saying([call('ask', { to: 'Which Ann?' })]);
    const tools = { ask: tool({ inputSchema, outputSchema: z.unknown() }) };
    const outcome = await run(agentRelay(new ToolLoopAgent({ model, tools }))).result;
    expect(outcome.status).toBe('failed');
    expect(JSON.stringify(outcome)).toContain('has no execute');
  });

  test('fails with RELAY_LIMIT when the agent stops without any text', async () => {
    const { model } = saying([call('send', { to: 'Ann' })]);
    const send = tool({ inputSchema, execute: () => 'sent' });
    const agent = new ToolLoopAgent({ model, tools: { send }, stopWhen: isStepCount(1) });
    const outcome = await run(agentRelay(agent)).result;
    expect(outcome.status).toBe('failed');
    expect(JSON.stringify(outcome)).toContain('RELAY_LIMIT');
  });
});

test('lists the tools of an interrupted turn in the next prompt', async () => {
  const { model, prompts } = saying([text('Wait.'), call('send', { to: 'Ann' })], [text('Next.')]);
  const send = tool({ inputSchema, execute: () => new Promise<string>(() => {}) });
  const events: RelayEvent[] = [];
  const heard = new Map<string, () => void>();
  const next = (type: RelayEvent['type']) =>
    new Promise<void>((resolve) => {
      heard.set(type, resolve);
    });
  const session = await agentRelay(new ToolLoopAgent({ model, tools: { send } })).start({
    subagentId: 'one',
    signal: new AbortController().signal,
    scheduler: simulatedEnvironment().scheduler,
    ids: simulatedEnvironment().ids,
    receive: (event) => {
      events.push(event);
      heard.get(event.type)?.();
    },
    report: () => {},
  });
  const begun = next('tool_started');
  session.prompt({ key: 'a', text: 'Mail Ann' });
  await begun;
  expect(events.map(({ type }) => type)).toEqual(['words', 'tool_started']);
  const cut = next('turn_ended');
  session.interrupt();
  await cut;
  expect(events.at(-1)).toEqual({ type: 'turn_ended', reason: 'cancelled' });
  const ended = next('turn_ended');
  session.prompt({ key: 'b', text: 'And now?' });
  await ended;
  expect(JSON.stringify(prompts[1])).toMatch(/cut off while these tools ran: .*send.*And now\?/);
  expect(events.at(-1)).toMatchObject({ type: 'turn_ended', reason: 'completed' });
});

test.each([
  [null, {}, /`agent`: expected an agent of the AI SDK/],
  [{ stream: 1 }, {}, /`agent`: expected an agent of the AI SDK/],
  [{ stream() {} }, { nam: 'x' }, /nam/],
  [{ stream() {} }, { questions: { ask: 'When?' } }, /questions/],
])('agentRelay(%j, %j) is refused by name', (agent, options, message) => {
  expect(() => agentRelay(agent as never, options as never)).toThrow(message);
});
