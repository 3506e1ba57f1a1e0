// The English words for times, numbers and lists in the sentences of `whyWaiting`.

/** `in 3 min` */
export function inTime({ at }: { readonly at: number }, then: number): string {
  return then <= at ? 'now' : `in ${duration(then - at)}`;
}

/** Returns a duration, such as `12.5 s`, `3 min`. */
export function duration(ms: number): string {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`;
}

/** `a, b or c` */
export function listed(names: readonly string[], last: 'and' | 'or'): string {
  const rest = names.slice(0, -1);
  return rest.length === 0 ? names.join('') : `${rest.join(', ')} ${last} ${names.at(-1)}`;
}

/** `2 attempts` */
export const counted = (count: number, what: string): string =>
  count === 1 ? `1 ${what}` : `${count} ${what}s`;

const FIRST = ['first', 'second', 'third', 'fourth', 'fifth', 'sixth'];

/** `third` */
export function ordinal(place: number): string {
  return FIRST[place - 1] ?? `number ${place}`;
}
