// Shared by the units of one process: time and randomness, the journal, error hooks, and the run loop (`Router`). In
// the run loop, only one unit handles an event at a time. The loop then releases the consequences in order, never
// inside another task.
//
// Owns:     the order of all queued tasks.
// Does not: interpret events or effects.
//
// Invariants
//   ROUTER-1. The router is never re-entrant: tasks enqueued by a task run after those that are already queued.
//   ROUTER-2. A task's failure is reported and affects no other task.

import type { InspectionEvent } from 'xstate';
import { handleRejection, quietly } from '../../values/errors.ts';
import type { Environment } from '../ports/environment.ts';
import type { Price } from '../contracts/usage.ts';
import type { ClientCallRequest } from '../contracts/records.ts';
import type { Jobs } from '../ports/jobs.ts';
import type { Journal, TracedWork } from '../ports/journal.ts';
import { ActorTree } from './actor-tree.ts';
import type { OnUnfoldable } from './quarantine.ts';
import { reporter } from '../../values/reporter.ts';

export interface HostOptions {
  readonly environment: Environment;
  readonly journal: Journal;
  /** The engine that runs steps with `runs: 'jobs'`. @defaultValue none: this process runs them */
  readonly jobs?: Jobs | undefined;
  /** The cost of a model call. @defaultValue costs are unknown */
  readonly price?: Price | undefined;
  /**
   * Called with errors that did not change a result, such as an error from a hook or a journal append that is being
   * retried.
   */
  readonly onError?: ((error: unknown, where: string) => void) | undefined;
  /** Called with events that no actor could accept, because they were late, duplicates, or meant for another state. */
  readonly onIgnored?: ((unit: string, actor: string, event: { type: string }) => void) | undefined;
  readonly inspect?: ((event: InspectionEvent) => void) | undefined;
  /** How an entry that cannot be folded is handled. @defaultValue 'set_aside' */
  readonly onUnfoldable?: OnUnfoldable | undefined;
}

export interface Host {
  readonly environment: Environment;
  readonly journal: Journal;
  /** Null if this process runs every step. */
  readonly jobs: Jobs | null;
  /** Null if no price is configured; then only relays report costs. */
  readonly price: Price | null;
  readonly router: Router;
  /** The actors that apps and inspectors observe. */
  readonly actors: ActorTree;
  readonly onUnfoldable: OnUnfoldable;
  /** The clients of the session's user, which execute tool calls. Absent if there is no session. */
  clientCalls?: {
    run(call: ClientCallRequest): Promise<unknown>;
    /** Returns whether a client may have executed the call. */
    cancel(id: string): boolean;
  };
  /** Identifies this host to third-party code, which may only compare it. */
  readonly scope: object;
  report(error: unknown, where: string): void;
  ignored(unit: string, actor: string, event: { type: string }): void;
}

export function createHost(options: HostOptions): Host {
  const report = quietly(options.onError ?? reporter(undefined));
  const host: Host = {
    environment: options.environment,
    journal: options.journal,
    jobs: options.jobs ?? null,
    price: options.price ?? null,
    router: new Router((error) => report(error, 'router')),
    actors: new ActorTree(report, options.inspect && guarded(options.inspect, report)),
    onUnfoldable: options.onUnfoldable ?? 'set_aside',
    scope: Object.freeze({}),
    report,
    ignored(unit, actor, event) {
      callSafely(host, 'onIgnored', () => options.onIgnored?.(unit, actor, event));
    },
  };
  return host;
}

/**
 * Catches inspectors' errors: XState calls inspectors in the middle of a transition, where an error would end the
 * actor.
 */
function guarded(
  inspect: NonNullable<HostOptions['inspect']>,
  report: Host['report'],
): NonNullable<HostOptions['inspect']> {
  return (event) => {
    try {
      handleRejection(inspect(event), (error) => report(error, 'inspect'));
    } catch (error) {
      report(error, 'inspect');
    }
  };
}

/** Calls the app's function, in the span of the current work if the journal writes spans. */
export function inSpanOf<T>(
  { journal }: { readonly journal: Pick<Journal, 'inSpanOf'> },
  work: TracedWork,
  call: () => T,
): T {
  return journal.inSpanOf ? journal.inSpanOf(work, call) : call();
}

/** Calls the app's code; an error or a rejection is reported and has no other effect. */
export function callSafely(host: Pick<Host, 'report'>, where: string, call: () => unknown): void {
  try {
    handleRejection(call(), (error) => host.report(error, where));
  } catch (error) {
    host.report(error, where);
  }
}

/** A unit of work that runs without interruption. */
export interface Task {
  run(): void;
}

export class Router {
  #queue: Task[] = [];
  #next = 0;
  #running = false;
  readonly #report: (error: unknown) => void;

  /** @param report Called with the error of each task that threw; must not throw. */
  constructor(report: (error: unknown) => void) {
    this.#report = report;
  }

  /** Runs the task after all queued tasks, or immediately if there are none. */
  enqueue(task: Task): void {
    this.#queue.push(task);
    if (!this.#running) this.#drain();
  }

  /** Runs these tasks in order. Tasks that they enqueue run after the last of them. */
  enqueueAll(tasks: readonly Task[]): void {
    for (const task of tasks) this.#queue.push(task);
    if (!this.#running) this.#drain();
  }

  #drain(): void {
    this.#running = true;
    while (this.#next < this.#queue.length) {
      const task = this.#queue[this.#next++] as Task;
      // Removes finished tasks in bulk, because shifting them one by one takes quadratic time for a long queue.
      if (this.#next > 1024) {
        this.#queue = this.#queue.slice(this.#next);
        this.#next = 0;
      }
      try {
        task.run();
      } catch (error) {
        this.#report(error);
      }
    }
    this.#queue.length = 0;
    this.#next = 0;
    this.#running = false;
  }
}
