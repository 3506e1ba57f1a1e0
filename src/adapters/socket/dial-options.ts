// The options that every wire has, since all are dialled in the same way.

import { z } from 'zod';
import { webSocketUrl } from './checked-options.ts';
import type { Address } from './socket-connection.ts';
import type { WebSocketFactory } from './web-socket.ts';

export interface DialOptions {
  /** More headers for the upgrade request, such as `OpenAI-Project`. @defaultValue none */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * The length of the user's sound that is kept while the wire is not ready or too slow, in milliseconds.
   * @defaultValue 5000
   */
  readonly maxBufferedAudioMs?: number;
  /** The time from `connect` to `transport.ready`, in milliseconds. @defaultValue 15000 */
  readonly connectTimeoutMs?: number;
  /**
   * The interval of pings, in milliseconds; a ping without an answer until the next one closes the
   * connection. `null`: none, for a simulated clock that may skip it. @defaultValue 20000
   */
  readonly keepAliveMs?: number | null;
  /** Opens the socket. @defaultValue the `WebSocket` of the package `ws`, an optional peer dependency */
  readonly webSocket?: WebSocketFactory;
}

export const defaultDialOptions = {
  headers: {},
  maxBufferedAudioMs: 5_000,
  connectTimeoutMs: 15_000,
  keepAliveMs: 20_000,
} as const satisfies DialOptions;

const milliseconds = z.number().positive();

/** The part of an adapter's schema that checks them. */
export const dialOptionsShape = {
  headers: z.record(z.string().min(1), z.string()).optional(),
  maxBufferedAudioMs: milliseconds.optional(),
  connectTimeoutMs: milliseconds.optional(),
  keepAliveMs: milliseconds.nullable().optional(),
  webSocket: z
    .custom<WebSocketFactory>((value) => typeof value === 'function', 'expected a function')
    .optional(),
};

/** An endpoint that accepts a key as a bearer token. */
export interface BearerAccess {
  /** Returns the current key. */
  apiKey(): string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Returns the current address, with the key in a header. */
export function bearerAddress({ apiKey, headers }: BearerAccess, url: () => string): Address {
  const secret = apiKey();
  return { url: url(), headers: { ...headers, Authorization: `Bearer ${secret}` }, secret };
}

/**
 * Returns the address of an endpoint: `option`, else `path` below the address in the environment variable
 * `baseUrlVariable`, else `defaultUrl`.
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
  const fromBase = baseUrl ? `${baseUrl.replace(/\/+$/, '')}${path}` : undefined;
  const source = option === undefined ? `\`${baseUrlVariable}\`` : '`url`';
  return webSocketUrl(option ?? fromBase ?? defaultUrl, source);
}
