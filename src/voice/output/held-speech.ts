// What the model says by itself to words that may be for somebody else: an utterance is
// answered by the lead agent or by the subagent that asked, never by both. A model that
// answers by itself does not wait until it is known who was meant, so we do.
//
//   began ─┬─▶ free                                       nobody else can be meant
//          ├─▶ held ─┬─ for the lead agent, or unknown ─▶ released
//          │         └─ for a subagent, broken off ─────▶ silenced
//          └─▶ silenced                                   to words that were for a subagent
//
// Owns:     what is held, for how long, and what is not to be heard any more.
// Does not: decide who was meant (session), cancel (responses), or play (speech).
//
// Invariants
//   HELD-SPEECH-1. What is held is released or dropped, once, never both; what is released comes in the
//       order in which it was said, before what follows.
//   HELD-SPEECH-2. Nothing of a silenced response is heard, shown or run, also what comes late. A call
//       in it is answered, so that the model does not wait for it.
//   HELD-SPEECH-3. Nothing is held for longer than `patienceMs` after the user has fallen silent, nor
//       more than `HELD_MS` of sound: what does not fit is cut off at its end.

import type { Environment } from '../../actors/ports/environment.ts';
import type { AudioFrame } from '../audio/audio-frame.ts';
import { createBoundedBuffer, type BoundedBuffer } from '../audio/bounded-buffer.ts';
import { RecentIds } from '../audio/recent-ids.ts';
import type { TransportEvent } from '../connection/transport.ts';

const HELD_MS = 60_000;
const MAX_EVENTS = 1000;

export interface HeldSpeechPorts {
  /** Could what the user says, or has just said, be for somebody else than the lead agent? */
  isUndecided(): boolean;
  /** Do they still have the floor? */
  hasFloor(): boolean;
  /** Released: as if it were said now. */
  spoke(frame: AudioFrame): void;
  happened(event: TransportEvent): void;
  /** Nobody shall hear this response. `isOver`: it is not in the making any more. */
  silenced(responseId: string, isOver: boolean): void;
  /** Of a silenced response: this call is not run. */
  refused(callId: string): void;
  /** Of a silenced response: nothing of this item was played. Once for each. */
  unplayed(itemId: string): void;
}

interface Held {
  readonly responseId: string;
  readonly frames: BoundedBuffer;
  readonly events: TransportEvent[];
  isFull: boolean;
}

export class HeldSpeech {
  readonly #environment: Environment;
  readonly #ports: HeldSpeechPorts;
  readonly #patienceMs: number;
  readonly #held = new Map<string, Held>();
  readonly #silenced = new RecentIds();
  readonly #unplayed = new RecentIds();
  /** Released, but what follows did not fit (HELD-SPEECH-3). */
  readonly #cutOff = new RecentIds();
  /** What begins before then answers words that were for a subagent. */
  #unwantedUntil = 0;
  #cancelPatience: (() => void) | null = null;

  constructor(environment: Environment, ports: HeldSpeechPorts, patienceMs: number) {
    this.#environment = environment;
    this.#ports = ports;
    this.#patienceMs = patienceMs;
  }

  /** The model has begun a response by itself. */
  began(responseId: string): void {
    if (this.#environment.clock.now() < this.#unwantedUntil) this.#silence(responseId);
    else if (this.#ports.isUndecided()) {
      const frames = createBoundedBuffer({ maxMs: HELD_MS, keep: 'oldest' });
      this.#held.set(responseId, { responseId, frames, events: [], isFull: false });
      this.#wait();
    }
  }

  /** Takes a frame that is not to be heard now. */
  takesFrame(frame: AudioFrame): boolean {
    const { responseId = '', itemId } = frame;
    if (this.#silenced.has(responseId)) {
      this.#drop(itemId);
      return true;
    }
    const held = this.#held.get(responseId);
    if (!held) return this.#cutOff.has(responseId);
    // A frame that did not fit is followed by none: there is no hole in what is heard.
    held.isFull ||= !held.frames.push(frame);
    return true;
  }

  /** Takes what is said about a response that is held or silenced. */
  takesEvent(event: TransportEvent): boolean {
    if (event.type === 'tool.cancelled') return this.#takesBack(event.callId);
    if (!('responseId' in event)) return false;
    const { responseId, type } = event;
    if (this.#silenced.has(responseId)) {
      if (type === 'tool.called') this.#ports.refused(event.callId);
      // That it began and ended is nobody's words.
      return type === 'tool.called' || type === 'assistant.transcribed';
    }
    const held = this.#held.get(responseId);
    if (!held || type === 'response.started') return false;
    // What is lost beyond the bound are words, never an end or a call.
    if (held.events.length < MAX_EVENTS || type !== 'assistant.transcribed')
      held.events.push(event);
    return true;
  }

  /** The words were for the lead agent, or nobody knows: it is heard. */
  release(): void {
    this.#stopWaiting();
    for (const held of this.#takeAll()) {
      for (const frame of held.frames.drain()) this.#ports.spoke(frame);
      if (held.isFull) this.#cutOff.add(held.responseId);
      for (const event of held.events) this.#ports.happened(event);
    }
  }

  /**
   * It is not heard: the words were for a subagent, or the user goes on. Returns whether
   * anything was held.
   */
  silence(): boolean {
    this.#stopWaiting();
    const all = this.#takeAll();
    for (const { responseId, frames, events } of all) {
      this.#silence(
        responseId,
        events.some(({ type }) => type === 'response.ended'),
      );
      for (const { itemId } of frames.drain()) this.#drop(itemId);
      for (const event of events) if (!this.takesEvent(event)) this.#ports.happened(event);
    }
    return all.length > 0;
  }

  /** The user's words were for a subagent: what the model begins to say to them is silenced, for `forMs`. */
  expectUnwanted(forMs: number): void {
    this.#unwantedUntil = this.#environment.clock.now() + forMs;
  }

  /** What the model says from now on has another cause. */
  expectWanted(): void {
    this.#unwantedUntil = 0;
  }

  /** Whoever said it is gone. */
  reset(): void {
    this.#stopWaiting();
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

  /** A call that is held is taken back: it was never made. */
  #takesBack(callId: string): boolean {
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

  #takeAll(): readonly Held[] {
    const all = [...this.#held.values()];
    this.#held.clear();
    return all;
  }

  #wait(): void {
    this.#stopWaiting();
    this.#cancelPatience = this.#environment.scheduler.schedule(() => {
      this.#cancelPatience = null;
      // Whoever speaks now will be waited for in turn.
      if (this.#ports.hasFloor()) this.#wait();
      else this.release();
    }, this.#patienceMs);
  }

  #stopWaiting(): void {
    this.#cancelPatience?.();
    this.#cancelPatience = null;
  }
}
