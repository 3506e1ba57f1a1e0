// The questions that can be answered in words, and the result of matching an utterance to one.

export interface AnswerOption {
  /** The id of the option. */
  readonly id: string;
  /** The text of the option. */
  readonly label: string;
  /** A line below the label. @defaultValue none */
  readonly description?: string;
}

export interface AnswerableQuestion {
  /** The kind of the answer that it wants. */
  readonly kind: 'choice' | 'free_text' | 'approval';
  /** The options of a `choice`; the other kinds have none. */
  readonly options: readonly AnswerOption[];
  /** The text of the question, whose words name the subject of an answer. */
  readonly question?: string;
  /** The name of the tool that an `approval` is about: "yes, send it" names it as well. */
  readonly action?: string;
}

/** The evidence for the option, the surest first. */
export type MatchEvidence =
  /** The whole label. */
  | 'label'
  | 'id'
  /** A yes or a no that means one of the options. */
  | 'meaning'
  /** "the second one", "option two", "last". */
  | 'ordinal'
  /** Words that only this option has. */
  | 'words'
  /** Almost the label, by spelling or by sound. */
  | 'spelling'
  | 'sound';

export type Match =
  | {
      readonly kind: 'option';
      readonly optionId: string;
      readonly label: string;
      readonly how: MatchEvidence;
      /** The confidence, 0 to 1; 1 for the label itself. */
      readonly confidence: number;
      /** Set if words around the name may mean something else, such as a question. */
      readonly doubt?: true;
    }
  /** `more`: set if another wish follows, which is for the lead agent. */
  | { readonly kind: 'approved'; readonly more?: true }
  | { readonly kind: 'denied'; readonly more?: true }
  /** The user declines all options. */
  | { readonly kind: 'none'; readonly text: string }
  /** `doubt`: set if the words ask or request something and may be no answer. */
  | { readonly kind: 'free_text'; readonly text: string; readonly doubt?: true }
  /** Several options match: ask again. */
  | { readonly kind: 'ambiguous'; readonly optionIds: readonly string[] }
  /** The words describe an option that only the asker can resolve: "the cheaper one". */
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
