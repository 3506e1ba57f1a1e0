// A client's copy of a session's state, which has the same form as in `session.store`. The state is updated by events,
// and by the server's patches with the changed fields of a view.
//
// Owns:     the reducer, the limits on stored views, and the patches.
// Does not: store state or handle connections; all functions are pure.
//
// Invariants
//   CLIENT-STATE-1. After the same events, the client and the session have the same views, except for ended views
//       beyond the limits.
//   CLIENT-STATE-2. An event replaces only the views that it changes; all other views and lists remain the same
//       objects.
//   CLIENT-STATE-3. `applyPatch(before, patchOf(before, after))` equals `after`, for any two views.

import {
  KEPT_VIEWS,
  withSchedule,
  type DeliveryView,
  type QuestionView,
  type SessionEvent,
  type SessionState,
  type SubagentView,
  type TranscriptItem,
} from '../actors/contracts/session-views.ts';
import type { ViewList, ViewPatch } from './protocol.ts';

type View = TranscriptItem | SubagentView | QuestionView | DeliveryView;

interface ListOf<T extends View> {
  readonly kept: number;
  id(view: T): string;
  isOver(view: T): boolean;
}

const lists = {
  transcript: {
    kept: KEPT_VIEWS.transcript,
    id: (view) => view.id,
    isOver: ({ final }) => final,
  } satisfies ListOf<TranscriptItem>,
  subagents: {
    kept: KEPT_VIEWS.subagents,
    id: (view) => view.id,
    isOver: ({ endedAt }) => endedAt !== null,
  } satisfies ListOf<SubagentView>,
  questions: {
    kept: KEPT_VIEWS.questions,
    id: (view) => view.requestId,
    isOver: ({ state, lasts }) =>
      (state === 'answered' && !lasts) || ['expired', 'withdrawn', 'superseded'].includes(state),
  } satisfies ListOf<QuestionView>,
  deliveries: {
    kept: KEPT_VIEWS.deliveries,
    id: (view) => view.deliveryId,
    isOver: ({ state }) => ['delivered', 'dismissed', 'dropped'].includes(state),
  } satisfies ListOf<DeliveryView>,
};

/** Returns the state after an event; returns the same object if the event changes nothing. */
export function applySessionEvent(state: SessionState, event: SessionEvent): SessionState {
  const { type } = event;
  if (type === 'connection.changed')
    return { ...state, connection: event.state, outage: event.outage ?? null };
  if (type === 'floor.changed') return { ...state, floor: event.floor };
  if (type === 'agent.entered') return { ...state, agent: event.agentName };
  if (type === 'usage.changed') return { ...state, usage: event.usage };
  if (type === 'schedule.changed')
    // A server of an earlier version sends no schedules.
    return { ...state, schedules: withSchedule(state.schedules ?? [], event.schedule) };
  if (type === 'presence.changed') return { ...state, present: event.present };
  if (type === 'limits.changed') return { ...state, limits: event.limits };
  if (type === 'transcript.changed')
    return { ...state, transcript: withItem(state.transcript, event.item) };
  if (type === 'subagent.changed')
    return { ...state, subagents: withView(state.subagents, event.subagent, lists.subagents) };
  if (type === 'question.changed')
    return { ...state, questions: withView(state.questions, event.question, lists.questions) };
  if (type === 'delivery.changed')
    return { ...state, deliveries: withView(state.deliveries, event.delivery, lists.deliveries) };
  return state;
}

/** Sorts the transcript by time. */
function withItem(
  items: readonly TranscriptItem[],
  item: TranscriptItem,
): readonly TranscriptItem[] {
  const next = withView(items, item, lists.transcript);
  const at = next.lastIndexOf(item);
  const isInOrder =
    (next[at - 1]?.at ?? -Infinity) <= item.at && item.at <= (next[at + 1]?.at ?? Infinity);
  return isInOrder ? next : next.toSorted((a, b) => a.at - b.at);
}

function withView<T extends View>(
  views: readonly T[],
  view: T,
  { kept, id, isOver }: ListOf<T>,
): readonly T[] {
  const wanted = id(view);
  // Searches from the end, because most changes concern one of the latest views.
  const index = views.findLastIndex((each) => id(each) === wanted);
  const next = index < 0 ? [...views, view] : views.with(index, view);
  if (next.length <= kept) return next;
  let excess = next.reduce((count, each) => count + Number(isOver(each)), -kept);
  return excess <= 0
    ? next
    : next.filter((each) => !isOver(each) || each === view || excess-- <= 0);
}

