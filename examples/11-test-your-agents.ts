// Usage: npm run example examples/11-test-your-agents.ts
//
// How to test agents that call agents without a key and without waiting. Each agent has its own script, which is found
// by the agent's name, so a parent and its parallel children never compete for one list of answers. The clock is
// simulated, so ten minutes pass at once. These are plain assertions: use them in your test runner.

import { subAgentRefs } from 'offstage/compat';
import { THE_LEAD, createSubagentService, subAgentTools } from 'offstage/subagents';
import assert from 'node:assert/strict';
import { generateText, isStepCount } from 'ai';
import { z } from 'zod';
import { createRuntime, createSubAgentTool } from 'offstage';
import { scriptedModel, simulatedEnvironment, type ScriptLike } from 'offstage/testing';

/** The agents under test: an editor that delegates summaries of texts. */
function editor(summarizer: ScriptLike) {
  const environment = simulatedEnvironment();
  const calls = ['s1', 's2'].map((id) => ({ id, agentType: 'summarizer', input: { text: id } }));
  const model = scriptedModel({
    environment,
    agents: {
      editor: [
        { type: 'tool_calls', toolCalls: [], subAgentCalls: calls },
        { type: 'structured_output', output: { result: 'Used the summaries' } },
      ],
      summarizer,
    },
  });
  const service = createSubagentService({ runtime: createRuntime({ environment }), model });
  const summarize = createSubAgentTool(
    {
      name: 'summarizer',
      instructions: 'Summarize.',
      outputSchema: z.object({ summary: z.string() }),
      timeout: 600_000,
    },
    z.object({ text: z.string() }),
    { service },
  );
  const run = () =>
    generateText({
      model,
      instructions: 'You are the editor.',
      prompt: 'Summarize texts',
      tools: subAgentTools(summarize),
      stopWhen: isStepCount(3),
    });
  return { environment, service, run };
}

/** The results that the parent's model has received. */
const resultsOf = ({ responseMessages }: Awaited<ReturnType<ReturnType<typeof editor>['run']>>) =>
  responseMessages.flatMap(({ role, content }) =>
    role === 'tool'
      ? content.flatMap((part) =>
          part.type === 'tool-result' && part.output.type === 'json' ? [part.output.value] : [],
        )
      : [],
  );

// Two children run in parallel with a minute of work each. The whole takes one minute, and the results come in the
// order of the calls.
{
  const { environment, service, run } = editor(({ user }) => ({
    type: 'structured_output',
    output: { summary: `of ${/"text":"(\w+)"/.exec(user)?.[1]}` },
    delayMs: 60_000,
  }));
  const running = run();
  await environment.advance(60_000);
  const result = await running;
  assert.deepEqual(resultsOf(result), [{ summary: 'of s1' }, { summary: 'of s2' }]);
  assert.equal(result.text, '{"result":"Used the summaries"}');
  assert.equal(service.list(THE_LEAD).length, 0);
  console.log('ok: children run at once, their results come in call order');
}

// If a result does not fit the schema, the child is asked again.
{
  const { run } = editor(({ prompt }) => ({
    type: 'structured_output',
    output: prompt.length > 2 ? { summary: 'of it' } : { sumary: 'of it' },
  }));
  assert.deepEqual(resultsOf(await run()), [{ summary: 'of it' }, { summary: 'of it' }]);
  console.log('ok: a result that does not fit is asked for again');
}

// A child that never answers times out. The parent receives the timeout as a result and continues.
{
  const { environment, service, run } = editor(() => new Promise<never>(() => {}));
  const running = run();
  await environment.advance(600_000);
  const result = await running;
  assert.deepEqual(
    resultsOf(result).map((answer) => (answer as { code: string }).code),
    ['TIMEOUT', 'TIMEOUT'],
  );
  assert.deepEqual(
    subAgentRefs(service, THE_LEAD).map(({ status }) => status),
    ['failed', 'failed'],
  );
  assert.equal(result.finishReason, 'stop');
  console.log('ok: ten minutes of silence are a result, too');
}
