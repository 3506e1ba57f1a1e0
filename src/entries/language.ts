// The entry `offstage/language`: the tables for interpreting text as answers, and languages that an app adds.

export {
  addAnswerLanguage,
  answerLanguageFor,
  type AnswerLanguageTables,
} from '../language/languages.ts';
export type { AnswerLanguage } from '../language/language.ts';
