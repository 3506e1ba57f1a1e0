// Derives the user's utterances from fragments of the transcript. The protocol has no utterances. Fragments may arrive
// late, the last fragment is not marked, and only some models report when they detect speech.
//
//   (silent) ──signal, words, interruption──▶ speaking ──signal, pause, the model responds──▶ ended
//       ▲                                                                    │
//       └────────────────────── no more words for a moment ──────────────────┘
//
// Owns:     the ids, starts, ends and words of utterances. This module does not depend on how the model reacts to
//           utterances.
//
// USER-SPEECH-1. For each utterance, the start, the end and the words (or that there are none) are reported once, in
//                this order.
// USER-SPEECH-2. Words that arrive after the end belong to the utterance that has ended. If further words arrive after
//     an utterance's words were reported, they are reported as late, because a new utterance would cut off the model's
//     response. If the model responds before the user's words have arrived and is not interrupted, the first words that
//     arrive are the words that it responded to. Their utterance started before the response.
// USER-SPEECH-3. The reported start is never too early, because the user spoke the words before they arrived.

import type { WireConnection } from '../socket/wire.ts';

/**
 * The pause after the user's last words that ends the utterance. The words of one sentence arrive together.
 */
const PAUSE_MS = 1_500;
/** The pause that ends an utterance without words. */
const WORDLESS_PAUSE_MS = 3_000;
/** The maximum wait for the detector to report the end, both after the last words and without any words. */
const SIGNALLED_PAUSE_MS = 15_000;
const WORDLESS_SIGNALLED_PAUSE_MS = 60_000;
/** How long after the end of an utterance further words may arrive. */
const TRAILING_MS = 600;
/** The same time for an utterance without words. */
const WORDLESS_TRAILING_MS = 2_000;
/** How long after the last reported words further words count as late, if the model is responding. */
const LATE_MS = 3_000;
/** Words are at least this old when they arrive. */
const WORDS_LAG_MS = 800;

/** Callbacks for an utterance, and the state of the model that the utterance depends on. */
interface UserSpeechListener {
  /** Returns whether the model is responding without interruption, or whether its response counts as still playing. */
  isAnswered(): boolean;
  /** Reports the start of speech. */
  began(): void;
  /** Reports the words. `isAnswered`: whether the model has started or finished a response to the words. */
  settled(words: string, isAnswered: boolean): void;
}

interface Utterance {
  readonly id: string;
  /** The final words. */
  words: string;
  /** The provisional words after `words`. */
  interim: string;
  hasEnded: boolean;
  isSignalled: boolean;
  /** USER-SPEECH-2: whether the model was already responding when the first words arrived. */
  isTrailing: boolean;
  isAnswered: boolean;
}

export class UserSpeech {
  /** The length of audio that the server has received, in milliseconds. */
  sentMs = 0;
  readonly #connection: WireConnection;
  readonly #listener: UserSpeechListener;
  #utterance: Utterance | null = null;
  #settledAt = Number.NEGATIVE_INFINITY;
  /** Whether the model has yet to respond to words that were reported. */
  #isUnanswered = false;
  /**
   * The audio position at which the model started to respond before the user's words had arrived; null if it has not
   * done so.
   */
  #answersUnknownSinceMs: number | null = null;
  #cancelPause: () => void = () => {};

  constructor(connection: WireConnection, listener: UserSpeechListener) {
    this.#connection = connection;
    this.#listener = listener;
  }

  /** Whether the user is speaking, or has stopped but the words of the last utterance have not arrived yet. */
  get isOpen(): boolean {
    return this.#utterance !== null;
  }

  /** Handles the detector's report that speech has started; `startMs` is a position in the received audio. */
  heardStart(startMs: number | null): void {
    this.#begin(startMs ?? this.sentMs).isSignalled = true;
    this.#waitOn();
  }

  /** Handles an interruption by the user. */
  brokeIn(): void {
    this.#begin(this.sentMs);
    this.#waitOn();
  }

  heardEnd(): void {
    this.#end();
  }

  /** Appends final words. `isLast`: whether the server has marked these words as the last. */
  heardWords(words: string, isLast: boolean, startMs: number | null): void {
    const utterance = this.#utteranceOf(words, startMs);
    if (utterance === null) return;
    utterance.words += words;
    utterance.interim = '';
    if (words !== '') this.#report(utterance);
    if (isLast) this.settle();
    else this.#continue(utterance);
  }

