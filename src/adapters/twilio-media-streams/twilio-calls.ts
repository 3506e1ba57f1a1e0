// The WebSockets that Twilio opens for calls, on a server of the app: verification, limits, and the callback
// for each call.
//
// Owns:     the signature check of an upgrade, and every accepted socket until it is closed.
// Does not: listen, or answer the webhook of the telephone number (`streamTwiml`).

import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { z } from 'zod';
import { check } from '../../values/checks.ts';
import { ConfigurationError } from '../../values/errors.ts';
import { targetOf } from '../listen/access.ts';
import { createGuard, type Verdict } from '../listen/guard.ts';
import { checkCallOptions, type TwilioCallOptions } from './options.ts';
import { isTwilioRequest } from './signature.ts';
import { acceptTwilioCall, type TwilioCall } from './twilio-call.ts';

export interface TwilioCallsOptions extends TwilioCallOptions {
  /** The auth token of the account; Twilio signs each upgrade with it. */
  readonly authToken: string;
  /** The address of `streamTwiml`, as Twilio knows it: `wss://example.com/call`. */
  readonly url: string;
  /** The limit of concurrent calls; further ones are refused. @defaultValue 64 */
  readonly maxCalls?: number;
  /** Called with each call. A throw or rejection goes to `onError`, and ends the call. */
  readonly onCall: (call: TwilioCall) => void | Promise<void>;
}

export interface TwilioCalls {
  /** Returns whether this request is for the path of `url`. Other upgrades of the same server are not. */
  readonly isFor: (request: IncomingMessage) => boolean;
  /**
   * Handles the event `upgrade` of a server: opens the WebSocket of a call, refuses everything else. Never
   * throws or rejects, for any request.
   */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => Promise<void>;
  /** Ends every call. Resolves when their sockets are closed. */
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
 * Accepts the calls that Twilio opens on a server of the app. Needs `ws`. Rejects with a
 * `ConfigurationError`: `INVALID_OPTION`, `INVALID_URL`, `MISSING_DEPENDENCY`.
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
    // Twilio's signature covers the host, whatever a proxy has changed.
    isHost: () => true,
    isOrigin: () => true,
    onError,
    webSocket: {
      // A character has up to three bytes in UTF-8.
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
