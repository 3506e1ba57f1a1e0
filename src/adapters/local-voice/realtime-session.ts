// The server's side of one connection. It reads client events, manages the session, the conversation and the responses,
// and responds in the same order as the real server.
//
// Owns:     the configuration, the conversation, the input audio and the configuration of each response. It does not
//           handle the socket (`local-voice.ts`), or the threads and models that all connections share.
//
// REALTIME-SESSION-1. Each client event is answered with its server event or with one `error` that names its
//     `event_id`. No client event ends the session.
// REALTIME-SESSION-2. At most one response writes to the conversation. Out-of-band responses run in parallel.
// REALTIME-SESSION-3. A transcription delays only the response that must read it.

import type { Environment } from '../../actors/ports/environment.ts';
import { OffstageError, messageOf } from '../../values/errors.ts';
import type { AudioFrame } from '../../voice/audio/audio-frame.ts';
import { decodePcm16Base64 } from '../../voice/audio/pcm16.ts';
import {
  OPEN_QUESTION,
  parseClientFrame,
  unsupported,
  type ClientEvent,
  type InputItem,
  type ResponseParameters,
} from './client-events.ts';
import {
  Conversation,
  truncateSpeech,
  withSound,
  type ConversationItem,
  type Remembered,
  type RememberedPart,
} from './conversation.ts';
import { transcribeSound } from './hearing.ts';
import {
  INPUT_SAMPLE_RATE_HZ,
  type InputAudioEvents,
  type InputBuffer,
  type Utterance,
} from './input-audio.ts';
import type { TextModel } from './language-model.ts';
import {
  responseRequest,
  ResponseRun,
  type ResponseContext,
  type ResponseRequest,
} from './response.ts';
import { defaultSessionConfig, updateSessionConfig, type SessionConfig } from './session-config.ts';
import type { SpeechEngine, SpokenRequest } from './speech/speech-engine.ts';
import { Refusal, type ServerEventBody, type WireItem } from './wire-events.ts';

export interface RealtimeSessionOptions {
  readonly environment: Environment;
  readonly engine: SpeechEngine;
  readonly textModel: TextModel;
  /** The voice for clients whose requested voice the engine lacks. */
  readonly defaultVoice: string;
  /** The model that the client requested. The session only repeats it in its responses. */
  readonly model: string;
  readonly send: (text: string) => void;
  /** Creates the input buffer. */
  readonly createInput: (events: InputAudioEvents) => InputBuffer;
  /** The initial `session.update`, for example from an ephemeral token. */
  readonly preset?: unknown;
  /** Resolves in a later turn of the event loop, once the client can receive more. */
  readonly whenReady: () => Promise<void>;
}

type EventOf<Type extends ClientEvent['type']> = Extract<ClientEvent, { type: Type }>;

export class RealtimeSession {
  readonly #options: RealtimeSessionOptions;
  readonly #conversation = new Conversation();
  readonly #input: InputBuffer;
  readonly #responses: Responses;
  #config: SessionConfig;
  /** Whether audio has been generated. After that, the voice cannot be changed. */
  #spoken = false;
  /** The latest utterance whose words were reported before its end. */
  #stoppedBy: string | null = null;
  #closed = false;

