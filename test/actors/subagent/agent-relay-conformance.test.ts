// The relay to AI SDK agents passes the relay suite with a real `ToolLoopAgent`. Its model performs the acts of a
// prompt: it speaks until it needs a tool, and continues in its next step.

import type { LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { tool, ToolLoopAgent } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { describe, test } from 'vitest';
import { z } from 'zod';
import { agentRelay } from '../../../src/entries/subagents.ts';
import { actsIn } from '../../../src/testing/doubles/relay-acts.ts';
import { relayConformance } from '../../suites/relays/index.ts';
import type { RelayAct } from '../../../src/testing/index.ts';

type Options = Parameters<MockLanguageModelV4['doStream']>[0];
type Part = LanguageModelV4StreamPart;

const usage = {
  inputTokens: { total: 3, noCache: 3, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 2, text: 2, reasoning: 0 },
};

/** Returns the remaining acts, and the result of the last one. */
function leftOf(prompt: Options['prompt']): { acts: readonly RelayAct[]; said: string } {
  const from = prompt.findLastIndex(({ role }) => role === 'user');
  const asked = prompt[from];
  const text =
    asked?.role === 'user'
      ? asked.content.map((part) => ('text' in part ? part.text : '')).join('')
      : '';
  const acts = actsIn(text);
  const results = prompt
    .slice(from)
    .flatMap((message) => (message.role === 'tool' ? message.content : []))
    .filter((part) => part.type === 'tool-result');
  const stops = acts.flatMap((act, at) => (isCall(act) ? [at] : []));
  const done = stops[results.length - 1];
  if (done === undefined) return { acts, said: '' };
  const output = results.at(-1)?.output;
  const act = acts[done] ?? { say: '' };
  const rest = acts.slice(done + 1);
  if ('permission' in act) {
    const given =
      output?.type !== 'execution-denied'
        ? 'permitted'
        : output.reason === 'Nobody answered.'
          ? 'cancelled'
          : 'denied';
    return { acts: rest, said: `${given}. ` };
  }
  if (!('question' in act)) return { acts: rest, said: '' };
  if (output?.type !== 'json') return { acts: rest, said: 'no answer. ' };
  const { answer, optionId } = output.value as { answer: string; optionId?: string };
  return { acts: rest, said: `answer: ${optionId ?? answer}. ` };
}

function isCall(act: RelayAct): boolean {
  return 'tool' in act || 'permission' in act || 'question' in act;
}

function performing(onRunning: (change: 1 | -1) => void): MockLanguageModelV4 {
  let calls = 0;
  return new MockLanguageModelV4({
    doStream: ({ prompt, abortSignal }) => {
      const { acts, said } = leftOf(prompt);
      const parts: Part[] = [{ type: 'stream-start', warnings: [] }];
      let texts = 0;
      const say = (delta: string): void => {
        texts += 1;
        const id = `text-${texts}`;
        parts.push(
          { type: 'text-start', id },
          { type: 'text-delta', id, delta },
          { type: 'text-end', id },
        );
      };
      if (said !== '') say(said);
      let unified: 'stop' | 'tool-calls' | 'content-filter' = 'stop';
      let hangs = false;
      for (const act of acts) {
        if ('say' in act) say(act.say);
        else if ('flood' in act) for (let n = 0; n < act.flood; n += 1) say('flood ');
        else if ('untilCancelled' in act) hangs = true;
        else if ('end' in act) unified = 'content-filter';
        else if (isCall(act)) {
          calls += 1;
          const [toolName, input] =
            'tool' in act
              ? [
                  act.tool.title,
                  { ...(act.tool.input as object), ...(act.fails ? { fails: true } : {}) },
                ]
              : 'permission' in act
                ? [act.permission.title, act.permission.input]
                : ['ask', act];
          parts.push({
            type: 'tool-call',
            toolCallId: `call-${calls}`,
            toolName,
            input: JSON.stringify(input),
          });
          unified = 'tool-calls';
          break;
        }
      }
      const stream = new ReadableStream<Part>({
        start(controller) {
          onRunning(1);
          for (const part of parts) controller.enqueue(part);
          const stop = (): void => {
            onRunning(-1);
            controller.error(abortSignal?.reason);
          };
          if (hangs) {
            abortSignal?.addEventListener('abort', stop, { once: true });
            return;
          }
          controller.enqueue({ type: 'finish', finishReason: { unified, raw: unified }, usage });
          controller.close();
          onRunning(-1);
        },
      });
      return Promise.resolve({ stream });
    },
  });
}

const cases = relayConformance({
  name: 'an AI SDK agent',
  // The agent runs in this process, so it can neither die nor be killed, and the AI SDK reads its stream.
  shows: [],
  graceMs: 1,
  open: () => {
    let running = 0;
    const inputSchema = z.object({ path: z.string(), fails: z.boolean().optional() });
    const agent = new ToolLoopAgent({
      id: 'actor',
      model: performing((change) => {
        running += change;
      }),
      tools: {
        'Edit notes.txt': tool({
          inputSchema,
          execute: ({ fails = false }) => {
            if (fails) throw new Error('no');
            return 'done';
          },
        }),
        ask: tool({
          inputSchema: z.object({
            question: z.string(),
            options: z.array(z.object({ id: z.string(), label: z.string() })).optional(),
          }),
          outputSchema: z.unknown(),
        }),
      },
      // The same tool is used with and without approval, depending on the text of the prompt.
      toolApproval: ({ messages, toolCall }) => {
        const user = messages.findLast(({ role }) => role === 'user');
        const text =
          typeof user?.content === 'string' ? user.content : JSON.stringify(user?.content);
        return toolCall.toolName !== 'ask' && actsIn(text).some((act) => 'permission' in act)
          ? 'user-approval'
          : 'not-applicable';
      },
    });
    return {
      relay: agentRelay(agent, {
        questions: {
          ask: (input) => {
            const { question, options } = input as {
              question: string;
              options?: readonly { id: string; label: string }[];
            };
            return { text: question, ...(options ? { options } : {}) };
          },
        },
      }),
      running: () => running,
    };
  },
});

describe('an AI SDK agent', () => {
  test.each(cases.filter(({ skipped }) => skipped === null))('$name', ({ run }) => run());
});
