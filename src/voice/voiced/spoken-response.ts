// One response of a text model that is spoken by a voice. The response is synthesised sentence by sentence, slightly
// ahead of playback.
//
//   writing ──▶ written ─┬─ all was spoken ─────────▶ ended as the model ended it
//      └────────┴────────┼─ cancelled ──────────────▶ ended: cancelled
//                        └─ the voice failed ───────▶ ended: failed
//
// Owns:     the unspoken text, the running synthesis, the end of the response, and the positions of its words in the
//           audio, which map played audio to words.
// Does not: access other responses or the model's memory, or track playback.
//
// Invariants
//   SPOKEN-RESPONSE-1. A response ends once, after its last audio and after the model has finished it. The event for
//        its end lists the audio that was passed on.
//   SPOKEN-RESPONSE-2. After a cancellation or a failure, the response emits neither words nor audio. The synthesis is
//        aborted, even if the voice ignores the signal.
//   SPOKEN-RESPONSE-3. Words are shown when their audio is passed on, so the transcript contains no text that was never
//        spoken. The final transcript contains the spoken text.
//   SPOKEN-RESPONSE-4. The synthesis of a sentence starts only when no more than `maxAheadMs` of audio is left to play.
//   SPOKEN-ITEM-1. `textUntil` returns only words whose audio was passed on, including all words whose audio was
//       played.
//   SPOKEN-ITEM-2. A sentence of unknown duration is assumed to be as long as similar sentences.

import { messageOf } from '../../values/errors.ts';
import type { Environment } from '../../actors/ports/environment.ts';
import { createResampler, type Resampler } from '../audio/resampler.ts';
import type { AudioFrame } from '../audio/audio-frame.ts';
import { SentenceChunker } from '../speech/sentence-chunker.ts';
import { placeWords } from '../speech/spoken-words.ts';
import type { TransportEvent } from '../connection/transport.ts';

const FRAME_MS = 100;
/** Milliseconds per character, used until the voice's pace is known. */
const FIRST_GUESS_MS = 65;

export type Started = Extract<TransportEvent, { type: 'response.started' }>;
export type Ended = Extract<TransportEvent, { type: 'response.ended' }>;
export type Written = Extract<TransportEvent, { type: 'assistant.transcribed' }>;

/** How responses are spoken. */
export interface SpeechSettings {
  /** The sample rate of the audio that is passed on. */
  readonly sampleRateHz: number;
  readonly maxAheadMs: number;
  sound(text: string, signal: AbortSignal): AsyncIterable<AudioFrame>;
}

/** The connection that a response belongs to. */
export interface ResponseOwner {
  readonly environment: Environment;
  readonly settings: SpeechSettings;
  emit(event: TransportEvent): void;
  emitAudio(frame: AudioFrame): void;
  /** Called when the voice fails. The model need not continue the response. */
  responseFailed(response: SpokenResponse, error: unknown): void;
  responseEnded(response: SpokenResponse, end: Ended): void;
}

export class SpokenResponse {
  readonly responseId: string;
  readonly isOutOfBand: boolean;
  readonly #owner: ResponseOwner;
  readonly #abort = new AbortController();
  readonly #items = new Map<string, SpokenItem>();
  readonly #final = new Set<SpokenItem>();
  #unsaid: { readonly item: SpokenItem; readonly text: string }[] = [];
  #modelEnd: Ended | null = null;
  #brokenOff: { readonly status: 'cancelled' | 'failed'; readonly reason: string | null } | null =
    null;
  #mayBegin = false;
  #isSpeaking = false;
  #isOver = false;
  /** The time at which the audio that was passed on will have been played, in milliseconds since 1970. */
  #playedAt = 0;

  constructor({ responseId }: Started, isOutOfBand: boolean, owner: ResponseOwner) {
    this.responseId = responseId;
    this.isOutOfBand = isOutOfBand;
    this.#owner = owner;
  }

