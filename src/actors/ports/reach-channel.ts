// The port of a channel that brings a delivery to an absent user: e-mail, a webhook, a push message. Also writes the
// plain text that most channels send.

import type { DeliveryKind, DeliveryPriority } from '../../machines/index.ts';
import { clip } from '../../values/clip.ts';
import { ProviderError } from '../../values/errors.ts';
import { isRecord } from '../../values/json.ts';

/** A channel that brings deliveries to a user who has no open tab: `reach.channels` of a session. */
export interface ReachChannel {
  /**
   * Whether the user receives only one message if `send` is called twice with the same `key`. If so, the session calls
   * `send` again when it does not know whether the first call succeeded, as after a timeout or a crash. Otherwise, the
   * next step of the policy follows.
   */
  readonly idempotent: boolean;
  /** The time limit of `send`, in milliseconds. @defaultValue 30000 */
  readonly timeoutMs?: number;
  /**
   * Sends a delivery. Resolves with the delivery's state at that time: `sent` (accepted for sending), `delivered` (it
   * has arrived on the user's device) or `read` (the user has seen it, which counts as heard). Rejects if the delivery
   * was not sent: the session then tries again after one minute and after five minutes, unless the error is a
   * `ProviderError` that is not `retryable`. Rejects with a `TimeoutError` if the delivery may have been sent.
   * @param links Addresses at which a person can answer a question or an approval (`answerLinks`). Empty if there are
   *   none.
   * @param signal Aborts when the timeout expires, or when the user has heard the delivery in the meantime.
   */
  send(
    item: {
      /**
       * An idempotency key: unique, but the same for each attempt of a step. Pass it to `session.reached(key, receipt)`
       * to report what became of the delivery.
       */
      readonly key: string;
      readonly sessionId: string;
      /** The identity of the session's user. */
      readonly user?: string;
      readonly deliveryId: string;
      readonly kind: DeliveryKind;
      readonly priority: DeliveryPriority;
      /** The heading, such as the name of the tool. */
      readonly label: string;
      /** The content, written by users, models and tools; at most 20,000 characters. */
      readonly text: string;
      /**
       * The options from which the user may choose an answer. Absent if the delivery is not a question with options.
       */
      readonly options?: readonly { readonly id: string; readonly label: string }[];
      /** The exact call that an approval covers. Absent if the delivery is not an approval. */
      readonly call?: { readonly toolName: string; readonly input: unknown };
      /** The identities that may answer the question; absent if any identity may. */
      readonly answerableBy?: readonly string[];
    },
    links: readonly { readonly label: string; readonly url: string }[],
    signal: AbortSignal,
  ): PromiseLike<'sent' | 'delivered' | 'read'>;
}

type Item = Parameters<ReachChannel['send']>[0];

const MAX_HEADING_CHARS = 150;
const KINDS = { result: 'Result', question: 'Question', notice: 'News', progress: 'Progress' };

/** Returns the heading of a delivery's message, in English, as one line without control characters. */
export function reachHeading({ kind, label }: Pick<Item, 'kind' | 'label'>): string {
  return oneLine(`${KINDS[kind]}: ${label}`);
}

/** Returns one line without control characters. */
export function oneLine(text: string): string {
  return clip(text.replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, ' ').trim(), MAX_HEADING_CHARS);
}

/**
 * Returns a delivery's message in English: the text, the exact call, the options and the links. If the message would be
 * larger than `max`, the text is cut, but never the call, the options or the links.
 * @param sizeOf Returns the size of a message that the channel would send. @defaultValue the number of characters
 * @throws {ProviderError} `MESSAGE_TOO_LONG` (not retryable) if the message is too large even without the text.
 */
export function reachText(
  { text, options = [], call }: Item,
  links: Parameters<ReachChannel['send']>[1],
  max = Number.POSITIVE_INFINITY,
  sizeOf = (message: string): number => message.length,
): string {
  const rest = [
    ...(call ? [`The exact call: ${call.toolName} ${JSON.stringify(call.input, null, 2)}`] : []),
    ...(options.length > 0 ? [options.map((option) => `- ${option.label}`).join('\n')] : []),
    ...links.map(({ label, url }) => `${label}: ${url}`),
  ];
  const message = (chars: number): string => [clip(text, chars), ...rest].join('\n\n');
  const fits = (chars: number): boolean => sizeOf(message(chars)) <= max;
  if (fits(text.length)) return message(text.length);
  let [kept, tooMany] = [0, text.length];
  while (tooMany - kept > 1) {
    const middle = Math.floor((kept + tooMany) / 2);
    if (fits(middle)) kept = middle;
    else tooMany = middle;
  }
  if (fits(kept)) return message(kept);
  throw new ProviderError(
    'MESSAGE_TOO_LONG',
    `Expected a message that the channel can send whole, got more than ${max} of call, options and links`,
  );
}

const UNSENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);

/** Returns whether an error says that no connection was opened, so that nothing can have been sent. */
export function isUnsent(error: unknown): boolean {
  if (!isRecord(error)) return false;
  return UNSENT.has(String(error.code)) || isUnsent(error.cause ?? error.original);
}
