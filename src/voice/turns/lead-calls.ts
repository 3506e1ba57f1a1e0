// The tool calls of a voice model, on their way to the session and back.
//
// Owns:     which calls the model gets an answer to at once: nothing is asked of it before.
// Does not: check, run or answer them (session).

import { intoConversation } from '../../actors/session/state/live-conversation.ts';
import type { LeadSession } from '../../actors/session/lead/lead-session.ts';

export interface MadeCall {
  readonly callId: string;
  readonly name: string;
  /** JSON text. */
  readonly arguments: string;
  /** In which the model made it, if the wire says so. */
  readonly responseId?: string;
}

export class LeadCalls {
  readonly #core: LeadSession;
  /** The response that made it, by the id of the call. */
  readonly #awaited = new Map<string, string>();

  constructor(core: LeadSession) {
    this.#core = core;
  }

  get areAwaited(): boolean {
    return this.#awaited.size > 0;
  }

  made({ callId, name, arguments: json, responseId = '' }: MadeCall): void {
    const { books, host } = this.#core;
    // One that is known is the same message again: it has its answer, or will have it.
    if (books.calls.has(callId) || books.conversation.get(callId)) return;
    this.#awaited.set(callId, responseId);
    const { requestId } = books;
    const calledAt = host.environment.clock.now();
    intoConversation(this.#core, {
      type: 'tool.called',
      callId,
      name,
      arguments: json,
      calledAt,
      requestId,
    });
  }

  /** The response that made the call. */
  responseOf(callId: string): string | undefined {
    return this.#awaited.get(callId);
  }

  /** The model has its answer, or will be told later. */
  settled(callId: string): void {
    this.#awaited.delete(callId);
  }

  /** The model does not want the result any more. */
  cancelled(callId: string): void {
    this.#awaited.delete(callId);
    this.#core.receive(`call:${callId}`, {
      type: 'call.cancel',
      reason: 'the voice model does not want the result any more',
    });
  }

  /** Whoever waited for the answers is gone. */
  reset(): void {
    this.#awaited.clear();
  }
}
