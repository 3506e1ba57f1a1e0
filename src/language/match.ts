// The questions that can be answered in words, and the result of matching an utterance to one.

export interface AnswerOption {
  readonly id: string;
  readonly label: string;
  readonly description?: string;
}

export interface AnswerableQuestion {
  readonly kind: 'choice' | 'free_text' | 'approval';
  /** The options of a `choice`; the other kinds have none. */
  readonly options: readonly AnswerOption[];
  /** The text of the question: its words tell the subject of an answer. */
  readonly question?: string;
  /** The name of the tool that an `approval` is about: "yes, send it" names it as well. */
  readonly action?: string;
}

/** The evidence for the option, the surest first. */
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
  /** Nearly its label, by spelling or by sound. */
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
      /** Words around the name may mean something else: they ask. Absent: none do. */
      readonly doubt?: true;
    }
  /** `more`: a wish of its own follows, which is for the lead agent. Absent: none does. */
  | { readonly kind: 'approved'; readonly more?: true }
  | { readonly kind: 'denied'; readonly more?: true }
  /** None of the options. */
  | { readonly kind: 'none'; readonly text: string }
  /** `doubt`: the words ask or request something, and may be no answer. Absent: they do not. */
  | { readonly kind: 'free_text'; readonly text: string; readonly doubt?: true }
  /** Several options match: ask again. */
  | { readonly kind: 'ambiguous'; readonly optionIds: readonly string[] }
  /** The words describe an option, and only the asker can resolve them: "the cheaper one". */
  | { readonly kind: 'described' }
  /** The words are for the lead agent; the question stays open. */
  | { readonly kind: 'digression' }
  /** The words are neither an answer nor clearly anything else: ask again. */
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
