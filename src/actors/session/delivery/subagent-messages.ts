// The reports of subagents as typed messages on two topics, for other consumers: logs, other sessions, a
// queue. The session itself presents them to the user.

import { Subject, type Observable } from 'rxjs';
import type { LedgerEntry, Outcome } from '../../contracts/outcome.ts';

interface SubagentMessage {
  /** Id of the subagent. */
  readonly taskId: string;
  /** The namespace of its working memory, `subagent/<id>`. */
  readonly subagentSessionId: string;
  /** Id of the session that it works for. */
  readonly primarySessionId: string;
  /** Milliseconds since 1970. */
  readonly timestamp: number;
}

/** On `subagent.progress`: a progress report of a subagent. */
export interface SubagentProgressMessage extends SubagentMessage {
  readonly message: string;
  /** 0 to 100; null: not reported. */
  readonly percent: number | null;
}

/** On `subagent.result`: the end of a subagent, successful or not. Once for each. */
export interface SubagentResultMessage extends SubagentMessage {
  /** The result, or the partial result of a subagent that did not complete. */
  readonly output: string;
  readonly isSuccess: boolean;
  /** The reason why it did not complete. */
  readonly error: string | null;
  /** The status of its end: `cancelled` and `timed_out` are no failures of its own. */
  readonly status: Outcome['status'];
  /** The batch with which its result is told; null: the result is told by itself, or not at all. */
  readonly batchId: string | null;
  /** True if it is told together with its siblings. */
  readonly consolidate: boolean;
  /** The words of the user when the lead agent began it, or its ancestor; null: no user asked. */
  readonly originatingUserRequest: string | null;
  /** The description of its task. */
  readonly description: string;
  readonly toolCalls: readonly LedgerEntry[];
  readonly toolCallCount: number;
}

export interface SubagentTopics {
  readonly 'subagent.progress': SubagentProgressMessage;
  readonly 'subagent.result': SubagentResultMessage;
}

export const SUBAGENT_TOPICS = ['subagent.progress', 'subagent.result'] as const;

export class TopicBook {
  readonly #progress = new Subject<SubagentProgressMessage>();
  readonly #result = new Subject<SubagentResultMessage>();

  /** Hot; completes with the session. */
  topic<T extends keyof SubagentTopics>(name: T): Observable<SubagentTopics[T]> {
    const subject = name === 'subagent.progress' ? this.#progress : this.#result;
    return subject.asObservable() as Observable<unknown> as Observable<SubagentTopics[T]>;
  }

  progressed(message: SubagentProgressMessage): void {
    this.#progress.next(message);
  }

  ended(message: SubagentResultMessage): void {
    this.#result.next(message);
  }

  complete(): void {
    this.#progress.complete();
    this.#result.complete();
  }
}
