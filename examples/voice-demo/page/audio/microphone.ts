// The user's voice: frames of 20 ms while the microphone is open, and a second of
// silence when it is shut.

/* oxlint-disable unicorn/require-post-message-target-origin -- a port of the audio thread has no origin */

import { SPEECH_RATE_HZ } from '../../shared/audio-packet.ts';
import type { CapturedFrame } from './capture-framer.ts';

export interface Microphone {
  readonly sampleRateHz: number;
  setOpen(isOpen: boolean): void;
}

/** Why there is no microphone. */
export type MicrophoneProblem = 'denied' | 'missing';

export interface MicrophoneEvents {
  frame(frame: CapturedFrame): void;
  /** It was pulled out, or permission was taken back. */
  ended(): void;
}

/** Asks the user for the microphone, and opens it shut. */
export async function openMicrophone(
  events: MicrophoneEvents,
): Promise<Microphone | MicrophoneProblem> {
  let stream: MediaStream;
  try {
    stream = await navigator.mediaDevices.getUserMedia({
      // Without echo cancellation the lead agent would interrupt itself.
      audio: {
        channelCount: 1,
        echoCancellation: true,
        noiseSuppression: true,
        autoGainControl: true,
      },
    });
  } catch (error) {
    const isDenied = error instanceof DOMException && error.name === 'NotAllowedError';
    return isDenied ? 'denied' : 'missing';
  }
  const { context, source } = microphoneSource(stream);
  await context.audioWorklet.addModule(new URL('capture-worklet.ts', import.meta.url));
  await context.resume();
  const node = new AudioWorkletNode(context, 'capture', { numberOfOutputs: 0 });
  node.port.addEventListener('message', ({ data }: MessageEvent<CapturedFrame>) => {
    events.frame(data);
  });
  node.port.start();
  source.connect(node);
  stream.getAudioTracks()[0]?.addEventListener('ended', () => events.ended());
  return {
    sampleRateHz: context.sampleRate,
    setOpen: (open) => node.port.postMessage({ open }),
  };
}

/** Browsers that cannot bring a microphone to our rate give it at its own: the server resamples. */
function microphoneSource(stream: MediaStream): {
  context: AudioContext;
  source: MediaStreamAudioSourceNode;
} {
  const wanted = new AudioContext({ sampleRate: SPEECH_RATE_HZ });
  try {
    return { context: wanted, source: wanted.createMediaStreamSource(stream) };
  } catch {
    void wanted.close();
    const native = new AudioContext();
    return { context: native, source: native.createMediaStreamSource(stream) };
  }
}
