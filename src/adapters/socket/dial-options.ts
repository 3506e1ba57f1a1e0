// The options that all voice protocols share because they all connect in the same way. Also determines the key and the
// URL.

import { z } from 'zod';
import { ConfigurationError } from '../../values/errors.ts';
import type { Address } from './socket-connection.ts';
import type { WebSocketFactory } from './web-socket.ts';
import { withoutEndSlashes } from '../../values/end-slashes.ts';

export interface DialOptions {
  /** Additional headers for the upgrade request, such as `OpenAI-Project`. @defaultValue none */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * The amount of user audio to store while the connection is not ready or is too slow, in milliseconds.
   * @defaultValue 5000
   */
  readonly maxBufferedAudioMs?: number;
  /** The maximum time from `connect` to `transport.ready`, in milliseconds. @defaultValue 15000 */
  readonly connectTimeoutMs?: number;
  /**
   * The interval between pings, in milliseconds. If there is no response to a ping before the next one, the connection
   * is closed. `null` disables pings, for a simulated clock that may skip the interval. @defaultValue 20000
   */
  readonly keepAliveMs?: number | null;
  /** Opens the WebSocket. @defaultValue the `WebSocket` of the package `ws`, an optional peer dependency */
  readonly webSocket?: WebSocketFactory;
}

export const defaultDialOptions = {
  headers: {},
  maxBufferedAudioMs: 5_000,
  connectTimeoutMs: 15_000,
  keepAliveMs: 20_000,
} as const satisfies DialOptions;

const milliseconds = z.number().positive();

/** The fields of an adapter's schema that validate these options. */
export const dialOptionsShape = {
  headers: z.record(z.string().min(1), z.string()).optional(),
  maxBufferedAudioMs: milliseconds.optional(),
  connectTimeoutMs: milliseconds.optional(),
  keepAliveMs: milliseconds.nullable().optional(),
  webSocket: z
    .custom<WebSocketFactory>((value) => typeof value === 'function', 'expected a function')
    .optional(),
};

/** Access to an endpoint that requires a bearer token. */
interface BearerAccess {
  /** Returns the current key. */
  apiKey(): string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Returns the current URL; the key is sent in a header. */
export function bearerAddress({ apiKey, headers }: BearerAccess, url: () => string): Address {
  const secret = apiKey();
  return { url: url(), headers: { ...headers, Authorization: `Bearer ${secret}` }, secret };
}

/**
 * Returns the URL of an endpoint: `option` if it is set; otherwise the base URL in the environment variable
 * `baseUrlVariable` plus `path`, or `defaultUrl` if the variable is not set.
 * @throws {ConfigurationError} `INVALID_URL`
 */
export function endpointUrl(endpoint: {
  readonly option: string | undefined;
  readonly baseUrlVariable: string;
  readonly path: string;
  readonly defaultUrl: string;
}): URL {
  const { option, baseUrlVariable, path, defaultUrl } = endpoint;
  const baseUrl = process.env[baseUrlVariable];
  const fromBase = baseUrl ? `${withoutEndSlashes(baseUrl)}${path}` : undefined;
  const source = option === undefined ? `\`${baseUrlVariable}\`` : '`url`';
  return webSocketUrl(option ?? fromBase ?? defaultUrl, source);
}

/**
 * Returns the given key, or the current value of the environment variable.
 * @throws {ConfigurationError} `MISSING_API_KEY`
 */
export function resolveApiKey(
  adapterName: string,
  option: string | undefined,
  variable: string,
): string {
  const apiKey = option ?? process.env[variable];
  if (apiKey !== undefined && apiKey !== '') return apiKey;
  throw new ConfigurationError(
    'MISSING_API_KEY',
    `${adapterName} needs a key: set the environment variable ${variable} or pass \`apiKey\``,
  );
}

/** The accepted URL protocols, each with its replacement. */
export type Protocols = Readonly<Record<string, string>>;

export const WEB_SOCKET_PROTOCOLS: Protocols = {
  'ws:': 'ws:',
  'wss:': 'wss:',
  'http:': 'ws:',
  'https:': 'wss:',
};

/**
 * Returns a URL with its protocol replaced. `expected`: a description for the error message.
 * @throws {ConfigurationError} `INVALID_URL`
 */
export function urlIn(protocols: Protocols, address: string, expected: string): URL {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const protocol = url && protocols[url.protocol];
  if (url === undefined || protocol === undefined) {
    // Omits the query and the user info, which may contain secrets.
    const shown = address.replace(/\?.*$/s, '').replace(/\/\/[^/]*@/, '//');
    throw new ConfigurationError('INVALID_URL', `Expected ${expected}, got \`${shown}\``);
  }
  url.protocol = protocol;
  return url;
}

/**
 * Converts a URL to a WebSocket URL. `source`: where the URL comes from, for the error message.
 * @throws {ConfigurationError} `INVALID_URL`
 */
export function webSocketUrl(address: string, source: string): URL {
  const expected = `${source} to be a wss:, ws:, https: or http: address`;
  return urlIn(WEB_SOCKET_PROTOCOLS, address, expected);
}
