// The code of a speech thread. It loads the models for its role and then handles calls. `speech/built-in-engine.ts`
// starts it.

import { parentPort, workerData, type Transferable } from 'node:worker_threads';
import { propertiesOf } from '../../values/json.ts';
import { ConfigurationError, OffstageError, messageOf } from '../../values/errors.ts';
import type { AudioFrame } from '../../voice/audio/audio-frame.ts';
import {
  resampleSound,
  createResampler,
  type Resampler,
  toFloat,
} from '../../voice/audio/resampler.ts';
import { tellEnd } from './speech/exit-guard.ts';
import { Flite } from './speech/flite.ts';
import { Transcription } from './speech/moonshine.ts';
import { loadOnnx, type Onnx } from './speech/voice-packages.ts';
import { SILERO_SAMPLE_RATE_HZ, Silero, type SileroStream } from './speech/silero.ts';
import type {
  ThreadCalls,
  ThreadEnding,
  ThreadFailure,
  ThreadReply,
  ThreadRequest,
  ThreadRole,
  ThreadStart,
} from './speech/thread-protocol.ts';

const OUTPUT_SAMPLE_RATE_HZ = 24_000;

type Handlers = {
  readonly [Name in keyof ThreadCalls]?: (
    argument: ThreadCalls[Name]['takes'],
  ) => Promise<ThreadCalls[Name]['answers']> | ThreadCalls[Name]['answers'];
};

const roles: Readonly<Record<ThreadRole, () => Promise<Handlers>>> = {
  async transcriber() {
    const onnx = await loadOnnx();
    const detection = detectionHandlers(await Detection.load(onnx));
    const transcription = await Transcription.load(onnx);
    return { ...detection, transcribe: (speech) => transcription.transcribe(speech) };
  },
  async detector() {
    return detectionHandlers(await Detection.load(await loadOnnx()));
  },
  async voice() {
    const flite = await Flite.load();
    await flite.speak({ text: 'ready', voice: 'slt', speed: 1 });
    return {
      // The audio has the protocol's sample rate, so that the thread that handles sockets need not resample it.
      synthesize: async (request) => ({
        samples: resampleSound(await flite.speak(request), OUTPUT_SAMPLE_RATE_HZ),
        sampleRateHz: OUTPUT_SAMPLE_RATE_HZ,
      }),
    };
  },
};

function detectionHandlers(detection: Detection): Handlers {
  return {
    detect: ({ streamId, sound }) => detection.detect(streamId, sound),
    forget: ({ streamId }) => {
      detection.forget(streamId);
      return null;
    },
  };
}

async function main(): Promise<void> {
  const port = parentPort;
  if (port === null) {
    throw new ConfigurationError('NOT_A_THREAD', 'speech-worker runs inside a worker thread only');
  }
  const reply = (message: ThreadReply, transfer: readonly Transferable[] = []): void =>
    port.postMessage(message, transfer);
  const { role, ended } = workerData as ThreadStart;
  tellEnd(ended);
  let handlers: Handlers;
  try {
    handlers = await roles[role]();
  } catch (error) {
    reply({ type: 'unavailable', failure: failureOf(error) });
    return;
  }
  port.on('message', (message: ThreadRequest | ThreadEnding) => {
    // Within a worker, `exit` ends only this thread.
    if (message.call === 'end') process.exit();
    const { id, call, argument } = message;
    void answer(handlers, call, argument).then(
      (value) => reply({ type: 'answer', id, value }, buffersOf(value)),
      (error: unknown) => reply({ type: 'failure', id, failure: failureOf(error) }),
    );
  });
  reply({ type: 'ready' });
}

async function answer(
  handlers: Handlers,
  call: ThreadRequest['call'],
  argument: unknown,
): Promise<unknown> {
  const handler = handlers[call] as ((argument: unknown) => unknown) | undefined;
  if (handler === undefined) {
    throw new ConfigurationError(
      'UNKNOWN_SPEECH_CALL',
      `This thread does not know the call \`${call}\``,
    );
  }
  return await handler(argument);
}

/** Returns the buffers of the audio, which are transferred rather than copied. */
function buffersOf(value: unknown): readonly Transferable[] {
  const samples = propertiesOf(value)['samples'];
  return samples instanceof Int16Array && samples.length > 0 ? [samples.buffer as ArrayBuffer] : [];
}

function failureOf(error: unknown): ThreadFailure {
  return {
    kind: error instanceof ConfigurationError ? 'configuration' : 'provider',
    code: error instanceof OffstageError ? error.code : 'SPEECH_ENGINE_FAILED',
    message: messageOf(error),
  };
}

interface Stream {
  readonly resampler: Resampler;
  readonly silero: SileroStream;
  last: Promise<unknown>;
}

/** Detects speech in many streams with Silero. Runs inside a worker thread. */
class Detection {
  readonly #silero: Silero;
  readonly #streams = new Map<number, Stream>();

  private constructor(silero: Silero) {
    this.#silero = silero;
  }

  /** @throws {ConfigurationError} `MISSING_DEPENDENCY` */
  static async load(onnx: Onnx): Promise<Detection> {
    return new Detection(await Silero.load(onnx));
  }

  detect(streamId: number, sound: AudioFrame): Promise<readonly number[]> {
    const stream = this.#streams.get(streamId) ?? this.#begin(streamId, sound.sampleRateHz);
    const samples = toFloat(stream.resampler.process(sound.samples));
    const windows = stream.last.then(() => stream.silero.push(samples));
    stream.last = windows.catch(() => undefined);
    return windows;
  }

  forget(streamId: number): void {
    this.#streams.delete(streamId);
  }

  #begin(streamId: number, fromHz: number): Stream {
    const stream: Stream = {
      resampler: createResampler({ fromHz, toHz: SILERO_SAMPLE_RATE_HZ }),
      silero: this.#silero.createStream(),
      last: Promise.resolve(),
    };
    this.#streams.set(streamId, stream);
    return stream;
  }
}

await main();
