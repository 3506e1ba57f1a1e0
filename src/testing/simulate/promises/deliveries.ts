// P4: heard. What counts as heard was played, or shown, to its end; and nothing is told again
// after that, nor dropped without a reason.

import type { DeliveryView } from '../../../actors/session-views.ts';
import type { Play } from '../../conformance/loudspeaker.ts';
import { plain } from '../../conformance/words.ts';
import { eventsOf, type RunRecord } from '../log.ts';
import type { Broken } from './broken.ts';

/** A client counts in frames, and a session takes 90 % for all. */
const HEARD_FRACTION = 0.89;
/** An app, or the user, has these dropped. */
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

/** By voice. */
function* playedTo(record: RunRecord, delivery: DeliveryView, at: number): Iterable<Broken> {
  // Where the words for the screen are others than those for the ear, nobody can tell.
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
  // What the model says of its own accord is its own affair.
  const isAskedAgain = record.log.some(
    (entry) =>
      entry.kind === 'asked' && entry.at > at && entry.instructions.includes(delivery.text),
  );
  if (isAskedAgain) yield { promise: 'P4', what: `${name} was told again after it had been heard` };
}

/** What goes on after a false interruption, as an item of its own, belongs to what it goes on with. */
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

/** In text. */
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
