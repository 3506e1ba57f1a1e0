// Withholds the replies that a voice model starts on its own while it is undecided whether the lead agent or an asking
// subagent should answer the user's words; only one of them may answer. A model that replies on its own does not wait
// for that decision, so its output is held here.
//
//   began ─┬─▶ free                                       only the lead agent can be addressed
//          ├─▶ held ─┬─ for the lead agent, or unknown ─▶ released
//          │         └─ for a subagent, interrupted ────▶ silenced
//          └─▶ silenced                                   a reply to words for a subagent
//
//   for a subagent: read ─┬─ the reply only acknowledges ──▶ released
//                         │        └─ audio in real time ─▶ follows ─┬─ it ends ───▶ heard
//                         │                                          └─ says more ─▶ the rest is silenced
//                         └─ anything else, or too late ──────▶ silenced
//
// Owns:     the held output, how long it is held, and the set of silenced responses.
// Does not: decide who was addressed (session), recognise an acknowledgement (acknowledgement), cancel responses
//           (responses), or play audio (speech).
//
// Invariants
//   HELD-SPEECH-1. Held output is either released or dropped, exactly once. Released output remains in order and
//       precedes all later output.
//   HELD-SPEECH-2. No part of a silenced response is played, shown or executed, even if it arrives late. The calls in
//       it are answered, so that the model does not wait for their results.
//   HELD-SPEECH-3. Output is held for at most `patienceMs` after the user has stopped speaking. At most `HELD_MS` of
//       audio is held, and further audio is dropped.
//   HELD-SPEECH-4. A reply to an answer is released only if it is complete, all its words were recognised as an
//       acknowledgement within `READ_MS`, and nothing else is due. At most one reply is released per answer.
//   HELD-SPEECH-5. If audio arrives in real time, in step with its words, such a reply is released before it is
//       complete. Its audio is played with a delay of `FOLLOW_MS`, as long as its words are recognised as an
//       acknowledgement.

import type { Environment } from '../../actors/ports/environment.ts';
import type { AudioFrame } from '../audio/audio-frame.ts';
import { createBoundedBuffer, type BoundedBuffer } from '../audio/bounded-buffer.ts';
import { RecentIds } from '../audio/recent-ids.ts';
import type { TransportEvent } from '../connection/transport.ts';

const HELD_MS = 60_000;
const MAX_EVENTS = 1000;

/** The time within which a reply must be recognised as an acknowledgement. */
const READ_MS = 2500;
/** The delay for audio whose words are checked first. Transports report words sooner than this. */
const FOLLOW_MS = 400;

/** Checks what the model says in response to an answer. */
export interface ReplyReader {
  /**
   * Returns whether the text only acknowledges the answer (`whole`), may do so once it is complete, or says something
   * else.
   */
  read(text: string): 'whole' | 'beginning' | 'none';
  /** Returns whether any other speech is due now. */
  isLate(): boolean;
}

export interface HeldSpeechOptions {
  /** The maximum time that output is held after the user has stopped speaking, in milliseconds. */
  readonly patienceMs: number;
  /** Whether the model's audio arrives in real time, in step with its words. */
  readonly isInRealTime: boolean;
}

export interface HeldSpeechPorts {
  /** Returns whether the user's current or last words may be addressed to a subagent. */
  isUndecided(): boolean;
  /** Returns whether the user still has the floor. */
  hasFloor(): boolean;
  /** Plays a released frame as if it had just arrived. `acknowledges`: the frame belongs to an acknowledgement. */
  play(frame: AudioFrame, acknowledges: boolean): void;
  handle(event: TransportEvent): void;
  /**
   * Silences a response. `isOver`: the model has finished generating the response. `wasHeard`: part of the response was
   * released.
   */
  silenced(responseId: string, isOver: boolean, wasHeard: boolean): void;
  /** Answers a call of a silenced response without running it. */
  refused(callId: string): void;
  /** Reports that no audio of a silenced response's item was played; called once for each item. */
  unplayed(itemId: string): void;
}

interface Held {
  readonly responseId: string;
  readonly frames: BoundedBuffer;
  readonly events: TransportEvent[];
  isFull: boolean;
  /** Checks whether the response only acknowledges the answer; null if the response is not a reply to an answer. */
  reader: ReplyReader | null;
  /** The words of the response so far. */
  text: string;
  /** Whether an event of the response is currently being handled. */
  isPassing: boolean;
  /** HELD-SPEECH-5: stops the delayed playback; null while no part of the response can be heard. */
  follows: (() => void) | null;
  /** The arrival times of the held frames. */
  readonly cameAt: number[];
}

