// The options of `geminiLive`, checked once at construction.

import { z } from 'zod';
import { ConfigurationError } from '../../values/errors.ts';
import { withoutUndefined } from '../../values/without-undefined.ts';
import { check } from '../../values/checks.ts';
import type { Address } from '../socket/socket-connection.ts';
import { defaultDialOptions, dialOptionsShape, type DialOptions } from '../socket/dial-options.ts';
import { loadWebSocketFactory } from '../socket/web-socket.ts';
import { addressOf } from './address.ts';
import { traitsOf, type ModelTraits } from './models.ts';
import type { SessionSettings } from './wire/index.ts';

export interface GeminiLiveOptions extends DialOptions {
  /**
   * @defaultValue the first that is set of the environment variables `GOOGLE_GENERATIVE_AI_API_KEY` (the AI
   * SDK's name), `GOOGLE_API_KEY` and `GEMINI_API_KEY` (Google's names, in the order of its own client); read
   * at each connect
   */
  readonly apiKey?: string;
  /** What `createEphemeralToken` gave (`auth_tokens/…`); then no key is needed. */
  readonly ephemeralToken?: string;
  /** The whole address of the endpoint (`wss:`, `ws:`, `https:` or `http:`), for a proxy. @defaultValue made of `baseUrl` */
  readonly url?: string;
  /** @defaultValue the environment variable `GOOGLE_GEMINI_BASE_URL`, else `https://generativelanguage.googleapis.com` */
  readonly baseUrl?: string;
  /** Of the API; with an ephemeral token it is always `v1alpha`. @defaultValue 'v1beta' */
  readonly apiVersion?: string;
  /**
   * What a model can do depends on its family: tools that are answered late, messages added in
   * silence, instructions that change. One that is not known is used with care.
   * @defaultValue 'gemini-3.8-live'
   */
  readonly model?: string;
  /** A built-in voice, such as `Kore`. @defaultValue that of the model */
  readonly voice?: string;
  /** BCP-47, such as `en-US`. Models with native audio find it out themselves. @defaultValue none */
  readonly language?: string;
  /** 0 to 2. @defaultValue that of the model */
  readonly temperature?: number;
  /** Of one response. @defaultValue no limit but that of the model */
  readonly maxOutputTokens?: number;
  /**
   * How much the model thinks: a level or a budget in tokens, whichever its family takes.
   * @defaultValue `{ level: 'low' }` for a model that must be told, else that of the model
   */
  readonly thinking?: {
    readonly level?: 'minimal' | 'low' | 'medium' | 'high';
    readonly budget?: number;
  };
  /** How the server finds the user's speech, and what it does to its own. @defaultValue that of the server */
  readonly voiceActivity?: SessionSettings['voiceActivity'];
  /** Who writes down what the user says. @defaultValue any language */
  readonly transcription?: {
    /** BCP-47, such as `en-US`. */
    readonly languages?: readonly string[];
    /** Names and terms that are likely to be said. */
    readonly vocabulary?: readonly string[];
  };
  /**
   * What is oldest is forgotten when the conversation grows too long; without it a session ends
   * after 15 minutes of sound. `false`: off. @defaultValue `{}`: as the server thinks fit
   */
  readonly compression?: SessionSettings['compression'];
  /**
   * The server says which message it has taken in last, so that a resumed session loses none.
   * Only Google's enterprise platform takes it; the developer API refuses it. @defaultValue false
   */
  readonly transparentResumption?: boolean;
}

export const defaultGeminiLiveOptions = {
  apiVersion: 'v1beta',
  model: 'gemini-3.8-live',
  compression: {},
  transparentResumption: false,
  ...defaultDialOptions,
} as const satisfies GeminiLiveOptions;

const text = z.string().min(1);
const wholeMilliseconds = z.int().nonnegative();
const tokens = z.int().positive();

