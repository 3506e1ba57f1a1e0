// When the user speaks and what they say. The wire knows of no utterances: it gives
// scraps of text that may come late and never says which one is the last, and signals of
// its detector that only some models send.
//
//   (silent) ──signal, words, interruption──▶ speaking ──signal, pause, the model answers──▶ ended
//       ▲                                                                    │
//       └────────────────────── no more words for a moment ──────────────────┘
//
// Owns: ids, beginning, end and words of utterances. Does not: what the model makes of them.
//
// USER-SPEECH-1. Each utterance begins, ends, and has its words or the word that there are none: once,
//     in this order.
// USER-SPEECH-2. Words that trail the end belong to the utterance that ended. Once its words were given
//     they do not begin another one, which would cut the answer off: they are told as late.
//     The first words that come while the model answers nobody knows whom, and was not
//     interrupted, are what it answers: that utterance began before the answer did.
// USER-SPEECH-3. It began no later than is said: words are older than the moment at which they come.

import type { Environment } from '../../actors/ports/environment.ts';
import type { TransportEvent } from '../../voice/connection/transport.ts';

/** After the last words of somebody who speaks; the words of a sentence come in one go. */
const PAUSE_MS = 1_500;
/** Somebody was heard, and there are no words yet. */
const WORDLESS_PAUSE_MS = 3_000;
/** The detector says that somebody speaks and will say when they stop: it is believed so long. */
const SIGNALLED_PAUSE_MS = 15_000;
/** More words may come so long after the end. */
const TRAILING_MS = 600;
/** Somebody was heard, so the first words will come; later than that they were none. */
const WORDLESS_TRAILING_MS = 2_000;
/** Words that come so soon after the last ones were given are late, if the model is answering. */
const LATE_MS = 3_000;
/** Words are at least so much older than the moment at which they come. */
const WORDS_LAG_MS = 800;

export interface UserSpeechPorts {
  readonly environment: Environment;
  emit(event: TransportEvent): void;
  /** Sound that the server got until now, in milliseconds. */
  sentMs(): number;
  /** Milliseconds of sound that the server got, as milliseconds of sound that the session gave. */
  toSessionMs(serverMs: number): number;
  /** The model is answering, or what it said is taken as still playing; it was not interrupted. */
  isAnswered(): boolean;
  /** Somebody began to speak. */
  began(): void;
  /** It is known what they said. `isAnswered`: the model has begun to answer it, or is done with that. */
  settled(words: string, isAnswered: boolean): void;
  /** USER-SPEECH-2: words that nobody will hear of. */
  late(words: string): void;
}

interface Utterance {
  readonly id: string;
  /** What is certain. */
  words: string;
  /** What it seems to be after that. */
  interim: string;
  hasEnded: boolean;
  isSignalled: boolean;
  /** USER-SPEECH-2: the model was answering it when its first words came. */
  isTrailing: boolean;
  isAnswered: boolean;
}

export class UserSpeech {
  readonly #ports: UserSpeechPorts;
  #utterance: Utterance | null = null;
  #settledAt = Number.NEGATIVE_INFINITY;
  /** Words were given and the model has not begun to answer since. */
  #isUnanswered = false;
  /** The model began to answer after so much sound, and no words were known that it may answer. */
  #answersUnknownSinceMs: number | null = null;
  #cancelPause: () => void = () => {};

  constructor(ports: UserSpeechPorts) {
    this.#ports = ports;
  }

  /** Somebody speaks, or it is not known yet what they said. */
  get isOpen(): boolean {
    return this.#utterance !== null;
  }

  /** The detector heard somebody; `startMs` is when, in sound that the server got. */
  heardStart(startMs: number | null): void {
    this.#begin(startMs ?? this.#ports.sentMs()).isSignalled = true;
    this.#waitOn();
  }

  /** The model was interrupted by somebody. */
  brokeIn(): void {
    this.#begin(this.#ports.sentMs());
    this.#waitOn();
  }

  heardEnd(): void {
    this.#end();
  }

