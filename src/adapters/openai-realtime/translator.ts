// Translates in both directions: commands become client events, and server events become transport events and audio
// frames. It performs no network I/O and uses no clock. Its state belongs to the conversation and not to the
// connection.
//
// Owns:     event ids, the pending and running responses, the configuration in force, the generation gate, the parts of
//           each item received so far, and partial transcripts. It does not queue commands, track readiness or close
//           the connection (`openai-realtime.ts` and the connection do).
//
// OPENAI-REALTIME-TRANSLATOR-1. `response.started`, `response.ended` and rejections contain the `responseKey` of their
//     request.
// OPENAI-REALTIME-TRANSLATOR-2. After `response.cancel`, no audio of the cancelled responses is forwarded (the
//     generation gate: RESPONSE-LEDGER-2, RESPONSE-LEDGER-3).
// OPENAI-REALTIME-TRANSLATOR-3. `response.ended` lists the forwarded audio, for comparison with the audio that was
//     played. A truncation never exceeds the audio that was forwarded, in whole milliseconds.
// OPENAI-REALTIME-TRANSLATOR-4. A cancellation without a response has no effect and is not an error.
// OPENAI-REALTIME-TRANSLATOR-5. Each `session.configure` has exactly one result, and the results arrive in order:
//     `session.configured` or `.refused`.
// OPENAI-REALTIME-TRANSLATOR-6. If the client ends an utterance, committing the buffer ends it. The utterance keeps its
//     original id, even if the server creates an item with a different id. The utterance's end is reported once.
//
// RESPONSE-LEDGER-1. A response has either the `responseKey` of the request that caused it or no key.
// RESPONSE-LEDGER-2. A cancellation marks the audio of all responses that were requested earlier as unwanted, including
//     responses that the server has not announced yet.
// RESPONSE-LEDGER-3. Audio of a response that has ended is unwanted.
// RESPONSE-LEDGER-5. The number of responses that the server has started but not ended is limited. If there are too
//     many, the oldest response counts as ended. The oldest held call of a response is dropped in the same way.
// RESPONSE-LEDGER-4. A tool call is reported once, and only if the model completed it. The server reports the arguments
//     of an incomplete call in the same way as those of a complete call.

import { createHash } from 'node:crypto';
import { decodePcm16Base64 } from '../../voice/audio/pcm16.ts';
import type {
  TransportCommand,
  TransportConfiguration,
  TransportLimit,
} from '../../voice/connection/transport.ts';
import { BoundedMap } from '../socket/bounded-map.ts';
import type { WireConnection } from '../socket/wire.ts';
import type { ServerEvent } from './wire.ts';
import * as wire from './wire.ts';
import { withoutUndefined } from '../../values/without-undefined.ts';

export type ClientEvent = ReturnType<
  | typeof wire.sessionStart
  | typeof wire.sessionChange
  | typeof wire.messageAdd
  | typeof wire.imageAdd
  | typeof wire.itemDelete
  | typeof wire.toolAnswer
  | typeof wire.toolRecall
  | typeof wire.responseCreate
  | typeof wire.responseCancel
  | typeof wire.itemTruncate
  | typeof wire.openQuestion
  | typeof wire.audioCommit
>;

/** The part of the connection that the translator uses. */
type Connection = Pick<WireConnection, 'emit' | 'emitAudio' | 'toSessionMs' | 'redact'>;

type RateLimit = Extract<ServerEvent, { type: 'rate_limits.updated' }>['rate_limits'][number];
type Usage = NonNullable<Extract<ServerEvent, { type: 'response.done' }>['response']['usage']>;
type HeardUsage = Extract<
  ServerEvent,
  { type: 'conversation.item.input_audio_transcription.completed' }
>['usage'];

interface SoundOfItem {
  samples: number;
  contentIndex: number;
}

const REMEMBERED_ITEMS = 256;
const SAMPLES_PER_MS = wire.WIRE_SAMPLE_RATE_HZ / 1000;

