// Messages to subagents that run: each has a receipt.
//
// Owns:     receipts that are still owed.
// Does not: know when a message is read (the subagent's machine does).
//
// Invariants
//   R1. Every receipt settles once: applied, at the step that reads the message, or refused.

import type { MessageMode } from '../../machines/index.ts';
import { messageOf } from '../../errors.ts';
import type { Ids } from '../ports/environment.ts';
import type { SubagentRecord } from './family.ts';
import type { MessageReceipt } from './service-types.ts';

export class Messages {
  readonly #ids: Ids;
  readonly #owed = new Map<string, (receipt: MessageReceipt) => void>();

  constructor(ids: Ids) {
    this.#ids = ids;
  }

  /** `sending` learns of the id before anything can become of the message. */
  send(
    record: SubagentRecord,
    content: string,
    mode: MessageMode,
    sending?: (messageId: string) => void,
  ): { readonly messageId: string; readonly receipt: Promise<MessageReceipt> } {
    const messageId = this.#ids.next('msg');
    sending?.(messageId);
    const receipt = new Promise<MessageReceipt>((resolve) => {
      this.#owed.set(messageId, resolve);
    });
    try {
      record.subagent?.message(messageId, content, mode);
    } catch (error) {
      this.settle([messageId], { applied: false, reason: messageOf(error) });
    }
    return { messageId, receipt };
  }

  settle(messageIds: readonly string[], receipt: MessageReceipt): void {
    for (const messageId of messageIds) {
      this.#owed.get(messageId)?.(receipt);
      this.#owed.delete(messageId);
    }
  }
}
