// The promises about the conversation: questions, deliveries and interruptions.

import { propertiesOf } from '../../../values/json.ts';
import type { DeliveryView, QuestionView } from '../../../actors/contracts/session-views.ts';
import { plain } from '../../conformance/words.ts';
import { eventsOf, type LogEntry, type RunRecord } from '../log/log.ts';
import type { Broken } from './broken.ts';
import type { Play } from '../../conformance/loudspeaker.ts';
import { TICK_MS } from '../../conformance/client.ts';

const PUT: ReadonlySet<string> = new Set(['presenting', 'open', 'parked']);
const SAYS_YES = /^(yes|Yes)\b/;

interface Asked {
  view: QuestionView;
  /** The user's words, typed texts and clicks while the question was shown. */
  readonly tried: string[];
  accepted: number;
}

/**
 * P2: at most one question owns the user's words, in asking order. P3: the user gave the answer to that question while
 * it was shown, and the answer reaches the asking subagent unchanged.
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
  const asked = known ?? { view, tried: [], accepted: 0 };
  asked.view = view;
  book.set(requestId, asked);
  if (isOver(before) && before !== state)
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

function* answered({ view, tried: words }: Asked): Iterable<Broken> {
  const { requestId, answer, kind } = view;
  if (!words.some((one) => means(one, view)))
    yield {
      promise: 'P3',
      what: `the ${kind} ${requestId} was answered with ${JSON.stringify(answer)}; the user had said to it only: ${words.map((one) => JSON.stringify(one)).join(', ') || 'nothing'}`,
    };
}

function means(words: string, { answer, kind, options }: QuestionView): boolean {
  if (answer === null) return false;
  if (kind === 'approval') return SAYS_YES.test(words) === SAYS_YES.test(answer);
  const said = plain(words);
  const option = options.find(({ label }) => label === answer);
  return said === plain(answer) || (option !== undefined && said.includes(plain(answer)));
}

/** Records an entry that may be an answer. */
function* tried(book: Map<string, Asked>, entry: LogEntry): Iterable<Broken> {
  if (entry.kind === 'said') {
    // Spoken words settle later: they count for every question shown until then.
    for (const asked of book.values()) if (!isOver(asked.view.state)) asked.tried.push(entry.words);
  } else if (entry.kind === 'clicked') {
    const asked = book.get(entry.requestId);
    if (asked && !isOver(asked.view.state)) asked.tried.push(inWords(asked.view, entry));
  } else if (entry.kind === 'receipt' && entry.receipt.accepted) {
    const asked = book.get(entry.requestId);
    if (!asked) return;
    asked.accepted += 1;
    const { answer, state } = asked.view;
    const words = inWords(asked.view, entry);
    if (asked.accepted > 1)
      yield { promise: 'P3', what: `${entry.requestId} accepted ${asked.accepted} answers` };
    else if (state !== 'answered' || plain(answer ?? '') !== plain(words))
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

/** Checks that the asking subagent's ledger contains the given answer. */
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

function isOver(state: string): boolean {
  return !PUT.has(state) && state !== 'queued';
}

/** A client counts in frames, and a session counts an item as heard from 90 %. */
const HEARD_FRACTION = 0.89;
/** The reasons why the app or the user causes a drop. */
const MAY_DROP: ReadonlySet<string> = new Set(['expired', 'withdrawn', 'superseded', 'cancelled']);

/**
 * P4: heard. A delivery that counts as heard was played or shown to the end; it is not told again, nor dropped without
 * a reason. A delivery that was told in full is told once, even without an acknowledgement, and delays no other.
 */
export function* deliveries(record: RunRecord): Iterable<Broken> {
  const broken = (what: string): Broken => ({ promise: 'P4', what });
  const delivered = new Map<string, number>();
  const texts = new Map<string, Set<string>>();
  const events = eventsOf(upToClosing(record), 'delivery.changed');
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
 * In text: checks that a delivery is told once per client and process. A client that leaves, or a process that dies,
 * may have delivered nothing.
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

/** The time that a slow journal, or a repeated call of a failing model, can explain. */
const HELD_UP_MS = 120_000;

/** In text: checks that a pending delivery is told soon while a client is attached and both sides are silent. */
export function* heldUp({ log, script }: RunRecord): Iterable<Broken> {
  if (script.session !== 'text') return;
  const waiting = new Map<string, { readonly since: number; readonly delivery: DeliveryView }>();
  let isOpen = false;
  let isAttached = false;
  let floor = 'nobody';
  let openSince = 0;
  for (const entry of upToClosing({ log } as RunRecord)) {
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

/** Checks a voice delivery. */
function* playedTo(record: RunRecord, delivery: DeliveryView, at: number): Iterable<Broken> {
  // The check is impossible if the text on the screen differs from the spoken words.
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
  // Speech that the session did not request is not checked.
  const isAskedAgain = record.log.some(
    (entry) =>
      entry.kind === 'asked' && entry.at > at && entry.instructions.includes(delivery.text),
  );
  if (isAskedAgain) yield { promise: 'P4', what: `${name} was told again after it had been heard` };
}

/** Joins the item that continues after a false interruption to the interrupted item. */
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

/** Checks a text delivery. */
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

function upToClosing({ log }: RunRecord): RunRecord['log'] {
  const end = log.findIndex(({ kind }) => kind === 'closing');
  return end < 0 ? log : log.slice(0, end);
}

function nameOf({ kind, deliveryId, text, label }: DeliveryView): string {
  return `the ${kind} ${deliveryId} (${JSON.stringify(text || label)})`;
}

/** Audio that played in this tick and the next was already on its way when the user spoke. */
const AT_ONCE_MS = 2 * TICK_MS;

/** P5: a barge-in stops speech at once, and nothing else: no subagent is cancelled without a reason. */
export function* interruptions(record: RunRecord): Iterable<Broken> {
  yield* speechStops(record);
  yield* workContinues(record);
}

function* speechStops({ log, plays, startedAt, wordsOf }: RunRecord): Iterable<Broken> {
  const changes = eventsOf(log, 'floor.changed');
  // Speech that continues without being resumed is lowered until the words are known. The floor changes later while its
  // entry is being written to the journal.
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
    // Compares order instead of time: with slow transcripts, a "mm-hm" takes and returns the floor at once.
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

function* workContinues({ log, app }: RunRecord): Iterable<Broken> {
  const end = log.findIndex(({ kind }) => kind === 'closing');
  // A duplicate may be replaced.
  const mayEnd = new Set(
    Object.values(app.subagentConfigs ?? {}).flatMap(({ onBargeIn, onHung, duplicates, name }) =>
      onBargeIn === 'cancel' || onHung === 'cancel' || duplicates === 'replace' ? [name] : [],
    ),
  );
  const hasCancelled = log.some((entry) => entry.kind === 'step' && entry.step.do === 'cancel');
  const seen = new Set<string>();
  for (const { event } of eventsOf(log.slice(0, end < 0 ? log.length : end), 'subagent.changed')) {
    const { id, name, state, parentId, outcome } = event.subagent;
    if (state !== 'cancelled' || seen.has(id)) continue;
    seen.add(id);
    // A child is cancelled together with its parent, or by its parent.
    if (parentId !== null || hasCancelled || mayEnd.has(name)) continue;
    yield { promise: 'P5', what: `${id} was cancelled by nobody: ${outcome?.error?.message}` };
  }
}
