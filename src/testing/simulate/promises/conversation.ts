// The promises about the conversation: questions, deliveries, interruptions, channels and schedules.

import { callKey, propertiesOf } from '../../../values/json.ts';
import type {
  DeliveryView,
  QuestionView,
  SessionEvent,
} from '../../../actors/contracts/session-views.ts';
import { isPlainYes, plain, saysYes } from '../../conformance/words.ts';
import type { SpawnedEvent } from '../../../actors/subagent/subagent-events.ts';
import { SLOW_MS } from '../log/fault-points.ts';
import {
  CHANNEL,
  eventsOf,
  FINAL,
  OVER,
  upToClosing,
  type LogEntry,
  type RunRecord,
} from '../log/log.ts';
import type { Broken } from './broken.ts';
import { spawnedIn } from './subagents.ts';
import type { Play } from '../../conformance/loudspeaker.ts';
import { TICK_MS } from '../../conformance/client.ts';

const PUT: ReadonlySet<string> = new Set(['presenting', 'open', 'parked']);
/** Something that the user said, typed or clicked. */
interface Tried {
  readonly words: string;
  /** The arguments of the call that needs approval, as they were shown at that time or as the user changed them. */
  readonly input: unknown;
}

interface Asked {
  view: QuestionView;
  /** The answers that the user gave while the question was shown. */
  readonly tried: Tried[];
  accepted: number;
  /** Whether the question is a lasting approval, or has been one. */
  hasLasted: boolean;
}

/**
 * P2: at most one question at a time receives the user's utterances, in the order in which the questions were asked.
 * P3: the user gave the answer while the question was shown, and the subagent that asked receives it unchanged.
 */
export function* questions({ log }: RunRecord): Iterable<Broken> {
  const book = new Map<string, Asked>();
  const order: string[] = [];
  for (const entry of log) {
    if (entry.kind === 'event' && entry.event.type === 'question.changed')
      yield* changed(book, order, entry.event.question);
    else yield* tried(book, entry);
  }
  yield* reachTheirAskers(book, log);
}

function* changed(book: Map<string, Asked>, order: string[], view: QuestionView): Iterable<Broken> {
  const { requestId, state } = view;
  const known = book.get(requestId);
  const before = known?.view.state ?? 'queued';
  if (!known) order.push(requestId);
  const asked = known ?? { view, tried: [], accepted: 0, hasLasted: false };
  asked.view = view;
  asked.hasLasted ||= state === 'answered' && view.lasts !== undefined;
  book.set(requestId, asked);
  if (OVER.has(before) && before !== state)
    yield { promise: 'P2', what: `${requestId} was ${before}, and then ${state}` };
  if (PUT.has(state) && !PUT.has(before)) {
    const others = order.filter((id) => id !== requestId && PUT.has(stateOf(book, id)));
    if (others.length > 0)
      yield { promise: 'P2', what: `${requestId} was put while ${others.join()} had the floor` };
    const first = order.find((id) => id === requestId || stateOf(book, id) === 'queued');
    if (first !== requestId)
      yield { promise: 'P2', what: `${requestId} was put before ${first}, which was asked before` };
  }
  if (state === 'answered' && before !== 'answered') yield* answered(asked);
}

function* answered({ view, tried: all }: Asked): Iterable<Broken> {
  const { requestId, answer, kind } = view;
  if (!all.some((one) => means(one, view)))
    yield {
      promise: 'P3',
      what: `the ${kind} ${requestId} was answered with ${JSON.stringify(answer)}; the user had said to it only: ${all.map((one) => JSON.stringify(one)).join(', ') || 'nothing'}`,
    };
  // Only a model can interpret this answer as a yes, and the yes counts only after the action has been read back.
  if (plain(answer ?? '') === 'sim' && view.putAgain === undefined)
    yield { promise: 'P3', what: `${requestId} was approved by a yes that was not read back` };
}

/** The arguments that need approval or have been approved. */
const inputOf = (view: QuestionView): unknown => (view.changed ?? view.action)?.input;