  get items(): readonly SpokenItem[] {
    return [...this.#items.values()];
  }

  /** Whether the model may still add text to the response. */
  get isGenerating(): boolean {
    return this.#modelEnd === null;
  }

  /** Starts speaking after the previous response has ended. */
  begin(): void {
    this.#mayBegin = true;
    this.#proceed();
  }

  written({ itemId, text, final }: Written): void {
    if (this.#brokenOff !== null || this.#modelEnd !== null) return;
    let item = this.#items.get(itemId);
    if (item === undefined) {
      this.#endItems();
      item = new SpokenItem(itemId, this.isOutOfBand);
      this.#items.set(itemId, item);
    }
    this.#enqueue(item, item.write(text, final));
    this.#proceed();
  }

  modelEnded(end: Ended): void {
    if (this.#modelEnd !== null) return;
    this.#modelEnd = end;
    const { status, reason } = end;
    // The model will repeat a failed response, so its first half is not spoken.
    if (status === 'cancelled' || status === 'failed') this.#breakOff(status, reason);
    else this.#endItems();
    this.#proceed();
  }

  /** Stops the speech immediately. The response ends once the model has finished it. */
  cancel(): void {
    this.#breakOff('cancelled', null);
    this.#proceed();
  }

  /** Drops the response without reporting an end, because the connection is gone. */
  abandon(): void {
    this.#isOver = true;
    this.#breakOff('cancelled', null);
  }

  #breakOff(status: 'cancelled' | 'failed', reason: string | null): void {
    this.#brokenOff ??= { status, reason };
    this.#unsaid = [];
    this.#abort.abort();
  }

  #endItems(): void {
    for (const item of this.#items.values()) if (!item.isWritten) this.#enqueue(item, item.end());
  }

  #enqueue(item: SpokenItem, sentences: readonly string[]): void {
    this.#unsaid.push(...sentences.map((text) => ({ item, text })));
  }

  #proceed(): void {
    if (!this.#mayBegin || this.#isSpeaking || this.#isOver) return;
    this.#isSpeaking = true;
    // Starts in a promise, so that the caller can finish its work before the first audio.
    void Promise.resolve()
      .then(() => this.#speak())
      .catch((error: unknown) => this.#fail(error))
      .then(() => {
        this.#isSpeaking = false;
        if (this.#unsaid.length > 0) this.#proceed();
        else this.#settle();
      });
  }

  async #speak(): Promise<void> {
    for (let next = this.#unsaid.shift(); next; next = this.#unsaid.shift()) {
      await this.#waitForRoom();
      if (this.#brokenOff !== null) return;
      await this.#say(next.item, next.text);
    }
  }

  async #say(item: SpokenItem, text: string): Promise<void> {
    const { sampleRateHz: toHz, sound } = this.#owner.settings;
    const { signal } = this.#abort;
    let resampler: Resampler | null = null;
    item.begin(text);
    for await (const frame of sound(text, signal)) {
      if (this.#brokenOff !== null) return;
      resampler ??= createResampler({ fromHz: frame.sampleRateHz, toHz });
      this.#passOn(item, resampler.process(frame.samples));
    }
    if (this.#brokenOff !== null) return;
    if (resampler !== null) this.#passOn(item, resampler.flush());
    this.#show(item, item.spoken(), false);
    this.#finishItems();
  }

  /** Passes audio on in chunks, each preceded by the words that start in it. */
  #passOn(item: SpokenItem, samples: Int16Array): void {
    const { environment } = this.#owner;
    const { sampleRateHz } = this.#owner.settings;
    const step = Math.round((sampleRateHz * FRAME_MS) / 1000);
    for (let start = 0; start < samples.length; start += step) {
      // A listener may have cancelled the response in the meantime.
      if (this.#brokenOff !== null) return;
      const piece = samples.slice(start, start + step);
      const durationMs = (piece.length * 1000) / sampleRateHz;
      // If the voice is slow, the client has played all of its audio, so the next audio starts immediately.
      this.#playedAt = Math.max(this.#playedAt, environment.clock.now()) + durationMs;
      this.#show(item, item.sounds(durationMs), false);
      this.#owner.emitAudio({
        samples: piece,
        sampleRateHz,
        itemId: item.itemId,
        responseId: this.responseId,
      });
    }
  }

  #show({ itemId }: SpokenItem, text: string, final: boolean): void {
    if (text === '' && !final) return;
    const { responseId } = this;
    this.#owner.emit({ type: 'assistant.transcribed', itemId, responseId, text, final });
  }

  /** Marks items as final once their text is complete and has been spoken. */
  #finishItems(): void {
    for (const item of this.#items.values()) {
      const isDone = item.isWritten && this.#unsaid.every((unsaid) => unsaid.item !== item);
      if (!isDone || this.#final.has(item)) continue;
      this.#final.add(item);
      this.#show(item, item.textUntil(Number.POSITIVE_INFINITY), true);
    }
  }

  /** SPOKEN-RESPONSE-4 */
  async #waitForRoom(): Promise<void> {
    const { environment } = this.#owner;
    const { maxAheadMs } = this.#owner.settings;
    const aheadMs = this.#playedAt - environment.clock.now();
    if (aheadMs <= maxAheadMs) return;
    const { signal } = this.#abort;
    await new Promise<void>((resolve) => {
      const cancel = environment.scheduler.schedule(() => resolve(), aheadMs - maxAheadMs);
      const stop = (): void => {
        cancel();
        resolve();
      };
      if (signal.aborted) stop();
      else signal.addEventListener('abort', stop, { once: true });
    });
  }

  #fail(error: unknown): void {
    if (this.#brokenOff !== null) return;
    this.#breakOff('failed', messageOf(error));
    this.#owner.responseFailed(this, error);
  }

  #settle(): void {
    if (this.#modelEnd === null || this.#isOver) return;
    this.#isOver = true;
    for (const item of this.#items.values()) {
      if (this.#final.has(item)) continue;
      const spoken = item.textUntil(Number.POSITIVE_INFINITY);
      if (spoken !== '') this.#show(item, spoken, true);
    }
    const audio = this.items.flatMap(({ itemId, soundMs: durationMs }) =>
      durationMs > 0 ? [{ itemId, durationMs }] : [],
    );
    const { status, reason } = this.#brokenOff ?? this.#modelEnd;
    this.#owner.responseEnded(this, { ...this.#modelEnd, status, reason, audio });
  }
}

interface Sentence {
  readonly text: string;
  readonly startMs: number;
  /** The duration of the audio that was passed on. */
  soundMs: number;
  /** The duration of the whole sentence, if known. */
  lengthMs: number;
}

/** One message of the response: its sentences, and their positions in the audio. */
export class SpokenItem {
  readonly itemId: string;
  /** Whether the item was spoken out of band, so that the model's memory need not be corrected. */
  readonly isOutOfBand: boolean;
  readonly #chunker = new SentenceChunker();
  readonly #sentences: Sentence[] = [];
  #msPerCharacter = FIRST_GUESS_MS;
  #written = '';
  #shown = 0;
  /** Whether the model has finished writing the item. */
  isWritten = false;

  constructor(itemId: string, isOutOfBand: boolean) {
    this.itemId = itemId;
    this.isOutOfBand = isOutOfBand;
  }

  /** The complete text that the model has written. */
  get written(): string {
    return this.#written;
  }

  /** The duration of the audio that was passed on, in milliseconds. */
  get soundMs(): number {
    return this.#sentences.reduce((sum, { soundMs }) => sum + soundMs, 0);
  }

  /** Adds text or, if `final`, sets the whole text. Returns the sentences that can be spoken now. */
  write(text: string, final: boolean): readonly string[] {
    if (this.isWritten) return [];
    const isWhole = final && text.startsWith(this.#written);
    const added = isWhole ? text.slice(this.#written.length) : final ? '' : text;
    this.#written += added;
    const pieces = this.#chunker.push(added);
    return final ? [...pieces, ...this.end()] : pieces;
  }

  /** Marks the text as complete. Returns the rest of the text, which is still to be spoken. */
  end(): readonly string[] {
    this.isWritten = true;
    return this.#chunker.flush();
  }

  /** Starts a sentence. */
  begin(text: string): void {
    const lengthMs = text.length * this.#msPerCharacter;
    this.#sentences.push({ text, startMs: this.soundMs, soundMs: 0, lengthMs });
    this.#shown = 0;
  }

  /** Records audio that is about to be passed on. Returns the words that start in it. */
  sounds(durationMs: number): string {
    const sentence = this.#sentences.at(-1);
    if (!sentence) return '';
    sentence.soundMs += durationMs;
    sentence.lengthMs = Math.max(sentence.lengthMs, sentence.soundMs);
    const words = placeWords(sentence.text, 0, sentence.lengthMs);
    return this.#show(words.filter(({ startMs }) => startMs < sentence.soundMs));
  }

  /** Ends the sentence. Returns the words that have not been shown yet. */
  spoken(): string {
    const sentence = this.#sentences.at(-1);
    if (!sentence) return '';
    sentence.lengthMs = sentence.soundMs;
    if (sentence.soundMs > 0) this.#msPerCharacter = sentence.soundMs / sentence.text.length;
    return this.#show([sentence]);
  }

  /** Returns the words that had been more than half spoken at `ms`. */
  textUntil(ms: number): string {
    return this.#sentences
      .flatMap(({ text, startMs, soundMs, lengthMs }) =>
        placeWords(text, startMs, lengthMs).filter(
          (word) => (word.startMs + word.endMs) / 2 <= Math.min(ms, startMs + soundMs),
        ),
      )
      .map(({ text }) => text)
      .join('');
  }

  /** Returns the words of the sentence that have not been shown yet. */
  #show(words: readonly { readonly text: string }[]): string {
    const text = words.map((word) => word.text).join('');
    const added = text.slice(this.#shown);
    this.#shown += added.length;
    return added;
  }
}
