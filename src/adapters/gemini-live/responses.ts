// Represents the model's output as responses and items. The protocol has neither responses nor items. It has unnamed
// turns, whose transcripts may arrive late and have no end marker.
//
//   (none) ──content──▶ making ──generationComplete──▶ made ──turnComplete──▶ over
//                         │  └────turnComplete, interrupted, silent too long───▲
//                         └──cancelled──▶ unwanted ──its end is reported──────────┘
//
// Owns:     the ids and ends of responses, their audio and transcripts, the dropped parts, and the request that belongs
//           to each response. This module does not handle tool calls or the outgoing queue (`outgoing.ts`).
//
// GEMINI-LIVE-MODEL-TURNS-1. A response has one start, one end and one item. Content that arrives after the end starts
//     the next response. A transcript that arrives shortly after the end still belongs to the response that has ended.
// GEMINI-LIVE-MODEL-TURNS-2. Audio that arrives between an interruption or cancellation and the reported end of the
//     turn is dropped. If the user has interrupted, audio that arrives shortly after that end is dropped as well.
// GEMINI-LIVE-MODEL-TURNS-3. `response.ended` lists the audio that was forwarded.
// GEMINI-LIVE-MODEL-TURNS-4. If it becomes unclear during generation which request a response answers, the request ends
//     as cancelled. The response continues without a request key.
//
// GEMINI-LIVE-REQUESTS-1. A response gets a request's key only if the request was the only message that the model had
//                         to answer.
// GEMINI-LIVE-REQUESTS-2. Each request ends, with or without a response.
// GEMINI-LIVE-REQUESTS-3. If a request is cancelled after it was sent, its response is not played. If the model
//     responds both to a request and to the user who spoke at the same time, a cancellation applies to both responses.

import type { Environment } from '../../actors/ports/environment.ts';
import { decodePcm16Base64 } from '../../voice/audio/pcm16.ts';
import type { TransportEvent } from '../../voice/connection/transport.ts';
import type { WireConnection } from '../socket/wire.ts';
import { OUTPUT_SAMPLE_RATE_HZ } from './wire.ts';

/** The maximum time that the model takes to start a response. */
const ANSWER_MS = 4_000;
/** The maximum time between the end of a turn and its transcript. */
const TRAILING_MS = 1_000;
/** The maximum time that `turnComplete` takes to end an interrupted turn. */
const STRAY_MS = 1_000;
/**
 * How long content still belongs to an interrupted turn after that turn's end, because no model responds so fast.
 */
const LATE_MS = 200;

type Ended = Extract<TransportEvent, { type: 'response.ended' }>;

interface Cause {
  /** The key of the request that this response belongs to; null if this is uncertain. */
  readonly key: string | null;
  /** Whether the response belongs to a cancelled request. */
  readonly isUnwanted: boolean;
}

interface Response {
  readonly id: string;
  readonly itemId: string;
  key: string | null;
  samples: number;
  transcript: string;
  phase: 'making' | 'made' | 'unwanted' | 'over';
}

export class ModelTurns {
  readonly #connection: WireConnection;
  /** Called when a response starts. @returns the cause of the response */
  readonly #begins: () => Cause;
  /** The most recent response. */
  #response: Response | null = null;
  /** The time until which new content belongs to an interrupted turn. */
  #strayUntil = Number.NEGATIVE_INFINITY;
  /**
   * Whether the user interrupted that turn. While the user is speaking, content of the turn may arrive even after the
   * turn's end.
   */
  #isByUser = false;
  #lateUntil = Number.NEGATIVE_INFINITY;
  #isTrailing = false;
  #cancelTrailing: () => void = () => {};

  constructor(connection: WireConnection, begins: () => Cause) {
    this.#connection = connection;
    this.#begins = begins;
  }

  /** Whether the model is generating or playing content that was not interrupted. */
  get isAnswering(): boolean {
    return this.#response !== null && this.#response.phase !== 'over';
  }

  /** Whether the server has yet to report the end of the turn. */
  get isOpen(): boolean {
    return this.isAnswering || this.#isStray;
  }

