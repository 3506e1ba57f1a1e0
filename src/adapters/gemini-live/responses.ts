// Presents the model's output as responses with items. The wire has neither: it has unnamed turns, whose
// transcripts may arrive after their end and are never marked as complete.
//
//   (none) ──content──▶ making ──generationComplete──▶ made ──turnComplete──▶ over
//                         │  └────turnComplete, interrupted, nothing for long───▲
//                         └──cancelled by us──▶ unwanted ──the wire says its end──┘
//
// Owns: ids and ends of responses, their sound and transcripts, the dropped parts, and the request that each
// answers. Does not: tool calls, or the queue to the model (`outgoing.ts`).
//
// GEMINI-LIVE-MODEL-TURNS-1. A response has one beginning, one end and one item. The next one begins with
//     content that arrives after the end; a transcript that arrives shortly after it trails.
// GEMINI-LIVE-MODEL-TURNS-2. Sound between an interruption or a cancellation and the wire's end of the turn
//     (after an interruption by the user: or shortly after that) is dropped.
// GEMINI-LIVE-MODEL-TURNS-3. `response.ended` lists the sound that was passed on.
// GEMINI-LIVE-MODEL-TURNS-4. If the key of a response turns out to be uncertain, the key is withdrawn while
//     the response is still being generated: its request ends as cancelled, and the response continues
//     without a key.
//
// GEMINI-LIVE-REQUESTS-1. A response gets the key of a request only if the request was the only message to
//     answer.
// GEMINI-LIVE-REQUESTS-2. Each request ends: with its response, or in vain.
// GEMINI-LIVE-REQUESTS-3. An answer to a request that was cancelled after it was sent is not heard. Of two answers,
//     to a request and to the user who spoke over it, a cancellation means both.

import type { Environment } from '../../actors/ports/environment.ts';
import { decodePcm16Base64 } from '../../voice/audio/pcm16.ts';
import type { TransportEvent } from '../../voice/connection/transport.ts';
import type { WireConnection } from '../socket/wire.ts';
import { OUTPUT_SAMPLE_RATE_HZ } from './wire.ts';

/** The model begins to answer within this time, or not at all. */
const ANSWER_MS = 4_000;
/** A transcript may trail the end of its turn by this time; after that it is complete. */
const TRAILING_MS = 1_000;
/** An interrupted turn ends with turnComplete; if that is missing, after this time. */
const STRAY_MS = 1_000;
/** Content this soon after that is late: no model answers a user who has just begun to speak. */
const LATE_MS = 200;

type Ended = Extract<TransportEvent, { type: 'response.ended' }>;

interface Cause {
  /** The key of the request that it answers, if that is certain. */
  readonly key: string | null;
  /** Whether it answers a request that is no longer wanted. */
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
  /** Handles the start of a response. @returns its cause */
  readonly #begins: () => Cause;
  /** The most recent response. */
  #response: Response | null = null;
  /** Until this time content belongs to an interrupted turn. */
  #strayUntil = Number.NEGATIVE_INFINITY;
  /** Whether the user interrupted it: content may arrive after its end, while they still speak. */
  #isByUser = false;
  #lateUntil = Number.NEGATIVE_INFINITY;
  #isTrailing = false;
  #cancelTrailing: () => void = () => {};

  constructor(connection: WireConnection, begins: () => Cause) {
    this.#connection = connection;
    this.#begins = begins;
  }

  /** Whether there is content to speak or play that was not interrupted. */
  get isAnswering(): boolean {
    return this.#response !== null && this.#response.phase !== 'over';
  }

  /** Whether the wire has not ended the turn yet. */
  get isOpen(): boolean {
    return this.isAnswering || this.#isStray;
  }

