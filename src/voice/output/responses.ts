// The responses of a voice model: the requested one, and those that the model began by itself.
//
// Owns:     the responses, their cancellations, and their timeouts.
// Does not: decide the next response (voice-lead), decide whether an unprompted response is wanted
//           (held-speech), or hold audio (speech).
//
// Invariants
//   RESPONSES-1. At most one response is requested at a time, and none while another one is being generated.
//       If the model began one by itself meanwhile, the requested response counts as interrupted: which of
//       the two the model says is unknown, so the request is repeated; it is also withdrawn, in case it was
//       not sent yet.
//   RESPONSES-4. Each offer ends in exactly one of: heard, interrupted, failed (with `speech`).
//   RESPONSES-8. At most `MAX_OWN` unended responses that the model began by itself are kept: beyond that the
//       oldest counts as ended.
//   RESPONSES-6. A response without progress is cancelled after `timeoutMs`, and counts as ended after a
//       further grace time, so that no component waits for it forever. This holds for requested and
//       unprompted responses.

import type { Environment } from '../../actors/ports/environment.ts';
import { Watchdog } from '../../actors/session/lead/watchdog.ts';
import { ProviderError } from '../../values/errors.ts';
import type { Attempt } from '../connection/attempt.ts';
import type { AudioFrame } from '../audio/audio-frame.ts';
import { RecentIds } from '../audio/recent-ids.ts';
import type { Speech } from './speech.ts';
import type {
  TransportCapabilities,
  TransportCommand,
  TransportEvent,
} from '../connection/transport.ts';

/** A cancelled response reports its end within this time, or counts as ended. */
const CANCEL_GRACE_MS = 3000;
/** The limit of unprompted responses. A model makes one response at a time, so more can only be a fault. */
const MAX_OWN = 16;

type Ended = Extract<TransportEvent, { type: 'response.ended' }>;

export interface ResponsesPorts {
  send(command: TransportCommand): void;
  /** Reports that a response has begun. */
  begun(): void;
  /**
   * Reports the end of the requested response. `said`: the attempt that it spoke; null for a reply.
   * `calledOff`: the session cancelled it.
   */
  ended(said: Attempt | null, status: Ended['status'], calledOff: boolean): void;
  /** Reports that the model may be free for the next request. */
  settled(): void;
  interrupted(attempt: Attempt): void;
  failed(attempt: Attempt): void;
  report(error: unknown): void;
}

interface Asked {
  readonly key: string;
  id: string | null;
  readonly attempt: Attempt | null;
  /** Whether the session has requested its cancellation. */
  isCancelled: boolean;
}

export class Responses {
  readonly #ports: ResponsesPorts;
  readonly #speech: Speech;
  readonly #watchdog: Watchdog;
  readonly #timeoutMs: number;
  readonly #cancels: boolean;
  readonly #isByItself: boolean;
  readonly #cancelled = new RecentIds();
  /** The responses that reply to the user. */
  readonly #replied = new RecentIds();
  /** The responses that the model began by itself, by id; true if cancelled. */
  readonly #own = new Map<string, boolean>();
  readonly #clock: Environment['clock'];
  #asked: Asked | null = null;
  #replies = 0;
  #ownSince = Number.NEGATIVE_INFINITY;

  constructor(
    ports: ResponsesPorts,
    speech: Speech,
    environment: Environment,
    { cancelsResponses, responds }: Pick<TransportCapabilities, 'cancelsResponses' | 'responds'>,
    timeoutMs: number,
  ) {
    this.#ports = ports;
    this.#speech = speech;
    this.#cancels = cancelsResponses;
    this.#isByItself = responds === 'by_itself';
    this.#timeoutMs = timeoutMs;
    this.#clock = environment.clock;
    this.#watchdog = new Watchdog(environment, () => this.#overdue());
  }

  get isUnderWay(): boolean {
    return this.#asked !== null || this.#own.size > 0;
  }

