// Makes what fails smaller: leaves out more and more of it, as long as it fails in the same way
// (delta debugging: Zeller and Hildebrandt, 2002).

/** Does it still fail with these alone? */
export type StillFails<T> = (items: readonly T[]) => Promise<boolean>;

/** The smallest part of `items` that was found to fail, within `maxTries` tries. Each of it is needed, if there were enough. */
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
    // What was needed before may not be any more.
    if (size > 1) size = Math.ceil(size / 2);
    else if (!hasShrunk) break;
  }
  return smallest;
}
