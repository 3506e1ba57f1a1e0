// A voice model's responses, both requested and unprompted, from the request until their audio has been sent.
//
// Owns:     the requests and cancellations sent to the transport, and the responses' timeouts and held output.
// Does not: track which responses are in progress (turn machine), choose the next request or decide who is addressed
//           (turns), decide whether an unprompted response is wanted (held-speech), or track what is heard (speech).
//
// Invariants
//   RESPONSES-1. At most one response is requested at a time, and none is requested while another response is being
//       generated. If the model starts a response on its own in the meantime, it is unknown which of the two responses
//       the model is saying. The requested response then counts as interrupted and is requested again. The first
//       request is also withdrawn, in case it has not been sent yet.
//   RESPONSES-4. Each offer has exactly one outcome: heard, interrupted or failed (together with `speech`).
//   RESPONSES-6. A response without progress, requested or unprompted, is cancelled after `responseTimeoutMs`. After a
//       further grace period, it counts as ended, so that no component waits for it indefinitely.
//   RESPONSES-8. At most `MAX_OWN` unprompted responses may be in progress. If there are more, the oldest counts as
//       ended.
//   RESPONSES-9. If a response fails, requested or unprompted, the failure is reported with the provider's message.
//       (The transport reports a request that the server rejects.)
//   MODEL-VOICE-3. When the user speaks, the model's speech, including held output, stops immediately.
//   MODEL-VOICE-7. An utterance is answered only once. A reply to words that may be addressed to a subagent is not
//       played before the addressee is known (held-speech).
//   MODEL-WORK-1. A model that reports that it is working counts as generating, and receives no request or offer.
//   MODEL-WORK-2. After `responseTimeoutMs` without activity, such a model counts as idle.

import { withoutUndefined } from '../../values/without-undefined.ts';
import type { LeadSession } from '../../actors/session/lead/lead-agents.ts';
import type { TurnChart } from '../../actors/session/lead/turn-chart.ts';
import { Watchdog } from '../../actors/session/lead/watchdog.ts';
import {
  modelIsBusy,
  replyIsExpected,
  replyIsWanted,
  type TurnResponse,
} from '../../machines/index.ts';
import { ProviderError } from '../../values/errors.ts';
import { forgetOldest } from '../../values/forget-oldest.ts';
import { storableText } from '../../values/storable.ts';
import type { AudioFrame } from '../audio/audio-frame.ts';
import { RecentIds } from '../audio/recent-ids.ts';
import type { Attempt } from '../connection/attempt.ts';
import type {
  TransportCapabilities,
  TransportCommand,
  TransportEvent,
} from '../connection/transport.ts';
import { HeldSpeech } from './held-speech.ts';
import type { ModelMemory } from './model-memory.ts';
import type { Speech } from './speech.ts';
import { NOT_RUN } from './speech-prompts.ts';
import type { Turn } from './turn.ts';

/** If the end of a cancelled response has not been reported after this time, the response counts as ended. */
const CANCEL_GRACE_MS = 3000;
/**
 * The maximum number of unprompted responses. A model produces one response at a time, so a larger number indicates a
 * fault.
 */
const MAX_OWN = 16;
const NO_REASON = 'The model gave no reason';
/** The number of responses to remember, so that late words can be attributed to them. */
const MAX_KNOWN = 100;

export interface ResponsesOptions {
  readonly capabilities: TransportCapabilities;
  readonly responseTimeoutMs: number;
  /** The maximum time that output is held after the user has stopped speaking, in milliseconds. */
  readonly settleTimeoutMs: number;
}

type Ended = Extract<TransportEvent, { type: 'response.ended' }>;

/** The requested response. */
type Asked = TurnResponse & { readonly key: string };

export class Responses {
  /** Holds back responses to words whose addressee is not known yet. */
  readonly held: HeldSpeech;
  readonly #core: LeadSession;
  readonly #speech: Speech;
  readonly #turn: Turn;
  readonly #chart: TurnChart;
  readonly #timeoutMs: number;
  readonly #cancels: boolean;
  readonly #isByItself: boolean;
  readonly #watchdog: Watchdog;
  readonly #cancelled = new RecentIds();
  /** The responses that are replies to the user. */
  readonly #replied = new RecentIds();
  /** For each requested response, the last item that the model had read; null for a response that speaks an offer. */
  readonly #readTo = new Map<string, string | null>();
  /** The last item of the conversation at the time of the request. */
  #requestedAt: string | null = null;
  #ownSince = Number.NEGATIVE_INFINITY;
  /** Whether the last response was cancelled. */
  #wasCalledOff = false;
  /** MODEL-WORK-2 */
  readonly #workWatchdog: Watchdog;

