// The voice and the models of the demo. `TRANSPORT` selects the voice. Otherwise it is OpenAI Realtime if an OpenAI key
// is set, and a local voice if not. The model of the local voice is the demo's own set of rules, or a model with
// OpenAI's chat API at `OPENAI_BASE_URL`. The adapters and providers read the keys and URLs. The page and the terminal
// never show a key.

import type { LanguageModelV4 } from '@ai-sdk/provider';
import { ConfigurationError, type Environment, type Transport } from 'offstage';
import { examine, thisMachine, type Machine } from 'offstage/doctor';
import { geminiLive } from 'offstage/gemini-live';
import type { LocalVoiceOptions } from 'offstage/local-voice';
import { openaiLive } from 'offstage/openai-live';
import { openaiRealtime } from 'offstage/openai-realtime';
import { ruleModel } from './rule-model.ts';
import type { About } from '../page/about.ts';

/** The voices whose model listens, thinks and speaks on the provider's server. */
const remoteVoices = {
  'openai-realtime': { title: 'OpenAI Realtime', model: 'gpt-realtime-2.1', open: openaiRealtime },
  'openai-live': { title: 'OpenAI Live', model: 'gpt-live-1', open: openaiLive },
  'gemini-live': { title: 'Gemini Live', model: 'gemini-3.8-live', open: geminiLive },
} as const;

export type VoiceName = keyof typeof remoteVoices | 'local-voice';
const VOICES = [...Object.keys(remoteVoices), 'local-voice'] as readonly VoiceName[];

const LOCAL_SPEECH = 'Silero, Moonshine and flite, on this machine';
const DEFAULT_OPENAI_MODEL = 'gpt-5.4-mini';
const DEFAULT_GOOGLE_MODEL = 'gemini-3.8-flash';

export interface Minds {
  /** The transport to the voice model. */
  readonly transport: Transport;
  /** The model for the subagents, for a local voice, and for the work that OpenAI Live delegates. */
  readonly model: LanguageModelV4;
  readonly about: About;
  /** Stops a local voice. */
  close(): Promise<void>;
}

export interface MindOptions {
  readonly environment: Environment;
  /** Replaces the model that the variables select. */
  readonly model?: LanguageModelV4 | undefined;
  /** The transcriber and the voice of the local pipeline. @defaultValue 'built-in' */
  readonly speech?: LocalVoiceOptions['speech'];
  /** The transport to the voice model. @defaultValue the one that the variables select */
  readonly transport?: Transport | undefined;
}

/** A language model and the text that describes it. */
interface Mind {
  readonly model: LanguageModelV4;
  readonly name: string;
}

/**
 * @throws {ConfigurationError} if something that the voice needs is missing, if a base URL is invalid, or if a base URL
 * is given without a model.
 */
export async function chooseMinds(options: MindOptions): Promise<Minds> {
  const { environment, model: given, speech = 'built-in', transport } = options;
  const voice = chooseVoice(thisMachine());
  const { model, name } = given
    ? { model: given, name: `${given.provider} ${given.modelId}` }
    : await thinker(voice, environment);
  const ends = { close: async () => undefined };
  if (voice === 'local-voice') {
    const about = { transport: voice, lead: name, subagents: name, speech: LOCAL_SPEECH };
    if (transport) return { transport, model, about, ...ends };
    const { localVoice } = await import('offstage/local-voice');
    const local = localVoice({ model, environment, speech });
    const { url, apiKey } = await local.start();
    const way = openaiRealtime({ url, apiKey });
    return { transport: way, model, about, close: () => local.close() };
  }
  const { title, open, model: usual } = remoteVoices[voice];
  const lead = process.env['VOICE_MODEL'] || usual;
  const about = { transport: voice, lead, subagents: name, speech: title };
  return { transport: transport ?? open({ model: lead }), model, about, ...ends };
}

/**
 * The voice that the variables select, if it can run on this machine.
 * @throws {ConfigurationError} `UNKNOWN_TRANSPORT`, or `TRANSPORT_NOT_READY`: something is missing.
 */
export function chooseVoice(machine: Machine): VoiceName {
  const { TRANSPORT: wanted, OPENAI_API_KEY: key, OPENAI_BASE_URL: address } = machine.variables;
  // The user's own model uses a local voice.
  const usual = key && !address ? 'openai-realtime' : 'local-voice';
  const name = VOICES.find((voice) => voice === (wanted || usual));
  if (name === undefined)
    throw new ConfigurationError(
      'UNKNOWN_TRANSPORT',
      `Expected TRANSPORT to be one of ${VOICES.join(', ')}, got ${JSON.stringify(wanted)}`,
    );
  const missing = examine(machine, [name])
    .flatMap(({ findings }) => findings)
    .filter(({ status }) => status === 'missing');
  if (missing.length === 0) return name;
  throw new ConfigurationError(
    'TRANSPORT_NOT_READY',
    `The demo cannot talk through ${name}:\n${missing.map(({ text }) => `  - ${text}`).join('\n')}\n` +
      `\`npm run doctor ${name}\` says what this machine has and lacks ` +
      `(in an app of yours: \`npx offstage doctor\`).`,
  );
}

async function thinker(voice: VoiceName, environment: Environment): Promise<Mind> {
  const { OPENAI_BASE_URL: address, OPENAI_MODEL, GOOGLE_MODEL } = process.env;
  if (voice === 'gemini-live') {
    const { createGoogle } = await import('@ai-sdk/google');
    const id = GOOGLE_MODEL || DEFAULT_GOOGLE_MODEL;
    const model = createGoogle({ apiKey: googleKey(), baseURL: googleAddress() })(id);
    return { model, name: `Google ${id}` };
  }
  if (voice !== 'local-voice') {
    const { openai } = await import('@ai-sdk/openai');
    const id = OPENAI_MODEL || DEFAULT_OPENAI_MODEL;
    return { model: openai(id), name: `OpenAI ${id}` };
  }
  if (!address)
    return {
      model: ruleModel({ environment, thinkingMs: 150 }),
      name: "the demo's own rules (no key needed)",
    };
  if (!OPENAI_MODEL)
    throw new ConfigurationError(
      'MISSING_MODEL',
      'Expected OPENAI_MODEL to name a model at OPENAI_BASE_URL, for example OPENAI_MODEL=llama3.2',
    );
  if (!/^https?:\/\//.test(address) || !URL.canParse(address))
    throw new ConfigurationError(
      'INVALID_URL',
      'Expected OPENAI_BASE_URL to be an address such as http://127.0.0.1:11434/v1',
    );
  const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
  const apiKey = process.env['OPENAI_API_KEY'] || undefined;
  const provider = createOpenAICompatible({ name: 'openai-compatible', baseURL: address, apiKey });
  return { model: provider(OPENAI_MODEL), name: `${OPENAI_MODEL} at ${new URL(address).host}` };
}

/** The key, from the same variables that `geminiLive` reads. */
function googleKey(): string | undefined {
  const { GOOGLE_GENERATIVE_AI_API_KEY, GOOGLE_API_KEY, GEMINI_API_KEY } = process.env;
  return [GOOGLE_GENERATIVE_AI_API_KEY, GOOGLE_API_KEY, GEMINI_API_KEY].find(Boolean);
}

function googleAddress(): string | undefined {
  const base = process.env['GOOGLE_GEMINI_BASE_URL']?.replace(/\/+$/, '').replace(/\/v1beta$/, '');
  return base ? `${base}/v1beta` : undefined;
}
