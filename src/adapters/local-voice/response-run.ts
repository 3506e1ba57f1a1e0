// One response: generates, writes or speaks messages, calls functions, and ends once.
//
// Owns: its output items, the abort of the model. Does not: which response may run
// (`realtime-session.ts`).
//
// RESPONSE-RUN-1. The first event is `response.created`, the last `response.done`, whatever happens.
// RESPONSE-RUN-2. `cancel` takes effect before it returns: open items end as `incomplete`, `response.done`
//     says why, and nothing follows.
// RESPONSE-RUN-3. Output items follow one another; a call is announced after all speech before it was sent.

import type { Environment } from '../../actors/ports/environment.ts';
import { codeOf, messageOf } from '../../values/errors.ts';
import { toUsage, type Brain, type BrainPart } from './brain.ts';
import type { FunctionTool, ResponseParameters, ToolChoice } from './client-schemas.ts';
import type { Conversation, ConversationItem, Remembered } from './conversation.ts';
import { openMessage, type ResponseMessage, type Speaking } from './response-message.ts';
import { voiceName, type SessionConfig } from './session-config.ts';
import type { SpokenRequest } from './speech/speech-engine.ts';
import type { Emit, WireItem, WireResponse, WireUsage } from './wire-events.ts';

/** The part of the session that a response needs. */
export interface ResponseContext {
  readonly emit: Emit;
  readonly environment: Environment;
  readonly brain: Brain;
  readonly conversationId: string;
  readonly conversation: Conversation;
  readonly whenReady: () => Promise<void>;
  readonly synthesize: (
    request: SpokenRequest,
    signal: AbortSignal,
  ) => ReturnType<Speaking['synthesize']>;
}

/** A requested response: the settings of the session and of the request. */
export interface ResponseRequest {
  readonly outOfBand: boolean;
  /** The items that the model reads. */
  readonly items: readonly Remembered[];
  readonly instructions: string;
  readonly modality: 'text' | 'audio';
  readonly tools: readonly FunctionTool[];
  readonly toolChoice: ToolChoice;
  readonly maxOutputTokens: number | 'inf';
  readonly metadata: Record<string, string> | null;
  readonly voice: string;
  readonly speed: number;
}

type EndStatus = 'completed' | 'cancelled' | 'failed' | 'incomplete';

export function responseRequest(
  config: SessionConfig,
  items: readonly Remembered[],
  parameters: ResponseParameters,
): ResponseRequest {
  return {
    outOfBand: parameters.conversation === 'none',
    items,
    instructions: parameters.instructions ?? config.instructions,
    modality: (parameters.output_modalities ?? config.output_modalities)[0] ?? 'audio',
    tools: parameters.tools ?? config.tools,
    toolChoice: parameters.tool_choice ?? config.tool_choice,
    maxOutputTokens: parameters.max_output_tokens ?? config.max_output_tokens,
    metadata: parameters.metadata ?? null,
    voice: voiceName(parameters.audio?.output?.voice ?? config.audio.output.voice),
    speed: config.audio.output.speed,
  };
}

export class ResponseRun {
  readonly id: string;
  readonly #context: ResponseContext;
  readonly #request: ResponseRequest;
  readonly #abort = new AbortController();
  readonly #output: WireItem[] = [];
  readonly #onEnd: () => void;
  #message: ResponseMessage | null = null;
  #usage: WireUsage = toUsage({});
  #ended = false;

  /** @param onEnd called once, right before `response.done` */
  constructor(context: ResponseContext, request: ResponseRequest, onEnd: () => void) {
    this.id = context.environment.ids.next('resp');
    this.#context = context;
    this.#request = request;
    this.#onEnd = onEnd;
  }

  /** Announces the response and starts it. */
  begin(): void {
    this.#context.emit({ type: 'response.created', response: this.#resource('in_progress', null) });
    void this.#run().catch((error: unknown) => this.#fail(error));
  }

  cancel(reason: 'turn_detected' | 'client_cancelled'): void {
    this.#end('cancelled', { type: 'cancelled', reason });
  }

  /** Stops without `response.done`, because the client is gone. */
  abandon(): void {
    this.#ended = true;
    this.#abort.abort();
    this.#message?.close('incomplete');
  }

