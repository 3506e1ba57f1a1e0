// The port of a channel that brings a delivery to a user who is gone: e-mail, a webhook, a push message.

import type { DeliveryKind, DeliveryPriority } from '../../machines/index.ts';

/** A channel that brings deliveries to a user who has no open tab: `reach.channels` of a session. */
export interface ReachChannel {
  /**
   * Whether a second `send` with the same `key` reaches the user once. If so, the session sends again after a timeout or
   * a crash, when it does not know whether the first one succeeded; otherwise the next step of the policy follows.
   */
  readonly idempotent: boolean;
  /** How long `send` may take, in milliseconds. @defaultValue 30000 */
  readonly timeoutMs?: number;
  /**
   * Sends a delivery. Resolves with what is known then: `sent` (accepted for sending), `delivered` (at the user's device)
   * or `read` (the user has seen it, which counts as heard). Rejects if it was not sent: then it is tried again after one
   * minute and after five, but not after a `ProviderError` that is not `retryable`. Rejects with a `TimeoutError` if it may
   * have been sent.
   * @param links Addresses at which the user can answer. Empty in this version.
   * @param signal Aborts at the timeout, and when the user has heard the delivery meanwhile.
   */
  send(
    item: {
      /** The same for each attempt of a step, and unique: an idempotency key. `session.reached(key, receipt)` takes it. */
      readonly key: string;
      readonly sessionId: string;
      /** The identity of the session's user. */
      readonly user?: string;
      readonly deliveryId: string;
      readonly kind: DeliveryKind;
      readonly priority: DeliveryPriority;
      /** The heading, such as the name of the tool. */
      readonly label: string;
      /** The text of users, models and tools, at most 20,000 characters. */
      readonly text: string;
      /** The answers from which the user may choose. Absent if the delivery is not such a question. */
      readonly options?: readonly { readonly id: string; readonly label: string }[];
      /** The exact call for which an approval asks. Absent if the delivery is not an approval. */
      readonly call?: { readonly toolName: string; readonly input: unknown };
    },
    links: readonly { readonly label: string; readonly url: string }[],
    signal: AbortSignal,
  ): PromiseLike<'sent' | 'delivered' | 'read'>;
}
