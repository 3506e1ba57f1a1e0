// The entry `offstage/webhook`: signed webhooks as an event source of a service, and a `reach` channel that posts
// deliveries to the app's URL. The posts are signed according to Standard Webhooks.
//
// Owns:     the channel's request, and the interpretation of the response.
// Does not: follow redirects, or repeat a request (the session does).
//
// Invariants
//   WEBHOOK-CHANNEL-1. All requests for one key have the same `webhook-id`, so that the receiver can recognise a
//       repeated request.
//   WEBHOOK-CHANNEL-2. A response other than 2xx means that nothing was delivered. A 4xx status is final, except for
//       408, 409, 425 and 429.

import { createHash } from 'node:crypto';
import { z } from 'zod';
import { wallTime, type Environment } from '../../actors/ports/environment.ts';
import type { ReachChannel } from '../../actors/ports/reach-channel.ts';
import { anObject, checkUnshown } from '../../values/checks.ts';
import { ProviderError } from '../../values/errors.ts';
import { digestOf, keyOf } from './signatures.ts';

export { type WebhookRefusal, type WebhookSourceOptions } from './options.ts';
export { webhookSource, type WebhookSource } from './webhook-source.ts';

const MIN_KEY_BYTES = 16;
const REPEATABLE: ReadonlySet<number> = new Set([408, 409, 425, 429]);

const schema = z.strictObject({
  url: z.url({ protocol: /^https?$/ }),
  secret: z
    .string()
    .refine(
      (secret) => keyOf('standard', secret).length >= MIN_KEY_BYTES,
      `expected at least ${MIN_KEY_BYTES} bytes`,
    ),
  timeoutMs: z.number().positive().optional(),
  environment: anObject('an environment such as nodeEnvironment()'),
});

/**
 * Returns a channel that posts each delivery to a URL of the app as JSON: `{ type: 'delivery', timestamp, data: {
 * …item, links } }`. The posts are signed according to Standard Webhooks. The response may contain a receipt: `{
 * "receipt": "read" }`.
 * @param options `secret`: at least 16 bytes, or `whsec_` followed by base64. `timeoutMs`: the time limit for the
 *   response; 30,000 by default.
 * @throws {ConfigurationError} `INVALID_OPTION`.
 */
export function webhookChannel(options: {
  readonly url: string;
  readonly secret: string;
  readonly environment: Pick<Environment, 'clock'>;
  readonly timeoutMs?: number;
}): ReachChannel {
  checkUnshown('webhookChannel(options)', schema, options);
  const { url, secret, environment, timeoutMs } = options;
  const key = keyOf('standard', secret);
  return {
    idempotent: true,
    ...(timeoutMs !== undefined && { timeoutMs }),
    async send(item, links, signal) {
      const at = wallTime(environment.clock);
      // WEBHOOK-CHANNEL-1: a key may contain any character, but a header may not.
      const id = `msg_${createHash('sha256').update(item.key).digest('hex').slice(0, 32)}`;
      const data = { ...item, links };
      const body = JSON.stringify({
        type: 'delivery',
        timestamp: new Date(at).toISOString(),
        data,
      });
      const timestamp = String(Math.floor(at / 1000));
      const claim = { id, timestamp, signatures: [] };
      const response = await fetch(url, {
        method: 'POST',
        redirect: 'error',
        body,
        signal,
        headers: {
          'content-type': 'application/json',
          'webhook-id': id,
          'webhook-timestamp': timestamp,
          'webhook-signature': `v1,${digestOf(key, claim, Buffer.from(body)).toString('base64')}`,
        },
      });
      const { status } = response;
      if (!response.ok) {
        await response.body?.cancel();
        throw new ProviderError('WEBHOOK_REFUSED', `The webhook was answered with ${status}`, {
          retryable: status >= 500 || REPEATABLE.has(status),
        });
      }
      const answer: unknown = await response.json().catch(() => null);
      const receipt = z.looseObject({ receipt: z.enum(['delivered', 'read']) }).safeParse(answer);
      return receipt.success ? receipt.data.receipt : 'sent';
    },
  };
}
