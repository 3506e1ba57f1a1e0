// Streams the events of a subagent tree as chunks. Each child's text and tool calls appear between its `subagent_start`
// and its `subagent_end`, under the child's id. These chunks are for screens and programs that follow a whole tree.
// Chunks are not in the journal, and past chunks are not replayed.
//
// Invariants
//   SUB-AGENT-STREAM-1. For each child, `subagent_start` is the first chunk, `subagent_end` is the last, and both are
//       sent once.
//   SUB-AGENT-STREAM-2. Chunks are sent in the order of the service's events. A child's text appears only under the
//       child's id.

import { concatMap, type Observable } from 'rxjs';
import type { SubagentChunk, SubagentService } from '../actors/contracts/service-types.ts';
import type { StreamedChunk } from '../actors/contracts/task.ts';

/** The subagent that a chunk belongs to. */
interface OfAgent {
  /** The subagent's id. */
  readonly agentId: string;
  /** The name of the subagent's configuration. */
  readonly agentType: string;
  /** Milliseconds since 1970. */
  readonly timestamp: number;
}

interface OfChild {
  /** The child's id. */
  readonly subAgentId: string;
  /** The `name` of the child's configuration. */
  readonly agentType: string;
  /** The id of the subagent that spawned it, or the service's id if a lead agent or a program spawned it. */
  readonly parentAgentId: string;
  /** The parent's call on which the subagent works. */
  readonly toolCallId: string | null;
  /** The time of the event, in milliseconds since 1970. */
  readonly timestamp: number;
}

/**
 * All the chunks of a stream. `text_delta`, `thinking`, `tool_start` and `tool_end` come only from subagents with
 * `stream: true`. Every subagent sends the other chunks.
 */
export type SubAgentStreamChunk =
  | (OfChild & { readonly type: 'subagent_start'; readonly input: unknown })
  | (OfChild & {
      readonly type: 'subagent_end';
      readonly success: boolean;
      /** The result of a call that succeeded. */
      readonly result?: unknown;
      /** The message of a call that failed. */
      readonly error?: string;
    })
  | (OfAgent & { readonly type: 'text_delta' | 'thinking'; readonly delta: string })
  | (OfAgent & {
      readonly type: 'tool_start';
      readonly toolCallId: string;
      readonly toolName: string;
      readonly input: unknown;
    })
  | (OfAgent & {
      readonly type: 'tool_end';
      readonly toolCallId: string;
      readonly toolName: string;
      readonly output: unknown;
      readonly error?: string;
    })
  /** The result. It is sent before `subagent_end`. */
  | (OfAgent & { readonly type: 'output'; readonly output: unknown })
  /** The reason why the subagent has no result. It is sent before `subagent_end`. */
  | (OfAgent & { readonly type: 'error'; readonly code: string; readonly message: string })
  /** Any other event of the subagent: `progress`, `input.requested`, `message.applied`, `hung`, … */
  | (OfAgent & { readonly type: 'custom'; readonly name: string; readonly data: unknown });

/** Returns the chunks for one event of the service. Completes when the service is closed. */
export function subAgentStream({
  id,
  events,
}: Pick<SubagentService, 'id' | 'events'>): Observable<SubAgentStreamChunk> {
  return events.pipe(concatMap((event) => streamChunks(event, id)));
}

/** Returns the chunks of one service event. Pure. */
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
  const { outcome } = rest;
  if (outcome.status === 'completed') {
    const { output } = outcome;
    return [
      { type: 'output', ...agent, output },
      { type: 'subagent_end', ...child, success: true, result: output },
    ];
  }
  const { code, message } = outcome.error;
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
