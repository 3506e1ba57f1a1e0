// The lead agent's sound on its way to a telephone, and how much of it was played. Twilio keeps the sound
// that it gets, plays it in order, and returns a mark when it has played all sound before the mark. There is
// no other report of playback.
//
//   24 kHz frames ─▶ 8 kHz ─▶ μ-law ─▶ queue ─▶ media, mark, media, mark … ─▶ Twilio
//                                        ▲           at most `maxAheadMs` without its mark
//                                        └──────────── mark comes back ◀──────────┘
//
// Owns:     the queue, the marks under way, and the playback that they prove.
// Does not: know the socket, or the reason for stopping speech (session).
//
// Invariants
//   OUTGOING-SOUND-1. Sound is reported as played only after its mark came back, before any sound sent ahead
//       of it was cleared. The reported length grows in steps of `CHUNK_MS` or less, never between.
//   OUTGOING-SOUND-2. A mark that comes back after a clear proves nothing: Twilio also returns the marks
//       whose sound it dropped. Sound played meanwhile counts as not heard.
//   OUTGOING-SOUND-3. Twilio holds at most `maxAheadMs` of sound (and one chunk): marks pace it, not a clock.
//   OUTGOING-SOUND-4. Sound leaves in order and complete. Sound that does not fit into the queue is cut off
//       at its end, and is never reported as played.

import { encodeMuLaw } from '../../voice/audio/mu-law.ts';
import { createResampler, type Resampler } from '../../voice/audio/resampler.ts';
import type { AudioFrame } from '../../voice/audio/audio-frame.ts';
import type { OutgoingMessage } from './messages.ts';

export const PHONE_RATE_HZ = 8000;
/** A client reports about every 100 ms. */
const CHUNK_MS = 100;
const CHUNK_LENGTH = (PHONE_RATE_HZ * CHUNK_MS) / 1000;

/** How far an item was played, from its beginning. */
export interface PlayedItem {
  readonly itemId: string;
  readonly playedMs: number;
}

export interface OutgoingSoundPorts {
  send(message: OutgoingMessage): void;
  played(item: PlayedItem): void;
  /** Reports that the queue is full and speech has lost its end. Once each time it fills. */
  overflowed(): void;
}

export interface OutgoingSoundOptions {
  readonly maxAheadMs: number;
  readonly maxQueuedMs: number;
}

/** The item being resampled. Sound without an item is played, and not reported. */
interface Item {
  readonly head: AudioFrame;
  readonly resampler: Resampler;
  length: number;
}

/** A stretch of sound under way. */
interface Stretch {
  readonly itemId: string | undefined;
  readonly codes: Uint8Array;
  /** Its end in the item, in samples. */
  readonly end: number;
}

interface Mark extends Pick<Stretch, 'itemId' | 'end'> {
  readonly name: string;
  readonly length: number;
}

export class OutgoingSound {
  readonly #ports: OutgoingSoundPorts;
  readonly #maxAhead: number;
  readonly #maxQueued: number;
  #item: Item | null = null;
  #queue: Stretch[] = [];
  #queued = 0;
  #isFull = false;
  #marks: Mark[] = [];
  #ahead = 0;
  #named = 0;
  #proven: { readonly itemId: string; readonly end: number } | null = null;

  constructor(ports: OutgoingSoundPorts, { maxAheadMs, maxQueuedMs }: OutgoingSoundOptions) {
    this.#ports = ports;
    this.#maxAhead = (maxAheadMs * PHONE_RATE_HZ) / 1000;
    this.#maxQueued = (maxQueuedMs * PHONE_RATE_HZ) / 1000;
  }

  spoke(frame: AudioFrame): void {
    if (this.#item && !isSameItem(this.#item.head, frame)) this.#endItem();
    this.#item ??= {
      head: frame,
      resampler: createResampler({ fromHz: frame.sampleRateHz, toHz: PHONE_RATE_HZ }),
      length: 0,
    };
    // The filter holds back the last 4 ms of an item until the next one begins, which is inaudible.
    this.#enqueue(this.#item, this.#item.resampler.process(frame.samples));
    this.#pump();
  }

