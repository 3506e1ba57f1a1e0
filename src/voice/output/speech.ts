// The session's speech as the user hears it: the audio on its way to the speaker, the offer that is being spoken, and
// what is left of both after an interruption. Speech can pause at once and continue from the point up to which it was
// heard: sent audio is kept until the client reports it as played.
//
//   playing ─┬─ pause ─▶ paused ─┬─ resume ─▶ playing    the rest, as new items `<id>~2` …
//      ▲     └─ lower ─▶ low ─ pause ─▶ paused          quieter, also as new items: this works with any client
//      │                  └─ resume ─▶ playing
//      └──────── stop ◀── paused, low                   no more of it is heard
//
// Owns:     the audio stream and its kept part, the item names that the client knows, the current attempt, and the speech
//           that was cut off.
// Does not: send commands to the model, or decide when speech stops or continues (listening, turns).
//
// Invariants
//   SPEECH-1. Each attempt has exactly one outcome: heard, interrupted, failed, or abandoned by the session.
//   SPEECH-2. A stop takes effect at the client immediately. The client's next report determines which part was heard.
//       If no report arrives within `clearReportMs`, the previous report is used.
//   SPEECH-3. A client that stops reporting does not block the session. After all audio must have been played, the
//       speaker counts as silent, and audio without a report counts as not heard. An attempt whose playback has started
//       counts as interrupted.
//   LOUDSPEAKER-1. Continued audio starts where the last report ended. No audio is skipped, and only audio that was
//       played after that report is heard twice.
//   LOUDSPEAKER-2. The audio of a paused item either reaches the client in order after the item continues, or never
//       reaches it.
//   LOUDSPEAKER-3. Each report is converted to the model's item and the position in that item, no matter how often the
//       item was paused.
//   LOUDSPEAKER-4. At most `KEPT_MS` of audio is stored for continuation. An item that would need more cannot be
//       paused.
//   LOUDSPEAKER-5. Lowered speech continues at `LOW_GAIN` from the point up to which it was heard, as does audio that
//       is added in the meantime. The full level is restored by `resume`, and for speech that starts after the lowered
//       speech was heard or stopped.

import { Subject, type Observable } from 'rxjs';
import type { Environment } from '../../actors/ports/environment.ts';
import { ConfigurationError } from '../../values/errors.ts';
import { followQuestion, isHeardNow } from '../../actors/session/lead/speaker.ts';
import type { LeadSession } from '../../actors/session/lead/lead-agents.ts';
import { frameDurationMs, type AudioFrame } from '../audio/audio-frame.ts';
import { EchoMeter } from '../audio/echo-meter.ts';
import type { Attempt } from '../connection/attempt.ts';
import type { ModelMemory } from './model-memory.ts';
import { Playout, type Played } from './playout.ts';
import type { Turn } from './turn.ts';

/** The client reports about every 100 ms. After this much time without a report, no more reports are expected. */
const STALL_GRACE_MS = 5000;
const KEPT_MS = 120_000;
/** The level of lowered speech: -15 dB. */
const LOW_GAIN = 10 ** (-15 / 20);
/** The number of newest aliases to remember, so that reports about them can be converted. */
const MAX_RENAMED = 50;

export class Speech {
  readonly #core: LeadSession;
  readonly #memory: ModelMemory;
  readonly #turn: Turn;
  readonly #clearReportMs: number;
  readonly #environment: Environment;
  readonly #playout = new Playout();
  readonly #loudspeaker: Loudspeaker;
  /** Measures how much of the speech the microphone picks up. */
  readonly echo = new EchoMeter();
  /** The attempt that is being spoken. */
  attempt: Attempt | null = null;
  #isPlaying = false;
  /** Whether the speech is lowered or about to be lowered. */
  isLow = false;
  #cut: readonly Played[] = [];
  #endCut: (() => void) | null = null;
  /**
   * Called when the client reports the position at which it stopped. Set while speech is about to continue at a
   * different level.
   */
  #endChange: (() => void) | null = null;
  #cancelChange: (() => void) | null = null;
  #lastWordAt = 0;
  #cancelStall: (() => void) | null = null;
  /** Whether the client has reported on sent audio, or the app was informed that no report has arrived. */
  #hasHeardOf = false;

