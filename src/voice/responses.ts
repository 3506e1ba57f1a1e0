// The one response that a voice model has under way: asked for, begun, called off, ended.
//
// Owns:     the response, which ones were called off, and the patience with them.
// Does not: decide what is responded to next, or hold audio (speech).
//
// Invariants
//   F1. One response at a time.
//   F4. An offer ends in exactly one of: heard, interrupted, failed (with `speech`).
//   F6. A response that neither goes on nor ends is called off after `timeoutMs`, and after
//       another moment taken as ended: nobody waits for it for ever.

import type { Environment } from '../actors/ports/environment.ts';
import { Watchdog } from '../actors/session/watchdog.ts';
import { ProviderError } from '../errors.ts';
import type { Attempt } from './attempt.ts';
import type { AudioFrame } from './audio-frame.ts';
import type { Speech } from './speech.ts';
import type { TransportCapabilities, TransportCommand, TransportEvent } from './transport.ts';

/** A response that was cancelled says so within this time, or is taken as ended. */
const CANCEL_GRACE_MS = 3000;

type Ended = Extract<TransportEvent, { type: 'response.ended' }>;

export interface ResponsesPorts {
  send(command: TransportCommand): void;
  /** It was asked for. */
  requested(): void;
  /** It is over. `said`: what it was to say; null: it was a reply. */
  ended(said: Attempt | null, status: Ended['status']): void;
  /** There is room for the next one. */
  settled(): void;
  interrupted(attempt: Attempt): void;
  failed(attempt: Attempt): void;
  report(error: unknown): void;
}

interface Response {
  readonly key: string;
  id: string | null;
  readonly attempt: Attempt | null;
  /** We have asked for its end. */
  isCancelled: boolean;
}

export class Responses {
  readonly #ports: ResponsesPorts;
  readonly #speech: Speech;
  readonly #watchdog: Watchdog;
  readonly #timeoutMs: number;
  readonly #cancels: boolean;
  readonly #cancelled = new Set<string>();
  #response: Response | null = null;
  #replies = 0;

  constructor(
    ports: ResponsesPorts,
    speech: Speech,
    environment: Environment,
    { cancelsResponses }: Pick<TransportCapabilities, 'cancelsResponses'>,
    timeoutMs: number,
  ) {
    this.#ports = ports;
    this.#speech = speech;
    this.#cancels = cancelsResponses;
    this.#timeoutMs = timeoutMs;
    this.#watchdog = new Watchdog(environment, () => this.#overdue());
  }

  get isUnderWay(): boolean {
    return this.#response !== null;
  }

  /** The one under way replies to the user, and was asked for by nobody else. */
  get isReply(): boolean {
    return this.#response !== null && this.#response.attempt === null;
  }

  /** Asks for a reply. */
  reply(): void {
    this.#replies += 1;
    this.#request(`reply:${this.#replies}`, null);
  }

  /** Asks the model to say what was offered. */
  say(attempt: Attempt, instructions: string): void {
    this.#speech.begin(attempt);
    this.#request(attempt.responseKey, attempt, instructions);
  }

  started(responseId: string, responseKey: string | null): void {
    const response = this.#response;
    if (!response || (responseKey !== null && responseKey !== response.key)) return;
    response.id = responseId;
    // It was called off before it had a name.
    if (response.isCancelled) this.#cancelled.add(responseId);
    if (response.attempt) response.attempt.responseId = responseId;
  }

  /** Is this sound of a response that is still wanted? If so it is a sign of life. */
  wants({ responseId }: AudioFrame): boolean {
    if (this.#cancelled.has(responseId ?? '')) return false;
    this.#watchdog.sign();
    return true;
  }

  ended(event: Ended): void {
    const response = this.#response;
    const isOurs = response && (event.responseKey === null || event.responseKey === response.key);
    // A wire that cannot cancel goes on to the end; nobody heard that.
    const wasCancelled = this.#cancelled.delete(event.responseId);
    if (isOurs) {
      this.#response = null;
      this.#watchdog.stop();
      this.#judge(response.attempt, wasCancelled ? { ...event, status: 'cancelled' } : event);
      this.#ports.ended(response.attempt, event.status);
    }
    this.#speech.completed(event.responseId);
    this.#ports.settled();
  }

  /** The wire refused the request. */
  refused(responseKey: string, code: string): void {
    if (responseKey === this.#response?.key) this.#fail(responseKey, code);
  }

  /** Silence, now: the response in the making, and what is sent but not played. */
  stop(): void {
    const response = this.#response;
    if (response && !response.isCancelled) {
      response.isCancelled = true;
      if (response.id !== null) this.#cancelled.add(response.id);
      if (this.#cancels) {
        this.#ports.send({ type: 'response.cancel' });
        this.#watchdog.watch(CANCEL_GRACE_MS);
      }
    }
    const { attempt } = this.#speech;
    this.#speech.stop(attempt !== null && response?.attempt === attempt);
  }

  /** The connection is gone, and with it the response. Returns whether a reply was under way. */
  lost(): boolean {
    const response = this.#response;
    const { attempt } = this.#speech;
    if (attempt && response?.attempt === attempt) {
      this.#speech.giveUp();
      this.#ports.interrupted(attempt);
    }
    this.#response = null;
    this.#watchdog.stop();
    this.#cancelled.clear();
    return response !== null && attempt === null;
  }

  /** Nobody waits any more; what was under way is nobody's concern. */
  stopWatching(): void {
    this.#response = null;
    this.#watchdog.stop();
  }

  #request(responseKey: string, attempt: Attempt | null, instructions?: string): void {
    this.#response = { key: responseKey, id: null, attempt, isCancelled: false };
    this.#watchdog.watch(this.#timeoutMs);
    this.#ports.requested();
    this.#ports.send({
      type: 'response.request',
      responseKey,
      ...(instructions === undefined ? {} : { instructions }),
    });
  }

  /** What the end of the response means for the offer that it was to say. */
  #judge(attempt: Attempt | null, { status, audio }: Ended): void {
    if (!attempt || this.#speech.attempt !== attempt) return;
    if (status === 'completed') attempt.ended(audio);
    if (status === 'completed' && attempt.hasAudio) return;
    this.#speech.giveUp();
    if (status === 'cancelled') this.#ports.interrupted(attempt);
    else this.#ports.failed(attempt);
  }

  #overdue(): void {
    const response = this.#response;
    if (!response) return;
    if (!response.isCancelled) {
      const message = `The model showed no sign of life for ${this.#timeoutMs} ms`;
      this.#ports.report(new ProviderError('RESPONSE_TIMEOUT', message, { retryable: true }));
      this.stop();
      if (this.#cancels) return;
    }
    this.#fail(response.key, 'timeout');
  }

  /** Nothing more will be heard of this response. */
  #fail(responseKey: string, reason: string): void {
    this.ended({
      type: 'response.ended',
      responseId: this.#response?.id ?? '',
      responseKey,
      status: 'failed',
      reason,
      audio: [],
    });
  }
}
