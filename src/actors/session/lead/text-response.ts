// One response of the lead model of a text session: the model is asked, its words are said as
// they come, its calls are handed over, and in the end it is known what was said.
//
// Owns:     nothing that outlives the response.
// Does not: decide when to respond, or what becomes of the response (text-lead).
//
// Invariants
//   TEXT-RESPONSE-1. What is said stands in the conversation where it began: before the calls that follow
//       it, and before what the user says meanwhile.
//   TEXT-RESPONSE-2. A response without words and calls is a failure, unless all was said before the calls that it
//       follows: silence explains nothing to a user.
//   TEXT-RESPONSE-4. A call is handed over with the next part of the stream, which tells whether another
//       call follows: a crash between the two is seen in the journal.
//   TEXT-RESPONSE-3. Whatever happens it comes to an end, and never throws.

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

/** A call that the model makes. */
export interface ResponseCall {
  /** As the provider named it: not always unique. */
  readonly callId: string;
  readonly name: string;
  /** JSON text. */
  readonly arguments: string;
  /** Whose model made it, whoever leads by now. */
  readonly agentName: string;
  /** The response makes another call after it. */
  readonly isFollowed: boolean;
}

export interface TextResponseOptions {
  readonly core: LeadSession;
  readonly model: LanguageModel;
  readonly output: TextOutput;
  readonly signal: AbortSignal;
  /** The offer that it tells; null: it is a reply. */
  readonly tells: { readonly deliveryId: string; readonly deliveryIds?: readonly string[] } | null;
  /** May it call tools? */
  readonly mayCall: boolean;
  /** It has said what there is to say. @defaultValue false */
  readonly maySayNothing?: boolean;
  /** A sign of life. */
  onSign(): void;
  /** It begins to speak. */
  onWords(): void;
  onCall(call: ResponseCall): void;
}

/** How a response ended. */
export interface TextResponse {
  readonly itemId: string;
  /** All that was said. */
  readonly text: string;
  /** It was aborted, or failed: more would have been said. */
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
  /** TEXT-RESPONSE-4 */
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
        core.books.saying(itemId, '', at);
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
  // Not delta by delta: two of them may hold a half each of one character.
  text = storableText(text);
  if (text !== '') {
    intoConversation(core, { type: 'assistant.said', itemId, text, saidAt: at });
    show(true);
  }
  return { itemId, text, isBroken };
}

/** What a client names when it acknowledges what was told. */
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
  /** It begins to write a call. */
  | { readonly type: 'calling' }
  | { readonly type: 'call'; readonly call: Call }
  | { readonly type: 'other' };

async function* partsOf(options: TextResponseOptions): AsyncGenerator<Part> {
  const { core, model, signal, mayCall } = options;
  const { name: agentName, providerOptions } = core.leads.agent;
  const { stream } = streamText({
    model,
    instructions: core.leads.instructionsOf(agentName),
    ...(providerOptions && { providerOptions }),
    messages: core.books.conversation.toModelMessages({ notes: core.notes }),
    allowSystemInMessages: core.notes.systemAs === 'system',
    tools: modelToolsOf(core.leads.toolsOf(agentName)),
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

/** As JSON text. What is none is refused where the arguments are checked, and fails its call only. */
function argumentsOf(input: unknown): string {
  if (typeof input === 'string') return input;
  const json = asJson(input ?? {});
  return json.ok ? json.text : `no JSON: ${json.message}`;
}
