// What every adapter does with its options: check them, fill in defaults, find the key and
// the address.

import type { z } from 'zod';
import { ConfigurationError } from '../../errors.ts';

/**
 * The options of `adapterName` as its schema reads them.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
export function checkOptions<Schema extends z.ZodType>(
  adapterName: string,
  schema: Schema,
  options: unknown,
): z.output<Schema> {
  const checked = schema.safeParse(options);
  if (checked.success) return checked.data;
  const issues = checked.error.issues.map(
    ({ path, message }) => `\`${path.join('.') || 'options'}\`: ${message}`,
  );
  throw new ConfigurationError('INVALID_OPTION', `${adapterName}: ${issues.join('; ')}`);
}

/** Without the entries that are undefined, so that they do not take the place of a default. */
export function withoutUndefined<T extends object>(
  value: T,
): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, entry]) => entry !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}

/**
 * The key that was passed, or that of now in the environment variable.
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

const WEB_SOCKET_PROTOCOLS: Readonly<Record<string, string>> = {
  'ws:': 'ws:',
  'wss:': 'wss:',
  'http:': 'ws:',
  'https:': 'wss:',
};

/**
 * An address as that of a WebSocket. `source`: where it comes from, for the error.
 * @throws {ConfigurationError} `INVALID_URL`
 */
export function webSocketUrl(address: string, source: string): URL {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const protocol = url && WEB_SOCKET_PROTOCOLS[url.protocol];
  if (url === undefined || protocol === undefined) {
    // Without the query and the user info, which may hold secrets.
    const shown = address.replace(/\?.*$/s, '').replace(/\/\/[^/]*@/, '//');
    throw new ConfigurationError(
      'INVALID_URL',
      `Expected ${source} to be a wss:, ws:, https: or http: address, got \`${shown}\``,
    );
  }
  url.protocol = protocol;
  return url;
}
