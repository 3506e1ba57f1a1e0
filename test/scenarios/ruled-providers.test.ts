// A conversation over each API, through the official package of its provider, on a server that applies the API's rules:
// a greeting, calls from a thinking model, an approval, a question, and user messages in between.

import { APICallError } from 'ai';
import { expect, onTestFinished, test } from 'vitest';
import { resolveModel } from '../../src/actors/model/model.ts';
import { scriptedModel, simulatedEnvironment } from '../../src/testing/index.ts';
import { modelServer } from '../support/model-server.ts';
import { ruledProviders } from '../support/providers.ts';
import { calls, say, simpleTool, steps } from '../support/subagent-runs.ts';
import { textTalk } from '../support/text-talk.ts';

const ruled = ruledProviders.flatMap((provider) => (provider.api ? [provider] : []));

test.each(ruled)(
  '$name refuses a call without a result, and the package returns the reason',
  async (provider) => {
    const server = await modelServer(provider, true);
    onTestFinished(() => server.close());
    const model = resolveModel(server.serve(scriptedModel([{ text: 'never said' }])));
    const asked = model.doGenerate({
      prompt: [
        { role: 'user', content: [{ type: 'text', text: 'the sales?' }] },
        {
          role: 'assistant',
          content: [{ type: 'tool-call', toolCallId: 'abc123XYZ', toolName: 'look', input: {} }],
        },
        { role: 'user', content: [{ type: 'text', text: 'well?' }] },
      ],
      tools: [{ type: 'function', name: 'look', inputSchema: { type: 'object', properties: {} } }],
    });
    const error: unknown = await Promise.resolve(asked).catch((thrown: unknown) => thrown);
    const [refusal] = server.refusals;
    expect(refusal?.rule.name).toBe('result-for-call');
    expect(error).toSatisfy(APICallError.isInstance);
    expect(error).toMatchObject({ statusCode: 400, message: refusal?.words });
  },
);

test.each(ruled)(
  '$name accepts a conversation with calls, reasoning, questions and notes',
  async (provider) => {
    const server = await modelServer(provider, true);
    const environment = server.within(simulatedEnvironment());
    globalThis.AI_SDK_LOG_WARNINGS = false;
    const thinking = provider.reasons === false ? {} : { thinking: 'I look first.' };
    const talk = textTalk({
      environment,
      wire: server.serve,
      greeting: 'Hello!',
      subagents: {
        report: {
          script: steps(
            { ...thinking, ...calls(['look'], ['look']) },
            { ...thinking, ...calls(['send']) },
            { ...thinking, ...calls(['ask_user', { question: 'Which year?' }]) },
            say('Sales are up.'),
          ),
          config: {
            interactive: true,
            tools: {
              look: simpleTool(() => 7),
              send: simpleTool(() => 'sent', { needsApproval: true }),
            },
          },
        },
      },
    });
    onTestFinished(async () => {
      await talk.close();
      await server.close();
      globalThis.AI_SDK_LOG_WARNINGS = undefined;
    });
    await talk.start();
    await talk.type('use report {"days":7}');
    await talk.type('how are you?');
    // The approval is read back, because the lead agent has spoken since.
    await talk.type('yes');
    await talk.type('yes');
    await talk.type('2026');
    await talk.type('thank you');
    expect(server.refusals).toEqual([]);
    expect(talk.errors).toEqual([]);
    expect(talk.state().subagents.at(-1)?.outcome).toMatchObject({
      status: 'completed',
      text: 'Sales are up.',
    });
  },
);
