// Verifies that a request is from Twilio, which signs each with the auth token of the account: the webhook
// that asks for TwiML, and the upgrade to a WebSocket. Source:
// twilio.com/docs/usage/webhooks/webhooks-security (November 2026).

import { createHmac, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { check } from '../../values/checks.ts';
import { shown } from '../../values/plain-checks.ts';
import { ConfigurationError } from '../../values/errors.ts';

/** A request, as Twilio signs it. */
export interface SignedRequest {
  /** The header `x-twilio-signature`; a request without it is not from Twilio. */
  readonly signature: string | undefined;
  /**
   * The address as Twilio knows it, including the query: behind a proxy the public one. For the upgrade to a
   * WebSocket it is the `wss:` address of `<Stream>`.
   */
  readonly url: string;
  /** The fields of a posted form; the upgrade has none. @defaultValue none */
  readonly params?: Readonly<Record<string, string | readonly string[]>>;
}

const requestSchema = z.object({
  signature: z.unknown(),
  url: z.string(),
  params: z.record(z.string(), z.unknown()).optional(),
});

/**
 * Returns whether Twilio sent this. Takes the same time for every failure. `authToken`: that of the account.
 * A malformed address, signature or form of a foreign request yields false.
 * @throws {ConfigurationError} `MISSING_AUTH_TOKEN`; `INVALID_URL` for a path without the host
 */
export function isTwilioRequest(authToken: string, request: SignedRequest): boolean {
  if (typeof authToken !== 'string' || authToken === '')
    throw new ConfigurationError('MISSING_AUTH_TOKEN', 'Expected the auth token of the account');
  const { signature, url, params = {} } = check('isTwilioRequest', requestSchema, request);
  if (url.startsWith('/'))
    throw new ConfigurationError(
      'INVALID_URL',
      `Expected an address with the host that Twilio knows, got ${shown(url)}`,
    );
  const parsed = URL.parse(url);
  if (!parsed || typeof signature !== 'string' || !isForm(params)) return false;
  const given = Buffer.from(signature);
  let matches = 0;
  for (const address of addressesOf(parsed)) {
    const expected = Buffer.from(signatureOf(authToken, address, params));
    if (given.length === expected.length) matches += timingSafeEqual(given, expected) ? 1 : 0;
  }
  return matches > 0;
}

/** A body parser may turn the fields of a foreign request into objects; Twilio sends texts. */
function isForm(params: object): params is NonNullable<SignedRequest['params']> {
  return Object.values(params).every((value) =>
    [value].flat().every((one) => typeof one === 'string'),
  );
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

/** Parts of Twilio sign the address with its port and others without, even if it is the default one. */
function addressesOf(url: URL): readonly string[] {
  const isSecure = url.protocol === 'https:' || url.protocol === 'wss:';
  const port = url.port || (isSecure ? '443' : '80');
  const rest = `${url.pathname}${url.search}`;
  const user = url.username === '' ? '' : `${url.username}:${url.password}@`;
  const host = `${url.protocol}//${user}${url.hostname}`;
  return [`${host}${rest}`, `${host}:${port}${rest}`];
}
