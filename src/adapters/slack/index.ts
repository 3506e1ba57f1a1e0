// The entry `offstage/slack`: a `reach` channel that posts deliveries to Slack through a client of `@slack/web-api`.
//
// Owns:     the text of the message, and the interpretation of Slack's errors.
// Does not: speak to Slack (the package does), or receive clicks and answers.
//
// Invariants
//   SLACK-1. A delivery is sent at most once, because `chat.postMessage` recognises no repeated message. An attempt
//       whose outcome is unknown rejects with a `TimeoutError`.
//   SLACK-2. Text from users, models and tools is shown as it is: it mentions no one, forms no link, and is not
//       formatted. Slack does not open links in it.
//   SLACK-3. A message is at most as long as Slack shows whole. Its call, options and links are never cut.

import { z } from 'zod';
import {
  isUnsent,
  reachHeading,
  reachText,
  type ReachChannel,
} from '../../actors/ports/reach-channel.ts';
import { aFunction, check } from '../../values/checks.ts';
import { messageOf, ProviderError, TimeoutError } from '../../values/errors.ts';
import { isRecord } from '../../values/json.ts';

type Item = Parameters<ReachChannel['send']>[0];
type Links = Parameters<ReachChannel['send']>[1];

interface SlackOptions {
  /**
   * A client of the package `@slack/web-api`: `new WebClient(token, { retryConfig: { retries: 0 },
   * rejectRateLimitedCalls: true })`. The session repeats a failed step itself, and a client that retries could post a
   * message twice.
   */
  readonly client: { readonly chat: { postMessage(message: never): PromiseLike<unknown> } };
  /** The id of a user or a Slack channel, or a function that returns the id. */
  readonly channel: string | ((item: Item) => string | PromiseLike<string>);
  /** Writes the message as plain text, which must not be longer than 40,000 characters. @defaultValue in English */
  readonly write?: (item: Item, links: Links) => string;
  /** The time limit for sending one message, in milliseconds. @defaultValue 30000 */
  readonly timeoutMs?: number;
}

/** Slack cuts longer messages: https://docs.slack.dev/reference/methods/chat.postMessage */
const MAX_CHARS = 40_000;
const schema = z.strictObject({
  client: z.custom<SlackOptions['client']>(
    (it) => isRecord(it) && isRecord(it.chat) && typeof it.chat.postMessage === 'function',
    'expected a client of the package @slack/web-api',
  ),
  channel: z.union([z.string().min(1), aFunction]),
  write: aFunction.optional(),
  timeoutMs: z.number().positive().optional(),
});

/**
 * Returns a channel that posts to Slack. Slack does not report whether a message was read, so the receipt is `sent`.
 * @throws {ConfigurationError} `INVALID_OPTION`.
 */
export function slackChannel(options: SlackOptions): ReachChannel {
  check('slackChannel(options)', schema, options);
  const { client, channel, write, timeoutMs } = options;
  const chat: { postMessage(message: object): PromiseLike<unknown> } = client.chat;
  const post = chat.postMessage.bind(chat);
  return {
    idempotent: false,
    ...(timeoutMs !== undefined && { timeoutMs }),
    async send(item, links) {
      const whole = (text: string): string => escaped(`${reachHeading(item)}\n${text}`);
      const message = {
        channel: typeof channel === 'string' ? channel : await channel(item),
        text: write
          ? escaped(write(item, links))
          : whole(reachText(item, links, MAX_CHARS, (text) => whole(text).length)),
        // SLACK-2
        mrkdwn: false,
        parse: 'none',
        link_names: false,
        unfurl_links: false,
        unfurl_media: false,
      };
      try {
        await post(message);
      } catch (error) {
        throw refusal(error);
      }
      return 'sent';
    },
  };
}

/** https://docs.slack.dev/messaging/formatting-message-text#escaping */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** Errors after which Slack has not posted the message and may accept it later. */
const LATER = new Set(['ratelimited', 'rate_limited', 'service_unavailable']);
/** Errors after which Slack may have posted the message: https://docs.slack.dev/reference/methods/chat.postMessage#errors */
const UNKNOWN = new Set(['fatal_error', 'internal_error', 'request_timeout']);

/** Returns the error for an attempt that failed. All errors that Slack names, except those above, are final. */
function refusal(error: unknown): unknown {
  const { code, data, statusCode } = isRecord(error) ? error : {};
  const why = `Slack has not accepted the message: ${messageOf(error)}`;
  const name = isRecord(data) ? String(data.error) : '';
  const status = typeof statusCode === 'number' ? statusCode : 0;
  const isLimited = code === 'slack_webapi_rate_limited_error';
  const retryable = isLimited || LATER.has(name) || status === 429 || status === 503;
  const isNamed = retryable || (name !== '' && !UNKNOWN.has(name)) || (status > 0 && status < 500);
  if (isNamed) return new ProviderError('SLACK_REFUSED', why, { retryable, cause: error });
  // SLACK-1
  return isUnsent(error) ? error : new TimeoutError(why, { cause: error });
}
