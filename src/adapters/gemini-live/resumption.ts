// Resumes a session on another connection. It uses a handle from the server, and the messages that the handle does not
// cover.
//
// Owns:     the resumption token, and the messages sent since it was issued. It does not decide when to open a new
//           connection (the session does).
//
// RESUMPTION-1. A token is offered only if the model has not spoken since the server issued the handle. A resumed
//     session would lack that speech, whereas a replay includes it.
// RESUMPTION-2. Messages that were sent after the handle was issued are sent again, in order. A message that is
//     received twice does less harm than a message that is lost. Response requests are not sent again, because the
//     session itself repeats them.
// RESUMPTION-3. A handle that the server has rejected is neither offered nor used again.

import type { WireConnection } from '../socket/wire.ts';
import type { ToolCalls } from './tool-calls.ts';

/** The maximum number of messages since the handle was issued. If there are more, the handle is discarded. */
const MAX_MESSAGES = 256;

/**
 * The value of `transport.resumable`. It is valid only in this process, because it refers to messages that are sent
 * later.
 */
export class ResumeToken {
  readonly handle: string;
  readonly calls: ToolCalls;
  readonly #log: MessageLog;
  isRefused = false;

  constructor(handle: string, calls: ToolCalls, log: MessageLog) {
    this.handle = handle;
    this.calls = calls;
    this.#log = log;
  }

  get unconsumed(): readonly object[] {
    return this.#log.unconsumed;
  }
}

/** Returns the value to resume from if it is a usable token, otherwise null. */
export function usableToken(resume: unknown): ResumeToken | null {
  return resume instanceof ResumeToken && !resume.isRefused ? resume : null;
}

/** The messages of one connection that may have to be sent again. The setup has index 0. */
class MessageLog {
  #lastIndex = 0;
  #messages: { readonly index: number; readonly lasting: object }[] = [];

  get unconsumed(): readonly object[] {
    return this.#messages.map(({ lasting }) => lasting);
  }

  get isFull(): boolean {
    return this.#messages.length > MAX_MESSAGES;
  }

  sent(lasting: object | null): void {
    this.#lastIndex += 1;
    if (lasting !== null) this.#messages.push({ index: this.#lastIndex, lasting });
  }

  /**
   * Drops the messages before this index. The server does not document whether it counts from 0 or 1, so one extra
   * message is stored (RESUMPTION-2).
   */
  consumed(index: number): void {
    this.#messages = this.#messages.filter((message) => message.index >= index);
  }

  consumedAll(): void {
    this.#messages = [];
  }
}

export class Resumption {
  readonly #connection: WireConnection;
  readonly #calls: ToolCalls;
  readonly #log = new MessageLog();
  #offered: ResumeToken | null = null;

  constructor(connection: WireConnection, calls: ToolCalls) {
    this.#connection = connection;
    this.#calls = calls;
  }

  /**
   * Sends a message. `lasting`: the part of the message that a resumed session needs if the server has not processed
   * it.
   */
  send(message: object, lasting: object | null): void {
    this.sent(lasting);
    this.#connection.send(JSON.stringify(message));
  }

  /** Records a message that was sent. `lasting`: the part that remains valid on another connection (audio does not). */
  sent(lasting: object | null): void {
    this.#log.sent(lasting);
    if (this.#log.isFull) this.withdraw();
  }

  /** Handles the server's resumption updates. */
  updated(update: {
    readonly newHandle?: string | null;
    readonly resumable?: boolean | null;
    readonly lastConsumedClientMessageIndex?: string | number | null;
  }): void {
    const { newHandle: handle, resumable, lastConsumedClientMessageIndex: index } = update;
    if (!resumable || !handle) {
      this.withdraw();
      return;
    }
    if (index === null || index === undefined) this.#log.consumedAll();
    else this.#log.consumed(Number(index));
    this.#offered = new ResumeToken(handle, this.#calls, this.#log);
    this.#connection.emit({ type: 'transport.resumable', resume: this.#offered });
  }

  /** Handles an event that the offered token does not cover (RESUMPTION-1). */
  withdraw(): void {
    this.#log.consumedAll();
    if (this.#offered === null) return;
    this.#offered = null;
    this.#connection.emit({ type: 'transport.resumable', resume: null });
  }
}
