// What is measured in a dialogue on any stage.

import type { SessionState } from '../../src/index.ts';

export interface Utterance {
  readonly line: number;
  readonly text: string;
  /** When the voice starts and ends, without the silence around it. */
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
  /** Why the dialogue stopped early: the moment that a line waits for never came. Null if it did not stop early. */
  readonly stuck: string | null;
  readonly errors: readonly string[];
  readonly endedAt: number;
}

/** How a dialogue is played; each stage has its own session, clock and person. */
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
  /** Saves what the stage can save of a failed dialogue. */
  keep?(): Promise<void>;
  close(): Promise<void>;
}
