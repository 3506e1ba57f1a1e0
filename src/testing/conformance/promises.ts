// Checks the promises that every session keeps on any transport. It reads the log of a finished session and checks
// these promises: P1 to P6 and P10 of `docs/guarantees.md`, as far as a log shows them.
//
// Owns:     the judgement.
// Does not: know what a case tests. A case states to whom each utterance is addressed.

import type { SessionEvent } from '../../actors/contracts/session-views.ts';
import type { Play } from './loudspeaker.ts';
import { replyTo } from './lead-script.ts';
import type { Talk } from './talk.ts';
import { plain } from './words.ts';
import type { LogEntry } from './session-of-case.ts';

/** A client counts in whole frames, while a session counts an item as heard from 90 % on. */
const HEARD_FRACTION = 0.89;
/** An interrupted reply is matched to its utterance by this many characters at its beginning. */
const BEGINNING = 20;
const ENDED = new Set(['completed', 'failed', 'cancelled']);
const PUT = new Set(['presenting', 'open']);

/** Returns the broken promises, each as a sentence. The list is empty if all promises were kept. */
export function brokenPromises(talk: Talk): readonly string[] {
  return [
    ...oneEnding(talk.log),
    ...oneOwner(talk.log),
    ...answersReachTheirAsker(talk),
    ...kept(talk),
    ...nothingTwice(talk.log),
    ...errors(talk),
  ];
}

type Of<Type extends SessionEvent['type']> = Extract<SessionEvent, { type: Type }>;

function eventsOf<Type extends SessionEvent['type']>(
  log: readonly LogEntry[],
  type: Type,
): { readonly at: number; readonly event: Of<Type> }[] {
  return log.filter((entry): entry is { at: number; event: Of<Type> } => entry.event.type === type);
}

/** P1: each subagent ends exactly once. */
function* oneEnding(log: readonly LogEntry[]): Iterable<string> {
  const ended = new Map<string, string>();
  const seen = new Set<string>();
  for (const { event } of eventsOf(log, 'subagent.changed')) {
    const { id, state } = event.subagent;
    const before = ended.get(id);
    if (before !== undefined && before !== state) yield `P1: ${id} was ${before} and then ${state}`;
    if (ENDED.has(state)) ended.set(id, state);
    seen.add(id);
  }
  for (const id of seen) if (!ended.has(id)) yield `P1: ${id} never ended`;
}

/** P2: questions are asked one at a time, in the order in which they were requested. */
function* oneOwner(log: readonly LogEntry[]): Iterable<string> {
  const asked: string[] = [];
  const first: string[] = [];
  const put = new Set<string>();
  for (const { event } of eventsOf(log, 'question.changed')) {
    const { requestId, state } = event.question;
    if (!asked.includes(requestId)) asked.push(requestId);
    if (PUT.has(state)) put.add(requestId);
    else put.delete(requestId);
    if (PUT.has(state) && !first.includes(requestId)) first.push(requestId);
    if (put.size > 1) yield `P2: the questions ${[...put].join(' and ')} were put at once`;
  }
  const inOrder = asked.filter((requestId) => first.includes(requestId));
  if (inOrder.join() !== first.join())
    yield `P2: asked in the order ${inOrder.join(', ')}, put in the order ${first.join(', ')}`;
}

/** P3: the addressee receives the utterance, and the lead model does not reply to an utterance for a subagent. */
function* answersReachTheirAsker(talk: Talk): Iterable<string> {
  for (const { text, to } of talk.said) {
    if (to === 'nobody') continue;
    const replies = talk.client.plays.filter((play) => repliesTo(talk, play, text));
    const whole = replies.filter((play) => wasHeard(play) && tells(talk, play, text));
    if (to === 'subagent') {
      if (replies.some(({ playedMs }) => playedMs > 0))
        yield `P3: ${quote(text)} was for a subagent, and the lead model was heard to answer it`;
    } else if (whole.length > 1) yield `P3: ${quote(text)} was answered ${whole.length} times`;
    else if (whole.length === 0 && to === 'lead') {
      const isCutOff = replies.some(({ isCleared }) => isCleared);
      if (!isCutOff) yield `P3: ${quote(text)} was never answered`;
    }
  }
}

/** Returns whether the item is a reply to this text, even if the reply was interrupted. */
function repliesTo(talk: Talk, { itemId }: Play, text: string): boolean {
  const words = plain(talk.wordsOf(itemId));
  const opening = plain(replyTo(''));
  if (!words.startsWith(opening)) return opening.startsWith(words) && words !== '';
  const answered = words.slice(opening.length).trim();
  return answered.includes(plain(text)) || plain(text).startsWith(answered.slice(0, BEGINNING));
}

/** P4: each delivery that counts as heard was heard after it was created. No delivery is lost or spoken again. */
function* kept(talk: Talk): Iterable<string> {
  const delivered = new Map<string, number>();
  for (const { at, event } of eventsOf(talk.logBeforeEnd, 'delivery.changed')) {
    const { deliveryId, state, grade, text, kind, dropped, label } = event.delivery;
    const name = `the ${kind} ${quote(text || label)}`;
    if (delivered.has(deliveryId)) {
      // An unanswered question is asked again.
      if (state !== 'delivered' && kind !== 'question')
        yield `P4: ${name} was delivered, and then ${state}`;
      continue;
    }
    if (state === 'dropped' && kind !== 'question' && !talk.options.drops?.includes(dropped ?? ''))
      yield `P4: ${name} was dropped: ${dropped}`;
    if (state !== 'delivered') continue;
    delivered.set(deliveryId, at);
    if (grade !== 'played') continue;
    const telling = talk.client.plays.filter((play) => tells(talk, play, text));
    if (!telling.some((play) => play.firstAt <= at && wasHeard(play)))
      yield `P4: ${name} counts as heard, but was not played to its end`;
    if (kind !== 'question' && telling.some((play) => play.firstAt > at && wasHeard(play)))
      yield `P4: ${name} was told again after it had been heard`;
  }
}

export function tells(talk: Talk, { itemId }: Play, text: string): boolean {
  return plain(talk.wordsOf(itemId)).includes(plain(text));
}

export function wasHeard({ playedMs, sentMs }: Play): boolean {
  return sentMs > 0 && playedMs >= HEARD_FRACTION * sentMs;
}

/** P6: no call is made, answered or delegated twice. P10: each utterance goes to one place. */
const ONCE: Readonly<Partial<Record<SessionEvent['type'], readonly [string, string]>>> = {
  'tool.called': ['P6: the call', 'was taken twice'],
  'tool.answered': ['P6: the call', 'was answered twice'],
  'subagent.delegated': ['P6: the call', 'was delegated twice'],
  'utterance.routed': ['P10: the utterance', 'went to two places'],
};

export function* nothingTwice(log: readonly Pick<LogEntry, 'event'>[]): Iterable<string> {
  const seen = new Set<string>();
  for (const { event } of log) {
    const [subject, what] = ONCE[event.type] ?? [];
    if (!subject || ('status' in event && event.status === 'pending')) continue;
    const id = 'callId' in event ? event.callId : 'utteranceId' in event && event.utteranceId;
    const twice = `${subject} ${String(id)} ${what}`;
    if (seen.has(twice)) yield twice;
    seen.add(twice);
  }
}

function* errors({ log, options }: Talk): Iterable<string> {
  for (const { event } of eventsOf(log, 'error.reported'))
    if (!options.provokes?.some((part) => `${event.code}: ${event.message}`.includes(part)))
      yield `An error was reported: ${event.code}: ${event.message}`;
}

function quote(text: string): string {
  return JSON.stringify(text);
}