function means({ words, input }: Tried, view: QuestionView): boolean {
  const { answer, kind, options } = view;
  if (answer === null) return false;
  if (kind === 'approval')
    return saysYes(answer)
      ? isPlainYes(words) && callKey('', input) === callKey('', inputOf(view))
      : !isPlainYes(words);
  const said = plain(words);
  const option = options.find(({ label }) => label === answer);
  return said === plain(answer) || (option !== undefined && said.includes(plain(answer)));
}

/** Records the answer that this entry may contain. */
function* tried(book: Map<string, Asked>, entry: LogEntry): Iterable<Broken> {
  if (entry.kind === 'said') {
    // The transcript arrives later, so the input counts for every question that is shown at this time.
    for (const asked of book.values())
      if (!OVER.has(asked.view.state))
        asked.tried.push({ words: entry.words, input: inputOf(asked.view) });
  } else if (entry.kind === 'clicked') {
    const asked = book.get(entry.requestId);
    if (asked && !OVER.has(asked.view.state)) {
      const { input = asked.view.action?.input } = entry.answer;
      asked.tried.push({ words: inWords(asked.view, entry), input });
    }
  } else if (entry.kind === 'receipt' && entry.receipt.accepted) {
    const asked = book.get(entry.requestId);
    // The user revokes a lasting approval.
    if (!asked || (asked.hasLasted && entry.answer.approved === false)) return;
    asked.accepted += 1;
    const { answer, state } = asked.view;
    const words = inWords(asked.view, entry);
    if (asked.accepted > 1)
      yield { promise: 'P3', what: `${entry.requestId} accepted ${asked.accepted} answers` };
    else if (state !== 'answered' || !plain(answer ?? '').startsWith(plain(words)))
      yield {
        promise: 'P3',
        what: `${entry.requestId} accepted ${JSON.stringify(words)}, and is ${state} with ${JSON.stringify(answer)}`,
      };
  }
}

function inWords(
  { options }: QuestionView,
  { answer }: Extract<LogEntry, { kind: 'clicked' | 'receipt' }>,
): string {
  if (answer.approved !== undefined) return answer.approved ? 'Yes' : 'No';
  const label = options.find(({ id }) => id === answer.optionId)?.label;
  return label ?? answer.text ?? '';
}

/** Checks that the ledger of the subagent that asked contains the answer that the user gave. */
function* reachTheirAskers(
  book: ReadonlyMap<string, Asked>,
  log: readonly LogEntry[],
): Iterable<Broken> {
  const outcomes = new Map(
    log.flatMap((entry) =>
      entry.kind === 'event' && entry.event.type === 'subagent.changed'
        ? [[entry.event.subagent.id, entry.event.subagent.outcome] as const]
        : [],
    ),
  );
  for (const { view } of book.values()) {
    const outcome = outcomes.get(view.subagentId);
    if (!outcome || view.kind !== 'question') continue;
    for (const { toolName, input, status, output } of outcome.toolLedger) {
      if (toolName !== 'ask_user' || status !== 'ok') continue;
      if (propertiesOf(input)['question'] !== view.question) continue;
      const { userResponse } = (output ?? {}) as { userResponse?: string };
      const same = [...book.values()].filter(
        (asked) =>
          asked.view.question === view.question && asked.view.subagentId === view.subagentId,
      );
      if (!same.some((asked) => asked.view.answer === userResponse))
        yield {
          promise: 'P3',
          what: `${view.subagentId} read ${JSON.stringify(userResponse)} for ${view.requestId}, which was answered with ${JSON.stringify(view.answer)}`,
        };
    }
  }
}

function stateOf(book: ReadonlyMap<string, Asked>, requestId: string): string {
  return book.get(requestId)?.view.state ?? 'queued';
}

/** A client counts whole frames, and a session treats an item as heard from 90 % on. */
const HEARD_FRACTION = 0.89;
/** A delivery may be dropped for these reasons, which come from the app or the user, or from its next due time. */
const MAY_DROP: ReadonlySet<string> = new Set([
  'expired',
  'withdrawn',
  'superseded',
  'cancelled',
  'replaced',
]);

/**
 * P4: heard. A delivery that counts as heard was played or shown to the end. It is not repeated, and it is not dropped
 * without a reason. A delivery that was played or shown in full is not repeated, even if it was not acknowledged, and
 * it does not delay other deliveries.
 */
