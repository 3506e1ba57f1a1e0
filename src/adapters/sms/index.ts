// The entry `offstage/sms`: a `reach` channel that sends text messages through a Twilio client, and reads the receipts
// that Twilio posts.
//
// Owns:     the text of the message, its length, and the address of its receipts.
// Does not: speak to Twilio or compute signatures (the `twilio` package does both), or run a server.
//
// Invariants
//   SMS-1. A delivery is sent at most once, because Twilio recognises no repeated message: the resource Message has no
//       idempotency key. An attempt whose outcome is unknown rejects with a `TimeoutError`.
//   SMS-2. A receipt counts only with a valid signature, which covers the key of the delivery in the URL.
//   SMS-3. A message has at most `maxChars` characters. Its call, options and links are never cut.

import { z } from 'zod';
import {
  isUnsent,
  reachHeading,
  reachText,
  type ReachChannel,
} from '../../actors/ports/reach-channel.ts';
import { aFunction, checkUnshown } from '../../values/checks.ts';
import { messageOf, ProtocolError, ProviderError, TimeoutError } from '../../values/errors.ts';
import { isRecord } from '../../values/json.ts';

type Item = Parameters<ReachChannel['send']>[0];
type Links = Parameters<ReachChannel['send']>[1];

interface SmsOptions {
  /** A client of the package `twilio`: `twilio(accountSid, authToken)`. */
  readonly client: {
    readonly messages: { create(message: never): PromiseLike<unknown> };
  };
  /** The sender: a number such as `+15557122661`, or the SID of a messaging service (`MG…`). */
  readonly from: string;
  /** The user's number, such as `+15558675310`, or a function that returns it. */
  readonly to: string | ((item: Item) => string | PromiseLike<string>);
  /** Writes the message, which must not be longer than `maxChars`. @defaultValue a message in English */
  readonly write?: (item: Item, links: Links) => string;
  /**
   * The maximum length of a message. Twilio sends a message in segments and charges for each: 160 characters of the
   * GSM alphabet or 70 others fit in one segment, 153 or 67 in each of several. @defaultValue 1600, Twilio's limit
   */
  readonly maxChars?: number;
  /** Where Twilio posts receipts, and how they are verified. @defaultValue no receipts */
  readonly receipts?: {
    /** The public URL that passes its requests to `receipt`. */
    readonly url: string;
    readonly authToken: string;
    /** `validateRequest` of the package `twilio`. */
    readonly validateRequest: (
      authToken: string,
      signature: string,
      url: string,
      params: Record<string, string>,
    ) => boolean;
  };
  /** The time limit for sending one message, in milliseconds. @defaultValue 30000 */
  readonly timeoutMs?: number;
}

/** https://www.twilio.com/docs/api/errors/21617 */
const MAX_CHARS = 1600;
const schema = z.strictObject({
  client: z.custom<SmsOptions['client']>(
    // The `messages` of a client are a function with methods.
    (it) => isRecord(it) && typeof Reflect.get(Object(it.messages), 'create') === 'function',
    'expected a client of the package twilio',
  ),
  from: z.string().min(1),
  to: z.union([z.string().min(1), aFunction]),
  write: aFunction.optional(),
  maxChars: z.int().min(70).max(MAX_CHARS).optional(),
  receipts: z
    .strictObject({
      url: z.url({ protocol: /^https?$/ }).refine((url) => !/[?#]/.test(url), 'expected no query'),
      authToken: z.string().min(1),
      validateRequest: aFunction,
    })
    .optional(),
  timeoutMs: z.number().positive().optional(),
});

/**
 * Returns a channel that sends text messages. `receipt` reads a request of Twilio to `receipts.url` and returns what to
 * pass to `session.reached`, or null if the request reports neither `delivered` nor `read`.
 * @throws {ConfigurationError} `INVALID_OPTION`. `receipt` throws a `ProtocolError` (`UNSIGNED_RECEIPT`).
 */
export function smsChannel(options: SmsOptions): ReachChannel & {
  receipt(request: {
    /** The URL of the request; only its query is used. */
    readonly url: string;
    /** The header `x-twilio-signature`. */
    readonly signature: string | undefined;
    /** The body, as text. */
    readonly body: string;
  }): {
    readonly sessionId: string;
    readonly key: string;
    readonly receipt: 'delivered' | 'read';
  } | null;
} {
  checkUnshown('smsChannel(options)', schema, options);
  const { client, from, to, write, maxChars = MAX_CHARS, receipts, timeoutMs } = options;
  const messages: { create(message: object): PromiseLike<unknown> } = client.messages;
  return {
    idempotent: false,
    ...(timeoutMs !== undefined && { timeoutMs }),
    async send(item, links) {
      const { key, sessionId } = item;
      const heading = reachHeading(item);
      const whole = (text: string): string => `${heading}\n${text}`;
      const message = {
        ...(from.startsWith('MG') ? { messagingServiceSid: from } : { from }),
        to: typeof to === 'string' ? to : await to(item),
        body: write
          ? write(item, links)
          : whole(reachText(item, links, maxChars, (text) => whole(text).length)),
        ...(receipts && {
          statusCallback: `${receipts.url}?${String(new URLSearchParams({ session: sessionId, key }))}`,
        }),
      };
      try {
        await messages.create(message);
      } catch (error) {
        throw refusal(error);
      }
      return 'sent';
    },
    receipt({ url, signature = '', body }) {
      const query = url.includes('?') ? url.slice(url.indexOf('?')) : '';
      const params = Object.fromEntries(new URLSearchParams(body));
      if (!receipts?.validateRequest(receipts.authToken, signature, receipts.url + query, params))
        throw new ProtocolError('UNSIGNED_RECEIPT', 'Expected a request that Twilio has signed');
      const { MessageStatus: receipt } = params;
      const given = new URLSearchParams(query);
      const [sessionId, key] = [given.get('session'), given.get('key')];
      if (sessionId === null || key === null) return null;
      return receipt === 'delivered' || receipt === 'read' ? { sessionId, key, receipt } : null;
    },
  };
}

/** The sender's queue is full: https://www.twilio.com/docs/api/errors/21611 */
const QUEUE_FULL = 21_611;

/**
 * Returns the error for an attempt that failed. A refusal such as 21610 (the user has replied STOP) is final:
 * https://www.twilio.com/docs/api/errors/21610
 */
function refusal(error: unknown): unknown {
  const { status, code } = isRecord(error) ? error : {};
  const why = `Twilio has not accepted the message: ${messageOf(error)}`;
  if (typeof status !== 'number')
    return isUnsent(error) ? error : new TimeoutError(why, { cause: error });
  const retryable = status === 429 || status === 503 || code === QUEUE_FULL;
  // SMS-1
  if (status >= 500 && !retryable) return new TimeoutError(why, { cause: error });
  return new ProviderError('SMS_REFUSED', `${why} (${String(code)})`, { retryable, cause: error });
}