  /** Sets the provisional words after the final ones. */
  heardInterim(words: string, startMs: number | null): void {
    const utterance = this.#utteranceOf(words, startMs);
    if (utterance === null || words === '') return;
    utterance.interim = words;
    this.#report(utterance);
    this.#continue(utterance);
  }

  /** Handles the start of the model's response, which means that the user has finished speaking. */
  answered(): void {
    const isKnown = this.#utterance !== null || this.#isUnanswered;
    this.#answersUnknownSinceMs = isKnown ? null : this.sentMs;
    this.#isUnanswered = false;
    if (this.#utterance) this.#utterance.isAnswered = true;
    this.#end();
  }

  /** Stops waiting for further words. */
  settle(): void {
    const utterance = this.#utterance;
    if (utterance === null) return;
    this.#markEnded(utterance);
    this.#utterance = null;
    this.#cancelPause();
    this.#settledAt = this.#connection.environment.clock.now();
    this.#isUnanswered = !this.#listener.isAnswered();
    const text = (utterance.words + utterance.interim).trim();
    const { id: utteranceId } = utterance;
    this.#connection.emit({ type: 'utterance.transcribed', utteranceId, text, final: true });
    this.#listener.settled(text, utterance.isAnswered || this.#listener.isAnswered());
  }

  stop(): void {
    this.#cancelPause();
  }

  /** Returns the utterance that these words belong to, if any. */
  #utteranceOf(words: string, startMs: number | null): Utterance | null {
    if (this.#utterance !== null) return this.#utterance;
    if (words === '') return null;
    const saidMs = this.sentMs - WORDS_LAG_MS;
    const answeredMs = this.#listener.isAnswered() ? this.#answersUnknownSinceMs : null;
    if (answeredMs !== null) {
      const utterance = this.#begin(Math.min(startMs ?? saidMs, answeredMs - WORDS_LAG_MS));
      utterance.isTrailing = true;
      return utterance;
    }
    if (this.#isLate()) {
      this.#connection.report(
        'LATE_WORDS',
        'Words of the user came after their utterance was over',
        words,
      );
      return null;
    }
    return this.#begin(startMs ?? saidMs);
  }

  #isLate(): boolean {
    const now = this.#connection.environment.clock.now();
    return this.#listener.isAnswered() && now - this.#settledAt < LATE_MS;
  }

  #begin(startMs: number): Utterance {
    const current = this.#utterance;
    if (current !== null && !current.hasEnded) return current;
    this.settle();
    const { environment, emit, toSessionMs } = this.#connection;
    const id = environment.ids.next('utt');
    const utterance: Utterance = {
      id,
      words: '',
      interim: '',
      hasEnded: false,
      isSignalled: false,
      isTrailing: false,
      isAnswered: false,
    };
    this.#utterance = utterance;
    this.#answersUnknownSinceMs = null;
    const audioStartMs = toSessionMs(Math.max(0, startMs));
    this.#listener.began();
    emit({ type: 'utterance.started', utteranceId: id, audioStartMs });
    return utterance;
  }

  #report({ id: utteranceId, words, interim }: Utterance): void {
    const text = words + interim;
    this.#connection.emit({ type: 'utterance.transcribed', utteranceId, text, final: false });
  }

  /** Waits for more words of the utterance. */
  #continue(utterance: Utterance): void {
    if (utterance.isTrailing) this.#markEnded(utterance);
    this.#waitOn();
  }

  #end(): void {
    const utterance = this.#utterance;
    if (utterance === null) return;
    this.#markEnded(utterance);
    this.#waitOn();
  }

  #markEnded(utterance: Utterance): void {
    if (utterance.hasEnded) return;
    utterance.hasEnded = true;
    this.#connection.emit({ type: 'utterance.ended', utteranceId: utterance.id });
  }

  /** Restarts the wait for the next words. */
  #waitOn(): void {
    this.#cancelPause();
    const utterance = this.#utterance;
    if (utterance === null) return;
    this.#cancelPause = this.#connection.environment.scheduler.schedule(() => {
      if (utterance.hasEnded) this.settle();
      else this.#end();
    }, patienceMs(utterance));
  }
}

function patienceMs({ hasEnded, isSignalled, words, interim }: Utterance): number {
  const isWordless = words + interim === '';
  if (hasEnded) return isWordless ? WORDLESS_TRAILING_MS : TRAILING_MS;
  if (isSignalled) return isWordless ? WORDLESS_SIGNALLED_PAUSE_MS : SIGNALLED_PAUSE_MS;
  return isWordless ? WORDLESS_PAUSE_MS : PAUSE_MS;
}
