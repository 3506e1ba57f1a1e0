// Reads tables that are plain objects. Names from outside must not match inherited properties such as `constructor`.

/** Returns the table's own value under this key. */
export function ownValue<T>(
  table: Readonly<Record<string, T>>,
  key: string | undefined,
): T | undefined {
  return key !== undefined && Object.hasOwn(table, key) ? table[key] : undefined;
}
