// The user's side of a spoken conversation: when they speak, and what they said.
//
// Owns:     who of both has the floor, as far as the user's speech is concerned, and how
//           long words are waited for.
// Does not: decide what is answered, or to whom it was said (session).
//
// Invariants
//   LISTENING-2. The user has the floor while they speak, and until it is known what they said (for
//       `settleTimeoutMs` at most). Late words of one utterance do not end another one.
//   LISTEN-1. An utterance that lasts longer than `maxUtteranceMs`, or whose microphone sends no
//       sound any more, is ended by the session: the wire transcribes what it has heard where it
//       can; elsewhere the words that are known so far are taken for all of them. The floor is free.
//   LISTEN-2. What goes on directly after an utterance that was too long (a television) is
//       background: it neither takes the floor nor interrupts, until it was quiet for
//       `QUIET_MS`; so is what goes on behind one of which no sound came at all. Its words are
//       taken in like any others.

import type { LeadSession } from '../../actors/session/lead/lead-session.ts';
import { Watchdog } from '../../actors/session/lead/watchdog.ts';
import type { TransportEvent } from '../connection/transport.ts';
import { RecentIds } from '../audio/recent-ids.ts';
import { Utterances } from './utterances.ts';
import type { VoiceTranscript } from '../output/voice-transcript.ts';

/** Speech is noticed a little late. */
const ONSET_MS = 300;
/** A microphone that was open and has sent nothing for so long is off. */
const MICROPHONE_GAP_MS = 2000;
/** After so long a pause what is heard is no longer the noise of before. */
const QUIET_MS = 3000;

type UtteranceEvent = Extract<TransportEvent, { type: `utterance.${string}` }>;

export interface ListeningPorts {
  /** They speak, since `startedAt` on our clock. */
  brokeIn(utteranceId: string, startedAt: number): void;
  fellSilent(utteranceId: string): void;
  /** Words of it, all or some; empty: none. Returns whether they were said only to show that they listen. */
  isBackchannel(utteranceId: string, text: string, final: boolean): boolean;
  /** It was a noise, no words. */
  meantNothing(utteranceId: string): void;
  /** They may not have the floor any more. */
  settled(): void;
  /** The wire is to end this utterance. */
  end(utteranceId: string): void;
}

export interface ListeningOptions {
  readonly settleTimeoutMs: number;
  readonly maxUtteranceMs: number;
  /** The wire can end an utterance. */
  readonly endsUtterances: boolean;
}

export class Listening {
  readonly #core: LeadSession;
  readonly #transcript: VoiceTranscript;
  readonly #ports: ListeningPorts;
  readonly #utterances = new Utterances();
  /** Utterances whose words are known: a wire may say them twice. */
  readonly #known = new RecentIds();
  /** Utterances that do not hold the floor any more: the session ended them, or they never held it. */
  readonly #floorless = new RecentIds();
  readonly #patience: Watchdog;
  readonly #limit: Watchdog;
  readonly #options: ListeningOptions;
  /** The utterance under way, as the wire sees it, and when it began on our clock. */
  #underWay: { readonly id: string; readonly since: number } | null = null;
  /** When the microphone last sent anything; null: never. */
  #soundAt: number | null = null;
  /** LISTEN-2: when the noise was last heard; null: there is none. */
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

  /** So much of what was sent last, in milliseconds, holds words of the user that are not known. */
  get unknownMs(): number {
    const since = this.#utterances.unknownSince;
    return since === null ? 0 : this.#now - since + ONSET_MS;
  }

  /** The microphone gave sound. `isSent`: it went to the wire, and is not kept for later. */
  sound(durationMs: number, isSent: boolean): void {
    const isFirst = this.#soundAt === null;
    this.#soundAt = this.#now;
    if (isFirst && this.#underWay) this.#watch();
    if (isSent) this.#utterances.sent(durationMs);
  }

  /** The connection is another one: what was said on the one before is not waited for. */
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

  /** Whoever spoke has gone: what they said so far is all. */
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
        // What was understood of an earlier one by now is all that will be.
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

  /** It is known what was said; unless they speak again, the user has the floor no more. */
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

  /** The utterance under way is over. */
  #isOver(): void {
    this.#underWay = null;
    this.#limit.stop();
    if (this.#noiseAt !== null) this.#noiseAt = this.#now;
  }

  /** LISTEN-2 */
  get #isNoisy(): boolean {
    if (this.#noiseAt === null) return false;
    // A noise that goes on is heard now.
    if (this.#underWay === null && this.#now - this.#noiseAt >= QUIET_MS) this.#noiseAt = null;
    return this.#noiseAt !== null;
  }

  get #now(): number {
    return this.#core.host.environment.clock.now();
  }

  /** Looks after the utterance under way when it may be too long, or its microphone off (LISTEN-1). */
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
    // What is heard without any sound is no user, either.
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
    // Without a word of it: if any come in the end, they are taken in then.
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
      core.tell('user', {
        type: 'user.said',
        utteranceId,
        text: text.trim(),
        channel: 'speech',
        startedAt,
      });
  }
}