  /** @param clearReportMs The maximum time to wait for the client's report after a stop. */
  constructor(core: LeadSession, memory: ModelMemory, turn: Turn, clearReportMs: number) {
    this.#core = core;
    this.#memory = memory;
    this.#turn = turn;
    this.#clearReportMs = clearReportMs;
    this.#environment = core.host.environment;
    this.#loudspeaker = new Loudspeaker(() => core.projection.emit({ type: 'playout.clear' }));
    this.#loudspeaker.audioOut.subscribe((frame) => this.echo.said(frame));
  }

  /** The audio for the client. This observable is hot. */
  get audioOut(): Observable<AudioFrame> {
    return this.#loudspeaker.audioOut;
  }

  get isSilent(): boolean {
    return this.#playout.isDrained;
  }

  /** Whether the speech can be paused now and continued later. */
  get canPause(): boolean {
    return !this.isSilent && this.#loudspeaker.canPause;
  }

  /** The ids of the items that have been sent but not fully played. */
  get playing(): readonly string[] {
    return this.#playout.current.map(({ itemId }) => itemId);
  }

  /** The ids in `playing`, and those of cut-off items whose heard part is still unknown. */
  get unsettled(): readonly string[] {
    return [...this.playing, ...this.#cut.map(({ itemId }) => itemId)];
  }

  /** The ids of the responses whose audio is playing or about to play. */
  get playingOf(): readonly string[] {
    return this.#playout.current.map(({ responseId }) => responseId);
  }

  /** Reports to the outbox that the user did not hear an attempt. */
  notHeard(
    type: 'delivery.interrupted' | 'delivery.failed',
    { offer: { generation }, isBegun }: Attempt,
  ): void {
    const begun = type === 'delivery.interrupted' && isBegun ? { begun: true } : {};
    this.#core.receive('outbox', { type, generation, ...begun });
  }

  /** Sends a frame of model speech to the client. `acknowledges`: the speech only acknowledges an answer. */
  play(frame: AudioFrame, acknowledges = false): void {
    const { itemId = '', responseId = '' } = frame;
    const durationMs = frameDurationMs(frame);
    if (!acknowledges) this.#follow(responseId);
    this.#playout.sent(itemId, responseId, durationMs);
    this.#lastWordAt = this.#environment.clock.now();
    if (!this.#isPlaying) {
      this.#isPlaying = true;
      this.#watchStall(this.#playout.unplayedMs + STALL_GRACE_MS);
      this.#core.receive('session', { type: 'playout.started' });
    }
    this.#loudspeaker.say(frame, durationMs);
  }

  /**
   * Called when other speech follows the last question and the client has not reported the question as heard yet. The
   * outbox itself reports the playback of a question.
   */
  #follow(responseId: string): void {
    const attempt = this.attempt;
    const isQuestion = attempt?.offer.kind === 'question' && attempt.responseId === responseId;
    if (!isQuestion) followQuestion(this.#core);
  }

  /** Plays background audio that is not speech. The client does not report whether it was heard. */
  playBackground(frame: AudioFrame): void {
    this.#loudspeaker.playBackground(frame);
  }

  /** Drops background audio that the client has not played. */
  endBackground(): void {
    this.#loudspeaker.endBackground();
  }

  /** Marks a response's audio as complete. */
  completed(responseId: string): void {
    this.#over(this.#playout.complete(responseId));
  }

  /** Marks all audio as complete; audio that has already arrived continues to play. */
  completedAll(): void {
    for (const { responseId } of this.#playout.current) this.completed(responseId);
  }

  /** Handles a client's playout report. */
  played(itemId: string, playedMs: number): void {
    this.echo.played(itemId, playedMs, this.#environment.clock.now());
    this.#reported(this.#loudspeaker.played({ itemId, playedMs }));
    this.#endChange?.();
  }

  /** Pauses all speech immediately, so that it can continue later. Returns false if there is nothing to continue. */
  pause(): boolean {
    if (this.isSilent) return false;
    this.isLow = false;
    if (!this.#endChange) return this.#loudspeaker.pause();
    // The client has already stopped, because the level is about to change.
    this.#cancelChange?.();
    return true;
  }

  /** Lowers the speech. It can be raised again or paused later. Returns false if the speech cannot be lowered. */
  lower(): boolean {
    if (!this.canPause) return false;
    this.isLow = true;
    this.#continuesAt(LOW_GAIN);
    return true;
  }

  /** Continues the speech at full level from the point up to which it was heard. */
  resume(): void {
    const wasLow = this.isLow;
    this.isLow = false;
    if (this.#loudspeaker.isPaused) this.#continue(1);
    else if (!this.#loudspeaker.canPause) this.#loudspeaker.raise();
    else if (wasLow) this.#continuesAt(1);
  }

  /** Continues the speech at this level once the client has reported the position at which it stopped. */
  #continuesAt(gain: number): void {
    const { scheduler } = this.#environment;
    const end = () => this.#continue(gain);
    let cancel = scheduler.schedule(end, this.#clearReportMs);
    this.#cancelChange = () => {
      cancel();
      this.#endChange = null;
      this.#cancelChange = null;
    };
    this.#endChange = () => {
      // A client that is reporting may still be dropping audio, so the continued audio is sent after the report.
      cancel();
      cancel = scheduler.schedule(end, 0);
    };
    this.#loudspeaker.pause();
  }

  #continue(gain: number): void {
    this.#cancelChange?.();
    const from = this.#loudspeaker.resume(gain);
    if (!from || gain < 1) return;
    const { itemId, playedMs } = from;
    this.#core.projection.emit({ type: 'speech.resumed', itemId, playedMs });
  }

  /** Stops all speech immediately. `isGenerating`: the attempt's response has not ended yet. */
  stop(isGenerating: boolean): void {
    if (this.#playout.isDrained) return;
    this.#endCut?.();
    this.#cut = this.#playout.clear();
    const stoppedAt = this.#loudspeaker.drop();
    this.#drained();
    const cancel = this.#environment.scheduler.schedule(
      () => this.#endCut?.(),
      this.#clearReportMs,
    );
    this.#endCut = () => {
      cancel();
      this.#endCut = null;
      this.#settleCut(isGenerating);
    };
    // A client that is paused has already reported its position.
    if (stoppedAt) this.#reported(stoppedAt);
  }

  /** Stops waiting for a report and uses the last one. */
  stopWaiting(): void {
    this.#endCut?.();
    this.#cancelChange?.();
    this.#cancelStall?.();
  }

  /** Ends the stream. */
  complete(): void {
    this.stopWaiting();
    this.#loudspeaker.complete();
  }

  #reported({ itemId, playedMs }: PlayedItem): void {
    const cut = this.#cut.find((item) => item.itemId === itemId);
    if (cut) {
      const known = { ...cut, playedMs: Math.min(Math.max(playedMs, 0), cut.sentMs) };
      this.#cut = this.#cut.map((item) => (item === cut ? known : item));
      this.#endCut?.();
      return;
    }
    this.#lastWordAt = this.#environment.clock.now();
    const attempt = this.attempt;
    const item = this.#playout.current.find((current) => current.itemId === itemId);
    const over = this.#playout.played(itemId, playedMs);
    if (item) this.#hasHeardOf = true;
    if (attempt && item && item.responseId === attempt.responseId) {
      if (!attempt.hasBegun && playedMs > 0) {
        attempt.hasBegun = true;
        this.#core.receive('outbox', isHeardNow(attempt.offer));
      }
      attempt.played(itemId, playedMs, this.#lastWordAt);
    }
    this.#over(over);
  }

  #over(items: readonly Played[]): void {
    for (const { itemId, playedMs, responseId } of items)
      if (responseId === this.attempt?.responseId) this.attempt.played(itemId, playedMs);
    this.#checkHeard();
    if (this.#playout.isDrained) this.#drained();
  }

  /** Ends the attempt if it has been heard. */
  #checkHeard(): void {
    const attempt = this.attempt;
    if (!attempt?.isHeard) return;
    this.attempt = null;
    if (!attempt.hasBegun) this.#core.receive('outbox', isHeardNow(attempt.offer));
    const { generation } = attempt.offer;
    const heardAt = attempt.heardAt(this.#environment.clock.now());
    this.#core.receive('outbox', {
      type: 'delivery.heard',
      generation,
      grade: 'played',
      ...(heardAt !== null && { heardAt }),
    });
  }

