import { tool } from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { SUBAGENT } from '../../src/actors/model/tool-flags.ts';
import {
  isSubAgentTool,
  planStepProcessing,
  SUBAGENT_TOOL_PREFIX,
} from '../../src/compat/index.ts';

const plain = tool({ inputSchema: z.object({}), execute: () => 1 });
const summarizer = Object.assign(tool({ inputSchema: z.object({}), execute: () => 1 }), {
  [SUBAGENT]: { name: 'summarizer', instructions: 'Summarize.' },
});

describe('names', { tags: ['H2'] }, () => {
  test('strips the prefix subagent__ to get the agent type', () => {
    expect(SUBAGENT_TOOL_PREFIX).toBe('subagent__');
    expect(isSubAgentTool('subagent__summarizer')).toBe(true);
    expect(isSubAgentTool('summarizer')).toBe(false);
    expect(isSubAgentTool('my_subagent__summarizer')).toBe(false);
    expect(isSubAgentTool('subagent__')).toBe(false);
  });

  test('recognises a subagent tool regardless of its name', { tags: ['HW1'] }, () => {
    expect(isSubAgentTool(summarizer)).toBe(true);
    expect(isSubAgentTool(plain)).toBe(false);
    expect(isSubAgentTool(null)).toBe(false);
    expect(isSubAgentTool({ name: 'subagent__x' })).toBe(false);
  });
});

describe('planStepProcessing', { tags: ['H3'] }, () => {
  test('splits calls into two groups and preserves their order', () => {
    const calls = [
      { toolCallId: '1', toolName: 'subagent__b', input: { b: 1 } },
      { toolCallId: '2', toolName: 'search', input: {} },
      { toolCallId: '3', toolName: 'subagent__a', input: { a: 1 } },
      { toolCallId: '4', toolName: 'read', input: {} },
    ];
    expect(planStepProcessing(calls)).toEqual({
      toolCalls: [calls[1], calls[3]],
      subAgentCalls: [
        { id: '1', agentType: 'b', input: { b: 1 } },
        { id: '3', agentType: 'a', input: { a: 1 } },
      ],
    });
  });

  test('accepts calls in recorded form', { tags: ['H8'] }, () => {
    const calls = [{ id: 's1', name: 'subagent__summarizer', arguments: { texts: [] } }];
    expect(planStepProcessing(calls)).toEqual({
      toolCalls: [],
      subAgentCalls: [{ id: 's1', agentType: 'summarizer', input: { texts: [] } }],
    });
  });

  test("supports a model-facing name that differs from the agent's type", { tags: ['HW1'] }, () => {
    const calls = [{ toolCallId: '1', toolName: 'summarize', input: {} }];
    expect(planStepProcessing(calls, { summarize: summarizer }).subAgentCalls).toEqual([
      { id: '1', agentType: 'summarizer', input: {} },
    ]);
  });

  test(
    "treats a user's own tool as a tool even if its name has the prefix",
    { tags: ['HW1'] },
    () => {
      const calls = [{ toolCallId: '1', toolName: 'subagent__mine', input: {} }];
      expect(planStepProcessing(calls, { subagent__mine: plain })).toEqual({
        toolCalls: calls,
        subAgentCalls: [],
      });
    },
  );

  test('does not modify its arguments', () => {
    const calls = Object.freeze([
      Object.freeze({ toolCallId: '1', toolName: 'toString', input: Object.freeze({}) }),
    ]);
    expect(planStepProcessing(calls, Object.freeze({})).toolCalls).toEqual(calls);
  });
});