  /** More words, which are certain. `isLast`: the wire says that they are the last ones. */
  heardWords(words: string, isLast: boolean, startMs: number | null): void {
    const utterance = this.#takes(words, startMs);
    if (utterance === null) return;
    utterance.words += words;
    utterance.interim = '';
    if (words !== '') this.#tell(utterance);
    if (isLast) this.settle();
    else this.#goOn(utterance);
  }

  /** What the words since the last certain ones seem to be. */
  heardInterim(words: string, startMs: number | null): void {
    const utterance = this.#takes(words, startMs);
    if (utterance === null || words === '') return;
    utterance.interim = words;
    this.#tell(utterance);
    this.#goOn(utterance);
  }

  /** The model answers: the user has said what they wanted to say. */
  answered(): void {
    const isKnown = this.#utterance !== null || this.#isUnanswered;
    this.#answersUnknownSinceMs = isKnown ? null : this.#ports.sentMs();
    this.#isUnanswered = false;
    if (this.#utterance) this.#utterance.isAnswered = true;
    this.#end();
  }

  /** No more words are waited for. */
  settle(): void {
    const utterance = this.#utterance;
    if (utterance === null) return;
    this.#markEnded(utterance);
    this.#utterance = null;
    this.#cancelPause();
    this.#settledAt = this.#ports.environment.clock.now();
    this.#isUnanswered = !this.#ports.isAnswered();
    const text = (utterance.words + utterance.interim).trim();
    const { id: utteranceId } = utterance;
    this.#ports.emit({ type: 'utterance.transcribed', utteranceId, text, final: true });
    this.#ports.settled(text, utterance.isAnswered || this.#ports.isAnswered());
  }

  stop(): void {
    this.#cancelPause();
  }

  /** Whose these words are; null: nobody's. */
  #takes(words: string, startMs: number | null): Utterance | null {
    if (this.#utterance !== null) return this.#utterance;
    if (words === '') return null;
    const saidMs = this.#ports.sentMs() - WORDS_LAG_MS;
    const answeredMs = this.#ports.isAnswered() ? this.#answersUnknownSinceMs : null;
    if (answeredMs !== null) {
      const utterance = this.#begin(Math.min(startMs ?? saidMs, answeredMs - WORDS_LAG_MS));
      utterance.isTrailing = true;
      return utterance;
    }
    if (this.#isLate()) {
      this.#ports.late(words);
      return null;
    }
    return this.#begin(startMs ?? saidMs);
  }

  #isLate(): boolean {
    const now = this.#ports.environment.clock.now();
    return this.#ports.isAnswered() && now - this.#settledAt < LATE_MS;
  }

  #begin(startMs: number): Utterance {
    const current = this.#utterance;
    if (current !== null && !current.hasEnded) return current;
    this.settle();
    const { environment, emit, toSessionMs } = this.#ports;
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
    this.#ports.began();
    emit({ type: 'utterance.started', utteranceId: id, audioStartMs });
    return utterance;
  }

  #tell({ id: utteranceId, words, interim }: Utterance): void {
    const text = words + interim;
    this.#ports.emit({ type: 'utterance.transcribed', utteranceId, text, final: false });
  }

  /** There may be more of it. */
  #goOn(utterance: Utterance): void {
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
    this.#ports.emit({ type: 'utterance.ended', utteranceId: utterance.id });
  }

  /** Waits for what comes next, from now on again. */
  #waitOn(): void {
    this.#cancelPause();
    const utterance = this.#utterance;
    if (utterance === null) return;
    this.#cancelPause = this.#ports.environment.scheduler.schedule(() => {
      if (utterance.hasEnded) this.settle();
      else this.#end();
    }, patienceMs(utterance));
  }
}

function patienceMs({ hasEnded, isSignalled, words, interim }: Utterance): number {
  const isWordless = words + interim === '';
  if (hasEnded) return isWordless ? WORDLESS_TRAILING_MS : TRAILING_MS;
  if (isSignalled) return SIGNALLED_PAUSE_MS;
  return isWordless ? WORDLESS_PAUSE_MS : PAUSE_MS;
}