  /** The ids of the responses under way. */
  get underWay(): readonly string[] {
    return [...(this.#asked?.id ? [this.#asked.id] : []), ...this.#own.keys()];
  }

  /**
   * Whether the response under way replies to the user and says no offer; if none is under way, whether the
   * response that still plays does.
   */
  get isReply(): boolean {
    if (!this.isUnderWay) return this.#speech.playingOf.some((id) => this.#replied.has(id));
    return this.#asked === null || this.#asked.attempt === null;
  }

  /** When the model last began a response by itself, in milliseconds since 1970. */
  get ownSince(): number {
    return this.#ownSince;
  }

  /** Requests a reply. */
  reply(): void {
    this.#replies += 1;
    this.#request(`reply:${this.#replies}`, null);
  }

  /** Requests that the model says an offer. */
  say(attempt: Attempt, instructions: string, about: string): void {
    this.#speech.begin(attempt);
    this.#request(attempt.responseKey, attempt, {
      instructions,
      ...(about !== '' && { about }),
    });
  }

  /** Handles the start of a response. Returns whether the model began it by itself. */
  started(responseId: string, responseKey: string | null): boolean {
    const asked = this.#asked;
    if (asked && this.#answers(responseKey, asked)) {
      asked.id = responseId;
      // The response was cancelled before it had an id.
      if (asked.isCancelled) this.#cancelled.add(responseId);
      if (asked.attempt) asked.attempt.responseId = responseId;
      else this.#replied.add(responseId);
      return false;
    }
    if (this.#own.has(responseId)) return false;
    this.#own.set(responseId, false);
    if (this.#own.size > MAX_OWN) this.#forgetOldest();
    this.#replied.add(responseId);
    this.#ownSince = this.#clock.now();
    this.#watchdog.watch(this.#timeoutMs);
    this.#ports.begun();
    // A response that names an older request is unambiguous: the requested response is still to come.
    if (responseKey === null && asked?.id === null) this.#collided(asked);
    return true;
  }

  /** RESPONSES-8 */
  #forgetOldest(): void {
    const [oldest] = this.#own.keys();
    if (oldest === undefined) return;
    const message = `The model has begun more than ${MAX_OWN} responses and ended none: the oldest counts as ended`;
    this.#ports.report(new ProviderError('TOO_MANY_RESPONSES', message));
    this.#gone(oldest, null, 'forgotten');
  }

  /** Returns whether a frame belongs to a wanted response, and if so records a sign of life. */
  wants({ responseId }: AudioFrame): boolean {
    if (this.#cancelled.has(responseId ?? '')) return false;
    this.#watchdog.touch();
    return true;
  }

  ended(event: Ended): void {
    const asked = this.#asked;
    const isOwn = this.#own.delete(event.responseId);
    const isAsked = asked !== null && !isOwn && this.#answers(event.responseKey, asked);
    if (isAsked) this.#asked = null;
    // The key was withdrawn: the response goes on, and it is unknown what it answers.
    if (isAsked && this.#isByItself && asked.id !== null && asked.id !== event.responseId)
      this.#own.set(asked.id, asked.isCancelled);
    if (!this.isUnderWay) this.#watchdog.stop();
    if (isAsked) {
      // A transport that cannot cancel generates to the end; that end was not heard.
      const wasCancelled = this.#cancelled.has(event.responseId);
      this.#judge(asked.attempt, wasCancelled ? { ...event, status: 'cancelled' } : event);
      this.#ports.ended(asked.attempt, event.status, asked.isCancelled);
    }
    this.#speech.completed(event.responseId);
    this.#ports.settled();
  }

  /** Handles the transport's refusal of the request. */
  refused(responseKey: string, code: string): void {
    if (responseKey === this.#asked?.key) this.#fail(responseKey, code);
  }

  /** Stops the generation and the unplayed sound at once. */
  stop(): void {
    const asked = this.#asked;
    let isNew = false;
    if (asked && !asked.isCancelled) {
      asked.isCancelled = isNew = true;
      if (asked.id !== null) this.#cancelled.add(asked.id);
    }
    for (const [id, isCancelled] of this.#own) {
      isNew ||= !isCancelled;
      this.#callOff(id);
    }
    if (isNew) this.#cancel();
    const { attempt } = this.#speech;
    this.#speech.stop(attempt !== null && asked?.attempt === attempt);
  }

  /** Silences an unprompted response. `isOver`: the transport has finished it. */
  silence(responseId: string, isOver: boolean): void {
    if (this.#own.get(responseId) !== false) return;
    this.#callOff(responseId);
    if (!isOver) this.#cancel();
  }

  /**
   * Handles the loss of the connection and of the responses on it. Returns whether one of them was a reply.
   */
  lost(): boolean {
    const asked = this.#asked;
    const { attempt } = this.#speech;
    const wasReply = asked ? asked.attempt === null : [...this.#own.values()].includes(false);
    if (attempt && asked?.attempt === attempt) {
      this.#speech.giveUp();
      this.#ports.interrupted(attempt);
    }
    this.stopWatching();
    this.#cancelled.clear();
    this.#ownSince = Number.NEGATIVE_INFINITY;
    return wasReply;
  }

  /** Cancels the timeouts: the responses under way are no longer waited for. */
  stopWatching(): void {
    this.#asked = null;
    this.#own.clear();
    this.#watchdog.stop();
  }

  /** A response without a key is the requested one only if the model never speaks unprompted. */
  #answers(responseKey: string | null, { key }: Asked): boolean {
    return responseKey === null ? !this.#isByItself : responseKey === key;
  }

  #request(
    responseKey: string,
    attempt: Attempt | null,
    { instructions, about }: { readonly instructions?: string; readonly about?: string } = {},
  ): void {
    this.#asked = { key: responseKey, id: null, attempt, isCancelled: false };
    this.#watchdog.watch(this.#timeoutMs);
    this.#ports.begun();
    this.#ports.send({
      type: 'response.request',
      responseKey,
      ...(instructions === undefined ? {} : { instructions }),
      ...(about === undefined ? {} : { about }),
    });
  }

  #callOff(responseId: string): void {
    this.#own.set(responseId, true);
    this.#cancelled.add(responseId);
  }

  #cancel(): void {
    if (!this.#cancels) {
      if (this.#asked?.id === null) this.#withdraw(this.#asked);
      return;
    }
    this.#ports.send({ type: 'response.cancel' });
    this.#watchdog.watch(CANCEL_GRACE_MS);
  }

  /** Withdraws a request that the transport may still hold. */
  #withdraw({ key: responseKey }: Asked): void {
    this.#ports.send({ type: 'response.withdraw', responseKey });
  }

