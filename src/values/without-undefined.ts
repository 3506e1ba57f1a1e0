// Removes keys whose value is undefined, which JSON cannot represent.

type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> };

/** Returns a copy without the keys whose value is undefined. */
export function withoutUndefined<T extends object>(object: T): Defined<T> {
  const kept: Partial<T> = {};
  for (const key of Object.keys(object) as (keyof T)[])
    if (object[key] !== undefined) kept[key] = object[key];
  return kept as Defined<T>;
}