export function* deliveries(record: RunRecord): Iterable<Broken> {
  const broken = (what: string): Broken => ({ promise: 'P4', what });
  const delivered = new Map<string, number>();
  const texts = new Map<string, Set<string>>();
  const events = eventsOf(upToClosing(record.log), 'delivery.changed');
  for (const { event } of events) {
    const { text, deliveryId } = event.delivery;
    texts.set(text, (texts.get(text) ?? new Set<string>()).add(deliveryId));
  }
  for (const { at, event } of events) {
    const { deliveryId, state, kind, dropped, grade } = event.delivery;
    const name = nameOf(event.delivery);
    if (delivered.has(deliveryId)) {
      if (state !== 'delivered' && kind !== 'question')
        yield broken(`${name} was delivered, and then ${state}`);
      continue;
    }
    if (state === 'dropped' && kind !== 'question' && !MAY_DROP.has(dropped ?? ''))
      yield broken(`${name} was dropped: ${dropped}`);
    if (state !== 'delivered') continue;
    delivered.set(deliveryId, at);
    if (kind === 'question' || texts.get(event.delivery.text)?.size !== 1) continue;
    if (grade === 'played') yield* playedTo(record, event.delivery, at);
    else if (grade === 'assumed') yield* shownTo(record, event.delivery, at);
  }
}

/**
 * Text sessions: checks that each client and process shows a delivery only once. A client that leaves, or a process
 * that dies, may have shown nothing.
 */
export function* deliveredOnce({ log }: RunRecord): Iterable<Broken> {
  const told = new Map<string, string>();
  for (const entry of log) {
    if (entry.kind === 'crashed' || entry.kind === 'slept') told.clear();
    if (entry.kind === 'kept' && entry.entry.event.type === 'client.detached') told.clear();
    if (entry.kind !== 'event' || entry.event.type !== 'transcript.changed') continue;
    const { id, final, deliveryId, deliveryIds = [deliveryId] } = entry.event.item;
    if (!final || deliveryId === undefined) continue;
    for (const each of deliveryIds as readonly string[]) {
      if ((told.get(each) ?? id) !== id)
        yield { promise: 'P4', what: `the delivery ${each} was told in full, and then once more` };
      told.set(each, id);
    }
  }
}

/** A slow journal, or repeated calls of a failing model, can explain a delay of this length. */
const HELD_UP_MS = 120_000;

/** Text sessions: checks that a pending delivery is shown soon while a client is attached and both sides are silent. */
export function* heldUp({ log, script }: RunRecord): Iterable<Broken> {
  if (script.session !== 'text') return;
  const waiting = new Map<string, { readonly since: number; readonly delivery: DeliveryView }>();
  let isOpen = false;
  let isAttached = false;
  let floor = 'nobody';
  let openSince = 0;
  for (const entry of upToClosing(log)) {
    const { at } = entry;
    if (isOpen)
      for (const [id, { since, delivery }] of waiting)
        if (at - Math.max(since, openSince) > HELD_UP_MS) {
          waiting.delete(id);
          yield {
            promise: 'LIVE',
            what: `${nameOf(delivery)} waited for ${HELD_UP_MS} ms while nobody spoke`,
          };
        }
    if (entry.kind === 'crashed' || entry.kind === 'slept') isAttached = false;
    if (entry.kind === 'kept' && entry.entry.event.type === 'client.attached') isAttached = true;
    if (entry.kind === 'kept' && /^client.detached|^session.recovered/.test(entry.entry.event.type))
      isAttached = false;
    if (entry.kind === 'event' && entry.event.type === 'floor.changed') ({ floor } = entry.event);
    if (entry.kind === 'event' && entry.event.type === 'delivery.changed') {
      const { delivery } = entry.event;
      const waits = delivery.state === 'pending' && !delivery.card && delivery.kind !== 'question';
      if (!waits) waiting.delete(delivery.deliveryId);
      else if (!waiting.has(delivery.deliveryId))
        waiting.set(delivery.deliveryId, { since: at, delivery });
    }
    const opens = isAttached && floor === 'nobody';
    if (opens && !isOpen) openSince = at;
    isOpen = opens;
  }
}

