// The user's side of a spoken conversation: when they speak, and their words.
//
// Owns:     whether the user's speech holds the floor, and how long the session waits for a transcript.
// Does not: decide the answer, or the addressee of the words (session).
//
// Invariants
//   LISTENING-2. The user has the floor while they speak, and until their words are known (for at most
//       `settleTimeoutMs`). Late words of one utterance do not end another one.
//   LISTEN-1. The session ends an utterance that lasts longer than `maxUtteranceMs`, or whose microphone
//       stops sending: the transport transcribes the sound so far if it can; otherwise the words known so far
//       count as all of them. The floor is free then.
//   LISTEN-2. Sound that directly follows an overlong utterance (a television) is background, as is speech
//       reported without any sound: it neither takes the floor nor interrupts, until `QUIET_MS` of quiet have
//       passed. Its words are handled like any others.

import type { LeadSession } from '../../actors/session/lead/lead-session.ts';
import { Watchdog } from '../../actors/session/lead/watchdog.ts';
import type { TransportEvent } from '../connection/transport.ts';
import { RecentIds } from '../audio/recent-ids.ts';
import { Utterances } from './utterances.ts';
import type { VoiceTranscript } from '../output/voice-transcript.ts';

/** Lag with which a transport detects speech. */
const ONSET_MS = 300;
/** An open microphone that has sent nothing for this long counts as off. */
const MICROPHONE_GAP_MS = 2000;
/** After this long a pause new sound no longer belongs to the earlier noise. */
const QUIET_MS = 3000;

type UtteranceEvent = Extract<TransportEvent, { type: `utterance.${string}` }>;

export interface ListeningPorts {
  /** Reports that the user has spoken since `startedAt` on the session's clock. */
  brokeIn(utteranceId: string, startedAt: number): void;
  fellSilent(utteranceId: string): void;
  /**
   * Reports words of an utterance, all or some; empty if there are none. Returns whether they are a
   * backchannel.
   */
  isBackchannel(utteranceId: string, text: string, final: boolean): boolean;
  /** Reports that the utterance was a noise without words. */
  meantNothing(utteranceId: string): void;
  /** Reports that the user may no longer have the floor. */
  settled(): void;
  /** Asks the transport to end this utterance. */
  end(utteranceId: string): void;
}

export interface ListeningOptions {
  readonly settleTimeoutMs: number;
  readonly maxUtteranceMs: number;
  /** Whether the transport can end an utterance. */
  readonly endsUtterances: boolean;
}

export class Listening {
  readonly #core: LeadSession;
  readonly #transcript: VoiceTranscript;
  readonly #ports: ListeningPorts;
  readonly #utterances = new Utterances();
  /** The utterances whose words are known: a transport may report them twice. */
  readonly #known = new RecentIds();
  /** The utterances without the floor: the session ended them, or they never held it. */
  readonly #floorless = new RecentIds();
  readonly #patience: Watchdog;
  readonly #limit: Watchdog;
  readonly #options: ListeningOptions;
  /** The utterance under way as the transport reports it, with its start on the session's clock. */
  #underWay: { readonly id: string; readonly since: number } | null = null;
  /** When the microphone last sent sound; null if never. */
  #soundAt: number | null = null;
  /** LISTEN-2: when the background was last heard; null if there is none. */
  #noiseAt: number | null = null;

