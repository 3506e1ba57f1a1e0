// Words and numbers as people read them.

import type { SubagentView } from '../../../src/actors/contracts/session-views.ts';

/** `4 s`, `1:05`. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

/** `0:07`, `1:05`; what is left, rounded up. */
export function countdown(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

/** `2nd`. */
export function ordinal(position: number): string {
  const tail = position % 100;
  const suffix = tail > 10 && tail < 14 ? 'th' : (['th', 'st', 'nd', 'rd'][position % 10] ?? 'th');
  return `${position}${suffix}`;
}

/** The subject of a subagent, from the arguments of its tool call. */
export function taskTitle(
  { toolName, task }: Pick<SubagentView, 'toolName' | 'task'>,
  input: unknown,
): string {
  switch (toolName) {
    case 'book_ride':
      return titled('A ride', 'to', input, 'destination');
    case 'book_table':
      return titled('A table', 'for', input, 'partySize');
    case 'generate_report':
      return titled('A sales report', 'for', input, 'dateRange');
    default:
      return task || humanName(toolName);
  }
}

function titled(thing: string, preposition: string, input: unknown, field: string): string {
  const fields = typeof input === 'object' && input !== null ? input : {};
  const detail: unknown = Reflect.get(fields, field);
  const isSaid = typeof detail === 'string' || typeof detail === 'number';
  return isSaid ? `${thing} ${preposition} ${detail}` : thing;
}

/** `ride_booker` → `ride booker`. */
export function humanName(name: string): string {
  return name.replaceAll('_', ' ');
}