  /** Whether the server has yet to report the end of an interrupted turn. */
  get #isStray(): boolean {
    return this.#connection.environment.clock.now() < this.#strayUntil;
  }

  /** Handles base64 audio. @throws {ProtocolError} `MALFORMED_AUDIO` */
  audio(base64: string): void {
    const samples = decodePcm16Base64(base64);
    const response = samples.length === 0 ? null : this.#current();
    if (response === null) return;
    response.samples += samples.length;
    const { id: responseId, itemId } = response;
    const sampleRateHz = OUTPUT_SAMPLE_RATE_HZ;
    this.#connection.emitAudio({ samples, sampleRateHz, itemId, responseId });
  }

  /** Appends text to the transcript. */
  words(text: string): void {
    const last = this.#response;
    const belongsToLast = last !== null && (last.phase !== 'over' || this.#isTrailing);
    const response = belongsToLast ? last : this.#current();
    if (response === null || response.phase === 'unwanted' || text === '') return;
    response.transcript += text;
    const { id: responseId, itemId } = response;
    this.#connection.emit({
      type: 'assistant.transcribed',
      itemId,
      responseId,
      text,
      final: false,
    });
    if (response.phase === 'over') this.#awaitTrailing(response);
  }

  /** Returns the id of the response that the call belongs to. */
  calls(): string {
    // A call is never dropped, because the model would wait for its response indefinitely.
    return (this.#current() ?? this.#response ?? this.#begin()).id;
  }

  /** Marks the response's content as complete. The content may still be playing at this point. */
  made(): void {
    const response = this.#response;
    if (response?.phase === 'making') this.#end(response, 'completed', null, 'made');
  }

  /** Ends the turn. @returns whether a turn was open */
  complete(failure: string | null): boolean {
    if (this.#isStray && this.#isByUser)
      this.#lateUntil = this.#connection.environment.clock.now() + LATE_MS;
    this.#strayUntil = Number.NEGATIVE_INFINITY;
    const response = this.#response;
    if (response === null || response.phase === 'over') return false;
    const status = failure === null ? 'completed' : 'failed';
    if (response.phase === 'making') this.#end(response, status, failure, 'over');
    response.phase = 'over';
    this.#awaitTrailing(response);
    return true;
  }

  /** Reports that a model turn failed before its first content. */
  failed(reason: string): void {
    const response = this.#begin();
    if (response.phase === 'making') this.#end(response, 'failed', reason, 'over');
  }

  interrupted(byUser: boolean): void {
    this.#isByUser = byUser;
    const response = this.#response;
    if (response === null || response.phase === 'over') return;
    this.#strayUntil = this.#connection.environment.clock.now() + STRAY_MS;
    if (response.phase === 'making') this.#end(response, 'cancelled', 'interrupted', 'over');
    response.phase = 'over';
    this.#awaitTrailing(response);
  }

  /** Marks the response as unwanted. @returns whether a response was being generated */
  cancel(): boolean {
    const response = this.#response;
    if (response?.phase !== 'making') return false;
    this.#end(response, 'cancelled', 'cancelled', 'unwanted');
    this.#finishTranscript(response);
    return true;
  }

  /** Ends a response that has received no new content for too long. */
  giveUp(): void {
    const response = this.#response;
    if (response?.phase === 'making') this.#end(response, 'incomplete', 'silence', 'over');
    if (response) response.phase = 'over';
  }

  /** GEMINI-LIVE-MODEL-TURNS-4 */
  takeKeyBack(): void {
    const response = this.#response;
    if (response?.phase !== 'making' || response.key === null) return;
    this.#connection.emit(
      endedInVain(this.#connection.environment, response.key, 'somebody spoke'),
    );
    response.key = null;
  }

  stop(): void {
    this.#cancelTrailing();
  }

  /** Returns the response for new content; null if the content must be dropped (GEMINI-LIVE-MODEL-TURNS-2). */
  #current(): Response | null {
    const response = this.#response;
    if (response !== null && response.phase !== 'over') {
      if (response.phase === 'unwanted') return null;
      if (response.phase === 'making') return response;
    }
    if (this.#isStray || this.#connection.environment.clock.now() < this.#lateUntil) return null;
    const begun = this.#begin();
    return begun.phase === 'unwanted' ? null : begun;
  }

  #begin(): Response {
    const { environment, emit } = this.#connection;
    const last = this.#response;
    if (last && (last.phase !== 'over' || this.#isTrailing)) this.#finishTranscript(last);
    const { key, isUnwanted } = this.#begins();
    const response: Response = {
      id: environment.ids.next('resp'),
      itemId: environment.ids.next('item'),
      key,
      samples: 0,
      transcript: '',
      phase: isUnwanted ? 'unwanted' : 'making',
    };
    this.#response = response;
    if (!isUnwanted)
      emit({ type: 'response.started', responseId: response.id, responseKey: response.key });
    return response;
  }

  #end(
    response: Response,
    status: Ended['status'],
    reason: string | null,
    phase: Response['phase'],
  ): void {
    response.phase = phase;
    const { id: responseId, itemId, key: responseKey, samples } = response;
    const durationMs = (samples * 1000) / OUTPUT_SAMPLE_RATE_HZ;
    const audio = samples === 0 ? [] : [{ itemId, durationMs }];
    this.#connection.emit({
      type: 'response.ended',
      responseId,
      responseKey,
      status,
      reason,
      audio,
    });
  }

  #awaitTrailing(response: Response): void {
    this.#cancelTrailing();
    this.#isTrailing = true;
    this.#cancelTrailing = this.#connection.environment.scheduler.schedule(
      () => this.#finishTranscript(response),
      TRAILING_MS,
    );
  }

  #finishTranscript({ id: responseId, itemId, transcript: text }: Response): void {
    this.#cancelTrailing();
    this.#isTrailing = false;
    if (text === '') return;
    this.#connection.emit({ type: 'assistant.transcribed', itemId, responseId, text, final: true });
  }
}

