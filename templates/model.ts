// The model: the one that your key is for, or, without a key, the script in script.ts.

import { openai } from '@ai-sdk/openai';
import { gateway, type LanguageModel } from 'ai';
import { script } from './script.ts';

const { OPENAI_API_KEY, AI_GATEWAY_API_KEY, MODEL } = process.env;

/** Whether the script answers in place of a model. */
export const isScripted = !OPENAI_API_KEY && !AI_GATEWAY_API_KEY;

// Any model of the AI SDK works: `anthropic(…)`, `google(…)`, …
export const model: LanguageModel = OPENAI_API_KEY
  ? openai(MODEL || 'gpt-5.4-mini')
  : AI_GATEWAY_API_KEY
    ? gateway(MODEL || 'openai/gpt-5.4-mini')
    : script;

console.log(
  isScripted
    ? 'SCRIPTED: there is no key, so that script.ts answers, and knows rides only. Try: Book me a ride to the airport.'
    : 'Answers come from your model.',
);
