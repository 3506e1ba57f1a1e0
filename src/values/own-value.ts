// Tables are plain objects; a name from outside must not reach `constructor` and its like.

/** Returns the table's own value under this key. */
export function ownValue<T>(
  table: Readonly<Record<string, T>>,
  key: string | undefined,
): T | undefined {
  return key !== undefined && Object.hasOwn(table, key) ? table[key] : undefined;
}
