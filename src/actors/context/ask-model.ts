// Asks a model one question outside the conversation: no tools, no retries, one answer.

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

/** Returns the text of the answer. Throws the model's error, or `signal.reason`. */
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