const optionsSchema = z.strictObject({
  apiKey: text.optional(),
  ephemeralToken: text.optional(),
  url: text.optional(),
  baseUrl: text.optional(),
  apiVersion: text.optional(),
  model: text.optional(),
  voice: text.optional(),
  language: text.optional(),
  temperature: z.number().min(0).max(2).optional(),
  maxOutputTokens: tokens.optional(),
  thinking: z
    .strictObject({
      level: z.enum(['minimal', 'low', 'medium', 'high']).optional(),
      // 0 is none, -1 as much as the model thinks fit.
      budget: z.int().min(-1).optional(),
    })
    .optional(),
  voiceActivity: z
    .strictObject({
      startSensitivity: z.enum(['high', 'low']).optional(),
      endSensitivity: z.enum(['high', 'low']).optional(),
      prefixPaddingMs: wholeMilliseconds.optional(),
      silenceDurationMs: wholeMilliseconds.optional(),
      interrupts: z.boolean().optional(),
      turnCoverage: z.enum(['only_activity', 'all_input', 'activity_and_video']).optional(),
    })
    .optional(),
  transcription: z
    .strictObject({ languages: z.array(text).optional(), vocabulary: z.array(text).optional() })
    .optional(),
  compression: z
    .union([
      z.literal(false),
      z.strictObject({ triggerTokens: tokens.optional(), targetTokens: tokens.optional() }),
    ])
    .optional(),
  transparentResumption: z.boolean().optional(),
  ...dialOptionsShape,
});

type CheckedOptions = z.output<typeof optionsSchema>;

/** Options with their defaults, checked. */
export interface GeminiLiveSettings extends SessionSettings, Required<DialOptions> {
  readonly traits: ModelTraits;
  /** The address and the key of now. */
  address(): Address;
}

/** @throws {ConfigurationError} `INVALID_OPTION`, `MISSING_API_KEY`, `INVALID_URL` or `MISSING_DEPENDENCY`. */
export function resolveOptions(options: GeminiLiveOptions): GeminiLiveSettings {
  const given = checkOptions(options);
  const { settings, traits } = sessionOf(given);
  const { apiKey, ephemeralToken, url, baseUrl } = given;
  const { headers, apiVersion, maxBufferedAudioMs, connectTimeoutMs, keepAliveMs } = {
    ...defaultGeminiLiveOptions,
    ...given,
  };
  const access = { apiKey, ephemeralToken, url, baseUrl, apiVersion, headers };
  const resolved: GeminiLiveSettings = {
    ...settings,
    traits,
    address: () => addressOf(access),
    headers,
    maxBufferedAudioMs,
    connectTimeoutMs,
    keepAliveMs,
    webSocket: given.webSocket ?? loadWebSocketFactory('geminiLive'),
  };
  resolved.address();
  return resolved;
}

/** @throws {ConfigurationError} `INVALID_OPTION` */
export function checkOptions(options: GeminiLiveOptions): CheckedOptions {
  return withoutUndefined(check('geminiLive', optionsSchema, options));
}

/** What is said to the model of these options. @throws {ConfigurationError} `INVALID_OPTION` */
export function sessionOf(given: CheckedOptions): {
  readonly settings: SessionSettings;
  readonly traits: ModelTraits;
} {
  const { model, compression, transparentResumption } = { ...defaultGeminiLiveOptions, ...given };
  const { voice, language, temperature, maxOutputTokens, voiceActivity, transcription } = given;
  const traits = traitsOf(model);
  const settings: SessionSettings = {
    model,
    voice,
    language,
    temperature,
    maxOutputTokens,
    voiceActivity,
    transcription,
    thinking: thinkingOf(traits, model, given.thinking),
    compression,
    transparentResumption,
  };
  return { settings, traits };
}

type Thinking = GeminiLiveOptions['thinking'];

const THINKING: Readonly<Record<ModelTraits['thinking'], readonly ('level' | 'budget')[]>> = {
  none: [],
  level: ['level'],
  budget: ['budget'],
  one_of: ['level', 'budget'],
  any: ['level', 'budget'],
};

/** What the setup says of thinking. What the family does not take would end the session: it is refused here. */
function thinkingOf({ thinking: takes }: ModelTraits, model: string, given: Thinking): Thinking {
  const kinds = (['level', 'budget'] as const).filter((kind) => given?.[kind] !== undefined);
  if (kinds.length > 1) throw invalid('`thinking`: expected a level or a budget, got both');
  for (const kind of kinds) {
    if (!THINKING[takes].includes(kind)) {
      throw invalid(`\`thinking.${kind}\`: ${model} does not take one`);
    }
  }
  if (kinds.length > 0) return given;
  return takes === 'one_of' ? { level: 'low' } : undefined;
}

function invalid(message: string): ConfigurationError {
  return new ConfigurationError('INVALID_OPTION', `geminiLive: ${message}`);
}
