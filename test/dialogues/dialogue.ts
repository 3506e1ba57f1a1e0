// A spoken dialogue as data: what a person says to the demo and when, which other sounds are in the room, and what
// must be true at the end. The stages play it; the judge compares.

/** The moment at which the person begins to speak. */
export type When =
  /** No one speaks and nothing is running, except work and open questions. */
  | 'calm'
  /** The question of this work was heard to its end. */
  | { readonly asked: Work }
  /** This long after the beginning of the work's question or result. @defaultValue 700 */
  | { readonly overQuestion: Work; readonly ms?: number }
  | { readonly overResult: Work; readonly ms?: number }
  /** This long after the beginning of any speech of the lead agent. */
  | { readonly overReply: true; readonly ms?: number }
  /** The work has begun and has not ended, and no one speaks. */
  | { readonly running: Work }
  /** The result of this work was heard to its end. */
  | { readonly told: Work }
  /** This long after the end of the previous line. */
  | { readonly afterMs: number };

export type Work = 'ride' | 'table' | 'report' | 'refund';

export interface Line {
  readonly says: string;
  /** @defaultValue 'calm' */
  readonly when?: When;
  /** The line needs no answer: a cough, a backchannel, words to another person. */
  readonly wantsNothing?: true;
  /** The words that a recogniser must get to understand the line. @defaultValue all words of four letters and more */
  readonly matters?: readonly string[];
}

/** The expected end of a piece of work. */
export interface WorkEnd {
  readonly work: Work;
  readonly state: 'completed' | 'cancelled' | 'waiting_for_input';
  /** The expected result, if the work has one. */
  readonly result?: RegExp;
}

/**
 * The room's audio in addition to the person; only the stages with real speech (browser and room) have it.
 */
export const backgrounds = ['noise', 'echo', 'television'] as const;

export type Background = (typeof backgrounds)[number];

export interface Dialogue {
  /** Unique; the table names it. */
  readonly name: string;
  readonly kind: Kind;
  readonly lines: readonly Line[];
  readonly background?: Background;
  /** The dialogue depends on speech that is being heard; the text stage does not play it. */
  readonly isSpokenOnly?: true;
  /** All work that must have been done, in any order. */
  readonly work: readonly WorkEnd[];
  /** What the person must have heard, in this order. */
  readonly said?: readonly RegExp[];
  /** What the person must not have heard. */
  readonly unsaid?: readonly RegExp[];
  /** The person asks for the result again: it may be told twice. */
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
