// The user's sound on its way to the server: encodes it, keeps a bounded amount while the wire is closed or
// congested, and maps the sound that the server got to the sound that the session gave.
//
// AUDIO-UPLINK-1. Frames leave in order; on overflow, the oldest is dropped and counted.
// AUDIO-UPLINK-2. The sound waiting here and in the socket is bounded: `maxBufferedMs` plus about a second.
// AUDIO-UPLINK-3. Times of the server (milliseconds of sound that it got) are converted to times of the
//     session (milliseconds of sound that it gave): dropped sound counts.

import { createBoundedBuffer, type DroppedAudio } from '../../voice/audio/bounded-buffer.ts';
import { frameDurationMs, type AudioFrame } from '../../voice/audio/audio-frame.ts';

/** Bytes in the socket above which it gets no more sound: a second of it, in base64. */
const CONGESTED_BYTES = 64_000;
const MAX_GAPS = 64;

export interface AudioUplinkOptions {
  readonly maxBufferedMs: number;
  /** Encodes a frame of sound for the wire. */
  readonly encode: (frame: AudioFrame) => string;
  /** Sends one frame of text; call `pump` when bytes have left the socket. */
  readonly write: (text: string) => void;
  readonly bufferedBytes: () => number;
  /** Called when a stretch of dropping begins, because the wire is open but slower than the user's speech. */
  readonly onCongestion: () => void;
}

export interface AudioUplink {
  push(frame: AudioFrame): void;
  /** Starts sending: the wire is ready. */
  open(): void;
  /** Sends the waiting frames, as far as the socket accepts them. */
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
      // The oldest waiting frame is the one that the server would have got next.
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
      // The usual case: no frame waits, and this one need not either.
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
