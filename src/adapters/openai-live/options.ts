// The options of `openaiLive`, checked once at construction; and what is read from the
// environment (key, base URL), checked at construction and read again at each connect, so
// that a rotated key is picked up.

import { z } from 'zod';
import { withoutUndefined } from '../../values/without-undefined.ts';
import { check } from '../../values/checks.ts';
import { resolveApiKey } from '../socket/checked-options.ts';
import {
  defaultDialOptions,
  dialOptionsShape,
  endpointUrl,
  type DialOptions,
} from '../socket/dial-options.ts';
import { loadWebSocketFactory } from '../socket/web-socket.ts';
import type { TurnTimes } from './translator.ts';
import type { SessionSettings } from './wire/index.ts';

export interface OpenaiLiveOptions extends DialOptions {
  /** @defaultValue the environment variable `OPENAI_API_KEY`, read at each connect */
  readonly apiKey?: string;
  /**
   * Address of the endpoint (`wss:`, `ws:`, `https:` or `http:`); a stored session is gone on
   * from at `/{session id}/fork` below it.
   * @defaultValue `OPENAI_BASE_URL` + `/live/sessions` if that is set, else `wss://api.openai.com/v1/live/sessions`
   */
  readonly url?: string;
  /** @defaultValue 'gpt-live-1' */
  readonly model?: string;
  /** A built-in voice by name, or a custom one by id. @defaultValue 'marin' */
  readonly voice?: string | { readonly id: string };
  /** Of the sound both ways. @defaultValue 24000 */
  readonly sampleRateHz?: 16_000 | 24_000;
  /**
   * So long after a delegation the model is asked to say that it is at work, unless something
   * was told to it by then. @defaultValue that of the server: at once
   */
  readonly acknowledgementDelayMs?: number;
  /**
   * The provider keeps a recording of each session (30 days), so that a lost connection can go
   * on where it ended; else the conversation is told to a new one as text. Must be allowed for
   * your project. @defaultValue false
   */
  readonly store?: boolean;
  /** How long a stored session is tried to be gone on from, before a new one is begun. @defaultValue 3000 */
  readonly forkTimeoutMs?: number;
  /**
   * The wire tells of no turns: they are inferred from what is heard. These are the times, in
   * milliseconds.
   */
  readonly turns?: {
    /** The model has finished when its track was silent for so long. @defaultValue 800 */
    readonly responseSilenceMs?: number;
    /** The same where the track itself stops: time without sound or words. @defaultValue 2000 */
    readonly responseStallMs?: number;
    /** The user has finished when no words came for so long. @defaultValue 1000 */
    readonly utterancePauseMs?: number;
    /** The same while the other of the two speaks. @defaultValue 500 */
    readonly turnPauseMs?: number;
    /** When the model was asked to speak and has not begun by then, it will not. @defaultValue 8000 */
    readonly requestTimeoutMs?: number;
    /**
     * After words of the user or a delegation the model may speak by itself for so long: what
     * it says then is not taken for what it was asked to say. @defaultValue 3000
     */
    readonly causeMs?: number;
  };
  /** So long before a session expires the session is told. @defaultValue 60000 */
  readonly expiryNoticeMs?: number;
}

const NAME = 'openaiLive';
const DEFAULT_URL = 'wss://api.openai.com/v1/live/sessions';
const API_KEY_VARIABLE = 'OPENAI_API_KEY';
const BASE_URL_VARIABLE = 'OPENAI_BASE_URL';

const defaultTurnTimes: TurnTimes = {
  // A pause between two sentences is shorter, one between two replies longer.
  responseSilenceMs: 800,
  // As OpenAI's own `TranscriptGrouper`: `assistantSilenceMs`, and `minTurnSeparationMs` below.
  responseStallMs: 2_000,
  // Fragments of fluent speech come up to 800 ms apart.
  utterancePauseMs: 1_000,
  turnPauseMs: 500,
  // From an append to its speech it takes about 2 seconds.
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

/** Options with their defaults, checked. */
export interface OpenaiLiveSettings extends SessionSettings, Required<DialOptions> {
  /** The key of now. */
  apiKey(): string;
  /** The address of now; `forkOf`: that of a session that goes on from this one. */
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
    url.pathname = `${url.pathname.replace(/\/+$/, '')}/${encodeURIComponent(forkOf)}/fork`;
  }
  return url.href;
}