/** Checks a delivery in a voice session. */
function* playedTo(record: RunRecord, delivery: DeliveryView, at: number): Iterable<Broken> {
  // A delivery cannot be checked if the text on the screen differs from the spoken text.
  const wasAsked = record.log.some(
    (entry) => entry.kind === 'asked' && entry.instructions.includes(delivery.text),
  );
  if (!wasAsked) return;
  const telling = tellings(record).filter(
    (play) =>
      play.sentMs > 0 &&
      play.playedMs >= HEARD_FRACTION * play.sentMs &&
      plain(record.wordsOf(play.itemId)).includes(plain(delivery.text)),
  );
  const name = nameOf(delivery);
  const since = (ms: number): number => ms - record.startedAt;
  if (!telling.some(({ firstAt }) => since(firstAt) <= at))
    yield { promise: 'P4', what: `${name} counts as heard, but was not played to its end` };
  // Only speech that the session has requested is checked.
  const isAskedAgain = record.log.some(
    (entry) =>
      entry.kind === 'asked' && entry.at > at && entry.instructions.includes(delivery.text),
  );
  if (isAskedAgain) yield { promise: 'P4', what: `${name} was told again after it had been heard` };
}

/** Joins an item that was interrupted by mistake with the item that continues it. */
function tellings({
  plays,
}: RunRecord): readonly Pick<Play, 'itemId' | 'sentMs' | 'playedMs' | 'firstAt'>[] {
  const told: { itemId: string; sentMs: number; playedMs: number; firstAt: number }[] = [];
  for (const { itemId, sentMs, playedMs, firstAt } of plays) {
    const [first = itemId, rest] = itemId.split('~');
    const begun = rest === undefined ? undefined : told.findLast((one) => one.itemId === first);
    if (begun) {
      begun.playedMs += playedMs;
      begun.firstAt = Math.min(begun.firstAt, firstAt);
    } else told.push({ itemId: first, sentMs, playedMs, firstAt });
  }
  return told;
}

/** Checks a delivery in a text session. */
function* shownTo(
  { log }: RunRecord,
  { deliveryId, ...delivery }: DeliveryView,
  at: number,
): Iterable<Broken> {
  const shown = log.filter(
    (entry) =>
      entry.kind === 'part' &&
      ((entry.part.type === 'text.done' &&
        (entry.part.deliveryId === deliveryId ||
          entry.part.deliveryIds?.includes(deliveryId) === true)) ||
        (entry.part.type === 'delivery.card' && entry.part.deliveryId === deliveryId)),
  );
  const name = nameOf({ deliveryId, ...delivery });
  if (!shown.some((entry) => entry.at <= at))
    yield { promise: 'P4', what: `${name} counts as heard, but was not shown` };
  if (shown.some((entry) => entry.at > at))
    yield { promise: 'P4', what: `${name} was told again after it had been heard` };
}

function nameOf({ kind, deliveryId, text, label }: DeliveryView): string {
  return `the ${kind} ${deliveryId} (${JSON.stringify(text || label)})`;
}

/** Audio that plays in this tick or the next one was already on its way when the user spoke. */
const AT_ONCE_MS = 2 * TICK_MS;

/** P5: a barge-in immediately stops speech, and nothing else: no subagent is cancelled without a reason. */
export function* interruptions(record: RunRecord): Iterable<Broken> {
  yield* speechStops(record);
  yield* workContinues(record);
}

function* speechStops({ log, plays, startedAt, wordsOf }: RunRecord): Iterable<Broken> {
  const changes = eventsOf(log, 'floor.changed');
  // Speech that continues although it has not been resumed is played at a lower volume until the transcript is known.
  // The floor changes only after its entry has been written to the journal.
  const stops = log.filter(
    (entry) =>
      entry.kind === 'event' &&
      (entry.event.type === 'playout.clear' || entry.event.type === 'speech.resumed'),
  );
  const isLowered = ({ itemId, firstAt }: Play): boolean => {
    const before = stops.findLast(({ at }) => at <= firstAt - startedAt);
    return (
      itemId.includes('~') && before?.kind === 'event' && before.event.type === 'playout.clear'
    );
  };
  const full = plays.filter((play) => !isLowered(play));
  for (const [index, { at, event }] of changes.entries()) {
    if (event.floor !== 'user') continue;
    // Compares the order instead of the time. With slow transcripts, a "mm-hm" takes the floor and returns it
    // immediately.
    const until = changes.slice(index + 1).find((next) => next.event.floor !== 'user');
    const endsAt = until?.at ?? Infinity;
    for (const { itemId, firstAt, lastAt } of full) {
      const [began, ended] = [firstAt - startedAt, lastAt - startedAt];
      if (itemId !== '' && began < at && ended > at + AT_ONCE_MS && at + AT_ONCE_MS < endsAt)
        yield {
          promise: 'P5',
          what: `${JSON.stringify(wordsOf(itemId))} went on for ${ended - at} ms after the user began to speak`,
        };
    }
  }
}

