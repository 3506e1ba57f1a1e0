// The run loop of a process: it lets one unit at a time handle one event and releases the consequences in
// order, never inside another task.
//
// Owns:     the order of all queued tasks.
// Does not: know the meaning of an event or an effect.
//
// Invariants
//   ROUTER-1. The router is never re-entrant: tasks enqueued during a task run behind those that are already
//       queued.
//   ROUTER-2. The failure of a task is reported and affects no other task.

/** A unit of work that runs without interruption. */
export interface Task {
  run(): void;
}

export class Router {
  #queue: Task[] = [];
  #next = 0;
  #running = false;
  readonly #report: (error: unknown) => void;

  /** @param report Called with the error of each task that threw; must not throw itself. */
  constructor(report: (error: unknown) => void) {
    this.#report = report;
  }

  /** Runs the task after all queued ones; at once if there are none. */
  enqueue(task: Task): void {
    this.#queue.push(task);
    if (!this.#running) this.#drain();
  }

  /** Runs these tasks one after the other; tasks that they enqueue run behind the last. */
  enqueueAll(tasks: readonly Task[]): void {
    for (const task of tasks) this.#queue.push(task);
    if (!this.#running) this.#drain();
  }

  #drain(): void {
    this.#running = true;
    while (this.#next < this.#queue.length) {
      const task = this.#queue[this.#next++] as Task;
      // Finished tasks are removed in bulk: shifting one by one is quadratic on a long queue.
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
