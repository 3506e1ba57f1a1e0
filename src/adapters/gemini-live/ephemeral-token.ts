// Short-lived tokens for browsers, which must not see a key. A server creates a token, and a page passes it to
// `geminiLive({ ephemeralToken })` or to Google's own client.
//
// EPHEMERAL-TOKEN-1. A token is locked to settings that its holder cannot change: the model, instructions and tools.

import { checkUnshown } from '../../values/checks.ts';
import { z } from 'zod';
import type { TransportConfiguration } from '../../voice/connection/transport.ts';
import { refused, requestToken, type TokenRequest } from '../socket/mint-token.ts';
import { apiKeyOf, tokenAddress } from './address.ts';
import { checkOptions, sessionOf, type GeminiLiveOptions } from './options.ts';
import { setup } from './wire.ts';

/** The options of `createEphemeralToken`. */
export interface EphemeralTokenOptions {
  /** @defaultValue as for `geminiLive` */
  readonly apiKey?: string;
  /** `https:` or `http:`. @defaultValue as for `geminiLive` */
  readonly baseUrl?: string;
  /**
   * The number of sessions that the token can start, not counting resumptions; 0 means unlimited. @defaultValue 1, set
   * by the server
   */
  readonly uses?: number;
  /**
   * When sessions that use the token end; less than 20 hours from now. @defaultValue in 30 minutes, set by the server
   */
  readonly expiresAt?: Date;
  /** The time until which the token can start sessions. @defaultValue in a minute, set by the server */
  readonly beginsUntil?: Date;
  /** The settings that the token's sessions cannot change. @defaultValue none */
  readonly locked?: {
    /** Only options that are sent to the server matter, such as the model, voice and thinking. */
    readonly options?: GeminiLiveOptions;
    readonly configuration: TransportConfiguration;
  };
  /** Aborts the request. @defaultValue none */
  readonly signal?: AbortSignal;
  /** @defaultValue the global `fetch` */
  readonly fetch?: typeof globalThis.fetch;
}

/** A short-lived token that connects a page to Gemini Live without the API key. */
export interface EphemeralToken {
  /** The value for `geminiLive({ ephemeralToken })`: `auth_tokens/…`. */
  readonly token: string;
  /** When sessions that use the token end; null if the server does not report it. */
  readonly expiresAt: Date | null;
}

const optionsSchema = z.strictObject({
  apiKey: z.string().min(1).optional(),
  baseUrl: z.string().min(1).optional(),
  uses: z.int().nonnegative().optional(),
  expiresAt: z.date().optional(),
  beginsUntil: z.date().optional(),
  locked: z.custom<EphemeralTokenOptions['locked']>().optional(),
  signal: z.instanceof(AbortSignal).optional(),
  fetch: z.custom<typeof globalThis.fetch>((value) => typeof value === 'function').optional(),
});

const answerSchema = z.object({ name: z.string().min(1), expireTime: z.string().nullish() });

/**
 * Creates a token for the Gemini Live API.
 *
 * @throws {ConfigurationError} `INVALID_OPTION`, `MISSING_API_KEY` or `INVALID_URL`.
 * @throws {ProviderError} `TOKEN_REFUSED` if the server issues no token; the error is retryable if the server was busy
 * or unreachable.
 */
export async function createEphemeralToken(
  options: EphemeralTokenOptions = {},
): Promise<EphemeralToken> {
  const checked = checkUnshown('createEphemeralToken', optionsSchema, options);
  const { uses, expiresAt, beginsUntil, locked, signal } = checked;
  const apiKey = apiKeyOf(checked.apiKey, 'createEphemeralToken');
  const wanted = {
    ...(uses !== undefined && { uses }),
    ...(expiresAt && { expireTime: expiresAt.toISOString() }),
    ...(beginsUntil && { newSessionExpireTime: beginsUntil.toISOString() }),
    ...(locked && { bidiGenerateContentSetup: lockedSetup(locked) }),
  };
  const request: TokenRequest = {
    url: tokenAddress(checked.baseUrl),
    headers: { 'x-goog-api-key': apiKey },
    body: wanted,
    secret: apiKey,
    signal,
    fetch: checked.fetch,
  };
  const answer = answerSchema.safeParse(await requestToken(request));
  if (!answer.success) throw refused(request, 'the server named none');
  const { name: token, expireTime } = answer.data;
  return { token, expiresAt: expireTime ? new Date(expireTime) : null };
}

function lockedSetup({ options, configuration }: NonNullable<EphemeralTokenOptions['locked']>) {
  const { settings, traits } = sessionOf(checkOptions(options ?? {}));
  return setup(settings, configuration, {
    toolBehavior: traits.duringCall === 'goes_on' ? 'NON_BLOCKING' : null,
    beginsWithHistory: false,
    handle: null,
  }).setup;
}
