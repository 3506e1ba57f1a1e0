// A process that exits while a model runs in one of its threads would be aborted by the model's native
// code, whatever its exit code was to be. So it waits for the end of that step first.
//
// Does not: wait for anything else that the thread was asked for, or keep the process alive.

/** Steps of the models take some hundred milliseconds on a slow machine; loading them, a second or two. */
const LONGEST_STEP_MS = 5000;

/** A thread, seen from the one that exits: nothing of its event loop happens there any more. */
export interface GuardedThread {
  /** Not 0: the thread runs nothing any more. Shared memory. */
  readonly ended: Int32Array;
  /** Tells it to end after the step that it is in. */
  end(): void;
}

const guarded = new Set<GuardedThread>();

/** Returns what to call when the thread has ended by itself. */
export function guardExit(thread: GuardedThread): () => void {
  if (guarded.size === 0) process.on('exit', endAll);
  guarded.add(thread);
  return () => {
    if (guarded.delete(thread) && guarded.size === 0) process.off('exit', endAll);
  };
}

function endAll(): void {
  for (const thread of guarded) thread.end();
  // oxlint-disable-next-line eslint/no-restricted-properties -- real time: the process is at its end
  for (const { ended } of guarded) Atomics.wait(ended, 0, 0, LONGEST_STEP_MS);
}

/** Within the thread, before it runs anything: says when it ends, however that comes. */
export function tellEnd(ended: Int32Array): void {
  process.once('exit', () => {
    Atomics.store(ended, 0, 1);
    Atomics.notify(ended, 0);
  });
}
