// One response from a text session's lead model, as the parts of its stream. A call that fails before its first part is
// retried as in the AI SDK, but on the environment's clock.
//
// Owns:     the `streamText` call, its attempts, and the count of the tokens used.
// Does not: pass on the text, or run the calls (text-lead.ts).
//
// Invariants
//   LEAD-STREAM-1. A retryable failure is retried with growing pauses, but only while the response contains no text and
//       no call. Text that the user has read is therefore never written twice.
//   LEAD-STREAM-2. All attempts read the same messages. New input from the user belongs to the next reply.
//   LEAD-STREAM-3. A user waits at most `MAX_PAUSE_MS` for an attempt. If a provider requests a longer pause, the call
//       counts as failed. If a model returns nothing, it is called once more, immediately.
//   LEAD-STREAM-4. Each failed call has its own entry: `model.retried` if another call follows, otherwise
//       `model.failed`. A cancelled response has no such entry.

import { streamText, type LanguageModel } from 'ai';
import { backoffMs } from '../../../machines/index.ts';
import { isA, ProviderError } from '../../../values/errors.ts';
import { EchoReader, providerOf, type Echo } from '../../../values/echo.ts';
import { asJson } from '../../../values/json.ts';
import { storable, storableId, storableText } from '../../../values/storable.ts';
import { cutOff, hasJustEnded, resolveModel } from '../../model/model.ts';
import { suitedModel } from '../../model/provider-prompt.ts';
import { modelError, toStepError, toUsage } from '../../model/model-step.ts';
import { countedUsage, namesOf } from '../../model/price.ts';
import { telemetryOf, telemetryOff } from '../../model/telemetry.ts';
import { inSpanOf } from '../../runtime/host.ts';
import { pause } from '../../runtime/pause.ts';
import type { LeadSession } from './lead-agents.ts';
import { modelToolsOf } from './lead-tools.ts';
import { reportUsage } from './lead-usage.ts';
import { turnContext, withTurnContext, type TurnContext } from './settle-tool.ts';

/** The maximum number of model calls for one response. */
const MAX_ATTEMPTS = 3;

const RETRY = { baseDelayMs: 1000, maxDelayMs: 4000 } as const;

const MAX_PAUSE_MS = 10_000;

/** A call by the model. */
export interface LeadCall {
  /** The provider's id for the call, which is not always unique. */
  readonly callId: string;
  readonly name: string;
  /** JSON text. */
  readonly arguments: string;
  /** The agent whose model made the call, even if another agent leads now. */
  readonly agentName: string;
  /** The provider's own data, to be sent back with the call and the parts before it; absent if there is none. */
  readonly echo?: Echo | undefined;
}

/** A part of a response. */
type ResponsePart =
  | { readonly type: 'text'; readonly text: string }
  /** The model has started to write a call. */
  | { readonly type: 'calling' }
  | { readonly type: 'call'; readonly call: LeadCall }
  /** The response is complete. `echo`: the provider's own data, to be sent back with the parts after the last call. */
  | { readonly type: 'end'; readonly echo?: Echo | undefined }
  | { readonly type: 'other' };

/** The lead model's calls for one reply, or for one delivery. */
export interface LeadTurn {
  rounds: number;
  /** The turn's context; null if there is none. If absent, the first call creates it. */
  context?: TurnContext | null;
}

export interface LeadQuestion {
  readonly model: LanguageModel;
  readonly turn: LeadTurn;
  readonly mayCall: boolean;
  /** Whether a response with neither text nor calls is allowed. */
  readonly maySayNothing: boolean;
  readonly signal: AbortSignal;
  /** Called whenever the model shows activity, and also while its next attempt is pending. */
  readonly touch: () => void;
}

/** Calls the lead model. If all attempts fail, throws the error of the last one. */
export async function* askLead(
  core: LeadSession,
  question: LeadQuestion,
): AsyncGenerator<ResponsePart> {
  const { signal, touch, maySayNothing } = question;
  const { clock, random, scheduler } = core.host.environment;
  const prompt = promptOf(core, question);
  let silences = 0;
  for (let attempt = 1; ; attempt += 1) {
    const beganAt = clock.now();
    let isSilent = true;
    let pauseMs = 0;
    let failure: ProviderError | null = null;
    /** LEAD-STREAM-4. `attempts` is null if no other call follows. */
    const noteFailure = (thrown: unknown, attempts: number | null): void => {
      if (core.unit.unit.disposed) return;
      const { code, message, retryable } = toStepError(thrown);
      const error = { code, message: storableText(message), retryable };
      const { name: agentName } = prompt;
      const model = namesOf(question.model);
      const failed = attempt;
      const tookMs = clock.now() - beganAt;
      if (attempts === null)
        core.receive('lead', { type: 'model.failed', agentName, failed, error, tookMs, model });
      else
        core.receive('lead', {
          type: 'model.retried',
          agentName,
          failed,
          attempts,
          retryAt: clock.now() + pauseMs,
          error,
          tookMs,
          model,
        });
    };
    try {
      for await (const part of attemptAt(core, prompt, question, beganAt)) {
        if (part.type !== 'other' && part.type !== 'end') isSilent = false;
        yield part;
      }
      if (!isSilent || maySayNothing || signal.aborted) return;
      silences += 1;
      const silent = new ProviderError('EMPTY_OUTPUT', 'The model ended without a word', {
        retryable: true,
      });
      noteFailure(silent, silences > 1 ? null : attempt + 1);
      failure = silences > 1 ? silent : null;
    } catch (error) {
      const { retryable, retryAfterMs = 0 } = toStepError(error);
      pauseMs = Math.max(backoffMs(RETRY, attempt, random.next()), retryAfterMs);
      const isOver = !isSilent || signal.aborted || attempt >= MAX_ATTEMPTS;
      if (isOver || !retryable || pauseMs > MAX_PAUSE_MS) {
        // A cancelled response is not a failure of the model.
        if (!signal.aborted || isA(error, ProviderError)) noteFailure(error, null);
        throw error;
      }
      core.reportError(modelError(error), `lead model, attempt ${attempt} of ${MAX_ATTEMPTS}`);
      noteFailure(error, MAX_ATTEMPTS);
    }
    if (failure) throw failure;
    touch();
    if (pauseMs > 0) await pause(scheduler, pauseMs, signal);
    touch();
  }
}

