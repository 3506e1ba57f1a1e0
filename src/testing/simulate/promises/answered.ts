// P10: each of the user's utterances is sent to one place. The lead agent answers the utterances that it receives
// within a time limit: with speech, a sound, a call, or a report that there is no answer.
//
// Owns:     what counts as an answer, and which utterances need none.
// Does not: judge whether the answer is the right one (P3).

import { propertiesOf } from '../../../values/json.ts';
import { upToClosing, type LogEntry, type RunRecord } from '../log/log.ts';
import type { Broken } from './broken.ts';

/**
 * The time limit for an answer, in milliseconds. It is longer than two attempts of a model that stays silent until its
 * timeout, and longer than the lead agent's tools can hang.
 */
const ANSWERED_WITHIN_MS = 120_000;

/** A run continues for this additional time, so that its log contains a late answer. */
const SLACK_MS = 3000;

export function* answered({ log }: RunRecord): Iterable<Broken> {
  const seen = upToClosing(log);
  yield* placed(seen);
  yield* inTime(seen);
}

/** Checks that each utterance is sent to one place, even if several processes handle it. */
function* placed(log: readonly LogEntry[]): Iterable<Broken> {
  const places = new Map<string, string>();
  const said = new Map<string, LogEntry>();
  for (const entry of log) {
    // The effects of a dead process are discarded, because the next process continues from the entry.
    if (entry.kind === 'crashed' || entry.kind === 'slept') said.clear();
    const id = saidIn(entry);
    if (id !== null) said.set(id, entry);
    if (entry.kind !== 'event' || entry.event.type !== 'utterance.routed') continue;
    const { utteranceId, to } = entry.event;
    said.delete(utteranceId);
    const before = places.get(utteranceId);
    if (before !== undefined) yield broken(`${utteranceId} went to ${before}, and then to ${to}`);
    places.set(utteranceId, to);
  }
  const last = log.at(-1)?.at ?? 0;
  for (const [id, { at }] of said)
    if (last - at > ANSWERED_WITHIN_MS) yield broken(`${id} was taken in, and went nowhere`);
}

/** Returns the id of the utterance in this journal entry, or null if there is none. */
function saidIn(entry: LogEntry): string | null {
  if (entry.kind !== 'kept' || entry.entry.event.type !== 'user.said') return null;
  const { utteranceId } = propertiesOf(entry.entry.event);
  return String(utteranceId);
}

function* inTime(log: readonly LogEntry[]): Iterable<Broken> {
  const watch = new AnswerWatch();
  for (const entry of log) {
    const late = watch.late(entry.at);
    if (late !== null)
      yield broken(`${late} got no answer and no sign for ${ANSWERED_WITHIN_MS} ms`);
    watch.take(entry);
  }
}

/** Follows the log, and remembers the utterance that has not been answered yet. */
export class AnswerWatch {
  #waiting: { readonly utteranceId: string; readonly since: number } | null = null;
  #isThere = true;
  /** Whether the user has heard or seen anything since they last spoke. */
  #hasSign = false;

  /** Returns the utterance that is waiting for an answer, or null if none is waiting or the answer is already late. */
  waiting(now: number): string | null {
    const { utteranceId, since = 0 } = this.#waiting ?? {};
    return now - since <= ANSWERED_WITHIN_MS + SLACK_MS ? (utteranceId ?? null) : null;
  }

  /** Returns the utterance whose answer is late, or null if there is none. Returns each utterance only once. */
  late(now: number): string | null {
    const { utteranceId = null, since = now } = this.#waiting ?? {};
    if (now - since <= ANSWERED_WITHIN_MS) return null;
    this.#waiting = null;
    return utteranceId;
  }

  take(entry: LogEntry): void {
    if (entry.kind === 'kept' && entry.entry.event.type === 'client.attached') this.#isThere = true;
    if (leaves(entry)) this.#isThere = false;
    if (speaksOn(entry)) this.#hasSign = false;
    if (isSign(entry)) this.#hasSign = true;
    if (isSign(entry) || speaksOn(entry) || beginsAnew(entry) || !this.#isThere)
      this.#waiting = null;
    if (entry.kind !== 'event' || entry.event.type !== 'utterance.routed') return;
    const { utteranceId, to } = entry.event;
    // A model that responds on its own may have replied before the user's transcript is known.
    if (to === 'lead' && this.#isThere && !this.#hasSign)
      this.#waiting = { utteranceId, since: entry.at };
  }
}

/** Returns whether this entry shows the user a reaction of the lead agent. */
function isSign(entry: LogEntry): boolean {
  if (entry.kind !== 'event') return entry.kind === 'part';
  const { event } = entry;
  if (event.type === 'transcript.changed') return event.item.role === 'assistant';
  if (event.type === 'delivery.changed') return event.delivery.state === 'playing';
  return event.type === 'tool.called' || event.type === 'utterance.unanswered';
}

function speaksOn(entry: LogEntry): boolean {
  return entry.kind === 'said' && entry.words !== '';
}

/** Returns whether another agent, connection or process continues the conversation from here. */
function beginsAnew(entry: LogEntry): boolean {
  if (entry.kind === 'crashed' || entry.kind === 'slept') return true;
  return (
    entry.kind === 'event' &&
    (entry.event.type === 'connection.changed' || entry.event.type === 'agent.entered')
  );
}

function leaves(entry: LogEntry): boolean {
  if (entry.kind === 'crashed' || entry.kind === 'slept') return true;
  return entry.kind === 'kept' && entry.entry.event.type === 'client.detached';
}

function broken(what: string): Broken {
  return { promise: 'P10', what };
}