  /** The model began a response by itself before the requested one (RESPONSES-1). */
  #collided(asked: Asked): void {
    const { attempt, isCancelled } = asked;
    this.#asked = null;
    this.#withdraw(asked);
    if (attempt && this.#speech.attempt === attempt) {
      this.#speech.giveUp();
      this.#ports.interrupted(attempt);
    }
    this.#ports.ended(attempt, 'cancelled', isCancelled);
  }

  /** Derives the outcome of the offer from the end of its response. */
  #judge(attempt: Attempt | null, { status, audio }: Ended): void {
    if (!attempt || this.#speech.attempt !== attempt) return;
    if (status === 'completed') attempt.ended(audio);
    if (status === 'completed' && attempt.hasAudio) return;
    this.#speech.giveUp();
    if (status === 'cancelled') this.#ports.interrupted(attempt);
    else this.#ports.failed(attempt);
  }

  #overdue(): void {
    const isCalledOff =
      this.#asked?.isCancelled !== false && ![...this.#own.values()].includes(false);
    if (!isCalledOff) {
      const message = `The model showed no sign of life for ${this.#timeoutMs} ms`;
      this.#ports.report(new ProviderError('RESPONSE_TIMEOUT', message, { retryable: true }));
      this.stop();
      if (this.#cancels) return;
    }
    // The end of a response frees the model, and a new request may follow at once: that one is not overdue.
    const asked = this.#asked;
    for (const id of this.#own.keys()) this.#gone(id, null, 'timeout');
    if (asked && asked === this.#asked) this.#fail(asked.key, 'timeout');
  }

  #fail(responseKey: string, reason: string): void {
    this.#gone(this.#asked?.id ?? '', responseKey, reason);
  }

  /** Forgets a response: none of its sound will be heard any more. */
  #gone(responseId: string, responseKey: string | null, reason: string): void {
    this.ended({
      type: 'response.ended',
      responseId,
      responseKey,
      status: 'failed',
      reason,
      audio: [],
    });
  }
}