  async #run(): Promise<void> {
    const { items, instructions, tools, toolChoice, maxOutputTokens, modality } = this.#request;
    const parts = this.#context.brain.respond({
      items,
      instructions,
      tools,
      toolChoice,
      modality,
      maxOutputTokens: maxOutputTokens === 'inf' ? null : maxOutputTokens,
      signal: this.#abort.signal,
    });
    for await (const part of parts) {
      if (this.#ended) return;
      if (part.type === 'text') {
        this.#message ??= this.#openMessage();
        this.#message.write(part.text, part.isWhole);
        continue;
      }
      await this.#finishMessage();
      if (this.#ended) return;
      if (part.type === 'call') this.#call(part);
      else this.#complete(part);
    }
  }

  #openMessage(): ResponseMessage {
    const { emit, environment, conversation, synthesize, whenReady } = this.#context;
    const { modality, outOfBand, voice, speed } = this.#request;
    return openMessage(
      {
        emit,
        responseId: this.id,
        outputIndex: this.#output.length,
        itemId: environment.ids.next('item'),
        conversation: outOfBand ? null : conversation,
      },
      modality === 'text'
        ? null
        : {
            synthesize: (text) => synthesize({ text, voice, speed }, this.#abort.signal),
            whenReady,
          },
    );
  }

  async #finishMessage(): Promise<void> {
    await this.#message?.drain();
    if (!this.#ended) this.#closeMessage('completed');
  }

  #closeMessage(status: 'completed' | 'incomplete'): void {
    if (this.#message !== null) this.#output.push(this.#message.close(status));
    this.#message = null;
  }

  #call({ name, arguments: text, callId: given }: Extract<BrainPart, { type: 'call' }>): void {
    const { emit, environment, conversation } = this.#context;
    const id = environment.ids.next('item');
    const callId = given ?? environment.ids.next('call');
    const place = { response_id: this.id, output_index: this.#output.length };
    const begun: WireItem = {
      id,
      type: 'function_call',
      status: 'in_progress',
      call_id: callId,
      name,
      arguments: '',
    };
    const done: WireItem = { ...begun, status: 'completed', arguments: text };
    const item: ConversationItem = {
      id,
      wire: done,
      remembered: { kind: 'call', callId, name, arguments: text },
      sound: [],
    };
    emit({ type: 'response.output_item.added', ...place, item: begun });
    const previousId = this.#request.outOfBand ? undefined : conversation.add(item);
    if (previousId !== undefined) {
      emit({ type: 'conversation.item.added', previous_item_id: previousId, item: begun });
    }
    const call = { ...place, item_id: id, call_id: callId };
    emit({ type: 'response.function_call_arguments.delta', ...call, delta: text });
    emit({ type: 'response.function_call_arguments.done', ...call, name, arguments: text });
    if (previousId !== undefined) {
      emit({ type: 'conversation.item.done', previous_item_id: previousId, item: done });
    }
    emit({ type: 'response.output_item.done', ...place, item: done });
    this.#output.push(done);
  }

  #complete({ reason, usage }: Extract<BrainPart, { type: 'end' }>): void {
    this.#usage = usage;
    if (reason === 'completed') this.#end('completed', null);
    else this.#end('incomplete', { type: 'incomplete', reason });
  }

  #fail(error: unknown): void {
    const code = codeOf(error, 'internal_error');
    this.#end('failed', {
      type: 'failed',
      error: { type: 'server_error', code, message: messageOf(error) },
    });
  }

  #end(status: EndStatus, details: WireResponse['status_details']): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#abort.abort();
    this.#closeMessage(status === 'completed' ? 'completed' : 'incomplete');
    this.#onEnd();
    const { emit } = this.#context;
    emit({ type: 'response.done', response: this.#resource(status, details) });
    // This server has no rate limits.
    emit({ type: 'rate_limits.updated', rate_limits: [] });
  }

  #resource(
    status: EndStatus | 'in_progress',
    details: WireResponse['status_details'],
  ): WireResponse {
    const { outOfBand, metadata, modality, maxOutputTokens, voice } = this.#request;
    return {
      object: 'realtime.response',
      id: this.id,
      status,
      status_details: details,
      output: [...this.#output],
      conversation_id: outOfBand ? null : this.#context.conversationId,
      output_modalities: [modality],
      max_output_tokens: maxOutputTokens,
      audio: { output: { format: { type: 'audio/pcm', rate: 24_000 }, voice } },
      usage: status === 'in_progress' ? null : this.#usage,
      metadata,
    };
  }
}
