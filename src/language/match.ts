// The kinds of question that can be answered in words, and the result of matching an utterance to a question.

export interface AnswerOption {
  /** The id of the option. */
  readonly id: string;
  /** The text of the option. */
  readonly label: string;
  /** A line of text below the label. @defaultValue none */
  readonly description?: string;
}

export interface AnswerableQuestion {
  /** The expected kind of answer. */
  readonly kind: 'choice' | 'free_text' | 'approval';
  /** The options of a `choice`; other kinds have no options. */
  readonly options: readonly AnswerOption[];
  /** The text of the question; its words name the subject of the answer. */
  readonly question?: string;
  /** The name of the tool, if an `approval` asks about a tool call: "yes, send it" also names the tool. */
  readonly action?: string;
}

/** The evidence for the option, ordered from certain to uncertain. */
export type MatchEvidence =
  /** The whole label. */
  | 'label'
  | 'id'
  /** A yes or a no that means an option. */
  | 'meaning'
  /** "the second one", "option two", "last". */
  | 'ordinal'
  /** Words that only this option contains. */
  | 'words'
  /** Nearly the label, in spelling or in sound. */
  | 'spelling'
  | 'sound';

export type Match =
  | {
      readonly kind: 'option';
      readonly optionId: string;
      readonly label: string;
      readonly how: MatchEvidence;
      /** How certain the match is, from 0 to 1. It is 1 for the label itself. */
      readonly confidence: number;
      /** Set if the rest of the utterance (such as a question) casts doubt on the choice. */
      readonly doubt?: true;
    }
  /**
   * `more`: set if another request follows, which is passed to the lead agent. `always`: set if the user also asks not
   * to be asked again.
   */
  | { readonly kind: 'approved'; readonly more?: true; readonly always?: true }
  | { readonly kind: 'denied'; readonly more?: true }
  /** The user declines all options. */
  | { readonly kind: 'none'; readonly text: string }
  /** `doubt`: set if the words ask a question or request something, so they may not be an answer. */
  | { readonly kind: 'free_text'; readonly text: string; readonly doubt?: true }
  /** Several options match: the question is asked again. */
  | { readonly kind: 'ambiguous'; readonly optionIds: readonly string[] }
  /** The words describe an option that only the asker can identify: "the cheaper one". */
  | { readonly kind: 'described' }
  /** The words are addressed to the lead agent, and the question stays open. */
  | { readonly kind: 'digression' }
  /** The words are neither an answer nor clearly something else, so the question is asked again. */
  | { readonly kind: 'unclear' }
  /** The user wants to hear the question again. */
  | { readonly kind: 'repeat' }
  /** The user asks for time. */
  | { readonly kind: 'hold' };

export const described = { kind: 'described' } as const satisfies Match;
export const repeat = { kind: 'repeat' } as const satisfies Match;
export const unclear = { kind: 'unclear' } as const satisfies Match;
export const digression = { kind: 'digression' } as const satisfies Match;
export const hold = { kind: 'hold' } as const satisfies Match;
