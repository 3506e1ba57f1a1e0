// Who thinks in the demo: its own rules without a key, OpenAI with `OPENAI_API_KEY`, or
// whatever speaks OpenAI's chat protocol at `OPENAI_BASE_URL`. The key itself is never
// part of what is shown.

import type { LanguageModelV4 } from '@ai-sdk/provider';
import { ConfigurationError } from '../../src/errors.ts';
import type { Environment } from '../../src/actors/ports/environment.ts';
import { brainModel } from './brain/brain-model.ts';
import type { About } from './shared/protocol.ts';

const DEFAULT_OPENAI_MODEL = 'gpt-5.4-mini';
const LOCAL_SPEECH = 'Silero, Moonshine and flite, on this machine';

export interface Minds {
  /** Thinks for the subagents. */
  readonly subagentModel: LanguageModelV4;
  /** Thinks for the lead agent behind a local voice; null: the lead agent is OpenAI Realtime. */
  readonly leadModel: LanguageModelV4 | null;
  readonly about: About;
}

export interface MindOptions {
  readonly environment: Environment;
  /** Thinks for all, whatever the variables say. */
  readonly model?: LanguageModelV4 | undefined;
  /** @defaultValue process.env */
  readonly variables?: Readonly<Record<string, string | undefined>>;
}

/**
 * Reads `OPENAI_API_KEY`, `OPENAI_BASE_URL` and `OPENAI_MODEL`.
 * @throws {ConfigurationError} when a base URL is no address, or given without a model.
 */
export async function chooseMinds(options: MindOptions): Promise<Minds> {
  const { environment, model, variables = process.env } = options;
  if (model) return local(model, `${model.provider} ${model.modelId}`);
  const apiKey = variables['OPENAI_API_KEY'] || undefined;
  const baseURL = variables['OPENAI_BASE_URL'] || undefined;
  const modelId = variables['OPENAI_MODEL'] || undefined;
  if (baseURL !== undefined) {
    if (modelId === undefined) {
      throw new ConfigurationError(
        'MISSING_MODEL',
        'Expected OPENAI_MODEL to name a model at OPENAI_BASE_URL, for example OPENAI_MODEL=llama3.2',
      );
    }
    if (!/^https?:\/\//.test(baseURL) || !URL.canParse(baseURL)) {
      throw new ConfigurationError(
        'INVALID_URL',
        'Expected OPENAI_BASE_URL to be an address such as http://127.0.0.1:11434/v1',
      );
    }
    const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
    const provider = createOpenAICompatible({ name: 'openai-compatible', baseURL, apiKey });
    return local(provider(modelId), `${modelId} at ${new URL(baseURL).host}`);
  }
  if (apiKey !== undefined) {
    const { createOpenAI } = await import('@ai-sdk/openai');
    const id = modelId ?? DEFAULT_OPENAI_MODEL;
    return {
      leadModel: null,
      subagentModel: createOpenAI({ apiKey })(id),
      about: { lead: 'OpenAI Realtime', subagents: `OpenAI ${id}`, speech: 'OpenAI Realtime' },
    };
  }
  return local(
    brainModel({ environment, thinkingMs: 150 }),
    "the demo's own rules (no key needed)",
  );
}

function local(model: LanguageModelV4, name: string): Minds {
  return {
    leadModel: model,
    subagentModel: model,
    about: { lead: name, subagents: name, speech: LOCAL_SPEECH },
  };
}
