// The pause before a failed operation is retried.

/** The pauses between attempts. */
export interface BackoffInput {
  /** The pause after the first failure, in milliseconds. */
  readonly baseDelayMs: number;
  /** The longest pause, in milliseconds. */
  readonly maxDelayMs: number;
}

/**
 * Returns the pause after this number of consecutive failures, in milliseconds. The pause doubles with each failure, up
 * to `maxDelayMs`. `jitter`, uniform in [0, 1), shortens the pause by up to half, so that clients that failed at the
 * same time do not all retry at the same time.
 */
export function backoffMs(
  { baseDelayMs, maxDelayMs }: BackoffInput,
  failures: number,
  jitter: number,
): number {
  // 2 ** 1024 is Infinity, and a pause of 0 times Infinity would be NaN.
  const pauseMs = Math.min(maxDelayMs, baseDelayMs * 2 ** Math.min(failures - 1, 1000));
  return pauseMs * (1 - jitter / 2);
}