  /** Handles a returned mark. */
  marked(name: string): void {
    const index = this.#marks.findIndex((mark) => mark.name === name);
    // OUTGOING-SOUND-2: the marks of cleared sound are forgotten.
    if (index < 0) return;
    // Twilio plays in order: earlier sound was played, even if its mark got lost.
    for (const { itemId, end, length } of this.#marks.splice(0, index + 1)) {
      this.#ahead -= length;
      if (itemId === undefined) continue;
      this.#proven = { itemId, end };
      this.#ports.played({ itemId, playedMs: milliseconds(end) });
    }
    this.#pump();
  }

  /** Drops the unplayed sound. Returns the item that was cut off, with its played length. */
  clear(): PlayedItem | null {
    const cut = [...this.#marks, ...this.#queue].find(({ itemId }) => itemId !== undefined);
    this.#item = null;
    this.#queue = [];
    this.#queued = 0;
    this.#isFull = false;
    this.#marks = [];
    this.#ahead = 0;
    this.#ports.send({ event: 'clear' });
    const proven = this.#proven;
    this.#proven = null;
    if (cut?.itemId === undefined) return null;
    const end = proven?.itemId === cut.itemId ? proven.end : 0;
    return { itemId: cut.itemId, playedMs: milliseconds(end) };
  }

  #endItem(): void {
    const item = this.#item;
    this.#item = null;
    if (item) this.#enqueue(item, item.resampler.flush());
    this.#isFull = false;
  }

  #enqueue(item: Item, samples: Int16Array): void {
    for (let from = 0; from < samples.length; from += CHUNK_LENGTH) {
      const codes = encodeMuLaw(samples.subarray(from, from + CHUNK_LENGTH));
      // Sound after a hole would be heard in the wrong place (OUTGOING-SOUND-4).
      if (this.#isFull || this.#queued + codes.length > this.#maxQueued) {
        if (!this.#isFull) this.#ports.overflowed();
        this.#isFull = true;
        return;
      }
      item.length += codes.length;
      this.#queued += codes.length;
      this.#queue.push({ itemId: item.head.itemId, codes, end: item.length });
    }
  }

  #pump(): void {
    while (this.#queue.length > 0 && this.#ahead < this.#maxAhead) {
      const { itemId, codes, end } = this.#take();
      this.#named += 1;
      const mark = { name: `played:${this.#named}`, itemId, end, length: codes.length };
      this.#marks.push(mark);
      this.#ahead += codes.length;
      const payload = Buffer.from(codes.buffer, codes.byteOffset, codes.length).toString('base64');
      this.#ports.send({ event: 'media', media: { payload } });
      this.#ports.send({ event: 'mark', mark: { name: mark.name } });
    }
  }

  /** Takes the first waiting sound, up to a whole chunk of one item: a frame may be much shorter. */
  #take(): Stretch {
    const { itemId } = this.#queue[0] as Stretch;
    let count = 0;
    let length = 0;
    for (const stretch of this.#queue) {
      if (stretch.itemId !== itemId || length + stretch.codes.length > CHUNK_LENGTH) break;
      length += stretch.codes.length;
      count += 1;
    }
    const taken = this.#queue.splice(0, count);
    this.#queued -= length;
    const codes =
      count === 1 ? (taken[0] as Stretch).codes : Buffer.concat(taken.map((it) => it.codes));
    return { itemId, codes, end: (taken.at(-1) as Stretch).end };
  }
}

function isSameItem(a: AudioFrame, b: AudioFrame): boolean {
  return (
    a.itemId === b.itemId && a.responseId === b.responseId && a.sampleRateHz === b.sampleRateHz
  );
}

function milliseconds(samples: number): number {
  return (samples * 1000) / PHONE_RATE_HZ;
}
