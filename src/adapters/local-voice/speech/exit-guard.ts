// Delays the exit of the process while a model is running in a worker thread. Otherwise, the model's native code would
// abort the process, regardless of the exit code.
//
// The guard does not wait for the thread's other calls and does not keep the process alive.

/** On a slow machine, a step of the model takes several hundred milliseconds, and loading takes one to two seconds. */
const LONGEST_STEP_MS = 5000;

/** A thread that the exiting process controls without using the thread's event loop. */
export interface GuardedThread {
  /** Shared memory. Any value other than 0 means that the thread has ended. */
  readonly ended: Int32Array;
  /** Requests that the thread end after the current step. */
  end(): void;
}

const guarded = new Set<GuardedThread>();

/** Guards a thread. Returns a function to call when the thread has ended on its own. */
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

/** Reports the end of the thread, whatever the cause. Call it before anything else in the thread. */
export function tellEnd(ended: Int32Array): void {
  process.once('exit', () => {
    Atomics.store(ended, 0, 1);
    Atomics.notify(ended, 0);
  });
}
