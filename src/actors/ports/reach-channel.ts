// The port of a channel that brings a delivery to an absent user: e-mail, a webhook, a push message.

import type { DeliveryKind, DeliveryPriority } from '../../machines/index.ts';

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
   * @param links Addresses at which the user can answer. Always empty in this version.
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
    },
    links: readonly { readonly label: string; readonly url: string }[],
    signal: AbortSignal,
  ): PromiseLike<'sent' | 'delivered' | 'read'>;
}