export class Translator {
  readonly #connection: Connection;
  readonly #responses = new ResponseLedger();
  readonly #soundOfItems = new BoundedMap<string, SoundOfItem>(REMEMBERED_ITEMS);
  /** The keys of responses that add no item to the conversation and therefore cannot be truncated. */
  readonly #outOfBand = new BoundedMap<string, true>(REMEMBERED_ITEMS);
  readonly #partialTranscripts = new BoundedMap<string, string>(REMEMBERED_ITEMS);
  /** OPENAI-REALTIME-TRANSLATOR-6: the utterance that the client has asked the server to end. */
  #ending: string | null = null;
  /** The utterances that the client has ended, by the server's item id, and vice versa. */
  readonly #utteranceOfItem = new BoundedMap<string, string>(REMEMBERED_ITEMS);
  readonly #itemOfUtterance = new BoundedMap<string, string>(REMEMBERED_ITEMS);
  /** The configuration that the server has accepted. */
  #configuration: TransportConfiguration;
  /** Changes that the server has not confirmed yet, oldest first, by event id. */
  readonly #changes = new Map<string, TransportConfiguration>();
  #takesOpenQuestion = false;
  #lastEventNumber = 0;
  /** The model that transcribes the user's speech. */
  #transcriber = '';

  constructor(configuration: TransportConfiguration, connection: Connection) {
    this.#configuration = configuration;
    this.#connection = connection;
  }

  /** Sets the extension events that the server accepts. */
  extend(extensions: readonly string[]): void {
    this.#takesOpenQuestion = extensions.includes(wire.OPEN_QUESTION);
  }

