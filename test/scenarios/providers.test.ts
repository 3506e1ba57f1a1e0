// The same conversations with five providers, each through its official package and real HTTP, on a third-party server.
// Time is simulated. Only the sockets use real time.

import { tool } from 'ai';
import { describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import type { ProviderError } from '../../src/index.ts';
import { simulatedEnvironment, type ScriptedPrompt } from '../../src/testing/index.ts';
import { Refusal, USAGE } from '../support/model-answers.ts';
import { modelServer } from '../support/model-server.ts';
import { providers, type Provider } from '../support/providers.ts';
import { calls, never, resultsIn, say, simpleTool, steps } from '../support/subagent-runs.ts';
import { instructionsOf, leadScript, textTalk, type TalkOptions } from '../support/text-talk.ts';

async function talkOver(provider: Provider, options: TalkOptions = {}) {
  const server = await modelServer(provider);
  const environment = server.within(simulatedEnvironment());
  const warnings: unknown[] = [];
  globalThis.AI_SDK_LOG_WARNINGS = (told) => warnings.push(...told.warnings);
  const talk = textTalk({ ...options, environment, wire: server.serve });
  onTestFinished(async () => {
    await talk.close();
    await server.close();
    globalThis.AI_SDK_LOG_WARNINGS = undefined;
  });
  await talk.start();
  return {
    ...talk,
    server,
    /** The warnings of the AI SDK. */
    warnings,
    /** Returns a subagent's exchanges. All others belong to the lead agent. */
    exchangesOf: (name: string) =>
      server.exchanges.filter(({ asked }) =>
        JSON.stringify(asked?.messages ?? []).includes(
          JSON.stringify(instructionsOf(name)).slice(1, -1),
        ),
      ),
    outcomeOf: (name: string) =>
      talk.state().subagents.findLast((view) => view.name === name)?.outcome,
  };
}

/** A tool that records its input. */
function look(seen: unknown[] = [], more: Record<string, unknown> = {}) {
  return {
    ...tool({ description: 'Looks', inputSchema: z.object({ at: z.string() }) }),
    execute: (input: unknown) => {
      seen.push(input);
      return { seen: input };
    },
    ...more,
  };
}

const LONG = 'Sales are up by 7 percent. '.repeat(20).trim();
const deny = { optionId: 'deny' };

describe.each(providers)('$name', (provider) => {
  const over = (options?: TalkOptions) => talkOver(provider, options);

  describe('a conversation', () => {
    test('streams word by word', async () => {
      const { type, said, parts, server } = await over();
      await type('hello there, how are you?');
      expect(said()).toEqual(['You said: hello there, how are you?']);
      const deltas = parts.flatMap((part) => (part.type === 'text.delta' ? [part.text] : []));
      expect(deltas.length).toBeGreaterThan(2);
      expect(deltas.join('')).toBe(said()[0]);
      expect(server.exchanges.map(({ path, end }) => [path, end])).toEqual([
        [expect.stringMatching(provider.path), 'answered'],
      ]);
    });

    test('continues while a subagent calls a tool, then delivers its result and counts its tokens', async () => {
      const seen: unknown[] = [];
      const { type, said, outcomeOf, exchangesOf, errors } = await over({
        subagents: {
          report: {
            script: steps(calls(['look', { at: 'sales' }]), (prompt) =>
              say(`I read ${JSON.stringify(resultsIn(prompt))}`),
            ),
            config: { tools: { look: look(seen) } },
          },
        },
      });
      await type('use report {"days":7}');
      expect(seen).toEqual([{ at: 'sales' }]);
      expect(said()[0]).toContain('still_in_progress');
      expect(outcomeOf('report')).toMatchObject({
        status: 'completed',
        text: 'I read [["look","json",{"seen":{"at":"sales"}}]]',
        usage: {
          inputTokens: 2 * USAGE.input,
          outputTokens: 2 * USAGE.output,
          totalTokens: 2 * (USAGE.input + USAGE.output),
        },
      });
      expect(said().at(-1)).toContain('Tell the user this result.');
      expect(exchangesOf('report')).toHaveLength(2);
      expect(errors).toEqual([]);
    });

    test('remembers its calls and their results', async () => {
      const histories: string[] = [];
      const { type } = await over({
        subagents: { report: { script: () => say('Sales are up.') } },
        onModelCall: (who, { prompt }) => {
          if (who === 'lead') histories.push(JSON.stringify(prompt));
        },
      });
      await type('use report {"days":7}');
      await type('thank you');
      for (const part of ['"toolName":"report"', '"days":7', 'still_in_progress', 'Sales are up.'])
        expect(histories.at(-1)).toContain(part);
    });
  });

  describe('calls', () => {
    test('run concurrently within a step and return their results in order', async () => {
      const seen: unknown[] = [];
      const { type, outcomeOf } = await over({
        subagents: {
          report: {
            script: steps(
              calls(['look', { at: 'here' }], ['look', { at: 'there' }], ['count']),
              (prompt) => say(JSON.stringify(resultsIn(prompt))),
            ),
            config: { tools: { look: look(seen), count: simpleTool(() => 3) } },
          },
        },
      });
      await type('use report');
      expect(seen).toEqual([{ at: 'here' }, { at: 'there' }]);
      expect(JSON.parse(outcomeOf('report')?.text ?? '')).toEqual([
        ['look', 'json', { seen: { at: 'here' } }],
        ['look', 'json', { seen: { at: 'there' } }],
        ['count', 'json', 3],
      ]);
    });

    test('get unique ids even if the provider restarts its count in each answer', async () => {
      const seen: unknown[] = [];
      const { type, outcomeOf } = await over({
        subagents: {
          report: {
            script: steps(
              calls(['look', { at: 'one' }, 'call_0']),
              calls(['look', { at: 'two' }, 'call_0'], ['look', { at: 'three' }, 'call_0']),
              (prompt) => say(JSON.stringify(resultsIn(prompt))),
            ),
            config: { tools: { look: look(seen) } },
          },
        },
      });
      await type('use report');
      expect(seen).toEqual([{ at: 'one' }, { at: 'two' }, { at: 'three' }]);
      const ledger = outcomeOf('report')?.toolLedger ?? [];
      expect(new Set(ledger.map(({ callId }) => callId)).size).toBe(3);
      expect(JSON.parse(outcomeOf('report')?.text ?? '')).toEqual([
        ['look', 'json', { seen: { at: 'two' } }],
        ['look', 'json', { seen: { at: 'three' } }],
      ]);
    });

    test.each([
      ['arguments that do not fit', ['look', { at: 7 }], 'Invalid input for tool look'],
      ['arguments that are cut off', ['look', '{"at":"sal'], 'Invalid input for tool look'],
      ['arguments that are no object', ['look', '[7]'], 'Invalid input for tool look'],
      ['a tool that is not there', ['peek', { at: 'sales' }], 'unavailable tool'],
    ] as const)(
      'receive an error for %s and then accept a corrected call',
      async (_, call, message) => {
        const seen: unknown[] = [];
        const answers: unknown[] = [];
        const { type, outcomeOf, exchangesOf } = await over({
          subagents: {
            report: {
              script: steps(
                calls([...call]),
                ({ results }) => {
                  answers.push(...results);
                  return calls(['look', { at: 'sales' }]);
                },
                say('Sales are up.'),
              ),
              config: { tools: { look: look(seen) } },
            },
          },
        });
        await type('use report');
        expect(answers).toEqual([expect.stringContaining(message)]);
        expect(seen).toEqual([{ at: 'sales' }]);
        expect(outcomeOf('report')).toMatchObject({ status: 'completed', text: 'Sales are up.' });
        expect(exchangesOf('report')).toHaveLength(3);
      },
    );

    test.each(['{"days":', '[7]', 'null'])(
      'keep the conversation intact if the lead agent passes the arguments %s',
      async (json) => {
        const { type, parts, said } = await over({
          subagents: { report: { script: () => say('Sales are up.') } },
          lead: (prompt) => (prompt.turn === 1 ? calls(['report', json]) : leadScript(prompt)),
        });
        await type('the sales, please');
        await type('go on');
        expect(parts.filter((part) => part.type === 'response.failed')).toEqual([]);
        expect(said().at(-1)).toContain('go on');
      },
    );

    test('do not turn leading white space into a message', async () => {
      const { type, outcomeOf, errors } = await over({
        subagents: {
          report: {
            script: steps(
              { text: '\n\n', ...calls(['look', { at: 'sales' }]) },
              say('Sales are up.'),
            ),
            config: { tools: { look: look() } },
          },
        },
      });
      await type('use report');
      expect(outcomeOf('report')).toMatchObject({ status: 'completed', text: 'Sales are up.' });
      expect(errors).toEqual([]);
    });

    test('do not run if the user denies them, and return the denial to the model', async () => {
      const seen: unknown[] = [];
      const { type, session, environment, question, outcomeOf } = await over({
        subagents: {
          report: {
            script: steps(calls(['look', { at: 'mail' }]), ({ results }) =>
              say(JSON.stringify(results)),
            ),
            config: { tools: { look: look(seen, { needsApproval: true }) } },
          },
        },
      });
      await type('use report');
      expect(question()).toMatchObject({ kind: 'approval', state: 'open' });
      void session.answer(question()?.requestId ?? '', deny);
      await environment.settle();
      expect(seen).toEqual([]);
      expect(outcomeOf('report')?.toolLedger).toEqual([
        expect.objectContaining({ status: 'denied', approval: 'denied' }),
      ]);
      expect(outcomeOf('report')?.text).toMatch(
        /^\["Not approved\. The answer: \\"No\\"\. .*Otherwise go on without this call\."\]$/,
      );
    });
  });

  describe('a question', () => {
    const asking = {
      ride: {
        script: steps(
          calls([
            'ask_user',
            {
              question: 'Economy or Premium?',
              options: [
                { id: 'economy', label: 'Economy' },
                { id: 'premium', label: 'Premium' },
              ],
            },
          ]),
          ({ results }) => say(`Booked: ${JSON.stringify(results)}`),
        ),
        config: { interactive: true },
      },
    };
    const booked = 'Booked: [{"userResponse":"Premium","optionId":"premium"}]';

    test('accepts a typed answer', async () => {
      const { type, parts, outcomeOf } = await over({ subagents: asking });
      await type('use ride');
      expect(parts.find((part) => part.type === 'question.asked')).toMatchObject({
        question: 'Economy or Premium?',
      });
      await type('premium, please');
      expect(outcomeOf('ride')?.text).toBe(booked);
    });

    test('accepts an answer given with a button', async () => {
      const { type, session, question, environment, outcomeOf } = await over({ subagents: asking });
      await type('use ride');
      const receipt = session.answer(question()?.requestId ?? '', { optionId: 'premium' });
      await environment.settle();
      expect(await receipt).toEqual({ accepted: true });
      expect(outcomeOf('ride')?.text).toBe(booked);
    });
  });

  describe('an answer', () => {
    test('causes another request that contains the reason if it does not match the schema', async () => {
      const asked: string[] = [];
      const { type, outcomeOf } = await over({
        subagents: {
          report: {
            script: steps(say('{"sales":"a lot"}'), ({ user }) => {
              asked.push(user);
              return say('```json\n{"sales":7}\n```');
            }),
            config: { outputSchema: z.object({ sales: z.number() }) },
          },
        },
      });
      await type('use report');
      expect(outcomeOf('report')).toMatchObject({
        status: 'completed',
        output: { sales: 7 },
        steps: 2,
      });
      expect(asked).toEqual([expect.stringMatching(/not accepted.*expected number/s)]);
    });

    describe('with a schema', () => {
      /** Returns whether the package requests JSON. Each package does so in its own way. */
      const isStructured = (body: string): boolean =>
        /json_schema|response_format|output_format|output_config|responseMimeType|"name":"json"/.test(
          body,
        );
      const report = (structured: 'auto' | 'off') => ({
        report: {
          script: ({ results }: ScriptedPrompt) =>
            results.length === 0 ? calls(['look', { at: 'sales' }]) : say('{"sales":7}'),
          config: {
            outputSchema: z.object({ sales: z.number() }),
            tools: { look: look() },
            structured,
          },
        },
      });
      const done = { status: 'completed', output: { sales: 7 }, steps: 2 };

      test('requests the schema along with tools, or in the prompt if structured output is off', async () => {
        for (const structured of ['auto', 'off'] as const) {
          const { type, outcomeOf, exchangesOf } = await over({ subagents: report(structured) });
          await type('use report');
          expect(outcomeOf('report')).toMatchObject(done);
          const [first] = exchangesOf('report');
          expect([structured, isStructured(first?.body ?? '')]).toEqual([
            structured,
            structured === 'auto',
          ]);
          expect(exchangesOf('report')).toHaveLength(2);
        }
      });

      test('requests the schema in the prompt after a single refusal', async () => {
        const { type, outcomeOf, exchangesOf, server, errors } = await over({
          subagents: report('auto'),
        });
        server.refuse(isStructured);
        await type('use report');
        await type('use report');
        expect(outcomeOf('report')).toMatchObject(done);
        const asked = exchangesOf('report').map(({ body }) => isStructured(body));
        expect(asked.filter(Boolean)).toHaveLength(1);
        expect(asked).toHaveLength(5);
        expect(errors.map(({ where }) => where)).toEqual([
          'structured output of report: it is asked for in words from now on',
        ]);
      });

      test('leaves the schema out of the prompt if another part of the request was invalid', async () => {
        const { type, outcomeOf, exchangesOf, server } = await over({ subagents: report('auto') });
        server.refuse((body) => body.includes('sales') || body.includes('look'));
        await type('use report');
        expect(outcomeOf('report')).toMatchObject({
          status: 'failed',
          error: { code: 'PROVIDER_REFUSED', message: 'this cannot be asked for' },
        });
        expect(exchangesOf('report')).toHaveLength(2);
      });
    });

    test('fails with a named error if it is empty', async () => {
      const { type, said, outcomeOf } = await over({
        subagents: { report: { script: () => say('') } },
      });
      await type('use report');
      expect(outcomeOf('report')?.error).toMatchObject({ code: 'EMPTY_OUTPUT', retryable: true });
      expect(said().at(-1)).toContain('The model ended without a word');
    });

    test("reports a failed response to the user if the lead agent's answer is empty", async () => {
      const { type, parts, said } = await over({
        lead: (prompt) => (prompt.turn <= 2 ? say('') : leadScript(prompt)),
      });
      await type('hello');
      expect(parts).toEqual([
        {
          type: 'response.failed',
          code: 'EMPTY_OUTPUT',
          message: 'The model ended without a word',
        },
      ]);
      await type('are you there?');
      expect(said().at(-1)).toContain('are you there?');
    });

    test('fails with a named error if it is cut off at the length limit', async () => {
      const { type, outcomeOf } = await over({
        subagents: { report: { script: () => ({ text: 'Sales are', finish: 'length' }) } },
      });
      await type('use report');
      expect(outcomeOf('report')).toMatchObject({
        error: { code: 'OUTPUT_TRUNCATED' },
        partial: 'Sales are',
      });
    });

    test.runIf(provider.reasons !== false).for([true, false])(
      'says the words without the reasoning, which the model reads again with the results (stream: %s)',
      async (stream) => {
        const { type, said, outcomeOf, warnings } = await over({
          lead: async (prompt) => ({ thinking: 'Hm, hm.', ...(await leadScript(prompt)) }),
          subagents: {
            report: {
              script: steps(
                { thinking: 'Look first.', ...calls(['look', { at: 'sales' }]) },
                { thinking: 'Up they are.', text: 'Sales are up.' },
              ),
              config: { tools: { look: look() }, stream },
            },
          },
        });
        await type('use report');
        expect(outcomeOf('report')).toMatchObject({ status: 'completed', text: 'Sales are up.' });
        expect(said().at(-1)).toContain('Sales are up.');
        expect(said().join()).not.toContain('Hm, hm.');
        // A package that cannot send reasoning back warns about that.
        expect(warnings).toEqual([]);
      },
    );

    test('arrives complete from a subagent that streams', async () => {
      const { type, outcomeOf, errors } = await over({
        subagents: {
          report: {
            script: steps(calls(['look', { at: 'sales' }]), say('Sales are up by 7 percent.')),
            config: { tools: { look: look() }, stream: true },
          },
        },
      });
      await type('use report');
      expect(outcomeOf('report')).toMatchObject({
        text: 'Sales are up by 7 percent.',
        toolLedger: [{ toolName: 'look', output: { seen: { at: 'sales' } } }],
        usage: { totalTokens: 2 * (USAGE.input + USAGE.output) },
      });
      expect(errors).toEqual([]);
    });
  });

  describe('a provider that refuses a request', () => {
    test('receives the next request no earlier than it specified (429)', async () => {
      const { type, outcomeOf, exchangesOf, environment, errors } = await over({
        subagents: {
          report: {
            script: ({ turn }) => {
              if (turn === 1) throw new Refusal(429, 'slow down', 7);
              return say('Sales are up.');
            },
          },
        },
      });
      await type('use report');
      await environment.advance(6_999);
      expect(exchangesOf('report')).toHaveLength(1);
      await environment.advance(1);
      expect(outcomeOf('report')).toMatchObject({ status: 'completed', text: 'Sales are up.' });
      expect(errors.map(({ where }) => where)).toEqual(['model call 1 of step 1 of report']);
    });

    test("fails the task after repeated failures, with the provider's message (500)", async () => {
      const { type, said, outcomeOf, exchangesOf, environment } = await over({
        subagents: {
          report: {
            script: () => {
              throw new Refusal(500, 'the disk is full');
            },
          },
        },
      });
      await type('use report');
      await environment.advance(10_000);
      expect(exchangesOf('report')).toHaveLength(3);
      expect(outcomeOf('report')?.error).toEqual({
        code: 'PROVIDER_UNAVAILABLE',
        message: 'the disk is full',
        retryable: true,
      });
      expect(said().at(-1)).toContain('the disk is full');
    });

    test('does not receive a second request after a permanent refusal (400)', async () => {
      const { type, outcomeOf, exchangesOf, environment } = await over({
        subagents: {
          report: {
            script: () => {
              throw new Refusal(400, 'no such parameter');
            },
          },
        },
      });
      await type('use report');
      await environment.advance(10_000);
      expect(exchangesOf('report')).toHaveLength(1);
      expect(outcomeOf('report')?.error).toMatchObject({
        code: 'PROVIDER_REFUSED',
        message: 'no such parameter',
      });
    });

    test.each([
      [429, 'RATE_LIMITED', 3],
      [500, 'PROVIDER_UNAVAILABLE', 3],
      [401, 'PROVIDER_UNAUTHORIZED', 1],
    ])(
      'fails one reply of the lead agent (%d) without affecting the next one',
      async (status, code, attempts) => {
        const { type, parts, said, environment, errors } = await over({
          lead: (prompt) => {
            if (prompt.user === 'hello') throw new Refusal(status, 'not today');
            return leadScript(prompt);
          },
        });
        await type('hello');
        await environment.advance(10_000);
        expect(parts).toEqual([{ type: 'response.failed', code, message: 'not today' }]);
        expect(errors.map(({ error }) => (error as ProviderError).code)).toEqual(
          Array(attempts).fill(code),
        );
        await type('and again');
        // Some providers join two adjacent messages.
        expect(said()).toEqual([expect.stringMatching(/^You said: (hello)?and again$/)]);
      },
    );

    test.each([429, 500])(
      "LEAD-STREAM-1: repeats the lead agent's model call after one failure (%d)",
      async (status) => {
        let refusals = 0;
        const { type, parts, said, environment, session } = await over({
          lead: (prompt) => {
            if ((refusals += 1) === 1) throw new Refusal(status, 'not today');
            return leadScript(prompt);
          },
        });
        await type('hello');
        expect(said()).toEqual([]);
        // LEAD-STREAM-2
        await type('and bye');
        await environment.advance(2000);
        await session.idle();
        expect(parts.some((part) => part.type === 'response.failed')).toBe(false);
        // Some providers join two adjacent messages.
        expect(said()).toEqual([
          'You said: hello',
          expect.stringMatching(/^You said: (hello)?and bye$/),
        ]);
      },
    );
  });

  describe('a stream that breaks off', () => {
    test('keeps the part that was received and reports the interruption', async () => {
      const { type, parts, state, server, said } = await over();
      let breaks = true;
      server.breakOff(() => breaks);
      await type('tell me a very long story of the sea');
      expect(parts.filter((part) => part.type === 'text.delta').length).toBeGreaterThan(0);
      expect(parts.filter((part) => part.type === 'response.failed')).toEqual([
        {
          type: 'response.failed',
          code: 'CONNECTION_LOST',
          message: 'The connection broke off in mid-answer: other side closed',
        },
      ]);
      expect(state().transcript.at(-1)).toMatchObject({ role: 'assistant', interrupted: true });
      breaks = false;
      await type('go on');
      expect(said().at(-1)).toBe('You said: go on');
    });

    test('causes another request if the stream belongs to a subagent', async () => {
      const { type, outcomeOf, exchangesOf, environment, server, errors } = await over({
        subagents: {
          report: {
            script: () => say('Sales are up by 7 percent in the south.'),
            config: { stream: true },
          },
        },
      });
      let breaks = true;
      server.breakOff(
        ({ messages }) => breaks && JSON.stringify(messages).includes('the subagent'),
      );
      await type('use report');
      expect(errors).toHaveLength(1);
      breaks = false;
      await environment.advance(10_000);
      expect(exchangesOf('report')).toHaveLength(2);
      expect(outcomeOf('report')).toMatchObject({
        status: 'completed',
        text: 'Sales are up by 7 percent in the south.',
      });
    });
  });

  test('counts as incomplete if it ends without a finish event', async () => {
    const { type, parts, server, outcomeOf, environment } = await over({
      subagents: { report: { script: () => say(LONG), config: { stream: true } } },
      lead: (prompt) => (prompt.user === 'hello' ? say(LONG) : leadScript(prompt)),
    });
    let ends = true;
    server.endEarly(() => ends);
    await type('hello');
    expect(parts.filter((part) => part.type === 'response.failed')).toEqual([
      expect.objectContaining({
        code: expect.stringMatching(/^(STREAM_CUT_OFF|MALFORMED_RESPONSE)$/),
      }),
    ]);
    server.endEarly(({ messages }) => ends && JSON.stringify(messages).includes('the subagent'));
    await type('use report');
    expect(outcomeOf('report')).toBeNull();
    ends = false;
    await environment.advance(10_000);
    expect(outcomeOf('report')).toMatchObject({ status: 'completed', text: LONG });
  });

  describe('cancelled calls', () => {
    test("abort a subagent's running model call", async () => {
      const { type, session, state, exchangesOf, environment } = await over({
        subagents: { report: { script: never } },
      });
      await type('use report');
      expect(exchangesOf('report').map(({ end }) => end)).toEqual(['open']);
      session.subagents.cancel(state().subagents[0]?.id ?? '', 'enough');
      await environment.settle();
      expect(state().subagents[0]?.state).toBe('cancelled');
      expect(exchangesOf('report').map(({ end }) => end)).toEqual(['hung_up']);
    });

    test("abort the lead agent's call for an urgent notice", async () => {
      const { type, session, said, server, environment } = await over({
        lead: (prompt) => (prompt.turn === 1 ? never() : leadScript(prompt)),
      });
      await type('hello');
      session.notifyBackground('The building is on fire', { priority: 'urgent' });
      await environment.settle();
      expect(said()[0]).toContain('on fire');
      expect(server.exchanges.map(({ end }) => end)).toEqual(['hung_up', 'answered', 'answered']);
    });
  });

  test("limits the model's output by a token budget and ends with a partial result", async () => {
    const { type, outcomeOf, exchangesOf } = await over({
      subagents: {
        report: {
          script: ({ user }) =>
            user.includes('last answer') ? say('Two of five found.') : calls(['look', { at: 'x' }]),
          config: { maxSteps: 50, tools: { look: look() }, budget: { tokens: 1_000 } },
        },
      },
    });
    await type('use report');
    expect(outcomeOf('report')).toMatchObject({
      status: 'failed',
      partial: 'Two of five found.',
      error: { code: 'BUDGET_EXHAUSTED' },
    });
    const limits = exchangesOf('report').map(({ asked }) => asked?.max_tokens);
    expect(limits.length).toBeGreaterThan(2);
    for (const limit of limits.slice(0, -1)) expect(limit).toBeLessThan(1_000);
    // The last call returns the completed work.
    expect(limits.at(-1)).toBe(1024);
  });
});