/**
 * Determines why the model starts its next response. The server never reports which message a response answers. The
 * model also responds without a request, to the user's words and to tool results. A request is therefore sent only when
 * the model has nothing else to respond to. The next response then belongs to the request unless another cause appears
 * first.
 *
 *   request ──sent──▶ pending ──a response starts──▶ (the response's key)
 *                        └──the user speaks, cancelled, the turn ends empty──▶ ended without a response
 */
export class Requests {
  readonly #connection: WireConnection;
  #pending: string | null = null;
  /** The time until which the model may respond to a message that did not request a response. */
  #owesUntil = Number.NEGATIVE_INFINITY;
  /** Whether the user spoke while a request was pending. The model may then give two responses, one after the other. */
  #answersBoth = false;
  /** The second of these two responses, set while the first is in progress. */
  #second: 'none' | 'wanted' | 'unwanted' = 'none';
  /** The time until which a new response belongs to a cancelled request. */
  #unwantedUntil = Number.NEGATIVE_INFINITY;

  constructor(connection: WireConnection) {
    this.#connection = connection;
  }

  /** Whether a request has been sent and has no response yet. */
  get isPending(): boolean {
    return this.#pending !== null;
  }

  /**
   * The maximum time that the model may take to start another response, in milliseconds; 0 if it will not start one.
   */
  get owedMs(): number {
    return Math.max(0, this.#owesUntil - this.#connection.environment.clock.now());
  }

  /** Records that a request has been sent. */
  sent(responseKey: string): void {
    this.#pending = responseKey;
    this.#unwantedUntil = Number.NEGATIVE_INFINITY;
  }

  /** Records a message that the model responds to even without a request. */
  owes(): void {
    this.#owesUntil = this.#connection.environment.clock.now() + ANSWER_MS;
  }

  /** Records that the model is waiting for the client and will not respond now. */
  owesNothing(): void {
    this.#owesUntil = Number.NEGATIVE_INFINITY;
  }

  /** Returns the cause of a response that is starting (GEMINI-LIVE-REQUESTS-1, GEMINI-LIVE-REQUESTS-3). */
  begins(): Cause {
    const key = this.#pending;
    const isUnwanted = this.#connection.environment.clock.now() < this.#unwantedUntil;
    this.#pending = null;
    this.#unwantedUntil = Number.NEGATIVE_INFINITY;
    this.owesNothing();
    this.#second = this.#answersBoth ? 'wanted' : 'none';
    this.#answersBoth = false;
    return { key, isUnwanted };
  }

  /** Records the end of the turn, after which a second response follows immediately or not at all. */
  turnEnded(): void {
    if (this.#second === 'none') return;
    this.owes();
    if (this.#second === 'unwanted') this.#refuseNext();
    this.#second = 'none';
  }

  /** Records that the user is speaking, so that the next response may be for the user. */
  userSpoke(): void {
    this.#answersBoth = this.isPending;
    this.#second = 'none';
    this.failed('somebody spoke');
    this.#unwantedUntil = Number.NEGATIVE_INFINITY;
  }

  /** Cancels the sent request. @returns whether a request was pending */
  cancel(): boolean {
    if (this.#second === 'wanted') this.#second = 'unwanted';
    if (this.#pending === null) return false;
    this.failed('cancelled');
    this.#refuseNext();
    return true;
  }

  /** Ends the sent request, because it will receive no response or its response cannot be identified. */
  failed(reason: string, status: Ended['status'] = 'cancelled'): void {
    const responseKey = this.#pending;
    this.#pending = null;
    if (responseKey !== null) this.inVain(responseKey, reason, status);
  }

  #refuseNext(): void {
    this.#unwantedUntil = this.#connection.environment.clock.now() + ANSWER_MS;
  }

  inVain(responseKey: string, reason: string, status: Ended['status'] = 'cancelled'): void {
    this.#connection.emit(endedInVain(this.#connection.environment, responseKey, reason, status));
  }
}

/** Ends a request whose response cannot be identified. */
function endedInVain(
  { ids }: Environment,
  responseKey: string,
  reason: string,
  status: Ended['status'] = 'cancelled',
): Ended {
  const responseId = ids.next('resp');
  return { type: 'response.ended', responseId, responseKey, status, reason, audio: [] };
}
