// The URL and the API key of the Gemini API. Both are read from the options or the environment on each connection
// attempt, so that a new key takes effect.
//
// ADDRESS-1. The key is sent in a header. The server accepts an ephemeral token only in the URL, so a URL with a token
//     must be kept secret.

import { ConfigurationError } from '../../values/errors.ts';
import { urlIn, WEB_SOCKET_PROTOCOLS, type Protocols } from '../socket/dial-options.ts';
import type { Address } from '../socket/socket-connection.ts';
import { withoutEndSlashes } from '../../values/end-slashes.ts';

/**
 * The environment variables that may contain a key, in order of precedence. The AI SDK's name comes first, because an
 * app that uses the AI SDK has set it. `GOOGLE_API_KEY` comes before `GEMINI_API_KEY`, as in Google's own client, so
 * that both use the same project.
 */
export const API_KEY_VARIABLES = [
  'GOOGLE_GENERATIVE_AI_API_KEY',
  'GOOGLE_API_KEY',
  'GEMINI_API_KEY',
] as const;

/** The variable that overrides the base URL in Google's own client. */
const BASE_URL_VARIABLE = 'GOOGLE_GEMINI_BASE_URL';
const DEFAULT_BASE_URL = 'https://generativelanguage.googleapis.com';
/** Only this API version creates and accepts ephemeral tokens. */
const TOKEN_API_VERSION = 'v1alpha';

interface Access {
  readonly apiKey?: string;
  readonly ephemeralToken?: string;
  readonly url?: string;
  readonly baseUrl?: string;
  readonly apiVersion: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Returns the current key. @throws {ConfigurationError} `MISSING_API_KEY` */
export function apiKeyOf(option: string | undefined, who: string): string {
  const candidates = [option, ...API_KEY_VARIABLES.map((name) => process.env[name])];
  const apiKey = candidates.find((candidate) => candidate !== undefined && candidate !== '');
  if (apiKey === undefined) {
    throw new ConfigurationError(
      'MISSING_API_KEY',
      `${who} needs a key: set one of the environment variables ${API_KEY_VARIABLES.join(', ')}, or pass \`apiKey\``,
    );
  }
  return apiKey;
}

/**
 * Returns the current URL.
 * @throws {ConfigurationError} `MISSING_API_KEY` or `INVALID_URL`
 */
export function addressOf(access: Access): Address {
  const { ephemeralToken, headers } = access;
  if (ephemeralToken !== undefined) {
    const url = endpoint(access, TOKEN_API_VERSION, 'BidiGenerateContentConstrained');
    const mark = url.includes('?') ? '&' : '?';
    return { url: `${url}${mark}access_token=${ephemeralToken}`, headers, secret: ephemeralToken };
  }
  const secret = apiKeyOf(access.apiKey, 'geminiLive');
  const url = endpoint(access, access.apiVersion, 'BidiGenerateContent');
  return { url, headers: { ...headers, 'x-goog-api-key': secret }, secret };
}

/** Returns the URL that creates ephemeral tokens. @throws {ConfigurationError} `INVALID_URL` */
export function tokenAddress(baseUrl: string | undefined): string {
  const base = baseOf(baseUrl, { 'http:': 'http:', 'https:': 'https:' });
  return `${base}/${TOKEN_API_VERSION}/auth_tokens`;
}

function endpoint({ url, baseUrl }: Access, version: string, method: string): string {
  if (url !== undefined) return checked(url, '`url`', WEB_SOCKET_PROTOCOLS).href;
  const base = baseOf(baseUrl, WEB_SOCKET_PROTOCOLS);
  return `${base}/ws/google.ai.generativelanguage.${version}.GenerativeService.${method}`;
}

function baseOf(option: string | undefined, protocols: Protocols): string {
  const variable = process.env[BASE_URL_VARIABLE];
  const address = option ?? (variable || DEFAULT_BASE_URL);
  const source = option === undefined ? `\`${BASE_URL_VARIABLE}\`` : '`baseUrl`';
  const { href } = checked(address, source, protocols);
  // The paths below include the API version, but the AI SDK's base URL already ends with it.
  return withoutEndSlashes(href).replace(/\/v1(?:alpha|beta)?$/, '');
}

function checked(address: string, source: string, protocols: Protocols): URL {
  const expected = `${source} to be an address with one of ${Object.keys(protocols).join(', ')}`;
  return urlIn(protocols, address, expected);
}
