// Short-lived keys for browsers that connect directly to the Realtime API. A server creates a key, and a page passes it
// to `openaiRealtime({ apiKey })` or to OpenAI's own clients.

import { z } from 'zod';
import type { TransportConfiguration } from '../../voice/connection/transport.ts';
import { refused, requestToken } from '../socket/mint-token.ts';
import { check } from '../../values/checks.ts';
import { bearerAddress } from '../socket/dial-options.ts';
import { resolveOptions, type OpenaiRealtimeOptions } from './options.ts';
import { sessionStart } from './wire.ts';
import { withoutEndSlashes } from '../../values/end-slashes.ts';

/** The options of `createClientSecret`. */
export interface ClientSecretOptions {
  /** The key, URL, model, voice and other options, as for `openaiRealtime`. */
  readonly options?: OpenaiRealtimeOptions;
  /** The session's initial configuration, which the holder of the secret can change. @defaultValue none */
  readonly configuration?: TransportConfiguration;
  /** The time in which the secret can open connections, in seconds: 10 to 7200. @defaultValue 600, set by the server */
  readonly expiresInSeconds?: number;
  /** Aborts the request. @defaultValue none */
  readonly signal?: AbortSignal;
  /** @defaultValue the global `fetch` */
  readonly fetch?: typeof globalThis.fetch;
}

/** A short-lived secret that connects a page to OpenAI Realtime without the API key. */
export interface ClientSecret {
  /** The value to use in place of a key: `ek_…`. */
  readonly value: string;
  /** The time at which the secret expires. */
  readonly expiresAt: Date;
}

const optionsSchema = z.strictObject({
  options: z.looseObject({}).optional(),
  configuration: z
    .object({ instructions: z.string(), tools: z.array(z.looseObject({})) })
    .optional(),
  expiresInSeconds: z.int().min(10).max(7200).optional(),
  signal: z.instanceof(AbortSignal).optional(),
  fetch: z.custom((value) => typeof value === 'function', 'expected a function').optional(),
});

const answerSchema = z.object({ value: z.string().min(1), expires_at: z.number() });

/**
 * Creates a client secret for the Realtime API.
 *
 * @throws {ConfigurationError} `INVALID_OPTION`, `MISSING_API_KEY`, `INVALID_URL` or `MISSING_DEPENDENCY`.
 * @throws {ProviderError} `TOKEN_REFUSED` if the server issues no secret; the error is retryable if the server was busy
 * or unreachable.
 */
export async function createClientSecret(options: ClientSecretOptions = {}): Promise<ClientSecret> {
  check('createClientSecret', optionsSchema, options);
  const settings = resolveOptions(options.options ?? {});
  const { configuration = { instructions: '', tools: [] }, expiresInSeconds } = options;
  const { session } = sessionStart('', settings, configuration);
  const request = {
    ...bearerAddress(settings, () => secretsUrl(settings.url())),
    body: {
      session: { ...session, model: settings.model },
      ...(expiresInSeconds !== undefined && {
        expires_after: { anchor: 'created_at', seconds: expiresInSeconds },
      }),
    },
    signal: options.signal,
    fetch: options.fetch,
  };
  const answer = answerSchema.safeParse(await requestToken(request));
  if (!answer.success) throw refused(request, 'the server named none');
  return { value: answer.data.value, expiresAt: new Date(answer.data.expires_at * 1000) };
}

/** Returns the HTTP URL that corresponds to the WebSocket URL. */
function secretsUrl(webSocketUrl: string): string {
  const url = new URL(webSocketUrl.replace(/^ws/, 'http'));
  url.pathname = `${withoutEndSlashes(url.pathname)}/client_secrets`;
  url.search = '';
  return url.href;
}
