// Filters the log of a recovered session: states that it shows again before it reports its recovery are no
// news. Of each object only the last state counts, and a repeated event does not count as told twice.

import type { SessionEvent } from '../../../actors/contracts/session-views.ts';
import type { LogEntry } from '../log/log.ts';

/** Events that report an occurrence, and not a state. */
const HAPPENED: ReadonlySet<SessionEvent['type']> = new Set([
  'tool.called',
  'tool.answered',
  'subagent.delegated',
]);

const OVER: ReadonlySet<string> = new Set(['answered', 'expired', 'withdrawn', 'superseded']);

/** Entries by which a process continues a session. */
const GOES_ON: ReadonlySet<string> = new Set(['session.recovered', 'session.woken']);

export function asShown(log: readonly LogEntry[]): readonly LogEntry[] {
  const shown: LogEntry[] = [];
  for (let at = 0; at < log.length;) {
    const entry = log[at] as LogEntry;
    const end = entry.kind === 'started' ? recoveredAt(log, at) : -1;
    if (end < 0) {
      shown.push(entry);
      at += 1;
    } else {
      shown.push(...lastStates(log.slice(at, end)));
      at = end;
    }
  }
  return shown;
}

/**
 * Returns the index at which the process that begins here reports its recovery, or dies before; -1: it does
 * not recover.
 */
function recoveredAt(log: readonly LogEntry[], from: number): number {
  let isRecovering = false;
  for (let at = from + 1; at < log.length; at += 1) {
    const entry = log[at] as LogEntry;
    if (entry.kind === 'kept') isRecovering ||= GOES_ON.has(entry.entry.event.type);
    if (entry.kind === 'event' && entry.event.type === 'session.recovered') return at;
    if (entry.kind === 'crashed' || entry.kind === 'slept') return isRecovering ? at : -1;
  }
  return -1;
}

function lastStates(log: readonly LogEntry[]): readonly LogEntry[] {
  const last = new Map<string, LogEntry>();
  for (const entry of log) if (entry.kind === 'event') last.set(subjectOf(entry.event), entry);
  const shown = log.filter(
    (entry) =>
      entry.kind !== 'event' ||
      (!HAPPENED.has(entry.event.type) && last.get(subjectOf(entry.event)) === entry),
  );
  // Ended objects first: they are over when another one is put.
  return [...shown.filter(isOver), ...shown.filter((entry) => !isOver(entry))];
}

function isOver(entry: LogEntry): boolean {
  return (
    entry.kind === 'event' &&
    entry.event.type === 'question.changed' &&
    OVER.has(entry.event.question.state)
  );
}

function subjectOf(event: SessionEvent): string {
  if (event.type === 'subagent.changed') return event.subagent.id;
  if (event.type === 'question.changed') return `question ${event.question.requestId}`;
  if (event.type === 'delivery.changed') return `delivery ${event.delivery.deliveryId}`;
  if (event.type === 'transcript.changed') return `item ${event.item.id}`;
  return event.type;
}
