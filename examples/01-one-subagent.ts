// Usage: npm run example examples/01-one-subagent.ts
//
// A text session with one background tool. The lead agent keeps talking while the subagent works, and reports the
// result in a pause of the conversation. The model is scripted, so the example runs without a key. You can use
// `openai('gpt-…')` or any other AI SDK model instead.

import { tool } from 'ai';
import { z } from 'zod';
import { defineSubagent, defineTool, TextSession } from 'offstage';
import { readNotes, scriptedModel } from 'offstage/testing';

const generateReport = defineTool({
  name: 'generate_report',
  description: 'Generate an analytics report for a date range',
  parameters: z.object({ dateRange: z.string() }),
  execution: 'background',
  pendingMessage: "I'm generating the report now. I'll let you know when it's ready.",
});

const reporter = defineSubagent({
  name: 'report_generator',
  instructions: 'You are a data analyst. Generate clear, short reports.',
  tools: {
    query_analytics: tool({
      description: 'Query the analytics database',
      inputSchema: z.object({ dateRange: z.string() }),
      execute: async ({ dateRange }) => ({ dateRange, orders: 1284, revenue: 58_210 }),
    }),
  },
});

const model = scriptedModel({
  scripts: [
    {
      when: 'You are a data analyst',
      script: ({ results: [rows] }) =>
        rows === undefined
          ? { calls: [{ name: 'query_analytics', input: { dateRange: 'Q4' } }] }
          : { text: `The report is ready: ${JSON.stringify(rows)}` },
    },
  ],
  otherwise: ({ user, results: [pending] }) => {
    if (pending !== undefined) return { text: (pending as { message: string }).message };
    const result = readNotes(user)[0]?.text;
    if (result !== undefined) return { text: `News: ${result}` };
    if (user.includes('report'))
      return { calls: [{ name: 'generate_report', input: { dateRange: 'Q4' } }] };
    return { text: 'Sunny, I would say.' };
  },
});

const session = new TextSession({
  model,
  agents: [{ name: 'lead', instructions: 'You talk to the user.', tools: [generateReport] }],
  subagentConfigs: { generate_report: reporter },
});

await session.start();
for (const text of ['Generate a sales report for Q4', 'How is the weather?']) {
  console.log(`user: ${text}`);
  for await (const part of session.send(text))
    if (part.type === 'text.done') console.log(`lead: ${part.text}`);
}
// The lead agent reports the result on its own; this promise resolves when it has.
const { said } = await session.nextResult();
console.log(`lead: ${said}`);
await session.close();
