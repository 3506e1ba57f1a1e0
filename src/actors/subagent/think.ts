// One model call of a subagent, with its retries: reports `model.responded` or `model.failed`, unless it was
// aborted.

import type { ModelMessage } from 'ai';
import { backoffMs, type StepCall } from '../../machines/index.ts';
import type { Budget } from '../admission/budget.ts';
import type { StepReport, StreamedChunk } from '../contracts/task.ts';
import { consentFor } from '../model/approval.ts';
import {
  runModelStep,
  toStepError,
  type ModelCall,
  type ModelResponse,
} from '../model/model-step.ts';
import { checkOutput, structuredOutput } from '../model/output.ts';
import type { Structured } from '../model/structured.ts';
import { approvalNeeded } from '../model/tool-run.ts';
import type { Host } from '../runtime/host.ts';
import { ASK_USER } from './ask-user.ts';
import { permitFor } from './budgeted-call.ts';
import { checkHandIn, completionToolIn, notHandedInMessage } from './complete-task.ts';
import type { Instance } from './instance.ts';
import type { SubagentUnitEvent } from './subagent-ports.ts';

const CUT_OFF = 'The budget is used up: its last tokens were not enough for the answer';

interface Thinking {
  readonly host: Host;
  readonly instance: Instance;
  readonly messages: readonly ModelMessage[];
  /** The message that requests the last answer. */
  readonly handIn: ModelMessage;
  readonly step: number;
  /** The model may not call tools: its words are the end of the run. */
  readonly final: boolean;
  readonly signal: AbortSignal;
  /** The budget that pays for the calls; null: no limit. */
  readonly budget: Budget | null;
  /** Reports that the budget refused a call: this step is the last one. */
  exhausted(message: string): void;
  tell(event: SubagentUnitEvent): void;
  /** Receives the output of the model as it streams. */
  readonly streamed: ((chunk: StreamedChunk) => void) | undefined;
  /** Tells whether the user denied this very call to a subagent above. */
  deniedAbove(toolName: string, input: unknown): boolean;
  /** Returns the context that a tool's `needsApproval` receives. */
  contextOf(toolName: string, callId: string): unknown;
}

/** Builds the report of the step for a hook from its response. */
export function stepReport(step: number, { calls, usage }: ModelResponse): StepReport {
  return {
    step,
    toolCalls: calls.map(({ toolName }) => toolName),
    tokensUsed: usage.totalTokens,
  };
}

/** Begins the model call after a turn of the event loop: audio goes first. */
export function think(thinking: Thinking): void {
  thinking.host.environment.scheduler.yieldThen(() => void attempt(thinking, 1));
}

async function attempt(thinking: Thinking, number: number): Promise<void> {
  const { host, instance, messages, step, final, signal, budget, tell, streamed } = thinking;
  if (signal.aborted) return;
  const { instructions } = instance;
  const permit = permitFor({ budget, instructions, messages, final });
  if (!permit.ok) {
    // The log gets this message when the journal has it; this call cannot wait for that.
    const told = [...messages, thinking.handIn];
    thinking.exhausted(permit.message);
    await attempt({ ...thinking, messages: told, final: true }, 1);
    return;
  }
  const { maxOutputTokens } = permit;
  try {
    const response = await runModelStep({
      model: instance.model,
      instructions,
      messages,
      tools: instance.tools,
      ...(maxOutputTokens === undefined ? {} : { settings: { maxOutputTokens } }),
      structured: final ? null : formatOf(thinking),
      ...(final && instance.tools.modelTools ? { toolChoice: 'none' as const } : {}),
      signal,
      said:
        streamed &&
        (({ type, delta }) =>
          streamed({ type: type === 'text' ? 'text_delta' : 'thinking', step, delta })),
      ids: host.environment.ids,
      clock: host.environment.clock,
    });
    permit.answered(response.usage, response.text);
    // Cut off by the budget, not by the model: the partial answer is handed in.
    const isCut = response.finish === 'length' && maxOutputTokens !== undefined && !final;
    if (isCut) thinking.exhausted(CUT_OFF);
    await digest(isCut ? { ...thinking, final: true } : thinking, response);
  } catch (error) {
    permit.failed(signal.aborted);
    if (signal.aborted) return;
    const { code, message, retryable, retryAfterMs = 0 } = toStepError(error);
    const { maxAttempts, baseDelayMs } = instance.definition.retry;
    if (!retryable || number >= maxAttempts) {
      tell({ type: 'model.failed', step, error: failure(code, message, retryable) });
      return;
    }
    host.report(error, `model call ${number} of step ${step} of ${instance.definition.name}`);
    const { random, scheduler } = host.environment;
    const pauseMs = backoffMs({ baseDelayMs, maxDelayMs: Infinity }, number, random.next());
    const delayMs = Math.max(pauseMs, retryAfterMs);
    const cancel = scheduler.schedule(() => void attempt(thinking, number + 1), delayMs);
    signal.addEventListener('abort', cancel, { once: true });
  }
}

