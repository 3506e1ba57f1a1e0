// Sound of the user on its way to the server: encodes it, keeps a bounded amount
// while the wire is closed or congested, and knows the difference between the
// sound that the session gave and the sound that the server got.
//
// AUDIO-UPLINK-1. Frames leave in order; when there is too much, the oldest is dropped and counted.
// AUDIO-UPLINK-2. What waits here and in the socket is bounded: `maxBufferedMs` plus about a second.
// AUDIO-UPLINK-3. Times of the server (milliseconds of sound that it got) become times of the
//     session (milliseconds of sound that it gave): what was dropped counts.

import { createBoundedBuffer, type DroppedAudio } from '../../voice/audio/bounded-buffer.ts';
import { frameDurationMs, type AudioFrame } from '../../voice/audio/audio-frame.ts';

/** Bytes in the socket above which no more sound is given to it: a second of it, in base64. */
const CONGESTED_BYTES = 64_000;
const MAX_GAPS = 64;

export interface AudioUplinkOptions {
  readonly maxBufferedMs: number;
  /** One frame of sound as the wire says it. */
  readonly encode: (frame: AudioFrame) => string;
  /** Sends one frame of text; `pump` is to be called when bytes left the socket. */
  readonly write: (text: string) => void;
  readonly bufferedBytes: () => number;
  /** The wire is open but slower than the user speaks: called when a stretch of dropping begins. */
  readonly onCongestion: () => void;
}

export interface AudioUplink {
  push(frame: AudioFrame): void;
  /** The wire is ready: what waits is sent, what comes is sent at once. */
  open(): void;
  /** Sends what waits, as far as the socket takes it. */
  pump(): void;
  /** AUDIO-UPLINK-3 */
  toSessionMs(serverMs: number): number;
  readonly dropped: DroppedAudio;
}

export function createAudioUplink(options: AudioUplinkOptions): AudioUplink {
  const { maxBufferedMs, encode, write, bufferedBytes, onCongestion } = options;
  let isOpen = false;
  let isDropping = false;
  let writtenMs = 0;
  /** Sound that is missing on the wire: `durationMs` of it before the server's time `atMs`. */
  const gaps: { readonly atMs: number; durationMs: number }[] = [];

  const noteGap = (durationMs: number): void => {
    const last = gaps.at(-1);
    if (last?.atMs === writtenMs) last.durationMs += durationMs;
    else gaps.push({ atMs: writtenMs, durationMs });
    const [first, second] = gaps;
    if (gaps.length > MAX_GAPS && first !== undefined && second !== undefined) {
      gaps.splice(0, 2, { atMs: second.atMs, durationMs: first.durationMs + second.durationMs });
    }
  };

  const waiting = createBoundedBuffer({
    maxMs: maxBufferedMs,
    keep: 'newest',
    onDrop: (dropped) => {
      // The oldest of what waits is what the server would have got next.
      noteGap(dropped.durationMs);
      if (isOpen && !isDropping) {
        isDropping = true;
        onCongestion();
      }
    },
  });

  const canWrite = (): boolean => isOpen && bufferedBytes() < CONGESTED_BYTES;
  const writeNow = (frame: AudioFrame): void => {
    writtenMs += frameDurationMs(frame);
    write(encode(frame));
  };

  const pump = (): void => {
    while (canWrite()) {
      const frame = waiting.shift();
      if (frame === undefined) {
        isDropping = false;
        return;
      }
      writeNow(frame);
    }
  };

  return {
    push(frame) {
      if (frame.samples.length === 0) return;
      // Nearly always: nothing waits, and it need not either.
      if (waiting.size === 0 && canWrite() && frameDurationMs(frame) <= maxBufferedMs) {
        isDropping = false;
        writeNow(frame);
        return;
      }
      waiting.push(frame);
      pump();
    },
    open() {
      isOpen = true;
      pump();
    },
    pump,
    toSessionMs(serverMs) {
      let missingMs = 0;
      for (const gap of gaps) if (gap.atMs <= serverMs) missingMs += gap.durationMs;
      return serverMs + missingMs;
    },
    get dropped() {
      return waiting.dropped;
    },
  };
}
