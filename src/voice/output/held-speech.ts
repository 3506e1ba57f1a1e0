// Withholds the replies that a voice model starts by itself while the addressee of the user's words is
// undecided: either the lead agent or the subagent that asked answers an utterance, never both. A model that
// answers by itself does not wait for that decision, so this component holds its output back.
//
//   began ─┬─▶ free                                       nobody else can be meant
//          ├─▶ held ─┬─ for the lead agent, or unknown ─▶ released
//          │         └─ for a subagent, broken off ─────▶ silenced
//          └─▶ silenced                                   to words that were for a subagent
//
//   for a subagent: read ─┬─ it only acknowledges the answer ─▶ released
//                         └─ anything else, or too late ──────▶ silenced
//
// Owns:     the held output, how long it is held, and the responses that are silenced.
// Does not: decide who was meant (session), know which words acknowledge an answer (acknowledgement), cancel
//           (responses), or play (speech).
//
// Invariants
//   HELD-SPEECH-1. Held output is released or dropped, exactly once. Released output keeps its order and goes
//       before any output that follows.
//   HELD-SPEECH-2. No part of a silenced response is heard, shown or run, even if it arrives late. A call in
//       it is answered, so that the model does not wait for it.
//   HELD-SPEECH-3. Output is held for at most `patienceMs` after the user has fallen silent, and for at most
//       `HELD_MS` of sound: the rest is cut off at the end.
//   HELD-SPEECH-4. A reply to an answer is released only when it is complete and every word of it was read as an
//       acknowledgement, at most one for an answer, within `READ_MS`, and only while nothing else is due.

import type { Environment } from '../../actors/ports/environment.ts';
import type { AudioFrame } from '../audio/audio-frame.ts';
import { createBoundedBuffer, type BoundedBuffer } from '../audio/bounded-buffer.ts';
import { RecentIds } from '../audio/recent-ids.ts';
import type { TransportEvent } from '../connection/transport.ts';

const HELD_MS = 60_000;
const MAX_EVENTS = 1000;

/** A reply that may acknowledge an answer is awaited for so long. */
const READ_MS = 2500;

/** Reads what the model says to an answer: whether it only acknowledges it, may become so, or says more. */
export type ReplyReader = (text: string) => 'whole' | 'beginning' | 'none';

export interface HeldSpeechPorts {
  /** Returns whether the user's current or last words may be addressed to a subagent. */
  isUndecided(): boolean;
  /** Returns whether the user still has the floor. */
  hasFloor(): boolean;
  /** Plays a released frame as if it had just arrived. */
  play(frame: AudioFrame): void;
  handle(event: TransportEvent): void;
  /** Silences a response. `isOver`: the model no longer generates it. */
  silenced(responseId: string, isOver: boolean): void;
  /** Answers a call of a silenced response without running it. */
  refused(callId: string): void;
  /** Reports that no sound of an item of a silenced response was played; once per item. */
  unplayed(itemId: string): void;
}

interface Held {
  readonly responseId: string;
  readonly frames: BoundedBuffer;
  readonly events: TransportEvent[];
  isFull: boolean;
  /** It is held until it was read whether it acknowledges the answer. */
  isRead: boolean;
}

export class HeldSpeech {
  readonly #environment: Environment;
  readonly #ports: HeldSpeechPorts;
  readonly #patienceMs: number;
  readonly #held = new Map<string, Held>();
  readonly #silenced = new RecentIds();
  readonly #unplayed = new RecentIds();
  /** Released responses whose further sound did not fit (HELD-SPEECH-3). */
  readonly #cutOff = new RecentIds();
  /** A response that begins before this time answers words that were addressed to a subagent. */
  #unwantedUntil = 0;
  #cancelPatience: (() => void) | null = null;
  /** HELD-SPEECH-4; null: no reply may serve. */
  #reader: ReplyReader | null = null;
  #cancelReading: (() => void) | null = null;

  constructor(environment: Environment, ports: HeldSpeechPorts, patienceMs: number) {
    this.#environment = environment;
    this.#ports = ports;
    this.#patienceMs = patienceMs;
  }