/** Returns the format of an answer that ends the run; null: plain words. */
function formatOf({ host, instance }: Thinking): Structured | null {
  const { outputSchema, completion, structured, name } = instance.definition;
  if (outputSchema === undefined || completion === 'tool' || structured === 'off') return null;
  // The packages of some providers ask for JSON with a tool of this name.
  if (instance.tools.execution.has('json')) return null;
  return structuredOutput(instance.model, outputSchema, (error) =>
    host.report(error, `structured output of ${name}: it is asked for in words from now on`),
  );
}

async function digest(thinking: Thinking, response: ModelResponse): Promise<void> {
  const { instance, step, final, signal, tell } = thinking;
  if (final) {
    tell({ type: 'model.responded', step, calls: [], response: { ...response, calls: [] } });
    return;
  }
  if (response.calls.length > 0 && response.finish !== 'length') {
    const { calls, response: judged } = await takeCalls(thinking, response);
    if (!signal.aborted) tell({ type: 'model.responded', step, calls, response: judged });
    return;
  }
  const unfit = unusable(response);
  if (unfit) {
    tell({ type: 'model.failed', step, error: unfit, response });
    return;
  }
  const { outputSchema, completion } = instance.definition;
  const again = (retryMessage: string): void =>
    tell({ type: 'model.responded', step, calls: [], again: true, response, retryMessage });
  if (completion === 'tool') {
    again(notHandedInMessage(completionToolIn(instance.tools)));
    return;
  }
  if (outputSchema === undefined) {
    tell({ type: 'model.responded', step, calls: [], response });
    return;
  }
  const checked = await checkOutput(outputSchema, response.text);
  if (signal.aborted) return;
  if (checked.ok)
    tell({ type: 'model.responded', step, calls: [], response, result: checked.value });
  else again(checked.retryMessage);
}

/** Classifies each call for the machine. */
async function takeCalls(
  thinking: Thinking,
  response: ModelResponse,
): Promise<{ readonly calls: readonly StepCall[]; readonly response: ModelResponse }> {
  const calls: StepCall[] = [];
  const checked: ModelCall[] = [];
  let isSame = true;
  for (const call of response.calls) {
    const [kind, taken] = await take(thinking, call);
    calls.push({ callId: call.callId, ...kind });
    checked.push(taken);
    isSame &&= taken === call;
  }
  return { calls, response: isSame ? response : { ...response, calls: checked } };
}

type Kind = Omit<StepCall, 'callId'>;
const asTool: Kind = { kind: 'tool' };

async function take(thinking: Thinking, call: ModelCall): Promise<readonly [Kind, ModelCall]> {
  const { instance, messages } = thinking;
  // An invalid call of the model is answered with the error; the user is not asked.
  if (call.invalid) return [asTool, call];
  const { answerableBy: mayAnswer } = instance.definition;
  if (call.toolName === ASK_USER) return [{ kind: 'question' }, answerable(call, mayAnswer)];
  const entry = instance.tools.execution.get(call.toolName);
  if (!entry) return [asTool, call];
  if (entry.role === 'request_input') return [{ kind: 'input' }, call];
  if (entry.role === 'complete_task') {
    const checked = await checkHandIn(call, instance.definition.outputSchema);
    return [checked.invalid ? asTool : { kind: 'completion' }, checked];
  }
  const { delegates, needsApproval } = entry;
  const { toolName, input } = call;
  const consent = await consentFor({
    toolName,
    input,
    preApproved: instance.definition.preApproved,
    deniedAbove: () => thinking.deniedAbove(toolName, input),
    needed: () =>
      needsApproval !== false &&
      approvalNeeded(entry, input, {
        callId: call.callId,
        messages,
        raw: call.raw,
        context: thinking.contextOf(toolName, call.callId),
        signal: thinking.signal,
        report: (error) => thinking.host.report(error, `needsApproval of ${toolName}`),
      }),
    report: (error, where) => thinking.host.report(error, where),
  });
  const judged = consent === 'not_needed' ? call : { ...call, consent };
  if (consent === 'inherited_denial') return [asTool, judged];
  if (consent === 'ask') {
    const asked = answerable(judged, entry.answerableBy ?? mayAnswer);
    return [delegates ? { kind: 'approval', delegates } : { kind: 'approval' }, asked];
  }
  return [delegates ? { kind: 'delegation' } : asTool, judged];
}

function answerable(call: ModelCall, by: readonly string[] | undefined): ModelCall {
  return by === undefined ? call : { ...call, answerableBy: by };
}

function unusable({ finish, text }: ModelResponse) {
  if (finish === 'length')
    return failure('OUTPUT_TRUNCATED', 'The model stopped at its length limit', true);
  if (finish === 'content-filter')
    return failure('CONTENT_FILTER', 'The provider filtered the answer', false);
  if (finish === 'error') return failure('MODEL_ERROR', 'The model ended with an error', true);
  if (text.trim() === '') return failure('EMPTY_OUTPUT', 'The model ended without a word', true);
  return null;
}

function failure(code: string, message: string, retryable: boolean) {
  return { code, message, retryable };
}

export type { StepReport } from '../contracts/task.ts';
