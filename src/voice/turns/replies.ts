// What the lead agent owes the user: a reply to their words, or to what a tool answered.
//
// Owns:     whether a reply is due, and how long one is awaited from a model that answers by
//           itself.
// Does not: ask for it (voice-lead), or know what the model says.
//
// Invariants
//   REPLIES-1. A model that speaks when asked is asked for each reply. One that answers by itself is
//       asked only if it stays silent for `timeoutMs`, and again if that came to nothing, at
//       most `MAX_ASKED` times: a model that will not speak is not asked for ever.
//   REPLIES-2. What it was saying already when a result came is no answer to that, but what it says on in
//       the response that made the call.
//   REPLIES-3. What the model has said since the user began to speak is its answer to them: words
//       that become known later are owed none.

import type { Environment } from '../../actors/ports/environment.ts';

const MAX_ASKED = 3;

export interface RepliesOptions {
  /** The model answers what it hears without being asked. */
  readonly answersWords: boolean;
  /** It also answers the results of its calls. */
  readonly answersResults: boolean;
  /** It may be silent for so long before it is asked. */
  readonly timeoutMs: number;
}

export interface RepliesPorts {
  /** Somebody speaks, or is about to: it is not silent. */
  isBusy(): boolean;
  /** It stayed silent: a reply is due. */
  overdue(): void;
}

export class Replies {
  readonly #environment: Environment;
  readonly #options: RepliesOptions;
  readonly #ports: RepliesPorts;
  #isDue = false;
  /** It was not given in time, and is due unless the model speaks after all. */
  #isOverdue = false;
  #hasAnswered = false;
  #isOwed = false;
  /** REPLIES-2: responses that were under way already. */
  #before: readonly string[] = [];
  #asked = 0;
  #cancel: (() => void) | null = null;

  constructor(environment: Environment, options: RepliesOptions, ports: RepliesPorts) {
    this.#environment = environment;
    this.#options = options;
    this.#ports = ports;
  }

  /** The model is about to reply by itself, or should be. */
  get isExpected(): boolean {
    return this.#cancel !== null || this.#isOverdue;
  }

  /** A reply is to be asked for. */
  ask(): void {
    this.#forget();
    this.#isDue = true;
    this.#asked = 0;
  }

  /** The model has said or done something since the user began to speak. */
  get hasAnswered(): boolean {
    return this.#hasAnswered;
  }

  /** One is due, or about to be. */
  get isWanted(): boolean {
    return this.#isDue || this.isExpected;
  }

  /**
   * The user's words were for the lead agent; what they typed the model hears only when it is
   * asked. Returns whether a reply is still to come.
   */
  toWords(typed: boolean): boolean {
    this.#isOwed = false;
    if (typed || !this.#options.answersWords) this.ask();
    else if (this.#hasAnswered) return false;
    else this.#expect();
    return true;
  }

  /** A tool has answered, and the model shall speak to it. `before`: what it says at the moment (REPLIES-2). */
  toResult(before: readonly string[] = []): void {
    if (this.#options.answersResults) {
      this.#expect();
      this.#before = before;
    } else this.ask();
  }

  /** The user begins to speak: what the model said before is no answer to that. */
  userSpeaks(): void {
    this.#hasAnswered = false;
  }

  /** The model says or does something of its own accord, in this response: that is the reply. */
  given(responseId?: string): void {
    if (responseId !== undefined && this.#before.includes(responseId)) return;
    this.#hasAnswered = true;
    this.#forget();
  }

  /** Takes the reply that is due, if one is. */
  take(): boolean {
    const isDue = this.#isDue || this.#isOverdue;
    if (isDue) this.#asked += 1;
    this.#isDue = this.#isOverdue = false;
    return isDue;
  }

  /** What was asked for came to nothing, and not by our doing: it may still come, or is asked for again. */
  cameToNothing(): void {
    if (!this.#options.answersWords || this.#isDue || this.isExpected) return;
    if (this.#asked < MAX_ASKED) this.#arm();
  }

  /** It was cut off for something urgent, and is given afterwards. */
  cutOff(): void {
    this.#isOwed = true;
  }

  /** What was urgent has been said. Returns whether a reply was cut off for it; it is due now. */
  resume(): boolean {
    if (!this.#isOwed) return false;
    this.#isOwed = false;
    this.ask();
    return true;
  }

  /** Another connection: the model there will not answer by itself what it is told of the past. */
  moved(wasReplying: boolean): void {
    if (wasReplying || this.isExpected) this.ask();
  }

  /** Nothing is owed any more. */
  stop(): void {
    this.#forget();
    this.#isDue = false;
  }

  #expect(): void {
    if (this.#isDue) return;
    this.#asked = 0;
    this.#arm();
  }

  #arm(): void {
    this.#forget();
    this.#await();
  }

  #await(): void {
    this.#cancel = this.#environment.scheduler.schedule(() => {
      if (this.#ports.isBusy()) {
        this.#await();
        return;
      }
      this.#cancel = null;
      this.#isOverdue = true;
      this.#ports.overdue();
    }, this.#options.timeoutMs);
  }

  #forget(): void {
    this.#before = [];
    this.#cancel?.();
    this.#cancel = null;
    this.#isOverdue = false;
  }
}
