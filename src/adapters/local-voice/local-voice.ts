// `localVoice`: a local voice server. It speaks the OpenAI Realtime protocol and combines speech detection, speech to
// text, any AI SDK language model and text to speech. It does not need an API key or a network.

import type { IncomingHttpHeaders } from 'node:http';
import type { LanguageModel } from 'ai';
import type { WebSocket } from 'ws';
import { z } from 'zod';
import type { Environment } from '../../actors/ports/environment.ts';
import { aFunction, check, type ChecksOf } from '../../values/checks.ts';
import { ConfigurationError, messageOf } from '../../values/errors.ts';
import { withoutUndefined } from '../../values/without-undefined.ts';
import {
  checkTranscriber,
  checkVoice,
  type Transcriber,
  type Voice,
} from '../../voice/speech/voice.ts';
import { isLoopbackName, isSameSecret } from '../listen/access.ts';
import { answerRefusal, createGuard, type Verdict } from '../listen/guard.ts';
import { presentedKey, REALTIME_PROTOCOL } from './access.ts';
import type { EndOfTurn } from './end-of-turn.ts';
import { InputAudio } from './input-audio.ts';
import { createTextModel } from './language-model.ts';
import { RealtimeSession, type RealtimeSessionOptions } from './realtime-session.ts';
import { createBuiltInEngine, withParts } from './speech/built-in-engine.ts';
import type { SpeechEngine } from './speech/speech-engine.ts';
import type { ServerEventBody } from './wire-events.ts';

/** The options of `localVoice`. */
export interface LocalVoiceOptions {
  /** The model that answers the user. The connected session provides the model's tools. */
  readonly model: LanguageModel;
  /**
   * The role of system messages within the conversation, such as a session's notes, when the model receives them. The
   * protocol has such messages, but only some models accept them. `system` is for OpenAI models. Claude, Gemini,
   * Mistral, Qwen and Bedrock reject it with an error. @defaultValue 'user', which every model accepts
   */
  readonly systemAs?: 'system' | 'user';
  /** Time and randomness: `nodeEnvironment()` of `offstage/node`. */
  readonly environment: Environment;
  /** The port on 127.0.0.1; 0 selects a free port. @defaultValue 0 */
  readonly port?: number;
  /**
   * Provides speech detection, speech to text and text to speech. The built-in engine consists of Silero, Moonshine and
   * Flite; `npx offstage voice install` installs them. The server starts an engine that you pass but does not close it,
   * because other servers may be using it. @defaultValue 'built-in'
   */
  readonly speech?: 'built-in' | SpeechEngine;
  /**
   * A speech-to-text service that replaces the engine's own. The engine still detects the start and end of speech:
   * `aiSdkTranscriber(…)` of `offstage/ai-sdk-speech`, or your implementation. @defaultValue the engine's speech to
   * text
   */
  readonly transcriber?: Transcriber;
  /**
   * The name of one of the engine's voices, which also replaces a requested voice that the engine lacks, such as
   * `marin`. Alternatively, a voice that replaces the engine's voices: `aiSdkVoice(…)`, or your implementation.
   * @defaultValue the engine's first voice, 'slt'
   */
  readonly voice?: string | Voice;
  /** How the user's speech is detected and transcribed. */
  readonly hearing?: HearingOptions;
  /** The key that clients must present. @defaultValue generated; `start` returns it */
  readonly apiKey?: string;
  /** Web origins that may connect, such as `http://127.0.0.1:8080`. @defaultValue none */
  readonly allowedOrigins?: readonly string[];
  /** The maximum number of concurrent connections. @defaultValue 16 */
  readonly maxConnections?: number;
  /** The key and certificate as PEM texts, to serve wss. @defaultValue none */
  readonly tls?: { readonly key: string; readonly cert: string };
}

/** Options for the detection and transcription of user speech. */
export interface HearingOptions {
  /**
   * The maximum length of an utterance before the server ends it and reports its words, in milliseconds. Speech after
   * this belongs to the next utterance. @defaultValue 15000
   */
  readonly longestUtteranceMs?: number;
  /**
   * The words so far are transcribed after this much silence, in milliseconds, so that they are available when the
   * utterance ends. Within the first second of speech, a third of this silence is enough. Each longer pause within an
   * utterance costs one transcription. `null`: only the whole utterance is transcribed, so its words do not affect when
   * it ends.
   * @defaultValue 200
   */
  readonly transcribeAfterMs?: number | null;
  /**
   * With `semantic_vad`, judges during a pause whether the user has finished. It replaces the list of unfinished words,
   * for example with an end-of-turn model. It is not called if the words answer the open question. The time limit of
   * the function is half a second. If it fails or exceeds this limit, the server reports this and uses the list.
   * @defaultValue the list
   */
  readonly endOfTurn?: EndOfTurn;
  /**
   * How much quieter a voice may be than the user's recent utterances, in decibels. A quieter voice, such as a
   * television, is not treated as the user's voice. It neither starts an utterance nor prolongs one. A user who moves
   * away is recognised again after one sentence. Before the first utterance, a voice only has to be louder than the
   * noise. `null`: every voice is treated as the user's voice. @defaultValue 15
   */
  readonly levelMarginDb?: number | null;
}

