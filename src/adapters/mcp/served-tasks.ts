// One user's tasks. The tasks are subagents of a separate service and are stored in the user's scope of the journal.
// Each task is a subagent and has the subagent's id. This file does not depend on a protocol version.
//
// Owns:     the user's service and its open questions.
// Does not: handle clients or messages.
//
// Invariants
//   MCP-TASKS-1. A task or answer is confirmed to the client only after it has been written to the journal.
//   MCP-TASKS-2. A client cannot see the tasks of other users.
//   MCP-TASKS-3. An answer that does not match its question has no effect.

import type { Subscription } from 'rxjs';
import { propertiesOf } from '../../values/json.ts';
import type { VouchedFor } from '../../actors/contracts/identity.ts';
import type { Outcome } from '../../actors/contracts/outcome.ts';
import type { AskedQuestion } from '../../actors/contracts/records.ts';
import { THE_LEAD, type SubagentReport } from '../../actors/contracts/service-types.ts';
import {
  mayAnswer,
  wholeWords,
  type QuestionOption,
} from '../../actors/contracts/session-views.ts';
import type { SubagentTask } from '../../actors/contracts/task.ts';
import type { JournalEntry } from '../../actors/ports/journal.ts';
import { raceAbort, raceTime } from '../../values/race-abort.ts';
import { givenAnswer, type GivenAnswer } from '../../actors/subagent/ask-user.ts';
import type { ProgramAnswer } from '../../actors/subagents/program-ports.ts';
import {
  createSubagentService,
  type OwnedSubagentService,
} from '../../actors/subagents/subagent-service.ts';
import { OffstageError, ProtocolError, TimeoutError } from '../../values/errors.ts';
import { readTraceparent } from '../../values/traceparent.ts';
import type { CheckedMcp } from './options.ts';
import type { KeptEntries } from './kept-entries.ts';

/** A question that a client can answer. */
export interface TaskQuestion {
  /** Unique within its task. */
  readonly requestId: string;
  /** `input`: the subagent asks the program that started the task for text. */
  readonly kind: 'question' | 'approval' | 'input';
  readonly text: string;
  readonly options: readonly QuestionOption[];
  /** The call that needs approval. */
  readonly action?: { readonly toolName: string; readonly input: unknown };
}

/** The state of a task for clients. */
export interface TaskView {
  readonly id: string;
  /** The tool's name. */
  readonly name: string;
  readonly status: 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';
  readonly message: string | null;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Empty once the task has ended. */
  readonly questions: readonly TaskQuestion[];
  readonly outcome: Outcome | null;
}

type Meta = Readonly<Record<string, unknown>> | undefined;

interface OpenQuestion {
  readonly asked: AskedQuestion;
  answer(given: ProgramAnswer | null): void;
}

/** The maximum time to wait for the journal, after which the client receives an error. */
const KEPT_TIMEOUT_MS = 30_000;

export class UserTasks {
  /**
   * The identity that starts tasks and answers questions; null if the scope was restored from the journal and its user
   * has not connected yet.
   */
  user: string | null = null;
  readonly #options: CheckedMcp;
  readonly #kept: KeptEntries;
  readonly #service: OwnedSubagentService;
  readonly #subscription: Subscription;
  readonly #questions = new Map<string, OpenQuestion>();
  #changed = Promise.withResolvers<void>();

