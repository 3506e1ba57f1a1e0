// The replies that the lead agent owes the user: to their words, or to a tool result.
//
// Owns:     whether a reply is due, and how long a reply is awaited from a model that answers by itself.
// Does not: request it (turns), or know the content of the model's speech.
//
// Invariants
//   REPLIES-1. A model that speaks when asked gets a request for each reply. A model that answers by itself
//       gets one only if it stays silent for `timeoutMs`, and again if that request fails, at most
//       `MAX_ASKED` times: a model that refuses to speak is not asked forever.
//   REPLIES-2. Speech that was under way when a result came is no answer to it, except speech in the response
//       that made the call.
//   REPLIES-3. Speech of the model since the user began to speak answers their words: words that become known
//       later are owed no reply.

import type { Environment } from '../../actors/ports/environment.ts';

const MAX_ASKED = 3;

export interface RepliesOptions {
  /** Whether the model answers the words that it hears without being asked. */
  readonly answersWords: boolean;
  /** Whether it also answers the results of its calls. */
  readonly answersResults: boolean;
  /** Silence of the model after which it is asked, in milliseconds. */
  readonly timeoutMs: number;
}

export class Replies {
  readonly #environment: Environment;
  readonly #options: RepliesOptions;
  readonly #isBusy: () => boolean;
  readonly #overdue: () => void;
  #isDue = false;
  /** The reply did not come in time, and is due unless the model still speaks. */
  #isOverdue = false;
  #hasAnswered = false;
  #isOwed = false;
  /** REPLIES-2: the responses that were under way when the result came. */
  #before: readonly string[] = [];
  #asked = 0;
  #cancel: (() => void) | null = null;

  /**
   * @param isBusy Returns whether any side speaks or is about to: then the model is not silent.
   * @param overdue Called when the model stayed silent and a reply is due.
   */
  constructor(
    environment: Environment,
    options: RepliesOptions,
    isBusy: () => boolean,
    overdue: () => void,
  ) {
    this.#environment = environment;
    this.#options = options;
    this.#isBusy = isBusy;
    this.#overdue = overdue;
  }

  /** Whether the model is about to reply by itself, or should be. */
  get isExpected(): boolean {
    return this.#cancel !== null || this.#isOverdue;
  }

  /** Marks a reply as due. */
  ask(): void {
    this.#forget();
    this.#isDue = true;
    this.#asked = 0;
  }

  /** Whether the model has spoken or acted since the user began to speak. */
  get hasAnswered(): boolean {
    return this.#hasAnswered;
  }

  /** Whether a reply is due or about to be. */
  get isWanted(): boolean {
    return this.#isDue || this.isExpected;
  }

  /**
   * Records that the user's words were addressed to the lead agent; typed words reach the model only with a
   * request. Returns whether a reply is still to come.
   */
  toWords(typed: boolean): boolean {
    this.#isOwed = false;
    if (typed || !this.#options.answersWords) this.ask();
    else if (this.#hasAnswered) return false;
    else this.#expect();
    return true;
  }

  /** Records a tool result that the model is to speak to. `before`: the responses under way (REPLIES-2). */
  toResult(before: readonly string[] = []): void {
    if (this.#options.answersResults) {
      this.#expect();
      this.#before = before;
    } else this.ask();
  }

  /** Handles the start of an utterance: earlier speech of the model is no answer to it. */
  userSpeaks(): void {
    this.#hasAnswered = false;
  }

  /** Records speech or an action that the model began by itself in this response: it counts as the reply. */
  given(responseId?: string): void {
    if (responseId !== undefined && this.#before.includes(responseId)) return;
    this.#hasAnswered = true;
    this.#forget();
  }

  /** Takes the reply that is due. Returns false if none is. */
  take(): boolean {
    const isDue = this.#isDue || this.#isOverdue;
    if (isDue) this.#asked += 1;
    this.#isDue = this.#isOverdue = false;
    return isDue;
  }

  /**
   * Records that the requested response failed without the session's cancelling it: the reply may still come,
   * or is requested again.
   */
  cameToNothing(): void {
    if (!this.#options.answersWords || this.#isDue || this.isExpected) return;
    if (this.#asked < MAX_ASKED) this.#arm();
  }

  /** Records that the reply was cut off for an urgent delivery; it is given afterwards. */
  cutOff(): void {
    this.#isOwed = true;
  }

  /** Handles the end of an urgent delivery. Returns whether a reply was cut off for it and is due now. */
  resume(): boolean {
    if (!this.#isOwed) return false;
    this.#isOwed = false;
    this.ask();
    return true;
  }

  /** Handles a new connection: its model does not answer the history by itself. */
  moved(wasReplying: boolean): void {
    if (wasReplying || this.isExpected) this.ask();
  }

  /** Forgets all owed replies. */
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
      if (this.#isBusy()) {
        this.#await();
        return;
      }
      this.#cancel = null;
      this.#isOverdue = true;
      this.#overdue();
    }, this.#options.timeoutMs);
  }

  #forget(): void {
    this.#before = [];
    this.#cancel?.();
    this.#cancel = null;
    this.#isOverdue = false;
  }
}
