// The tool calls of a voice model, on their way to the session and back.
//
// Owns:     the calls whose results the model gets at once; until then it receives no request.
// Does not: check, run or answer calls (session).

import { intoConversation } from '../../actors/session/state/live-conversation.ts';
import type { LeadSession } from '../../actors/session/lead/lead-session.ts';

export interface MadeCall {
  readonly callId: string;
  readonly name: string;
  /** JSON text. */
  readonly arguments: string;
  /** The response in which the model made the call, if the transport reports it. */
  readonly responseId?: string;
}

export class LeadCalls {
  readonly #core: LeadSession;
  /** The response that made each awaited call, by call id. */
  readonly #awaited = new Map<string, string>();

  constructor(core: LeadSession) {
    this.#core = core;
  }

  get areAwaited(): boolean {
    return this.#awaited.size > 0;
  }

  made({ callId, name, arguments: json, responseId = '' }: MadeCall): void {
    const { records, host } = this.#core;
    // A known call id is a repetition: the call has its answer, or will have it.
    if (records.calls.has(callId) || records.conversation.get(callId)) return;
    this.#awaited.set(callId, responseId);
    const { utteranceId: requestId } = records;
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

  /** Returns the response that made the call. */
  responseOf(callId: string): string | undefined {
    return this.#awaited.get(callId);
  }

  /** Records that the call has its result, or gets it later. */
  settled(callId: string): void {
    this.#awaited.delete(callId);
  }

  /** Records that the model no longer wants the result. */
  cancelled(callId: string): void {
    this.#awaited.delete(callId);
    this.#core.receive(`call:${callId}`, {
      type: 'call.cancel',
      reason: 'the voice model does not want the result any more',
    });
  }

  /** Forgets the awaited calls when the connection or its agent is gone. */
  reset(): void {
    this.#awaited.clear();
  }
}
