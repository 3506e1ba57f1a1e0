// The user's side of a spoken conversation: when the user is speaking, which words they say, and whether their speech
// over the lead agent is an interruption. The model's speech is always stopped or lowered at once; after a noise or a
// backchannel ("mm-hm"), it continues.
//
//   speaking ─ user starts ─▶ in doubt ─┬─ other words, long, repeated ──▶ real: broken off
//                                       ├─ a backchannel, a noise ───────▶ false: continues
//                                       └─ no words in time ─────────────▶ continues, until they arrive
//
// Owns:     the interpretation of the transport's reports, the limits of an utterance, and each utterance's start on
//           the session's clock (a transport counts from the first audio that it received).
// Does not: track whether the user has the floor or may be interrupting (turn machine), or decide what the words answer
//           and to whom they are addressed (session).
//
// Invariants
//   LISTENING-2. The user has the floor while speaking and until the words are known (for at most `settleTimeoutMs`).
//       Late words of one utterance do not end another utterance.
//   LISTEN-1. The session ends an utterance that is longer than `maxUtteranceMs` (including earlier pieces that the
//       transport split off) or whose microphone has stopped sending audio. If the transport can, it transcribes the
//       audio received so far. Otherwise, the words received so far count as the whole utterance. After that, the floor
//       is free. If a client returns within `AWAY_GAP_MS`, its utterance continues. A voice that is too quiet to be
//       measured counts as distant, and its utterances are limited to `FAR_MS`.
//   LISTEN-2. Audio that directly follows an overlong utterance (a television) counts as background, as does speech
//       that is reported without any audio. Until it has been quiet for `QUIET_MS`, background neither takes the floor
//       nor interrupts. Background words are handled like any other words, but the words of a distant voice are not
//       addressed to any agent.
//   BARGE-IN-5. A spoken interruption does not cancel a subagent, unless the subagent asks for this (`onBargeIn`).
//   INTERRUPTIONS-1. When the user speaks, the model's speech stops immediately, even if this may not be an
//       interruption (MODEL-VOICE-3). While the session receives audio from the microphone, doubtful speech of the user
//       at first only lowers the model's speech, and stops it when the voice has lasted for `VOICE_MS`. A hum or a
//       cough is shorter than `VOICE_MS` and does not cause a gap in the speech.
//   INTERRUPTIONS-2. A doubt ends exactly once: when the words are known, when the utterance exceeds `backchannelMs`,
//       when the user starts to speak again, or `falseInterruptionMs` after the user has stopped speaking.
//   INTERRUPTIONS-3. Words that may be an answer never count as a backchannel. While a question is open, only a hum
//       counts as a backchannel. While the lead agent is asking a question, nothing counts as a backchannel. If the
//       listening model is lost while the user is speaking, the doubt counts as an interruption.
//   INTERRUPTIONS-4. Words that arrive after the doubt has ended still interrupt the speech if they constitute an
//       interruption.
//   INTERRUPTIONS-6. If a sound without words, or a distant voice before the user's first words, has interrupted a
//       reply, the reply is said again, but only once until the user speaks.
//   INTERRUPTIONS-5. If the audio proves to be an echo, the speech continues immediately (ECHO-1). It stops again when
//       the user speaks over the echo. An echo is not addressed to any agent.

import type { UnaddressedReason, UnansweredReason } from '../../actors/contracts/session-views.ts';
import type { LeadSession } from '../../actors/session/lead/lead-agents.ts';
import type { TurnChart } from '../../actors/session/lead/turn-chart.ts';
import { Watchdog } from '../../actors/session/lead/watchdog.ts';
import { backchannelIn, humIn } from '../../language/backchannel.ts';
import { userHasFloor } from '../../machines/index.ts';
import { ProviderError } from '../../values/errors.ts';
import { forgetOldest } from '../../values/forget-oldest.ts';
import { frameDurationMs, type AudioFrame } from '../audio/audio-frame.ts';
import { RecentIds } from '../audio/recent-ids.ts';
import { VoicedSound } from '../audio/voiced-sound.ts';
import {
  ONSET_MS,
  type TransportCapabilities,
  type TransportEvent,
} from '../connection/transport.ts';
import type { ModelMemory } from '../output/model-memory.ts';
import type { Responses } from '../output/responses.ts';
import { CUT_NOTE } from '../output/speech-prompts.ts';
import type { Speech } from '../output/speech.ts';
import type { Turn } from '../output/turn.ts';
import { Overlap } from './overlap.ts';
import type { VoiceTranscript } from '../output/voice-transcript.ts';

