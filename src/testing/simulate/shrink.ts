// Makes a failing case smaller: removes more and more of it, as long as it fails in the same way (delta
// debugging: Zeller and Hildebrandt, 2002).

/** Tells whether these items alone still fail. */
export type StillFails<T> = (items: readonly T[]) => Promise<boolean>;

/**
 * Returns the smallest failing part of `items` that was found within `maxTries` tries. Each of its items is
 * needed, if there were enough tries.
 */
export async function shrink<T>(
  items: readonly T[],
  stillFails: StillFails<T>,
  maxTries: number,
): Promise<readonly T[]> {
  let smallest = items;
  let tries = 0;
  if (items.length > 0) {
    tries += 1;
    if (await stillFails([])) return [];
  }
  for (let size = Math.ceil(smallest.length / 2); size >= 1;) {
    let hasShrunk = false;
    for (let at = 0; at < smallest.length && tries < maxTries;) {
      const rest = [...smallest.slice(0, at), ...smallest.slice(at + size)];
      tries += 1;
      if (rest.length < smallest.length && (await stillFails(rest))) {
        smallest = rest;
        hasShrunk = true;
      } else at += size;
    }
    if (tries >= maxTries) break;
    // An item that was needed before may no longer be.
    if (size > 1) size = Math.ceil(size / 2);
    else if (!hasShrunk) break;
  }
  return smallest;
}
