// A spoken dialogue as data: what a person says to the demo and when, what else can be heard in the room, and what must
// be true at the end. The stages play it, and the judge compares the outcome.

/** The moment at which the person starts to speak. */
export type When =
  /** No one is speaking and nothing is running, except work and open questions. */
  | 'calm'
  /** This work's question has been heard to its end. */
  | { readonly asked: Work }
  /** This long after the start of the work's question or result. @defaultValue 700 */
  | { readonly overQuestion: Work; readonly ms?: number }
  | { readonly overResult: Work; readonly ms?: number }
  /** This long after the lead agent starts to say anything. */
  | { readonly overReply: true; readonly ms?: number }
  /** The work has started and has not ended, and no one is speaking. */
  | { readonly running: Work }
  /** This work's result has been heard to its end. */
  | { readonly told: Work }
  /** This long after the end of the previous line. */
  | { readonly afterMs: number };

export type Work = 'ride' | 'table' | 'report' | 'refund';

export interface Line {
  readonly says: string;
  /** @defaultValue 'calm' */
  readonly when?: When;
  /** The line needs no answer: a cough, a backchannel, a remark to another person. */
  readonly wantsNothing?: true;
  /**
   * The words that a recogniser must get right for the line to be understood. @defaultValue all words of four letters
   * or more
   */
  readonly matters?: readonly string[];
}

/** How a piece of work is expected to end. */
export interface WorkEnd {
  readonly work: Work;
  readonly state: 'completed' | 'cancelled' | 'waiting_for_input';
  /** The expected result, if the work has one. */
  readonly result?: RegExp;
}

/**
 * The room's audio besides the person; only the stages with real speech (browser and room) have it.
 */
export const backgrounds = ['noise', 'echo', 'television'] as const;

export type Background = (typeof backgrounds)[number];

export interface Dialogue {
  /** Unique; the table shows it. */
  readonly name: string;
  readonly kind: Kind;
  readonly lines: readonly Line[];
  readonly background?: Background;
  /** The position in the room's audio at which the dialogue begins, in milliseconds. @defaultValue 0 */
  readonly roomFromMs?: number;
  /** The dialogue depends on speech that is being heard, so the text stage does not play it. */
  readonly isSpokenOnly?: true;
  /** All work that must have been done, in any order. */
  readonly work: readonly WorkEnd[];
  /** What the person must have heard, in this order. */
  readonly said?: readonly RegExp[];
  /** What the person must not have heard. */
  readonly unsaid?: readonly RegExp[];
  /** The person asks for the result again, so it may be delivered twice. */
  readonly asksAgain?: true;
}

export type Kind =
  | 'request'
  | 'detail'
  | 'answer'
  | 'correction'
  | 'repair'
  | 'cancel'
  | 'digression'
  | 'two wishes'
  | 'interruption'
  | 'listening'
  | 'time'
  | 'status'
  | 'stop'
  | 'add'
  | 'change'
  | 'approval'
  | 'not yet'
  | 'room';
