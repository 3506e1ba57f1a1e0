// Keys that hold undefined: they are no JSON, and no choice of whoever wrote the object.

type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> };

/** A copy without the keys that hold undefined. */
export function withoutUndefined<T extends object>(object: T): Defined<T> {
  const kept: Partial<T> = {};
  for (const key of Object.keys(object) as (keyof T)[])
    if (object[key] !== undefined) kept[key] = object[key];
  return kept as Defined<T>;
}
