// The agents from "Sub-Agent Execution" (Helix Agents): a parent whose model calls two summarizers and an analyzer in
// one response. Each is a subagent made with `createSubAgentTool` that continues when its parent closes.

import { z } from 'zod';
import { type SubagentConfig, createSubAgentTool } from '../../../src/index.ts';
import { scriptedModel } from '../../../src/testing/index.ts';

const base = { runs: 'jobs', structured: 'off' } as const;

const SummarizerAgent = {
  ...base,
  name: 'summarizer',
  instructions: 'You summarize texts.',
  outputSchema: z.object({ summary: z.string(), keyPoints: z.array(z.string()) }),
} satisfies SubagentConfig;

const AnalyzerAgent = {
  ...base,
  name: 'analyzer',
  instructions: 'You analyze data.',
  outputSchema: z.object({ trend: z.string() }),
  retry: { maxAttempts: 1 },
} satisfies SubagentConfig;

const onParentClose = 'abandon';
const summarize = createSubAgentTool(
  SummarizerAgent,
  z.object({ texts: z.array(z.string()), maxLength: z.number().optional() }),
  { description: 'Summarize a list of texts', onParentClose },
);
const analyze = createSubAgentTool(
  AnalyzerAgent,
  z.object({ data: z.object({ sales: z.array(z.number()) }) }),
  { description: 'Analyze data', onParentClose },
);

export const parent = {
  ...base,
  name: 'parent',
  instructions:
    'You delegate. If a sub-agent fails, try to complete the task yourself or report the failure.',
  tools: { summarize, analyze },
} satisfies SubagentConfig;

/** The model calls `tell` before each answer; `tell` may make it wait. */
export const helixModel = (tell: (what: string) => Promise<unknown>) =>
  scriptedModel({
    otherwise: async ({ system, prompt, results }) => {
      const whole = JSON.stringify(prompt);
      if (system.includes('summarize texts')) {
        const batch = whole.includes('batch-one') ? 'one' : 'two';
        await tell(`summarizer-${batch}`);
        return { text: JSON.stringify({ summary: `about ${batch}`, keyPoints: [batch] }) };
      }
      if (system.includes('analyze data')) {
        await tell('analyzer');
        throw new Error('Max steps exceeded');
      }
      await tell('parent');
      if (results.length > 0) return { text: JSON.stringify(results) };
      return {
        calls: [
          { name: 'summarize', input: { texts: ['batch-one'] }, id: 's1' },
          { name: 'summarize', input: { texts: ['batch-two'] }, id: 's2' },
          { name: 'analyze', input: { data: { sales: [1, 2] } }, id: 's3' },
        ],
      };
    },
  });
