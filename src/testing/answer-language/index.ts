// The conformance suite for the tables of a language.

export {
  answerLanguageConformance,
  type AnswerCorpus,
  type CorpusApproval,
  type CorpusChoice,
} from './answer-language-conformance.ts';