  constructor(scope: string, options: CheckedMcp, kept: KeptEntries) {
    this.#options = options;
    this.#kept = kept;
    const { runtime, model, configs, limits } = options;
    this.#service = createSubagentService({
      id: scope,
      runtime: { ...runtime, journal: kept.journal },
      configs,
      ...(model === undefined ? {} : { model }),
      constraints: {
        maxConcurrentPerSession: limits.tasksPerUser,
        stateRetentionMs: options.ttlMs,
      },
      onQuestion: (question, signal) => this.#asked(question, signal),
      onError: (error, where) => options.onError(error, `tasks: ${where}`),
    });
    this.#subscription = this.#service.events.subscribe(() => this.#notify());
  }

  /** Continues the tasks of an earlier process. Rejects if another process owns them. */
  async open(): Promise<void> {
    await this.#service.recover();
  }

  async close(): Promise<void> {
    this.#subscription.unsubscribe();
    await this.#service.suspend();
    this.#notify();
  }

  /** Whether any task is running. */
  get isBusy(): boolean {
    return this.#service.list(THE_LEAD).length > 0;
  }

  /**
   * Starts a task. Resolves with the task id once the task is in the journal. `meta`: the `_meta` of the request, which
   * may contain the client's trace context (SEP 414).
   * @throws {OffstageError} why the task was rejected
   */
  async start(name: string, task: SubagentTask, meta: Meta = {}): Promise<string> {
    const { configs } = this.#options;
    const config = configs[name];
    if (!config) throw new ProtocolError('NOT_FOUND', `Expected one of the tools, got "${name}"`);
    const begun = this.#kept.begin();
    const traceparent = readTraceparent(meta?.['traceparent']);
    try {
      const receipt = this.#service.spawn({
        config,
        task,
        caller: THE_LEAD,
        ...this.#by,
        ...(traceparent === undefined ? {} : { traceparent }),
      });
      if (receipt.status === 'rejected')
        throw new OffstageError(receipt.error.code, receipt.error.message);
      const { subagentId } = receipt;
      await this.#written(begun, subagentId, (entry) => entry.unit === subagentId);
      return subagentId;
    } finally {
      begun.end();
    }
  }

  /** Returns a task, or null if the task does not exist, belongs to another user, or ended more than `ttlMs` ago. */
  view(id: string): TaskView | null {
    return this.list().find((task) => task.id === id) ?? null;
  }

  /** Returns the tasks, oldest first. */
  list(): readonly TaskView[] {
    const reports = this.#service.list(THE_LEAD, { includeEnded: true });
    const now = this.#options.runtime.environment.clock.now();
    const parents = new Map(reports.map(({ id, parentId }) => [id, parentId]));
    return reports.flatMap((report) => {
      if (report.parentId !== null) return [];
      if (report.endedAt !== null && report.endedAt + this.#options.ttlMs <= now) {
        this.#service.delivered(report.id);
        return [];
      }
      return [this.#viewOf(report, parents)];
    });
  }

  /**
   * Answers a question, or records that the user does not answer it (null). Resolves once the answer is in the journal.
   * `gone`: the question is not open.
   * @throws {ProtocolError} `INVALID_ANSWER`, `NOT_ALLOWED`
   */
  async answer(
    taskId: string,
    { requestId, kind }: TaskQuestion,
    given: GivenAnswer | null,
  ): Promise<'answered' | 'gone'> {
    if (kind === 'input') return this.#sendInput(taskId, requestId, given?.text ?? null);
    const open = this.#questions.get(requestId);
    if (!open) return 'gone';
    if (!mayAnswer(open.asked, this.#by.by))
      throw new ProtocolError('NOT_ALLOWED', `Expected another user to answer ${requestId}`);
    if (given && !givenAnswer(open.asked, given))
      throw new ProtocolError('INVALID_ANSWER', `Expected an answer to ${requestId}`);
    const begun = this.#kept.begin();
    try {
      this.#questions.delete(requestId);
      open.answer(given && { ...given, ...this.#by });
      const { subagentId } = open.asked;
      await this.#written(
        begun,
        taskId,
        ({ unit, event }) =>
          unit === subagentId &&
          event.type.startsWith('question.') &&
          propertiesOf(event)['requestId'] === requestId,
      );
      this.#notify();
      return 'answered';
    } finally {
      begun.end();
    }
  }

  /** Records that a client has received the result. From then on, the result is stored for `ttlMs`. */
  returned(id: string): void {
    this.#service.delivered(id);
  }

  /** Cancels a task. Returns false if the task had already ended. */
  cancel(id: string): boolean {
    return this.#service.cancel(id, THE_LEAD, 'cancelled by the client', this.#by);
  }

  /** Resolves when the task has ended, or immediately if the task is unknown. */
  async whenEnded(id: string, signal: AbortSignal): Promise<void> {
    for (;;) {
      const changed = this.changed();
      if (this.view(id)?.outcome !== null) return;
      await raceAbort(changed, signal);
    }
  }

  /** Resolves at the next change to any task. */
  changed(): Promise<void> {
    return this.#changed.promise;
  }

  get #by(): VouchedFor {
    return this.user === null ? {} : { by: this.user };
  }

  #notify(): void {
    const { resolve } = this.#changed;
    this.#changed = Promise.withResolvers<void>();
    resolve();
  }

  #asked(asked: AskedQuestion, signal: AbortSignal): Promise<ProgramAnswer | null> {
    const { promise, resolve } = Promise.withResolvers<ProgramAnswer | null>();
    this.#questions.set(asked.requestId, { asked, answer: resolve });
    signal.addEventListener('abort', () => {
      this.#questions.delete(asked.requestId);
      resolve(null);
      this.#notify();
    });
    this.#notify();
    return promise;
  }

  async #sendInput(taskId: string, requestId: string, text: string | null) {
    const content = text ?? 'No answer: the client declined to answer.';
    const answer = { content, inResponseTo: requestId };
    const sent = this.#service.send(taskId, answer, THE_LEAD, this.#by);
    if (!sent.ok) return 'gone' as const;
    await sent.written;
    this.#notify();
    return 'answered' as const;
  }

  /** MCP-TASKS-1 */
  async #written(
    begun: ReturnType<KeptEntries['begin']>,
    taskId: string,
    isIt: (entry: JournalEntry) => boolean,
  ): Promise<void> {
    const { scheduler } = this.#options.runtime.environment;
    const over = new AbortController();
    const work = (): Promise<void> =>
      new Promise((resolve) => {
        void begun.kept(isIt).then(resolve);
        // A task that has ended may not write any further entries.
        this.whenEnded(taskId, over.signal).then(resolve, () => undefined);
      });
    const late = (): Error =>
      new TimeoutError(`Expected the journal to keep it within ${KEPT_TIMEOUT_MS} ms`);
    try {
      await raceTime(work, { timeoutMs: KEPT_TIMEOUT_MS, scheduler, late });
    } finally {
      over.abort();
    }
  }

  #viewOf(report: SubagentReport, parents: ReadonlyMap<string, string | null>): TaskView {
    const { id, name, startedAt, lastActiveAt, endedAt, outcome, progress } = report;
    const questions = outcome ? [] : this.#questionsOf(report, parents);
    const last = progress.at(-1)?.update ?? null;
    return {
      id,
      name,
      status: outcome ? statusOf(outcome) : questions.length > 0 ? 'input_required' : 'working',
      message: outcome?.error?.message ?? questions[0]?.text ?? last,
      createdAt: startedAt,
      updatedAt: endedAt ?? lastActiveAt,
      questions,
      outcome,
    };
  }

  #questionsOf(
    { id, pendingRequest }: SubagentReport,
    parents: ReadonlyMap<string, string | null>,
  ): readonly TaskQuestion[] {
    const rootOf = (subagentId: string): string => {
      let at = subagentId;
      for (let parent = parents.get(at); typeof parent === 'string'; parent = parents.get(at))
        at = parent;
      return at;
    };
    const asked = [...this.#questions.values()].flatMap(({ asked: question }) => {
      if (rootOf(question.subagentId) !== id) return [];
      const { requestId, kind, options, action } = question;
      return [{ requestId, kind, text: wholeWords(question), options, ...(action && { action }) }];
    });
    if (!pendingRequest) return asked;
    const { requestId, question, context } = pendingRequest;
    const text = context === undefined ? question : `${question}\n\n${context}`;
    return [...asked, { requestId, kind: 'input', text, options: [] }];
  }
}

function statusOf({ status }: Outcome): 'completed' | 'failed' | 'cancelled' {
  return status === 'completed' || status === 'cancelled' ? status : 'failed';
}
