// The two endpoints that issue ephemeral tokens. They issue OpenAI's client secrets and Gemini's auth tokens. The
// official types do not include a token for the Live protocol.

import { z } from 'zod';
import {
  defaultSessionConfig,
  updateSessionConfig,
} from '../../../adapters/local-voice/session-config.ts';
import { Refusal } from '../../../adapters/local-voice/wire-events.ts';
import { refusalOf } from '../../../adapters/local-voice/zod-refusal.ts';
import type { Environment } from '../../../actors/ports/environment.ts';
import { keyOf, type Headers } from './admission.ts';
import type { TokenIssuer } from './token-issuer.ts';

export interface RestRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Headers;
  readonly body: string;
}

export interface RestAnswer {
  readonly status: number;
  readonly body: object;
}

export interface RestParts {
  readonly environment: Environment;
  readonly tokens: TokenIssuer;
  /** If null, any non-empty key is accepted. */
  readonly apiKey: string | null;
}

const DEFAULT_SECRET_S = 600;
const DEFAULT_OPEN_MS = 60_000;
const DEFAULT_TOKEN_MS = 30 * 60_000;
const MAX_TOKEN_MS = 20 * 60 * 60_000;

const secretRequest = z.strictObject({
  session: z.looseObject({ type: z.literal('realtime') }).nullish(),
  expires_after: z
    .strictObject({
      anchor: z.literal('created_at').nullish(),
      seconds: z.int().min(10).max(7_200).nullish(),
    })
    .nullish(),
});

const instant = z.iso.datetime({ offset: true });
const tokenRequest = z.strictObject({
  uses: z.int().nonnegative().nullish(),
  expireTime: instant.nullish(),
  newSessionExpireTime: instant.nullish(),
  bidiGenerateContentSetup: z.looseObject({}).nullish(),
  fieldMask: z.string().nullish(),
});

/** Handles a request to one of the endpoints. Never throws. */
export function answerRequest(request: RestRequest, parts: RestParts): RestAnswer {
  const { method, url } = request;
  const isSecrets = url.pathname === '/v1/realtime/client_secrets';
  const isTokens = /^\/v1(?:alpha|beta)?\/auth_tokens$/.test(url.pathname);
  if (method !== 'POST' || !(isSecrets || isTokens)) {
    return refuse(404, 'not_found', `Nothing is at ${method} ${url.pathname}`);
  }
  const key = keyOf(url, request.headers);
  if (key === null || (parts.apiKey !== null && key !== parts.apiKey)) {
    return refuse(401, 'invalid_api_key', 'Incorrect API key provided.');
  }
  let body: unknown;
  try {
    body = JSON.parse(request.body === '' ? '{}' : request.body);
  } catch {
    return refuse(400, 'invalid_json', 'The body is not JSON.');
  }
  try {
    return isSecrets ? mintSecret(body, parts) : mintToken(body, parts);
  } catch (error) {
    if (error instanceof Refusal) return refuse(400, error.code, error.message, error.param);
    throw error;
  }
}

function mintSecret(body: unknown, { environment, tokens }: RestParts): RestAnswer {
  const checked = secretRequest.safeParse(body);
  if (!checked.success) throw refusalOf(checked.error, body);
  const { session, expires_after: expiry } = checked.data;
  const preset = session ?? { type: 'realtime' };
  const model = typeof preset['model'] === 'string' ? preset['model'] : 'gpt-realtime-2.1';
  const config = defaultSessionConfig(environment.ids.next('sess'), model, 'marin');
  const opensUntil = environment.clock.now() + (expiry?.seconds ?? DEFAULT_SECRET_S) * 1000;
  const resolved = updateSessionConfig(config, preset, false);
  const value = tokens.mint({ wire: 'openai-realtime', preset, opensUntil, uses: null });
  const answer = { value, expires_at: Math.floor(opensUntil / 1000), session: resolved };
  return { status: 200, body: answer };
}

function mintToken(body: unknown, { environment, tokens }: RestParts): RestAnswer {
  const checked = tokenRequest.safeParse(body);
  if (!checked.success) throw refusalOf(checked.error, body);
  const { uses, expireTime, newSessionExpireTime, bidiGenerateContentSetup } = checked.data;
  const now = environment.clock.now();
  const opensUntil = timeOf(newSessionExpireTime, now + DEFAULT_OPEN_MS);
  const expires = timeOf(expireTime, now + DEFAULT_TOKEN_MS);
  for (const at of [opensUntil, expires]) {
    if (at > now + MAX_TOKEN_MS) {
      throw new Refusal('INVALID_ARGUMENT', 'A token expires in less than 20 hours.');
    }
  }
  const name = tokens.mint({
    wire: 'gemini-live',
    preset: bidiGenerateContentSetup ?? undefined,
    opensUntil,
    // 0 means no limit, and an unset value means one use.
    uses: uses === 0 ? null : (uses ?? 1),
  });
  return { status: 200, body: { name } };
}

function timeOf(given: string | null | undefined, otherwise: number): number {
  return given ? Date.parse(given) : otherwise;
}

function refuse(
  status: number,
  code: string,
  message: string,
  param: string | null = null,
): RestAnswer {
  const error = { type: 'invalid_request_error', code, message, param };
  return { status, body: { error } };
}
