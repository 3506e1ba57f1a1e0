// The receipts of the messages to one subagent.
//
// Owns:     the messages that have no receipt yet.
// Does not: keep their words (the log does), or decide when they are read (the machine does).
//
// Keeps SUBAGENT-5 of the subagent: exactly one receipt for each message. A repeated message gets no second
// receipt while the first is outstanding.

import type { SubagentHandle, SubagentPorts } from './subagent-ports.ts';

/** A sender that outruns the model by more messages is refused. */
const MAX_UNREAD = 100;

type ReceiptPorts = Pick<SubagentPorts, 'messageApplied' | 'messageRefused'>;

export class Receipts {
  readonly #subagent: SubagentHandle;
  readonly #ports: ReceiptPorts;
  /** Ids of the unread messages. */
  readonly #unread = new Set<string>();

  constructor(subagent: SubagentHandle, ports: ReceiptPorts) {
    this.#subagent = subagent;
    this.#ports = ports;
  }

  /**
   * Expects a receipt for the message that `send` puts into the mailbox. If `send` throws, the error is
   * rethrown, and there is no receipt.
   */
  expect(messageId: string, send: () => void): void {
    if (this.#unread.has(messageId)) return;
    if (this.#unread.size >= MAX_UNREAD) {
      this.refuse([messageId], `${MAX_UNREAD} messages are unread already`);
      return;
    }
    // Before `send`: the message may be read before `send` returns.
    this.#unread.add(messageId);
    try {
      send();
    } catch (error) {
      this.#unread.delete(messageId);
      throw error;
    }
  }

  /**
   * Reports that the model call of this step reads these messages; another process may have taken some of
   * them.
   */
  applied(messageIds: readonly string[], step: number): void {
    for (const messageId of messageIds) this.#unread.delete(messageId);
    this.#ports.messageApplied(this.#subagent, messageIds, step);
  }

  refuse(messageIds: readonly string[], reason: string): void {
    if (messageIds.length > 0) this.#ports.messageRefused(this.#subagent, messageIds, reason);
  }

  /** Refuses the unread messages: no step reads them any more. */
  refuseUnread(reason: string): void {
    const unread = [...this.#unread];
    this.#unread.clear();
    this.refuse(unread, reason);
  }
}
