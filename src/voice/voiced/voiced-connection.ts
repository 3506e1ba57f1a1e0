// A connection to a text model that appears as one to a speaking model: a voice of the session says the
// model's text, and the session sees sound, words and ends as with any other transport.
//
// Owns:     which responses are to be said, in which order, and which were cancelled.
// Does not: say them (spoken-response), or correct the model's memory (voiced-memory).
//
// Invariants
//   VOICED-CONNECTION-1. Responses are said one after the other, in the order in which the model began them.
//   VOICED-CONNECTION-2. A cancellation applies to all earlier requests, even if the model begins to answer
//        them later. The model receives it if it is generating.
//   VOICED-CONNECTION-3. A failing voice is reported once per response, by `transport.error`; then the
//        response ends as failed.

import { unmarkedNotes, type NoteWriter } from '../../actors/notes/note-marks.ts';
import { Observable, type Subscriber } from 'rxjs';
import type { AudioFrame } from '../audio/audio-frame.ts';
import { codeOf, messageOf } from '../../values/errors.ts';
import type {
  TransportCapabilities,
  TransportCommand,
  TransportConnection,
  TransportContext,
  TransportEvent,
} from '../connection/transport.ts';
import { SpokenResponse, type Ended, type Started, type Written } from './spoken-response.ts';
import { VoicedMemory } from './voiced-memory.ts';

export interface VoicedConnectionOptions {
  readonly capabilities: TransportCapabilities;
  readonly sampleRateHz: number;
  readonly maxAheadMs: number;
  sound(text: string, signal: AbortSignal): AsyncIterable<AudioFrame>;
}

/** A request that the model has not begun to answer. */
interface Request {
  readonly isOutOfBand: boolean;
  isCalledOff: boolean;
}

export class VoicedConnection implements TransportConnection {
  readonly events: Observable<TransportEvent>;
  readonly audio: Observable<AudioFrame>;
  readonly #inner: TransportConnection;
  readonly #options: VoicedConnectionOptions;
  readonly #environment: TransportContext['environment'];
  readonly #notes: NoteWriter;
  readonly #memory: VoicedMemory;
  readonly #requests = new Map<string, Request>();
  /** The responses that are not over, in order. */
  #responses: readonly SpokenResponse[] = [];
  #listener: Subscriber<TransportEvent> | null = null;
  #hearer: Subscriber<AudioFrame> | null = null;

  constructor(
    inner: TransportConnection,
    { environment, notes = unmarkedNotes }: TransportContext,
    options: VoicedConnectionOptions,
  ) {
    this.#inner = inner;
    this.#options = options;
    this.#environment = environment;
    this.#notes = notes;
    this.#memory = new VoicedMemory(options.capabilities, (command) => inner.send(command));
    // Events wait in the connection until the session subscribes.
    this.events = new Observable((listener) => {
      this.#listener = listener;
      return inner.events.subscribe({
        next: (event) => this.#happened(event),
        error: (error: unknown) => listener.error(error),
        complete: () => listener.complete(),
      });
    });
    this.audio = new Observable((hearer) => {
      this.#hearer = hearer;
    });
  }

  sendAudio(frame: AudioFrame): void {
    this.#inner.sendAudio(frame);
  }

  send(command: TransportCommand): void {
    if (command.type === 'response.cancel') return this.#cancel();
    if (command.type === 'playout.truncate')
      return this.#memory.heard(command.itemId, command.playedMs);
    if (command.type === 'response.request') {
      const { responseKey, outOfBand: isOutOfBand = false } = command;
      this.#requests.set(responseKey, { isOutOfBand, isCalledOff: false });
    }
    this.#inner.send(command);
  }

  close(): Promise<void> {
    this.#abandon();
    return this.#inner.close();
  }

  #happened(event: TransportEvent): void {
    if (event.type === 'response.started') return this.#started(event);
    if (event.type === 'response.ended') return this.#modelEnded(event);
    if (event.type === 'assistant.transcribed') return this.#written(event);
    if (event.type === 'transport.error') this.#requests.delete(event.responseKey ?? '');
    const isClosed = event.type === 'transport.closed';
    if (isClosed) this.#abandon();
    this.#emit(event);
    if (isClosed) this.#hearer?.complete();
  }

  #started(event: Started): void {
    const { responseId, responseKey } = event;
    if (this.#find(responseId)) return;
    const request = this.#requests.get(responseKey ?? '');
    this.#requests.delete(responseKey ?? '');
    const { sampleRateHz, maxAheadMs, sound } = this.#options;
    const response = new SpokenResponse(event, request?.isOutOfBand === true, {
      environment: this.#environment,
      sampleRateHz,
      maxAheadMs,
      sound,
      emit: (said) => this.#emit(said),
      emitAudio: (frame) => this.#hearer?.next(frame),
      failed: (failed, error) => this.#failed(failed, error),
      ended: (ended, end) => this.#ended(ended, end),
    });
    this.#responses = [...this.#responses, response];
    this.#emit(event);
    if (request?.isCalledOff) response.cancel();
    if (this.#responses[0] === response) response.begin();
  }

  /** Text of a response that is over is dropped. */
  #written(event: Written): void {
    const response = this.#find(event.responseId);
    response?.written(event);
    response?.items.forEach((item) => this.#memory.said(item));
  }

  #modelEnded(event: Ended): void {
    this.#requests.delete(event.responseKey ?? '');
    const response = this.#find(event.responseId);
    // The request failed.
    if (response === undefined) return this.#emit(event);
    response.modelEnded(event);
  }

  #cancel(): void {
    const isInTheMaking =
      this.#requests.size > 0 || this.#responses.some((response) => response.isInTheMaking);
    for (const response of this.#responses) response.cancel();
    for (const request of this.#requests.values()) request.isCalledOff = true;
    if (isInTheMaking) this.#inner.send({ type: 'response.cancel' });
  }

  #failed(response: SpokenResponse, error: unknown): void {
    const code = codeOf(error, 'VOICE_FAILED');
    const message = `The voice failed: ${messageOf(error)}`;
    this.#emit({ type: 'transport.error', code, message, responseKey: null, raw: error });
    if (response.isInTheMaking && this.#options.capabilities.cancelsResponses)
      this.#inner.send({ type: 'response.cancel' });
  }

  #ended(response: SpokenResponse, end: Ended): void {
    this.#responses = this.#responses.filter((other) => other !== response);
    const isWhole = end.status === 'completed' || end.status === 'incomplete';
    if (!isWhole)
      this.#memory.brokenOff(response, () => this.#environment.ids.next('note'), this.#notes);
    this.#emit(end);
    this.#responses[0]?.begin();
  }

  #abandon(): void {
    for (const response of this.#responses) response.abandon();
    this.#responses = [];
    this.#requests.clear();
  }

  #find(responseId: string): SpokenResponse | undefined {
    return this.#responses.find((response) => response.responseId === responseId);
  }

  #emit(event: TransportEvent): void {
    this.#listener?.next(event);
  }
}
