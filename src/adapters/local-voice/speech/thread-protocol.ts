// The messages between the built-in speech engine's threads and their owner.

import type { AudioFrame } from '../../../voice/audio/audio-frame.ts';
import type { SpokenRequest } from './speech-engine.ts';

/**
 * The roles of the two threads. With two threads, speaking never delays listening. `detector`: like `transcriber`, but
 * without transcription, which an external service performs.
 */
export type ThreadRole = 'transcriber' | 'detector' | 'voice';

/** A thread's initial data. */
export interface ThreadStart {
  readonly role: ThreadRole;
  /** Memory that the thread shares with its owner (see `exit-guard.ts`). */
  readonly ended: Int32Array;
}

/** The calls, with their parameters and results. */
export interface ThreadCalls {
  /** Returns the stream's new windows. The first call with an unknown `streamId` starts the stream. */
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

/** Ends the thread between two model calls, because ending it during a call would abort the process. */
export interface ThreadEnding {
  readonly call: 'end';
}

/** An error in the form that is sent between threads. */
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
