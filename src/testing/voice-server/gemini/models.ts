// The differences between the Live models of Gemini, by their names.

export type Behavior = 'BLOCKING' | 'NON_BLOCKING';

export interface ModelTraits {
  /** The behavior of a function that declares none. */
  readonly defaultBehavior: Behavior;
  readonly behaviors: readonly Behavior[];
  /** Reports with `interactionStatus` whether it is really idle. */
  readonly reportsStatus: boolean;
  /** Accepts `clientContent` after the conversation has begun. */
  readonly takesLateContent: boolean;
  /** Requires exactly one of `thinkingLevel` and `thinkingBudget`. */
  readonly mustThink: boolean;
}

const both = ['BLOCKING', 'NON_BLOCKING'] as const;
const flash25: ModelTraits = {
  defaultBehavior: 'BLOCKING',
  behaviors: both,
  reportsStatus: false,
  takesLateContent: true,
  mustThink: false,
};
const flash31: ModelTraits = { ...flash25, behaviors: ['BLOCKING'], takesLateContent: false };
const live38: ModelTraits = {
  defaultBehavior: 'NON_BLOCKING',
  behaviors: both,
  reportsStatus: true,
  takesLateContent: true,
  mustThink: false,
};
const thinking38: ModelTraits = { ...live38, behaviors: ['NON_BLOCKING'], mustThink: true };

/** @param model with or without `models/` */
export function traitsOf(model: string): ModelTraits {
  if (model.includes('extended-thinking')) return thinking38;
  if (model.includes('3.1')) return flash31;
  if (model.includes('2.5') || model.includes('2.0')) return flash25;
  return live38;
}
