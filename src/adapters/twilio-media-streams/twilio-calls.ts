// The WebSockets that Twilio opens to an app's server for calls: their verification, their limits, and the callback for
// each call.
//
// Owns:     the signature check of an upgrade, and every accepted socket until it closes.
// Does not: listen on a port.
//
// Sources (November 2026): twilio.com/docs/usage/webhooks/webhooks-security for the signature, which Twilio creates
// with the account's auth token; twilio.com/docs/voice/twiml/stream for the response that makes Twilio open a stream,
// whose URL must be `wss:` without a query.

import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { z } from 'zod';
import { check } from '../../values/checks.ts';
import { ConfigurationError } from '../../values/errors.ts';
import { shown } from '../../values/plain-checks.ts';
import { targetOf } from '../listen/access.ts';
import { createGuard, type Verdict } from '../listen/guard.ts';
import { checkCallOptions, type TwilioCallOptions } from './options.ts';
import { acceptTwilioCall, type TwilioCall } from './twilio-call.ts';

/** The options of `twilioCalls`. */
export interface TwilioCallsOptions extends TwilioCallOptions {
  /** The account's auth token, with which Twilio signs each upgrade. */
  readonly authToken: string;
  /** The URL that was passed to `streamTwiml`, as Twilio knows it: `wss://example.com/call`. */
  readonly url: string;
  /** The maximum number of concurrent calls. Further calls are refused. @defaultValue 64 */
  readonly maxCalls?: number;
  /** Called with each call. If it throws or rejects, the error is passed to `onError` and the call ends. */
  readonly onCall: (call: TwilioCall) => void | Promise<void>;
}

/** The phone call handler that `twilioCalls` returns. */
export interface TwilioCalls {
  /** Returns whether this request is for the path of `url`. The server may also handle other upgrades. */
  readonly isFor: (request: IncomingMessage) => boolean;
  /**
   * Handles the `upgrade` event of a server. It opens the WebSocket of a call and refuses any other request. Never
   * throws or rejects, whatever the request.
   */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => Promise<void>;
  /** Ends all calls. Resolves when their sockets have been closed. */
  close(): Promise<void>;
}

const ownOptions = z.object({
  authToken: z.string().min(1),
  url: z.string(),
  maxCalls: z.int().min(1).default(64),
  onCall: z.custom<TwilioCallsOptions['onCall']>(
    (value) => typeof value === 'function',
    'Expected a function',
  ),
});

/**
 * Accepts the calls that Twilio opens on an app's server. Requires `ws`. Rejects with a `ConfigurationError`:
 * `INVALID_OPTION`, `INVALID_URL`, `MISSING_DEPENDENCY`.
 */
export async function twilioCalls(options: TwilioCallsOptions): Promise<TwilioCalls> {
  const { authToken, url, maxCalls, onCall } = check('twilioCalls', ownOptions, options);
  const { authToken: _a, url: _u, maxCalls: _m, onCall: _c, ...callOptions } = options;
  const { environment, maxMessageLength, onError } = checkCallOptions(callOptions);
  const address = URL.parse(url);
  if (!address || !/^wss?:$/.test(address.protocol) || address.search !== '')
    throw new ConfigurationError(
      'INVALID_URL',
      `twilioCalls: expected \`url\` to be a wss: address without a query, got \`${url}\``,
    );
  const { pathname } = address;

  const answer = async (call: TwilioCall): Promise<void> => {
    try {
      await onCall(call);
    } catch (error) {
      onError(error);
      call.hangUp();
    }
  };
  const guard = await createGuard({
    name: 'twilioCalls',
    environment,
    maxClients: maxCalls,
    // Twilio's signature covers the original host, even if a proxy has changed the header.
    isHost: () => true,
    isOrigin: () => true,
    onError,
    webSocket: {
      // A UTF-16 code unit takes up to three bytes in UTF-8.
      maxMessageBytes: 3 * maxMessageLength,
      upgrade({ request, target }): Verdict {
        if (target.path !== pathname || target.authority !== null)
          return { type: 'refuse', refusal: { status: 404, message: `Expected ${pathname}` } };
        const signature = request.headers['x-twilio-signature'];
        const asked = `${address.protocol}//${address.host}${request.url}`;
        const isSigned =
          typeof signature === 'string' && isTwilioRequest(authToken, { signature, url: asked });
        if (!isSigned)
          return {
            type: 'refuse',
            refusal: { status: 403, message: 'Expected a signature of Twilio' },
          };
        return {
          type: 'open',
          open: (socket) => void acceptTwilioCall(socket, callOptions).then(answer, onError),
        };
      },
    },
  });
  return {
    isFor: (request) => targetOf(request.url)?.path === pathname,
    upgrade: guard.upgrade,
    close: () => guard.close(),
  };
}

/** The parts of a request that Twilio signs. */
export interface SignedRequest {
  /** The header `x-twilio-signature`. A request without it is not from Twilio. */
  readonly signature: string | readonly string[] | undefined;
  /**
   * The URL as Twilio knows it, including the query. Behind a proxy, this is the public URL. For a WebSocket upgrade,
   * the `wss:` URL of `<Stream>`.
   */
  readonly url: string;
  /** The fields of a posted form. An upgrade has no fields. @defaultValue none */
  readonly params?: Readonly<Record<string, string | readonly string[]>>;
}

const requestSchema = z.object({
  signature: z.unknown(),
  url: z.string(),
  params: z.record(z.string(), z.unknown()).optional(),
});

/**
 * Returns whether Twilio sent this request. Every failure takes the same amount of time. `authToken`: the account's
 * auth token. Returns false if the URL, the signature or the form is malformed.
 * @throws {ConfigurationError} `MISSING_AUTH_TOKEN`; `INVALID_URL` if `url` is a path without the host
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

/**
 * Returns whether all fields are texts, as they are in Twilio's requests. For other requests, a body parser may create
 * objects.
 */
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

/** Returns the URL with and without the port: Twilio may sign either form, even for the default port. */
function addressesOf(url: URL): readonly string[] {
  const isSecure = url.protocol === 'https:' || url.protocol === 'wss:';
  const port = url.port || (isSecure ? '443' : '80');
  const rest = `${url.pathname}${url.search}`;
  const user = url.username === '' ? '' : `${url.username}:${url.password}@`;
  const host = `${url.protocol}//${user}${url.hostname}`;
  return [`${host}${rest}`, `${host}:${port}${rest}`];
}

const argumentsSchema = z.object({ url: z.string(), parameters: z.record(z.string(), z.string()) });

/**
 * Returns TwiML that connects the call to the WebSocket at `url`. `parameters` are returned as
 * `TwilioCall.customParameters`.
 * @throws {ConfigurationError} `INVALID_URL` unless the URL is `wss:` without a query; `INVALID_OPTION` if a value is not
 * text
 */
export function streamTwiml(
  url: string,
  parameters: Readonly<Record<string, string>> = {},
): string {
  check('streamTwiml(url, parameters)', argumentsSchema, { url, parameters });
  const address = URL.parse(url);
  if (address?.protocol !== 'wss:' || address.search !== '')
    throw new ConfigurationError(
      'INVALID_URL',
      `Expected a wss: address without a query (use \`parameters\`), got ${shown(url)}`,
    );
  const children = Object.entries(parameters).map(
    ([name, value]) => `<Parameter name="${escaped(name)}" value="${escaped(value)}"/>`,
  );
  return (
    '<?xml version="1.0" encoding="UTF-8"?>' +
    `<Response><Connect><Stream url="${escaped(url)}">${children.join('')}</Stream></Connect></Response>`
  );
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}
