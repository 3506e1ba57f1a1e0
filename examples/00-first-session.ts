// Usage: OPENAI_API_KEY=… npm run example examples/00-first-session.ts
//
// The first program in the README. Type a message and press Enter.

import { openai } from '@ai-sdk/openai';
import { defineSubagent, defineTool, TextSession } from 'offstage';
import { z } from 'zod';

const research = defineTool({
  name: 'research',
  description: 'Research a topic for the user',
  parameters: z.object({ topic: z.string() }),
  execution: 'background', // the conversation goes on meanwhile
  pendingMessage: 'I am on it.', // the model reads this, and usually says it
});
const researcher = defineSubagent({
  name: 'researcher',
  instructions: 'Write three sentences about the topic.', // and tools of the AI SDK
});
const session = new TextSession({
  model: openai('gpt-5.4-mini'),
  agents: [{ name: 'assistant', instructions: 'You are a helpful assistant.', tools: [research] }],
  subagentConfigs: { research: researcher },
});
session.parts.subscribe((part) => {
  if (part.type === 'text.done') console.log(`assistant: ${part.text}`);
});
await session.start();
for await (const line of process.stdin) await session.sendText(String(line).trim());
