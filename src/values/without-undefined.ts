// Removes keys that hold undefined, which JSON does not have.

type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> };

/** Returns a copy without the keys that hold undefined. */
export function withoutUndefined<T extends object>(object: T): Defined<T> {
  const kept: Partial<T> = {};
  for (const key of Object.keys(object) as (keyof T)[])
    if (object[key] !== undefined) kept[key] = object[key];
  return kept as Defined<T>;
}
