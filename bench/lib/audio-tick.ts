// The clock of an audio pipeline: a frame is due every 20 ms; measures how late each frame is.

const PERIOD_MS = 20;

/** Runs for this time, and resolves with the lateness of each frame, in milliseconds. */
export function tickLateness(durationMs: number): Promise<number[]> {
  const begin = performance.now();
  const late: number[] = [];
  const dueAt = (): number => begin + (late.length + 1) * PERIOD_MS;
  return new Promise((resolve) => {
    const tick = (): void => {
      const now = performance.now();
      // After a pause, all frames that are due are sent at once.
      while (dueAt() <= now) late.push(now - dueAt());
      if (now - begin >= durationMs) resolve(late);
      // Node.js drops fractions of a millisecond, and would fire early.
      else setTimeout(tick, Math.ceil(dueAt() - now));
    };
    tick();
  });
}