/** After a gap of at most this length, a new utterance counts as a continuation that the transport split off. */
const CUT_MS = 100;
/** The maximum delay with which a transport reports the end of an utterance. */
export const END_LAG_MS = 600;
/** The number of most recently played items that an utterance may overlap if it is reported late. */
const MAX_PLAYED = 10;
/** The maximum time that a voice below the level of a quiet room may hold the floor. */
const FAR_MS = 5000;
/** After this time without audio, an open microphone counts as off. */
const MICROPHONE_GAP_MS = 2000;
/**
 * The same time after the client has left. A client that returns earlier sends the audio that it recorded in the
 * meantime.
 */
const AWAY_GAP_MS = 5000;
/**
 * After an utterance that reaches this fraction of the limit, audio also counts as background (LISTEN-2). A transport
 * with the same limit counts from the first audio, so it ends an overlong utterance slightly earlier.
 */
const WIRE_LIMIT = 0.95;
/**
 * A voice that continues for this long after the transport has noticed it stops the speech. "Right, I see" is shorter.
 */
const VOICE_MS = 600;
/** The maximum age of a voice that the transport has just noticed. */
const VOICED_WITHIN_MS = 700;
/** After a pause of this length, new audio does not belong to the earlier noise. */
const QUIET_MS = 3000;
/** The number of newest utterances without a transcript whose start is remembered. */
const MAX_BEGINNINGS = 50;

interface Beginning {
  readonly at: number;
  readonly by: string | undefined;
}

type UtteranceEvent = Extract<TransportEvent, { type: `utterance.${string}` }>;

export interface ListeningOptions {
  readonly capabilities: TransportCapabilities;
  readonly settleTimeoutMs: number;
  readonly maxUtteranceMs: number;
  readonly falseInterruptionMs: number;
  readonly backchannelMs: number;
}

export class Listening {
  readonly #core: LeadSession;
  readonly #transcript: VoiceTranscript;
  readonly #memory: ModelMemory;
  readonly #bargeIn: BargeIn;
  readonly #turn: Turn;
  readonly #chart: TurnChart;
  readonly #options: ListeningOptions;
  /** The current utterance as reported by the transport, with its start on the session's clock. */
  #underWay: { readonly id: string; readonly since: number } | null = null;
  /** When the previous utterance started, and when its end was reported. */
  #before: { readonly since: number; readonly endedAt: number } | null = null;
  readonly #limit: Watchdog;
  /**
   * The utterances whose final words have arrived. They are remembered because a transport may report the words twice.
   */
  readonly #known = new RecentIds();
  /** The utterances that do not have the floor, because the session ended them or they never had it. */
  readonly #floorless = new RecentIds();
  /** LISTEN-2: the utterances of a distant voice. */
  readonly #background = new RecentIds();
  /** The start of each utterance on the session's clock, and who was speaking at that time. */
  readonly #beginnings = new Map<string, Beginning>();
  /** The duration of user audio that was sent to the transport on this connection. */
  #sentMs = 0;
  /** The time at which the microphone last sent audio; null before the first audio. */
  #soundAt: number | null = null;
  /** Whether the client has left since the last audio. */
  #isAway = false;
  /** LISTEN-2: the time at which background was last heard; null if there is none. */
  #noiseAt: number | null = null;

  constructor(
    core: LeadSession,
    transcript: VoiceTranscript,
    memory: ModelMemory,
    bargeIn: BargeIn,
    turn: Turn,
    options: ListeningOptions,
  ) {
    this.#core = core;
    this.#transcript = transcript;
    this.#memory = memory;
    this.#bargeIn = bargeIn;
    this.#turn = turn;
    this.#chart = turn.chart;
    this.#options = options;
    this.#limit = new Watchdog(core.host.environment, () => this.#checkLimits());
  }

