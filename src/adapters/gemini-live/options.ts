// The options of `geminiLive`, validated once when the transport is created.

import { z } from 'zod';
import { ConfigurationError } from '../../values/errors.ts';
import { withoutUndefined } from '../../values/without-undefined.ts';
import { check } from '../../values/checks.ts';
import type { Address } from '../socket/socket-connection.ts';
import { defaultDialOptions, dialOptionsShape, type DialOptions } from '../socket/dial-options.ts';
import { loadWebSocketFactory } from '../socket/web-socket.ts';
import { addressOf } from './address.ts';
import { traitsOf, type ModelTraits } from './models.ts';
import type { SessionSettings } from './wire.ts';

/** The options of `geminiLive`. */
export interface GeminiLiveOptions extends DialOptions {
  /**
   * The key of the Gemini API. @defaultValue the first of these environment variables that is set:
   * `GOOGLE_GENERATIVE_AI_API_KEY` (the AI SDK's name), `GOOGLE_API_KEY` and `GEMINI_API_KEY` (in the order of Google's
   * own client); read on each connect
   */
  readonly apiKey?: string;
  /** The result of `createEphemeralToken` (`auth_tokens/…`), used instead of the key. */
  readonly ephemeralToken?: string;
  /**
   * The full URL of the endpoint (`wss:`, `ws:`, `https:` or `http:`), for a proxy. @defaultValue derived from `baseUrl`
   */
  readonly url?: string;
  /** @defaultValue the environment variable `GOOGLE_GEMINI_BASE_URL`, else `https://generativelanguage.googleapis.com` */
  readonly baseUrl?: string;
  /** The API version; always `v1alpha` with an ephemeral token. @defaultValue 'v1beta' */
  readonly apiVersion?: string;
  /**
   * The model id. The model's family determines its abilities, such as late tool results, silent messages and
   * changeable instructions. Unknown models are treated conservatively. @defaultValue 'gemini-3.8-live'
   */
  readonly model?: string;
  /** A built-in voice, such as `Kore`. @defaultValue the voice of the model */
  readonly voice?: string;
  /** The language as a BCP-47 tag, such as `en-US`. Models with native audio detect the language. @defaultValue none */
  readonly language?: string;
  /** The sampling temperature, from 0 to 2. @defaultValue the temperature of the model */
  readonly temperature?: number;
  /** The maximum length of one response, in tokens. @defaultValue the limit of the model */
  readonly maxOutputTokens?: number;
  /**
   * The thinking setting: a level or a budget in tokens, whichever the model's family accepts.
   * @defaultValue `{ level: 'low' }` for a model that requires one, else the setting of the model
   */
  readonly thinking?: SessionSettings['thinking'];
  /** The settings of the server's voice activity detection. @defaultValue the settings of the server */
  readonly voiceActivity?: SessionSettings['voiceActivity'];
  /** The transcription of the user's speech. @defaultValue any language */
  readonly transcription?: {
    /** BCP-47, such as `en-US`. */
    readonly languages?: readonly string[];
    /** Names and terms that the user is likely to say. */
    readonly vocabulary?: readonly string[];
  };
  /**
   * Removes the oldest content when the conversation becomes too long. Without this option, a session ends after 15
   * minutes of audio. `false`: off. @defaultValue `{}`, which leaves the limits to the server
   */
  readonly compression?: SessionSettings['compression'];
  /**
   * Whether the server reports the last message that it has processed, so that no message is lost on resumption. Only
   * Google's enterprise platform accepts this option; the developer API rejects it. @defaultValue false
   */
  readonly transparentResumption?: boolean;
}

const defaultGeminiLiveOptions = {
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
      // 0 turns thinking off; -1 lets the model decide.
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

/** The validated options, with defaults filled in. */
export interface GeminiLiveSettings extends SessionSettings, Required<DialOptions> {
  readonly traits: ModelTraits;
  /** Returns the current URL, including the current key. */
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

/** Builds the model's setup from these options. @throws {ConfigurationError} `INVALID_OPTION` */
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

/**
 * Builds the thinking settings of the setup. Rejects a setting that the model family does not accept, because it would
 * end the session.
 */
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