  #watchStall(delayMs: number): void {
    const { clock, scheduler } = this.#environment;
    this.#cancelStall = scheduler.schedule(() => {
      const silentSince = this.#lastWordAt + this.#playout.unplayedMs + STALL_GRACE_MS;
      const leftMs = silentSince - clock.now();
      if (leftMs > 0) {
        this.#watchStall(leftMs);
        return;
      }
      const stalled = this.#playout.clear();
      this.#missReports();
      this.#drained();
      // If the client sends no reports, it is unknown whether the speech was heard.
      if (this.attempt?.hasBegun) this.#endAttempt(stalled);
    }, delayMs);
  }

  /**
   * Reports once that the app does not send playout reports. Without them, no delivery counts as heard, and the session
   * repeats deliveries.
   */
  #missReports(): void {
    if (this.#hasHeardOf || !this.#core.unit.isAttached) return;
    this.#hasHeardOf = true;
    const message =
      'Expected a report of the sound that was played, got none that names its `itemId`: what is said does not count ' +
      'as heard, and is said again. Call session.playout.next({ itemId, playedMs }) with the `itemId` of the frames, ' +
      'each 100 ms and at the end of an item.';
    this.#core.reportError(new ConfigurationError('NO_PLAYOUT_REPORT', message), 'voice output');
  }

  #drained(): void {
    this.#cancelStall?.();
    this.#cancelStall = null;
    if (!this.#isPlaying) return;
    this.#isPlaying = false;
    this.isLow = false;
    this.#cancelChange?.();
    this.#loudspeaker.drained();
    this.#core.receive('session', { type: 'playout.drained' });
    this.#turn.drained();
  }

  #settleCut(isGenerating: boolean): void {
    const cut = this.#cut;
    this.#cut = [];
    for (const item of cut) {
      const heard = this.#memory.heardPart(item);
      if (this.attempt?.responseId !== item.responseId) continue;
      this.attempt.played(item.itemId, item.playedMs);
      this.attempt.heardWords(heard);
    }
    this.#checkHeard();
    if (!isGenerating) this.#endAttempt(cut);
    this.#turn.next();
  }

  /** Ends the attempt if its response produced one of these items, which will not be played any further. */
  #endAttempt(items: readonly Played[]): void {
    const attempt = this.attempt;
    if (!attempt || !items.some(({ responseId }) => responseId === attempt.responseId)) return;
    this.attempt = null;
    this.notHeard('delivery.interrupted', attempt);
  }
}

