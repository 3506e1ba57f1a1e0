// One response. It generates messages as text or speech, calls functions, and ends exactly once.
//
// Owns:     the output items, and aborting the model. It does not decide which response may run (`realtime-session.ts`).
//
// RESPONSE-RUN-1. The first event is always `response.created`, and the last is always `response.done`.
// RESPONSE-RUN-2. `cancel` takes effect before it returns. Open items end as `incomplete`, `response.done` states the
//     reason, and no further event follows.
// RESPONSE-RUN-3. Output items follow one another. A call is announced only after all earlier speech has been sent.
//
// RESPONSE-MESSAGE-1. The events of a message: output_item.added, conversation.item.added (unless out of band),
//     content_part.added, deltas, the content's `done` events, content_part.done, conversation.item.done, output_item.done.
// RESPONSE-MESSAGE-2. After `close`, no event of the message is sent.
// RESPONSE-MESSAGE-3. Neither the item nor the model's memory contains words whose audio was not sent.

import type { Environment } from '../../actors/ports/environment.ts';
import { codeOf, messageOf } from '../../values/errors.ts';
import type { AudioFrame } from '../../voice/audio/audio-frame.ts';
import { encodePcm16Base64 } from '../../voice/audio/pcm16.ts';
import { createResampler } from '../../voice/audio/resampler.ts';
import { SentenceChunker } from '../../voice/speech/sentence-chunker.ts';
import { SpokenWords, placeWords } from '../../voice/speech/spoken-words.ts';
import type { FunctionTool, ResponseParameters, ToolChoice } from './client-events.ts';
import type { Conversation, ConversationItem, Remembered } from './conversation.ts';
import { toUsage, type TextModel, type TextModelPart } from './language-model.ts';
import { voiceName, type SessionConfig } from './session-config.ts';
import type { SpokenRequest } from './speech/speech-engine.ts';
import type { Emit, WireItem, WireResponse, WireUsage } from './wire-events.ts';

/** The part of the session that a response uses. */
export interface ResponseContext {
  readonly emit: Emit;
  readonly environment: Environment;
  readonly textModel: TextModel;
  readonly conversationId: string;
  readonly conversation: Conversation;
  readonly whenReady: () => Promise<void>;
  readonly synthesize: (
    request: SpokenRequest,
    signal: AbortSignal,
  ) => ReturnType<Speaking['synthesize']>;
}

/** A requested response, with its settings from the session and the request. */
export interface ResponseRequest {
  readonly outOfBand: boolean;
  /** The items that the model receives. */
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

  /** @param onEnd Called once, immediately before `response.done`. */
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

  /** Stops without sending `response.done`, because the client has disconnected. */
  abandon(): void {
    this.#ended = true;
    this.#abort.abort();
    this.#message?.close('incomplete');
  }

  async #run(): Promise<void> {
    const { items, instructions, tools, toolChoice, maxOutputTokens, modality } = this.#request;
    const parts = this.#context.textModel.respond({
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

  #call(part: Extract<TextModelPart, { type: 'call' }>): void {
    const { name, arguments: text, callId: given, echo } = part;
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
      remembered: { kind: 'call', callId, name, arguments: text, echo },
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

  #complete({ reason, usage }: Extract<TextModelPart, { type: 'end' }>): void {
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

/** −40 dBFS. The peak below which the ends of a sentence count as silence. */
const SILENCE_PEAK = 328;
/** The silence to keep at both ends, so that audio does not start or end abruptly. */
const KEPT_SILENCE_MS = 20;
/** The pause between two sentences, regardless of any silence in the voice's audio. */
const SENTENCE_PAUSE_MS = 150;

const WIRE_SAMPLE_RATE_HZ = 24_000;
const SAMPLES_PER_MS = WIRE_SAMPLE_RATE_HZ / 1000;
const PIECE_SAMPLES = WIRE_SAMPLE_RATE_HZ / 10;

/** The destination of a message's events. */
interface MessageContext {
  readonly emit: Emit;
  readonly responseId: string;
  readonly outputIndex: number;
  readonly itemId: string;
  /** Null for an out-of-band response. */
  readonly conversation: Conversation | null;
}

/** The speech functions that a message uses. */
interface Speaking {
  /** Returns a sentence's audio. */
  readonly synthesize: (text: string) => Promise<AudioFrame>;
  /** Resolves in a later turn of the event loop, once the client can receive more. */
  readonly whenReady: () => Promise<void>;
}

interface ResponseMessage {
  /** Adds text. `isWhole`: whether the text can be spoken before the end of the sentence. */
  write(text: string, isWhole?: boolean): void;
  /** Resolves when all added text has been sent. @throws the error of `synthesize` */
  drain(): Promise<void>;
  /** Ends the message immediately. @returns the final item */
  close(status: 'completed' | 'incomplete'): WireItem;
}

/**
 * Starts one message of a response, either written or spoken, and announces it.
 *
 * A spoken message is split into sentences. Each sentence is synthesised in turn, trimmed of silence and sent in chunks
 * of 100 ms, far faster than real time. The words that start within a chunk are sent before the chunk. Between two
 * chunks, the event loop runs other work and the server waits for slow clients.
 */
function openMessage(context: MessageContext, speaking: Speaking | null): ResponseMessage {
  return speaking === null ? new WrittenMessage(context) : new SpokenMessage(context, speaking);
}

abstract class MessageBase {
  protected readonly context: MessageContext;
  protected readonly words = new SpokenWords();
  readonly #item: ConversationItem;
  #closed: WireItem | undefined;

