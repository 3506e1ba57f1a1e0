// The user in front of one connection: when they speak, and when the server hears their words.

import type { Scheduler } from '../../../actors/ports/environment.ts';
import type { FakeUser, TranscriptTiming, UserSpeech } from './control.ts';
import type { VoiceEngine } from './engine.ts';
import { speechMs } from './sound.ts';

/** The words of one utterance, as they come. */
interface Utterance {
  /** The words that the server has heard so far. */
  heard: string;
  readonly cancels: (() => void)[];
}

export class ScriptedUser implements FakeUser {
  readonly #scheduler: Scheduler;
  readonly #engine: VoiceEngine;
  #utterance: Utterance | null = null;

  constructor(scheduler: Scheduler, engine: VoiceEngine) {
    this.#scheduler = scheduler;
    this.#engine = engine;
  }

  get isSpeaking(): boolean {
    return this.#utterance !== null;
  }

  begins(): void {
    if (this.#utterance !== null) return;
    this.#utterance = { heard: '', cancels: [] };
    this.#engine.userBegins();
  }

  ends(text: string, { transcript = 'prompt' }: Pick<UserSpeech, 'transcript'> = {}): void {
    this.begins();
    const utterance = this.#utterance as Utterance;
    if (transcript === 'early') this.#hear(utterance, text.slice(utterance.heard.length));
    this.stop();
    this.#engine.userEnds(text, text.slice(utterance.heard.length), transcript);
  }

  says(text: string, speech: UserSpeech = {}): Promise<void> {
    const { durationMs = speechMs(text), transcript = 'prompt' } = speech;
    this.begins();
    const utterance = this.#utterance as Utterance;
    for (const { words, atMs } of arrivals(text, durationMs, transcript)) {
      utterance.cancels.push(this.#scheduler.schedule(() => this.#hear(utterance, words), atMs));
    }
    return new Promise((resolve) => {
      const end = (): void => {
        // The test may have ended it itself.
        if (this.#utterance === utterance) this.ends(text, { transcript });
        resolve();
      };
      utterance.cancels.push(this.#scheduler.schedule(end, durationMs), resolve);
    });
  }

  /** Ends the utterance under way without any event for the server. */
  stop(): void {
    const cancels = this.#utterance?.cancels ?? [];
    this.#utterance = null;
    for (const cancel of cancels) cancel();
  }

  #hear(utterance: Utterance, words: string): void {
    if (words === '') return;
    utterance.heard += words;
    this.#engine.userSays(words);
  }
}

/**
 * Returns the times at which words are heard while the user still speaks; the last ones are left for the end.
 */
function arrivals(
  text: string,
  durationMs: number,
  transcript: TranscriptTiming,
): { readonly words: string; readonly atMs: number }[] {
  if (transcript === 'early') return [{ words: text, atMs: durationMs / 2 }];
  if (transcript !== 'prompt' && transcript !== 'duplicated') return [];
  const words = text.match(/\s*\S+/g) ?? [];
  return words.slice(0, -1).map((word, index) => ({
    words: word,
    atMs: (durationMs * (index + 1)) / words.length,
  }));
}
