// Derives the user's utterances from fragments of the transcript. The server does not report when utterances start and
// end. It sends only fragments, each with its position in session time.
//
//   silent ──words──▶ speaking ──pause, delegation──▶ silent
//
// Owns:     an utterance's start, end and id. It does not process audio.
//
// HEARD-UTTERANCES-1. An utterance starts with its first words and ends after `pauseMs` without words. It ends sooner
//     if the model starts to speak, because the model then considers the user finished. It ends immediately if the
//     model delegates. Its words are final from then on.
// HEARD-UTTERANCES-2. A fragment that follows a pause in the audio starts another utterance, even if the fragment
//     arrives early.
// HEARD-UTTERANCES-3. A repeated fragment counts once. A late fragment starts another utterance, so that no words are
//     lost.

import { BoundedMap } from '../socket/bounded-map.ts';
import type { WireConnection } from '../socket/wire.ts';
import type { InputClock } from './input-clock.ts';
import type { TurnTimes } from './options.ts';

const REMEMBERED_FRAGMENTS = 256;

/** Words and their position in the session's time. */
export interface Fragment {
  readonly event_id: string;
  readonly delta: string;
  readonly start_ms: number;
  readonly end_ms: number;
}

interface Utterance {
  readonly utteranceId: string;
  text: string;
  endMs: number;
}

export class HeardUtterances {
  readonly #connection: WireConnection;
  readonly #inputClock: InputClock;
  readonly #pauseMs: number;
  /** The length of the pause that ends an utterance while the model is speaking. */
  readonly #turnMs: number;
  readonly #seen = new BoundedMap<string, true>(REMEMBERED_FRAGMENTS);
  #utterance: Utterance | null = null;
  #lastWordsAt = 0;
  #isModelHeard = false;
  #cancel: () => void = () => {};

  constructor(connection: WireConnection, inputClock: InputClock, times: TurnTimes) {
    this.#connection = connection;
    this.#inputClock = inputClock;
    this.#pauseMs = times.utterancePauseMs;
    this.#turnMs = times.turnPauseMs;
  }

  get isSpeaking(): boolean {
    return this.#utterance !== null;
  }

  /** Handles a fragment. @returns whether its words are new */
  words({ event_id: eventId, delta, start_ms: startMs, end_ms: endMs }: Fragment): boolean {
    if (this.#seen.has(eventId)) return false;
    this.#seen.set(eventId, true);
    const { emit, environment } = this.#connection;
    if (this.#utterance && startMs - this.#utterance.endMs >= this.#pauseMs) this.end();
    if (!this.#utterance && delta.trim() === '') return false;
    this.#lastWordsAt = environment.clock.now();
    const utterance = this.#utterance ?? this.#begin(startMs);
    utterance.text += delta;
    utterance.endMs = Math.max(utterance.endMs, endMs);
    const { utteranceId, text } = utterance;
    emit({ type: 'utterance.transcribed', utteranceId, text: text.trim(), final: false });
    this.#awaitPause();
    return true;
  }

  /** Handles the start of the model's speech. If the user has paused, this ends the utterance. */
  modelBegins(): void {
    const { clock } = this.#connection.environment;
    if (clock.now() - this.#lastWordsAt >= this.#turnMs) this.end();
  }

  /** Handles the start or end of the model's audible speech. During that speech, a shorter pause ends the utterance. */
  modelHeard(isHeard: boolean): void {
    this.#isModelHeard = isHeard;
    this.#awaitPause();
  }

  /** Ends the utterance, because its words are complete. */
  end(): void {
    const utterance = this.#utterance;
    if (!utterance) return;
    this.#cancel();
    this.#utterance = null;
    const { utteranceId, text } = utterance;
    this.#connection.emit({ type: 'utterance.ended', utteranceId });
    this.#connection.emit({
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
    const utteranceId = this.#connection.environment.ids.next('utterance');
    const utterance = { utteranceId, text: '', endMs: startMs };
    this.#utterance = utterance;
    const audioStartMs = this.#connection.toSessionMs(this.#inputClock.toSentMs(startMs));
    this.#connection.emit({ type: 'utterance.started', utteranceId, audioStartMs });
    return utterance;
  }
  /** Ends the utterance after a pause, which is shorter while the model is speaking audibly. */
  #awaitPause(): void {
    this.#cancel();
    if (!this.#utterance) return;
    const { environment } = this.#connection;
    const pauseMs = this.#isModelHeard ? this.#turnMs : this.#pauseMs;
    const leftMs = this.#lastWordsAt + pauseMs - environment.clock.now();
    if (leftMs <= 0) this.end();
    else this.#cancel = environment.scheduler.schedule(() => this.end(), leftMs);
  }
}
