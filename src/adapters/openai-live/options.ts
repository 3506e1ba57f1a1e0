// The options of `openaiLive`, checked once at construction. The key and the base URL of the environment are checked at
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
  /** The key. @defaultValue the environment variable `OPENAI_API_KEY`, read at each connect */
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
  /** The rate of the audio in both directions. @defaultValue 24000 */
  readonly sampleRateHz?: 16_000 | 24_000;
  /**
   * The delay after a delegation before the model is asked to say that it is at work, unless it received a text by
   * then, in milliseconds. @defaultValue the delay of the server: none
   */
  readonly acknowledgementDelayMs?: number;
  /**
   * Whether the provider keeps a recording of each session (30 days), so that a lost connection can be resumed; without
   * it a new session receives the conversation as text. Your project must permit recordings. @defaultValue false
   */
  readonly store?: boolean;
  /**
   * The time for which the transport tries to resume a stored session before it begins a new one, in milliseconds.
   * @defaultValue 3000
   */
  readonly forkTimeoutMs?: number;
  /** The times by which turns are inferred, because the wire does not report turns; in milliseconds. */
  readonly turns?: {
    /** Silence of the model's track after which its response has ended. @defaultValue 800 */
    readonly responseSilenceMs?: number;
    /** Time without audio or words after which the response has ended, if the track stops. @defaultValue 2000 */
    readonly responseStallMs?: number;
    /** Time without words after which the user's utterance has ended. @defaultValue 1000 */
    readonly utterancePauseMs?: number;
    /** The same time while the model speaks. @defaultValue 500 */
    readonly turnPauseMs?: number;
    /** Time after which a request fails if the model has not begun to speak. @defaultValue 8000 */
    readonly requestTimeoutMs?: number;
    /**
     * Time after words of the user or a delegation in which the model may speak by itself; such speech does not count
     * as the requested response. @defaultValue 3000
     */
    readonly causeMs?: number;
  };
  /** The time before the expiry of a session at which the session is notified, in milliseconds. @defaultValue 60000 */
  readonly expiryNoticeMs?: number;
}

const NAME = 'openaiLive';
const DEFAULT_URL = 'wss://api.openai.com/v1/live/sessions';
const API_KEY_VARIABLE = 'OPENAI_API_KEY';
const BASE_URL_VARIABLE = 'OPENAI_BASE_URL';

/** Timeouts for events that the wire does not report, in milliseconds. */
export interface TurnTimes {
  readonly responseSilenceMs: number;
  readonly responseStallMs: number;
  readonly utterancePauseMs: number;
  readonly turnPauseMs: number;
  readonly requestTimeoutMs: number;
  readonly causeMs: number;
}

const defaultTurnTimes: TurnTimes = {
  // A pause between two sentences is shorter, a pause between two replies longer.
  responseSilenceMs: 800,
  // From OpenAI's own `TranscriptGrouper`: `assistantSilenceMs` here, `minTurnSeparationMs` for `turnPauseMs`.
  responseStallMs: 2_000,
  // Fragments of fluent speech arrive up to 800 ms apart.
  utterancePauseMs: 1_000,
  turnPauseMs: 500,
  // The speech to an append begins after about 2 seconds.
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

/** Checked options with their defaults. */
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