/** How much of an item was played, measured from its start. */
export interface PlayedItem {
  readonly itemId: string;
  readonly playedMs: number;
}

interface Kept {
  readonly frame: AudioFrame;
  readonly itemId: string;
  /** The position of this audio in the item. */
  readonly startMs: number;
}

/** The alias under which the client receives an item from a certain position on. */
interface Renamed {
  readonly itemId: string;
  readonly alias: string;
  readonly offsetMs: number;
}

/** The audio stream to the client, including the part that may have to be sent again. */
export class Loudspeaker {
  readonly #clear: () => void;
  readonly #audioOut = new Subject<AudioFrame>();
  /** The duration of the audio that was sent for each item that may still be needed. */
  readonly #saidMs = new Map<string, number>();
  #kept: Kept[] = [];
  #keptMs = 0;
  #isWhole = true;
  #renamed: readonly Renamed[] = [];
  #pauses = 0;
  isPaused = false;
  #gain = 1;
  /** The position at which the client stopped, if it has reported this position since the pause. */
  #stoppedAt: PlayedItem | null = null;

  /** @param clear Instructs the client to drop the audio that it has not played. */
  constructor(clear: () => void) {
    this.#clear = clear;
  }

  get audioOut(): Observable<AudioFrame> {
    return this.#audioOut.asObservable();
  }

  get canPause(): boolean {
    return this.#isWhole && !this.isPaused;
  }

  say(frame: AudioFrame, durationMs = frameDurationMs(frame)): void {
    const { itemId = '' } = frame;
    const startMs = this.#saidMs.get(itemId) ?? 0;
    this.#saidMs.set(itemId, startMs + durationMs);
    // LOUDSPEAKER-4: audio cannot be continued after a gap.
    this.#isWhole &&= this.#keptMs + durationMs <= KEPT_MS;
    if (this.#isWhole) {
      this.#kept.push({ frame, itemId, startMs });
      this.#keptMs += durationMs;
    }
    if (!this.isPaused) this.#send(frame, itemId);
  }

