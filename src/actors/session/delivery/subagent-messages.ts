// What subagents report, as typed messages on two topics, for whoever builds on them: logs,
// other sessions, a queue. What the user hears and sees of it is the session's business.

import { Subject, type Observable } from 'rxjs';
import type { LedgerEntry, Outcome } from '../../contracts/outcome.ts';

interface SubagentMessage {
  /** The subagent. */
  readonly taskId: string;
  /** Where it works: the namespace of its working memory, `subagent/<id>`. */
  readonly subagentSessionId: string;
  /** The session that it works for. */
  readonly primarySessionId: string;
  /** Milliseconds since 1970. */
  readonly timestamp: number;
}

/** On `subagent.progress`: a subagent says how far it is. */
export interface SubagentProgressMessage extends SubagentMessage {
  readonly message: string;
  /** 0 to 100; null: it did not say. */
  readonly percent: number | null;
}

/** On `subagent.result`: a subagent has ended, however. Once for each. */
export interface SubagentResultMessage extends SubagentMessage {
  /** The result; what there was of it when it did not complete. */
  readonly output: string;
  readonly isSuccess: boolean;
  /** Why it did not complete. */
  readonly error: string | null;
  /** How it ended: `cancelled` and `timed_out` are no failures of its own. */
  readonly status: Outcome['status'];
  /** The batch with which its result is told; null: by itself, or to nobody. */
  readonly batchId: string | null;
  /** It is told together with its siblings. */
  readonly consolidate: boolean;
  /** What the user had said when the lead agent began it, or the one above it; null: nobody asked. */
  readonly originatingUserRequest: string | null;
  /** What it was to do. */
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