  /** Whether the user is speaking, or the words and addressee of the last utterance are not known yet. */
  get hasFloor(): boolean {
    return userHasFloor(this.#chart.snapshot);
  }

  /** The duration of the newest audio that may contain words that have not been recognised yet, in milliseconds. */
  get unknownMs(): number {
    const { unknown, newest } = this.#chart.context;
    const isSpeaking = this.#chart.snapshot.matches({ user: 'speaking' });
    const open = [...unknown, ...(isSpeaking ? [newest] : [])];
    const begun = open.flatMap((id) => this.#beginnings.get(id)?.at ?? []);
    return begun.length === 0 ? 0 : this.#now - Math.min(...begun) + ONSET_MS;
  }

  /** Records microphone audio. `isSent`: whether the audio was sent to the transport rather than buffered. */
  sound(frame: AudioFrame, isSent: boolean): void {
    const isFirst = this.#soundAt === null || this.#isAway;
    this.#soundAt = this.#now;
    if (this.#isAway) this.#clientReturned();
    if (isFirst) this.watchLimits();
    if (isSent) this.#sentMs += frameDurationMs(frame);
    this.#bargeIn.sound(frame);
  }

  handle(event: UtteranceEvent): void {
    switch (event.type) {
      case 'utterance.started':
        this.#started(event.utteranceId, event.audioStartMs);
        break;
      case 'utterance.ended':
        if (this.#underWay?.id === event.utteranceId) this.#isOver();
        if (!this.#floorless.has(event.utteranceId)) this.#ended(event.utteranceId);
        break;
      case 'utterance.transcribed':
        this.#transcribed(event);
        break;
      case 'utterance.untranscribed':
        this.#core.reportError(
          new ProviderError('TRANSCRIPTION_FAILED', event.reason),
          'transcription',
        );
        this.#bargeIn.read(event.utteranceId, '', true);
        if (!this.#known.has(event.utteranceId))
          this.#unaddressed(event.utteranceId, 'not_transcribed');
        this.understood(event.utteranceId);
        this.#turn.settled();
        break;
    }
  }

  /**
   * Records that the words of an utterance have arrived, so that the floor is free unless the user is speaking again.
   */
  understood(utteranceId: string): void {
    this.#transcript.finished(utteranceId);
    this.#chart.send({ type: 'user.understood', utteranceId });
    if (!this.hasFloor) this.#core.receive('session', { type: 'utterance.settled' });
  }

  /** Informs the client that there is no answer to the user's words, or not yet. */
  unanswered(utteranceId: string | null, reason: UnansweredReason): void {
    this.#core.projection.emit({ type: 'utterance.unanswered', utteranceId, reason });
  }

  #unaddressed(utteranceId: string, reason: UnaddressedReason): void {
    this.#transcript.withdraw(utteranceId);
    const to = 'nobody' as const;
    this.#core.projection.emit({ type: 'utterance.routed', utteranceId, to, reason });
  }

  /** Handles the loss of the client. Unless it returns soon, the words so far count as the whole utterance. */
  clientLeft(): void {
    this.#isAway = true;
    this.#soundAt ??= this.#now;
    if (this.#underWay) this.#core.receive('session', { type: 'utterance.ended' });
    this.#chart.send({ type: 'client.left' });
    this.#core.receive('session', { type: 'utterance.settled' });
    this.watchLimits();
  }

  /** Handles audio from a client that has returned, whose unfinished utterance takes the floor again. */
  #clientReturned(): void {
    this.#isAway = false;
    const { id } = this.#underWay ?? {};
    if (id === undefined || this.#floorless.has(id)) return;
    this.#chart.send({ type: 'user.began', utteranceId: id });
    this.#core.receive('session', { type: 'utterance.started' });
  }

  /** Called on a new connection. The session no longer waits for utterances of the previous one. */
  reset(): void {
    this.#known.clear();
    this.#floorless.clear();
    this.#background.clear();
    this.#underWay = null;
    this.#before = null;
    this.#noiseAt = null;
    this.#limit.stop();
    this.#sentMs = 0;
    this.#beginnings.clear();
    this.#chart.send({ type: 'user.lost' });
    this.#transcript.connectionLost();
  }

  #started(id: string, audioStartMs: number): void {
    const isNoise = this.#isNoisy;
    // Audio is sent as it is recorded, so the age of the utterance is the duration of audio that was sent since its
    // start.
    const startedAt = this.#now - Math.max(0, this.#sentMs - audioStartMs);
    this.#beginnings.set(id, { at: startedAt, by: this.#core.userInput.speaker });
    forgetOldest(this.#beginnings, MAX_BEGINNINGS);
    const before = isNoise ? null : this.#before;
    const isCut = before !== null && this.#now - before.endedAt <= CUT_MS;
    this.#underWay = { id, since: isCut ? before.since : this.#now };
    // When a new utterance starts, no more words are expected for the earlier one.
    this.#transcript.reset();
    if (isNoise) {
      this.#floorless.add(id);
      this.watchLimits();
      return;
    }
    this.#chart.send({ type: 'user.began', utteranceId: id });
    this.#core.receive('session', { type: 'utterance.started' });
    this.#bargeIn.began(id, startedAt);
  }

  #ended(utteranceId: string): void {
    this.#core.receive('session', { type: 'utterance.ended' });
    this.#chart.send({ type: 'user.ended', utteranceId });
    // The event has ended an earlier utterance, so the limits of the current one still apply.
    if (this.#underWay) this.watchLimits();
  }

  /** Handles the end of the current utterance. */
  #isOver(): void {
    const { id = '', since = this.#now } = this.#underWay ?? {};
    const lengthMs = this.#now - since;
    this.#noteBackground();
    if (this.#isFar(since) && this.#bargeIn.mayBeUnaddressed(id)) this.#background.add(id);
    this.#before = { since, endedAt: this.#now };
    this.#underWay = null;
    this.#limit.stop();
    const isOverlong = lengthMs >= this.#options.maxUtteranceMs * WIRE_LIMIT;
    if (isOverlong || this.#noiseAt !== null) this.#noiseAt = this.#now;
  }

  #transcribed(event: Extract<UtteranceEvent, { type: 'utterance.transcribed' }>): void {
    const { utteranceId, final } = event;
    const { at: startedAt, by } = this.#beginnings.get(utteranceId) ?? {
      at: this.#now,
      by: this.#core.userInput.speaker,
    };
    if (this.#known.has(utteranceId)) return;
    const text = final ? this.#bargeIn.ownWords(utteranceId, event.text) : event.text;
    if (final) this.#known.add(utteranceId);
    if (this.#underWay?.id === utteranceId) this.#noteBackground();
    const isBackground = this.#background.has(utteranceId);
    const reading = this.#bargeIn.read(utteranceId, isBackground ? '' : text, final);
    const reason = isBackground ? 'background' : reading;
    if (!final) this.#transcript.userPartial(utteranceId, text, startedAt);
    else if (text.trim() === '' || reason) {
      this.#memory.forget(utteranceId);
      this.#unaddressed(utteranceId, reason ?? 'no_words');
      if (this.#bargeIn.owesReply(utteranceId)) {
        this.#memory.note(CUT_NOTE);
        this.#chart.send({ type: 'reply.wanted' });
      }
      this.understood(utteranceId);
      this.#turn.settled();
    } else
      this.#core.receive('user', {
        type: 'user.said',
        utteranceId,
        text: text.trim(),
        channel: 'speech',
        startedAt,
        ...(by !== undefined && { by }),
      });
  }

  #noteBackground(): void {
    if (!this.#underWay) return;
    const { id, since } = this.#underWay;
    if (this.#floorless.has(id) && this.#isFar(since)) this.#background.add(id);
  }

  /** LISTEN-2 */
  get #isNoisy(): boolean {
    if (this.#noiseAt === null) return false;
    // Background that is still in progress counts as having been heard just now.
    if (this.#underWay === null && this.#now - this.#noiseAt >= QUIET_MS) this.#noiseAt = null;
    return this.#noiseAt !== null;
  }

  /** Sets the timer for the limits of the current utterance (LISTEN-1). */
  watchLimits(): void {
    if (!this.#underWay) return;
    const { since } = this.#underWay;
    const tooLongAt = since + this.#options.maxUtteranceMs;
    const offAt = this.#soundAt === null ? Infinity : Math.max(this.#soundAt, since) + this.#gapMs;
    const farAt = this.#isFar(since) ? since + FAR_MS : Infinity;
    this.#limit.watch(Math.max(0, Math.min(tooLongAt, offAt, farAt) - this.#now));
  }

  #checkLimits(): void {
    if (!this.#underWay) return;
    const { since } = this.#underWay;
    const soundAt = this.#soundAt ?? this.#now;
    const lengthMs = this.#now - since;
    const isTooLong =
      lengthMs >= this.#options.maxUtteranceMs || (this.#isFar(since) && lengthMs >= FAR_MS);
    const isOff = this.#now - Math.max(soundAt, since) >= this.#gapMs;
    // Speech that the transport reports although there is no microphone audio counts as background.
    if (isTooLong || (isOff && soundAt < since)) this.#noiseAt = this.#now;
    if (isTooLong || isOff) this.#end();
    else this.watchLimits();
  }

  /** Returns whether the microphone has sent audio without a measurable voice since then. */
  #isFar(since: number): boolean {
    return this.#soundAt !== null && this.#bargeIn.quietMs >= this.#now - since;
  }

  get #gapMs(): number {
    return this.#isAway ? AWAY_GAP_MS : MICROPHONE_GAP_MS;
  }

  unwatchLimits(): void {
    this.#limit.stop();
  }

  /** LISTEN-1: ends the current utterance. */
  #end(): void {
    const { id } = this.#underWay ?? {};
    if (id === undefined) return;
    this.#isOver();
    const heldFloor = !this.#floorless.has(id);
    this.#floorless.add(id);
    if (heldFloor) this.#ended(id);
    if (this.#options.capabilities.endsUtterances) {
      this.#turn.send({ type: 'utterance.end', utteranceId: id });
      return;
    }
    const text = this.#transcript.unfinishedOf(id);
    // Words that arrive later are handled on arrival.
    if (text === '') {
      this.unanswered(id, 'words_late');
      this.understood(id);
      this.#turn.settled();
    } else this.#transcribed({ type: 'utterance.transcribed', utteranceId: id, text, final: true });
  }

  get #now(): number {
    return this.#core.host.environment.clock.now();
  }
}

/** The effect of an utterance on the current speech. */
export type BargeIn = ReturnType<typeof bargeInOf>;

export function bargeInOf(
  core: LeadSession,
  options: ListeningOptions,
  transcript: VoiceTranscript,
  responses: Responses,
  speech: Speech,
  chart: TurnChart,
) {
  const voice = new VoicedSound();
  /** The time at which the microphone last sent audio. */
  let soundAt = Number.NEGATIVE_INFINITY;
  /** The newest utterance that overlaps speech. */
  let overlapping: Overlap | null = null;
  /** The utterance that interrupted a reply; '' after the reply has been said again, until the user speaks. */
  let cutBy: string | null = null;
  /** The time at which each of the newest items was last played. */
  const playedAt = new Map<string, number>();
  const echoes = (): boolean => speech.echo.echoes(nowMs());
  const nowMs = (): number => core.host.environment.clock.now();

  /** ECHO-1 */
  function isEchoNow(utteranceId: string, text: string): boolean {
    const overlap = overlapping;
    if (overlap?.utteranceId !== utteranceId) return false;
    return overlap.isEcho(text, saidDuring(overlap), echoes());
  }

  /** Returns the words that the utterance may echo, including items that were cut off in the meantime. */
  function saidDuring({ items, wordsWhenCut }: Overlap): string {
    return wordsWhenCut ?? transcript.wordsOf(items);
  }

  /** Returns whether the text, complete or so far, is a backchannel rather than an answer (INTERRUPTIONS-3). */
  function read(text: string): 'whole' | 'beginning' | 'none' {
    const { language } = core.agents.current;
    // While a question is open, any word may be the answer.
    if (core.unit.owner !== null) return humIn(text, language);
    if (transcript.asks(speech.playing)) return 'none';
    return backchannelIn(text, language);
  }

  return {
    /** The time since the last measurable voice ended, in milliseconds of audio; infinite before the first voice. */
    get quietMs(): number {
      return voice.quietMs;
    },
    /** Handles the start of an utterance. `startedAt` is in milliseconds since 1970. */
    began(utteranceId: string, startedAt: number): void {
      const { capabilities, falseInterruptionMs } = options;
      // If the start is reported late, the model may already be responding to these words.
      if (capabilities.utterances === 'inferred' && startedAt <= responses.ownSince) return;
      chart.send({ type: 'user.spoke' });
      responses.held.expectWanted();
      if (!responses.isSpeaking) {
        // The start is reported late, so the utterance overlaps items that have ended since.
        const items = [...playedAt].flatMap(([id, at]) => (at >= startedAt ? [id] : []));
        if (items.length > 0) overlapping = new Overlap(utteranceId, speech.echo, items);
        return;
      }
      const { doubted } = chart.context;
      // An echo may also arrive in several pieces, so a second piece is not another attempt to interrupt.
      if (doubted !== null && overlapping?.soundsLikeEcho(speech.playing, nowMs()))
        chart.send({ type: 'user.sounded', utteranceId: doubted, reading: 'echo' });
      overlapping = new Overlap(utteranceId, speech.echo);
      const canPause = falseInterruptionMs > 0 && speech.canPause;
      chart.send({ type: 'user.overlaps', utteranceId, canPause });
    },
    /**
     * Handles the words of an utterance, either all of them (`final`) or only the first ones; empty if there are none.
     * Returns why the words need no answer; null if they need one.
     */
    read(utteranceId: string, text: string, final: boolean): 'backchannel' | 'echo' | null {
      const isEmpty = text.trim() === '';
      const isEcho = !isEmpty && isEchoNow(utteranceId, text);
      // After the final words have arrived, the audio is no longer compared.
      if (final && overlapping?.utteranceId === utteranceId) overlapping = null;
      if (final && !isEmpty && !isEcho) cutBy = null;
      if (isEcho && !final) return null;
      if (isEcho) {
        speech.echo.wasEcho(nowMs());
        chart.send({ type: 'user.worded', utteranceId, reading: 'listens' });
        return 'echo';
      }
      if (utteranceId !== chart.context.doubted) return null;
      const reading = isEmpty ? 'beginning' : read(text);
      if (!final && reading !== 'none') return null;
      const isFalse = isEmpty || reading === 'whole';
      chart.send({
        type: 'user.worded',
        utteranceId,
        reading: isFalse ? 'listens' : 'interrupts',
      });
      if (!isFalse || isEmpty) return null;
      core.projection.emit({ type: 'backchannel.heard', utteranceId, text: text.trim() });
      return 'backchannel';
    },
    /** Lowers or pauses the speech until the user's words are known. */
    makeWay(): void {
      voice.voicedMs = 0;
      // It cannot be measured how long the voice lasts if there is no audio from the microphone or the voice is too
      // quiet.
      const hears = nowMs() - soundAt < MICROPHONE_GAP_MS;
      const isVoice =
        voice.quietMs < VOICED_WITHIN_MS || overlapping?.soundsLikeEcho(speech.playing, nowMs());
      if (!hears || !isVoice || !speech.lower()) speech.pause();
    },
    /** Handles microphone audio. A voice that continues stops the speech, unless it is an echo of the speech. */
    sound(frame: AudioFrame): void {
      const now = (soundAt = nowMs());
      const voicedMs = voice.take(frame);
      const overlap = overlapping;
      const { playing } = speech;
      for (const itemId of playing) playedAt.set(itemId, now);
      forgetOldest(playedAt, MAX_PLAYED);
      overlap?.heard(playing, frameDurationMs(frame), voicedMs, now);
      const utteranceId = overlap?.utteranceId ?? null;
      const isDoubted = utteranceId !== null && utteranceId === chart.context.doubted;
      const lasts = speech.isLow && voice.voicedMs >= VOICE_MS;
      const isEcho =
        isDoubted && (overlap?.isEchoing || (lasts && overlap?.soundsLikeEcho(playing, now)));
      if (overlap?.isEchoing) speech.echo.wasEcho(now);
      if (isEcho) chart.send({ type: 'user.sounded', utteranceId, reading: 'echo' });
      else if (lasts) speech.pause();
      else if (isDoubted && overlap?.isOther)
        chart.send({ type: 'user.sounded', utteranceId, reading: 'voice' });
    },
    /** Returns whether a distant utterance has interrupted or may interrupt speech before the user's first words. */
    mayBeUnaddressed(utteranceId: string): boolean {
      const isOver = [cutBy, chart.context.doubted].includes(utteranceId);
      const { items } = core.records.conversation;
      return isOver && cutBy !== '' && !items.some(({ role }) => role === 'user');
    },
    /** INTERRUPTIONS-6 */
    owesReply(utteranceId: string): boolean {
      if (cutBy !== utteranceId) return false;
      cutBy = '';
      return true;
    },
    /** Returns the final words of an utterance without the echoed words at its start (ECHO-2). */
    ownWords(utteranceId: string, text: string): string {
      const overlap = overlapping;
      if (overlap?.utteranceId !== utteranceId || isEchoNow(utteranceId, text)) return text;
      // If all words are echoed, they remain, because the user may be repeating words of a question as the answer.
      return overlap.ownWords(text, saidDuring(overlap), echoes()) || text;
    },
    /** Stops the speech permanently, because the utterance is an interruption. */
    breakOff(): void {
      if (!responses.isSpeaking) return;
      for (const subagent of core.tree.live)
        if (subagent.definition.onBargeIn === 'cancel') subagent.cancel('the user broke in');
      if (overlapping) overlapping.wordsWhenCut ??= saidDuring(overlapping);
      if (responses.isReply && cutBy !== '') cutBy = overlapping?.utteranceId ?? null;
      responses.silence();
    },
  };
}
