// A simulated microphone, and a recorder at the loudspeaker. The test installs both before the page's scripts run, and
// replaces only what the browser provides to the page.

import type { Page } from 'playwright-core';
import { speak, toWav } from '../../support/speech/speak.ts';

declare global {
  interface Window {
    /** Plays a WAV file into the microphone, and resolves after its last sample. */
    __speak(wavBase64: string, isLoop?: boolean): Promise<void>;
    /** Everything that has been said and heard so far, as the base64 text of a WebM file. */
    __recording(): Promise<string>;
    /** The times at which the loudspeaker was audible, which a stage of the dialogues records. */
    __sounds(): { from: number; to: number }[];
    /** The loudest sample that left the speaker in about the last 80 ms. */
    __loudness(): number;
  }
}

/**
 * Replaces the page's `getUserMedia` with a simulated microphone. The microphone is in the audio context in which the
 * page listens. Two contexts have separate clocks, and audio between them may stutter on a busy machine.
 */
export async function plugInMicrophone(page: Page): Promise<void> {
  await page.addInitScript(() => {
    let stream: MediaStream | undefined;
    let microphone: GainNode | undefined;
    navigator.mediaDevices.getUserMedia = async () =>
      (stream ??= new AudioContext().createMediaStreamDestination().stream);
    const createSource = AudioContext.prototype.createMediaStreamSource;
    AudioContext.prototype.createMediaStreamSource = function (of) {
      if (of !== stream) return createSource.call(this, of);
      microphone = new GainNode(this);
      // A node without a source produces no audio at all, whereas a microphone produces silence.
      const silence = new ConstantSourceNode(this, { offset: 0 });
      silence.connect(microphone);
      silence.start();
      return microphone as AudioNode as MediaStreamAudioSourceNode;
    };
    window.__speak = async (wavBase64, isLoop = false) => {
      if (!microphone) throw new Error('Expected the page to have opened its microphone');
      const { context } = microphone;
      const bytes = Uint8Array.from(atob(wavBase64), (char) => char.charCodeAt(0));
      const source = new AudioBufferSourceNode(context, {
        buffer: await context.decodeAudioData(bytes.buffer),
        loop: isLoop,
      });
      source.connect(microphone);
      if (isLoop) {
        source.start();
        return;
      }
      await new Promise((resolve) => {
        source.addEventListener('ended', resolve);
        source.start();
      });
    };
  });
}

/** Mixes the loudspeaker into the microphone with a short delay, without echo cancellation. */
export async function echoInto(page: Page, levelDb: number): Promise<void> {
  await page.addInitScript(
    (gain) => {
      const heard: MediaStream[] = [];
      const microphones: GainNode[] = [];
      const createSource = AudioContext.prototype.createMediaStreamSource;
      const hear = (microphone: GainNode, stream: MediaStream): void => {
        const { context } = microphone;
        const delay = new DelayNode(context, { delayTime: 0.08 });
        const level = new GainNode(context, { gain });
        createSource
          .call(context as AudioContext, stream)
          .connect(delay)
          .connect(level)
          .connect(microphone);
      };
      AudioContext.prototype.createMediaStreamSource = function (of) {
        const source = createSource.call(this, of);
        if (!(source instanceof GainNode)) return source;
        microphones.push(source);
        for (const each of heard) hear(source, each);
        return source;
      };
      const connect = AudioNode.prototype.connect as (to: AudioNode) => AudioNode;
      AudioNode.prototype.connect = function (this: AudioNode, to: AudioNode) {
        if (to instanceof AudioDestinationNode) {
          const { stream } = connect.call(
            this,
            (to.context as AudioContext).createMediaStreamDestination(),
          ) as MediaStreamAudioDestinationNode;
          heard.push(stream);
          for (const each of microphones) hear(each, stream);
        }
        return connect.call(this, to);
      } as typeof AudioNode.prototype.connect;
    },
    10 ** (levelDb / 20),
  );
}

/** Measures what the page sends to the loudspeaker. */
export async function listenToSpeaker(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const ears: AnalyserNode[] = [];
    const connect = AudioNode.prototype.connect as (to: AudioNode) => AudioNode;
    AudioNode.prototype.connect = function (this: AudioNode, to: AudioNode) {
      if (to instanceof AudioDestinationNode) {
        const ear = new AnalyserNode(to.context, { fftSize: 2048 });
        connect.call(this, ear);
        ears.push(ear);
      }
      return connect.call(this, to);
    } as typeof AudioNode.prototype.connect;
    window.__loudness = () => {
      let loudest = 0;
      for (const ear of ears) {
        const samples = new Float32Array(ear.fftSize);
        ear.getFloatTimeDomainData(samples);
        for (const sample of samples) loudest = Math.max(loudest, Math.abs(sample));
      }
      return loudest;
    };
  });
}

/** Plays a WAV file into the microphone, and resolves at its end, or at once if it loops. */
export async function playInto(
  page: Page,
  wav: Buffer,
  { isLoop = false }: { readonly isLoop?: boolean } = {},
): Promise<void> {
  await page.evaluate(([base64, loop]) => window.__speak(base64, loop), [
    wav.toString('base64'),
    isLoop,
  ] as const);
}

/** Records the microphone and the loudspeaker in one file. */
export async function recordRoom(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const parts: Blob[] = [];
    let room:
      | {
          readonly context: AudioContext;
          readonly recorder: MediaRecorder;
          readonly all: AudioNode;
        }
      | undefined;
    const createSource = AudioContext.prototype.createMediaStreamSource;
    const createDestination = AudioContext.prototype.createMediaStreamDestination;
    const connect = AudioNode.prototype.connect as (to: AudioNode) => AudioNode;
    const record = (node: AudioNode): void => {
      if (!room) {
        const context = new AudioContext();
        const all = createDestination.call(context);
        const recorder = new MediaRecorder(all.stream);
        recorder.ondataavailable = ({ data }) => parts.push(data);
        recorder.start(1000);
        room = { context, recorder, all };
      }
      const ear = createDestination.call(node.context as AudioContext);
      connect.call(node, ear);
      connect.call(createSource.call(room.context, ear.stream), room.all);
    };
    AudioContext.prototype.createMediaStreamSource = function (of) {
      const source = createSource.call(this, of);
      record(source);
      return source;
    };
    AudioNode.prototype.connect = function (this: AudioNode, to: AudioNode) {
      if (to instanceof AudioDestinationNode) record(this);
      return connect.call(this, to);
    } as typeof AudioNode.prototype.connect;
    window.__recording = async () => {
      const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
      let text = '';
      for (const byte of bytes) text += String.fromCharCode(byte);
      return btoa(text);
    };
  });
}

/** A voice other than the lead agent's, and the one that the recogniser understands best. */
const USER_VOICE = 'rms';

/** Speaks the text in real time, and resolves at its end. */
export async function sayInto(page: Page, text: string): Promise<void> {
  await playInto(page, toWav(await speak(text, { voice: USER_VOICE })));
}
