// The name of an AI SDK model in errors, and the check whether a value is a model.

import { z } from 'zod';

/** A model, or the id of one for the gateway. */
export const modelSchema = z.object({
  model: z.union([
    z.string().min(1),
    z.looseObject({ specificationVersion: z.string(), provider: z.string(), modelId: z.string() }),
  ]),
});

/** Returns a name such as `openai.speech "gpt-4o-mini-tts"`. */
export function modelName(
  model: string | { readonly provider: string; readonly modelId: string },
): string {
  return typeof model === 'string' ? `"${model}"` : `${model.provider} "${model.modelId}"`;
}