/** LEAD-STREAM-2 */
function promptOf(core: LeadSession, { model, turn }: LeadQuestion) {
  const { agents, host, notes, records } = core;
  const { name, providerOptions } = agents.current;
  if (turn.context === undefined) turn.context = turnContext(core);
  const conversation = records.conversation.toModelMessages({
    notes,
    user: core.user,
    reader: { provider: providerOf(model), now: host.environment.clock.now() },
  });
  return {
    name,
    providerOptions,
    instructions: agents.instructionsOf(name),
    messages: turn.context ? withTurnContext(conversation, turn.context, notes) : conversation,
    tools: modelToolsOf(agents.standingToolsOf(name)),
  };
}

async function* attemptAt(
  core: LeadSession,
  { name, providerOptions, instructions, messages, tools }: ReturnType<typeof promptOf>,
  { model, mayCall, maySayNothing, signal, touch }: LeadQuestion,
  beganAt: number,
): AsyncGenerator<ResponsePart> {
  const { id, host, notes } = core;
  const echo = new EchoReader(model);
  let written = '';
  let hasCalled = false;
  const { stream } = inSpanOf(host, { scope: id, unit: id, part: 'model' }, () =>
    streamText({
      model: suitedModel(resolveModel(model)),
      instructions,
      ...(providerOptions && { providerOptions }),
      messages,
      allowSystemInMessages: notes.systemAs === 'system',
      tools,
      toolChoice: mayCall ? 'auto' : 'none',
      abortSignal: signal,
      maxRetries: 0,
      telemetry: telemetryOf({ name, journal: host.journal }) ?? telemetryOff,
      onError: () => {},
    }),
  );
  for await (const part of stream) {
    if (signal.aborted) throw signal.reason;
    touch();
    echo.read(part);
    if (part.type === 'text-delta' && part.text !== '') {
      written += part.text;
      yield { type: 'text', text: part.text };
    } else if (part.type === 'error') throw part.error;
    else if (part.type === 'abort') throw signal.reason;
    else if (part.type === 'finish') {
      const { finishReason, rawFinishReason, totalUsage } = part;
      const { inputTokens, outputTokens } = totalUsage;
      const isSilent = written === '' && !hasCalled;
      const isCut = hasJustEnded(finishReason, rawFinishReason, inputTokens ?? outputTokens);
      const isFiltered = finishReason === 'content-filter' && isSilent;
      const hasFailed = isCut || isFiltered || (isSilent && !maySayNothing);
      // TEXT-LEAD-10
      const usage = toUsage(totalUsage);
      reportUsage(core, {
        ...namesOf(model),
        name,
        counted: { ...usage, inputTokens, outputTokens },
        estimated: countedUsage(usage, { instructions, messages, written }),
        // The failure's entry contains the duration (LEAD-STREAM-4).
        ...(!hasFailed && { tookMs: host.environment.clock.now() - beganAt }),
      });
      if (isCut) throw cutOff();
      if (isFiltered) throw new ProviderError('CONTENT_FILTER', 'The provider filtered the answer');
      yield { type: 'end', echo: echo.take() };
    } else if (part.type === 'tool-call') {
      hasCalled = true;
      const { toolCallId, toolName, input } = part;
      yield {
        type: 'call',
        call: {
          callId: storableId(toolCallId),
          name: storableText(toolName),
          arguments: storableText(argumentsOf(storable(input))),
          agentName: name,
          echo: echo.take(),
        },
      };
    } else yield { type: part.type === 'tool-input-start' ? 'calling' : 'other' };
  }
}

/**
 * Returns the arguments as JSON text. Validation rejects arguments that are not JSON, so that only this call fails.
 */
function argumentsOf(input: unknown): string {
  if (typeof input === 'string') return input;
  const json = asJson(input ?? {});
  return json.ok ? json.text : `no JSON: ${json.message}`;
}
