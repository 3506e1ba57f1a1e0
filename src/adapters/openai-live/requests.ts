// Determines which response answers a request. The wire never reports it: the model reads an appended text
// and speaks at a time of its own choice, as it also does to the user and for its own tasks.
//
//   asked ─▶ held ──nothing else may make the model speak──▶ sent ──taken in──▶ may be said
//              └── called off: never sent                     │                     │
//     speech, and no other cause: ours ◀──────────────────────┼─────────────────────┤
//     speech before, or with another cause; none for `timeoutMs`: lapsed ◀──────────┤
//     called off: lapsed; if it is said all the same, it is dropped ◀───────────────┘
//
// Owns: the one request that is under way, and what else may make the model speak. Does not:
// say or hear anything.
//
// OPENAI-LIVE-REQUESTS-1. A response answers the request only if it began after the server took the text in,
//     and has no other possible cause: since the text was sent the user said nothing, there was no
//     delegation, and no other text to be said.
// OPENAI-LIVE-REQUESTS-2. Another cause is forgotten after the response that follows it, or after `causeMs`.
// OPENAI-LIVE-REQUESTS-3. Each request ends once: answered, lapsed, or refused.
// OPENAI-LIVE-REQUESTS-4. A request is sent when the model is silent and has no other cause to speak: while
//     it talks, heard or not, or may be about to, the request is held. A request that was never sent is never
//     spoken: it can be withdrawn and repeated without being said twice.

import type { Environment } from '../../actors/ports/environment.ts';
import type { TransportEvent } from '../../voice/connection/transport.ts';

export interface RequestsOptions {
  /** The time from the request until the model speaks, in milliseconds. */
  readonly timeoutMs: number;
  /** The time after another cause in which the model may still speak because of it, in milliseconds. */
  readonly causeMs: number;
}

/** The cause of the model's speech. */
export interface Claim {
  /** The request that it answers, if that is certain. */
  readonly responseKey: string | null;
  /** The request that failed, because this may or may not be its answer. */
  readonly lapsedKey: string | null;
  /** It can only answer a cancelled request, and is not to be heard. */
  readonly isUnwanted: boolean;
}

export interface RequestsPorts {
  /** Returns whether the model speaks, heard or unheard. */
  isSpeaking(): boolean;
  /** Reports that the request failed: it was cancelled, or the model stayed silent. */
  lapsed(responseKey: string, reason: string): void;
}

interface Request {
  readonly responseKey: string;
  readonly ticket: string;
  isAccepted: boolean;
  /** When it was cancelled; null if it was not. */
  cancelledAt: number | null;
}

/** OPENAI-LIVE-REQUESTS-4. `send` sends the text to the model, and returns its ticket. */
interface Held {
  readonly responseKey: string;
  readonly send: () => string;
}

export class Requests {
  readonly #environment: Environment;
  readonly #options: RequestsOptions;
  readonly #ports: RequestsPorts;
  #held: Held | null = null;
  #cancelHold: () => void = () => {};
  #request: Request | null = null;
  #lastCauseAt: number | null = null;
  #cancelTimeout: () => void = () => {};

  constructor(environment: Environment, options: RequestsOptions, ports: RequestsPorts) {
    this.#environment = environment;
    this.#options = options;
    this.#ports = ports;
  }

  /**
   * Requests a response by the text that `send` sends to the model, now or later (OPENAI-LIVE-REQUESTS-4).
   */
  ask(responseKey: string, send: () => string): void {
    this.#held = { responseKey, send };
    this.reconsider();
  }

  /** Sends the held request if the model is silent and has no other cause to speak. */
  reconsider(): void {
    this.#cancelHold();
    this.#cancelHold = () => {};
    if (!this.#held || this.#ports.isSpeaking()) return;
    const waitMs = Math.max(this.#causeForMs, this.#calledOffForMs);
    if (waitMs > 0)
      this.#cancelHold = this.#environment.scheduler.schedule(() => this.reconsider(), waitMs);
    else this.#send(this.#held);
  }

  /** Withdraws a request that was not sent yet; any, without a key. */
  withdraw(responseKey: string | null): void {
    const held = this.#held;
    if (!held || (responseKey !== null && held.responseKey !== responseKey)) return;
    this.#held = null;
    this.#cancelHold();
    this.#ports.lapsed(held.responseKey, 'cancelled');
  }

  /** Records that the server took in the text of this ticket. */
  accepted(ticket: string): void {
    if (this.#request?.ticket === ticket) this.#request.isAccepted = true;
  }

  /** Records that the server refused the text of this ticket. @returns the key of its request */
  refused(ticket: string): string | null {
    const request = this.#request;
    if (request?.ticket !== ticket) return null;
    this.#end();
    return request.cancelledAt === null ? request.responseKey : null;
  }

  /** Cancels the request; a text that was sent to the model cannot be withdrawn. */
  cancel(): void {
    const request = this.#request;
    if (!request || request.cancelledAt !== null) return;
    request.cancelledAt = this.#environment.clock.now();
    this.#ports.lapsed(request.responseKey, 'cancelled');
  }

  /** Records another cause for the model to speak. */
  otherCause(): void {
    this.#lastCauseAt = this.#environment.clock.now();
  }

  /** Returns the cause of the speech that begins. */
  claim(): Claim {
    const request = this.#end();
    const hasOtherCause = this.#causeForMs > 0;
    this.#lastCauseAt = null;
    if (!request) return { responseKey: null, lapsedKey: null, isUnwanted: false };
    const { responseKey, isAccepted, cancelledAt } = request;
    const isOurs = isAccepted && !hasOtherCause;
    if (cancelledAt !== null) return { responseKey: null, lapsedKey: null, isUnwanted: isOurs };
    return isOurs
      ? { responseKey, lapsedKey: null, isUnwanted: false }
      : { responseKey: null, lapsedKey: responseKey, isUnwanted: false };
  }

  stop(): void {
    this.#held = null;
    this.#cancelHold();
    this.#end();
  }

  #send({ responseKey, send }: Held): void {
    this.#held = null;
    this.#end();
    this.#request = { responseKey, ticket: send(), isAccepted: false, cancelledAt: null };
    this.#cancelTimeout = this.#environment.scheduler.schedule(() => {
      const request = this.#end();
      if (request?.cancelledAt === null) this.#ports.lapsed(responseKey, 'nothing_said');
    }, this.#options.timeoutMs);
  }

  /** OPENAI-LIVE-REQUESTS-2: how long the model may still speak because of another cause. */
  get #causeForMs(): number {
    if (this.#lastCauseAt === null) return 0;
    return this.#lastCauseAt + this.#options.causeMs - this.#environment.clock.now();
  }

  /** How long an earlier, cancelled request may still be answered. */
  get #calledOffForMs(): number {
    const { cancelledAt = null } = this.#request ?? {};
    if (cancelledAt === null) return 0;
    return cancelledAt + this.#options.causeMs - this.#environment.clock.now();
  }

  #end(): Request | null {
    const request = this.#request;
    this.#request = null;
    this.#cancelTimeout();
    this.#cancelTimeout = () => {};
    return request;
  }
}

/** Returns the end of a request that failed. */
export function nothingSaid(
  { ids }: Environment,
  responseKey: string,
  reason: string,
): Extract<TransportEvent, { type: 'response.ended' }> {
  return {
    type: 'response.ended',
    responseId: ids.next('response'),
    responseKey,
    status: 'cancelled',
    reason,
    audio: [],
  };
}
