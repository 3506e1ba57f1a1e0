// One response of the lead model of a text session: asks the model, says its words as they come, passes its
// calls on, and returns everything that was said.
//
// Owns:     nothing that outlives the response.
// Does not: decide when to respond, or what becomes of the response (text-lead).
//
// Invariants
//   TEXT-RESPONSE-1. Words stand in the conversation where they began: before the calls that follow them, and
//       before the words of the user meanwhile.
//   TEXT-RESPONSE-2. A response without words and calls is a failure, unless all was said before the calls
//       that it follows: silence explains nothing to a user.
//   TEXT-RESPONSE-4. A call is passed on with the next part of the stream, which tells whether another call
//       follows: a crash between the two is visible in the journal.
//   TEXT-RESPONSE-3. It always ends, and never throws.

import { streamText, type LanguageModel } from 'ai';
import { isA, ProviderError } from '../../../values/errors.ts';
import { asJson } from '../../../values/json.ts';
import { toStepError } from '../../model/model-step.ts';
import { cutOff, hasJustEnded } from '../../model/streamed-answer.ts';
import { storable, storableId, storableText } from '../../../values/storable.ts';
import { modelToolsOf } from './lead-tools.ts';
import { intoConversation } from '../state/live-conversation.ts';
import type { TranscriptItem } from '../../contracts/session-views.ts';
import type { LeadSession } from './lead-session.ts';
import type { TextOutput } from './text-output.ts';

/** A call of the model. */
export interface ResponseCall {
  /** The provider's id of the call: not always unique. */
  readonly callId: string;
  readonly name: string;
  /** JSON text. */
  readonly arguments: string;
  /** The agent whose model made it, whichever leads by now. */
  readonly agentName: string;
  /** True if the response makes another call after it. */
  readonly isFollowed: boolean;
}

export interface TextResponseOptions {
  readonly core: LeadSession;
  readonly model: LanguageModel;
  readonly output: TextOutput;
  readonly signal: AbortSignal;
  /** The offer that it tells; null: it is a reply. */
  readonly tells: { readonly deliveryId: string; readonly deliveryIds?: readonly string[] } | null;
  /** True if the model may call tools. */
  readonly mayCall: boolean;
  /** True if everything was said already. @defaultValue false */
  readonly maySayNothing?: boolean;
  /** Called at each sign of life. */
  onSign(): void;
  /** Called when the words begin. */
  onWords(): void;
  onCall(call: ResponseCall): void;
}

/** The result of a response. */
export interface TextResponse {
  readonly itemId: string;
  /** All words that were said. */
  readonly text: string;
  /** True if it was aborted, or failed, before its end. */
  readonly isBroken: boolean;
}

/** Asks the lead model for a response, and says it. Never rejects (TEXT-RESPONSE-3). */
export async function runResponse(options: TextResponseOptions): Promise<TextResponse> {
  const { core, output, signal } = options;
  const { clock, ids } = core.host.environment;
  const itemId = ids.next('item');
  let text = '';
  let at = 0;
  let hasCalled = false;
  let isBroken = false;
  let made: Call | null = null;
  /** Passes the pending call on (TEXT-RESPONSE-4). */
  const handOver = (isFollowed: boolean): void => {
    if (made) options.onCall({ ...made, isFollowed });
    made = null;
  };
  const show = (final: boolean): void =>
    core.projection.emit({
      type: 'transcript.changed',
      item: {
        id: itemId,
        role: 'assistant',
        text,
        final,
        at,
        ...(isBroken ? { interrupted: true } : {}),
        ...(final && !isBroken && !hasCalled ? toldIn(options) : {}),
      },
    });
  try {
    for await (const part of partsOf(options)) {
      handOver(part.type === 'call' || part.type === 'calling');
      if (part.type === 'call') {
        hasCalled = true;
        made = part.call;
      }
      if (part.type !== 'text') continue;
      if (text === '') {
        at = clock.now();
        core.records.saying(itemId, '', at);
        options.onWords();
      }
      text += part.text;
      show(false);
      output.push({ type: 'text.delta', itemId, text: part.text });
    }
    if (text === '' && !hasCalled && !signal.aborted && options.maySayNothing !== true)
      throw new ProviderError('EMPTY_OUTPUT', 'The model ended without a word', {
        retryable: true,
      });
  } catch (error) {
    isBroken = true;
    if (!signal.aborted || isA(error, ProviderError)) {
      const { code, message } = toStepError(error);
      core.reportError(error, 'lead model');
      output.push({ type: 'response.failed', code, message });
    }
  }
  handOver(false);
  isBroken ||= signal.aborted;
  // For the whole text, not for each delta: two deltas may hold half a character each.
  text = storableText(text);
  if (text !== '') {
    intoConversation(core, { type: 'assistant.said', itemId, text, saidAt: at });
    show(true);
  }
  return { itemId, text, isBroken };
}

/** Returns the ids by which a client acknowledges what was told. */
function toldIn({
  tells,
}: TextResponseOptions): Pick<TranscriptItem, 'deliveryId' | 'deliveryIds'> {
  if (tells === null) return {};
  const { deliveryId, deliveryIds } = tells;
  return { deliveryId, ...(deliveryIds && { deliveryIds }) };
}

type Call = Omit<ResponseCall, 'isFollowed'>;

type Part =
  | { readonly type: 'text'; readonly text: string }
  /** The model begins to write a call. */
  | { readonly type: 'calling' }
  | { readonly type: 'call'; readonly call: Call }
  | { readonly type: 'other' };

async function* partsOf(options: TextResponseOptions): AsyncGenerator<Part> {
  const { core, model, signal, mayCall } = options;
  const { name: agentName, providerOptions } = core.agents.current;
  const { stream } = streamText({
    model,
    instructions: core.agents.instructionsOf(agentName),
    ...(providerOptions && { providerOptions }),
    messages: core.records.conversation.toModelMessages({ notes: core.notes }),
    allowSystemInMessages: core.notes.systemAs === 'system',
    tools: modelToolsOf(core.agents.toolsOf(agentName)),
    toolChoice: mayCall ? 'auto' : 'none',
    abortSignal: signal,
    maxRetries: 0,
    onError: () => {},
  });
  for await (const part of stream) {
    if (signal.aborted) throw signal.reason;
    options.onSign();
    if (part.type === 'text-delta' && part.text !== '') yield { type: 'text', text: part.text };
    else if (part.type === 'error') throw part.error;
    else if (part.type === 'abort') throw signal.reason;
    else if (part.type === 'finish') {
      const { finishReason, rawFinishReason, totalUsage } = part;
      const tokens = totalUsage.inputTokens ?? totalUsage.outputTokens;
      if (hasJustEnded(finishReason, rawFinishReason, tokens)) throw cutOff();
    } else if (part.type === 'tool-call') {
      const { toolCallId, toolName, input } = part;
      yield {
        type: 'call',
        call: {
          callId: storableId(toolCallId),
          name: storableText(toolName),
          arguments: storableText(argumentsOf(storable(input))),
          agentName,
        },
      };
    } else yield { type: part.type === 'tool-input-start' ? 'calling' : 'other' };
  }
}

/**
 * Returns the arguments as JSON text. A value that is no JSON is refused by the check of the arguments, and
 * fails only its call.
 */
function argumentsOf(input: unknown): string {
  if (typeof input === 'string') return input;
  const json = asJson(input ?? {});
  return json.ok ? json.text : `no JSON: ${json.message}`;
}
