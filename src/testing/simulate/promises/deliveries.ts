// P4: heard. A delivery that counts as heard was played, or shown, to its end; it is not told again after
// that, nor dropped without a reason. A delivery that was told in full is told once, also if no client
// acknowledges it, and delays no other.

import type { DeliveryView } from '../../../actors/contracts/session-views.ts';
import type { Play } from '../../conformance/loudspeaker.ts';
import { plain } from '../../conformance/words.ts';
import { eventsOf, type RunRecord } from '../log/log.ts';
import type { Broken } from './broken.ts';

/** A client counts in frames, and a session accepts 90 % as the whole. */
const HEARD_FRACTION = 0.89;
/** Reasons for which the app or the user has a delivery dropped. */
const MAY_DROP: ReadonlySet<string> = new Set(['expired', 'withdrawn', 'superseded', 'cancelled']);

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

/** In text: a client that leaves, or a process that dies, may have received nothing of it. */
export function* toldOnce({ log }: RunRecord): Iterable<Broken> {
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

/** A slow journal, or a repeated call of a failing model, explains as much. */
const HELD_UP_MS = 120_000;

/** In text: a waiting delivery is told soon, while a client is attached and both parties are silent. */
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

/** Checks a delivery by voice. */
function* playedTo(record: RunRecord, delivery: DeliveryView, at: number): Iterable<Broken> {
  // If the words for the screen differ from the words for the ear, the check is impossible.
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
  // Unrequested speech of the model is not checked.
  const isAskedAgain = record.log.some(
    (entry) =>
      entry.kind === 'asked' && entry.at > at && entry.instructions.includes(delivery.text),
  );
  if (isAskedAgain) yield { promise: 'P4', what: `${name} was told again after it had been heard` };
}

/** The continuation after a false interruption, an item of its own, belongs to the interrupted item. */
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

/** Checks a delivery in text. */
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
