// Checks the promises against the record of a finished run. This file contains the promises about the whole run: a
// crash loses nothing, and all work ends within a time limit.

import { defaultSessionLimits } from '../../../actors/admission/limits.ts';
import { propertiesOf } from '../../../values/json.ts';
import { eventsOf, FINAL, OVER, upToClosing, type LogEntry, type RunRecord } from '../log/log.ts';
import { authority, bounded, endings, families, nothingTwice, services } from './subagents.ts';
import type { Broken, PromiseCheck } from './broken.ts';
import { answered } from './answered.ts';
import {
  channels,
  deliveries,
  heldUp,
  interruptions,
  questions,
  deliveredOnce,
  requests,
  schedules,
} from './conversation.ts';
import type { SessionEvent, TranscriptItem } from '../../../actors/contracts/session-views.ts';

const checks: readonly PromiseCheck[] = [
  endings,
  families,
  questions,
  deliveries,
  deliveredOnce,
  heldUp,
  services,
  interruptions,
  requests,
  answered,
  channels,
  schedules,
  nothingTwice,
  bounded,
  authority,
  keeping,
  liveness,
];

/** Returns the promises that this run has broken, or an empty list. */
export function brokenPromises(
  record: RunRecord,
  more: readonly PromiseCheck[] = [],
): readonly Broken[] {
  const shown = { ...record, log: asShown(record.log) };
  return [...checks, ...more].flatMap((check) => [...check(shown)]);
}

/**
 * P9: a crash loses nothing. State that was shown before a crash still exists after it. It is the same or has advanced.
 * The journal has no gaps, and each process continues from it.
 */
function* keeping(record: RunRecord): Iterable<Broken> {
  yield* noGaps(record.log);
  yield* nothingForgotten(record);
}

function* noGaps(log: readonly LogEntry[]): Iterable<Broken> {
  const last = new Map<string, number>();
  for (const entry of log) {
    if (entry.kind !== 'kept') continue;
    const { scope, unit, seq } = entry.entry;
    const key = `${scope}/${unit}`;
    const expected = (last.get(key) ?? 0) + 1;
    if (seq !== expected)
      yield {
        promise: 'P9',
        what: `the journal has entry ${seq} of ${unit} where ${expected} was due`,
      };
    last.set(key, seq);
  }
}

/** Compares the state that any process showed with the final state. */
function* nothingForgotten({ log, state, app }: RunRecord): Iterable<Broken> {
  if (!state || !log.some(({ kind }) => kind === 'crashed')) return;
  const seen = upToClosing(log);
  const knownSubagents = new Set(state.subagents.map(({ id }) => id));
  const knownQuestions = new Set(state.questions.map(({ requestId }) => requestId));
  const knownDeliveries = new Set(state.deliveries.map(({ deliveryId }) => deliveryId));
  const knownItems = new Set(state.transcript.map(({ id }) => id));
  const lost = new Set<string>();
  const { stateRetentionMs } = { ...defaultSessionLimits, ...app.limits };
  const forgotten = eventsOf(seen, 'subagent.ended').filter(
    ({ at }) => at + stateRetentionMs <= (seen.at(-1)?.at ?? 0),
  );
  for (const { event } of forgotten) knownSubagents.add(event.subagent.id);
  for (const { event } of eventsOf(seen, 'subagent.changed'))
    // A subagent that never left `spawning` cannot be lost.
    if (event.subagent.state !== 'spawning' && !knownSubagents.has(event.subagent.id))
      lost.add(`the subagent ${event.subagent.id}`);
  for (const requestId of stillOpen(seen))
    if (!knownQuestions.has(requestId)) lost.add(`the question ${requestId}`);
  for (const [deliveryId, kind] of stillDue(seen))
    if (!knownDeliveries.has(deliveryId)) lost.add(`the ${kind} ${deliveryId}`);
  for (const { event } of eventsOf(seen, 'transcript.changed'))
    if (isSaid(event.item) && !knownItems.has(event.item.id))
      lost.add(`what the user said (${JSON.stringify(event.item.text)})`);
  for (const what of lost)
    yield { promise: 'P9', what: `${what} was there before a crash, and is not known after it` };
}

/** Returns whether the user said this item. A text that is not addressed to the assistant is shown as empty. */
function isSaid({ role, text, final }: TranscriptItem): boolean {
  return role === 'user' && final && text !== '';
}

/** Returns the questions that were shown, except those that were also shown as ended. */
function stillOpen(log: readonly LogEntry[]): ReadonlySet<string> {
  const open = new Set<string>();
  for (const { event } of eventsOf(log, 'question.changed')) {
    const { requestId, state } = event.question;
    if (OVER.has(state)) open.delete(requestId);
    else open.add(requestId);
  }
  return open;
}