  /** Returns the connection's first client event. */
  start(settings: wire.SessionSettings): ClientEvent {
    this.#transcriber = settings.transcription.model;
    return wire.sessionStart(this.#newEventId(), settings, this.#configuration);
  }

  /**
   * Returns the reason why the start was refused. If the server refuses the transcription model, the error names the
   * option.
   */
  refusal(reason: string): string {
    return reason.includes(this.#transcriber) ? `${reason} (${this.#option})` : reason;
  }

  get #option(): string {
    return `openaiRealtime({ transcription: { model: '${this.#transcriber}' } })`;
  }

  /** Returns the event for a command; null if the command needs no event. */
  toWire(command: TransportCommand): ClientEvent | null {
    const eventId = this.#newEventId();
    switch (command.type) {
      case 'session.configure':
        this.#changes.set(eventId, command.configuration);
        return wire.sessionChange(eventId, command.configuration);
      case 'message.add':
        return wire.messageAdd(eventId, {
          ...command,
          itemId: toWireId(command.itemId),
          ...(command.afterItemId && { afterItemId: toWireId(this.#itemOf(command.afterItemId)) }),
        });
      case 'item.delete':
        this.#soundOfItems.delete(command.itemId);
        return wire.itemDelete(eventId, toWireId(this.#itemOf(command.itemId)));
      case 'tool.answer':
        return wire.toolAnswer(eventId, command.callId, command.output);
      case 'tool.recall':
        return wire.toolRecall(eventId, command);
      case 'response.request':
        this.#responses.request(eventId, command.responseKey);
        if (command.outOfBand) this.#outOfBand.set(command.responseKey, true);
        return wire.responseCreate(
          eventId,
          command.responseKey,
          // In the protocol, the instructions replace those of the session. In the transport port, the instructions are
          // added to those of the session.
          command.instructions === undefined
            ? undefined
            : `${this.#wanted.instructions}\n\n${command.instructions}`,
          command.outOfBand,
        );
      case 'response.cancel':
        return this.#responses.cancelAll() ? wire.responseCancel(eventId) : null;
      case 'utterance.end':
        this.#ending = command.utteranceId;
        return wire.audioCommit(eventId);
      case 'question.expect':
        return this.#takesOpenQuestion ? wire.openQuestion(eventId, command.question) : null;
      case 'playout.truncate':
        return this.#truncate(eventId, command.itemId, command.playedMs);
      case 'image.add':
        return wire.imageAdd(eventId, { ...command, itemId: toWireId(command.itemId) });
      // The transport never holds requests, and the protocol has no delegation.
      case 'response.withdraw':
      case 'delegation.accept':
      case 'delegation.answer':
        return null;
    }
  }

  /** Records that the server has accepted the oldest change that was still unconfirmed. */
  configured(): void {
    const [oldest] = this.#changes;
    if (oldest === undefined) return;
    const [eventId, configuration] = oldest;
    this.#changes.delete(eventId);
    this.#configuration = configuration;
    this.#connection.emit({ type: 'session.configured' });
  }

  /** Interprets a server event and forwards the result. `realtimeWire` handles `session.updated`. */
  fromWire(event: ServerEvent): void {
    const { emit, toSessionMs } = this.#connection;
    switch (event.type) {
      case 'session.updated':
        return;
      case 'error':
        return this.#onError(event);
      case 'input_audio_buffer.speech_started':
        return emit({
          type: 'utterance.started',
          utteranceId: event.item_id,
          audioStartMs: toSessionMs(event.audio_start_ms),
        });
      case 'input_audio_buffer.speech_stopped':
        if (this.#itemOfUtterance.has(event.item_id)) return;
        // The utterance ended before the client's command, so the commit finds no audio.
        if (this.#ending === event.item_id) this.#ending = null;
        return emit({ type: 'utterance.ended', utteranceId: event.item_id });
      case 'input_audio_buffer.committed':
        return this.#onCommitted(event.item_id);
      case 'conversation.item.input_audio_transcription.delta': {
        if (!event.delta) return;
        const text = (this.#partialTranscripts.get(event.item_id) ?? '') + event.delta;
        this.#partialTranscripts.set(event.item_id, text);
        return emit({
          type: 'utterance.transcribed',
          utteranceId: this.#utteranceOf(event.item_id),
          text,
          final: false,
        });
      }
      case 'conversation.item.input_audio_transcription.completed':
        this.#partialTranscripts.delete(event.item_id);
        emit({
          type: 'utterance.transcribed',
          utteranceId: this.#utteranceOf(event.item_id),
          text: event.transcript,
          final: true,
        });
        return this.#onUsage(event.usage);
      case 'conversation.item.input_audio_transcription.failed':
        this.#partialTranscripts.delete(event.item_id);
        return emit({
          type: 'utterance.untranscribed',
          utteranceId: this.#utteranceOf(event.item_id),
          reason: `${this.#describe(event.error) ?? 'The server gave no reason'} (${this.#option})`,
        });
      case 'response.created':
        return void this.#begin(event.response.id, keyOf(event.response));
      case 'response.output_audio.delta':
        return this.#onAudio(event);
      case 'response.output_audio_transcript.delta':
      case 'response.output_text.delta':
        return this.#onAssistantText(event, event.delta, false);
      case 'response.output_audio_transcript.done':
        return this.#onAssistantText(event, event.transcript, true);
      case 'response.output_text.done':
        return this.#onAssistantText(event, event.text, true);
      case 'response.function_call_arguments.done': {
        // The call is held until it is certain that it is complete (RESPONSE-LEDGER-4).
        const record = this.#recordOf(event.response_id);
        const { call_id: callId, name, arguments: text } = event;
        record?.heldCalls.set(callId, { callId, name: name ?? '', arguments: text });
        return;
      }
      case 'response.output_item.done':
        return this.#onItemDone(event);
      case 'response.done':
        this.#onResponseDone(event);
        return this.#onUsage(event.response.usage);
      case 'rate_limits.updated':
        return emit({ type: 'limits.reported', limits: event.rate_limits.flatMap(limitOf) });
    }
  }

  /** The configuration that will apply once the server has accepted all changes. */
  get #wanted(): TransportConfiguration {
    return [...this.#changes.values()].at(-1) ?? this.#configuration;
  }

  #newEventId(): string {
    this.#lastEventNumber += 1;
    return `event_${this.#lastEventNumber}`;
  }

  /** OPENAI-REALTIME-TRANSLATOR-6 */
  #onCommitted(itemId: string): void {
    const utteranceId = this.#ending;
    this.#ending = null;
    if (utteranceId === null) return;
    this.#utteranceOfItem.set(itemId, utteranceId);
    this.#itemOfUtterance.set(utteranceId, itemId);
    this.#connection.emit({ type: 'utterance.ended', utteranceId });
  }

  #utteranceOf(itemId: string): string {
    return this.#utteranceOfItem.get(itemId) ?? itemId;
  }

  /** Returns the id of the server's item for an utterance. */
  #itemOf(utteranceId: string): string {
    return this.#itemOfUtterance.get(utteranceId) ?? utteranceId;
  }

  #truncate(eventId: string, itemId: string, playedMs: number): ClientEvent | null {
    const sound = this.#soundOfItems.get(itemId);
    // The item is from another connection, or its record has been removed. Either the server does not have the item, or
    // the item was played to the end.
    if (sound === undefined) return null;
    const audioEndMs = Math.floor(Math.max(0, Math.min(playedMs, sound.samples / SAMPLES_PER_MS)));
    return wire.itemTruncate(eventId, { itemId, contentIndex: sound.contentIndex, audioEndMs });
  }

  #begin(responseId: string, responseKey: string | null): ResponseRecord | undefined {
    const record = this.#responses.begin(responseId, responseKey);
    if (record !== undefined) {
      this.#connection.emit({ type: 'response.started', responseId, responseKey });
    }
    return record;
  }

  /**
   * Returns the record of a response. If the start of a response was not announced, the response starts with its first
   * content.
   */
  #recordOf(responseId: string): ResponseRecord | undefined {
    return this.#responses.active(responseId) ?? this.#begin(responseId, null);
  }

  #onAudio(event: Extract<ServerEvent, { type: 'response.output_audio.delta' }>): void {
    const { response_id: responseId, item_id: itemId } = event;
    if (!this.#responses.wantsSoundOf(responseId)) return;
    const samples = decodePcm16Base64(event.delta);
    if (samples.length === 0) return;
    const record = this.#recordOf(responseId);
    const ofResponse = record?.samplesByItem;
    ofResponse?.set(itemId, (ofResponse.get(itemId) ?? 0) + samples.length);
    if (!this.#outOfBand.has(record?.responseKey ?? '')) this.#soundCame(event, samples.length);
    this.#connection.emitAudio({
      samples,
      sampleRateHz: wire.WIRE_SAMPLE_RATE_HZ,
      itemId,
      responseId,
    });
  }

  /** Records audio that may be truncated later. */
  #soundCame(
    {
      item_id: itemId,
      content_index: contentIndex,
    }: { readonly item_id: string; readonly content_index: number },
    samples: number,
  ): void {
    const ofItem = this.#soundOfItems.get(itemId);
    if (ofItem === undefined) this.#soundOfItems.set(itemId, { samples, contentIndex });
    else ofItem.samples += samples;
  }

