// Common checks of adapter options: finds the key and the address.

import { ConfigurationError } from '../../values/errors.ts';

/**
 * Returns the key that was passed, or the current one in the environment variable.
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

/** The accepted protocols of an address, each with its replacement. */
export type Protocols = Readonly<Record<string, string>>;

export const WEB_SOCKET_PROTOCOLS: Protocols = {
  'ws:': 'ws:',
  'wss:': 'wss:',
  'http:': 'ws:',
  'https:': 'wss:',
};

/**
 * Returns an address with the replaced protocol. `expected`: a description for the error.
 * @throws {ConfigurationError} `INVALID_URL`
 */
export function urlIn(protocols: Protocols, address: string, expected: string): URL {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const protocol = url && protocols[url.protocol];
  if (url === undefined || protocol === undefined) {
    // Without the query and the user info, which may hold secrets.
    const shown = address.replace(/\?.*$/s, '').replace(/\/\/[^/]*@/, '//');
    throw new ConfigurationError('INVALID_URL', `Expected ${expected}, got \`${shown}\``);
  }
  url.protocol = protocol;
  return url;
}

/**
 * Returns an address as that of a WebSocket. `source`: its origin, for the error.
 * @throws {ConfigurationError} `INVALID_URL`
 */
export function webSocketUrl(address: string, source: string): URL {
  const expected = `${source} to be a wss:, ws:, https: or http: address`;
  return urlIn(WEB_SOCKET_PROTOCOLS, address, expected);
}