/** Returns the deliveries that were shown as due, except those that later events or entries settle. */
function stillDue(log: readonly LogEntry[]): ReadonlyMap<string, string> {
  const due = new Map<string, string>();
  const underWay = new Set<string>();
  const reached = new Set<string>();
  for (const entry of log) {
    if (entry.kind === 'event' && entry.event.type === 'delivery.changed') {
      const { deliveryId, kind, state, reach } = entry.event.delivery;
      if (kind === 'question') continue;
      if (reach?.state === 'sending' || reach?.sent.length) reached.add(deliveryId);
      if (FINAL.has(state)) due.delete(deliveryId);
      else due.set(deliveryId, kind);
      if (state === 'offered' || state === 'playing') underWay.add(deliveryId);
      else underWay.delete(deliveryId);
    } else if (entry.kind === 'kept') {
      // The process may die after an entry is stored but before its effects are shown.
      const { actor, event } = entry.entry;
      const { deliveryId, receipt } = propertiesOf(event);
      const about = actor.slice(actor.indexOf(':') + 1);
      if (event.type === 'delivery.heard') for (const id of underWay) due.delete(id);
      else if (event.type === 'delivery.shown' || event.type === 'delivery.dismissed')
        due.delete(String(deliveryId));
      else if (receipt === 'read')
        // A channel may send several results together.
        for (const id of about.startsWith('batch_') ? reached : [about]) due.delete(id);
      else if (event.type === 'deadline.schedule')
        // The notice of this time replaces the notice of the time before.
        for (const id of due.keys()) if (id.startsWith(`${about}@`)) due.delete(id);
    }
  }
  return due;
}

/** The error for passing a message to the model a second time, which no session may do. */
export const KNOWN = 'KNOWN_ALREADY';

/**
 * A due delivery must be spoken or shown within this time, in milliseconds. It is longer than the session can listen to
 * a television, run a tool of the lead agent, or wait for a response.
 */
const TOLD_WITHIN_MS = 120_000;

/**
 * Errors that no fault can explain. One of them is the refusal of a prompt by a provider, because scripted models apply
 * `providerRules`.
 */
const UNEXPECTED: ReadonlySet<string> = new Set([
  'INTERNAL',
  'HOOK_FAILED',
  'PROVIDER_REFUSED',
  KNOWN,
]);

/**
 * A due delivery is spoken or shown if a client is listening and both sides are silent. Within a time limit after the
 * last fault, every subagent and every question has ended, and every result has been heard, shown or dismissed. Errors
 * that no fault explains are not reported.
 */
function* liveness({ log, unfinished, longestSilenceMs }: RunRecord): Iterable<Broken> {
  for (const what of unfinished) yield { promise: 'LIVE', what: `at the end ${what}` };
  if (longestSilenceMs > TOLD_WITHIN_MS)
    yield {
      promise: 'LIVE',
      what: `something was due, and nothing was said for ${longestSilenceMs / 1000} s to somebody who listened`,
    };
  for (const { event } of eventsOf(log, 'error.reported'))
    if (UNEXPECTED.has(event.code))
      yield { promise: 'LIVE', what: `an error that nothing explains: ${event.message}` };
  for (const { event } of eventsOf(log, 'subagent.ended'))
    if (event.outcome.status === 'failed' && UNEXPECTED.has(event.outcome.error.code))
      yield { promise: 'LIVE', what: `a subagent failed with ${event.outcome.error.message}` };
  for (const { event } of eventsOf(upToClosing(log), 'session.ended'))
    yield {
      promise: 'LIVE',
      what: `the session ended by itself: ${event.error?.code} ${event.error?.message}`,
    };
}

/** Events that report that something happened. All other events show a state. */
const HAPPENED: ReadonlySet<SessionEvent['type']> = new Set([
  'tool.called',
  'tool.answered',
  'subagent.delegated',
]);

/** The entries with which a process continues a session. */
const CONTINUATIONS: ReadonlySet<string> = new Set(['session.recovered', 'session.woken']);

/**
 * Filters the log of a recovered session, because the states that it shows before it reports its recovery are not new.
 * Of these states, only the last one of each object counts, and a repeated event does not count as a repeated delivery.
 */
function asShown(log: readonly LogEntry[]): readonly LogEntry[] {
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

/** Returns the index at which the process that starts here reports its recovery or dies; -1 if it does neither. */
function recoveredAt(log: readonly LogEntry[], from: number): number {
  let isRecovering = false;
  for (let at = from + 1; at < log.length; at += 1) {
    const entry = log[at] as LogEntry;
    if (entry.kind === 'kept') isRecovering ||= CONTINUATIONS.has(entry.entry.event.type);
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
  // Objects that have ended come first, because they ended before the others appeared.
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
