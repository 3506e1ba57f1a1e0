// Counts of tokens, as providers report them.

/** No model call has more: a greater number is not a token count. */
const MAX_TOKENS = 1_000_000_000;

/** Returns a token count of a provider; undefined if it is not a valid one. */
export function tokenCount(count: unknown): number | undefined {
  const isCount = typeof count === 'number' && count >= 0 && count <= MAX_TOKENS;
  return isCount ? Math.round(count) : undefined;
}
