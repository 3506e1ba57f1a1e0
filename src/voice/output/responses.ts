// The responses that a voice model has under way: the one that was asked for, and those
// that it began by itself.
//
// Owns:     the responses, which ones were called off, and the patience with them.
// Does not: decide what is responded to next (voice-lead), whether a response of the model's
//           own is wanted (held-speech), or hold audio (speech).
//
// Invariants
//   RESPONSES-1. One response at a time is asked for, and none while another one is in the making. If
//       the model began one by itself meanwhile, what was asked for is taken as interrupted:
//       which of both it says is not known, so it is said again; and it is taken back, in case
//       that it was not sent yet.
//   RESPONSES-4. An offer ends in exactly one of: heard, interrupted, failed (with `speech`).
//   RESPONSES-8. Of responses that the model begins by itself and never ends at most `MAX_OWN` are kept: the
//       oldest counts as ended.
//   RESPONSES-6. A response that neither goes on nor ends is called off after `timeoutMs`, and after
//       another moment taken as ended: nobody waits for it for ever. Whoever began it.

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

/** A response that was cancelled says so within this time, or is taken as ended. */
const CANCEL_GRACE_MS = 3000;
/** A model makes one response at a time; so many can only be a fault. */
const MAX_OWN = 16;

type Ended = Extract<TransportEvent, { type: 'response.ended' }>;

export interface ResponsesPorts {
  send(command: TransportCommand): void;
  /** One is in the making. */
  begun(): void;
  /**
   * What was asked for is over. `said`: what it was to say; null: it was a reply. `calledOff`: by us.
   */
  ended(said: Attempt | null, status: Ended['status'], calledOff: boolean): void;
  /** There may be room for the next one. */
  settled(): void;
  interrupted(attempt: Attempt): void;
  failed(attempt: Attempt): void;
  report(error: unknown): void;
}

interface Asked {
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
  readonly #isByItself: boolean;
  readonly #cancelled = new RecentIds();
  /** Those that reply to the user. */
  readonly #replied = new RecentIds();
  /** Those that the model began by itself, by id; true: called off. */
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

  /** By their ids. */
  get underWay(): readonly string[] {
    return [...(this.#asked?.id ? [this.#asked.id] : []), ...this.#own.keys()];
  }

  /**
   * What is under way replies to the user, and says nothing that was offered; if nothing is, what
   * still plays.
   */
  get isReply(): boolean {
    if (!this.isUnderWay) return this.#speech.playingOf.some((id) => this.#replied.has(id));
    return this.#asked === null || this.#asked.attempt === null;
  }

  /** When the model last began to respond by itself; milliseconds since 1970. */
  get ownSince(): number {
    return this.#ownSince;
  }

  /** Asks for a reply. */
  reply(): void {
    this.#replies += 1;
    this.#request(`reply:${this.#replies}`, null);
  }

  /** Asks the model to say what was offered. */
  say(attempt: Attempt, instructions: string, about: string): void {
    this.#speech.begin(attempt);
    this.#request(attempt.responseKey, attempt, {
      instructions,
      ...(about !== '' && { about }),
    });
  }

  /** Returns whether the model began it by itself. */
  started(responseId: string, responseKey: string | null): boolean {
    const asked = this.#asked;
    if (asked && this.#answers(responseKey, asked)) {
      asked.id = responseId;
      // It was called off before it had a name.
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
    // One that names an older request leaves no doubt: what was asked for is still to come.
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

  /** Is this sound of a response that is still wanted? If so it is a sign of life. */
  wants({ responseId }: AudioFrame): boolean {
    if (this.#cancelled.has(responseId ?? '')) return false;
    this.#watchdog.sign();
    return true;
  }

  ended(event: Ended): void {
    const asked = this.#asked;
    const isOwn = this.#own.delete(event.responseId);
    const isAsked = asked !== null && !isOwn && this.#answers(event.responseKey, asked);
    if (isAsked) this.#asked = null;
    // Its key was taken back: it goes on, and who knows what it answers.
    if (isAsked && this.#isByItself && asked.id !== null && asked.id !== event.responseId)
      this.#own.set(asked.id, asked.isCancelled);
    if (!this.isUnderWay) this.#watchdog.stop();
    if (isAsked) {
      // A wire that cannot cancel goes on to the end; nobody heard that.
      const wasCancelled = this.#cancelled.has(event.responseId);
      this.#judge(asked.attempt, wasCancelled ? { ...event, status: 'cancelled' } : event);
      this.#ports.ended(asked.attempt, event.status, asked.isCancelled);
    }
    this.#speech.completed(event.responseId);
    this.#ports.settled();
  }

  /** The wire refused the request. */
  refused(responseKey: string, code: string): void {
    if (responseKey === this.#asked?.key) this.#fail(responseKey, code);
  }

  /** Silence, now: what is in the making, and what is sent but not played. */
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

  /** Nobody shall hear this response of the model's own. `isOver`: the wire is done with it. */
  silence(responseId: string, isOver: boolean): void {
    if (this.#own.get(responseId) !== false) return;
    this.#callOff(responseId);
    if (!isOver) this.#cancel();
  }

  /** The connection is gone, and with it what was in the making. Returns whether that was a reply. */
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

  /** Nobody waits any more; what was under way is nobody's concern. */
  stopWatching(): void {
    this.#asked = null;
    this.#own.clear();
    this.#watchdog.stop();
  }

  /** Without a key it is what was asked for only where the model never speaks unasked. */
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

  /** Nobody waits for it, if the transport still holds it. */
  #withdraw({ key: responseKey }: Asked): void {
    this.#ports.send({ type: 'response.withdraw', responseKey });
  }

  /** The model said something of its own before what it was asked for (RESPONSES-1). */
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
    const isCalledOff =
      this.#asked?.isCancelled !== false && ![...this.#own.values()].includes(false);
    if (!isCalledOff) {
      const message = `The model showed no sign of life for ${this.#timeoutMs} ms`;
      this.#ports.report(new ProviderError('RESPONSE_TIMEOUT', message, { retryable: true }));
      this.stop();
      if (this.#cancels) return;
    }
    // Each end makes room, and something else may be asked for then: that is not overdue.
    const asked = this.#asked;
    for (const id of this.#own.keys()) this.#gone(id, null, 'timeout');
    if (asked && asked === this.#asked) this.#fail(asked.key, 'timeout');
  }

  #fail(responseKey: string, reason: string): void {
    this.#gone(this.#asked?.id ?? '', responseKey, reason);
  }

  /** Nothing more will be heard of this response. */
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