  constructor(
    core: LeadSession,
    transcript: VoiceTranscript,
    ports: ListeningPorts,
    options: ListeningOptions,
  ) {
    this.#core = core;
    this.#transcript = transcript;
    this.#ports = ports;
    this.#options = options;
    this.#patience = new Watchdog(core.host.environment, () => {
      this.#utterances.wordsAreOverdue();
      ports.settled();
    });
    this.#limit = new Watchdog(core.host.environment, () => this.#look());
  }

  get hasFloor(): boolean {
    return this.#utterances.hasFloor;
  }

  /** How much of the newest sound holds words of the user that are not known yet, in milliseconds. */
  get unknownMs(): number {
    const since = this.#utterances.unknownSince;
    return since === null ? 0 : this.#now - since + ONSET_MS;
  }

  /** Records sound of the microphone. `isSent`: it went to the transport instead of being kept. */
  sound(durationMs: number, isSent: boolean): void {
    const isFirst = this.#soundAt === null;
    this.#soundAt = this.#now;
    if (isFirst && this.#underWay) this.#watch();
    if (isSent) this.#utterances.sent(durationMs);
  }

  /** Handles a new connection: utterances on the previous one are no longer waited for. */
  reset(): void {
    this.#known.clear();
    this.#floorless.clear();
    this.#underWay = null;
    this.#noiseAt = null;
    this.#limit.stop();
    this.#patience.stop();
    this.#utterances.reset();
    this.#transcript.lost();
  }

  /** Handles the loss of the client: the words so far count as all of them. */
  giveUpWaiting(): void {
    this.#soundAt = null;
    this.#end();
    this.#utterances.giveUpWaiting();
  }

  happened(event: UtteranceEvent): void {
    const core = this.#core;
    switch (event.type) {
      case 'utterance.started': {
        const { utteranceId: id, audioStartMs } = event;
        const isNoise = this.#isNoisy;
        const startedAt = this.#utterances.began(id, audioStartMs, this.#now, !isNoise);
        this.#underWay = { id, since: this.#now };
        this.#watch();
        // No more words of the earlier utterance will come.
        this.#transcript.reset();
        if (isNoise) this.#floorless.add(id);
        else {
          core.receive('session', { type: 'utterance.started' });
          this.#ports.brokeIn(id, startedAt);
        }
        break;
      }
      case 'utterance.ended':
        if (this.#underWay?.id === event.utteranceId) this.#isOver();
        if (!this.#floorless.has(event.utteranceId)) this.#ended(event.utteranceId);
        break;
      case 'utterance.transcribed':
        this.#transcribed(event);
        break;
      case 'utterance.untranscribed':
        core.reportError(new Error(event.reason), 'transcription');
        this.#ports.isBackchannel(event.utteranceId, '', true);
        this.understood(event.utteranceId);
        this.#ports.settled();
        break;
    }
  }

  /** Records that the words of an utterance are known; unless the user speaks again, the floor is free. */
  understood(utteranceId: string): void {
    this.#transcript.finished(utteranceId);
    this.#utterances.understood(utteranceId);
    if (!this.#utterances.hasFloor) this.#core.receive('session', { type: 'utterance.settled' });
  }

  #ended(utteranceId: string): void {
    this.#utterances.ended(utteranceId);
    this.#patience.watch(this.#options.settleTimeoutMs);
    this.#core.receive('session', { type: 'utterance.ended' });
    this.#ports.fellSilent(utteranceId);
  }

  /** Handles the end of the utterance under way. */
  #isOver(): void {
    this.#underWay = null;
    this.#limit.stop();
    if (this.#noiseAt !== null) this.#noiseAt = this.#now;
  }

  /** LISTEN-2 */
  get #isNoisy(): boolean {
    if (this.#noiseAt === null) return false;
    // Background that goes on counts as heard now.
    if (this.#underWay === null && this.#now - this.#noiseAt >= QUIET_MS) this.#noiseAt = null;
    return this.#noiseAt !== null;
  }

  get #now(): number {
    return this.#core.host.environment.clock.now();
  }

  /** Checks the utterance under way when it may be too long, or its microphone off (LISTEN-1). */
  #watch(): void {
    const { since = 0 } = this.#underWay ?? {};
    const tooLongAt = since + this.#options.maxUtteranceMs;
    const offAt =
      this.#soundAt === null ? Infinity : Math.max(this.#soundAt, since) + MICROPHONE_GAP_MS;
    this.#limit.watch(Math.max(0, Math.min(tooLongAt, offAt) - this.#now));
  }

  #look(): void {
    if (!this.#underWay) return;
    const { since } = this.#underWay;
    const soundAt = this.#soundAt ?? this.#now;
    const isTooLong = this.#now - since >= this.#options.maxUtteranceMs;
    const isOff = this.#now - Math.max(soundAt, since) >= MICROPHONE_GAP_MS;
    // Speech reported without any sound of the microphone is not the user's either.
    if (isTooLong || (isOff && soundAt < since)) this.#noiseAt = this.#now;
    if (isTooLong || isOff) this.#end();
    else this.#watch();
  }

  /** LISTEN-1: ends the utterance under way. */
  #end(): void {
    const { id } = this.#underWay ?? {};
    if (id === undefined) return;
    this.#isOver();
    const heldFloor = !this.#floorless.has(id);
    this.#floorless.add(id);
    if (heldFloor) this.#ended(id);
    if (this.#options.endsUtterances) {
      this.#ports.end(id);
      return;
    }
    const text = this.#transcript.unfinishedOf(id);
    // No words are known; words that arrive later are handled then.
    if (text === '') {
      this.understood(id);
      this.#ports.settled();
    } else this.#transcribed({ type: 'utterance.transcribed', utteranceId: id, text, final: true });
  }

  #transcribed({
    utteranceId,
    text,
    final,
  }: Extract<UtteranceEvent, { type: 'utterance.transcribed' }>): void {
    const core = this.#core;
    const startedAt = this.#utterances.beganAt(utteranceId) ?? this.#now;
    if (this.#known.has(utteranceId)) return;
    if (final) this.#known.add(utteranceId);
    const isBackchannel = this.#ports.isBackchannel(utteranceId, text, final);
    if (!final) this.#transcript.userPartial(utteranceId, text, startedAt);
    else if (text.trim() === '' || isBackchannel) {
      this.#ports.meantNothing(utteranceId);
      this.understood(utteranceId);
      this.#ports.settled();
    } else
      core.receive('user', {
        type: 'user.said',
        utteranceId,
        text: text.trim(),
        channel: 'speech',
        startedAt,
      });
  }
}
