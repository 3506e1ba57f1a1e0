// A queue of frames that holds at most so many milliseconds of sound and says what
// it drops. For sound of the user the newest is worth keeping (what was said before
// a stall is stale), for sound of a model the oldest (a sentence is heard from its start).
//
// BOUNDED-BUFFER-1. The sum of what it holds is never more than `maxMs`.
// BOUNDED-BUFFER-2. What was pushed is held, was taken, was cleared, or is counted in `dropped`.
// BOUNDED-BUFFER-3. Frames leave in the order in which they came.

import { frameDurationMs, type AudioFrame } from './audio-frame.ts';
import { z } from 'zod';
import { check, type ChecksOf } from '../../values/checks.ts';

/** An amount of sound that was dropped. */
export interface DroppedAudio {
  readonly frames: number;
  readonly durationMs: number;
}

export interface BoundedBufferOptions {
  /** The most that is held, in milliseconds of sound; more than 0. */
  readonly maxMs: number;
  /** When full: `newest` drops from the front to make room, `oldest` refuses the frame that came. */
  readonly keep: 'newest' | 'oldest';
  /** Called after each push that dropped something, with what this push dropped. Must not throw. */
  readonly onDrop?: (dropped: DroppedAudio) => void;
}

/** A first-in-first-out queue of whole frames, bounded in milliseconds. */
export interface BoundedBuffer {
  /**
   * Adds a frame at the end. A frame that alone is longer than `maxMs` is dropped whole.
   * @returns whether the frame was kept
   */
  push(frame: AudioFrame): boolean;
  /** Takes the first frame. */
  shift(): AudioFrame | undefined;
  /** Takes all frames, in order. */
  drain(): AudioFrame[];
  /** Forgets all frames. On purpose, so not counted as dropped. */
  clear(): void;
  /** Frames held. */
  readonly size: number;
  /** Milliseconds of sound held. */
  readonly durationMs: number;
  /** All that was dropped since the buffer was made. */
  readonly dropped: DroppedAudio;
}

const optionsSchema = z.strictObject({
  maxMs: z.custom<number>(
    (value) => typeof value === 'number' && value > 0,
    'expected a number above 0',
  ),
  keep: z.enum(['newest', 'oldest']),
  onDrop: z
    .custom<BoundedBufferOptions['onDrop']>((value) => typeof value === 'function')
    .optional(),
} satisfies ChecksOf<BoundedBufferOptions>);

/** @throws {ConfigurationError} `INVALID_OPTION` when `maxMs` is not a number above 0. */
export function createBoundedBuffer(options: BoundedBufferOptions): BoundedBuffer {
  const { maxMs, keep, onDrop } = check('createBoundedBuffer', optionsSchema, options);
  let frames: AudioFrame[] = [];
  let heldMs = 0;
  let dropped: DroppedAudio = { frames: 0, durationMs: 0 };

  const drop = (count: number, durationMs: number): void => {
    dropped = { frames: dropped.frames + count, durationMs: dropped.durationMs + durationMs };
    onDrop?.({ frames: count, durationMs });
  };
  const shift = (): AudioFrame | undefined => {
    const frame = frames.shift();
    if (frame !== undefined) heldMs -= frameDurationMs(frame);
    // Sums of fractions of a millisecond do not come back to exactly 0.
    if (frames.length === 0) heldMs = 0;
    return frame;
  };
  const drain = (): AudioFrame[] => {
    const all = frames;
    frames = [];
    heldMs = 0;
    return all;
  };

  return {
    push(frame) {
      const lengthMs = frameDurationMs(frame);
      if (lengthMs > maxMs || (keep === 'oldest' && heldMs + lengthMs > maxMs)) {
        drop(1, lengthMs);
        return false;
      }
      let count = 0;
      let durationMs = 0;
      while (heldMs + lengthMs > maxMs) {
        const oldest = shift();
        if (oldest === undefined) break;
        count += 1;
        durationMs += frameDurationMs(oldest);
      }
      frames.push(frame);
      heldMs += lengthMs;
      if (count > 0) drop(count, durationMs);
      return true;
    },
    shift,
    drain,
    clear() {
      drain();
    },
    get size() {
      return frames.length;
    },
    get durationMs() {
      return heldMs;
    },
    get dropped() {
      return dropped;
    },
  };
}
