// The models of the demo: its own rules without a key, OpenAI or Google behind a voice of
// theirs, or whatever speaks OpenAI's chat protocol at `OPENAI_BASE_URL`, behind a local voice.
// No key is ever part of what is shown.

import type { LanguageModelV4 } from '@ai-sdk/provider';
import { ConfigurationError, type Environment } from 'offstage';
import { brainModel } from './brain/brain-model.ts';
import type { About } from './page/about.ts';
import {
  chooseVoice,
  googleKey,
  remoteVoice,
  type RemoteVoiceName,
  type Variables,
} from './voices.ts';

const DEFAULT_OPENAI_MODEL = 'gpt-5.4-mini';
const DEFAULT_GOOGLE_MODEL = 'gemini-3.8-flash';
const LOCAL_SPEECH = 'Silero, Moonshine and flite, on this machine';

/** The voice and the model of the lead agent. */
export type LeadMind =
  | { readonly voice: 'local-voice'; readonly model: LanguageModelV4 }
  /** The voice model itself thinks. */
  | { readonly voice: RemoteVoiceName; readonly model: null };

export interface Minds {
  readonly lead: LeadMind;
  /** Thinks for the subagents, and works out what OpenAI Live delegates. */
  readonly subagentModel: LanguageModelV4;
  readonly about: About;
}

export interface MindOptions {
  readonly environment: Environment;
  /** Thinks for the subagents and behind a local voice, whatever the variables say. */
  readonly model?: LanguageModelV4 | undefined;
  /** @defaultValue process.env */
  readonly variables?: Variables;
}

/** A language model, and how it is shown. */
interface Mind {
  readonly model: LanguageModelV4;
  readonly name: string;
}

/**
 * Reads `TRANSPORT`, the keys, `OPENAI_BASE_URL`, `VOICE_MODEL`, `OPENAI_MODEL` and `GOOGLE_MODEL`.
 * @throws {ConfigurationError} when something that the voice needs is missing, or when a base URL
 * is no address, or given without a model.
 */
export async function chooseMinds(options: MindOptions): Promise<Minds> {
  const { model: given, variables = process.env } = options;
  const voice = chooseVoice(variables);
  const { model, name } = given
    ? { model: given, name: `${given.provider} ${given.modelId}` }
    : await thinker(voice, variables, options.environment);
  if (voice === 'local-voice') {
    const about = { transport: voice, lead: name, subagents: name, speech: LOCAL_SPEECH };
    return { lead: { voice, model }, subagentModel: model, about };
  }
  const { title, model: lead } = remoteVoice(voice, variables);
  const about = { transport: voice, lead, subagents: name, speech: title };
  return { lead: { voice, model: null }, subagentModel: model, about };
}

function thinker(
  voice: RemoteVoiceName | 'local-voice',
  variables: Variables,
  environment: Environment,
): Promise<Mind> | Mind {
  if (voice === 'gemini-live') return ofGoogle(variables);
  if (voice !== 'local-voice') return ofOpenai(variables);
  if (variables['OPENAI_BASE_URL']) return ofAddress(variables, variables['OPENAI_BASE_URL']);
  return {
    model: brainModel({ environment, thinkingMs: 150 }),
    name: "the demo's own rules (no key needed)",
  };
}

async function ofOpenai(variables: Variables): Promise<Mind> {
  const { createOpenAI } = await import('@ai-sdk/openai');
  const id = variables['OPENAI_MODEL'] || DEFAULT_OPENAI_MODEL;
  const baseURL = variables['OPENAI_BASE_URL'] || undefined;
  const model = createOpenAI({ apiKey: variables['OPENAI_API_KEY'], baseURL })(id);
  return { model, name: `OpenAI ${id}` };
}

async function ofGoogle(variables: Variables): Promise<Mind> {
  const { createGoogle } = await import('@ai-sdk/google');
  const id = variables['GOOGLE_MODEL'] || DEFAULT_GOOGLE_MODEL;
  const base = variables['GOOGLE_GEMINI_BASE_URL']?.replace(/\/+$/, '').replace(/\/v1beta$/, '');
  const baseURL = base ? `${base}/v1beta` : undefined;
  return {
    model: createGoogle({ apiKey: googleKey(variables), baseURL })(id),
    name: `Google ${id}`,
  };
}

async function ofAddress(variables: Variables, baseURL: string): Promise<Mind> {
  const modelId = variables['OPENAI_MODEL'] || undefined;
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
  const apiKey = variables['OPENAI_API_KEY'] || undefined;
  const provider = createOpenAICompatible({ name: 'openai-compatible', baseURL, apiKey });
  return { model: provider(modelId), name: `${modelId} at ${new URL(baseURL).host}` };
}
