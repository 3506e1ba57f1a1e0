// The run loop of a process: it takes one event into one unit at a time and
// releases what follows from it, in order, never inside something else.
//
// Owns:     the order of everything that waits to happen now.
// Does not: know what an event or an effect means.
//
// Invariants
//   ROUTER-1. Never re-entrant: what happens during a task waits behind what waits already.
//   ROUTER-2. One task's failure is reported and harms no other task.

/** Something that happens in one go. */
export interface Task {
  run(): void;
}

export class Router {
  #queue: Task[] = [];
  #next = 0;
  #running = false;
  readonly #report: (error: unknown) => void;

  /** `report` learns of every task that threw; it must not throw itself. */
  constructor(report: (error: unknown) => void) {
    this.#report = report;
  }

  /** Runs the task after all that waits already: at once, if nothing does. */
  enqueue(task: Task): void {
    this.#queue.push(task);
    if (!this.#running) this.#drain();
  }

  /** Runs these one after the other; what the first ones lead to waits behind the last. */
  enqueueAll(tasks: readonly Task[]): void {
    for (const task of tasks) this.#queue.push(task);
    if (!this.#running) this.#drain();
  }

  #drain(): void {
    this.#running = true;
    while (this.#next < this.#queue.length) {
      const task = this.#queue[this.#next++] as Task;
      // Taken tasks go in bulk: shifting one by one is quadratic on a long queue.
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
