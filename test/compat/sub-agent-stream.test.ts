import { from, toArray, lastValueFrom } from 'rxjs';
import { describe, expect, test } from 'vitest';
import { streamChunks, subAgentStream } from '../../src/compat/sub-agent-stream.ts';
import type { SubagentChunk } from '../../src/actors/contracts/service-types.ts';
import { completedOutcome, unfinishedOutcome } from '../support/outcomes.ts';

const base = {
  subagentId: 'child',
  name: 'summarizer',
  parentId: 'parent',
  callId: 's1',
  depth: 2,
  at: 7,
};
const own = { agentId: 'child', agentType: 'summarizer', timestamp: 7 };
const ofChild = {
  subAgentId: 'child',
  agentType: 'summarizer',
  parentAgentId: 'parent',
  toolCallId: 's1',
  timestamp: 7,
};

function chunks(more: object, serviceId = 'service') {
  return streamChunks({ ...base, ...more } as SubagentChunk, serviceId);
}

describe('chunks', { tags: ['H6', 'H22'] }, () => {
  test('start with a subagent_start that contains the input, the parent and the call', () => {
    expect(
      chunks({ type: 'spawned', task: 'x', input: { texts: ['a'] }, workstreamId: null }),
    ).toEqual([{ type: 'subagent_start', ...ofChild, input: { texts: ['a'] } }]);
  });

  test('attribute a child of a lead agent or a program to the service', { tags: ['H4'] }, () => {
    expect(chunks({ type: 'spawned', input: {}, parentId: null })).toMatchObject([
      { parentAgentId: 'service' },
    ]);
  });

  test("contain a child's text and calls under the child's id", () => {
    const streamed = (chunk: object) => chunks({ type: 'streamed', chunk: { step: 1, ...chunk } });
    expect(streamed({ type: 'text_delta', delta: 'Sum' })).toEqual([
      { ...own, type: 'text_delta', delta: 'Sum' },
    ]);
    expect(streamed({ type: 'thinking', delta: 'Hm' })).toEqual([
      { ...own, type: 'thinking', delta: 'Hm' },
    ]);
    const tool = { callId: 'c1', toolName: 'read' };
    expect(streamed({ type: 'tool_start', ...tool, input: { a: 1 } })).toEqual([
      { ...own, type: 'tool_start', toolCallId: 'c1', toolName: 'read', input: { a: 1 } },
    ]);
    expect(streamed({ type: 'tool_end', ...tool, output: null, error: 'no' })).toEqual([
      { ...own, type: 'tool_end', toolCallId: 'c1', toolName: 'read', output: null, error: 'no' },
    ]);
  });

  test('contain a result as an output that precedes the end', () => {
    const output = { summary: 'ab' };
    expect(chunks({ type: 'ended', outcome: completedOutcome('', { output }) })).toEqual([
      { type: 'output', ...own, output },
      { type: 'subagent_end', ...ofChild, success: true, result: output },
    ]);
  });

  test(
    'contain a failure as an error that precedes an end with the same message',
    { tags: ['H10'] },
    () => {
      const error = { code: 'STEP_LIMIT', message: 'Max steps exceeded', retryable: false };
      expect(
        chunks({ type: 'ended', outcome: unfinishedOutcome({ status: 'failed', error }) }),
      ).toEqual([
        { type: 'error', ...own, code: 'STEP_LIMIT', message: 'Max steps exceeded' },
        { type: 'subagent_end', ...ofChild, success: false, error: 'Max steps exceeded' },
      ]);
    },
  );

  test('contain any other event as a custom chunk', () => {
    expect(chunks({ type: 'progress', update: 'half', percent: 50 })).toEqual([
      { type: 'custom', ...own, name: 'progress', data: { update: 'half', percent: 50 } },
    ]);
  });

  test('each contain an owner, a type and a time', () => {
    for (const chunk of chunks({ type: 'ended', outcome: completedOutcome('') })) {
      expect('agentId' in chunk ? chunk.agentId : chunk.subAgentId).toBe('child');
      expect(chunk).toMatchObject({ agentType: 'summarizer', timestamp: 7 });
    }
  });
});

test('SUB-AGENT-STREAM-2: follow the order of the events', async () => {
  const events = from([
    { ...base, type: 'spawned', input: {} },
    { ...base, subagentId: 'other', type: 'spawned', input: {} },
    { ...base, type: 'ended', outcome: completedOutcome('') },
  ] as SubagentChunk[]);
  const all = await lastValueFrom(subAgentStream({ id: 's', events }).pipe(toArray()));
  expect(all.map(({ type }) => type)).toEqual([
    'subagent_start',
    'subagent_start',
    'output',
    'subagent_end',
  ]);
});
