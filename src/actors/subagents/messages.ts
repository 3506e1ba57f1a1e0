// Messages to subagents that run: each has a receipt.
//
// Owns:     receipts that are still owed, and who waits for a message to be in the journal.
// Does not: know when a message is read (the subagent's machine does).
//
// Invariants
//   MESSAGES-1. Every receipt settles once: applied, at the step that reads the message, or refused, and no
//       later than all of it leaves this process.
//   MESSAGES-2. A message with a key has its id from that and from whom it is for: the same again is the same
//       message, and is delivered once, by however many processes it is sent.
//   MESSAGES-3. Whoever waits for a message to be written does not wait longer than it can be here.

import type { MessageMode } from '../../machines/index.ts';
import { messageOf } from '../../values/errors.ts';
import type { Ids } from '../ports/environment.ts';
import type { SubagentRecord } from './family.ts';
import type { MessageReceipt } from '../contracts/service-types.ts';

const away: MessageReceipt = {
  applied: false,
  reason:
    'SUSPENDED: it goes on at another time or in another process, and reads there what was written before',
};

export class Messages {
  readonly #ids: Ids;
  readonly #owed = new Map<string, Owed>();
  readonly #writing = new Map<string, Writing>();
  #isStopped = false;

  constructor(ids: Ids) {
    this.#ids = ids;
  }

  /** All of it has left this process. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** MESSAGES-2. Of a message to this one: the same key to somebody else is another message. */
  idOf({ id }: SubagentRecord, key: string | undefined): string {
    return key === undefined ? this.#ids.next('msg') : `msg_${id}_${key}`;
  }

  /** The same message again, while it is being sent, has the receipt of the first. */
  send(
    record: SubagentRecord,
    messageId: string,
    content: string,
    mode: MessageMode,
    by?: string,
  ): Promise<MessageReceipt> {
    const known = this.#owed.get(messageId);
    if (known) return known.receipt;
    if (this.#isStopped) return Promise.resolve(away);
    const { promise: receipt, resolve: settle } = Promise.withResolvers<MessageReceipt>();
    this.#owed.set(messageId, { receipt, settle });
    try {
      record.subagent?.message(messageId, content, mode, by);
    } catch (error) {
      this.settle([messageId], { applied: false, reason: messageOf(error) });
    }
    return receipt;
  }

  settle(messageIds: readonly string[], receipt: MessageReceipt): void {
    for (const messageId of messageIds) {
      this.#owed.get(messageId)?.settle(receipt);
      this.#owed.delete(messageId);
      this.taken(messageId);
    }
  }

  /** Resolves when what is sent next is in the journal, or never will be. */
  written({ id }: SubagentRecord, messageId: string): Promise<void> {
    const known = this.#writing.get(messageId);
    if (known) return known.written;
    if (this.#isStopped) return Promise.resolve();
    const { promise: written, resolve } = Promise.withResolvers<void>();
    this.#writing.set(messageId, { subagentId: id, written, resolve });
    return written;
  }

  /** It was sent, and is not in the journal yet. */
  isOnItsWay(messageId: string): boolean {
    return this.#writing.has(messageId);
  }

  /** It is in the journal, or came too late for it. */
  taken(messageId: string): void {
    this.#writing.get(messageId)?.resolve();
    this.#writing.delete(messageId);
  }

  /** Nobody takes what was sent to it. */
  ended({ id }: SubagentRecord): void {
    for (const [messageId, { subagentId }] of this.#writing)
      if (subagentId === id) this.taken(messageId);
  }

  /** Nothing is read here any more, and what is not in the journal by now is not written here. */
  stop(): void {
    this.#isStopped = true;
    for (const messageId of this.#writing.keys()) this.taken(messageId);
    this.settle([...this.#owed.keys()], away);
  }
}

interface Owed {
  readonly receipt: Promise<MessageReceipt>;
  readonly settle: (receipt: MessageReceipt) => void;
}

interface Writing {
  readonly subagentId: string;
  readonly written: Promise<void>;
  readonly resolve: () => void;
}
