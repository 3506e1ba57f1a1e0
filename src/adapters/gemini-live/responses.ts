// Presents the model's output as responses with items. The wire has neither: it has unnamed turns, whose transcripts
// may arrive after their end and are never marked as complete.
//
//   (none) ──content──▶ making ──generationComplete──▶ made ──turnComplete──▶ over
//                         │  └────turnComplete, interrupted, nothing for long───▲
//                         └──cancelled by us──▶ unwanted ──the wire says its end──┘
//
// Owns:     the ids and ends of responses, their audio and transcripts, the dropped parts, and the request that each
//           response answers. It does not know tool calls, or the queue to the model (`outgoing.ts`).
//
// GEMINI-LIVE-MODEL-TURNS-1. A response has one beginning, one end and one item. Content that arrives after the end
//     begins the next response; a transcript that arrives shortly after the end still belongs to the ended one.
// GEMINI-LIVE-MODEL-TURNS-2. Audio between an interruption or a cancellation and the wire's end of the turn is dropped;
//     after an interruption by the user, also audio shortly after that end.
// GEMINI-LIVE-MODEL-TURNS-3. `response.ended` lists the audio that was passed on.
// GEMINI-LIVE-MODEL-TURNS-4. If the key of a response becomes uncertain while the response is generated, the key is
//     withdrawn: its request ends as cancelled, and the response continues without a key.
//
// GEMINI-LIVE-REQUESTS-1. A response gets the key of a request only if the request was the only message to answer.
// GEMINI-LIVE-REQUESTS-2. Each request ends with a response, or without one.
// GEMINI-LIVE-REQUESTS-3. The answer to a request that was cancelled after it was sent is not heard. If the model gives
//     two answers, one to a request and one to the user who spoke over it, a cancellation applies to both.

import type { Environment } from '../../actors/ports/environment.ts';
import { decodePcm16Base64 } from '../../voice/audio/pcm16.ts';
import type { TransportEvent } from '../../voice/connection/transport.ts';
import type { WireConnection } from '../socket/wire.ts';
import { OUTPUT_SAMPLE_RATE_HZ } from './wire.ts';

/** The longest time in which the model begins to answer. */
const ANSWER_MS = 4_000;
/** The longest time by which a transcript may follow the end of its turn. */
const TRAILING_MS = 1_000;
/** The longest time until `turnComplete` ends an interrupted turn. */
const STRAY_MS = 1_000;
/** Content this soon after the end of an interrupted turn still belongs to it: no model answers so fast. */
const LATE_MS = 200;

type Ended = Extract<TransportEvent, { type: 'response.ended' }>;

interface Cause {
  /** The key of the request that the response answers, if that is certain; otherwise null. */
  readonly key: string | null;
  /** Whether the response answers a request that is no longer wanted. */
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
  /** The time until which content belongs to an interrupted turn. */
  #strayUntil = Number.NEGATIVE_INFINITY;
  /** Whether the user interrupted that turn: content may then arrive after its end, while the user still speaks. */
  #isByUser = false;
  #lateUntil = Number.NEGATIVE_INFINITY;
  #isTrailing = false;
  #cancelTrailing: () => void = () => {};

  constructor(connection: WireConnection, begins: () => Cause) {
    this.#connection = connection;
    this.#begins = begins;
  }

  /** Whether the model has content to speak or play that was not interrupted. */
  get isAnswering(): boolean {
    return this.#response !== null && this.#response.phase !== 'over';
  }

  /** Whether the wire has not ended the turn yet. */
  get isOpen(): boolean {
    return this.isAnswering || this.#isStray;
  }