  constructor(options: RealtimeSessionOptions) {
    this.#options = options;
    const { environment, model, defaultVoice, textModel, whenReady, createInput, preset } = options;
    this.#responses = new Responses({
      emit: (event) => this.#emit(event),
      environment,
      textModel,
      conversation: this.#conversation,
      conversationId: environment.ids.next('conv'),
      whenReady,
      synthesize: (request, signal) => this.#synthesize(request, signal),
    });
    this.#input = createInput({
      newItemId: () => environment.ids.next('item'),
      speechStarted: (itemId, startMs) => this.#onSpeechStarted(itemId, startMs),
      speechStopped: (itemId, endMs) =>
        this.#emit({
          type: 'input_audio_buffer.speech_stopped',
          item_id: itemId,
          audio_end_ms: endMs,
        }),
      stopWords: (itemId, words) => this.#reportStop(itemId, words),
      committed: (utterance) => this.#onUtterance(utterance),
      detectionFailed: (message) =>
        this.#emitError('server_error', 'speech_detection_failed', message),
      endOfTurnFailed: (message) => this.#emitError('server_error', 'end_of_turn_failed', message),
    });
    const config = defaultSessionConfig(environment.ids.next('sess'), model, defaultVoice);
    const extended = this.#input.expect ? { ...config, extensions: [OPEN_QUESTION] } : config;
    this.#config = preset === undefined ? extended : updateSessionConfig(extended, preset, false);
  }

  /** The current configuration. */
  get config(): SessionConfig {
    return this.#config;
  }

  get items(): readonly ConversationItem[] {
    return this.#conversation.items;
  }

  /** Sends the first event. */
  open(): void {
    this.#listen();
    this.#emit({ type: 'session.created', session: this.#config });
  }

  /** Handles a text frame from the client. Never throws. */
  receive(data: string): void {
    const { eventId, event } = parseClientFrame(data);
    try {
      if (event instanceof Refusal) throw event;
      this.#handle(event);
    } catch (error) {
      this.#refuse(error, eventId);
    }
  }

  /** Handles a binary frame from the client. */
  receiveBinary(): void {
    const message = 'Expected a text WebSocket message; binary frames are not supported.';
    this.#emitError('invalid_request_error', 'invalid_event', message);
  }

  /** Starts a response without a request from the client. @throws {Refusal} if a response is in progress */
  respond(): void {
    this.#createResponse({});
  }

  /** Handles the end of the connection by stopping all work. Nothing more is sent. */
  close(): void {
    this.#closed = true;
    this.#input.close();
    this.#responses.abandon();
  }

  #handle(event: ClientEvent): void {
    switch (event.type) {
      case 'session.update':
        return this.#updateSession(event);
      case 'input_audio_buffer.append':
        return this.#input.append(decodeAudio(event.audio));
      case 'input_audio_buffer.commit':
        return this.#addUtterance(this.#input.commit());
      case 'input_audio_buffer.clear':
        this.#input.clear();
        return this.#emit({ type: 'input_audio_buffer.cleared' });
      case 'output_audio_buffer.clear':
        throw new Refusal(
          'invalid_value',
          "'output_audio_buffer.clear' is for WebRTC and SIP: over a WebSocket the client holds the buffer.",
          'type',
        );
      case 'conversation.item.create':
        return this.#createItem(event);
      case 'conversation.item.delete':
        return this.#deleteItem(event);
      case 'conversation.item.retrieve':
        return this.#retrieveItem(event);
      case 'conversation.item.truncate':
        return this.#truncateItem(event);
      case 'response.create':
        return this.#createResponse(event.response ?? {});
      case 'response.cancel':
        return this.#responses.cancel(event.response_id ?? null);
      case OPEN_QUESTION:
        if (this.#input.expect === undefined) throw unsupported(JSON.stringify(OPEN_QUESTION));
        return this.#input.expect(event.question);
    }
  }

  #updateSession({ session }: EventOf<'session.update'>): void {
    this.#config = updateSessionConfig(this.#config, session, this.#spoken);
    this.#listen();
    this.#emit({ type: 'session.updated', session: this.#config });
  }

  #listen(): void {
    const { turn_detection: detection, transcription } = this.#config.audio.input;
    this.#input.configure(detection, transcription?.language ?? 'en');
  }

  #onSpeechStarted(itemId: string, startMs: number): void {
    this.#emit({
      type: 'input_audio_buffer.speech_started',
      item_id: itemId,
      audio_start_ms: startMs,
    });
    if (this.#config.audio.input.turn_detection?.interrupt_response) {
      this.#responses.interrupt();
    }
  }

  /** Handles an utterance that is committed because the user stopped speaking. */
  #onUtterance(utterance: Utterance): void {
    try {
      this.#addUtterance(utterance);
      if (this.#config.audio.input.turn_detection?.create_response) this.#createResponse({});
    } catch (error) {
      this.#refuse(error, null);
    }
  }

  #addUtterance({ itemId, samples, words }: Utterance): void {
    const sound = { samples, sampleRateHz: INPUT_SAMPLE_RATE_HZ };
    const heard = words ?? this.#hear(sound);
    const item: ConversationItem = {
      id: itemId,
      wire: {
        id: itemId,
        type: 'message',
        status: 'completed',
        role: 'user',
        content: [{ type: 'input_audio', transcript: null }],
      },
      remembered: {
        kind: 'message',
        role: 'user',
        parts: [{ type: 'sound', words: heard.catch(() => '') }],
      },
      sound: [samples],
    };
    const previousId = this.#conversation.add(item);
    this.#emit({
      type: 'input_audio_buffer.committed',
      item_id: itemId,
      previous_item_id: previousId,
    });
    this.#announce(item, previousId);
    this.#reportTranscription(item, heard, sound);
  }

  #reportStop(itemId: string, words: string): void {
    if (this.#config.audio.input.transcription === null) return;
    this.#stoppedBy = itemId;
    const type = 'conversation.item.input_audio_transcription.delta';
    this.#emit({ type, item_id: itemId, content_index: 0, delta: words });
  }

  /** Reports the transcription once it is complete, if the client requested it. */
  #reportTranscription(item: ConversationItem, heard: Promise<string>, sound: AudioFrame): void {
    if (this.#config.audio.input.transcription === null) return;
    const place = { item_id: item.id, content_index: 0 };
    const type = 'conversation.item.input_audio_transcription';
    heard.then(
      (transcript) => {
        item.wire = {
          id: item.id,
          type: 'message',
          status: 'completed',
          role: 'user',
          content: [{ type: 'input_audio', transcript }],
        };
        // Deltas are parts of one text, and the final event contains the whole text.
        if (transcript !== '' && item.id !== this.#stoppedBy)
          this.#emit({ type: `${type}.delta`, ...place, delta: transcript });
        const seconds = sound.samples.length / sound.sampleRateHz;
        const usage = { type: 'duration' as const, seconds };
        this.#emit({ type: `${type}.completed`, ...place, transcript, usage });
      },
      (error: unknown) => {
        const code = error instanceof OffstageError ? error.code : 'transcription_failed';
        const details = { type: 'server_error', code, message: messageOf(error) };
        this.#emit({ type: `${type}.failed`, ...place, error: details });
      },
    );
  }

  #hear(sound: AudioFrame): Promise<string> {
    return transcribeSound(this.#options.engine, sound);
  }

  #createItem({ item: given, previous_item_id: after }: EventOf<'conversation.item.create'>): void {
    if (given.type === 'function_call_output' && !this.#knowsCall(given.call_id)) {
      const message = `Tool call ID '${given.call_id}' not found in conversation.`;
      throw new Refusal('invalid_tool_call_id', message, 'item.call_id');
    }
    const item = this.#toItem(given);
    this.#announce(item, this.#conversation.add(item, after));
  }

  #knowsCall(callId: string): boolean {
    return this.#conversation.items.some(
      ({ remembered }) => remembered.kind === 'call' && remembered.callId === callId,
    );
  }

  #toItem(given: Exclude<InputItem, { type: 'item_reference' }>): ConversationItem {
    return toConversationItem(given, {
      newId: (prefix) => this.#options.environment.ids.next(prefix),
      decode: decodeAudio,
      hear: (samples) =>
        this.#hear({ samples, sampleRateHz: INPUT_SAMPLE_RATE_HZ }).catch(() => ''),
    });
  }

  #announce(item: ConversationItem, previousId: string | null): void {
    const event = { previous_item_id: previousId, item: item.wire };
    this.#emit({ type: 'conversation.item.added', ...event });
    this.#emit({ type: 'conversation.item.done', ...event });
  }

  #deleteItem({ item_id: id }: EventOf<'conversation.item.delete'>): void {
    if (!this.#conversation.delete(id)) throw noSuchItem('delet', 'delete', id);
    this.#emit({ type: 'conversation.item.deleted', item_id: id });
  }

  #retrieveItem({ item_id: id }: EventOf<'conversation.item.retrieve'>): void {
    const item = this.#conversation.find(id);
    if (item === undefined) throw noSuchItem('retriev', 'retrieve', id);
    this.#emit({ type: 'conversation.item.retrieved', item: withSound(item) });
  }

  #truncateItem(event: EventOf<'conversation.item.truncate'>): void {
    const { item_id: id, content_index: contentIndex, audio_end_ms: audioEndMs } = event;
    const item = this.#conversation.find(id);
    if (item === undefined) throw noSuchItem('truncat', 'truncate', id);
    if (contentIndex !== 0) {
      const message = `Invalid 'content_index': ${contentIndex}`;
      throw new Refusal('invalid_value', message, 'content_index');
    }
    truncateSpeech(item, audioEndMs);
    this.#emit({
      type: 'conversation.item.truncated',
      item_id: id,
      content_index: contentIndex,
      audio_end_ms: audioEndMs,
    });
  }

  #createResponse(parameters: ResponseParameters): void {
    const items = this.#itemsOf(parameters);
    this.#responses.create(responseRequest(this.#config, items, parameters));
  }

  /** Returns the items for the model: the conversation, or the items that the client sent instead. */
  #itemsOf({ input }: ResponseParameters): Remembered[] {
    const items =
      input?.map((given) => {
        if (given.type !== 'item_reference') return this.#toItem(given);
        const item = this.#conversation.find(given.id);
        if (item !== undefined) return item;
        const message = `Item with id '${given.id}' not found in the conversation.`;
        throw new Refusal('invalid_value', message, 'response.input');
      }) ?? this.#conversation.items;
    return items.map((item) => item.remembered);
  }

  #synthesize(request: SpokenRequest, signal: AbortSignal): Promise<AudioFrame> {
    this.#spoken = true;
    const { engine, defaultVoice } = this.#options;
    const voice = engine.voices.includes(request.voice) ? request.voice : defaultVoice;
    return engine.synthesize({ ...request, voice }, signal);
  }

  #refuse(error: unknown, eventId: string | null): void {
    if (error instanceof Refusal) {
      const { code, message, param } = error;
      this.#emitError('invalid_request_error', code, message, param, eventId);
    } else {
      this.#emitError('server_error', 'internal_error', messageOf(error), null, eventId);
    }
  }

  #emitError(
    type: 'invalid_request_error' | 'server_error',
    code: string,
    message: string,
    param: string | null = null,
    eventId: string | null = null,
  ): void {
    this.#emit({ type: 'error', error: { type, code, message, param, event_id: eventId } });
  }

  #emit(event: ServerEventBody): void {
    if (this.#closed) return;
    const { type, ...rest } = event;
    const eventId = this.#options.environment.ids.next('event');
    this.#options.send(JSON.stringify({ type, event_id: eventId, ...rest }));
  }
}

