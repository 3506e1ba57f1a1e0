import type { LanguageModel } from 'ai';

export type Model = Extract<LanguageModel, { specificationVersion: 'v4' }>;

export type Answer = Awaited<ReturnType<Model['doGenerate']>>;

export type ContentPart = Answer['content'][number];
