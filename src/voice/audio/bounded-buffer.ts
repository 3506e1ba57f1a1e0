// A queue of frames that is bounded in milliseconds of sound and reports the sound that it drops. For the
// user's sound the newest is worth keeping (older speech is stale after a stall), for a model's sound the
// oldest (a sentence is heard from its start).
//
// BOUNDED-BUFFER-1. The held sound never exceeds `maxMs`.
// BOUNDED-BUFFER-2. Each pushed frame is held, was taken, was cleared, or is counted in `dropped`.
// BOUNDED-BUFFER-3. Frames leave in the order in which they came.

import { frameDurationMs, type AudioFrame } from './audio-frame.ts';
import { checkOptions, oneOf, optional, type OptionChecks } from '../../values/plain-checks.ts';

/** An amount of sound that was dropped. */
export interface DroppedAudio {
  readonly frames: number;
  readonly durationMs: number;
}

export interface BoundedBufferOptions {
  /** The limit in milliseconds of sound; more than 0. */
  readonly maxMs: number;
  /** When full: `newest` drops from the front to make room, `oldest` refuses the new frame. */
  readonly keep: 'newest' | 'oldest';
  /** Called after each push that dropped sound, with the amount that this push dropped. Must not throw. */
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
  /** Drops all frames deliberately, so they are not counted as dropped. */
  clear(): void;
  /** The number of held frames. */
  readonly size: number;
  /** The held sound in milliseconds. */
  readonly durationMs: number;
  /** The sound dropped since the buffer was created. */
  readonly dropped: DroppedAudio;
}

const optionChecks: OptionChecks<BoundedBufferOptions> = {
  maxMs: (value) => (typeof value === 'number' && value > 0 ? null : 'expected a number above 0'),
  keep: oneOf('newest', 'oldest'),
  onDrop: optional((value) => (typeof value === 'function' ? null : 'Invalid input')),
};

/** @throws {ConfigurationError} `INVALID_OPTION` if `maxMs` is not a number above 0. */
export function createBoundedBuffer(options: BoundedBufferOptions): BoundedBuffer {
  const { maxMs, keep, onDrop } = checkOptions('createBoundedBuffer', optionChecks, options);
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
    // Sums of fractions of a millisecond do not return to exactly 0.
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
