// The entry `offstage/web-push`: a `reach` channel that sends push messages to the browsers of a user through the package
// `web-push`.
//
// Owns:     the content of the message, its size, and the interpretation of the push service's status.
// Does not: encrypt or sign (the package does), keep subscriptions (the app does), or show the message (a service worker
//           of the app does).
//
// Invariants
//   WEB-PUSH-1. All messages for one key have the same `Topic` and the same `id`, so that the push service replaces a
//       message that waits, and the browser replaces a notification that has this id as its `tag`.
//   WEB-PUSH-2. A message has at most 3993 bytes before encryption, which every push service takes. Its call and options
//       are never cut.
//   WEB-PUSH-3. A subscription that the push service no longer knows is passed to `gone`, so that the app forgets it.

import { createHash } from 'node:crypto';
import { z } from 'zod';
import { reachHeading, reachText, type ReachChannel } from '../../actors/ports/reach-channel.ts';
import { aFunction, anObject, checkUnshown } from '../../values/checks.ts';
import { messageOf, ProviderError } from '../../values/errors.ts';
import { isRecord } from '../../values/json.ts';

type Item = Parameters<ReachChannel['send']>[0];

/** A browser's `PushSubscription`, as JSON. */
interface Subscription {
  /** The URL of the browser's push service for this subscription. */
  readonly endpoint: string;
  /** The browser's public key and its authentication secret, in base64url. */
  readonly keys: { readonly p256dh: string; readonly auth: string };
}

interface WebPushOptions {
  /** The package `web-push`. */
  readonly webPush: {
    sendNotification(
      subscription: Subscription,
      payload: string,
      options: object,
    ): PromiseLike<unknown>;
  };
  /** The app's keys (`npx web-push generate-vapid-keys`), and its `mailto:` or `https:` address. */
  readonly vapid: {
    readonly subject: string;
    readonly publicKey: string;
    readonly privateKey: string;
  };
  /** Returns the subscriptions of the user's browsers. */
  readonly subscriptions: (
    item: Item,
  ) => readonly Subscription[] | PromiseLike<readonly Subscription[]>;
  /** Called with a subscription that has ended, so that the app forgets it. */
  readonly gone?: (subscription: Subscription, item: Item) => unknown;
  /** How long the push service keeps a message for a browser that is closed, in seconds. @defaultValue 86400 */
  readonly ttlSeconds?: number;
  /** The time limit for sending to all browsers, in milliseconds. @defaultValue 30000 */
  readonly timeoutMs?: number;
}

/** A push service takes 4096 bytes (RFC 8030, 7.2), of which encryption needs 103 (RFC 8291, 4). */
const MAX_BYTES = 3993;
const DAY_SECONDS = 86_400;
const schema = z.strictObject({
  webPush: anObject('the package web-push', 'sendNotification'),
  vapid: z.strictObject({
    subject: z.string().regex(/^(?:mailto:|https:)/, 'expected a mailto: or https: address'),
    publicKey: z.string().min(1),
    privateKey: z.string().min(1),
  }),
  subscriptions: aFunction,
  gone: aFunction.optional(),
  ttlSeconds: z.int().min(0).optional(),
  timeoutMs: z.number().positive().optional(),
});

/**
 * Returns a channel that sends push messages. Each message is JSON: `{ id, title, body, url?, key, sessionId }`, where
 * `url` is the first link. The receipt is `sent` if at least one browser's push service has accepted the message.
 * @throws {ConfigurationError} `INVALID_OPTION`.
 */
export function webPushChannel(options: WebPushOptions): ReachChannel {
  checkUnshown('webPushChannel(options)', schema, options);
  const { webPush, vapid, subscriptions, gone, ttlSeconds = DAY_SECONDS, timeoutMs } = options;
  return {
    idempotent: true,
    ...(timeoutMs !== undefined && { timeoutMs }),
    async send(item, links) {
      const { key, sessionId, priority } = item;
      const [link, ...others] = links;
      // WEB-PUSH-1: a topic has at most 32 characters of the base64url alphabet (RFC 8030, 5.4).
      const id = createHash('sha256').update(key).digest('base64url').slice(0, 32);
      const rest = {
        id,
        title: reachHeading(item),
        key,
        sessionId,
        ...(link && { url: link.url }),
      };
      const whole = (body: string): string => JSON.stringify({ ...rest, body });
      const payload = whole(
        reachText(item, others, MAX_BYTES, (body) => Buffer.byteLength(whole(body))),
      );
      const urgency = priority === 'normal' ? 'normal' : 'high';
      const request = { vapidDetails: vapid, TTL: ttlSeconds, topic: id, urgency };
      const devices = await subscriptions(item);
      const sent = await Promise.allSettled(
        devices.map((device) => webPush.sendNotification(device, payload, request)),
      );
      const refusals: unknown[] = [];
      for (const [index, outcome] of sent.entries()) {
        if (outcome.status === 'fulfilled') continue;
        refusals.push(outcome.reason);
        const device = devices[index];
        if (device && GONE.has(statusOf(outcome.reason))) await gone?.(device, item);
      }
      if (refusals.length < devices.length) return 'sent';
      throw refusal(refusals);
    },
  };
}

/** The subscription has ended (RFC 8030, 7.3; 404 from some push services). */
const GONE: ReadonlySet<number> = new Set([404, 410]);

/** Returns the status with which the push service refused a message; 0 if it did not answer. */
function statusOf(error: unknown): number {
  return isRecord(error) && typeof error.statusCode === 'number' ? error.statusCode : 0;
}

/** Returns the error if no browser's push service has accepted the message. It is final if each refusal is. */
function refusal(refusals: readonly unknown[]): unknown {
  const later = refusals.find((error) => {
    const status = statusOf(error);
    return status === 0 || status === 429 || status >= 500;
  });
  const cause = later ?? refusals[0];
  const status = statusOf(cause);
  if (cause !== undefined && status === 0) return cause;
  const why = cause === undefined ? 'the user has no browser' : `${status} ${messageOf(cause)}`;
  const retryable = later !== undefined;
  return new ProviderError('PUSH_REFUSED', `No push service has accepted the message: ${why}`, {
    retryable,
    cause,
  });
}