function decodeAudio(base64: string): Int16Array {
  try {
    return decodePcm16Base64(base64);
  } catch (error) {
    throw new Refusal('invalid_value', `Invalid 'audio': ${messageOf(error)}`, 'audio');
  }
}

function noSuchItem(stem: string, verb: string, id: string): Refusal {
  const message = `Error ${stem}ing item: the item with id '${id}' does not exist.`;
  return new Refusal(`item_${verb}_invalid_item_id`, message, 'item_id');
}

const MAX_OUT_OF_BAND = 8;

/**
 * The running responses of a connection: at most one that writes to the conversation, and the out-of-band responses.
 */
class Responses {
  readonly #context: ResponseContext;
  readonly #outOfBand = new Map<string, ResponseRun>();
  #active: ResponseRun | null = null;

  constructor(context: ResponseContext) {
    this.#context = context;
  }

  /** @throws {Refusal} if too many responses are running */
  create(request: ResponseRequest): void {
    if (!request.outOfBand && this.#active !== null) {
      throw new Refusal(
        'conversation_already_has_active_response',
        `Conversation already has an active response in progress: ${this.#active.id}. ` +
          'Wait until the response is finished before creating a new one.',
      );
    }
    if (request.outOfBand && this.#outOfBand.size >= MAX_OUT_OF_BAND) {
      const message = `At most ${MAX_OUT_OF_BAND} responses may run out of band at once.`;
      throw new Refusal('too_many_responses', message, 'response.conversation');
    }
    const response: ResponseRun = new ResponseRun(this.#context, request, () => {
      if (this.#active === response) this.#active = null;
      this.#outOfBand.delete(response.id);
    });
    if (request.outOfBand) this.#outOfBand.set(response.id, response);
    else this.#active = response;
    response.begin();
  }