  #onAssistantText(
    event: { readonly item_id: string; readonly response_id: string },
    text: string,
    final: boolean,
  ): void {
    if (text === '' && !final) return;
    this.#connection.emit({
      type: 'assistant.transcribed',
      itemId: event.item_id,
      responseId: event.response_id,
      text,
      final,
    });
  }

  #onItemDone(event: Extract<ServerEvent, { type: 'response.output_item.done' }>): void {
    const { item, response_id: responseId } = event;
    if (item.type !== 'function_call' || !item.call_id) return;
    const record = this.#recordOf(responseId);
    if (record === undefined) return;
    const held = record.heldCalls.get(item.call_id);
    record.heldCalls.delete(item.call_id);
    if (item.status === 'incomplete') return;
    this.#completeCall(record, {
      callId: item.call_id,
      name: item.name || held?.name || '',
      arguments: item.arguments ?? held?.arguments ?? '',
    });
  }

  #completeCall(record: ResponseRecord, call: ToolCall): void {
    if (record.completedCallIds.has(call.callId)) return;
    record.completedCallIds.set(call.callId, true);
    this.#connection.emit({ type: 'tool.called', ...call, responseId: record.responseId });
  }

  #onResponseDone({ response }: Extract<ServerEvent, { type: 'response.done' }>): void {
    const { id: responseId, status_details: details } = response;
    const record = this.#responses.active(responseId) ?? this.#begin(responseId, keyOf(response));
    if (record === undefined) return;
    const status = STATUSES.get(response.status ?? '') ?? 'incomplete';
    if (status === 'completed') {
      for (const call of record.heldCalls.values()) this.#completeCall(record, call);
    }
    this.#responses.end(responseId);
    this.#connection.emit({
      type: 'response.ended',
      responseId,
      responseKey: record.responseKey,
      status,
      reason: details?.reason ?? (details?.error ? this.#describe(details.error) : null),
      audio: [...record.samplesByItem].map(([itemId, samples]) => ({
        itemId,
        durationMs: samples / SAMPLES_PER_MS,
      })),
    });
  }

  #onError(event: Extract<ServerEvent, { type: 'error' }>): void {
    const { code, type, message, event_id: eventId } = event.error;
    if (code === 'response_cancel_not_active') return;
    if (code === 'input_audio_buffer_commit_empty') {
      this.#ending = null;
      return;
    }
    if (eventId && this.#changes.delete(eventId)) {
      this.#connection.emit({
        type: 'session.refused',
        code: code ?? type,
        message: this.#connection.redact(message),
      });
      return;
    }
    // The errors of some servers do not name the rejected event. This code always concerns a response.create.
    const refused =
      eventId ??
      (code === 'conversation_already_has_active_response' ? this.#responses.soleRequest : null);
    this.#connection.emit({
      type: 'transport.error',
      code: code ?? type,
      message: this.#connection.redact(message),
      responseKey: refused === null ? null : this.#responses.refuse(refused),
      raw: event,
    });
  }

  #onUsage(usage: Partial<Usage> | HeardUsage): void {
    // The usage of a transcription may be given in seconds instead of tokens.
    if (typeof usage?.input_tokens !== 'number' && typeof usage?.output_tokens !== 'number') return;
    const { input_token_details: input, output_token_details: output }: Partial<Usage> = usage;
    this.#connection.emit({
      type: 'usage.reported',
      inputTokens: usage.input_tokens ?? null,
      outputTokens: usage.output_tokens ?? null,
      ...withoutUndefined({
        cachedInputTokens: input?.cached_tokens ?? undefined,
        audioInputTokens: input?.audio_tokens ?? undefined,
        audioOutputTokens: output?.audio_tokens ?? undefined,
      }),
      raw: usage,
    });
  }

  #describe(error: {
    readonly code?: string | null;
    readonly message?: string | null;
  }): string | null {
    const text = [error.code, error.message].filter((part) => part).join(': ');
    return text === '' ? null : this.#connection.redact(text);
  }
}

