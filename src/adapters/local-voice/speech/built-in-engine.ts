// The built-in speech engine: Silero and Moonshine in one thread, Flite in another. Supports English only, does not
// need a key or a network, and uses about 350 MB of memory. The engine does not load models that an external service
// replaces.
//
// SPEECH-THREAD-1. Every call settles: with a result, with a failure, or with a rejection when the thread ends.
// SPEECH-THREAD-2. If a call is made after the thread has ended, a new thread starts without the old thread's state.
// SPEECH-THREAD-3. Neither closing the engine nor exiting the process interrupts a running model, because its native
//     code would abort the whole process.

import { Worker } from 'node:worker_threads';
import {
  CancelledError,
  ConfigurationError,
  ProviderError,
  type OffstageError,
} from '../../../values/errors.ts';
import type { AudioFrame } from '../../../voice/audio/audio-frame.ts';
import { wholeSoundOf, type Transcriber, type Voice } from '../../../voice/speech/voice.ts';
import { guardExit } from './exit-guard.ts';
import { FLITE_VOICES } from './flite.ts';
import { SILERO_WINDOW_MS } from './silero.ts';
import type { SpeechDetector, SpeechEngine, SpokenRequest } from './speech-engine.ts';
import type {
  CallName,
  ThreadCalls,
  ThreadEnding,
  ThreadFailure,
  ThreadReply,
  ThreadRole,
  ThreadStart,
} from './thread-protocol.ts';

/** External speech-to-text and text-to-speech services that replace the engine's own. */
interface SpeechParts {
  readonly transcriber?: Transcriber | undefined;
  readonly voice?: Voice | undefined;
}

/** An external voice's name. */
const OWN_VOICE = 'own';

/**
 * Creates the engine. The models are loaded in `start`. `parts`: the external services that replace parts of the
 * engine.
 */
export function createBuiltInEngine(parts: SpeechParts = {}): SpeechEngine {
  const transcriber = new SpeechThread(parts.transcriber ? 'detector' : 'transcriber');
  const voiceThread = parts.voice ? null : new SpeechThread('voice');
  let lastStreamId = 0;

  const createDetector = (sampleRateHz: number): SpeechDetector => {
    const streamId = (lastStreamId += 1);
    let closed = false;
    return {
      windowMs: SILERO_WINDOW_MS,
      push: async (samples) =>
        closed ? [] : transcriber.call('detect', { streamId, sound: { samples, sampleRateHz } }),
      close: () => {
        if (closed) return;
        closed = true;
        // The stream ends together with its thread.
        transcriber.call('forget', { streamId }).catch(() => undefined);
      },
    };
  };

  const engine: SpeechEngine = {
    voices: FLITE_VOICES,
    start: async () => {
      await Promise.all([transcriber.start(), voiceThread?.start()]);
    },
    createDetector,
    transcribe: (speech: AudioFrame) => transcriber.call('transcribe', speech),
    synthesize: async (request: SpokenRequest) =>
      voiceThread ? voiceThread.call('synthesize', request) : SILENCE,
    close: async () => {
      await Promise.all([transcriber.close(), voiceThread?.close()]);
    },
  };
  return withParts(engine, parts);
}

const SILENCE: AudioFrame = { samples: new Int16Array(0), sampleRateHz: 24_000 };

/** Returns the engine with these external services. It neither starts nor closes the services. */
export function withParts(engine: SpeechEngine, { transcriber, voice }: SpeechParts): SpeechEngine {
  return {
    voices: voice ? [OWN_VOICE] : engine.voices,
    start: () => engine.start(),
    createDetector: (sampleRateHz) => engine.createDetector(sampleRateHz),
    transcribe: (speech) => (transcriber ?? engine).transcribe(speech),
    synthesize: (request, signal = new AbortController().signal) =>
      voice
        ? wholeSoundOf(voice, { text: request.text, speed: request.speed, signal })
        : engine.synthesize(request, signal),
    close: () => engine.close(),
  };
}

interface PendingCall {
  resolve(value: unknown): void;
  reject(error: OffstageError): void;
}

interface RunningThread {
  readonly worker: Worker;
  readonly ready: Promise<void>;
  readonly exited: Promise<void>;
  readonly pending: Map<number, PendingCall>;
}

// In the repository, the TypeScript sources run directly. The package contains only JavaScript.
const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
const workerUrl = new URL(`../speech-worker.${extension}`, import.meta.url);

