// Delays process exit while a model runs in a worker thread: the model's native code would otherwise abort the process,
// regardless of the exit code.
//
// The guard waits for no other calls of the thread, and does not keep the process alive.

/** On a slow machine, model steps take several hundred milliseconds, and loading one to two seconds. */
const LONGEST_STEP_MS = 5000;

/** A thread as the exiting process controls it, without its event loop. */
export interface GuardedThread {
  /** Shared memory; any value but 0 means that the thread has ended. */
  readonly ended: Int32Array;
  /** Tells the thread to end after the current step. */
  end(): void;
}

const guarded = new Set<GuardedThread>();

/** Guards a thread. Returns a function to call when the thread has ended by itself. */
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

/** Reports the thread's end, whatever its cause; must run first in the thread. */
export function tellEnd(ended: Int32Array): void {
  process.once('exit', () => {
    Atomics.store(ended, 0, 1);
    Atomics.notify(ended, 0);
  });
}
