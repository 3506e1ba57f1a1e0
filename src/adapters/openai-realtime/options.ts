// The options of `openaiRealtime`, validated once when the transport is created. The key and base URL from the
// environment are validated at that time and read again on each connection attempt, so that a new key takes effect.

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

/** The options of `openaiRealtime`. */
export interface OpenaiRealtimeOptions extends DialOptions {
  /** The API key. @defaultValue the environment variable `OPENAI_API_KEY`, read on each connect */
  readonly apiKey?: string;
  /**
   * The URL of the endpoint (`wss:`, `ws:`, `https:` or `http:`). `model` is added to its query if the query does not
   * name a model.
   * @defaultValue `OPENAI_BASE_URL` + `/realtime` if that variable is set, otherwise `wss://api.openai.com/v1/realtime`
   */
  readonly url?: string;
  /** @defaultValue 'gpt-realtime-2.1' */
  readonly model?: string;
  /** The model's output. `withVoice` requires `text`, which another voice speaks. @defaultValue 'audio' */
  readonly output?: 'audio' | 'text';
  /** A built-in voice by name, or a custom voice by id. @defaultValue 'marin' */
  readonly voice?: string | { readonly id: string };
  /** The speech rate, from 0.25 to 1.5. @defaultValue 1, set by the server */
  readonly speed?: number;
  /** The transcription of the user's speech. @defaultValue `{ model: 'gpt-4o-mini-transcribe' }` */
  readonly transcription?: {
    readonly model?: string;
    /** ISO 639-1, such as `en`. */
    readonly language?: string;
    readonly prompt?: string;
  };
  /**
   * How the server detects the start and end of an utterance. The server only reports them. It never responds or
   * interrupts on its own. `semantic_vad` also considers the words and waits longer after an unfinished sentence. A
   * compatible server without `semantic_vad` needs `{ type: 'server_vad' }`. It has a threshold of 0.5, a prefix of 300
   * ms and 500 ms of silence.
   * @defaultValue `{ type: 'semantic_vad' }` with the eagerness `auto`
   */
  readonly turnDetection?: SessionSettings['turnDetection'];
  /** The noise reduction: `near_field` is for headsets, and `far_field` is for speakers. @defaultValue none */
  readonly noiseReduction?: 'near_field' | 'far_field';
  /** The reasoning effort, for models that reason. @defaultValue the effort of the model */
  readonly reasoningEffort?: SessionSettings['reasoningEffort'];
  /** The maximum length of a response, in tokens. @defaultValue the limit of the model */
  readonly maxOutputTokens?: number;
  /**
   * Additional session fields in the protocol's form, such as `truncation` or `tracing`. Offstage's own values take
   * precedence. @defaultValue none
   */
  readonly session?: Readonly<Record<string, unknown>>;
}

const DEFAULT_URL = 'wss://api.openai.com/v1/realtime';
const API_KEY_VARIABLE = 'OPENAI_API_KEY';
const BASE_URL_VARIABLE = 'OPENAI_BASE_URL';

const defaultOpenaiRealtimeOptions = {
  model: 'gpt-realtime-2.1',
  output: 'audio',
  voice: 'marin',
  // OpenAI will retire this model on 2027-02-26. As of 2026-11, OpenAI's own client uses it in voice sessions.
  transcription: { model: 'gpt-4o-mini-transcribe' },
  turnDetection: { type: 'semantic_vad' },
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

/** The validated options, with defaults filled in. */
export interface OpenaiRealtimeSettings extends SessionSettings, Required<DialOptions> {
  readonly model: string;
  /** Returns the current key. */
  apiKey(): string;
  /** Returns the current URL, including the model. */
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
