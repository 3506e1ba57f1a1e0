// The open requests of subagents to the agents that gave them their tasks.
//
// Owns:     open requests, one for each asking subagent, and their time.
// Does not: find an answerer.
//
// Invariants
//   SUBAGENTS-REQUESTS-1. A request is settled once: answered, expired or withdrawn; the asker is told how.
//   SUBAGENTS-REQUESTS-2. A request that is put again, because it was open in a process that is gone, keeps
//       its time.

import type { Environment } from '../ports/environment.ts';
import type { OpenRequest, SubagentRecord } from './subagent-registry.ts';
import type { AskedInput } from '../contracts/task.ts';

export type RequestEnd = 'answered' | 'expired' | 'withdrawn';

export interface RequestsOptions {
  readonly environment: Environment;
  readonly defaultTimeoutMs: number;
  settled(record: SubagentRecord, requestId: string, how: RequestEnd): void;
}

export class Requests {
  readonly #options: RequestsOptions;
  readonly #asking = new Set<SubagentRecord>();

  constructor(options: RequestsOptions) {
    this.#options = options;
  }

  /** The subagents with an open request. */
  get asking(): readonly SubagentRecord[] {
    return [...this.#asking];
  }

  open(record: SubagentRecord, asked: AskedInput, isHandled: boolean): OpenRequest {
    const { environment, defaultTimeoutMs } = this.#options;
    const { requestId, question, context, timeoutMs = defaultTimeoutMs } = asked;
    const now = environment.clock.now();
    const known = record.asked?.requestId === requestId ? record.asked : null;
    const { askedAt = now, isTold = false } = known ?? {};
    const dueAt = askedAt + timeoutMs;
    record.asked = null;
    this.withdraw(record);
    const request: OpenRequest = {
      requestId,
      question,
      ...(context === undefined ? {} : { context }),
      askedAt,
      dueAt,
      stopClock: environment.scheduler.schedule(
        () => this.#expire(record, requestId),
        Math.max(0, dueAt - now),
      ),
      isTold,
      isHandled,
    };
    record.request = request;
    this.#asking.add(record);
    return request;
  }

  /** Answers a request; false if it is not open. `messageId`: the message that carries the answer. */
  answer(
    record: SubagentRecord,
    requestId: string,
    content: string,
    { messageId, by }: { readonly messageId?: string; readonly by?: string | undefined } = {},
  ): boolean {
    if (record.request?.requestId !== requestId) return false;
    this.#close(record, 'answered');
    const answer = { userResponse: content, ...(by === undefined ? {} : { by }) };
    record.subagent?.receive({
      type: 'question.answered',
      requestId,
      answer,
      ...(messageId === undefined ? {} : { messageId }),
    });
    return true;
  }

  /** Withdraws a request that the asker gave up, or whose asker has ended. */
  withdraw(record: SubagentRecord): void {
    if (record.request) this.#close(record, 'withdrawn');
  }

  /** Settles a request that will get no answer. */
  dismiss(record: SubagentRecord): void {
    const { request } = record;
    if (!request) return;
    this.#close(record, 'withdrawn');
    const { requestId } = request;
    record.subagent?.receive({ type: 'question.withdrawn', requestId, reason: 'not answered' });
  }

  /** Stops the clocks: another process, or a later one, continues the requests. */
  stop(): void {
    for (const { request } of this.#asking) request?.stopClock();
  }

  #expire(record: SubagentRecord, requestId: string): void {
    if (record.request?.requestId !== requestId) return;
    this.#close(record, 'expired');
    record.subagent?.receive({ type: 'question.expired', requestId });
  }

  #close(record: SubagentRecord, how: RequestEnd): void {
    const { request } = record;
    if (!request) return;
    request.stopClock();
    record.request = null;
    this.#asking.delete(record);
    this.#options.settled(record, request.requestId, how);
  }
}
