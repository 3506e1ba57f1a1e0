// Is a request from Twilio? It signs each with the auth token of the account: the webhook that
// asks for TwiML, and the upgrade to a WebSocket as well.
// Source: twilio.com/docs/usage/webhooks/webhooks-security (November 2026).

import { createHmac, timingSafeEqual } from 'node:crypto';
import { ConfigurationError } from '../../errors.ts';

/** A request, as Twilio signs it. */
export interface SignedRequest {
  /** The header `x-twilio-signature`; a request without it is not from Twilio. */
  readonly signature: string | undefined;
  /**
   * The address as Twilio knows it, the query included: behind a proxy the public one. For the
   * upgrade to a WebSocket it is the `wss:` address of `<Stream>`.
   */
  readonly url: string;
  /** The fields of a form that was posted; the upgrade has none. @defaultValue none */
  readonly params?: Readonly<Record<string, string | readonly string[]>>;
}

/**
 * Did Twilio send this? Takes the same time whatever is wrong. `authToken`: that of the account.
 * @throws {ConfigurationError} `MISSING_AUTH_TOKEN`, `INVALID_URL`
 */
export function isTwilioRequest(
  authToken: string,
  { signature = '', url, params = {} }: SignedRequest,
): boolean {
  if (authToken === '')
    throw new ConfigurationError('MISSING_AUTH_TOKEN', 'Expected the auth token of the account');
  if (!URL.canParse(url))
    throw new ConfigurationError('INVALID_URL', `Expected an address, got \`${url}\``);
  const given = Buffer.from(signature);
  let matches = 0;
  for (const address of addressesOf(new URL(url))) {
    const expected = Buffer.from(signatureOf(authToken, address, params));
    if (given.length === expected.length) matches += timingSafeEqual(given, expected) ? 1 : 0;
  }
  return matches > 0;
}

function signatureOf(
  authToken: string,
  address: string,
  params: NonNullable<SignedRequest['params']>,
): string {
  const fields = Object.entries(params)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([name, value]) => {
      const values = typeof value === 'string' ? [value] : [...new Set(value)].toSorted();
      return values.map((one) => name + one);
    });
  return createHmac('sha1', authToken)
    .update(address + fields.join(''))
    .digest('base64');
}

/** Some of Twilio signs the address with its port and some without, also where it is the usual one. */
function addressesOf(url: URL): readonly string[] {
  const isSecure = url.protocol === 'https:' || url.protocol === 'wss:';
  const port = url.port || (isSecure ? '443' : '80');
  const rest = `${url.pathname}${url.search}`;
  const user = url.username === '' ? '' : `${url.username}:${url.password}@`;
  const host = `${url.protocol}//${user}${url.hostname}`;
  return [`${host}${rest}`, `${host}:${port}${rest}`];
}
