// Which response says what we asked for. The wire never says: the model reads an appended
// text, and speaks when it finds the time, as it also does to the user and to its own tasks.
//
//   asked ──taken in──▶ may be said ──speech, and no other cause──▶ ours
//     │                     ├── speech, but it may have another cause ──▶ lapsed
//     │                     ├── no speech for `timeoutMs` ──▶ lapsed
//     └── speech before ────┴── called off ──▶ lapsed; if it is said all the same, it is dropped
//
// Owns: the one request that is under way, and what else may make the model speak. Does not:
// say or hear anything.
//
// Q1. A response is ours only if it began after the server took our text in, and nothing
//     else could have caused it: no response was in the making, and since the last one the
//     user said nothing, nothing was delegated, no other text was given to be said, and
//     nothing else was asked for and called off.
// Q2. Another cause is forgotten with the response that follows it, or after `causeMs`.
// Q3. Each request ends once: ours, lapsed, or refused.

import type { Environment } from '../../actors/ports/environment.ts';
import type { TransportEvent } from '../../voice/transport.ts';

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

interface Request {
  readonly responseKey: string;
  readonly ticket: string;
  isAccepted: boolean;
  isCertain: boolean;
  isCancelled: boolean;
}

export class Requests {
  readonly #environment: Environment;
  readonly #options: RequestsOptions;
  /** The request came to nothing: it was called off, or nothing was said. */
  readonly #lapsed: (responseKey: string, reason: string) => void;
  #request: Request | null = null;
  #lastCauseAt: number | null = null;
  #cancelTimeout: () => void = () => {};

  constructor(
    environment: Environment,
    options: RequestsOptions,
    lapsed: (responseKey: string, reason: string) => void,
  ) {
    this.#environment = environment;
    this.#options = options;
    this.#lapsed = lapsed;
  }

  /** `ticket`: of the text that asks for it. `isSpeaking`: the model is at something else. */
  ask(responseKey: string, ticket: string, isSpeaking: boolean): void {
    // What was asked for before, and called off, may still be said.
    if (this.#end()) this.otherCause();
    const isCertain = !isSpeaking;
    this.#request = { responseKey, ticket, isAccepted: false, isCertain, isCancelled: false };
    this.#cancelTimeout = this.#environment.scheduler.schedule(() => {
      const request = this.#end();
      if (request && !request.isCancelled) this.#lapsed(responseKey, 'nothing_said');
    }, this.#options.timeoutMs);
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
    return request.isCancelled ? null : request.responseKey;
  }

  /** Nobody wants to hear it any more; what was given to the model cannot be taken back. */
  cancel(): void {
    const request = this.#request;
    if (!request || request.isCancelled) return;
    request.isCancelled = true;
    this.#lapsed(request.responseKey, 'cancelled');
  }

  /** Something else happened that the model may speak to. */
  otherCause(): void {
    this.#lastCauseAt = this.#environment.clock.now();
  }

  /** The model begins to speak. */
  claim(): Claim {
    const request = this.#end();
    const hasOtherCause =
      this.#lastCauseAt !== null &&
      this.#environment.clock.now() - this.#lastCauseAt < this.#options.causeMs;
    this.#lastCauseAt = null;
    if (!request) return { responseKey: null, lapsedKey: null, isUnwanted: false };
    const { responseKey, isAccepted, isCertain, isCancelled } = request;
    const isOurs = isAccepted && isCertain && !hasOtherCause;
    if (isCancelled) return { responseKey: null, lapsedKey: null, isUnwanted: isOurs };
    return isOurs
      ? { responseKey, lapsedKey: null, isUnwanted: false }
      : { responseKey: null, lapsedKey: responseKey, isUnwanted: false };
  }

  stop(): void {
    this.#end();
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