  /** Converts a report from the client so that it refers to the model's item. */
  played(report: PlayedItem): PlayedItem {
    const renamed = this.#renamed.find(({ alias }) => alias === report.itemId);
    const itemId = renamed?.itemId ?? report.itemId;
    const playedMs = Math.max(0, report.playedMs) + (renamed?.offsetMs ?? 0);
    // A client that was instructed to stop also reports items that have not started, with 0 ms. Such a report does not
    // show that earlier items were played.
    const hasBegun = report.playedMs > 0;
    if (hasBegun) this.#wasPlayed(itemId, playedMs);
    if (this.isPaused && (hasBegun || !this.#stoppedAt)) this.#stoppedAt = { itemId, playedMs };
    return { itemId, playedMs };
  }

  /** Pauses the audio so that it can continue later. If this is impossible, changes nothing and returns false. */
  pause(): boolean {
    if (!this.canPause) return false;
    this.isPaused = true;
    this.#stoppedAt = null;
    this.#clear();
    return true;
  }

  /**
   * Continues at this level from the position up to which the audio was heard. Returns that position; null if no audio
   * is left.
   */
  resume(gain = 1): PlayedItem | null {
    this.isPaused = false;
    this.#gain = gain;
    this.#stoppedAt = null;
    this.#pauses += 1;
    // The client has dropped the audio under its current names, so each item gets a new name.
    for (const [itemId, saidMs] of this.#saidMs) {
      const first = this.#kept.find((kept) => kept.itemId === itemId);
      const alias = `${itemId}~${this.#pauses + 1}`;
      const renamed = { itemId, alias, offsetMs: first?.startMs ?? saidMs };
      if (itemId !== '') this.#renamed = [...this.#renamed, renamed].slice(-MAX_RENAMED);
    }
    for (const { frame, itemId } of this.#kept) this.#send(frame, itemId);
    const [first] = this.#kept;
    return first ? { itemId: first.itemId, playedMs: first.startMs } : null;
  }

  /** Restores the full level for subsequent audio. */
  raise(): void {
    this.#gain = 1;
  }

  /**
   * Drops the audio permanently. Returns the position at which the client stopped, if it was paused and has reported
   * this position.
   */
  drop(): PlayedItem | null {
    const stoppedAt = this.#stoppedAt;
    // A client that is paused has already dropped all audio.
    if (!this.isPaused) this.#clear();
    this.drained();
    return stoppedAt;
  }

  playBackground(frame: AudioFrame): void {
    this.#audioOut.next(frame);
  }

  /** Drops background audio that the client has not played. */
  endBackground(): void {
    // Clearing would also drop speech that is already on its way to the client.
    if (this.#kept.length === 0) this.#clear();
  }

  /** Removes the stored audio, because it will not be played any more. */
  drained(): void {
    this.isPaused = false;
    this.#gain = 1;
    this.#stoppedAt = null;
    this.#saidMs.clear();
    this.#kept = [];
    this.#keptMs = 0;
    this.#isWhole = true;
  }

  /** Ends the stream. */
  complete(): void {
    this.drained();
    this.#audioOut.complete();
  }

  #send(frame: AudioFrame, itemId: string): void {
    const renamed = this.#renamed.findLast((each) => each.itemId === itemId);
    const sent = this.#gain < 1 ? { ...frame, samples: atLevel(frame.samples, this.#gain) } : frame;
    this.#audioOut.next(renamed ? { ...sent, itemId: renamed.alias } : sent);
  }

  /** Records that all audio before this item has been played, and the item itself up to `playedMs`. */
  #wasPlayed(itemId: string, playedMs: number): void {
    if (!this.#saidMs.has(itemId)) return;
    for (const earlier of this.#saidMs.keys()) {
      if (earlier === itemId) break;
      this.#saidMs.delete(earlier);
    }
    for (let [first] = this.#kept; first; [first] = this.#kept) {
      const isEarlier = !this.#saidMs.has(first.itemId);
      if (!isEarlier && first.itemId !== itemId) break;
      const rest = isEarlier ? null : restOf(first, playedMs);
      this.#keptMs -= frameDurationMs(first.frame) - (rest ? frameDurationMs(rest.frame) : 0);
      if (rest) {
        this.#kept[0] = rest;
        break;
      }
      this.#kept.shift();
    }
  }
}

function atLevel(samples: Int16Array, gain: number): Int16Array {
  return samples.map((sample) => Math.round(sample * gain));
}

/** Returns the part of the stored audio that has not been played; null if all of it has been played. */
function restOf(kept: Kept, playedMs: number): Kept | null {
  const { frame, startMs } = kept;
  const { samples, sampleRateHz } = frame;
  const skipped = Math.round(((playedMs - startMs) * sampleRateHz) / 1000);
  if (skipped <= 0) return kept;
  if (skipped >= samples.length) return null;
  const rest = { ...frame, samples: samples.subarray(skipped) };
  return { ...kept, frame: rest, startMs: startMs + (skipped * 1000) / sampleRateHz };
}
