// `offstage/language`: the tables by which words are read as answers, and languages of an app.

export {
  addAnswerLanguage,
  answerLanguageFor,
  type AnswerLanguageTables,
} from '../language/languages.ts';
export type { AnswerLanguage } from '../language/language.ts';