  /** Whether the end of an interrupted turn is still to come. */
  get #isStray(): boolean {
    return this.#connection.environment.clock.now() < this.#strayUntil;
  }

  /** Handles sound in base64. @throws {ProtocolError} `MALFORMED_AUDIO` */
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

  /** Returns the id of the response that a call belongs to. */
  calls(): string {
    // A call is never dropped: it would stay unanswered.
    return (this.#current() ?? this.#response ?? this.#begin()).id;
  }

  /** Marks the content as complete; it may still be playing. */
  made(): void {
    const response = this.#response;
    if (response?.phase === 'making') this.#end(response, 'completed', null, 'made');
  }

  /** Ends the turn. @returns whether there was one */
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

  /** Marks the response as unwanted. @returns whether there was anything to cancel */
  cancel(): boolean {
    const response = this.#response;
    if (response?.phase !== 'making') return false;
    this.#end(response, 'cancelled', 'cancelled', 'unwanted');
    this.#finishTranscript(response);
    return true;
  }

  /** Gives up a response without recent content. */
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

  /** Returns the response for new content; null: the content is dropped (GEMINI-LIVE-MODEL-TURNS-2). */
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
 * Determines the cause of the next response. The wire never says which message a response answers, and the
 * model also answers by itself: the user's words, and the results of its calls. So a request is sent only
 * when there is nothing else to answer, and the next response is its own unless another cause appears before.
 *
 *   request ──sent──▶ pending ──a response begins──▶ (its key)
 *                        └──the user speaks, cancelled, the turn ends empty──▶ ended in vain
 */
export class Requests {
  readonly #connection: WireConnection;
  #pending: string | null = null;
  /** Until this time the model may answer a message without being asked. */
  #owesUntil = Number.NEGATIVE_INFINITY;
  /** Whether the user spoke while a request was pending: the model may answer both, one after the other. */
  #answersBoth = false;
  /** The second of these answers, while the first is given. */
  #second: 'none' | 'wanted' | 'unwanted' = 'none';
  /** A response that begins before this time answers a cancelled request. */
  #unwantedUntil = Number.NEGATIVE_INFINITY;

  constructor(connection: WireConnection) {
    this.#connection = connection;
  }

  /** Whether a request was sent and has no response yet. */
  get isPending(): boolean {
    return this.#pending !== null;
  }

  /** How long the model may still begin another answer, in milliseconds; 0: it will not. */
  get owedMs(): number {
    return Math.max(0, this.#owesUntil - this.#connection.environment.clock.now());
  }

  /** Records that a request was sent. */
  sent(responseKey: string): void {
    this.#pending = responseKey;
    this.#unwantedUntil = Number.NEGATIVE_INFINITY;
  }

  /** Records a message that the model answers by itself. */
  owes(): void {
    this.#owesUntil = this.#connection.environment.clock.now() + ANSWER_MS;
  }

  /** Records that the model waits for the client: it will not answer. */
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

  /** Records that the turn has ended: the second answer follows now, or not at all. */
  turnEnded(): void {
    if (this.#second === 'none') return;
    this.owes();
    if (this.#second === 'unwanted') this.#refuseNext();
    this.#second = 'none';
  }

  /** Records that the user speaks: the next response may answer them. */
  userSpoke(): void {
    this.#answersBoth = this.isPending;
    this.#second = 'none';
    this.failed('somebody spoke');
    this.#unwantedUntil = Number.NEGATIVE_INFINITY;
  }

  /** Cancels the request that was sent. @returns whether there was one */
  cancel(): boolean {
    if (this.#second === 'wanted') this.#second = 'unwanted';
    if (this.#pending === null) return false;
    this.failed('cancelled');
    this.#refuseNext();
    return true;
  }

  /** Ends the request that was sent: it will not be answered, or the answer is uncertain. */
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

/** Returns the end of a request that no response is known to answer. */
function endedInVain(
  { ids }: Environment,
  responseKey: string,
  reason: string,
  status: Ended['status'] = 'cancelled',
): Ended {
  const responseId = ids.next('resp');
  return { type: 'response.ended', responseId, responseKey, status, reason, audio: [] };
}
