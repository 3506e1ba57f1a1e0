// Rules for the tasks of an external agent, on top of any relay: concurrency, order, continued conversations, costs and
// empty answers. A manager is itself a relay: `defineSubagent({ relay: tasks.relay })`.
//
// Owns:     the threads (conversations that later tasks continue), and the usage of each task.
// Does not: write to the journal. After a restart, subagents resume their sessions, but threads between tasks are lost.
//
// Invariants
//   TASK-MANAGER-1. A thread belongs to one session: no task of another session sees the conversation or the folder.
//   TASK-MANAGER-2. Only a completed task creates or renews a thread. A failed or cancelled task leaves threads
//       unchanged.
//   TASK-MANAGER-3. A task's slot and locks are freed after its agent has been released.

import type { Clock } from '../actors/ports/environment.ts';
import type {
  Relay,
  RelayRelease,
  RelaySession,
  RelayStart,
  RelayTask,
} from '../actors/ports/relay.ts';
import { nodeEnvironment } from '../adapters/node/environment.ts';
import { check } from '../values/checks.ts';
import { ConfigurationError } from '../values/errors.ts';
import { ManagedSession, readSessionId, type Target, type Used } from './managed-session.ts';
import {
  managerOptionsSchema,
  planSchema,
  type TaskManagerOptions,
  type TaskPlan,
} from './task-options.ts';
import { TaskQueue } from './task-queue.ts';

/** A conversation that the next task of its topic continues. */
export interface TaskThread {
  /** The thread's topic. */
  readonly topic: string;
  /** The last session that the agent completed. */
  readonly sessionId: string;
  /** The number of tasks in the thread. */
  readonly tasks: number;
}

/** The current tasks of a manager. */
export interface TaskStats {
  /** The number of running tasks. */
  readonly running: number;
  /** The number of waiting tasks. */
  readonly waiting: number;
  /** The threads and their tasks. */
  readonly threads: readonly TaskThread[];
}

/** A relay that runs another relay's tasks under rules: topics, locks, limits and queues. */
export interface TaskManager {
  /** Pass it to `defineSubagent({ relay })`. */
  readonly relay: Relay;
  /** Returns the numbers of current tasks. */
  stats(): TaskStats;
}

/** A thread and its location. */
interface Thread extends TaskThread {
  readonly scope: object;
  readonly relay: Relay;
  /** The id under which the relay stores the folder. */
  readonly owner: string;
}

const MAX_TASKS = 10_000;