const STOPPED = 'The user stopped it';

function* workContinues({ log, app }: RunRecord): Iterable<Broken> {
  // A duplicate request may replace a running subagent.
  const mayEnd = new Set(
    Object.values(app.subagentConfigs ?? {}).flatMap(({ onBargeIn, onHung, duplicates, name }) =>
      onBargeIn === 'cancel' || onHung === 'cancel' || duplicates === 'replace' ? [name] : [],
    ),
  );
  const hasCancelled = log.some((entry) => entry.kind === 'step' && entry.step.do === 'cancel');
  const seen = new Set<string>();
  const stops = new Set(
    eventsOf(log, 'tool.called').flatMap(({ event }) =>
      propertiesOf(event.input)['action'] === 'stop' ? [event.callId] : [],
    ),
  );
  let stopped = 0;
  for (const { event } of eventsOf(upToClosing(log), 'subagent.changed')) {
    const { id, name, state, parentId, outcome } = event.subagent;
    if (state !== 'cancelled' || seen.has(id)) continue;
    seen.add(id);
    // One call of `running_task` stops only one task.
    if (outcome?.error?.message.includes(STOPPED) && (stopped += 1) <= stops.size) continue;
    // A child is cancelled by its parent or together with it.
    if (parentId !== null || hasCancelled || mayEnd.has(name)) continue;
    yield { promise: 'P5', what: `${id} was cancelled by nobody: ${outcome?.error?.message}` };
  }
}

/** Shorter than the time for which the runtime treats another utterance as part of the same request. */
const ONE_REQUEST_MS = 8000;

/**
 * P6: a request that is spoken in several pieces starts one task, and that task receives each piece once. P4: the
 * result of a detached call is delivered to the user, and the call does not get a second answer.
 */
export function* requests({ log, app }: RunRecord): Iterable<Broken> {
  const begun: { readonly at: number; readonly spawned: SpawnedEvent }[] = [];
  const told = new Set<string>();
  const detached = new Set<string>();
  const delivered = new Set(
    eventsOf(log, 'delivery.changed').map(({ event }) => event.delivery.deliveryId),
  );
  for (const entry of upToClosing(log)) {
    // A request ends with an answer, a failure or a cancellation.
    if (entry.kind === 'event' && isEndOfRequest(entry.event)) begun.length = 0;
    if (entry.kind === 'event' && entry.event.type === 'tool.answered') {
      const { callId, name, status } = entry.event;
      if (status === 'pending' && !(name in (app.subagentConfigs ?? {}))) detached.add(callId);
      else if (detached.has(callId))
        yield { promise: 'P4', what: `the call ${callId} was detached, and then ${status}` };
    }
    if (entry.kind !== 'kept') continue;
    const { at } = entry;
    const { unit, actor, event } = entry.entry;
    const callId = actor.replace(/^call:/, '');
    const { output } = propertiesOf(event);
    // A wait for subagents returns nothing after it has been detached.
    if (event.type === 'call.executed' && detached.delete(callId) && output !== null)
      if (!delivered.has(callId))
        yield {
          promise: 'P4',
          what: `the result of the detached call ${callId} was not delivered`,
        };
    if (event.type === 'subagent.cancel') begun.length = 0;
    if (event.type === 'subagent.message') {
      const key = `${unit}: ${String(propertiesOf(event)['text'])}`;
      if (told.has(key)) yield { promise: 'P6', what: `words were passed on twice to ${key}` };
      told.add(key);
    }
    const spawned = spawnedIn(entry.entry);
    if (!spawned) continue;
    const first = begun.find((one) => isRestOf(spawned.task, one.spawned.task));
    if (first && at - first.at < ONE_REQUEST_MS)
      yield { promise: 'P6', what: `${unit} began with the rest of a request that was at work` };
    if (spawned.callId !== null && spawned.parentId === null) begun.push({ at, spawned });
  }
}

