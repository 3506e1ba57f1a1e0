// Determines the cause of the next response. The wire never says which message a response answers, and the
// model also answers by itself: the user's words, and the results of its calls. So a request is sent only
// when there is nothing else to answer, and the next response is its own unless another cause appears before.
//
//   request ──sent──▶ pending ──a response begins──▶ (its key)
//                        └──the user speaks, cancelled, the turn ends empty──▶ ended in vain
//
// GEMINI-LIVE-REQUESTS-1. A response gets the key of a request only if the request was the only message to
//     answer.
// GEMINI-LIVE-REQUESTS-2. Each request ends: with its response, or in vain.
// GEMINI-LIVE-REQUESTS-3. An answer to a request that was cancelled after it was sent is not heard.

import type { Environment } from '../../actors/ports/environment.ts';
import type { TransportEvent } from '../../voice/connection/transport.ts';
import { endedInVain, type Cause } from './model-turns.ts';

/** The model begins to answer within this time, or not at all. */
const ANSWER_MS = 4_000;

export class Requests {
  readonly #environment: Environment;
  readonly #emit: (event: TransportEvent) => void;
  #pending: string | null = null;
  /** Until this time the model may answer a message without being asked. */
  #owesUntil = Number.NEGATIVE_INFINITY;
  /** Whether the user spoke while a request was pending: the model may answer both, one after the other. */
  #answersBoth = false;
  /** A response that begins before this time answers a cancelled request. */
  #unwantedUntil = Number.NEGATIVE_INFINITY;

  constructor(environment: Environment, emit: (event: TransportEvent) => void) {
    this.#environment = environment;
    this.#emit = emit;
  }

  /** Whether a request was sent and has no response yet. */
  get isPending(): boolean {
    return this.#pending !== null;
  }

  /** How long the model may still begin another answer, in milliseconds; 0: it will not. */
  get owedMs(): number {
    return Math.max(0, this.#owesUntil - this.#environment.clock.now());
  }

  /** Records that a request was sent. */
  sent(responseKey: string): void {
    this.#pending = responseKey;
    this.#unwantedUntil = Number.NEGATIVE_INFINITY;
  }

  /** Records a message that the model answers by itself. */
  owes(): void {
    this.#owesUntil = this.#environment.clock.now() + ANSWER_MS;
  }

  /** Records that the model waits for the client: it will not answer. */
  owesNothing(): void {
    this.#owesUntil = Number.NEGATIVE_INFINITY;
  }

  /** Returns the cause of a response that begins (GEMINI-LIVE-REQUESTS-1, GEMINI-LIVE-REQUESTS-3). */
  begins(): Cause {
    const key = this.#pending;
    const isUnwanted = this.#environment.clock.now() < this.#unwantedUntil;
    this.#pending = null;
    this.#unwantedUntil = Number.NEGATIVE_INFINITY;
    this.owesNothing();
    if (this.#answersBoth) this.owes();
    this.#answersBoth = false;
    return { key, isUnwanted };
  }

  /** Records that the user speaks: the next response may answer them. */
  userSpoke(): void {
    this.#answersBoth = this.isPending;
    this.failed('somebody spoke');
    this.#unwantedUntil = Number.NEGATIVE_INFINITY;
  }

  /** Cancels the request that was sent. @returns whether there was one */
  cancel(): boolean {
    if (this.#pending === null) return false;
    this.failed('cancelled');
    this.#unwantedUntil = this.#environment.clock.now() + ANSWER_MS;
    return true;
  }

  /** Ends the request that was sent: it will not be answered, or the answer is uncertain. */
  failed(reason: string, status: 'cancelled' | 'failed' = 'cancelled'): void {
    const responseKey = this.#pending;
    this.#pending = null;
    if (responseKey !== null) this.inVain(responseKey, reason, status);
  }

  inVain(responseKey: string, reason: string, status: 'cancelled' | 'failed' = 'cancelled'): void {
    this.#emit(endedInVain(this.#environment, responseKey, reason, status));
  }
}
