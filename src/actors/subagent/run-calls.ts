// Runs the calls of one step side by side: each reports `tool.settled`, whatever its tool does.

import type { JSONValue } from 'ai';
import { clip } from '../../values/clip.ts';
import type { ModelCall } from '../model/model-step.ts';
import { runToolCall, toolDenied, toolError, type ToolOutcome } from '../model/tool-run.ts';
import { INHERITED_DENIAL } from '../model/approval.ts';
import type { Host } from '../runtime/host.ts';
import type { Instance } from './instance.ts';
import type { SubagentLog } from './subagent-log.ts';
import type { ReturnedValue, SubagentUnitEvent } from './subagent-ports.ts';
import type { StreamedChunk } from '../contracts/task.ts';

interface Running {
  readonly host: Host;
  readonly instance: Instance;
  readonly log: SubagentLog;
  readonly step: number;
  readonly callIds: readonly string[];
  readonly signal: AbortSignal;
  tell(event: SubagentUnitEvent): void;
  /** Receives the progress that a tool reports while it works. */
  progressed(words: string): void;
  /** Receives the beginning and the end of each call. */
  readonly streamed: ((chunk: StreamedChunk) => void) | undefined;
  /** Returns the idempotency key of a call: the same for every attempt, in this process and after it. */
  keyOf(callId: string): string;
  /** Moves a large output elsewhere; see `runToolCall`. */
  readonly keepLarge: KeepLarge | undefined;
  /** Returns the context that the tool receives. */
  contextOf(toolName: string, callId: string): unknown;
}

const MAX_PROGRESS_CHARS = 200;

export type KeepLarge = (returned: ReturnedValue) => Promise<JSONValue>;

/** Selects the calls that may have been made, and must not be repeated without consent. */
export function callsInDoubt(
  { tools }: Instance,
  log: SubagentLog,
  callIds: readonly string[],
): readonly ModelCall[] {
  return callIds.flatMap((callId) => {
    const call = log.call(callId);
    const entry = call && tools.execution.get(call.toolName);
    const isHarmless = !entry || call.invalid || call.consent === 'inherited_denial';
    return isHarmless || entry.idempotent ? [] : [call];
  });
}

/** Builds the outcome that the model reads for a call whose fate is unknown. */
export function unknownOutcome(toolName: string): ToolOutcome {
  return toolError(inDoubtMessage(toolName), 'NEEDS_RECONCILE');
}

export function inDoubtMessage(toolName: string): string {
  return `The process ended while "${toolName}" was being run: whether it was done is not known, and it was not run again. Find out before you repeat it.`;
}

export function runCalls(running: Running): void {
  for (const callId of running.callIds)
    running.host.environment.scheduler.yieldThen(() => void run(running, callId));
}

async function run(running: Running, callId: string): Promise<void> {
  const { log, step, signal, tell, streamed } = running;
  if (signal.aborted) return;
  const call = log.call(callId);
  if (!call) return;
  const { toolName, input } = call;
  streamed?.({ type: 'tool_start', step, callId, toolName, input });
  const outcome = await outcomeOf(running, call);
  if (signal.aborted) return;
  streamed?.({ type: 'tool_end', step, callId, toolName, ...endOf(outcome) });
  tell({ type: 'tool.settled', step, callId, outcome });
}

function outcomeOf(running: Running, call: ModelCall): ToolOutcome | Promise<ToolOutcome> {
  const { host, instance, keepLarge, log, signal, progressed } = running;
  const { callId, toolName } = call;
  const entry = instance.tools.execution.get(toolName);
  if (call.invalid || !entry) {
    const message = call.invalid?.message ?? `There is no tool "${toolName}"`;
    return toolError(message, 'INVALID_INPUT');
  }
  if (call.consent === 'inherited_denial') return toolDenied(INHERITED_DENIAL);
  return runToolCall({
    tool: entry,
    callId,
    input: call.input,
    raw: call.raw,
    messages: log.messagesBeforeCalls,
    signal,
    // A child limits its own time.
    timeoutMs: entry.delegates ? undefined : instance.definition.toolTimeout,
    idempotencyKey: running.keyOf(callId),
    context: running.contextOf(toolName, callId),
    environment: host.environment,
    keepLarge:
      keepLarge &&
      ((value, part, stop) => keepLarge({ callId, toolName, part, value, signal: stop })),
    onPreliminary: (output) => {
      const words = progressIn(output);
      if (words !== null && !signal.aborted) progressed(words);
    },
  });
}

function endOf(outcome: ToolOutcome): { readonly output: unknown; readonly error?: string } {
  return outcome.status === 'ok'
    ? { output: outcome.output }
    : { output: null, error: outcome.error.message };
}

/** Reads the progress of a tool that is an `async function*`: it yields `{ progress: '…' }`. */
function progressIn(output: JSONValue): string | null {
  if (typeof output !== 'object' || output === null || !('progress' in output)) return null;
  const { progress } = output;
  return typeof progress === 'string' && progress.trim() !== ''
    ? clip(progress.trim(), MAX_PROGRESS_CHARS)
    : null;
}