  /** Handles the start of a response that the model began by itself. */
  began(responseId: string): void {
    const isUnwanted = this.#environment.clock.now() < this.#unwantedUntil;
    if (isUnwanted && !this.#reader) this.#silence(responseId);
    else if (isUnwanted || this.#ports.isUndecided()) {
      const frames = createBoundedBuffer({ maxMs: HELD_MS, keep: 'oldest' });
      this.#held.set(responseId, {
        responseId,
        frames,
        events: [],
        isFull: false,
        isRead: isUnwanted,
      });
      if (!isUnwanted) this.#wait();
    }
  }

  /** Holds or drops a frame. Returns whether it did; otherwise the frame is to be heard now. */
  handleFrame(frame: AudioFrame): boolean {
    const { responseId = '', itemId } = frame;
    if (this.#silenced.has(responseId)) {
      this.#drop(itemId);
      return true;
    }
    const held = this.#held.get(responseId);
    if (!held) return this.#cutOff.has(responseId);
    // After a frame that did not fit no other is kept, so that the sound has no hole.
    held.isFull ||= !held.frames.push(frame);
    return true;
  }

  /** Holds or drops an event of a held or silenced response. Returns whether it did. */
  handleEvent(event: TransportEvent): boolean {
    if (event.type === 'tool.cancelled') return this.#takeBack(event.callId);
    if (!('responseId' in event)) return false;
    const { responseId, type } = event;
    if (this.#silenced.has(responseId)) {
      if (type === 'tool.called') this.#ports.refused(event.callId);
      // The start and the end of a silenced response carry no words, so they pass.
      return type === 'tool.called' || type === 'assistant.transcribed';
    }
    const held = this.#held.get(responseId);
    if (!held || type === 'response.started') return false;
    // Beyond the bound only transcripts are dropped, never an end or a call.
    if (held.events.length < MAX_EVENTS || type !== 'assistant.transcribed')
      held.events.push(event);
    if (held.isRead) this.#read(held);
    return true;
  }

  /** Releases the held output: the words were addressed to the lead agent, or the addressee stays unknown. */
  release(): void {
    this.#stopWaiting();
    for (const held of this.#takeAll(({ isRead }) => !isRead)) this.#release(held);
  }

  #release({ responseId, frames, events, isFull }: Held): void {
    for (const frame of frames.drain()) this.#ports.play(frame);
    if (isFull) this.#cutOff.add(responseId);
    for (const event of events) this.#ports.handle(event);
  }

  /**
   * Drops the held output: the words were addressed to a subagent, or the user speaks on. Returns whether
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
   * As `silence`, but what only acknowledges the answer is released (HELD-SPEECH-4), and so is the next reply.
   */
  silenceUnless(reader: ReplyReader): boolean {
    this.#stopWaiting();
    this.#stopReading();
    this.#reader = reader;
    const { scheduler } = this.#environment;
    this.#cancelReading = scheduler.schedule(() => this.#endReading(), READ_MS);
    const all = [...this.#held.values()];
    for (const held of all) held.isRead = true;
    for (const held of all) this.#read(held);
    return all.length > 0;
  }

  #silenceHeld({ responseId, frames, events }: Held): void {
    this.#silence(
      responseId,
      events.some(({ type }) => type === 'response.ended'),
    );
    for (const { itemId } of frames.drain()) this.#drop(itemId);
    for (const event of events) if (!this.handleEvent(event)) this.#ports.handle(event);
  }

  #read(held: Held): void {
    if (this.#held.get(held.responseId) !== held) return;
    const { events, responseId } = held;
    const hasEnded = events.some(({ type }) => type === 'response.ended');
    const reading = this.#reader?.(textOf(events)) ?? 'none';
    if (reading !== 'none' && !hasEnded) return;
    this.#held.delete(responseId);
    if (reading !== 'whole' || hasCall(events)) {
      this.#silenceHeld(held);
      return;
    }
    this.#reader = null;
    this.#release(held);
  }

  /** What has not been read as an acknowledgement by now is none. */
  #endReading(): void {
    this.#stopReading();
    for (const held of this.#takeAll(({ isRead }) => isRead)) this.#silenceHeld(held);
  }

  #stopReading(): void {
    this.#reader = null;
    this.#cancelReading?.();
    this.#cancelReading = null;
  }

  /**
   * Silences for `forMs` the responses that the model begins: they answer words that were addressed to a
   * subagent.
   */
  expectUnwanted(forMs: number): void {
    this.#unwantedUntil = this.#environment.clock.now() + forMs;
  }

  /** Stops silencing new responses: they no longer answer words that were addressed to a subagent. */
  expectWanted(): void {
    this.#unwantedUntil = 0;
    if (this.#reader) this.#endReading();
  }

  /** Forgets all held output when its connection or agent is gone. */
  reset(): void {
    this.#stopWaiting();
    this.#stopReading();
    this.#held.clear();
    this.#silenced.clear();
    this.#unplayed.clear();
    this.#cutOff.clear();
    this.#unwantedUntil = 0;
  }

  #silence(responseId: string, isOver = false): void {
    this.#silenced.add(responseId);
    this.#ports.silenced(responseId, isOver);
  }

  #drop(itemId = ''): void {
    if (this.#unplayed.add(itemId)) this.#ports.unplayed(itemId);
  }

  /** Removes a held call, as if it had never been made. */
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
      // A user who speaks now is waited for again.
      if (this.#ports.hasFloor()) this.#wait();
      else this.release();
    }, this.#patienceMs);
  }

  #stopWaiting(): void {
    this.#cancelPatience?.();
    this.#cancelPatience = null;
  }
}

function textOf(events: readonly TransportEvent[]): string {
  let text = '';
  for (const event of events)
    if (event.type === 'assistant.transcribed') text = event.final ? event.text : text + event.text;
  return text;
}

function hasCall(events: readonly TransportEvent[]): boolean {
  return events.some(({ type }) => type === 'tool.called');
}
