// The options of `openaiLive`, validated once when the transport is created. The key and base URL from the environment
// are validated at that time and read again on each connection attempt, so that a new key takes effect.

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
  /** The API key. @defaultValue the environment variable `OPENAI_API_KEY`, read on each connect */
  readonly apiKey?: string;
  /**
   * The URL of the endpoint (`wss:`, `ws:`, `https:` or `http:`). A stored session is resumed at `/{session id}/fork`
   * under this URL.
   * @defaultValue `OPENAI_BASE_URL` + `/live/sessions` if that variable is set, otherwise
   * `wss://api.openai.com/v1/live/sessions`
   */
  readonly url?: string;
  /** @defaultValue 'gpt-live-1' */
  readonly model?: string;
  /** A built-in voice by name, or a custom voice by id. @defaultValue 'marin' */
  readonly voice?: string | { readonly id: string };
  /** The audio sample rate in both directions. @defaultValue 24000 */
  readonly sampleRateHz?: 16_000 | 24_000;
  /**
   * The time that the model may stay silent after a delegation before it is asked to say that it is working, in
   * milliseconds. It is not asked if it has received a text. @defaultValue the server's delay: none
   */
  readonly acknowledgementDelayMs?: number;
  /**
   * Whether the provider records each session (for 30 days) so that a lost connection can be resumed. Otherwise, a new
   * session receives the conversation as text. Your project must permit recordings. @defaultValue false
   */
  readonly store?: boolean;
  /**
   * The time limit for resuming a stored session, after which a new one is started, in milliseconds.
   * @defaultValue 3000
   */
  readonly forkTimeoutMs?: number;
  /** Timeouts in milliseconds for inferring turns, which the server does not report. */
  readonly turns?: {
    /** The silence of the model's track after which the response has ended. @defaultValue 800 */
    readonly responseSilenceMs?: number;
    /** The time without audio or words after which the response has ended if the track stops. @defaultValue 2000 */
    readonly responseStallMs?: number;
    /** The time without words after which the user's utterance has ended. @defaultValue 1000 */
    readonly utterancePauseMs?: number;
    /** Like `utterancePauseMs`, but while the model is speaking. @defaultValue 500 */
    readonly turnPauseMs?: number;
    /** The maximum time for the model to start to speak, after which a request fails. @defaultValue 8000 */
    readonly requestTimeoutMs?: number;
    /**
     * The time after the user's words or a delegation during which the model may speak unprompted. Such speech is not
     * treated as the requested response. @defaultValue 3000
     */
    readonly causeMs?: number;
  };
  /** The time between the notice that a session will expire and its expiry, in milliseconds. @defaultValue 60000 */
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
  // Pauses between sentences are shorter than this, and pauses between replies are longer.
  responseSilenceMs: 800,
  // From OpenAI's own `TranscriptGrouper`: `assistantSilenceMs` for this value, and `minTurnSeparationMs` for
  // `turnPauseMs`.
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

/** The validated options, with defaults filled in. */
export interface OpenaiLiveSettings extends SessionSettings, Required<DialOptions> {
  /** Returns the current key. */
  apiKey(): string;
  /** Returns the current URL. `forkOf` is the id of a session to resume. */
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
