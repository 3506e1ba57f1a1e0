// The voice of the lead agent: plays what comes and reports what was played. Where a
// browser has no sound, the same is done in silence, at the pace of speech: the captions
// go on, and so does the conversation.

import { SPEECH_RATE_HZ } from '../../shared/audio-packet.ts';
import { PlaybackQueue, type PlayoutReport } from './playback-queue.ts';
import type { PlaybackMessage } from './playback-worklet.ts';

export interface Speaker {
  readonly isSilent: boolean;
  play(itemId: string, samples: Int16Array): void;
  /** Drops what was not played; the report of what was comes as any other. */
  clear(): void;
}

/** The obstacle to sound. */
export type SpeakerProblem = 'needs_gesture';

const GESTURE_WAIT_MS = 400;
const SILENT_STEP_MS = 20;

/**
 * Opens the speaker. `needs_gesture`: the browser wants a click or a key press first; call
 * again in its handler.
 */
export async function openSpeaker(
  onReport: (report: PlayoutReport) => void,
): Promise<Speaker | SpeakerProblem> {
  const context = await soundContext();
  if (!context) return silentSpeaker(onReport);
  if (!(await isRunning(context))) {
    await context.close();
    return 'needs_gesture';
  }
  const node = new AudioWorkletNode(context, 'playback', {
    numberOfInputs: 0,
    outputChannelCount: [1],
  });
  node.connect(context.destination);
  node.port.addEventListener('message', ({ data }: MessageEvent<PlayoutReport>) => onReport(data));
  node.port.start();
  const post = (message: PlaybackMessage, transfer: Transferable[] = []): void =>
    node.port.postMessage(message, transfer);
  return {
    isSilent: false,
    play: (itemId, samples) => post({ itemId, samples }, [samples.buffer]),
    clear: () => post({ clear: true }),
  };
}

async function soundContext(): Promise<AudioContext | null> {
  try {
    const context = new AudioContext({ sampleRate: SPEECH_RATE_HZ, latencyHint: 'interactive' });
    await context.audioWorklet.addModule(new URL('playback-worklet.ts', import.meta.url));
    return context;
  } catch (error) {
    console.warn('No sound here; the captions go on.', error);
    return null;
  }
}

/** A context that may not sound yet never resumes, nor fails to: it just does not answer. */
async function isRunning(context: AudioContext): Promise<boolean> {
  const patience = new Promise((resolve) => {
    setTimeout(resolve, GESTURE_WAIT_MS);
  });
  await Promise.race([context.resume(), patience]);
  return context.state === 'running';
}

function silentSpeaker(onReport: (report: PlayoutReport) => void): Speaker {
  const queue = new PlaybackQueue(SPEECH_RATE_HZ);
  const step = new Float32Array((SPEECH_RATE_HZ * SILENT_STEP_MS) / 1000);
  let playedAt = performance.now();
  setInterval(() => {
    // A tab in the background is woken rarely: catch up.
    for (const now = performance.now(); playedAt < now; playedAt += SILENT_STEP_MS)
      for (const report of queue.pull(step)) onReport(report);
  }, SILENT_STEP_MS);
  return {
    isSilent: true,
    play: (itemId, samples) => queue.push(itemId, samples),
    clear: () => {
      const report = queue.clear();
      if (report) onReport(report);
    },
  };
}
