// Derives the user's utterances. The wire has none: it sends fragments of text that may come late, without marking the
// last one, and only some models send signals of their speech detector.
//
//   (silent) ──signal, words, interruption──▶ speaking ──signal, pause, the model answers──▶ ended
//       ▲                                                                    │
//       └────────────────────── no more words for a moment ──────────────────┘
//
// Owns:     the ids, beginnings, ends and words of utterances. It does not know the model's reaction to them.
//
// USER-SPEECH-1. Each utterance begins, ends, and has its words or the report that it has none: once, in this order.
// USER-SPEECH-2. Words that arrive after the end belong to the utterance that ended. If its words were already
//     reported, they are reported as late: a new utterance would cut the answer off. If the model answers words that
//     are unknown so far, and was not interrupted, the first words that arrive are those words: their utterance began
//     before the answer did.
// USER-SPEECH-3. The reported start is never too early: words are older than the moment at which they arrive.

import type { WireConnection } from '../socket/wire.ts';

/**
 * The pause after the last words of a speaking user that ends the utterance; the words of a sentence arrive at once.
 */
const PAUSE_MS = 1_500;
/** The pause that ends an utterance that has no words yet. */
const WORDLESS_PAUSE_MS = 3_000;
/** The longest wait for the detector's report of the end, after the last words and without any words. */
const SIGNALLED_PAUSE_MS = 15_000;
const WORDLESS_SIGNALLED_PAUSE_MS = 60_000;
/** The time after the end in which more words may arrive. */
const TRAILING_MS = 600;
/** The same time for an utterance that has no words yet. */
const WORDLESS_TRAILING_MS = 2_000;
/** The time after the last reported words in which further words count as late, if the model is answering. */
const LATE_MS = 3_000;
/** The least age of words when they arrive. */
const WORDS_LAG_MS = 800;

/** The reactions to an utterance, and the state of the model on which it depends. */
interface UserSpeechListener {
  /** Returns whether the model answers without interruption, or its answer counts as still playing. */
  isAnswered(): boolean;
  /** Reports the start of speech. */
  began(): void;
  /** Reports the words. `isAnswered`: the model has begun or finished an answer to them. */
  settled(words: string, isAnswered: boolean): void;
}

interface Utterance {
  readonly id: string;
  /** The final words. */
  words: string;
  /** The provisional words that follow `words`. */
  interim: string;
  hasEnded: boolean;
  isSignalled: boolean;
  /** USER-SPEECH-2: whether the model was already answering when the first words arrived. */
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
  /** Whether words were reported that the model has not begun to answer. */
  #isUnanswered = false;
  /** The position in the audio at which the model began to answer unknown words; null if it has not. */
  #answersUnknownSinceMs: number | null = null;
  #cancelPause: () => void = () => {};

  constructor(connection: WireConnection, listener: UserSpeechListener) {
    this.#connection = connection;
    this.#listener = listener;
  }

  /** Whether the user is speaking, or the words of the last utterance are not known yet. */
  get isOpen(): boolean {
    return this.#utterance !== null;
  }

  /** Handles the detector's start of speech; `startMs` is the position in the audio that the server received. */
  heardStart(startMs: number | null): void {
    this.#begin(startMs ?? this.sentMs).isSignalled = true;
    this.#waitOn();
  }

  /** Handles an interruption of the model by the user. */
  brokeIn(): void {
    this.#begin(this.sentMs);
    this.#waitOn();
  }

  heardEnd(): void {
    this.#end();
  }

  /** Appends final words. `isLast`: the wire marks them as the last ones. */
  heardWords(words: string, isLast: boolean, startMs: number | null): void {
    const utterance = this.#utteranceOf(words, startMs);
    if (utterance === null) return;
    utterance.words += words;
    utterance.interim = '';
    if (words !== '') this.#report(utterance);
    if (isLast) this.settle();
    else this.#continue(utterance);
  }

  /** Sets the provisional words since the last final ones. */
  heardInterim(words: string, startMs: number | null): void {
    const utterance = this.#utteranceOf(words, startMs);
    if (utterance === null || words === '') return;
    utterance.interim = words;
    this.#report(utterance);
    this.#continue(utterance);
  }

  /** Handles the model's answer, which means that the user has finished. */
  answered(): void {
    const isKnown = this.#utterance !== null || this.#isUnanswered;
    this.#answersUnknownSinceMs = isKnown ? null : this.sentMs;
    this.#isUnanswered = false;
    if (this.#utterance) this.#utterance.isAnswered = true;
    this.#end();
  }

  /** Stops waiting for words. */
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

  /** Returns the utterance to which these words belong; null if they belong to none. */
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
