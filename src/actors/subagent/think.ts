// One model call of a subagent, with its retries: `model.responded` or `model.failed`
// comes back, unless it was aborted.

import type { ModelMessage } from 'ai';
import type { StepCall } from '../../machines/index.ts';
import { checkOutput } from '../ai/output.ts';
import { runModelStep, toStepError, type ModelCall, type ModelResponse } from '../ai/model-step.ts';
import { approvalNeeded } from '../ai/tool-run.ts';
import type { Host } from '../runtime/host.ts';
import { ASK_USER } from './ask-user.ts';
import type { Instance } from './instance.ts';
import type { SubagentUnitEvent } from './subagent.ts';

/** What a hook learns of a step. */
export interface StepReport {
  readonly step: number;
  readonly toolCalls: readonly string[];
  readonly tokensUsed: number;
}

interface Thinking {
  readonly host: Host;
  readonly instance: Instance;
  readonly messages: readonly ModelMessage[];
  readonly step: number;
  readonly signal: AbortSignal;
  tell(event: SubagentUnitEvent): void;
}

/** What a hook learns of the step that gave this response. */
export function stepReport(step: number, { calls, usage }: ModelResponse): StepReport {
  return {
    step,
    toolCalls: calls.map(({ toolName }) => toolName),
    tokensUsed: usage.totalTokens,
  };
}

/** Begins when the event loop has had its turn: audio goes first. */
export function think(thinking: Thinking): void {
  thinking.host.environment.scheduler.yieldThen(() => void attempt(thinking, 1));
}

async function attempt(thinking: Thinking, number: number): Promise<void> {
  const { host, instance, messages, step, signal, tell } = thinking;
  if (signal.aborted) return;
  try {
    const response = await runModelStep({
      model: instance.model,
      instructions: instance.instructions,
      messages,
      tools: instance.tools,
      signal,
      ids: host.environment.ids,
      clock: host.environment.clock,
    });
    await digest(thinking, response);
  } catch (error) {
    if (signal.aborted) return;
    const { code, message, retryable, retryAfterMs = 0 } = toStepError(error);
    const { maxAttempts, baseDelayMs } = instance.definition.retry;
    if (!retryable || number >= maxAttempts) {
      tell({ type: 'model.failed', step, error: failure(code, message, retryable) });
      return;
    }
    host.report(error, `model call ${number} of step ${step} of ${instance.definition.name}`);
    const { random, scheduler } = host.environment;
    // Full jitter between half and whole of the doubled delay: many that failed together do not retry together.
    const backoffMs = baseDelayMs * 2 ** (number - 1) * (0.5 + random.next() / 2);
    const delayMs = Math.max(backoffMs, retryAfterMs);
    const cancel = scheduler.schedule(() => void attempt(thinking, number + 1), delayMs);
    signal.addEventListener('abort', cancel, { once: true });
  }
}

async function digest(thinking: Thinking, response: ModelResponse): Promise<void> {
  const { instance, step, signal, tell } = thinking;
  if (response.calls.length > 0 && response.finish !== 'length') {
    const calls: StepCall[] = [];
    for (const call of response.calls)
      calls.push({ callId: call.callId, kind: await kindOf(thinking, call) });
    if (!signal.aborted) tell({ type: 'model.responded', step, calls, response });
    return;
  }
  const unfit = unusable(response);
  if (unfit) {
    tell({ type: 'model.failed', step, error: unfit, response });
    return;
  }
  const { outputSchema } = instance.definition;
  if (outputSchema === undefined) {
    tell({ type: 'model.responded', step, calls: [], response });
    return;
  }
  const checked = await checkOutput(outputSchema, response.text);
  if (signal.aborted) return;
  if (checked.ok) {
    instance.result = checked.value;
    tell({ type: 'model.responded', step, calls: [], response });
  } else
    tell({
      type: 'model.responded',
      step,
      calls: [],
      again: true,
      response,
      retryMessage: checked.retryMessage,
    });
}

async function kindOf(thinking: Thinking, call: ModelCall): Promise<StepCall['kind']> {
  const { instance, messages } = thinking;
  // What the model got wrong is answered with the error, not asked.
  if (call.invalid) return 'tool';
  if (call.toolName === ASK_USER) return 'question';
  const entry = instance.tools.execution.get(call.toolName);
  if (!entry) return 'tool';
  const needed = await approvalNeeded(entry, call.input, {
    callId: call.callId,
    messages,
    raw: call.raw,
    signal: thinking.signal,
    report: (error) => thinking.host.report(error, `needsApproval of ${call.toolName}`),
  });
  return needed ? 'approval' : 'tool';
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