/** Returns the rate limit in a list, or an empty list if the server sent no numbers. */
function limitOf({ name, limit, remaining, reset_seconds: seconds }: RateLimit): TransportLimit[] {
  if (!name || typeof limit !== 'number' || typeof remaining !== 'number') return [];
  return [{ name, limit, remaining, resetInMs: Math.round((seconds ?? 0) * 1000) }];
}

const STATUSES: ReadonlyMap<string, 'completed' | 'cancelled' | 'failed' | 'incomplete'> = new Map(
  (['completed', 'cancelled', 'failed', 'incomplete'] as const).map((status) => [status, status]),
);

function keyOf(response: { readonly metadata?: Record<string, unknown> | null }): string | null {
  const key = response.metadata?.[wire.RESPONSE_KEY];
  return typeof key === 'string' ? key : null;
}

const REMEMBERED_RESPONSES = 128;
const MAX_ACTIVE = 64;
const MAX_CALLS = 256;

interface ToolCall {
  readonly callId: string;
  readonly name: string;
  readonly arguments: string;
}

/** A response in progress. */
interface ResponseRecord {
  readonly responseId: string;
  readonly responseKey: string | null;
  isCancelled: boolean;
  /** The number of generated samples per item, in the order of their first audio. */
  readonly samplesByItem: Map<string, number>;
  /** The calls whose arguments have arrived but which have not been confirmed as complete. */
  readonly heldCalls: BoundedMap<string, ToolCall>;
  readonly completedCallIds: BoundedMap<string, true>;
}