  /** Handles the start of the user's speech. */
  interrupt(): void {
    this.#active?.cancel('turn_detected');
  }

  /**
   * Cancels the response with this id. Without an id, cancels the response that writes to the conversation.
   * @throws {Refusal} `response_cancel_not_active`
   */
  cancel(id: string | null): void {
    const named = this.#active?.id === id ? this.#active : this.#outOfBand.get(id ?? '');
    const response = id === null ? this.#active : named;
    if (!response) {
      const message = 'Cancellation failed: no active response found';
      throw new Refusal('response_cancel_not_active', message);
    }
    response.cancel('client_cancelled');
  }

  /** Stops all responses without sending events. */
  abandon(): void {
    this.#active?.abandon();
    for (const response of this.#outOfBand.values()) response.abandon();
  }
}

type GivenItem = Exclude<InputItem, { type: 'item_reference' }>;
type GivenMessage = Extract<GivenItem, { type: 'message' }>;
type GivenPart = GivenMessage['content'][number];

interface NewItemTools {
  readonly newId: (prefix: string) => string;
  readonly decode: (base64: string) => Int16Array;
  /** Returns the words in the audio. Never rejects. */
  readonly hear: (samples: Int16Array) => Promise<string>;
}

/** Converts an item from the client to a conversation item, in both the client's form and the model's form. */
function toConversationItem(given: GivenItem, tools: NewItemTools): ConversationItem {
  const id = given.id ?? tools.newId('item');
  const fields = { id, status: 'completed' as const };
  switch (given.type) {
    case 'message':
      return toMessage(given, fields, tools);
    case 'function_call': {
      const callId = given.call_id ?? tools.newId('call');
      const { name, arguments: text } = given;
      return {
        id,
        wire: { ...fields, type: 'function_call', call_id: callId, name, arguments: text },
        remembered: { kind: 'call', callId, name, arguments: text },
        sound: [],
      };
    }
    case 'function_call_output': {
      const { call_id: callId, output } = given;
      return {
        id,
        wire: { ...fields, type: 'function_call_output', call_id: callId, output },
        remembered: { kind: 'answer', callId, output },
        sound: [],
      };
    }
  }
}

function toMessage(
  given: GivenMessage,
  fields: { readonly id: string; readonly status: 'completed' },
  { decode, hear }: NewItemTools,
): ConversationItem {
  const sound: Int16Array[] = [];
  const parts = given.content.map((part: GivenPart): RememberedPart => {
    if (part.type === 'input_image') return { type: 'image', url: part.image_url };
    if (part.type === 'output_audio') return { type: 'text', text: part.transcript };
    if (part.type !== 'input_audio') return { type: 'text', text: part.text };
    const samples = decode(part.audio);
    sound.push(samples);
    return { type: 'sound', words: hear(samples) };
  });
  const remembered: Remembered = { kind: 'message', role: given.role, parts };
  return { id: fields.id, wire: wireMessage(given, fields), remembered, sound };
}

/** Returns a message in the protocol's form, without audio: `conversation.item.retrieve` adds it. */
function wireMessage(
  given: GivenMessage,
  fields: { readonly id: string; readonly status: 'completed' },
): WireItem {
  switch (given.role) {
    case 'system':
      return { ...fields, type: 'message', role: 'system', content: given.content };
    case 'assistant':
      return { ...fields, type: 'message', role: 'assistant', content: given.content };
    case 'user':
      return {
        ...fields,
        type: 'message',
        role: 'user',
        content: given.content.map((part) =>
          part.type === 'input_audio'
            ? { type: 'input_audio' as const, transcript: part.transcript ?? null }
            : part,
        ),
      };
  }
}
