// What a family of subagents does, as chunks of one stream: each child's own words and tool
// calls between its `subagent_start` and its `subagent_end`, under its own ids. For screens
// and programs that follow a whole tree; beside the journal, and nothing is replayed.
//
// Invariants
//   SUB-AGENT-STREAM-1. Of each child, `subagent_start` is the first chunk and `subagent_end` the last, once.
//   SUB-AGENT-STREAM-2. Chunks come in the order of the service's events; what a child says is its own.

import { concatMap, type Observable } from 'rxjs';
import type { SubagentChunk, SubagentService } from '../contracts/service-types.ts';
import type { OfAgent, OfChild, SubAgentStreamChunk } from '../contracts/sub-agent-chunks.ts';
import type { StreamedChunk } from '../contracts/task.ts';

export type { SubAgentStreamChunk } from '../contracts/sub-agent-chunks.ts';

/** The chunks of all subagents of a service, live. Completes when the service is closed. */
export function subAgentStream({
  id,
  events,
}: Pick<SubagentService, 'id' | 'events'>): Observable<SubAgentStreamChunk> {
  return events.pipe(concatMap((event) => streamChunks(event, id)));
}

/** What one event of a service is in the stream. Pure. */
export function streamChunks(event: SubagentChunk, serviceId: string): SubAgentStreamChunk[] {
  const { subagentId, name, parentId, callId, depth: _, at: timestamp, ...rest } = event;
  const agent: OfAgent = { agentId: subagentId, agentType: name, timestamp };
  const child: OfChild = {
    subAgentId: subagentId,
    agentType: name,
    parentAgentId: parentId ?? serviceId,
    toolCallId: callId,
    timestamp,
  };
  if (rest.type === 'spawned') return [{ type: 'subagent_start', ...child, input: rest.input }];
  if (rest.type === 'streamed') return [{ ...agent, ...ownChunk(rest.chunk) }];
  if (rest.type !== 'ended') {
    const { type, ...data } = rest;
    return [{ type: 'custom', ...agent, name: type, data }];
  }
  const { status, output, error } = rest.outcome;
  if (status === 'completed')
    return [
      { type: 'output', ...agent, output },
      { type: 'subagent_end', ...child, success: true, result: output },
    ];
  const { code = 'INTERNAL', message = status } = error ?? {};
  return [
    { type: 'error', ...agent, code, message },
    { type: 'subagent_end', ...child, success: false, error: message },
  ];
}

function ownChunk(chunk: StreamedChunk) {
  if (chunk.type === 'text_delta' || chunk.type === 'thinking')
    return { type: chunk.type, delta: chunk.delta };
  const { type, callId: toolCallId, toolName } = chunk;
  if (type === 'tool_start') return { type, toolCallId, toolName, input: chunk.input };
  const { output, error } = chunk;
  return { type, toolCallId, toolName, output, ...(error === undefined ? {} : { error }) };
}
