// Is what the user says over our speech an interruption? Speech stops at once, whatever it is;
// a noise, or a word of somebody who listens ("mm-hm"), is none, and speech goes on.
//
//   speaking ─ user begins ─▶ in doubt ─┬─ other words, long, once more ─▶ real: broken off
//                                       ├─ a backchannel, a noise ───────▶ false: goes on
//                                       └─ no words in time ─────────────▶ goes on, until they come
//
// Owns:     the doubt, and how long it lasts.
// Does not: stop, keep or break off speech (loudspeaker, model-voice), or read words (answers).
//
// Invariants
//   INTERRUPTIONS-1. The user's voice stops ours at once, in doubt as well (MODEL-VOICE-3).
//   INTERRUPTIONS-2. A doubt ends, once: at the words, when the utterance is longer than `backchannelMs`, when
//       the user begins once more, or `falseInterruptionMs` after they fell silent.
//   INTERRUPTIONS-3. Words that may be an answer are never taken for a backchannel: not while somebody has
//       asked the user, and not over a question of the lead agent.
//       If whoever listens is gone by then, it is one as long as the user speaks.
//   INTERRUPTIONS-4. Words that come after the doubt are still an interruption, if they are one.

import type { Environment } from '../../actors/ports/environment.ts';
import { Watchdog } from '../../actors/session/lead/watchdog.ts';

/** A wire says that the user fell silent so long after they did. */
const END_LAG_MS = 600;

export interface InterruptionsOptions {
  /** How long the doubt may last after the user fell silent; 0: there is none. */
  readonly falseInterruptionMs: number;
  /** A longer utterance is an interruption. */
  readonly backchannelMs: number;
}

export interface InterruptionsPorts {
  /** Stops what is said so that it can go on. False: that cannot be. */
  pause(): boolean;
  isPaused(): boolean;
  goOn(): void;
  /** It was an interruption. */
  breakOff(): void;
  /** The words of somebody who listens, all of them or their beginning, and no answer. */
  backchannelIn(text: string): 'whole' | 'beginning' | 'none';
}

export class Interruptions {
  readonly #options: InterruptionsOptions;
  readonly #ports: InterruptionsPorts;
  readonly #patience: Watchdog;
  /** Who is in doubt, or was let go without words. */
  #utteranceId: string | null = null;
  #hasEnded = false;

  constructor(environment: Environment, options: InterruptionsOptions, ports: InterruptionsPorts) {
    this.#options = options;
    this.#ports = ports;
    this.#patience = new Watchdog(environment, () => this.#overdue());
  }

  /** The user speaks over our speech. */
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

  /** They fell silent. */
  ended(utteranceId: string): void {
    if (utteranceId !== this.#utteranceId || !this.#ports.isPaused()) return;
    this.#hasEnded = true;
    this.#patience.watch(this.#options.falseInterruptionMs);
  }

  /**
   * Words of it are known, all (`final`) or some; empty: there are none. Returns whether they are
   * a backchannel, which nobody has to answer.
   */
  understood(utteranceId: string, text: string, final: boolean): boolean {
    if (utteranceId !== this.#utteranceId) return false;
    const isEmpty = text.trim() === '';
    const reading = isEmpty ? 'beginning' : this.#ports.backchannelIn(text);
    if (!final && reading !== 'none') return false;
    const isFalse = isEmpty || reading === 'whole';
    this.#forget();
    if (!isFalse) this.#ports.breakOff();
    else if (this.#ports.isPaused()) this.#ports.goOn();
    return isFalse && !isEmpty;
  }

  /** What was said is broken off by somebody else, or whoever said it is gone. */
  confirm(): void {
    if (this.#utteranceId === null || !this.#ports.isPaused()) return;
    this.#forget();
    this.#ports.breakOff();
  }

  /** Nobody will say what it was: whoever is still speaking is not spoken over. */
  reset(): void {
    const isSpeaking = this.#utteranceId !== null && !this.#hasEnded;
    this.#forget();
    if (!this.#ports.isPaused()) return;
    if (isSpeaking) this.#ports.breakOff();
    else this.#ports.goOn();
  }

  #overdue(): void {
    if (!this.#ports.isPaused()) return;
    if (this.#hasEnded) this.#ports.goOn();
    else this.confirm();
  }

  #forget(): void {
    this.#utteranceId = null;
    this.#patience.stop();
  }
}
