// The receipts of the messages to one subagent.
//
// Owns:     which messages have no receipt yet.
// Does not: keep their words (the log does), or decide when they are read (the machine does).
//
// It keeps SUBAGENT-5 of the subagent: exactly one receipt for each message. The same message again has no
// second one while the first is coming.

import type { SubagentFace, SubagentPorts } from './subagent-ports.ts';

/** Who sends faster than the model reads is told so. */
const MAX_UNREAD = 100;

type ReceiptPorts = Pick<SubagentPorts, 'messageApplied' | 'messageRefused'>;

export class Receipts {
  readonly #subagent: SubagentFace;
  readonly #ports: ReceiptPorts;
  /** By their ids. */
  readonly #unread = new Set<string>();

  constructor(subagent: SubagentFace, ports: ReceiptPorts) {
    this.#subagent = subagent;
    this.#ports = ports;
  }

  /** `send` puts it into the mailbox; what that throws is thrown on, and there is no receipt. */
  expect(messageId: string, send: () => void): void {
    if (this.#unread.has(messageId)) return;
    if (this.#unread.size >= MAX_UNREAD) {
      this.refuse([messageId], `${MAX_UNREAD} messages are unread already`);
      return;
    }
    // First: it may be read before `send` returns.
    this.#unread.add(messageId);
    try {
      send();
    } catch (error) {
      this.#unread.delete(messageId);
      throw error;
    }
  }

  /** The model call of this step reads these; another process may have taken them. */
  applied(messageIds: readonly string[], step: number): void {
    for (const messageId of messageIds) this.#unread.delete(messageId);
    this.#ports.messageApplied(this.#subagent, messageIds, step);
  }

  refuse(messageIds: readonly string[], reason: string): void {
    if (messageIds.length > 0) this.#ports.messageRefused(this.#subagent, messageIds, reason);
  }

  /** Nothing is read any more. */
  refuseUnread(reason: string): void {
    const unread = [...this.#unread];
    this.#unread.clear();
    this.refuse(unread, reason);
  }
}
