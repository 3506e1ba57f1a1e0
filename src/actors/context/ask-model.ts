// One question to a model, beside the conversation: no tools, no retries, one answer.

import type { LanguageModel, ModelMessage } from 'ai';
import { runModelStep } from '../model/model-step.ts';
import { prepareTools } from '../model/tools.ts';
import type { Environment } from '../ports/environment.ts';

export interface ModelQuestion {
  readonly model: LanguageModel;
  readonly instructions: string;
  readonly messages: readonly ModelMessage[];
  readonly environment: Environment;
  readonly signal: AbortSignal;
}

/** The text of the answer. Throws what the model throws, or `signal.reason`. */
export async function askModel(question: ModelQuestion): Promise<string> {
  const { environment, ...rest } = question;
  const { text } = await runModelStep({
    ...rest,
    tools: prepareTools({}, 'tools'),
    ids: environment.ids,
    clock: environment.clock,
  });
  return text;
}
