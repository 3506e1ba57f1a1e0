// The entry `offstage/language`: the tables for interpreting text as answers, and the function that adds a language.

export {
  addAnswerLanguage,
  answerLanguageFor,
  type AnswerLanguageTables,
} from '../language/languages.ts';
export type { AnswerLanguage } from '../language/language.ts';
