// What was measured while a dialogue was played, on whichever stage.

import type { SessionState } from '../../src/index.ts';

export interface Utterance {
  readonly line: number;
  readonly text: string;
  /** When the voice began, and when it ended: the silence around it is none of it. */
  readonly beganAt: number;
  readonly endedAt: number;
  /** As it was taken down; null: not at all. */
  readonly heard: string | null;
}

/** The lead agent sounded from here to there. */
export interface Sound {
  readonly from: number;
  to: number;
}

export interface DialogueRecord {
  readonly utterances: readonly Utterance[];
  /** Empty where nothing sounds. */
  readonly sounds: readonly Sound[];
  /** When the lead agent's speech was lowered or stopped. */
  readonly yielded: readonly number[];
  /** Everything that was said to the person, in order. */
  readonly said: readonly string[];
  readonly state: SessionState;
  /** Why the dialogue could not go on: the moment that a line waits for never came. */
  readonly stuck: string | null;
  readonly errors: readonly string[];
  readonly endedAt: number;
}

/** How a dialogue is played; each stage has its own session, clock and person. */
export interface DialogueStage {
  readonly name: string;
  readonly state: SessionState;
  readonly now: number;
  /** Whether the lead agent is heard now; null where nothing sounds. */
  readonly sounds: boolean | null;
  says(text: string): Promise<{ readonly beganAt: number; readonly endedAt: number }>;
  pass(ms: number): Promise<void>;
  /** What was taken down of the person's words since this time. */
  finish(): Promise<Pick<DialogueRecord, 'sounds' | 'yielded' | 'said' | 'errors'>>;
  /** Keeps what can be kept of a dialogue that went wrong. */
  keep?(): Promise<void>;
  close(): Promise<void>;
}
