// One response of a text model while it is spoken: sentence after sentence is synthesised and passed on,
// slightly ahead of playback.
//
//   writing ──▶ written ─┬─ all was said ───────────▶ ended as the model ended it
//      └────────┴────────┼─ cancelled ──────────────▶ ended: cancelled
//                        └─ the voice has failed ───▶ ended: failed
//
// Owns:     the text still to be said, the synthesis under way, and the end of the response.
// Does not: know other responses, or the model's memory.
//
// Invariants
//   SPOKEN-RESPONSE-1. A response ends once, after its last sound and after the model has ended it; its end
//        lists the sound that was passed on.
//   SPOKEN-RESPONSE-2. After a cancellation or a failure no word and no sound follows, and the synthesis is
//        aborted, even if the voice ignores the signal.
//   SPOKEN-RESPONSE-3. Words are shown when their sound is passed on: text that was never spoken is not in
//        the transcript. The final transcript is the spoken text.
//   SPOKEN-RESPONSE-4. A sentence is begun only when at most `maxAheadMs` of sound is unplayed.

import { messageOf } from '../../values/errors.ts';
import type { Environment } from '../../actors/ports/environment.ts';
import { createResampler, type Resampler } from '../audio/resampler.ts';
import type { AudioFrame } from '../audio/audio-frame.ts';
import type { TransportEvent } from '../connection/transport.ts';
import { SpokenItem } from './spoken-item.ts';

const FRAME_MS = 100;

export type Started = Extract<TransportEvent, { type: 'response.started' }>;
export type Ended = Extract<TransportEvent, { type: 'response.ended' }>;
export type Written = Extract<TransportEvent, { type: 'assistant.transcribed' }>;

export interface SpokenResponsePorts {
  readonly environment: Environment;
  /** The rate of the sound that is passed on. */
  readonly sampleRateHz: number;
  readonly maxAheadMs: number;
  /** Returns the sound of a sentence. */
  sound(text: string, signal: AbortSignal): AsyncIterable<AudioFrame>;
  emit(event: TransportEvent): void;
  emitAudio(frame: AudioFrame): void;
  /** Reports that the voice failed: the model need not continue. */
  failed(response: SpokenResponse, error: unknown): void;
  /** Reports the end of the response. */
  ended(response: SpokenResponse, end: Ended): void;
}

export class SpokenResponse {
  readonly responseId: string;
  readonly isOutOfBand: boolean;
  readonly #ports: SpokenResponsePorts;
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
  /** When the sound that was passed on will have been played, in milliseconds since 1970. */
  #playedAt = 0;

  constructor({ responseId }: Started, isOutOfBand: boolean, ports: SpokenResponsePorts) {
    this.responseId = responseId;
    this.isOutOfBand = isOutOfBand;
    this.#ports = ports;
  }

  get items(): readonly SpokenItem[] {
    return [...this.#items.values()];
  }

  /** Whether the model may still write to it. */
  get isInTheMaking(): boolean {
    return this.#modelEnd === null;
  }

  /** Starts speaking, after the previous response. */
  begin(): void {
    this.#mayBegin = true;
    this.#goOn();
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
    this.#goOn();
  }

  modelEnded(end: Ended): void {
    if (this.#modelEnd !== null) return;
    this.#modelEnd = end;
    const { status, reason } = end;
    // A failed response is repeated, so its first half is not spoken.
    if (status === 'cancelled' || status === 'failed') this.#breakOff(status, reason);
    else this.#endItems();
    this.#goOn();
  }

  /** Stops the speech at once. The response ends when the model has ended it. */
  cancel(): void {
    this.#breakOff('cancelled', null);
    this.#goOn();
  }

  /** Drops the response without an end, because the connection is gone. */
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

  #goOn(): void {
    if (!this.#mayBegin || this.#isSpeaking || this.#isOver) return;
    this.#isSpeaking = true;
    // Ends in a task of its own, so that the caller's work is complete by then.
    void Promise.resolve()
      .then(() => this.#speak())
      .catch((error: unknown) => this.#fail(error))
      .then(() => {
        this.#isSpeaking = false;
        if (this.#unsaid.length > 0) this.#goOn();
        else this.#settle();
      });
  }

  async #speak(): Promise<void> {
    for (let next = this.#unsaid.shift(); next; next = this.#unsaid.shift()) {
      await this.#room();
      if (this.#brokenOff !== null) return;
      await this.#say(next.item, next.text);
    }
  }

  async #say(item: SpokenItem, text: string): Promise<void> {
    const { sampleRateHz: toHz } = this.#ports;
    const { signal } = this.#abort;
    let resampler: Resampler | null = null;
    item.begin(text);
    for await (const frame of this.#ports.sound(text, signal)) {
      if (this.#brokenOff !== null) return;
      resampler ??= createResampler({ fromHz: frame.sampleRateHz, toHz });
      this.#handOn(item, resampler.process(frame.samples));
    }
    if (this.#brokenOff !== null) return;
    if (resampler !== null) this.#handOn(item, resampler.flush());
    this.#show(item, item.spoken(), false);
    this.#finishItems();
  }

  /** Passes sound on in pieces, each preceded by the words that begin in it. */
  #handOn(item: SpokenItem, samples: Int16Array): void {
    const { sampleRateHz, emitAudio, environment } = this.#ports;
    const step = Math.round((sampleRateHz * FRAME_MS) / 1000);
    for (let start = 0; start < samples.length; start += step) {
      // A listener may have cancelled the response.
      if (this.#brokenOff !== null) return;
      const piece = samples.slice(start, start + step);
      const durationMs = (piece.length * 1000) / sampleRateHz;
      // The client runs out of sound while the voice is slow: the next sound begins at once.
      this.#playedAt = Math.max(this.#playedAt, environment.clock.now()) + durationMs;
      this.#show(item, item.sounds(durationMs), false);
      emitAudio({
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
    this.#ports.emit({ type: 'assistant.transcribed', itemId, responseId, text, final });
  }

  /** Closes the items of which no more will be said. */
  #finishItems(): void {
    for (const item of this.#items.values()) {
      const isDone = item.isWritten && this.#unsaid.every((unsaid) => unsaid.item !== item);
      if (!isDone || this.#final.has(item)) continue;
      this.#final.add(item);
      this.#show(item, item.textUntil(Number.POSITIVE_INFINITY), true);
    }
  }

  /** SPOKEN-RESPONSE-4 */
  async #room(): Promise<void> {
    const { environment, maxAheadMs } = this.#ports;
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
    this.#ports.failed(this, error);
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
    this.#ports.ended(this, { ...this.#modelEnd, status, reason, audio });
  }
}
