// The measurements of a played dialogue, on any stage.

import type { SessionState } from '../../src/index.ts';

export interface Utterance {
  readonly line: number;
  readonly text: string;
  /** The beginning and the end of the voice, without the silence around it. */
  readonly beganAt: number;
  readonly endedAt: number;
  /** The transcript of the utterance; null if there is none. */
  readonly heard: string | null;
}

/** A period in which the lead agent was audible. */
export interface Sound {
  readonly from: number;
  to: number;
}

export interface DialogueRecord {
  readonly utterances: readonly Utterance[];
  /** Empty on a stage without audio. */
  readonly sounds: readonly Sound[];
  /** The times at which the lead agent's speech was lowered or stopped. */
  readonly yielded: readonly number[];
  /** Everything that the person heard, in order. */
  readonly said: readonly string[];
  readonly state: SessionState;
  /** The reason why the dialogue stopped: the moment that a line waits for never came. Null if it did not. */
  readonly stuck: string | null;
  readonly errors: readonly string[];
  readonly endedAt: number;
}

/** The way to play a dialogue; each stage has a separate session, clock and person. */
export interface DialogueStage {
  readonly name: string;
  readonly state: SessionState;
  readonly now: number;
  /** Whether the lead agent is audible now; null on a stage without audio. */
  readonly sounds: boolean | null;
  says(text: string): Promise<{ readonly beganAt: number; readonly endedAt: number }>;
  pass(ms: number): Promise<void>;
  /** Returns the measurements of the whole dialogue. */
  finish(): Promise<Pick<DialogueRecord, 'sounds' | 'yielded' | 'said' | 'errors'>>;
  /** Saves what the stage can of a failed dialogue. */
  keep?(): Promise<void>;
  close(): Promise<void>;
}
