/** Deletes the oldest entries of a map or set until at most `max` entries are left. */
export function forgetOldest(
  kept: Pick<Set<unknown>, 'size' | 'keys' | 'delete'>,
  max: number,
): void {
  for (const key of kept.keys()) {
    if (kept.size <= max) return;
    kept.delete(key);
  }
}
