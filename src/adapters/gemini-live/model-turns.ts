// What the model says, as responses with items. The wire has neither: it has turns
// without names, whose transcripts may come after their end and never say that they are whole.
//
//   (none) ──content──▶ making ──generationComplete──▶ made ──turnComplete──▶ over
//                         │  └────turnComplete, interrupted, nothing for long───▲
//                         └──cancelled by us──▶ unwanted ──the wire says its end──┘
//
// Owns: ids and ends of responses, their sound and transcripts, what of it is dropped.
// Does not: whose request a response answers (`requests.ts`), tool calls.
//
// GEMINI-LIVE-MODEL-TURNS-1. A response has one beginning, one end and one item. The next one begins with content that
//     comes after the end; a transcript that comes soon after it trails.
// GEMINI-LIVE-MODEL-TURNS-2. Sound that comes after an interruption or a cancel, and before the wire has said that
//     the turn is over (of one by the user: or for a moment after that), is dropped.
// GEMINI-LIVE-MODEL-TURNS-3. `response.ended` lists the sound that was handed on.
// GEMINI-LIVE-MODEL-TURNS-4. Of a response whose key turns out to be doubtful the key is taken back while it is
//     still being made: its request ends as cancelled, and it goes on without.

import type { Environment } from '../../actors/ports/environment.ts';
import type { AudioFrame } from '../../voice/audio/audio-frame.ts';
import { decodePcm16Base64 } from '../../voice/audio/pcm16.ts';
import type { TransportEvent } from '../../voice/connection/transport.ts';
import { OUTPUT_SAMPLE_RATE_HZ } from './wire/index.ts';

/** A transcript may trail the end of its turn by so much; after that it is whole. */
const TRAILING_MS = 1_000;
/** A turn that was interrupted ends with turnComplete; if that is missing, after so long. */
const STRAY_MS = 1_000;
/** What comes so soon after that is late: nobody answers a user who has just begun to speak. */
const LATE_MS = 200;

type Ended = Extract<TransportEvent, { type: 'response.ended' }>;

export interface ModelTurnsPorts {
  readonly environment: Environment;
  emit(event: TransportEvent): void;
  emitAudio(frame: AudioFrame): void;
  /** A response begins. */
  begins(): Cause;
}

export interface Cause {
  /** Of the request that it answers, if that is certain. */
  readonly key: string | null;
  /** It answers what is not wanted any more. */
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
  /** The last one that there was. */
  #response: Response | null = null;
  /** Until then content belongs to a turn that was interrupted. */
  #strayUntil = Number.NEGATIVE_INFINITY;
  /** The user has interrupted it: some may come after its end, while they still speak. */
  #isByUser = false;
  #lateUntil = Number.NEGATIVE_INFINITY;
  #isTrailing = false;
  #cancelTrailing: () => void = () => {};

  constructor(ports: ModelTurnsPorts) {
    this.#ports = ports;
  }

  /** There is something to say, or to play, and nobody has interrupted it. */
  get isAnswering(): boolean {
    return this.#response !== null && this.#response.phase !== 'over';
  }

  /** The wire has not said that the turn is over. */
  get isOpen(): boolean {
    return this.isAnswering || this.#isStray;
  }

  /** A turn was interrupted, and its end is still to come. */
  get #isStray(): boolean {
    return this.#ports.environment.clock.now() < this.#strayUntil;
  }

  /** Sound; base64. @throws {ProtocolError} `MALFORMED_AUDIO` */
  audio(base64: string): void {
    const samples = decodePcm16Base64(base64);
    const response = samples.length === 0 ? null : this.#current();
    if (response === null) return;
    response.samples += samples.length;
    const { id: responseId, itemId } = response;
    const sampleRateHz = OUTPUT_SAMPLE_RATE_HZ;
    this.#ports.emitAudio({ samples, sampleRateHz, itemId, responseId });
  }

  /** More of the transcript. */
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

  /** The id of the response that a call belongs to. */
  calls(): string {
    // A call is never dropped: nobody else would answer it.
    return (this.#current() ?? this.#response ?? this.#begin()).id;
  }

  /** All of it is made; it may still be assumed to play. */
  made(): void {
    const response = this.#response;
    if (response?.phase === 'making') this.#end(response, 'completed', null, 'made');
  }

  /** The turn is over. @returns whether there was one */
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

  /** It is not wanted any more. @returns whether there was anything to cancel */
  cancel(): boolean {
    const response = this.#response;
    if (response?.phase !== 'making') return false;
    this.#end(response, 'cancelled', 'cancelled', 'unwanted');
    this.#finishTranscript(response);
    return true;
  }

  /** Nothing has come of it for long. */
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

  /** Where content goes; null: it is dropped (GEMINI-LIVE-MODEL-TURNS-2). */
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

/** The end of a request that no response is known to answer. */
export function endedInVain(
  { ids }: Environment,
  responseKey: string,
  reason: string,
  status: 'cancelled' | 'failed' = 'cancelled',
): Ended {
  const responseId = ids.next('resp');
  return { type: 'response.ended', responseId, responseKey, status, reason, audio: [] };
}
