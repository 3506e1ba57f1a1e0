// The clock of an audio pipeline: a frame is due every 20 ms, and how late each one is.

const PERIOD_MS = 20;

/** Goes on for so long, and resolves with how late each frame was, in milliseconds. */
export function tickLateness(durationMs: number): Promise<number[]> {
  const begin = performance.now();
  const late: number[] = [];
  const dueAt = (): number => begin + (late.length + 1) * PERIOD_MS;
  return new Promise((resolve) => {
    const tick = (): void => {
      const now = performance.now();
      // After a pause, all that is due by now goes out at once.
      while (dueAt() <= now) late.push(now - dueAt());
      if (now - begin >= durationMs) resolve(late);
      // Node cuts a fraction of a millisecond off, and would be early.
      else setTimeout(tick, Math.ceil(dueAt() - now));
    };
    tick();
  });
}
