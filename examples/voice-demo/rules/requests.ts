// Understands what a user asks for: an utterance may contain several requests, or the detail that the lead agent asked
// for.

import { findDateRange } from '../agents/date-range.ts';
import {
  cleanPlace,
  partySizeWord,
  readClause,
  UNNAMED_WISH,
  workIn,
  type Request,
} from './clause.ts';
import { normalise, numberIn } from './words.ts';

/** The detail that a lead agent has just asked for. */
export type Slot = 'destination' | 'partySize' | 'dateRange' | 'work' | 'retry';

/** All requests of an utterance, in order; never empty. */
export function understand(utterance: string, slot: Slot | null = null): readonly Request[] {
  const filled = slot && fillSlot(slot, utterance);
  if (filled) return [filled];
  // "Don't do anything yet. I need …" starts nothing.
  if (isPutOff(utterance)) return [{ type: 'wait' }];
  const requests: Request[] = [];
  let unread = '';
  let before = '';
  for (const clause of clausesOf(utterance)) {
    const previous = requests.at(-1);
    const words = `${unread}${clause}`;
    // "Cancel, the ride": a recogniser puts commas where people breathe.
    const joined = readClause(`${before} ${clause}`);
    if (previous && isHalf(previous) && isBareNoun(clause) && !isHalf(joined)) {
      requests.pop();
      requests.push(joined);
      continue;
    }
    before = words;
    // "Not to the airport, to the station" is one change.
    const changed =
      previous?.type === 'tell'
        ? readClause(`${previous.words.replace(/\.$/, '')}, ${clause}`)
        : null;
    if (changed?.type === 'tell' && /^(?:to|for|the|on|at|in)\b/.test(normalise(clause))) {
      requests.pop();
      requests.push(changed);
      continue;
    }
    const alone = readClause(clause);
    const request =
      (alone.type === 'tell' ? alone : null) ??
      followUp(normalise(words), previous) ??
      richer(readClause(words), alone);
    if (request.type === 'unknown') {
      unread = `${words} and `;
      continue;
    }
    unread = '';
    // "Book me a ride. To the airport." is one request.
    if (request.type === 'ride' && previous?.type === 'ride' && previous.destination === null)
      requests.pop();
    requests.push(request);
  }
  if (requests.length === 0 || (unread !== '' && requests.length === 1)) {
    // Clauses that mean nothing on their own belong to their neighbours, so the whole utterance is read as one clause.
    const whole = readClause(utterance);
    const [read = whole] = requests;
    const request = richer(whole, read);
    if (request.type !== 'unknown' || requests.length === 0) return [request];
  }
  // "Can you book me and ride to the airport": half a request next to a complete one is not a separate
  // request.
  const isWhole = (request: Request): boolean =>
    request.type !== 'chat' && !(request.type === 'unsupported' && request.wish === UNNAMED_WISH);
  const whole = requests.filter(isWhole);
  if (whole.length > 0) return whole;
  const wishes = requests.filter(({ type }) => type !== 'chat');
  return wishes.length > 0 ? wishes : requests.slice(-1);
}

const isPutOff = (utterance: string): boolean =>
  clausesOf(utterance).some((clause) => readClause(clause).type === 'wait');

/** The requests in an utterance that also asks to wait with them. */
export function putOff(utterance: string): readonly Request[] {
  if (!isPutOff(utterance)) return [];
  const rest = clausesOf(utterance).filter((clause) => readClause(clause).type !== 'wait');
  return rest.length === 0 ? [] : understand(rest.join(', '));
}

/**
 * The first of two interpretations of a request, unless only the second has the detail: "To give them. A ride to the
 * airport".
 */
function richer(first: Request, other: Request): Request {
  return first.type === other.type && hasDetail(other) && !hasDetail(first) ? other : first;
}

/** Whether the request is a verb whose object has not been said yet. */
function isHalf(request: Request): boolean {
  if (request.type === 'unsupported') return request.wish === UNNAMED_WISH;
  return request.type === 'unknown' || (request.type === 'cancel' && request.work === 'unclear');
}

function isBareNoun(clause: string): boolean {
  return /^(?:the|my|an?|this|that) /.test(normalise(clause));
}

function hasDetail(request: Request): boolean {
  return Object.values(request).every((value) => value !== null);
}

/** The request, if the utterance supplies the detail that the lead agent asked for; otherwise null. */
function fillSlot(slot: Slot, utterance: string): Request | null {
  const plain = normalise(utterance);
  const whole = readClause(utterance);
  if (whole.type === 'chat' && slot !== 'retry') return null;
  switch (slot) {
    case 'destination': {
      if (whole.type !== 'unknown' && whole.type !== 'ride') return null;
      if (whole.type === 'ride' && whole.destination) return whole;
      if (/^(?:what|how|why|who|when|can|could|do|does|is|are)\b/.test(plain)) return null;
      const destination = cleanPlace(plain);
      return destination ? { type: 'ride', destination } : null;
    }
    case 'partySize': {
      const partySize = numberIn(plain) ?? partySizeWord(plain);
      if (whole.type !== 'unknown' && whole.type !== 'table' && whole.type !== 'tell') return null;
      return partySize === null ? null : { type: 'table', partySize };
    }
    case 'dateRange': {
      const dateRange = findDateRange(utterance);
      if (whole.type !== 'unknown' && whole.type !== 'report' && whole.type !== 'tell') return null;
      return dateRange ? { type: 'report', dateRange } : null;
    }
    case 'work': {
      const work = workIn(plain);
      return work === 'unclear' ? null : { type: 'cancel', work };
    }
    case 'retry':
      return null;
  }
}

function clausesOf(utterance: string): string[] {
  return utterance
    .split(
      // A recogniser often writes "in the table" for "and a table".
      /[.?!;,]+\s+|\s+(?:and then|and also|as well as|and|then|also|plus)\s+|\s+in (?=(?:the|a) (?:table|report|sales)\b)/i,
    )
    .map((clause) => clause.trim())
    .filter((clause) => normalise(clause) !== '');
}

/** "… and one to the station" continues the request before it. */
function followUp(plain: string, previous: Request | undefined): Request | null {
  if (previous?.type !== 'ride') return null;
  const more = /^(?:(?:another|a second|one more|one)(?: (?:one|ride|cab|taxi))? )?to (.+)$/.exec(
    plain,
  );
  const destination = more?.[1] && cleanPlace(more[1]);
  return destination ? { type: 'ride', destination } : null;
}
