// The ordinary tool calls of one step, side by side: `tool.settled` comes back for each,
// whatever the tool does.

import type { JSONValue } from 'ai';
import { clip } from '../ai/json.ts';
import { runToolCall, toolError, type ToolOutcome } from '../ai/tool-run.ts';
import type { Host } from '../runtime/host.ts';
import type { Instance } from './instance.ts';
import type { SubagentLog } from './subagent-log.ts';
import type { SubagentUnitEvent } from './subagent.ts';

interface Running {
  readonly host: Host;
  readonly instance: Instance;
  readonly log: SubagentLog;
  readonly subagentId: string;
  readonly step: number;
  readonly callIds: readonly string[];
  readonly signal: AbortSignal;
  tell(event: SubagentUnitEvent): void;
  /** What a tool says of itself while it works. */
  progressed(words: string): void;
}

const MAX_PROGRESS_CHARS = 200;

export function runCalls(running: Running): void {
  for (const callId of running.callIds)
    running.host.environment.scheduler.yieldThen(() => void run(running, callId));
}

async function run(running: Running, callId: string): Promise<void> {
  const { host, instance, log, step, signal, tell, progressed } = running;
  if (signal.aborted) return;
  const call = log.call(callId);
  const settle = (outcome: ToolOutcome): void =>
    tell({ type: 'tool.settled', step, callId, outcome });
  if (!call) return;
  const entry = instance.tools.execution.get(call.toolName);
  if (call.invalid || !entry) {
    const message = call.invalid?.message ?? `There is no tool "${call.toolName}"`;
    settle(toolError(message, 'INVALID_INPUT'));
    return;
  }
  settle(
    await runToolCall({
      tool: entry,
      callId,
      input: call.input,
      raw: call.raw,
      messages: log.messagesBeforeCalls,
      signal,
      timeoutMs: instance.definition.toolTimeout,
      // The same for every attempt at this call, in this process and after it.
      idempotencyKey: `${running.subagentId}:${step}:${callId}`,
      environment: host.environment,
      onPreliminary: (output) => {
        const words = progressIn(output);
        if (words !== null && !signal.aborted) progressed(words);
      },
    }),
  );
}

/** A tool that is an `async function*` tells how far it is by yielding `{ progress: '…' }`. */
function progressIn(output: JSONValue): string | null {
  if (typeof output !== 'object' || output === null || !('progress' in output)) return null;
  const { progress } = output;
  return typeof progress === 'string' && progress.trim() !== ''
    ? clip(progress.trim(), MAX_PROGRESS_CHARS)
    : null;
}
