// The pause before a failed operation is tried again.

/** The pauses between attempts. */
export interface BackoffInput {
  /** The pause after the first failure, in milliseconds. */
  readonly baseDelayMs: number;
  /** The longest pause, in milliseconds. */
  readonly maxDelayMs: number;
}

/**
 * Returns the pause after this number of failures in a row, in milliseconds: it doubles with each, up to
 * `maxDelayMs`. `jitter`, uniform in [0, 1), takes away up to half of it, so that clients that failed
 * together do not retry together.
 */
export function backoffMs(
  { baseDelayMs, maxDelayMs }: BackoffInput,
  failures: number,
  jitter: number,
): number {
  // 2 ** 1024 is Infinity, and no pause at all would become NaN.
  const pauseMs = Math.min(maxDelayMs, baseDelayMs * 2 ** Math.min(failures - 1, 1000));
  return pauseMs * (1 - jitter / 2);
}