export class HeldSpeech {
  readonly #environment: Environment;
  readonly #ports: HeldSpeechPorts;
  readonly #options: HeldSpeechOptions;
  readonly #held = new Map<string, Held>();
  readonly #silenced = new RecentIds();
  readonly #unplayed = new RecentIds();
  /** Released responses whose remaining audio was dropped because it did not fit (HELD-SPEECH-3). */
  readonly #cutOff = new RecentIds();
  /** Until this time, a new response is assumed to be a reply to words that were addressed to a subagent. */
  #unwantedUntil = 0;
  /**
   * New responses are silenced for this time after the current response has ended. Null if no current response matters.
   */
  #unwantedAfter: number | null = null;
  #cancelPatience: (() => void) | null = null;
  /** HELD-SPEECH-4: checks whether the next reply only acknowledges the answer. Null if no reply may do this. */
  #reader: ReplyReader | null = null;
  #cancelReading: (() => void) | null = null;

  constructor(environment: Environment, ports: HeldSpeechPorts, options: HeldSpeechOptions) {
    this.#environment = environment;
    this.#ports = ports;
    this.#options = options;
  }

  /** Handles the start of an unprompted response. */
  began(responseId: string): void {
    const isUnwanted =
      this.#unwantedAfter !== null || this.#environment.clock.now() < this.#unwantedUntil;
    if (isUnwanted && !this.#reader) this.#silence(responseId);
    else if (isUnwanted || this.#ports.isUndecided()) {
      const frames = createBoundedBuffer({ maxMs: HELD_MS, keep: 'oldest' });
      this.#held.set(responseId, {
        responseId,
        frames,
        events: [],
        isFull: false,
        reader: isUnwanted ? this.#reader : null,
        text: '',
        isPassing: false,
        follows: null,
        cameAt: [],
      });
      if (!isUnwanted) this.#wait();
    }
  }

  /** Holds or drops a frame. Returns whether the frame was held or dropped; otherwise, the caller plays it now. */
  handleFrame(frame: AudioFrame): boolean {
    const { responseId = '', itemId } = frame;
    if (this.#silenced.has(responseId)) {
      this.#drop(itemId);
      return true;
    }
    const held = this.#held.get(responseId);
    if (!held) return this.#cutOff.has(responseId);
    // After a frame that did not fit, all further frames are dropped, so that the audio has no gap.
    held.isFull ||= !held.frames.push(frame);
    if (!held.isFull) held.cameAt.push(this.#environment.clock.now());
    if (held.follows) this.#follow(held);
    return true;
  }

  /** Holds or drops an event of a held or silenced response. Returns whether the event was held or dropped. */
  handleEvent(event: TransportEvent): boolean {
    if (event.type === 'tool.cancelled') return this.#takeBack(event.callId);
    if (!('responseId' in event)) return false;
    const { responseId, type } = event;
    if (type === 'response.ended' && this.#unwantedAfter !== null)
      this.expectUnwanted(this.#unwantedAfter, false);
    if (this.#silenced.has(responseId)) {
      if (type === 'tool.called') this.#ports.refused(event.callId);
      // The start and the end of a silenced response contain no words, so these events are passed on.
      return type === 'tool.called' || type === 'assistant.transcribed';
    }
    const held = this.#held.get(responseId);
    if (!held || held.isPassing || type === 'response.started') return false;
    // If the limit is exceeded, only transcripts are dropped, but never an end or a call.
    if (held.events.length < MAX_EVENTS || type !== 'assistant.transcribed')
      held.events.push(event);
    if (type === 'assistant.transcribed')
      held.text = event.final ? event.text : held.text + event.text;
    this.#read(held);
    return true;
  }

  /** Releases the held output because the words were addressed to the lead agent or their addressee remains unknown. */
  release(): void {
    this.#stopWaiting();
    for (const held of this.#takeAll(({ reader }) => !reader)) this.#release(held);
  }

  #release({ responseId, frames, events, isFull, reader }: Held): void {
    for (const frame of frames.drain()) this.#ports.play(frame, reader !== null);
    if (isFull) this.#cutOff.add(responseId);
    for (const event of events) this.#ports.handle(event);
  }

  /**
   * Drops the held output because the words were addressed to a subagent or the user is still speaking. Returns whether
   * anything was held.
   */
  silence(): boolean {
    this.#stopWaiting();
    this.#stopReading();
    const all = this.#takeAll();
    for (const held of all) this.#silenceHeld(held);
    return all.length > 0;
  }

  /**
   * Like `silence`, but releases held output and the next reply if they only acknowledge the answer (HELD-SPEECH-4).
   */
  silenceUnless(reader: ReplyReader): boolean {
    this.#stopWaiting();
    this.#stopReading();
    this.#reader = reader;
    const { scheduler } = this.#environment;
    this.#cancelReading = scheduler.schedule(() => this.#endReading(), READ_MS);
    const all = [...this.#held.values()];
    for (const held of all) held.reader ??= reader;
    for (const held of all) this.#read(held);
    return all.length > 0;
  }

  #silenceHeld({ responseId, frames, events, follows }: Held): void {
    follows?.();
    const isOver = events.some(({ type }) => type === 'response.ended');
    this.#silence(responseId, isOver, follows !== null);
    for (const { itemId = '' } of frames.drain())
      if (follows) this.#unplayed.add(itemId);
      else this.#drop(itemId);
    for (const event of events) if (!this.handleEvent(event)) this.#ports.handle(event);
  }

  #read(held: Held): void {
    const { events, responseId, reader, text } = held;
    if (!reader || this.#held.get(responseId) !== held) return;
    const hasEnded = events.some(({ type }) => type === 'response.ended');
    const reading = hasCall(events) ? 'none' : reader.read(text);
    // At most one acknowledgement is released, and none starts once something else is due.
    const isLate =
      !held.follows && reading === 'whole' && (reader !== this.#reader || reader.isLate());
    if (reading === 'none' || isLate || (hasEnded && reading === 'beginning')) {
      this.#held.delete(responseId);
      this.#silenceHeld(held);
    } else if (hasEnded) {
      this.#held.delete(responseId);
      if (!held.follows) this.#reader = null;
      held.follows?.();
      this.#release(held);
    } else if (held.follows) this.#handleAll(held);
    else if (reading === 'whole' && this.#options.isInRealTime) {
      this.#reader = null;
      this.#follow(held);
      this.#handleAll(held);
    }
  }

  #handleAll(held: Held): void {
    held.isPassing = true;
    for (const event of held.events.splice(0)) this.#ports.handle(event);
    held.isPassing = false;
  }

  /** Plays the frames that arrived at least `FOLLOW_MS` ago (HELD-SPEECH-5). */
  #follow(held: Held): void {
    held.follows?.();
    const { frames, cameAt } = held;
    const { clock, scheduler } = this.#environment;
    for (let [at] = cameAt; at !== undefined && at + FOLLOW_MS <= clock.now(); [at] = cameAt) {
      cameAt.shift();
      const frame = frames.shift();
      if (frame) this.#ports.play(frame, true);
    }
    const [next] = cameAt;
    held.follows =
      next === undefined
        ? () => {}
        : scheduler.schedule(() => this.#follow(held), next + FOLLOW_MS - clock.now());
  }

  /** Silences speech that was not recognised as an acknowledgement in time. */
  #endReading(): void {
    this.#stopReading();
    for (const held of this.#takeAll(({ reader, follows }) => reader !== null && !follows))
      this.#silenceHeld(held);
  }

  #stopReading(): void {
    this.#reader = null;
    this.#cancelReading?.();
    this.#cancelReading = null;
  }

  /**
   * Silences all responses that start within `forMs`, because they are replies to words that were addressed to a
   * subagent. `isBusy`: the time starts when the current response ends.
   */
  expectUnwanted(forMs: number, isBusy: boolean): void {
    this.#unwantedUntil = this.#environment.clock.now() + forMs;
    this.#unwantedAfter = isBusy ? forMs : null;
  }

  /** Stops silencing new responses. */
  expectWanted(): void {
    this.#unwantedUntil = 0;
    this.#unwantedAfter = null;
    if (this.#reader) this.#endReading();
  }

  /** Clears all held output, because its connection or agent is gone. */
  reset(): void {
    this.#stopWaiting();
    this.#stopReading();
    for (const { follows } of this.#held.values()) follows?.();
    this.#held.clear();
    this.#silenced.clear();
    this.#unplayed.clear();
    this.#cutOff.clear();
    this.#unwantedUntil = 0;
    this.#unwantedAfter = null;
  }

  #silence(responseId: string, isOver = false, wasHeard = false): void {
    this.#silenced.add(responseId);
    this.#ports.silenced(responseId, isOver, wasHeard);
  }

  #drop(itemId = ''): void {
    if (this.#unplayed.add(itemId)) this.#ports.unplayed(itemId);
  }

  /** Removes a held call that the model has withdrawn. Returns whether the call was held. */
  #takeBack(callId: string): boolean {
    for (const { events } of this.#held.values()) {
      const index = events.findIndex(
        (event) => event.type === 'tool.called' && event.callId === callId,
      );
      if (index < 0) continue;
      events.splice(index, 1);
      return true;
    }
    return false;
  }

  #takeAll(which: (held: Held) => boolean = () => true): readonly Held[] {
    const taken = [...this.#held.values()].filter(which);
    for (const { responseId } of taken) this.#held.delete(responseId);
    return taken;
  }

  #wait(): void {
    this.#stopWaiting();
    this.#cancelPatience = this.#environment.scheduler.schedule(() => {
      this.#cancelPatience = null;
      // If the user is speaking now, the waiting time starts again.
      if (this.#ports.hasFloor()) this.#wait();
      else this.release();
    }, this.#options.patienceMs);
  }

  #stopWaiting(): void {
    this.#cancelPatience?.();
    this.#cancelPatience = null;
  }
}

function hasCall(events: readonly TransportEvent[]): boolean {
  return events.some(({ type }) => type === 'tool.called');
}