  /** Whether the wire still has to end an interrupted turn. */
  get #isStray(): boolean {
    return this.#connection.environment.clock.now() < this.#strayUntil;
  }

  /** Handles audio in base64. @throws {ProtocolError} `MALFORMED_AUDIO` */
  audio(base64: string): void {
    const samples = decodePcm16Base64(base64);
    const response = samples.length === 0 ? null : this.#current();
    if (response === null) return;
    response.samples += samples.length;
    const { id: responseId, itemId } = response;
    const sampleRateHz = OUTPUT_SAMPLE_RATE_HZ;
    this.#connection.emitAudio({ samples, sampleRateHz, itemId, responseId });
  }

  /** Appends words to the transcript. */
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

  /** Returns the id of the response to which a call belongs. */
  calls(): string {
    // A call is never dropped, because it would stay unanswered.
    return (this.#current() ?? this.#response ?? this.#begin()).id;
  }

  /** Marks the content of the response as complete; the content may still be playing. */
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

  /** Reports a turn of the model that failed before its first content. */
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

  /** Ends a response that has had no content for too long. */
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

  /** Returns the response for new content; null if the content is dropped (GEMINI-LIVE-MODEL-TURNS-2). */
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
 * Determines the cause of the next response. The wire never reports which message a response answers, and the model
 * also answers by itself: the user's words, and the results of its calls. So a request is sent only when the model has
 * nothing else to answer, and the next response answers it unless another cause appears before.
 *
 *   request ──sent──▶ pending ──a response begins──▶ (the key of the response)
 *                        └──the user speaks, cancelled, the turn ends empty──▶ ended without a response
 */
export class Requests {
  readonly #connection: WireConnection;
  #pending: string | null = null;
  /** The time until which the model may answer a message without a request. */
  #owesUntil = Number.NEGATIVE_INFINITY;
  /** Whether the user spoke while a request was pending: the model may answer both, one after the other. */
  #answersBoth = false;
  /** The second of these answers, while the first is given. */
  #second: 'none' | 'wanted' | 'unwanted' = 'none';
  /** The time before which a new response answers a cancelled request. */
  #unwantedUntil = Number.NEGATIVE_INFINITY;

  constructor(connection: WireConnection) {
    this.#connection = connection;
  }

  /** Whether a request was sent and has no response yet. */
  get isPending(): boolean {
    return this.#pending !== null;
  }

  /** The time for which the model may still begin another answer, in milliseconds; 0: it will begin none. */
  get owedMs(): number {
    return Math.max(0, this.#owesUntil - this.#connection.environment.clock.now());
  }

  /** Records that a request was sent. */
  sent(responseKey: string): void {
    this.#pending = responseKey;
    this.#unwantedUntil = Number.NEGATIVE_INFINITY;
  }

  /** Records a message that the model answers without a request. */
  owes(): void {
    this.#owesUntil = this.#connection.environment.clock.now() + ANSWER_MS;
  }

  /** Records that the model waits for the client and will not answer. */
  owesNothing(): void {
    this.#owesUntil = Number.NEGATIVE_INFINITY;
  }

  /** Returns the cause of a response that begins (GEMINI-LIVE-REQUESTS-1, GEMINI-LIVE-REQUESTS-3). */
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

  /** Records the end of the turn: a second answer follows now, or not at all. */
  turnEnded(): void {
    if (this.#second === 'none') return;
    this.owes();
    if (this.#second === 'unwanted') this.#refuseNext();
    this.#second = 'none';
  }

  /** Records that the user speaks, so that the next response may answer the user. */
  userSpoke(): void {
    this.#answersBoth = this.isPending;
    this.#second = 'none';
    this.failed('somebody spoke');
    this.#unwantedUntil = Number.NEGATIVE_INFINITY;
  }

  /** Cancels the request that was sent. @returns whether one was pending */
  cancel(): boolean {
    if (this.#second === 'wanted') this.#second = 'unwanted';
    if (this.#pending === null) return false;
    this.failed('cancelled');
    this.#refuseNext();
    return true;
  }

  /** Ends the request that was sent, because it will not be answered or the answer is uncertain. */
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

/** Returns the end of a request without a response that is known to answer it. */
function endedInVain(
  { ids }: Environment,
  responseKey: string,
  reason: string,
  status: Ended['status'] = 'cancelled',
): Ended {
  const responseId = ids.next('resp');
  return { type: 'response.ended', responseId, responseKey, status, reason, audio: [] };
}