/** Returns the list and the view that an event replaces, or null if the event replaces no view. */
export function viewOf(event: SessionEvent): ChangedView | null {
  const { type } = event;
  if (type === 'transcript.changed') return located('transcript', event.item, lists.transcript);
  if (type === 'subagent.changed') return located('subagents', event.subagent, lists.subagents);
  if (type === 'question.changed') return located('questions', event.question, lists.questions);
  if (type === 'delivery.changed') return located('deliveries', event.delivery, lists.deliveries);
  return null;
}

/** A view that an event replaces. */
export interface ChangedView {
  readonly of: ViewList;
  readonly id: string;
  readonly view: View;
  readonly isOver: boolean;
}

function located<T extends View>(of: ViewList, view: T, { id, isOver }: ListOf<T>): ChangedView {
  return { of, id: id(view), view, isOver: isOver(view) };
}

/** Returns the event that a patch represents; null if the view is missing because a frame was missed. */
export function eventOfPatch(state: SessionState, patch: ViewPatch): SessionEvent | null {
  const { of, id } = patch;
  switch (of) {
    case 'transcript': {
      const item = patched(state.transcript, id, lists.transcript, patch);
      return item && { type: 'transcript.changed', item };
    }
    case 'subagents': {
      const subagent = patched(state.subagents, id, lists.subagents, patch);
      return subagent && { type: 'subagent.changed', subagent };
    }
    case 'questions': {
      const question = patched(state.questions, id, lists.questions, patch);
      return question && { type: 'question.changed', question };
    }
    case 'deliveries': {
      const delivery = patched(state.deliveries, id, lists.deliveries, patch);
      return delivery && { type: 'delivery.changed', delivery };
    }
    default:
      return null;
  }
}

function patched<T extends View>(
  views: readonly T[],
  wanted: string,
  { id }: ListOf<T>,
  patch: ViewPatch,
): T | null {
  const before = views.findLast((each) => id(each) === wanted);
  return before ? (applyPatch(before, patch) as T) : null;
}

/** The minimum length of a text whose patch contains only the added part. */
const MIN_CONTINUED_CHARS = 12;

/** Returns the fields that differ between two views. */
export function patchOf(
  before: object,
  after: object,
): Pick<ViewPatch, 'set' | 'append' | 'unset'> {
  const [old, now] = [before, after].map((view) => Object.fromEntries(Object.entries(view)));
  // Entries are used instead of an object, because a field may have any name, even `__proto__`.
  const set: [string, unknown][] = [];
  const append: [string, string][] = [];
  const unset: string[] = [];
  for (const [name, value] of Object.entries(now ?? {})) {
    const was = old && Object.hasOwn(old, name) ? old[name] : undefined;
    if (value === undefined) {
      if (was !== undefined) unset.push(name);
    } else if (isContinued(was, value)) append.push([name, value.slice(was.length)]);
    else if (!isSame(was, value)) set.push([name, value]);
  }
  for (const name of Object.keys(old ?? {})) if (now && !Object.hasOwn(now, name)) unset.push(name);
  return {
    ...(set.length > 0 && { set: Object.fromEntries(set) }),
    ...(append.length > 0 && { append: Object.fromEntries(append) }),
    ...(unset.length > 0 && { unset }),
  };
}

/** Returns the view with the patch applied. */
export function applyPatch(
  before: object,
  { set = {}, append = {}, unset = [] }: Pick<ViewPatch, 'set' | 'append' | 'unset'>,
): object {
  const fields = new Map<string, unknown>(Object.entries(before));
  for (const [name, value] of Object.entries(set)) fields.set(name, value);
  for (const [name, more] of Object.entries(append)) {
    const text = fields.get(name);
    fields.set(name, typeof text === 'string' ? text + more : more);
  }
  for (const name of unset) fields.delete(name);
  return Object.fromEntries(fields);
}

function isContinued<Value>(was: unknown, value: Value): value is Value & string {
  return (
    typeof was === 'string' &&
    typeof value === 'string' &&
    was.length >= MIN_CONTINUED_CHARS &&
    value.length > was.length &&
    value.startsWith(was)
  );
}

function isSame(was: unknown, value: unknown): boolean {
  return (
    Object.is(was, value) ||
    (typeof was === 'object' &&
      typeof value === 'object' &&
      JSON.stringify(was) === JSON.stringify(value))
  );
}