  constructor(context: MessageContext) {
    this.context = context;
    const { emit, itemId: id, conversation, outputIndex, responseId } = context;
    this.#item = {
      id,
      wire: { id, type: 'message', status: 'in_progress', role: 'assistant', content: [] },
      remembered: {
        kind: 'message',
        role: 'assistant',
        parts: [{ type: 'speech', words: this.words }],
      },
      sound: [],
    };
    emit({
      type: 'response.output_item.added',
      response_id: responseId,
      output_index: outputIndex,
      item: this.#item.wire,
    });
    if (conversation !== null) {
      const previousId = conversation.add(this.#item);
      emit({
        type: 'conversation.item.added',
        previous_item_id: previousId,
        item: this.#item.wire,
      });
    }
  }

  protected get isClosed(): boolean {
    return this.#closed !== undefined;
  }

  /** The position that each event of the content includes. */
  protected get place() {
    const { responseId, itemId, outputIndex } = this.context;
    return {
      response_id: responseId,
      item_id: itemId,
      output_index: outputIndex,
      content_index: 0,
    };
  }

  protected keepSound(piece: Int16Array): void {
    if (this.context.conversation !== null) this.#item.sound.push(piece);
  }

  close(status: 'completed' | 'incomplete'): WireItem {
    if (this.#closed !== undefined) return this.#closed;
    const { emit, conversation, itemId: id, outputIndex, responseId } = this.context;
    const wire: WireItem = {
      id,
      type: 'message',
      status,
      role: 'assistant',
      content: [this.endContent()],
    };
    this.#closed = wire;
    this.#item.wire = wire;
    if (conversation?.find(id) !== undefined) {
      emit({
        type: 'conversation.item.done',
        previous_item_id: conversation.previousId(id),
        item: wire,
      });
    }
    emit({
      type: 'response.output_item.done',
      response_id: responseId,
      output_index: outputIndex,
      item: wire,
    });
    return wire;
  }

  /** Announces the end of the content. @returns the item's content */
  protected abstract endContent():
    | { type: 'output_text'; text: string }
    | { type: 'output_audio'; transcript: string };
}

class WrittenMessage extends MessageBase implements ResponseMessage {
  constructor(context: MessageContext) {
    super(context);
    context.emit({
      type: 'response.content_part.added',
      ...this.place,
      part: { type: 'text', text: '' },
    });
  }

  write(text: string): void {
    if (this.isClosed) return;
    this.words.addWord({ text, startMs: 0, endMs: 0 });
    this.context.emit({ type: 'response.output_text.delta', ...this.place, delta: text });
  }

  async drain(): Promise<void> {}

  protected endContent() {
    const text = this.words.text();
    this.context.emit({ type: 'response.output_text.done', ...this.place, text });
    this.context.emit({
      type: 'response.content_part.done',
      ...this.place,
      part: { type: 'text', text },
    });
    return { type: 'output_text' as const, text };
  }
}

class SpokenMessage extends MessageBase implements ResponseMessage {
  readonly #speaking: Speaking;
  readonly #chunker = new SentenceChunker();
  /** Settles once all text that was added so far has been sent, in order. */
  #sent: Promise<void> = Promise.resolve();

  constructor(context: MessageContext, speaking: Speaking) {
    super(context);
    this.#speaking = speaking;
    context.emit({
      type: 'response.content_part.added',
      ...this.place,
      part: { type: 'audio', transcript: '' },
    });
  }

