// Decides whether the user's speech over the lead agent is an interruption. Speech pauses at once in any
// case; after a noise or a backchannel ("mm-hm") it continues.
//
//   speaking ─ user begins ─▶ in doubt ─┬─ other words, long, once more ─▶ real: broken off
//                                       ├─ a backchannel, a noise ───────▶ false: goes on
//                                       └─ no words in time ─────────────▶ goes on, until they come
//
// Owns:     the doubt, and its duration.
// Does not: stop, keep or break off speech (loudspeaker, model-voice), or interpret words (answers).
//
// Invariants
//   INTERRUPTIONS-1. The user's voice stops the model's speech at once, in doubt as well (MODEL-VOICE-3).
//   INTERRUPTIONS-2. A doubt ends exactly once: at the words, when the utterance is longer than
//       `backchannelMs`, when the user begins again, or `falseInterruptionMs` after the user fell silent.
//   INTERRUPTIONS-3. Words that may be an answer never count as a backchannel: not while a question is open,
//       and not over a question of the lead agent. If the listening model is lost meanwhile, the doubt counts
//       as an interruption while the user is still speaking.
//   INTERRUPTIONS-4. Words that arrive after the doubt still interrupt, if they are an interruption.

import type { Environment } from '../../actors/ports/environment.ts';
import { Watchdog } from '../../actors/session/lead/watchdog.ts';

/** A transport reports the end of an utterance this long after it happened. */
const END_LAG_MS = 600;

export interface InterruptionsOptions {
  /**
   * Duration of the doubt after the user fell silent, in milliseconds; 0: every utterance is an interruption.
   */
  readonly falseInterruptionMs: number;
  /** Utterances longer than this are interruptions. */
  readonly backchannelMs: number;
}

export interface InterruptionsPorts {
  /** Pauses the speech so that it can continue. Returns false if that is impossible. */
  pause(): boolean;
  isPaused(): boolean;
  resume(): void;
  /** Breaks off the speech after an interruption. */
  breakOff(): void;
  /** Returns whether the text is a backchannel and no answer, in full or so far. */
  backchannelIn(text: string): 'whole' | 'beginning' | 'none';
}

export class Interruptions {
  readonly #options: InterruptionsOptions;
  readonly #ports: InterruptionsPorts;
  readonly #patience: Watchdog;
  /** The utterance in doubt, or the one whose doubt ended without words. */
  #utteranceId: string | null = null;
  #hasEnded = false;

  constructor(environment: Environment, options: InterruptionsOptions, ports: InterruptionsPorts) {
    this.#options = options;
    this.#ports = ports;
    this.#patience = new Watchdog(environment, () => this.#overdue());
  }

  /** Handles the start of an utterance over the lead agent's speech. */
  began(utteranceId: string): void {
    const { falseInterruptionMs, backchannelMs } = this.#options;
    const isNew = !this.#ports.isPaused();
    this.#forget();
    if (falseInterruptionMs <= 0 || !isNew || !this.#ports.pause()) {
      this.#ports.breakOff();
      return;
    }
    this.#utteranceId = utteranceId;
    this.#hasEnded = false;
    this.#patience.watch(backchannelMs + END_LAG_MS);
  }

  /** Handles the end of the utterance. */
  ended(utteranceId: string): void {
    if (utteranceId !== this.#utteranceId || !this.#ports.isPaused()) return;
    this.#hasEnded = true;
    this.#patience.watch(this.#options.falseInterruptionMs);
  }

  /**
   * Handles words of an utterance: all of them (`final`) or the first; empty if there are none. Returns
   * whether they are a backchannel, which needs no answer.
   */
  understood(utteranceId: string, text: string, final: boolean): boolean {
    if (utteranceId !== this.#utteranceId) return false;
    const isEmpty = text.trim() === '';
    const reading = isEmpty ? 'beginning' : this.#ports.backchannelIn(text);
    if (!final && reading !== 'none') return false;
    const isFalse = isEmpty || reading === 'whole';
    this.#forget();
    if (!isFalse) this.#ports.breakOff();
    else if (this.#ports.isPaused()) this.#ports.resume();
    return isFalse && !isEmpty;
  }

  /**
   * Ends the doubt as an interruption: another component broke the speech off, or the speaking model is gone.
   */
  confirm(): void {
    if (this.#utteranceId === null || !this.#ports.isPaused()) return;
    this.#forget();
    this.#ports.breakOff();
  }

  /** Ends the doubt without words: the speech stays interrupted if the user is still speaking. */
  reset(): void {
    const isSpeaking = this.#utteranceId !== null && !this.#hasEnded;
    this.#forget();
    if (!this.#ports.isPaused()) return;
    if (isSpeaking) this.#ports.breakOff();
    else this.#ports.resume();
  }

  #overdue(): void {
    if (!this.#ports.isPaused()) return;
    if (this.#hasEnded) this.#ports.resume();
    else this.confirm();
  }

  #forget(): void {
    this.#utteranceId = null;
    this.#patience.stop();
  }
}