/** The defaults of `localVoice({ hearing })`. */
export const defaultHearingOptions = {
  longestUtteranceMs: 15_000,
  transcribeAfterMs: 200,
  levelMarginDb: 15,
} as const satisfies HearingOptions;

/** The defaults of `localVoice`. */
export const defaultLocalVoiceOptions = {
  port: 0,
  speech: 'built-in',
  allowedOrigins: [],
  maxConnections: 16,
} as const satisfies Partial<LocalVoiceOptions>;

/** The URL and the key that clients need: `openaiRealtime({ url, apiKey })`. */
export interface LocalVoiceAddress {
  /** A URL such as `ws://127.0.0.1:43121/v1/realtime`. */
  readonly url: string;
  /** The port that the engine listens on. */
  readonly port: number;
  /** The key that clients must send. */
  readonly apiKey: string;
}

/** The local voice server that `localVoice` returns. */
export interface LocalVoice {
  /**
   * Loads the models and starts listening. It can be called only once.
   * @throws {ConfigurationError} `MISSING_DEPENDENCY`, `LISTEN_FAILED`, `INVALID_OPTION` (the voice) or `ALREADY_STARTED`
   */
  start(): Promise<LocalVoiceAddress>;
  /** Closes all connections, the port and the built-in engine. Safe to call twice. */
  close(): Promise<void>;
}

const optionsSchema = z.strictObject({
  model: z.union([z.string().min(1), z.looseObject({ specificationVersion: z.string() })]),
  systemAs: z.enum(['system', 'user']).optional(),
  environment: z.looseObject({ clock: z.looseObject({}), scheduler: z.looseObject({}) }),
  port: z.int().min(0).max(65_535).optional(),
  speech: z.union([z.literal('built-in'), z.looseObject({})]).optional(),
  transcriber: z.custom<Transcriber>().optional(),
  voice: z
    .union([z.string().min(1), z.custom<Voice>((value) => typeof value !== 'string')])
    .optional(),
  hearing: z
    .strictObject({
      longestUtteranceMs: z.number().min(1_000).optional(),
      transcribeAfterMs: z.number().min(0).nullable().optional(),
      endOfTurn: aFunction.optional(),
      levelMarginDb: z.number().min(0).nullable().optional(),
    } satisfies ChecksOf<HearingOptions>)
    .optional(),
  apiKey: z.string().regex(/^\S+$/, 'expected text without white space').optional(),
  allowedOrigins: z.array(z.url()).optional(),
  maxConnections: z.int().min(1).optional(),
  tls: z.strictObject({ key: z.string(), cert: z.string() }).optional(),
});

/**
 * Creates a local voice server. It speaks the OpenAI Realtime protocol and uses local speech models and any AI SDK text
 * model.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
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
  const textModel = createTextModel(model, environment, options.systemAs);
  const hearing = { ...defaultHearingOptions, ...withoutUndefined(options.hearing ?? {}) };
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
        new RealtimeSession({
          environment,
          engine,
          textModel,
          defaultVoice,
          createInput: (events) => new InputAudio({ environment, engine, ...hearing }, events),
          ...link,
        }),
    });
  };
  const stop = async (): Promise<void> => {
    // After a failed start, only the engine has to be closed.
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
        // One of the engine's threads may be running.
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

/** The only network interface that the server listens on. */
const LOOPBACK = '127.0.0.1';
const PATH = '/v1/realtime';
/** The maximum size of a frame: the real server's limit for one append. */
const MAX_FRAME_BYTES = 15 * 1024 * 1024;
/** If a client has more unread bytes than this, the server holds back audio for it. */
const MAX_UNREAD_BYTES = 1024 * 1024;
const UNREAD_POLL_MS = 20;
const KEEP_ALIVE_MS = 20_000;
const CLOSE_UNAUTHORIZED = 3000;