interface Request {
  readonly responseKey: string;
  isCancelled: boolean;
}

/**
 * The responses of one connection, whether requested, in progress or ended, and the output of each.
 *
 *   requested ──response.created──▶ running ────response.done──▶ ended
 *       └── refused (error)               │
 *       └─────────────── cancelled ───────┘   (only marked: the end still comes)
 */
export class ResponseLedger {
  /** Requests by event id, stored until the server has created or rejected the response. */
  readonly #requests = new Map<string, Request>();
  readonly #active = new Map<string, ResponseRecord>();
  readonly #ended = new BoundedMap<string, true>(REMEMBERED_RESPONSES);

  request(eventId: string, responseKey: string): void {
    this.#requests.set(eventId, { responseKey, isCancelled: false });
    const [oldest] = this.#requests.keys();
    if (this.#requests.size > MAX_ACTIVE && oldest !== undefined) this.#requests.delete(oldest);
  }

  /**
   * Cancels all requested and running responses. @returns whether at least one of them had not been cancelled before
   */
  cancelAll(): boolean {
    let found = false;
    for (const entry of [...this.#requests.values(), ...this.#active.values()]) {
      found ||= !entry.isCancelled;
      entry.isCancelled = true;
    }
    return found;
  }

  /** Records a response that the server announced. @returns the response's record; `undefined` if already known */
  begin(responseId: string, responseKey: string | null): ResponseRecord | undefined {
    if (this.#active.has(responseId) || this.#ended.has(responseId)) return undefined;
    let isCancelled = false;
    for (const [eventId, request] of this.#requests) {
      if (responseKey === null || request.responseKey !== responseKey) continue;
      isCancelled = request.isCancelled;
      this.#requests.delete(eventId);
      break;
    }
    const record: ResponseRecord = {
      responseId,
      responseKey,
      isCancelled,
      samplesByItem: new Map(),
      heldCalls: new BoundedMap(MAX_CALLS),
      completedCallIds: new BoundedMap(MAX_CALLS),
    };
    this.#active.set(responseId, record);
    const [oldest] = this.#active.keys();
    if (this.#active.size > MAX_ACTIVE && oldest !== undefined) this.end(oldest);
    return record;
  }

  active(responseId: string): ResponseRecord | undefined {
    return this.#active.get(responseId);
  }

  /** RESPONSE-LEDGER-2, RESPONSE-LEDGER-3 */
  wantsSoundOf(responseId: string): boolean {
    return !this.#ended.has(responseId) && this.#active.get(responseId)?.isCancelled !== true;
  }

  /** Records the end of a response. @returns whether the response had not ended before */
  end(responseId: string): boolean {
    if (this.#ended.has(responseId)) return false;
    this.#active.delete(responseId);
    this.#ended.set(responseId, true);
    return true;
  }

  /** Records that the server has rejected the event `eventId`. @returns the request's key */
  refuse(eventId: string): string | null {
    const request = this.#requests.get(eventId);
    this.#requests.delete(eventId);
    return request?.responseKey ?? null;
  }

  /** The event id of the open request if there is exactly one. */
  get soleRequest(): string | null {
    const [first, second] = this.#requests.keys();
    return first !== undefined && second === undefined ? first : null;
  }
}

/** The maximum length of an item id. */
const MAX_ID_LENGTH = 32;

/** Returns an item's id if the server accepts it; otherwise returns a short, stable replacement. */
function toWireId(id: string): string {
  if (id.length <= MAX_ID_LENGTH) return id;
  return `item_${createHash('sha256')
    .update(id)
    .digest('hex')
    .slice(0, MAX_ID_LENGTH - 5)}`;
}
