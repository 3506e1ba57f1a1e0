// The options of `openaiRealtime`, checked once at construction; and what is read
// from the environment (key, base URL), checked at construction and read again at
// each connect, so that a rotated key is picked up.

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
import type { SessionSettings } from './wire/index.ts';

export interface OpenaiRealtimeOptions extends DialOptions {
  /** @defaultValue the environment variable `OPENAI_API_KEY`, read at each connect */
  readonly apiKey?: string;
  /**
   * Address of the endpoint (`wss:`, `ws:`, `https:` or `http:`); `model` is added to its query if
   * it names none.
   * @defaultValue `OPENAI_BASE_URL` + `/realtime` if that is set, else `wss://api.openai.com/v1/realtime`
   */
  readonly url?: string;
  /** @defaultValue 'gpt-realtime-2.1' */
  readonly model?: string;
  /**
   * What the model answers in. `text` is for `withVoice`, which speaks it in a voice of your own.
   * @defaultValue 'audio'
   */
  readonly output?: 'audio' | 'text';
  /** A built-in voice by name, or a custom one by id. @defaultValue 'marin' */
  readonly voice?: string | { readonly id: string };
  /** Speed of speech, 0.25 to 1.5. @defaultValue 1, by the server */
  readonly speed?: number;
  /** Who writes down what the user says. @defaultValue `{ model: 'gpt-4o-mini-transcribe' }` */
  readonly transcription?: {
    readonly model?: string;
    /** ISO 639-1, such as `en`. */
    readonly language?: string;
    readonly prompt?: string;
  };
  /**
   * How the server finds the beginning and the end of an utterance. It only reports: it never
   * answers or interrupts by itself.
   * @defaultValue `{ type: 'server_vad' }`: threshold 0.5, 300 ms of prefix, 500 ms of silence
   */
  readonly turnDetection?: SessionSettings['turnDetection'];
  /** For headsets `near_field`, for loudspeakers `far_field`. @defaultValue none */
  readonly noiseReduction?: 'near_field' | 'far_field';
  /** Only for models that reason. @defaultValue that of the model */
  readonly reasoningEffort?: SessionSettings['reasoningEffort'];
  /** Of one response. @defaultValue no limit but that of the model */
  readonly maxOutputTokens?: number;
  /**
   * More fields of the session, as the wire names them, such as `truncation` or `tracing`. Where both
   * name the same field, what Offstage says holds. @defaultValue none
   */
  readonly session?: Readonly<Record<string, unknown>>;
}

const DEFAULT_URL = 'wss://api.openai.com/v1/realtime';
const API_KEY_VARIABLE = 'OPENAI_API_KEY';
const BASE_URL_VARIABLE = 'OPENAI_BASE_URL';

export const defaultOpenaiRealtimeOptions = {
  model: 'gpt-realtime-2.1',
  output: 'audio',
  voice: 'marin',
  // Announced to end on 2027-02-26; on 2026-11 it is what OpenAI's own client uses in a voice session.
  transcription: { model: 'gpt-4o-mini-transcribe' },
  turnDetection: { type: 'server_vad' },
  ...defaultDialOptions,
} as const satisfies OpenaiRealtimeOptions;

const text = z.string().min(1);

const optionsSchema = z.strictObject({
  apiKey: text.optional(),
  url: text.optional(),
  model: text.optional(),
  output: z.enum(['audio', 'text']).optional(),
  voice: z.union([text, z.strictObject({ id: text })]).optional(),
  speed: z.number().min(0.25).max(1.5).optional(),
  transcription: z
    .strictObject({
      model: text.optional(),
      language: text.optional(),
      prompt: z.string().optional(),
    })
    .optional(),
  turnDetection: z
    .discriminatedUnion('type', [
      z.strictObject({
        type: z.literal('server_vad'),
        threshold: z.number().min(0).max(1).optional(),
        prefixPaddingMs: z.int().nonnegative().optional(),
        silenceDurationMs: z.int().nonnegative().optional(),
      }),
      z.strictObject({
        type: z.literal('semantic_vad'),
        eagerness: z.enum(['low', 'medium', 'high', 'auto']).optional(),
      }),
    ])
    .optional(),
  noiseReduction: z.enum(['near_field', 'far_field']).optional(),
  reasoningEffort: z.enum(['minimal', 'low', 'medium', 'high', 'xhigh']).optional(),
  maxOutputTokens: z.int().positive().optional(),
  session: z.record(text, z.unknown()).optional(),
  ...dialOptionsShape,
});

/** Options with their defaults, checked. */
export interface OpenaiRealtimeSettings extends SessionSettings, Required<DialOptions> {
  readonly model: string;
  /** The key of now. */
  apiKey(): string;
  /** The address of now, with the model. */
  url(): string;
}

/** @throws {ConfigurationError} `INVALID_OPTION`, `MISSING_API_KEY`, `INVALID_URL` or `MISSING_DEPENDENCY`. */
export function resolveOptions(options: OpenaiRealtimeOptions): OpenaiRealtimeSettings {
  const checked = check('openaiRealtime', optionsSchema, options);
  const { apiKey, url, model: chosenModel, webSocket, ...rest } = checked;
  const defaults = defaultOpenaiRealtimeOptions;
  const model = chosenModel ?? defaults.model;
  const settings: OpenaiRealtimeSettings = {
    ...defaults,
    ...withoutUndefined(rest),
    transcription: { ...defaults.transcription, ...withoutUndefined(rest.transcription ?? {}) },
    model,
    apiKey: () => resolveApiKey('openaiRealtime', apiKey, API_KEY_VARIABLE),
    url: () => resolveUrl(url, model),
    webSocket: webSocket ?? loadWebSocketFactory('openaiRealtime'),
  };
  settings.apiKey();
  settings.url();
  return settings;
}

function resolveUrl(option: string | undefined, model: string): string {
  const baseUrlVariable = BASE_URL_VARIABLE;
  const url = endpointUrl({ option, baseUrlVariable, path: '/realtime', defaultUrl: DEFAULT_URL });
  if (!url.searchParams.has('model')) url.searchParams.set('model', model);
  return url.href;
}
