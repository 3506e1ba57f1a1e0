// The options of `openaiLive`, checked once at construction. The environment's key and base URL are checked at
// construction and read again at each connect, so that a rotated key takes effect.

import { z } from 'zod';
import { withoutUndefined } from '../../values/without-undefined.ts';
import { check } from '../../values/checks.ts';
import {
  resolveApiKey,
  defaultDialOptions,
  dialOptionsShape,
  endpointUrl,
  type DialOptions,
} from '../socket/dial-options.ts';
import { loadWebSocketFactory } from '../socket/web-socket.ts';
import type { SessionSettings } from './wire.ts';
import { withoutEndSlashes } from '../../values/end-slashes.ts';

/** The options of `openaiLive`. */
export interface OpenaiLiveOptions extends DialOptions {
  /** The API key. @defaultValue the environment variable `OPENAI_API_KEY`, read at each connect */
  readonly apiKey?: string;
  /**
   * The URL of the endpoint (`wss:`, `ws:`, `https:` or `http:`); a stored session is resumed at `/{session id}/fork`
   * below it.
   * @defaultValue `OPENAI_BASE_URL` + `/live/sessions` if that variable is set, else
   * `wss://api.openai.com/v1/live/sessions`
   */
  readonly url?: string;
  /** @defaultValue 'gpt-live-1' */
  readonly model?: string;
  /** A built-in voice by name, or a custom one by id. @defaultValue 'marin' */
  readonly voice?: string | { readonly id: string };
  /** The audio sample rate in both directions. @defaultValue 24000 */
  readonly sampleRateHz?: 16_000 | 24_000;
  /**
   * The delay in milliseconds after a delegation until the model is asked to say that it is working, unless it has
   * received a text. @defaultValue the server's delay: none
   */
  readonly acknowledgementDelayMs?: number;
  /**
   * Whether the provider records each session (for 30 days), so that a lost connection can be resumed; otherwise a new
   * session receives the conversation as text. Your project must permit recordings. @defaultValue false
   */
  readonly store?: boolean;
  /**
   * How long the transport tries to resume a stored session before it starts a new one, in milliseconds.
   * @defaultValue 3000
   */
  readonly forkTimeoutMs?: number;
  /** Timeouts for inferring turns, because the server does not report turns; in milliseconds. */
  readonly turns?: {
    /** After this much silence on the model's track, the response has ended. @defaultValue 800 */
    readonly responseSilenceMs?: number;
    /** After this time without audio or words, the response has ended if the track stops. @defaultValue 2000 */
    readonly responseStallMs?: number;
    /** After this time without words, the user's utterance has ended. @defaultValue 1000 */
    readonly utterancePauseMs?: number;
    /** The same time while the model speaks. @defaultValue 500 */
    readonly turnPauseMs?: number;
    /** A request fails if the model has not started to speak within this time. @defaultValue 8000 */
    readonly requestTimeoutMs?: number;
    /**
     * Within this time after user words or a delegation, the model may speak unprompted; such speech does not count as
     * the requested response. @defaultValue 3000
     */
    readonly causeMs?: number;
  };
  /** How long before its expiry a session is notified, in milliseconds. @defaultValue 60000 */
  readonly expiryNoticeMs?: number;
}

const NAME = 'openaiLive';
const DEFAULT_URL = 'wss://api.openai.com/v1/live/sessions';
const API_KEY_VARIABLE = 'OPENAI_API_KEY';
const BASE_URL_VARIABLE = 'OPENAI_BASE_URL';

/** Timeouts for events that the server does not report, in milliseconds. */
export interface TurnTimes {
  readonly responseSilenceMs: number;
  readonly responseStallMs: number;
  readonly utterancePauseMs: number;
  readonly turnPauseMs: number;
  readonly requestTimeoutMs: number;
  readonly causeMs: number;
}

const defaultTurnTimes: TurnTimes = {
  // Pauses between sentences are shorter, pauses between replies longer.
  responseSilenceMs: 800,
  // From OpenAI's own `TranscriptGrouper`: `assistantSilenceMs` here, `minTurnSeparationMs` for `turnPauseMs`.
  responseStallMs: 2_000,
  // Fragments of fluent speech arrive up to 800 ms apart.
  utterancePauseMs: 1_000,
  turnPauseMs: 500,
  // Speech about an append starts after about 2 seconds.
  requestTimeoutMs: 8_000,
  causeMs: 3_000,
};

const defaultOpenaiLiveOptions = {
  model: 'gpt-live-1',
  voice: 'marin',
  sampleRateHz: 24_000,
  store: false,
  forkTimeoutMs: 3_000,
  expiryNoticeMs: 60_000,
  ...defaultDialOptions,
} as const satisfies OpenaiLiveOptions;

const text = z.string().min(1);
const milliseconds = z.number().positive();

const optionsSchema = z.strictObject({
  apiKey: text.optional(),
  url: text.optional(),
  model: text.optional(),
  voice: z.union([text, z.strictObject({ id: text })]).optional(),
  sampleRateHz: z.union([z.literal(16_000), z.literal(24_000)]).optional(),
  acknowledgementDelayMs: z.int().nonnegative().optional(),
  store: z.boolean().optional(),
  forkTimeoutMs: milliseconds.optional(),
  turns: z
    .strictObject({
      responseSilenceMs: milliseconds.optional(),
      responseStallMs: milliseconds.optional(),
      utterancePauseMs: milliseconds.optional(),
      turnPauseMs: milliseconds.optional(),
      requestTimeoutMs: milliseconds.optional(),
      causeMs: milliseconds.optional(),
    })
    .optional(),
  expiryNoticeMs: milliseconds.optional(),
  ...dialOptionsShape,
});

/** The checked options, with defaults filled in. */
export interface OpenaiLiveSettings extends SessionSettings, Required<DialOptions> {
  /** Returns the current key. */
  apiKey(): string;
  /** Returns the current URL; `forkOf`: the id of a session to resume. */
  url(forkOf?: string): string;
  readonly times: TurnTimes;
  readonly forkTimeoutMs: number;
  readonly expiryNoticeMs: number;
}

/** @throws {ConfigurationError} `INVALID_OPTION`, `MISSING_API_KEY`, `INVALID_URL` or `MISSING_DEPENDENCY`. */
export function resolveOptions(options: OpenaiLiveOptions): OpenaiLiveSettings {
  const { apiKey, url, turns, webSocket, ...rest } = check(NAME, optionsSchema, options);
  const settings: OpenaiLiveSettings = {
    ...defaultOpenaiLiveOptions,
    ...withoutUndefined(rest),
    times: { ...defaultTurnTimes, ...withoutUndefined(turns ?? {}) },
    apiKey: () => resolveApiKey(NAME, apiKey, API_KEY_VARIABLE),
    url: (forkOf) => addressOf(url, forkOf),
    webSocket: webSocket ?? loadWebSocketFactory(NAME),
  };
  settings.apiKey();
  settings.url();
  return settings;
}

function addressOf(option: string | undefined, forkOf: string | undefined): string {
  const url = endpointUrl({
    option,
    baseUrlVariable: BASE_URL_VARIABLE,
    path: '/live/sessions',
    defaultUrl: DEFAULT_URL,
  });
  if (forkOf !== undefined) {
    url.pathname = `${withoutEndSlashes(url.pathname)}/${encodeURIComponent(forkOf)}/fork`;
  }
  return url.href;
}