  constructor(
    core: LeadSession,
    memory: ModelMemory,
    speech: Speech,
    turn: Turn,
    { capabilities, responseTimeoutMs, settleTimeoutMs }: ResponsesOptions,
  ) {
    const { environment } = core.host;
    this.#core = core;
    this.#speech = speech;
    this.#turn = turn;
    this.#chart = turn.chart;
    this.#timeoutMs = responseTimeoutMs;
    this.#cancels = capabilities.cancelsResponses;
    this.#isByItself = capabilities.responds === 'by_itself';
    this.#watchdog = new Watchdog(environment, () => this.#overdue());
    this.#workWatchdog = new Watchdog(environment, () => {
      const message = `The model announced work, and sent no further event for ${responseTimeoutMs} ms`;
      this.#reportTimeout(message);
      this.#workChanged('idle');
    });
    this.held = new HeldSpeech(
      environment,
      {
        isUndecided: () => turn.isUndecided,
        hasFloor: () => turn.userHasFloor,
        play: (frame, acknowledges) => this.#play(frame, acknowledges),
        handle: (event) => turn.handle(event),
        silenced: (responseId, isOver, wasHeard) => {
          this.#silenceOwn(responseId, isOver);
          if (!wasHeard) memory.silenced();
        },
        refused: (callId) =>
          turn.send({ type: 'tool.answer', callId, output: NOT_RUN, silent: true }),
        unplayed: (itemId) => memory.unplayed(itemId),
      },
      {
        patienceMs: settleTimeoutMs,
        isInRealTime: capabilities.speaksInRealTime ?? false,
      },
    );
  }

  /** Whether a response is being generated, or the model is working outside a response. */
  get isBusy(): boolean {
    return modelIsBusy(this.#chart.snapshot);
  }

  /** Whether speech is being generated or played, so that the user could interrupt it. */
  get isSpeaking(): boolean {
    return this.#isUnderWay || !this.#speech.isSilent;
  }

  /**
   * Whether all speech that is being generated has been cancelled. The model cannot say anything else before this
   * speech ends. Some transports report the end immediately, and hold back the next request until the model has
   * actually finished.
   */
  get isCalledOff(): boolean {
    const { responses } = this.#chart.context;
    const isKept = this.#wasCalledOff && this.#asked?.id === null;
    return isKept || (responses.length > 0 && responses.every(({ isCancelled }) => isCancelled));
  }

  /**
   * Whether the current response is a reply to the user rather than an offer. Without a current response: whether the
   * response that is still playing is a reply to the user.
   */
  get isReply(): boolean {
    if (!this.#isUnderWay) return this.#speech.playingOf.some((id) => this.#replied.has(id));
    return this.#asked?.says !== 'offer';
  }

  /**
   * Returns the last item that the model had read when it started this reply. Null if the response speaks an offer;
   * undefined if it is unprompted.
   */
  repliesTo(responseId: string): string | null | undefined {
    return this.#readTo.get(responseId);
  }

  /** When the last unprompted response started, in milliseconds since 1970. */
  get ownSince(): number {
    return this.#ownSince;
  }

  /** Requests a reply. */
  reply(key: string): void {
    this.#request(key);
  }

  /** Requests that the model speak an offer. */
  say(attempt: Attempt, instructions: string, about: string): void {
    this.#speech.attempt = attempt;
    this.#request(attempt.responseKey, {
      instructions,
      ...(about !== '' && { about }),
      subject: attempt.offer.deliveryId,
    });
  }

  /** Stops the speech of an attempt that is no longer needed. */
  abandon(generation: number): void {
    if (this.#speech.attempt?.offer.generation !== generation) return;
    this.#speech.attempt = null;
    this.#stopAll();
  }

  handleFrame(frame: AudioFrame): void {
    if (!this.held.handleFrame(frame)) this.#play(frame);
  }

  /** Handles events of responses, and events that have to be held back. Returns whether the event was handled. */
  handle(event: TransportEvent): boolean {
    if (this.held.handleEvent(event)) return true;
    if (event.type === 'response.started') {
      const isOwn = this.#started(event.responseId, event.responseKey);
      if (isOwn) this.held.began(event.responseId);
    } else if (event.type === 'response.ended') this.#endedOnWire(event);
    else if (event.type === 'model.changed') this.#workChanged(event.status);
    else return false;
    return true;
  }

  /** Handles the transport's refusal of the request. */
  refused(responseKey: string, code: string): void {
    if (responseKey === this.#asked?.key) this.#fail(responseKey, code);
  }

  /** Records that a working model has shown activity and is not stuck. */
  sign(): void {
    if (this.#chart.snapshot.matches({ model: 'working' })) this.#workWatchdog.touch();
  }

  /** Stops all speech immediately. */
  silence(): void {
    this.held.silence();
    this.#stopAll();
  }

  /** Handles the loss of the client. Unplayed audio counts as not heard, because no report about it will follow. */
  clientLeft(): void {
    this.#speech.stopWaiting();
    this.#speech.attempt = null;
    this.silence();
    this.#speech.stopWaiting();
  }

  /**
   * Handles the loss of the connection and its responses. Audio that has already been sent is still played. Returns
   * whether a reply was being generated.
   */
  lost(): boolean {
    this.#speech.completedAll();
    const asked = this.#asked;
    const { attempt } = this.#speech;
    const wasReply = asked
      ? asked.says === 'reply'
      : this.#own.some(({ isCancelled }) => !isCancelled);
    if (attempt && asked?.key === attempt.responseKey) {
      this.#speech.attempt = null;
      this.#speech.notHeard('delivery.interrupted', attempt);
    }
    this.#forgetAll();
    this.#cancelled.clear();
    this.#ownSince = Number.NEGATIVE_INFINITY;
    return wasReply;
  }

  /** Stops permanently. */
  stop(): void {
    this.#forgetAll();
    this.#speech.complete();
  }

  get #isUnderWay(): boolean {
    return this.#chart.context.responses.length > 0;
  }

  get #asked(): Asked | null {
    const isAsked = (response: TurnResponse): response is Asked => response.key !== null;
    return this.#chart.context.responses.find(isAsked) ?? null;
  }

  /** Unprompted responses. */
  get #own(): readonly TurnResponse[] {
    return this.#chart.context.responses.filter(({ key }) => key === null);
  }

  #request(
    responseKey: string,
    {
      instructions,
      about,
      subject,
    }: Pick<
      Extract<TransportCommand, { type: 'response.request' }>,
      'instructions' | 'about' | 'subject'
    > = {},
  ): void {
    this.#watchdog.watch(this.#timeoutMs);
    this.#requestedAt = this.#core.records.conversation.items.at(-1)?.id ?? null;
    this.#turn.send({
      type: 'response.request',
      responseKey,
      ...withoutUndefined({ instructions, about, subject }),
    });
  }

  /** Handles the start of a response. Returns whether the response is unprompted. */
  #started(responseId: string, responseKey: string | null): boolean {
    const asked = this.#asked;
    this.#wasCalledOff = false;
    if (asked && this.#answers(responseKey, asked)) {
      this.#chart.send({ type: 'response.started', key: asked.key, responseId });
      // The response was cancelled before its id was known.
      if (asked.isCancelled) this.#cancelled.add(responseId);
      const attempt = this.#attemptOf(asked);
      if (attempt) attempt.responseId = responseId;
      if (asked.says === 'reply') this.#replied.add(responseId);
      this.#readTo.set(responseId, asked.says === 'reply' ? this.#requestedAt : null);
      forgetOldest(this.#readTo, MAX_KNOWN);
      return false;
    }
    if (this.#own.some(({ id }) => id === responseId)) return false;
    this.#chart.send({ type: 'response.began', responseId });
    if (this.#own.length > MAX_OWN) this.#forgetOldest();
    this.#replied.add(responseId);
    this.#ownSince = this.#core.host.environment.clock.now();
    this.#watchdog.watch(this.#timeoutMs);
    // A response with the key of an older request is not the requested response, which is still to come.
    if (responseKey === null && asked?.id === null) this.#collided(asked);
    return true;
  }

  /**
   * Returns whether a response with this key is the requested one. A response without a key is the requested one unless
   * the model may speak unprompted.
   */
  #answers(responseKey: string | null, { key }: Asked): boolean {
    return responseKey === null ? !this.#isByItself : responseKey === key;
  }

  /** RESPONSES-8 */
  #forgetOldest(): void {
    const oldest = this.#own[0]?.id ?? null;
    if (oldest === null) return;
    const message = `The model has begun more than ${MAX_OWN} responses and ended none: the oldest counts as ended`;
    this.#core.reportError(new ProviderError('TOO_MANY_RESPONSES', message), 'transport');
    this.#gone(oldest, null, 'forgotten');
  }

  /** Handles an unprompted response that started before the requested one (RESPONSES-1). */
  #collided(asked: Asked): void {
    this.#chart.send({ type: 'request.ended', continuesAs: null });
    this.#withdraw(asked);
    const attempt = this.#attemptOf(asked);
    if (attempt) {
      this.#speech.attempt = null;
      this.#speech.notHeard('delivery.interrupted', attempt);
    }
    this.#turn.responded(asked.says, 'cancelled', asked.isCancelled);
  }

  /** Returns the attempt that a requested response speaks; null if the session has abandoned the attempt. */
  #attemptOf({ key }: Asked): Attempt | null {
    const { attempt } = this.#speech;
    return attempt?.responseKey === key ? attempt : null;
  }

  #play(frame: AudioFrame, acknowledges = false): void {
    if (this.#cancelled.has(frame.responseId ?? '')) return;
    this.#watchdog.touch();
    this.sign();
    this.#turn.beforeSpeech();
    if (this.isReply) this.#turn.replying(frame.responseId ?? '');
    this.#speech.play(frame, acknowledges);
  }

  /** Handles the end of a response as reported by the transport. RESPONSES-9 */
  #endedOnWire(event: Ended): void {
    const { status, responseId, responseKey } = event;
    const isCalledOff =
      this.#cancelled.has(responseId) ||
      (responseKey !== null && this.#asked?.key === responseKey && this.#asked.isCancelled);
    this.#ended(event);
    if (status !== 'failed' || isCalledOff) return;
    const message = `The response failed: ${event.reason ?? NO_REASON}`;
    this.#core.reportError(new ProviderError('MODEL_ERROR', message), 'voice model');
  }

  #ended(event: Ended): void {
    const asked = this.#asked;
    const { responseId } = event;
    if (this.#cancelled.has(responseId)) this.#wasCalledOff = true;
    const isOwn = this.#own.some(({ id }) => id === responseId);
    if (isOwn) this.#chart.send({ type: 'response.ended', responseId });
    const isAsked = asked !== null && !isOwn && this.#answers(event.responseKey, asked);
    if (isAsked) {
      // Only the request has ended. The response continues, and it is unknown what it is a reply to.
      const continues = this.#isByItself && asked.id !== null && asked.id !== responseId;
      const continuesAs = continues ? asked.id : null;
      const done = event.status === 'completed' || event.reason === 'nothing_said';
      this.#chart.send({ type: 'request.ended', continuesAs, done });
    }
    if (!this.#isUnderWay) this.#watchdog.stop();
    if (isAsked) {
      // A transport that cannot cancel a response generates it to the end, although the user does not hear the end.
      const wasCancelled = this.#cancelled.has(responseId);
      this.#judge(this.#attemptOf(asked), wasCancelled ? { ...event, status: 'cancelled' } : event);
      this.#turn.responded(asked.says, event.status, asked.isCancelled);
    }
    this.#speech.completed(responseId);
    this.#turn.next();
    if (event.status === 'failed' && !this.#cancelled.has(responseId))
      this.#noteFailure(event.reason);
  }

  /** Records the failure, and whether the turn requests the reply again. */
  #noteFailure(reason: string | null): void {
    const { snapshot, context } = this.#chart;
    const core = this.#core;
    if (core.unit.unit.disposed) return;
    const agentName = core.agents.current.name;
    const isAskedAgain = replyIsWanted(snapshot);
    const failed = Math.max(1, context.asked - (snapshot.matches({ reply: 'asked' }) ? 1 : 0));
    const error = {
      code: reason === 'timeout' ? 'RESPONSE_TIMEOUT' : 'MODEL_ERROR',
      message: storableText(reason ?? NO_REASON),
      retryable: isAskedAgain,
    };
    if (!isAskedAgain) core.receive('lead', { type: 'model.failed', agentName, failed, error });
    else
      core.receive('lead', {
        type: 'model.retried',
        agentName,
        failed,
        attempts: context.maxAsked,
        retryAt: replyIsExpected(snapshot) ? context.replyBy : core.host.environment.clock.now(),
        error,
      });
  }

  /** Derives the outcome of an offer from the way its response ended. */
  #judge(attempt: Attempt | null, { status, audio }: Ended): void {
    if (!attempt) return;
    if (status === 'completed') attempt.ended(audio);
    if (status === 'completed' && attempt.hasAudio) return;
    this.#speech.attempt = null;
    this.#speech.notHeard(
      status === 'cancelled' ? 'delivery.interrupted' : 'delivery.failed',
      attempt,
    );
  }

  /** Immediately stops generation and drops the unplayed audio. */
  #stopAll(): void {
    const asked = this.#asked;
    const { responses } = this.#chart.context;
    for (const { id } of responses) if (id !== null) this.#cancelled.add(id);
    if (responses.some(({ isCancelled }) => !isCancelled)) {
      this.#chart.send({ type: 'response.cancelled', responseId: null });
      this.#cancel();
    }
    const { attempt } = this.#speech;
    this.#speech.stop(attempt !== null && asked?.key === attempt.responseKey);
  }

  /** Silences an unprompted response. `isOver`: the transport has reported its end. */
  #silenceOwn(responseId: string, isOver: boolean): void {
    if (!this.#own.some(({ id, isCancelled }) => id === responseId && !isCancelled)) return;
    this.#chart.send({ type: 'response.cancelled', responseId });
    this.#cancelled.add(responseId);
    if (!isOver) this.#cancel();
  }

  #cancel(): void {
    if (!this.#cancels) {
      if (this.#asked?.id === null) this.#withdraw(this.#asked);
      return;
    }
    this.#turn.send({ type: 'response.cancel' });
    this.#watchdog.watch(CANCEL_GRACE_MS);
  }

  /** Withdraws a request that the transport may not have sent yet. */
  #withdraw({ key: responseKey }: Asked): void {
    this.#turn.send({ type: 'response.withdraw', responseKey });
  }

  #overdue(): void {
    const isCalledOff = this.#chart.context.responses.every(({ isCancelled }) => isCancelled);
    if (!isCalledOff) {
      this.#reportTimeout(`The model showed no activity for ${this.#timeoutMs} ms`);
      this.#stopAll();
      if (this.#cancels) return;
    }
    // When a response ends, the next request may follow immediately. That request is not overdue.
    const asked = this.#asked;
    for (const { id } of this.#own) this.#gone(id ?? '', null, 'timeout');
    if (asked && asked.key === this.#asked?.key) this.#fail(asked.key, 'timeout');
  }

  #fail(responseKey: string, reason: string): void {
    this.#gone(this.#asked?.id ?? '', responseKey, reason);
  }

  /** Marks a response as failed although the transport has not reported its end. */
  #gone(responseId: string, responseKey: string | null, reason: string): void {
    const type = 'response.ended';
    this.#ended({ type, responseId, responseKey, status: 'failed', reason, audio: [] });
  }

  /** MODEL-WORK-1 */
  #workChanged(status: 'working' | 'idle'): void {
    const wasWorking = this.#chart.snapshot.matches({ model: 'working' });
    if (status === 'working') {
      this.#workWatchdog.watch(this.#timeoutMs);
      this.#chart.send({ type: 'model.working' });
    } else {
      this.#workWatchdog.stop();
      this.#chart.send({ type: 'model.idle' });
      if (wasWorking) this.#turn.next();
    }
  }

  /** Removes all responses and their held output, because no component waits for them any more. */
  #forgetAll(): void {
    this.held.reset();
    this.#wasCalledOff = false;
    this.#workWatchdog.stop();
    this.#chart.send({ type: 'responses.lost' });
    this.#watchdog.stop();
  }

  #reportTimeout(message: string): void {
    const error = new ProviderError('RESPONSE_TIMEOUT', message, { retryable: true });
    this.#core.reportError(error, 'transport');
  }
}