  write(text: string, isWhole = false): void {
    for (const sentence of this.#chunker.push(text)) this.#enqueue(sentence);
    if (isWhole) this.#flush();
  }

  async drain(): Promise<void> {
    this.#flush();
    await this.#sent;
  }

  #flush(): void {
    for (const sentence of this.#chunker.flush()) this.#enqueue(sentence);
  }

  #enqueue(sentence: string): void {
    this.#sent = this.#sent.then(() => this.#say(sentence));
    // `drain` reports an error, possibly later.
    this.#sent.catch(() => undefined);
  }

  async #say(sentence: string): Promise<void> {
    if (this.isClosed) return;
    const sound = withoutSilence(await this.#speaking.synthesize(sentence));
    const lengthMs = (sound.samples.length * 1000) / sound.sampleRateHz;
    const { durationMs } = this.words;
    const pauseMs = durationMs > 0 && lengthMs > 0 ? SENTENCE_PAUSE_MS : 0;
    const words = placeWords(sentence, durationMs + pauseMs, lengthMs);
    for (const piece of piecesOf(afterPause(sound, pauseMs))) {
      if (this.isClosed) return;
      this.#sendWords(words, this.words.durationMs + piece.length / SAMPLES_PER_MS);
      this.#sendSound(piece);
      await this.#speaking.whenReady();
    }
    if (!this.isClosed) this.#sendWords(words, Infinity);
  }

  /** Sends the words that start before `untilMs` and removes them from the list. */
  #sendWords(words: ReturnType<typeof placeWords>, untilMs: number): void {
    const later = words.findIndex((word) => word.startMs >= untilMs);
    const due = words.splice(0, later < 0 ? words.length : later);
    if (due.length === 0) return;
    for (const word of due) this.words.addWord(word);
    this.context.emit({
      type: 'response.output_audio_transcript.delta',
      ...this.place,
      delta: due.map((word) => word.text).join(''),
    });
  }

  #sendSound(piece: Int16Array): void {
    this.words.addSound(piece.length / SAMPLES_PER_MS);
    this.keepSound(piece);
    this.context.emit({
      type: 'response.output_audio.delta',
      ...this.place,
      delta: encodePcm16Base64(piece),
    });
  }

  protected endContent() {
    const transcript = this.words.text();
    const { emit } = this.context;
    emit({ type: 'response.output_audio.done', ...this.place });
    emit({ type: 'response.output_audio_transcript.done', ...this.place, transcript });
    emit({
      type: 'response.content_part.done',
      ...this.place,
      part: { type: 'audio', transcript },
    });
    return { type: 'output_audio' as const, transcript };
  }
}

/** Returns the audio without the silence at its ends. Audio without any loud part is returned unchanged. */
function withoutSilence({ samples, sampleRateHz }: AudioFrame): AudioFrame {
  const isLoud = (sample: number): boolean => Math.abs(sample) >= SILENCE_PEAK;
  const first = samples.findIndex(isLoud);
  if (first < 0) return { samples, sampleRateHz };
  const kept = Math.round((KEPT_SILENCE_MS * sampleRateHz) / 1000);
  const end = samples.findLastIndex(isLoud) + 1 + kept;
  return { samples: samples.subarray(Math.max(0, first - kept), end), sampleRateHz };
}

function afterPause({ samples, sampleRateHz }: AudioFrame, pauseMs: number): AudioFrame {
  const pause = Math.round((pauseMs * sampleRateHz) / 1000);
  const sound = new Int16Array(pause + samples.length);
  sound.set(samples, pause);
  return { samples: sound, sampleRateHz };
}

/**
 * Yields chunks of at most 100 ms at the protocol's sample rate from audio at any rate. The function is lazy, so that
 * each chunk is produced in its own turn of the event loop.
 */
function* piecesOf(sound: AudioFrame): Generator<Int16Array> {
  const resampler = createResampler({ fromHz: sound.sampleRateHz, toHz: WIRE_SAMPLE_RATE_HZ });
  const step = Math.max(1, Math.floor((PIECE_SAMPLES * sound.sampleRateHz) / WIRE_SAMPLE_RATE_HZ));
  for (let start = 0; start < sound.samples.length; start += step) {
    const piece = resampler.process(sound.samples.subarray(start, start + step));
    if (piece.length > 0) yield piece;
  }
  const rest = resampler.flush();
  if (rest.length > 0) yield rest;
}
