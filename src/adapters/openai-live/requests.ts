// Which response says what we asked for. The wire never says: the model reads an appended
// text, and speaks when it finds the time, as it also does to the user and to its own tasks.
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
// OPENAI-LIVE-REQUESTS-1. A response is ours only if it began after the server took our text in, and nothing
//     else could have caused it: since it was sent the user said nothing, nothing was
//     delegated, and no other text was given to be said.
// OPENAI-LIVE-REQUESTS-2. Another cause is forgotten with the response that follows it, or after `causeMs`.
// OPENAI-LIVE-REQUESTS-3. Each request ends once: ours, lapsed, or refused.
// OPENAI-LIVE-REQUESTS-4. A request is sent when the model is silent and nothing else may make it speak: while it
//     talks, heard or not, or may be about to, the request is held. What was never sent is never
//     said: it can be taken back, and asked for again, without being said twice.

import type { Environment } from '../../actors/ports/environment.ts';
import type { TransportEvent } from '../../voice/connection/transport.ts';

export interface RequestsOptions {
  /** From the request until the model speaks. */
  readonly timeoutMs: number;
  /** So long after another cause the model may still speak because of it. */
  readonly causeMs: number;
}

/** Why the model speaks. */
export interface Claim {
  /** The request that it answers, if that is certain. */
  readonly responseKey: string | null;
  /** The request that came to nothing, since this may or may not be its answer. */
  readonly lapsedKey: string | null;
  /** It can only be the answer to a request that was called off: nobody shall hear it. */
  readonly isUnwanted: boolean;
}

export interface RequestsPorts {
  /** The model speaks, heard or unheard. */
  isSpeaking(): boolean;
  /** The request came to nothing: it was called off, or nothing was said. */
  lapsed(responseKey: string, reason: string): void;
}

interface Request {
  readonly responseKey: string;
  readonly ticket: string;
  isAccepted: boolean;
  /** When it was called off; null: it was not. */
  cancelledAt: number | null;
}

/** OPENAI-LIVE-REQUESTS-4. `send` gives the text to the model, and returns its ticket. */
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

  /** Asks for a response by the text that `send` gives to the model, now or later (OPENAI-LIVE-REQUESTS-4). */
  ask(responseKey: string, send: () => string): void {
    this.#held = { responseKey, send };
    this.reconsider();
  }

  /** The model may have fallen silent: what is held is sent, if nothing else may make it speak. */
  reconsider(): void {
    this.#cancelHold();
    this.#cancelHold = () => {};
    if (!this.#held || this.#ports.isSpeaking()) return;
    const waitMs = Math.max(this.#causeForMs, this.#calledOffForMs);
    if (waitMs > 0)
      this.#cancelHold = this.#environment.scheduler.schedule(() => this.reconsider(), waitMs);
    else this.#send(this.#held);
  }

  /** Takes a request back that was not sent yet; any, without a key. */
  withdraw(responseKey: string | null): void {
    const held = this.#held;
    if (!held || (responseKey !== null && held.responseKey !== responseKey)) return;
    this.#held = null;
    this.#cancelHold();
    this.#ports.lapsed(held.responseKey, 'cancelled');
  }

  /** The server took the text of this ticket in. */
  accepted(ticket: string): void {
    if (this.#request?.ticket === ticket) this.#request.isAccepted = true;
  }

  /** The server refused the text of this ticket. @returns the request that it asked for */
  refused(ticket: string): string | null {
    const request = this.#request;
    if (request?.ticket !== ticket) return null;
    this.#end();
    return request.cancelledAt === null ? request.responseKey : null;
  }

  /** Nobody wants to hear it any more; what was given to the model cannot be taken back. */
  cancel(): void {
    const request = this.#request;
    if (!request || request.cancelledAt !== null) return;
    request.cancelledAt = this.#environment.clock.now();
    this.#ports.lapsed(request.responseKey, 'cancelled');
  }

  /** Something else happened that the model may speak to. */
  otherCause(): void {
    this.#lastCauseAt = this.#environment.clock.now();
  }

  /** The model begins to speak. */
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

  /** OPENAI-LIVE-REQUESTS-2: for so long the model may still speak because of something else. */
  get #causeForMs(): number {
    if (this.#lastCauseAt === null) return 0;
    return this.#lastCauseAt + this.#options.causeMs - this.#environment.clock.now();
  }

  /** What was asked for before, and called off, may still be said: for so long it is waited for. */
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

/** The end of a request that came to nothing. */
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
