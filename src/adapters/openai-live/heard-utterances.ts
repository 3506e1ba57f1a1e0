// What the user says, as utterances. The wire says nothing of when they begin and end: it
// sends fragments of a transcript, each with its place in the time of the session.
//
//   silent ──words──▶ speaking ──pause, delegation──▶ silent
//
// Owns: where an utterance begins and ends, and its id. Does not: hear sound.
//
// HEARD-UTTERANCES-1. An utterance begins with its first words, and ends when none came for `pauseMs`; sooner
//     when the model has begun to speak, since it took them for finished; at once when it
//     delegates them. Then its words are final.
// HEARD-UTTERANCES-2. A fragment that was said after a pause begins another one, also if it arrives early.
// HEARD-UTTERANCES-3. A fragment that comes twice counts once; one that comes late begins another utterance:
//     no words are lost.

import type { Environment } from '../../actors/ports/environment.ts';
import type { TransportEvent } from '../../voice/connection/transport.ts';
import { BoundedMap } from '../socket/bounded-map.ts';

const REMEMBERED_FRAGMENTS = 256;

/** Words and where they are in the time of the session. */
export interface Fragment {
  readonly event_id: string;
  readonly delta: string;
  readonly start_ms: number;
  readonly end_ms: number;
}

export interface HeardUtterancesOptions {
  readonly pauseMs: number;
  /** The pause while the model speaks. */
  readonly turnMs: number;
}

export interface HeardUtterancesPorts {
  readonly environment: Environment;
  emit(event: TransportEvent): void;
  isModelHeard(): boolean;
  /** Milliseconds of sound that the server got, as milliseconds of sound that the session gave. */
  toSessionMs(serverMs: number): number;
}

interface Utterance {
  readonly utteranceId: string;
  text: string;
  endMs: number;
}

export class HeardUtterances {
  readonly #options: HeardUtterancesOptions;
  readonly #ports: HeardUtterancesPorts;
  readonly #seen = new BoundedMap<string, true>(REMEMBERED_FRAGMENTS);
  #utterance: Utterance | null = null;
  #lastWordsAt = 0;
  #cancel: () => void = () => {};

  constructor(options: HeardUtterancesOptions, ports: HeardUtterancesPorts) {
    this.#options = options;
    this.#ports = ports;
  }

  get isSpeaking(): boolean {
    return this.#utterance !== null;
  }

  /** @returns whether these were words that count */
  words({ event_id: eventId, delta, start_ms: startMs, end_ms: endMs }: Fragment): boolean {
    if (this.#seen.has(eventId)) return false;
    this.#seen.set(eventId, true);
    const { emit, environment } = this.#ports;
    if (this.#utterance && startMs - this.#utterance.endMs >= this.#options.pauseMs) this.end();
    if (!this.#utterance && delta.trim() === '') return false;
    this.#lastWordsAt = environment.clock.now();
    const utterance = this.#utterance ?? this.#begin(startMs);
    utterance.text += delta;
    utterance.endMs = Math.max(utterance.endMs, endMs);
    const { utteranceId, text } = utterance;
    emit({ type: 'utterance.transcribed', utteranceId, text: text.trim(), final: false });
    this.reconsider();
    return true;
  }

  /** The model is about to speak: it may have taken the user for finished. */
  modelBegins(): void {
    const { clock } = this.#ports.environment;
    if (clock.now() - this.#lastWordsAt >= this.#options.turnMs) this.end();
  }

  /** The model has begun to be heard, or has ended: a pause is shorter while it is. */
  reconsider(): void {
    this.#cancel();
    if (!this.#utterance) return;
    const { environment, isModelHeard } = this.#ports;
    const pauseMs = isModelHeard() ? this.#options.turnMs : this.#options.pauseMs;
    const leftMs = this.#lastWordsAt + pauseMs - environment.clock.now();
    if (leftMs <= 0) this.end();
    else this.#cancel = environment.scheduler.schedule(() => this.end(), leftMs);
  }

  /** What was said until now is all. */
  end(): void {
    const utterance = this.#utterance;
    if (!utterance) return;
    this.#cancel();
    this.#utterance = null;
    const { utteranceId, text } = utterance;
    this.#ports.emit({ type: 'utterance.ended', utteranceId });
    this.#ports.emit({
      type: 'utterance.transcribed',
      utteranceId,
      text: text.trim(),
      final: true,
    });
  }

  stop(): void {
    this.#cancel();
  }

  #begin(startMs: number): Utterance {
    const utteranceId = this.#ports.environment.ids.next('utterance');
    const utterance = { utteranceId, text: '', endMs: startMs };
    this.#utterance = utterance;
    const audioStartMs = this.#ports.toSessionMs(startMs);
    this.#ports.emit({ type: 'utterance.started', utteranceId, audioStartMs });
    return utterance;
  }
}
