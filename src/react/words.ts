// Names and numbers as users read them. The parts show no internal names, and no number without a unit.

import { createElement, type ReactElement } from 'react';
import { useServerTime } from './hooks.ts';

/** `ride_booker` → `ride booker`. */
export const humanName = (name: string): string => name.replaceAll('_', ' ');

/** `4 s`, `1:05`, `1:00:05`. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  return seconds < 60 ? `${seconds} s` : clockTime(seconds);
}

/** `0:45`. */
export function clockTime(seconds: number): string {
  const two = (count: number): string => String(count).padStart(2, '0');
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const end = two(seconds % 60);
  return hours > 0 ? `${hours}:${two(minutes)}:${end}` : `${minutes}:${end}`;
}

/** `2nd`. */
export function ordinal(place: number): string {
  const isTh = (place > 10 && place < 14) || place % 10 > 3;
  return `${place}${isTh ? 'th' : (['th', 'st', 'nd', 'rd'][place % 10] ?? 'th')}`;
}

export interface Timed {
  /** Returns the server's current time, in milliseconds since 1970. */
  serverNow(): number;
}

/** The time from `from` to `to`, or to now. A separate component, so that only this text is rendered every second. */
export function Elapsed(props: {
  readonly client: Timed;
  readonly from: number;
  readonly to: number | null;
}): ReactElement {
  const { client, from, to } = props;
  const now = useServerTime(client, to === null);
  return createElement('time', { 'data-part': 'time' }, duration((to ?? now) - from));
}