/** One thread of the built-in speech engine. Calls return promises, and a new thread replaces one that has died. */
export class SpeechThread {
  readonly #role: ThreadRole;
  readonly #workerUrl: URL;
  #thread: RunningThread | undefined;
  #lastId = 0;
  #closed = false;

  /** @param url The module that the thread runs. Tests pass a different module. */
  constructor(role: ThreadRole, url: URL = workerUrl) {
    this.#role = role;
    this.#workerUrl = url;
  }

  /**
   * Resolves when the models have been loaded.
   * @throws {ConfigurationError} `MISSING_DEPENDENCY`
   * @throws {ProviderError} `SPEECH_ENGINE_FAILED`
   */
  async start(): Promise<void> {
    await this.#running().ready;
  }

  async call<Name extends CallName>(
    call: Name,
    argument: ThreadCalls[Name]['takes'],
  ): Promise<ThreadCalls[Name]['answers']> {
    const thread = this.#running();
    const id = (this.#lastId += 1);
    const answer = new Promise<unknown>((resolve, reject) => {
      thread.pending.set(id, { resolve, reject });
    });
    // The thread queues messages in order until it is ready.
    thread.worker.postMessage({ id, call, argument }, []);
    return (await answer) as ThreadCalls[Name]['answers'];
  }

  /** Ends the thread after the model's current step. Pending calls reject with a `CancelledError`. */
  async close(): Promise<void> {
    this.#closed = true;
    const thread = this.#thread;
    if (thread === undefined) return;
    this.#end(thread, new CancelledError('the speech engine was closed'));
    endAfterStep(thread.worker);
    await thread.exited;
  }

  #running(): RunningThread {
    if (this.#closed) throw new CancelledError('the speech engine was closed');
    this.#thread ??= this.#spawn();
    return this.#thread;
  }

  #spawn(): RunningThread {
    const ended = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
    const worker = new Worker(this.#workerUrl, {
      name: `offstage-${this.#role}`,
      workerData: { role: this.#role, ended } satisfies ThreadStart,
    });
    const unguard = guardExit({ ended, end: () => endAfterStep(worker) });
    const pending = new Map<number, PendingCall>();
    const ready = new Promise<void>((resolve, reject) => {
      // Loading counts as the first call, because it must also settle when the thread ends.
      pending.set(0, { resolve: () => resolve(), reject });
    });
    ready.catch(() => undefined);
    const exited = new Promise<void>((resolve) => {
      worker.on('exit', () => resolve());
    });
    const thread: RunningThread = { worker, ready, exited, pending };
    worker.on('message', (message: ThreadReply) => this.#onReply(thread, message));
    worker.on('error', (cause: Error) => {
      this.#end(thread, failed(`it threw: ${cause.message}`, cause));
    });
    worker.on('exit', (code) => {
      unguard();
      this.#end(thread, failed(`it ended with exit code ${code}`));
    });
    return thread;
  }

  #onReply(thread: RunningThread, message: ThreadReply): void {
    switch (message.type) {
      case 'ready':
        return settle(thread, 0)?.resolve(undefined);
      case 'unavailable':
        this.#end(thread, errorOf(message.failure));
        return void thread.worker.terminate();
      case 'answer':
        return settle(thread, message.id)?.resolve(message.value);
      case 'failure':
        return settle(thread, message.id)?.reject(errorOf(message.failure));
    }
  }

  #end(thread: RunningThread, error: OffstageError): void {
    if (this.#thread === thread) this.#thread = undefined;
    for (const call of thread.pending.values()) call.reject(error);
    thread.pending.clear();
  }
}

/** SPEECH-THREAD-3 */
function endAfterStep(worker: Worker): void {
  worker.postMessage({ call: 'end' } satisfies ThreadEnding, []);
}

function settle(thread: RunningThread, id: number): PendingCall | undefined {
  const call = thread.pending.get(id);
  thread.pending.delete(id);
  return call;
}

function failed(how: string, cause?: unknown): ProviderError {
  return new ProviderError('SPEECH_ENGINE_FAILED', `A speech thread failed: ${how}`, {
    retryable: true,
    cause,
  });
}

function errorOf({ kind, code, message }: ThreadFailure): OffstageError {
  return kind === 'configuration'
    ? new ConfigurationError(code, message)
    : new ProviderError(code, message);
}
