// What an utterance is to a question.

export interface AnswerOption {
  readonly id: string;
  readonly label: string;
  readonly description?: string;
}

export interface AnswerableQuestion {
  readonly kind: 'choice' | 'free_text' | 'approval';
  /** Those of a `choice`; the other kinds have none. */
  readonly options: readonly AnswerOption[];
  /** What was asked: its words tell what an answer may be about. */
  readonly question?: string;
  /** The name of the tool that an `approval` is about: "yes, send it" names it, too. */
  readonly action?: string;
}

/** What gave the option away, the surest first. */
export type MatchEvidence =
  /** Its label, whole. */
  | 'label'
  | 'id'
  /** A yes or a no, where one option is the yes (the no). */
  | 'meaning'
  /** "the second one", "option two", "last". */
  | 'ordinal'
  /** Words that only this option has. */
  | 'words'
  /** Nearly its label, by the letters or by the sound. */
  | 'spelling'
  | 'sound';

export type Match =
  | {
      readonly kind: 'option';
      readonly optionId: string;
      readonly label: string;
      readonly how: MatchEvidence;
      /** 0 to 1; 1 is the label itself. */
      readonly confidence: number;
    }
  | { readonly kind: 'approved' }
  | { readonly kind: 'denied' }
  | { readonly kind: 'free_text'; readonly text: string }
  /** One of these, but which? Ask again. */
  | { readonly kind: 'ambiguous'; readonly optionIds: readonly string[] }
  /** Describes an option in words that only whoever asked can resolve: "the cheaper one". */
  | { readonly kind: 'described' }
  /** Meant for the lead agent; the question stays open. */
  | { readonly kind: 'digression' }
  /** Neither an answer nor clearly something else: ask again. */
  | { readonly kind: 'unclear' }
  /** The user wants to hear the question again. */
  | { readonly kind: 'repeat' }
  /** The user wants time. */
  | { readonly kind: 'hold' };

export const described = { kind: 'described' } as const satisfies Match;
export const repeat = { kind: 'repeat' } as const satisfies Match;
export const unclear = { kind: 'unclear' } as const satisfies Match;
export const digression = { kind: 'digression' } as const satisfies Match;
export const hold = { kind: 'hold' } as const satisfies Match;