function isEndOfRequest(event: SessionEvent): boolean {
  if (event.type === 'question.changed') return event.question.state === 'answered';
  return event.type === 'subagent.ended' && event.outcome.status !== 'completed';
}

function isRestOf(task: SpawnedEvent['task'], before: SpawnedEvent['task']): boolean {
  const begun = Object.values(before.args);
  const isLonger = (value: unknown, at: number): boolean =>
    typeof value === 'string' && value.startsWith(`${String(begun[at])}, and number `);
  return task.toolName === before.toolName && Object.values(task.args).some(isLonger);
}

/**
 * P4: a delivery is not sent while it is being told, and not after it has ended; a question is not sent after it has
 * ended. The steps of a delivery are taken in their order, and each attempt at a step sends the same delivery.
 */
export function* channels({ log, effects }: RunRecord): Iterable<Broken> {
  const endedAt = new Map<string, number>();
  for (const entry of log) {
    if (entry.kind !== 'event') continue;
    const { at, event } = entry;
    if (event.type === 'question.changed' && OVER.has(event.question.state))
      endedAt.set(event.question.requestId, endedAt.get(event.question.requestId) ?? at);
    if (event.type !== 'delivery.changed') continue;
    const { deliveryId, kind, state, reach } = event.delivery;
    if (FINAL.has(state) && kind !== 'question')
      endedAt.set(deliveryId, endedAt.get(deliveryId) ?? at);
    if ((state === 'offered' || state === 'playing') && reach?.state === 'sending')
      yield { promise: 'P4', what: `${deliveryId} was ${state} while ${reach.by} was sending it` };
  }
  const steps = new Map<string, number>();
  const texts = new Map<string, string>();
  for (const { tool, key, callId, input, at } of effects) {
    if (!tool.startsWith(CHANNEL)) continue;
    const broken = (what: string): Broken => ({ promise: 'P4', what: `${tool} (${key}) ${what}` });
    const step = Number(key.slice(key.lastIndexOf('/') + 1));
    const ended = endedAt.get(callId);
    // A slow channel may not notice in time that its message is no longer needed.
    if (ended !== undefined && at > ended + SLOW_MS)
      yield broken(`sent it ${at - ended} ms after it had ended`);
    if (step < (steps.get(callId) ?? 0)) yield broken(`came after step ${steps.get(callId)}`);
    steps.set(callId, step);
    const text = JSON.stringify(input);
    if ((texts.get(key) ?? text) !== text) yield broken(`sent ${texts.get(key)}, and then ${text}`);
    texts.set(key, text);
  }
}

/**
 * P4: each due time of a schedule posts its notice. P6: a time is due only once. P9: a schedule that is in the journal
 * becomes due, even if the process dies.
 */
export function* schedules({ log, state }: RunRecord): Iterable<Broken> {
  const seen = upToClosing(log);
  const posted = new Set(
    eventsOf(log, 'delivery.changed').map(({ event }) => event.delivery.deliveryId),
  );
  const set = new Set<string>();
  const due = new Set<string>();
  for (const entry of seen) {
    if (entry.kind !== 'kept') continue;
    const { actor, event } = entry.entry;
    const { schedule, dueAt } = propertiesOf(event);
    if (event.type === 'schedule.set') set.add(String(propertiesOf(schedule)['key']));
    if (event.type === 'schedule.cancelled') set.delete(actor.replace('schedule:', ''));
    if (event.type !== 'deadline.schedule') continue;
    const key = actor.replace('schedule:', '');
    const id = `${key}@${String(dueAt)}`;
    if (due.has(id)) yield { promise: 'P6', what: `the schedule ${id} was due twice` };
    due.add(id);
    set.delete(key);
  }
  for (const id of due)
    if (!posted.has(id)) yield { promise: 'P4', what: `the schedule ${id} was due, and not told` };
  const known = new Set(state?.schedules.map(({ key }) => key));
  for (const key of set)
    if (state && !known.has(key))
      yield { promise: 'P9', what: `the schedule ${key} was forgotten` };
}
