// Compares two values as JSON.

/** Returns whether two values are equal as JSON. The order of properties does not matter; every own property does. */
export function sameJson(one: unknown, other: unknown): boolean {
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null)
    return one === other;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every(
      (name) =>
        Object.hasOwn(other, name) && sameJson(Reflect.get(one, name), Reflect.get(other, name)),
    )
  );
}
