// Usage: npm run example examples/09-subagents-as-tools.ts
//
// A subagent as a typed tool: zod schemas define its input and output, and nothing else is shared. An ordinary AI SDK
// agent, outside any session, calls three of them at once. Their text arrives in one stream, with separate ids for
// each, and a failed subagent returns a result like any other.

import { subAgentRefs, subAgentStream, type SubAgentConfig } from 'offstage/compat';
import { THE_LEAD, createSubagentService, subAgentTools } from 'offstage/subagents';
import { generateText, isStepCount } from 'ai';
import { z } from 'zod';
import { createRuntime, createSubAgentTool } from 'offstage';
import { readTask, scriptedModel } from 'offstage/testing';

const summarizer: SubAgentConfig = {
  name: 'summarizer',
  instructions: 'Summarize the texts.',
  outputSchema: z.object({ summary: z.string(), keyPoints: z.array(z.string()) }),
};

const analyzer: SubAgentConfig = {
  name: 'analyzer',
  instructions: 'Analyze the data.',
  outputSchema: z.object({ trend: z.enum(['up', 'down']) }),
  retry: { maxAttempts: 1 },
};

const model = scriptedModel({
  agents: {
    editor: [
      {
        type: 'tool_calls',
        content: 'I will summarize these texts.',
        subAgentCalls: [
          { id: 's1', agentType: 'summarizer', input: { texts: ['The sun rose.'] } },
          { id: 's2', agentType: 'summarizer', input: { texts: ['It rained.', 'A lot.'] } },
          { id: 's3', agentType: 'analyzer', input: { data: [1, 2, 3] } },
        ],
      },
      { type: 'text', content: 'Two summaries are ready. The analysis failed; here is mine: up.' },
    ],
    summarizer: ({ prompt }) => {
      const { texts = [] } = (readTask(prompt)?.arguments ?? {}) as { texts?: string[] };
      return {
        type: 'structured_output',
        output: { summary: `${texts.length} of them`, keyPoints: texts },
      };
    },
    analyzer: [{ type: 'error', error: new Error('The provider is overloaded') }],
  },
});

const service = createSubagentService({ runtime: createRuntime(), model });
const tools = subAgentTools(
  createSubAgentTool(
    summarizer,
    z.object({ texts: z.array(z.string()), maxLength: z.number().optional() }),
    { description: 'Summarize a list of texts', service },
  ),
  createSubAgentTool(analyzer, z.object({ data: z.array(z.number()) }), { service }),
);

subAgentStream(service).subscribe((chunk) => {
  if (chunk.type === 'subagent_start')
    console.log(`${chunk.type} ${chunk.agentType} ${JSON.stringify(chunk.input)}`);
  if (chunk.type === 'subagent_end')
    console.log(
      `${chunk.type} ${chunk.agentType} ${JSON.stringify(chunk.success ? chunk.result : chunk.error)}`,
    );
});

const { text, responseMessages } = await generateText({
  model,
  instructions: 'You are the editor. If a subagent fails, do its work yourself, or say so.',
  prompt: 'Summarize these texts, and analyze the data.',
  tools,
  stopWhen: isStepCount(3),
});

// The record: one assistant message with the calls, then their results in the order of the calls.
for (const { role, content } of responseMessages)
  for (const part of typeof content === 'string' ? [] : content)
    if (part.type === 'tool-call') console.log(`${role}: ${part.toolCallId} ${part.toolName}`);
    else if (part.type === 'tool-result')
      console.log(`${role}: ${part.toolCallId} ${JSON.stringify(part.output)}`);
console.log(`editor: ${text}`);
for (const { toolCallId, agentType, status } of subAgentRefs(service, THE_LEAD))
  console.log(`${toolCallId} ${agentType}: ${status}`);
await service.close();