/**
 * Creates a task manager.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
export function taskManager(options: TaskManagerOptions): TaskManager {
  check('taskManager(options)', managerOptionsSchema, options);
  return new Manager(options);
}

class Manager implements TaskManager {
  readonly relay: Relay;
  readonly options: TaskManagerOptions;
  readonly clock: Clock;
  readonly #queue: TaskQueue;
  /** Ordered by last use, from old to new. */
  #threads: Thread[] = [];
  readonly #expiries = new Map<Thread, () => void>();
  readonly #used = new Map<string, Used>();
  /** The number of each session. */
  readonly #scopes = new WeakMap<object, number>();
  #scopeCount = 0;
  readonly #latestTopics = new WeakMap<object, string>();

  constructor(options: TaskManagerOptions) {
    const { name, capabilities, loop } = options.relay;
    this.options = options;
    this.clock = options.clock ?? nodeEnvironment().clock;
    this.#queue = new TaskQueue(options.maxRunning ?? 10);
    this.relay = {
      name,
      capabilities,
      loop,
      start: (start) => this.#start(start),
      discard: (subagentId) => this.#discard(subagentId),
    };
  }

  stats(): TaskStats {
    return {
      running: this.#queue.running,
      waiting: this.#queue.waiting,
      threads: this.#threads.map(({ topic, sessionId, tasks }) => ({ topic, sessionId, tasks })),
    };
  }

  async #start(start: RelayStart): Promise<RelaySession> {
    const { task, signal, scheduler, subagentId } = start;
    const plan = this.#planOf(task);
    const { writes = [], relay = this.options.relay } = plan;
    const topic = task === undefined ? null : (plan.topic ?? null);
    if (task && topic !== null) this.#latestTopics.set(task.scope, topic);
    const giveBack = await this.#queue.acquire(
      { topic: topic === null ? null : this.#keyOf(task?.scope, topic), writes },
      {
        signal,
        scheduler,
        timeoutMs: this.options.queueTimeoutMs,
        waits: (before) =>
          start.receive({ type: 'progress', text: `It waits for its turn: ${before} before it` }),
      },
    );
    try {
      const thread = this.#threadOf(task?.scope, topic, relay);
      const used = this.#usedBy(subagentId, relay);
      const session = new ManagedSession({
        ...this.options,
        caps: plan.caps ?? this.options.caps ?? {},
        clock: this.clock,
        start,
        used,
        release: (inner, how) =>
          this.#release({ inner, ...how, start, used, topic, thread, relay }).finally(giveBack),
      });
      await session.open(relay, this.#targetOf(start, thread, used));
      return session;
    } catch (error) {
      giveBack();
      throw error;
    }
  }

  #planOf(task: RelayTask | undefined): TaskPlan {
    const { plan, relay } = this.options;
    if (!plan || task === undefined) return {};
    const given = check(
      'taskManager({ plan }) returned',
      planSchema,
      plan(task, this.#latestTopics.get(task.scope)),
    ) as TaskPlan;
    const { capabilities } = relay;
    const other = given.relay?.capabilities ?? capabilities;
    const differs = Object.entries(capabilities).find(
      ([name, value]) => other[name as keyof typeof other] !== value,
    );
    if (differs)
      throw new ConfigurationError(
        'INVALID_OPTION',
        `taskManager({ plan }) returned: expected a relay whose capability \`${differs[0]}\` is ${String(differs[1])}, as that of the manager's relay`,
      );
    return given;
  }

  /** TASK-MANAGER-1 */
  #keyOf(scope: object | undefined, topic: string): string {
    if (!scope) return topic;
    let number = this.#scopes.get(scope);
    if (number === undefined) this.#scopes.set(scope, (number = this.#scopeCount += 1));
    return `${number} ${topic}`;
  }

  #threadOf(scope: object | undefined, topic: string | null, relay: Relay): Thread | null {
    const found = this.#threads.find(
      (one) => one.scope === scope && one.topic === topic && one.relay === relay,
    );
    if (!found) return null;
    this.#forget(found);
    return found;
  }

  #usedBy(subagentId: string, relay: Relay): Used {
    const used = this.#used.get(subagentId) ?? {
      timeMs: 0,
      tokens: 0,
      cost: 0,
      relay,
      owner: subagentId,
    };
    this.#used.set(subagentId, used);
    if (this.#used.size > MAX_TASKS) {
      const [oldest = ''] = this.#used.keys();
      this.#used.delete(oldest);
    }
    return used;
  }

  /** Returns where a task starts: in its previous session, in the session of its thread, or in a new one. */
  #targetOf({ resume, subagentId }: RelayStart, thread: Thread | null, used: Used): Target {
    if (resume !== undefined) {
      const known = readSessionId(resume);
      used.owner = known.owner ?? subagentId;
      return { owner: used.owner, resume: known.sessionId, fresh: null };
    }
    used.owner = thread?.owner ?? subagentId;
    return thread
      ? { owner: thread.owner, resume: thread.sessionId, fresh: subagentId }
      : { owner: subagentId, resume: undefined, fresh: null };
  }

  /** TASK-MANAGER-2 */
  async #release(given: Released): Promise<RelayRelease> {
    const { inner, why, completed, start, used, topic, thread, relay } = given;
    const { task, subagentId, scheduler } = start;
    // A suspended task resumes, and its usage is kept.
    if (why === 'ended') this.#used.delete(subagentId);
    const isReusable = completed || used.owner !== subagentId;
    if (why === 'suspended' || task === undefined || topic === null || !isReusable)
      return inner.release(why);
    const how = await inner.release('suspended');
    this.#keep(
      {
        topic,
        sessionId: inner.id,
        tasks: (thread?.tasks ?? 0) + (completed ? 1 : 0),
        scope: task.scope,
        relay,
        owner: used.owner,
      },
      start,
      scheduler,
    );
    return how;
  }

  #keep(thread: Thread, { report }: RelayStart, scheduler: RelayStart['scheduler']): void {
    const { threadTtlMs = 600_000, maxThreads = 100 } = this.options;
    this.#threads.push(thread);
    const giveUp = async (given: Thread): Promise<void> => {
      this.#forget(given);
      if (this.#latestTopics.get(given.scope) === given.topic)
        this.#latestTopics.delete(given.scope);
      await given.relay.discard?.(given.owner);
    };
    const expire = (): void => void giveUp(thread).catch(report);
    const cancel = scheduler.schedule(expire, threadTtlMs, { isBackground: true });
    this.#expiries.set(thread, cancel);
    while (this.#threads.length > maxThreads) {
      const [oldest] = this.#threads;
      if (!oldest) return;
      giveUp(oldest).catch(report);
    }
  }

  #forget(thread: Thread): void {
    this.#threads = this.#threads.filter((one) => one !== thread);
    this.#expiries.get(thread)?.();
    this.#expiries.delete(thread);
  }

  async #discard(subagentId: string): Promise<void> {
    const used = this.#used.get(subagentId);
    this.#used.delete(subagentId);
    const relay = used?.relay ?? this.options.relay;
    const owner = used?.owner ?? subagentId;
    if (this.#threads.some((thread) => thread.owner === owner)) return;
    await relay.discard?.(owner);
  }
}

interface Released {
  readonly inner: RelaySession;
  readonly why: 'ended' | 'suspended';
  readonly completed: boolean;
  readonly start: RelayStart;
  readonly used: Used;
  readonly topic: string | null;
  readonly thread: Thread | null;
  readonly relay: Relay;
}
