// A spoken dialogue as data: what a person says to the demo and when, what else sounds in the room, and what
// must be true at the end. The stages play it; the judge compares.

/** The moment at which the person begins to speak. */
export type When =
  /** Nothing is said and nothing is under way, except work and open questions. */
  | 'calm'
  /** The question of this work was heard to its end. */
  | { readonly asked: Work }
  /** This much into the question or the result of the work; 700 ms unless said otherwise. */
  | { readonly overQuestion: Work; readonly ms?: number }
  | { readonly overResult: Work; readonly ms?: number }
  /** This much into whatever the lead agent is saying. */
  | { readonly overReply: true; readonly ms?: number }
  /** The work has begun and has not ended, and nobody speaks. */
  | { readonly running: Work }
  /** The result of this work was heard to its end. */
  | { readonly told: Work }
  /** So long after the line before was said. */
  | { readonly afterMs: number };

export type Work = 'ride' | 'table' | 'report';

export interface Line {
  readonly says: string;
  /** @defaultValue 'calm' */
  readonly when?: When;
  /** Nobody owes it an answer: a cough, a listening word, talk that is for somebody else. */
  readonly wantsNothing?: true;
  /** Words without which a recogniser has not understood it. @defaultValue all of its words of four letters and more */
  readonly matters?: readonly string[];
}

/** How a piece of work must have ended. */
export interface WorkEnd {
  readonly work: Work;
  readonly state: 'completed' | 'cancelled' | 'waiting_for_input';
  /** Of its result, where it has one. */
  readonly result?: RegExp;
}

/** What sounds in the room beside the person; only the browser stage hears it. */
export const backgrounds = ['noise', 'echo', 'television'] as const;

export type Background = (typeof backgrounds)[number];

export interface Dialogue {
  /** Unique; the table names it. */
  readonly name: string;
  readonly kind: Kind;
  readonly lines: readonly Line[];
  readonly background?: Background;
  /** It is about words that are being heard: nothing like it is typed. */
  readonly isSpokenOnly?: true;
  /** All work that there must have been, in any order. */
  readonly work: readonly WorkEnd[];
  /** What must have been said to the person, in this order. */
  readonly said?: readonly RegExp[];
  /** What must not have been said. */
  readonly unsaid?: readonly RegExp[];
  /** The person asks for it: a result may be told twice. */
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
  | 'room';
