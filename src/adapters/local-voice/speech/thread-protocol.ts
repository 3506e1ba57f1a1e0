// The messages between the threads of the built-in speech engine and their owner.

import type { AudioFrame } from '../../../voice/audio/audio-frame.ts';
import type { SpokenRequest } from './speech-engine.ts';

/**
 * The roles of the two threads, so that speaking never delays listening. `detector` is `transcriber` without the
 * transcription, which is external.
 */
export type ThreadRole = 'transcriber' | 'detector' | 'voice';

/** The initial data of a thread. */
export interface ThreadStart {
  readonly role: ThreadRole;
  /** Memory shared with the owner of the thread: see `exit-guard.ts`. */
  readonly ended: Int32Array;
}

/** The calls, with their arguments and results. */
export interface ThreadCalls {
  /** Returns the windows of a stream; the first call with an unknown `streamId` begins the stream. */
  detect: { takes: { streamId: number; sound: AudioFrame }; answers: readonly number[] };
  forget: { takes: { streamId: number }; answers: null };
  transcribe: { takes: AudioFrame; answers: string };
  synthesize: { takes: SpokenRequest; answers: AudioFrame };
}

export type CallName = keyof ThreadCalls;

export type ThreadRequest = {
  [Name in CallName]: {
    readonly id: number;
    readonly call: Name;
    readonly argument: ThreadCalls[Name]['takes'];
  };
}[CallName];

/** Ends the thread between two calls of a model: terminating it during one would abort the process. */
export interface ThreadEnding {
  readonly call: 'end';
}

/** An error in the form in which it crosses between threads. */
export interface ThreadFailure {
  readonly kind: 'configuration' | 'provider';
  readonly code: string;
  readonly message: string;
}

export type ThreadReply =
  | { readonly type: 'ready' }
  | { readonly type: 'unavailable'; readonly failure: ThreadFailure }
  | { readonly type: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly type: 'failure'; readonly id: number; readonly failure: ThreadFailure };