interface ServerOptions {
  readonly port: number;
  readonly apiKey: string;
  readonly allowedOrigins: readonly string[];
  readonly maxConnections: number;
  readonly tls: { readonly key: string; readonly cert: string } | null;
  readonly environment: Environment;
  /** Creates the session of a new connection. */
  readonly createSession: (
    link: Pick<RealtimeSessionOptions, 'send' | 'whenReady' | 'model'>,
  ) => RealtimeSession;
}

interface RunningServer {
  readonly port: number;
  readonly url: string;
  /** Closes all connections and the port. */
  close(): Promise<void>;
}

/**
 * Starts to listen: HTTP(S) on the loopback interface, WebSocket upgrades on /v1/realtime, and one RealtimeSession per
 * connection.
 *
 * Owns: the URL, the key check, and the limits on frames and connections. It does not handle events
 * (`realtime-session.ts`) or reject other requests (`listen/guard.ts`).
 *
 * @throws {ConfigurationError} `MISSING_DEPENDENCY` or `LISTEN_FAILED` (the port is taken)
 */
async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { tls, maxConnections, environment, allowedOrigins } = options;
  const guard = await createGuard({
    name: 'localVoice',
    environment,
    tls,
    maxClients: maxConnections,
    isHost: isLoopbackName,
    isOrigin: (origin) => allowedOrigins.includes(origin),
    webSocket: {
      maxMessageBytes: MAX_FRAME_BYTES,
      subprotocol: REALTIME_PROTOCOL,
      keepAliveMs: KEEP_ALIVE_MS,
      upgrade: ({ request, target }): Verdict => {
        if (target.path !== PATH)
          return { type: 'refuse', refusal: { status: 404, message: `Expected ${PATH}.` } };
        const refused = unauthorized(request.headers, options);
        if (refused) return refused;
        const model = target.query.get('model') ?? 'local-voice';
        return { type: 'open', open: (client) => connect(client, model, options) };
      },
    },
    request: ({ response }) =>
      answerRefusal(response, { status: 404, message: `Expected a WebSocket on ${PATH}.` }),
  });
  const { port } = await guard
    .listen({ port: options.port, host: LOOPBACK })
    .catch((cause: unknown) => {
      if (cause instanceof ConfigurationError) throw cause;
      const message = `localVoice could not listen on ${LOOPBACK}:${options.port}: ${messageOf(cause)}`;
      throw new ConfigurationError('LISTEN_FAILED', message, { cause });
    });
  return {
    port,
    url: `${tls === null ? 'ws' : 'wss'}://${LOOPBACK}:${port}${PATH}`,
    close: () => guard.close(),
  };
}

/**
 * Returns how to reject a client without a valid key. Like the real server, this server sends an error on the open
 * socket and then closes the socket. Returns null if the key is valid.
 */
function unauthorized(
  headers: IncomingHttpHeaders,
  { apiKey, environment }: ServerOptions,
): Verdict | null {
  const key = presentedKey(headers);
  if (isSameSecret(key, apiKey)) return null;
  const code = key === null ? null : 'invalid_api_key';
  const message =
    key === null
      ? 'Missing bearer or basic authentication in header'
      : 'Incorrect API key provided: the key of a local voice server is minted when it starts.';
  const type = 'invalid_request_error';
  const event: ServerEventBody = { type: 'error', error: { type, code, message, param: null } };
  return {
    type: 'expel',
    tell: (client) => {
      client.send(JSON.stringify({ event_id: environment.ids.next('event'), ...event }));
      client.close(CLOSE_UNAUTHORIZED, code === null ? type : `${type}.${code}`);
    },
  };
}

function connect(client: WebSocket, model: string, options: ServerOptions): void {
  const { scheduler } = options.environment;
  const isOpen = (): boolean => client.readyState === client.OPEN;
  const session = options.createSession({
    model,
    send: (text) => {
      if (isOpen()) client.send(text);
    },
    whenReady: async () => {
      let delayMs = 0;
      do {
        const waitMs = delayMs;
        await new Promise<void>((resolve) => {
          scheduler.schedule(resolve, waitMs);
        });
        delayMs = UNREAD_POLL_MS;
      } while (isOpen() && client.bufferedAmount > MAX_UNREAD_BYTES);
    },
  });
  client.on('message', (data, isBinary) => {
    if (isBinary) session.receiveBinary();
    else session.receive((data as Buffer).toString('utf8'));
  });
  client.on('close', () => {
    session.close();
  });
  session.open();
}
