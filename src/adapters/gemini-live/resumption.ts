// How a session goes on over another connection: with a handle of the server, and with
// what we have said that the handle does not know.
//
// Owns: the token, and the messages since. Does not: when a new connection is opened (the session).
//
// RESUMPTION-1. A token is offered only while nobody has said anything since the server gave its handle: a
//     session that is resumed would not know of that, and one that is replayed does.
// RESUMPTION-2. What we said since is said again, in order, in doubt twice rather than not at all. That the
//     model shall speak is not: who asked for that asks again.
// RESUMPTION-3. A handle that the server refused is not offered again, and not used.

import type { TransportEvent } from '../../voice/connection/transport.ts';
import type { ToolCalls } from './tool-calls.ts';

/** So much is said in silence at most before a handle is of no use any more. */
const MAX_MESSAGES = 256;

/** What `transport.resumable` gives. Lives in one process: what is said later counts, too. */
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

/** A token that can be used, of what a session was given. */
export function usableToken(resume: unknown): ResumeToken | null {
  return resume instanceof ResumeToken && !resume.isRefused ? resume : null;
}

/** The messages of one connection that may have to be said again. The setup has the index 0. */
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

  /** Whether the server counts its first message as 0 or 1 it does not say: one more is kept (RESUMPTION-2). */
  consumed(index: number): void {
    this.#messages = this.#messages.filter((message) => message.index >= index);
  }

  consumedAll(): void {
    this.#messages = [];
  }
}

export class Resumption {
  readonly #emit: (event: TransportEvent) => void;
  readonly #calls: ToolCalls;
  readonly #log = new MessageLog();
  #offered: ResumeToken | null = null;

  constructor(emit: (event: TransportEvent) => void, calls: ToolCalls) {
    this.#emit = emit;
    this.#calls = calls;
  }

  /** A message has gone. `lasting`: what of it is still true on another connection; sound is not. */
  sent(lasting: object | null): void {
    this.#log.sent(lasting);
    if (this.#log.isFull) this.withdraw();
  }

  /** What the server says of itself. */
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
    this.#emit({ type: 'transport.resumable', resume: this.#offered });
  }

  /** RESUMPTION-1 */
  withdraw(): void {
    this.#log.consumedAll();
    if (this.#offered === null) return;
    this.#offered = null;
    this.#emit({ type: 'transport.resumable', resume: null });
  }
}
