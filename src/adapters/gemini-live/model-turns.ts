// Presents the model's output as responses with items. The wire has neither: it has unnamed turns, whose
// transcripts may arrive after their end and are never marked as complete.
//
//   (none) ──content──▶ making ──generationComplete──▶ made ──turnComplete──▶ over
//                         │  └────turnComplete, interrupted, nothing for long───▲
//                         └──cancelled by us──▶ unwanted ──the wire says its end──┘
//
// Owns: ids and ends of responses, their sound and transcripts, and the dropped parts.
// Does not: whose request a response answers (`requests.ts`), tool calls.
//
// GEMINI-LIVE-MODEL-TURNS-1. A response has one beginning, one end and one item. The next one begins with
//     content that arrives after the end; a transcript that arrives shortly after it trails.
// GEMINI-LIVE-MODEL-TURNS-2. Sound between an interruption or a cancellation and the wire's end of the turn
//     (after an interruption by the user: or shortly after that) is dropped.
// GEMINI-LIVE-MODEL-TURNS-3. `response.ended` lists the sound that was passed on.
// GEMINI-LIVE-MODEL-TURNS-4. If the key of a response turns out to be uncertain, the key is withdrawn while
//     the response is still being generated: its request ends as cancelled, and the response continues
//     without a key.

import type { Environment } from '../../actors/ports/environment.ts';
import type { AudioFrame } from '../../voice/audio/audio-frame.ts';
import { decodePcm16Base64 } from '../../voice/audio/pcm16.ts';
import type { TransportEvent } from '../../voice/connection/transport.ts';
import { OUTPUT_SAMPLE_RATE_HZ } from './wire/index.ts';

/** A transcript may trail the end of its turn by this time; after that it is complete. */
const TRAILING_MS = 1_000;
/** An interrupted turn ends with turnComplete; if that is missing, after this time. */
const STRAY_MS = 1_000;
/** Content this soon after that is late: no model answers a user who has just begun to speak. */
const LATE_MS = 200;

type Ended = Extract<TransportEvent, { type: 'response.ended' }>;

export interface ModelTurnsPorts {
  readonly environment: Environment;
  emit(event: TransportEvent): void;
  emitAudio(frame: AudioFrame): void;
  /** Handles the start of a response. */
  begins(): Cause;
}

export interface Cause {
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
  readonly #ports: ModelTurnsPorts;
  /** The most recent response. */
  #response: Response | null = null;
  /** Until this time content belongs to an interrupted turn. */
  #strayUntil = Number.NEGATIVE_INFINITY;
  /** Whether the user interrupted it: content may arrive after its end, while they still speak. */
  #isByUser = false;
  #lateUntil = Number.NEGATIVE_INFINITY;
  #isTrailing = false;
  #cancelTrailing: () => void = () => {};

  constructor(ports: ModelTurnsPorts) {
    this.#ports = ports;
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
    return this.#ports.environment.clock.now() < this.#strayUntil;
  }

  /** Handles sound in base64. @throws {ProtocolError} `MALFORMED_AUDIO` */
  audio(base64: string): void {
    const samples = decodePcm16Base64(base64);
    const response = samples.length === 0 ? null : this.#current();
    if (response === null) return;
    response.samples += samples.length;
    const { id: responseId, itemId } = response;
    const sampleRateHz = OUTPUT_SAMPLE_RATE_HZ;
    this.#ports.emitAudio({ samples, sampleRateHz, itemId, responseId });
  }

  /** Appends words to the transcript. */
  words(text: string): void {
    const last = this.#response;
    const belongsToLast = last !== null && (last.phase !== 'over' || this.#isTrailing);
    const response = belongsToLast ? last : this.#current();
    if (response === null || response.phase === 'unwanted' || text === '') return;
    response.transcript += text;
    const { id: responseId, itemId } = response;
    this.#ports.emit({ type: 'assistant.transcribed', itemId, responseId, text, final: false });
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
      this.#lateUntil = this.#ports.environment.clock.now() + LATE_MS;
    this.#strayUntil = Number.NEGATIVE_INFINITY;
    const response = this.#response;
    if (response === null || response.phase === 'over') return false;
    const status = failure === null ? 'completed' : 'failed';
    if (response.phase === 'making') this.#end(response, status, failure, 'over');
    response.phase = 'over';
    this.#awaitTrailing(response);
    return true;
  }

  interrupted(byUser: boolean): void {
    this.#isByUser = byUser;
    const response = this.#response;
    if (response === null || response.phase === 'over') return;
    this.#strayUntil = this.#ports.environment.clock.now() + STRAY_MS;
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
    this.#ports.emit(endedInVain(this.#ports.environment, response.key, 'somebody spoke'));
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
    if (this.#isStray || this.#ports.environment.clock.now() < this.#lateUntil) return null;
    const begun = this.#begin();
    return begun.phase === 'unwanted' ? null : begun;
  }

  #begin(): Response {
    const { environment, emit } = this.#ports;
    const last = this.#response;
    if (last && (last.phase !== 'over' || this.#isTrailing)) this.#finishTranscript(last);
    const { key, isUnwanted } = this.#ports.begins();
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
    this.#ports.emit({ type: 'response.ended', responseId, responseKey, status, reason, audio });
  }

  #awaitTrailing(response: Response): void {
    this.#cancelTrailing();
    this.#isTrailing = true;
    this.#cancelTrailing = this.#ports.environment.scheduler.schedule(
      () => this.#finishTranscript(response),
      TRAILING_MS,
    );
  }

  #finishTranscript({ id: responseId, itemId, transcript: text }: Response): void {
    this.#cancelTrailing();
    this.#isTrailing = false;
    if (text === '') return;
    this.#ports.emit({ type: 'assistant.transcribed', itemId, responseId, text, final: true });
  }
}

/** Returns the end of a request that no response is known to answer. */
export function endedInVain(
  { ids }: Environment,
  responseKey: string,
  reason: string,
  status: 'cancelled' | 'failed' = 'cancelled',
): Ended {
  const responseId = ids.next('resp');
  return { type: 'response.ended', responseId, responseKey, status, reason, audio: [] };
}
