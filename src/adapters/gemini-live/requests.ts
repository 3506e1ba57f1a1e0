// Whose cause the next response has. The wire says of no response what it answers, and
// the model also answers by itself: what the user says, and the results of its calls. So
// a request is sent only when nothing else can be answered, and it has the next response,
// unless something else to answer comes up before.
//
//   request ──sent──▶ pending ──a response begins──▶ (its key)
//                        └──the user speaks, cancelled, the turn ends empty──▶ ended in vain
//
// GEMINI-LIVE-REQUESTS-1. A response gets the key of a request only if nothing but the request was there to be answered.
// GEMINI-LIVE-REQUESTS-2. Each request ends: with its response, or in vain.
// GEMINI-LIVE-REQUESTS-3. What answers a request that was called off after it was sent is not heard.

import type { Environment } from '../../actors/ports/environment.ts';
import type { TransportEvent } from '../../voice/connection/transport.ts';
import { endedInVain, type Cause } from './model-turns.ts';

/** The model begins to answer within this time, or it will not. */
const ANSWER_MS = 4_000;

export class Requests {
  readonly #environment: Environment;
  readonly #emit: (event: TransportEvent) => void;
  #pending: string | null = null;
  /** Until then the model may answer something that nobody asked it to answer. */
  #owesUntil = Number.NEGATIVE_INFINITY;
  /** The user spoke while a request was pending: the model may answer both, one after the other. */
  #answersBoth = false;
  /** What begins until then answers a request that was called off. */
  #unwantedUntil = Number.NEGATIVE_INFINITY;

  constructor(environment: Environment, emit: (event: TransportEvent) => void) {
    this.#environment = environment;
    this.#emit = emit;
  }

  /** A request was sent and has no response yet. */
  get isPending(): boolean {
    return this.#pending !== null;
  }

  /** So long the model may still begin to answer something else, in milliseconds; 0: it will not. */
  get owedMs(): number {
    return Math.max(0, this.#owesUntil - this.#environment.clock.now());
  }

  /** It was sent. */
  sent(responseKey: string): void {
    this.#pending = responseKey;
    this.#unwantedUntil = Number.NEGATIVE_INFINITY;
  }

  /** There is something that the model answers by itself. */
  owes(): void {
    this.#owesUntil = this.#environment.clock.now() + ANSWER_MS;
  }

  /** The model waits for us: it will not answer. */
  owesNothing(): void {
    this.#owesUntil = Number.NEGATIVE_INFINITY;
  }

  /** A response begins (GEMINI-LIVE-REQUESTS-1, GEMINI-LIVE-REQUESTS-3). */
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

  /** The user speaks: whatever comes next may be meant for them. */
  userSpoke(): void {
    this.#answersBoth = this.isPending;
    this.failed('somebody spoke');
    this.#unwantedUntil = Number.NEGATIVE_INFINITY;
  }

  /** The one that was sent is called off. @returns whether there was one */
  cancel(): boolean {
    if (this.#pending === null) return false;
    this.failed('cancelled');
    this.#unwantedUntil = this.#environment.clock.now() + ANSWER_MS;
    return true;
  }

  /** The one that was sent will not be answered, or it is not certain that it is. */
  failed(reason: string, status: 'cancelled' | 'failed' = 'cancelled'): void {
    const responseKey = this.#pending;
    this.#pending = null;
    if (responseKey !== null) this.inVain(responseKey, reason, status);
  }

  inVain(responseKey: string, reason: string, status: 'cancelled' | 'failed' = 'cancelled'): void {
    this.#emit(endedInVain(this.#environment, responseKey, reason, status));
  }
}
