// Explores every state of a question and checks its properties (QUESTION-1 to QUESTION-12).
//
// Time: each presentation and each interval in `open` starts at 0. The key omits times and includes the rest of the
// user's time (3, 2, 1 or 0). An utterance started before the question was played (-1), when it was played (0), when it
// had been heard in full (1), or when something else had been spoken (2).

import {
  questionMachine,
  type QuestionEvent,
  type QuestionSnapshot,
} from '../../../src/machines/index.ts';
import { checkMachine } from '../../../src/testing/check/index.ts';
import { paramsOf, same, started, running } from './effects.ts';
import type { OnViolation } from './verdicts.ts';

export const questionInput = { requestId: 'q', timeoutMs: 3 } as const;

type Machine = typeof questionMachine;
type S = QuestionSnapshot;
type Answer = Extract<QuestionEvent, { type: 'question.answer' }>;
type Settlement = Extract<QuestionEvent, { type: 'question.settle' }>;
type Begun = Extract<QuestionEvent, { type: 'reading.begun' }>;
type Ended = Extract<QuestionEvent, { type: 'reading.ended' }>;

/** The current presentation so far, and the accepted answer. */
interface Ghost {
  readonly shown: boolean;
  readonly played: boolean;
  /** The time at which the question was heard in full: -1 if unknown, null if it was not. */
  readonly heardAt: number | null;
  /** Something else has been spoken since then, or the read-back of the question is due. */
  readonly followedAt: number | null;
  /** The question is read back after the lead agent's reply. */
  readonly awaitsReply: boolean;
  /** The timeout has started. A question that is only a card is no longer spoken. */
  readonly begun: boolean;
  /** The question was shown or played in this presentation or an earlier one. That is enough for a button. */
  readonly put: boolean;
  readonly accepted: Omit<Answer, 'at'> | null;
  /** All presentations so far, and whether an utterance has settled the question. */
  readonly ever: {
    readonly shown: boolean;
    readonly played: boolean;
    readonly heardAt: number | null;
  };
  readonly isSettled: boolean;
  /** The utterance that a model is interpreting. */
  readonly read: Omit<Begun, 'at' | 'type'> | null;
  /** A yes that only a model recognised is or was read back. */
  readonly affirmed: boolean;
  /** The interpretation that answered the question. */
  readonly answeredBy: Readonly<
    Record<'isThis' | 'isInTime' | 'isConsent' | 'affirmed' | 'counts', boolean>
  > | null;
}

/** The events with which the user asks to hear the question again. */
const RENEWS: ReadonlySet<string> = new Set([
  'question.repeat',
  'question.readBack',
  'reply.ended',
  'deadline.reminder',
  'deadline.reading',
  'reading.ended',
]);
const isPutAnew = (before: S, after: S): boolean =>
  after.matches('presenting') && !before.matches('presenting');

const unput = {
  shown: false,
  played: false,
  heardAt: null,
  followedAt: null,
  awaitsReply: false,
  begun: false,
  put: false,
} as const;
export const HEARD_AT = 1;
export const FOLLOWED_AT = 2;
const isOpen = (snapshot: S): boolean => snapshot.matches('open');
const isHeld = (snapshot: S): boolean => snapshot.matches('held');
const isReading = (snapshot: S): boolean => snapshot.matches('reading');
/** Whether the question is put again with the remaining time or as a new presentation. */
const isAway = (snapshot: S): boolean => isHeld(snapshot) || isReading(snapshot);
const isHeldAnew = (before: S, { type }: { readonly type: string }, after: S): boolean =>
  isHeld(after) && (type === 'question.hold' || !isHeld(before));
const remindAt = 2;
const nowOf = ({ context }: S): number => context.dueAt - context.remainingMs;

const answers: readonly Omit<Answer, 'at'>[] = [
  ...[true, false].flatMap((decisive) =>
    [-1, 0, HEARD_AT, FOLLOWED_AT, null].map((utteranceStartedAt) => ({
      type: 'question.answer' as const,
      channel: 'speech' as const,
      utteranceStartedAt,
      decisive,
    })),
  ),
  ...(['typing', 'button'] as const).map((channel) => ({
    type: 'question.answer' as const,
    channel,
    utteranceStartedAt: null,
    decisive: true,
  })),
];

const button = answers.find(({ channel }) => channel === 'button') as Omit<Answer, 'at'>;

const settlements: readonly Omit<Settlement, 'at'>[] = [-1, 0, HEARD_AT].flatMap((saidAt) =>
  [true, false].flatMap((decisive) =>
    (['speech', 'typing'] as const).map((channel) => ({
      type: 'question.settle' as const,
      channel,
      saidAt,
      decisive,
    })),
  ),
);

/** QUESTION-9 */
function maySettle({ ever }: Ghost, { channel, saidAt, decisive }: Omit<Settlement, 'at'>) {
  if (saidAt < 0) return false;
  if (channel === 'typing') return ever.shown || ever.played;
  return ever.played && (decisive || (ever.heardAt !== null && ever.heardAt <= saidAt));
}

/** QUESTION-1, QUESTION-2, QUESTION-3, QUESTION-10 */
function wordsCount(
  { shown, played, heardAt, followedAt, begun }: Ghost,
  { channel, utteranceStartedAt: began, decisive }: Omit<Answer, 'at'>,
): boolean {
  if (channel === 'typing') return followedAt === null && (played || (shown && begun));
  return (
    played &&
    began !== null &&
    began >= 0 &&
    began < (followedAt ?? Infinity) &&
    (decisive || (heardAt !== null && heardAt <= began))
  );
}

/** The utterance that a model interprets, as a question for the tables' rules. */
function readCounts(ghost: Ghost): boolean {
  if (!ghost.read) return false;
  const { channel, startedAt } = ghost.read;
  const said = { type: 'question.answer', channel, decisive: false } as const;
  const isLast = startedAt < (ghost.followedAt ?? Infinity);
  return channel === 'typing'
    ? isLast && (ghost.played || (ghost.shown && ghost.begun))
    : wordsCount(ghost, { ...said, utteranceStartedAt: startedAt });
}

const begun: readonly Omit<Begun, 'at'>[] = (
  [
    ['speech', -1],
    ['speech', HEARD_AT],
    ['typing', HEARD_AT],
  ] as const
).map(([channel, startedAt]) => ({
  type: 'reading.begun',
  utteranceId: 'first',
  channel,
  startedAt,
}));

function readingEvents(snapshot: S, at: number): QuestionEvent[] {
  const events: QuestionEvent[] = begun.map((words) => ({ ...words, at }));
  if (!isReading(snapshot)) return events;
  const { words, readBy = 0 } = snapshot.context;
  const utteranceId = words?.utteranceId ?? '';
  for (const gives of ['consent', 'answer', 'again', 'nothing'] as const) {
    const ended = { type: 'reading.ended', gives } as const;
    // In addition to the interpretation in time: one of an earlier utterance, and one that comes too late.
    events.push(
      { ...ended, utteranceId, at },
      { ...ended, utteranceId: 'earlier', at },
      { ...ended, utteranceId, at: readBy + 1 },
    );
  }
  return [
    ...events,
    { type: 'deadline.reading', at, dueAt: readBy },
    { type: 'deadline.reading', at, dueAt: readBy + 1 },
  ];
}

function questionEvents(snapshot: S): readonly QuestionEvent[] {
  const { dueAt, remainingMs } = snapshot.context;
  const at = isOpen(snapshot) ? nowOf(snapshot) : 0;
  const events: QuestionEvent[] = [
    { type: 'question.granted', at, epoch: 1 },
    { type: 'question.granted', at, epoch: 2 },
    { type: 'question.shown', at, startsClock: true },
    { type: 'question.shown', at, startsClock: false },
    { type: 'question.playing', at },
    { type: 'question.heard', at },
    { type: 'question.heard', at, heardAt: HEARD_AT },
    { type: 'question.followed', at: FOLLOWED_AT },
    { type: 'question.readBack', at },
    { type: 'question.readBack', at: FOLLOWED_AT, after: 'reply' },
    { type: 'reply.ended', at },
    { type: 'question.hold', at, remindAt },
    { type: 'question.repeat', at },
    { type: 'question.nudge', at },
    { type: 'question.withdraw', at, reason: 'the asker gave it up' },
    { type: 'question.supersede', at },
    { type: 'client.attached', at },
    { type: 'client.detached', at },
    { type: 'deadline.answer', at: dueAt, dueAt },
    { type: 'deadline.answer', at: dueAt + 1, dueAt: dueAt + 1 },
    ...[...answers, ...settlements].map((answer) => ({ ...answer, at })),
  ];
  // A late deadline changes nothing. It can occur only while the question is held.
  if (isHeld(snapshot)) events.push({ type: 'deadline.reminder', at: remindAt, dueAt: remindAt });
  if (isOpen(snapshot) && remainingMs > 0) {
    events.push({ type: 'client.detached', at: at + 1 });
    events.push({ type: 'client.detached', at: at + remainingMs });
  }
  return events;
}

/** The events that the scope `model` has in addition to those of a model's interpretation. */
const BESIDE_READINGS: ReadonlySet<string> = new Set([
  'question.granted',
  'question.shown',
  'question.playing',
  'question.heard',
  'question.followed',
  'question.hold',
  'question.repeat',
  'question.withdraw',
  'client.attached',
  'client.detached',
  'deadline.answer',
  'deadline.reminder',
]);

const isBesideReadings = (event: QuestionEvent): boolean =>
  BESIDE_READINGS.has(event.type) ||
  (event.type === 'question.answer' && event.channel === 'button');

/** The properties of interpretations, which require their events. */
const READINGS = /QUESTION-1[12]|that only a model read|^reading ends/;

/** Omits the properties whose events do not occur in the scope. */
function inScope<Properties extends object>(scope: Scope, all: Properties): Properties {
  return Object.fromEntries(
    Object.entries(all).filter(([name]) =>
      scope === 'beside' || name.startsWith('QUESTION-14')
        ? scope === 'beside' && name.startsWith('QUESTION-14')
        : READINGS.test(name) === (scope === 'model'),
    ),
  ) as Properties;
}

/**
 * `tables`: everything except a model's interpretations. `model`: only those interpretations and the events that affect
 * them. `beside`: a question that may be opened beside the floor.
 */
export type Scope = 'tables' | 'model' | 'beside';

/** Explores the question machine or a faulty version of it. */
export function checkQuestion(
  machine: Machine = questionMachine,
  onViolation: OnViolation = 'collect',
  scope: Scope = 'tables',
) {
  return checkMachine<Machine, Ghost>(machine, {
    name: 'question',
    input: questionInput,
    onViolation,
    key: ({ value, context }) => {
      const { dueAt: _, readBy: __, words, ...rest } = context;
      const { shownAt, playingSince, heardAt, followedAt, ever, ...kept } = rest;
      const moments = [
        shownAt,
        playingSince,
        heardAt,
        followedAt,
        ever?.shownAt,
        ever?.playingSince,
      ];
      return [
        value,
        kept,
        value === 'reading' ? words : null,
        ever?.heard,
        ...[...moments, ever?.heardAt]
          .map((moment) => moment ?? null)
          .map((moment) => moment !== null),
      ];
    },
    events: (snapshot) => {
      const events = questionEvents(snapshot);
      if (scope === 'tables') return events;
      const at = isOpen(snapshot) ? nowOf(snapshot) : 0;
      if (scope === 'beside')
        return [
          { type: 'question.opened', at },
          ...events.filter(({ type }) => type === 'question.answer' || BESIDE_READINGS.has(type)),
        ];
      return [...events.filter(isBesideReadings), ...readingEvents(snapshot, at)];
    },
    ghost: {
      initial: {
        ...unput,
        accepted: null,
        ever: { shown: false, played: false, heardAt: null },
        isSettled: false,
        read: null,
        affirmed: false,
        answeredBy: null,
      },
      next(known, { event, effects, outcome }, before, after) {
        if (outcome !== 'taken') return known;
        const ghost = isReading(after) ? known : { ...known, read: null };
        if (event.type === 'reading.begun') {
          const { at: _, type: __, ...read } = event as unknown as Begun;
          return { ...ghost, read };
        }
        if (event.type === 'reading.ended') {
          const ended = event as unknown as Ended;
          const counts = readCounts(known);
          const { affirmed } = known;
          if (after.matches('answered'))
            return {
              ...ghost,
              answeredBy: {
                isThis: ended.utteranceId === known.read?.utteranceId,
                isInTime: ended.at <= (before.context.readBy ?? 0),
                isConsent: ended.gives === 'consent',
                affirmed,
                counts,
              },
            };
          if (ended.gives === 'consent' && counts)
            return {
              ...ghost,
              ...(isOpen(after)
                ? { played: false, heardAt: null, followedAt: FOLLOWED_AT, awaitsReply: false }
                : unput),
              affirmed: true,
            };
        }
        if (event.type === 'question.followed')
          return { ...ghost, followedAt: ghost.followedAt ?? FOLLOWED_AT };
        if (event.type === 'question.settle') return { ...ghost, isSettled: true };
        const isAnew = isAway(before) && after.matches('presenting');
        const begun = ghost.begun || isOpen(after);
        if (event.type === 'question.opened') return { ...ghost, begun, put: true };
        if (event.type === 'question.readBack' && event.after === 'reply')
          return { ...ghost, followedAt: ghost.followedAt ?? FOLLOWED_AT, awaitsReply: true };
        if ((event.type === 'reply.ended' || event.type === 'question.readBack') && !isAnew)
          return {
            ...ghost,
            begun,
            played: false,
            heardAt: null,
            followedAt: ghost.followedAt ?? FOLLOWED_AT,
            awaitsReply: false,
          };
        // The same presentation is spoken again. Any other presentation is a new one.
        if (event.type === 'question.nudge') return ghost;
        if (event.type === 'question.repeat' && after.matches(before.value)) return ghost;
        if (isAway(before) && isOpen(after)) return ghost;
        if (paramsOf(effects, 'present').length > 0) return { ...ghost, ...unput };
        switch (event.type) {
          case 'question.shown':
            return {
              ...ghost,
              begun,
              shown: true,
              put: true,
              ever: { ...ghost.ever, shown: true },
              ...(!isOpen(before) && isOpen(after) && { followedAt: null, awaitsReply: false }),
              // The card was shown last, but something else was heard last.
              ...(!isOpen(before) &&
                isOpen(after) &&
                ghost.followedAt !== null && { played: false, heardAt: null }),
            };
          case 'question.playing':
            return {
              ...ghost,
              played: true,
              put: true,
              ever: { ...ghost.ever, played: true },
              ...(ghost.followedAt !== null && { heardAt: null }),
              followedAt: null,
              awaitsReply: false,
            };
          case 'question.heard': {
            const { heardAt = -1 } = event as { readonly heardAt?: number };
            return {
              ...ghost,
              begun,
              played: true,
              ...(!ghost.played && { followedAt: null, awaitsReply: false }),
              heardAt: ghost.heardAt ?? heardAt,
              put: true,
              ever: { ...ghost.ever, played: true, heardAt: ghost.ever.heardAt ?? heardAt },
            };
          }
          case 'question.answer': {
            const { at: _, ...accepted } = event as unknown as Answer;
            return { ...ghost, accepted };
          }
          default:
            return ghost;
        }
      },
    },
    invariants: {
      'QUESTION-8: it is asked again twice at most': ({ context }) => (context.nudges ?? 0) <= 2,
      'QUESTION-1: nothing answers it before it was put to the user': (_snapshot, ghost) => {
        if (ghost.accepted === null) return true;
        if (ghost.accepted.channel === 'button') return ghost.put;
        return ghost.accepted.channel === 'speech' ? ghost.played : ghost.shown || ghost.played;
      },
      'QUESTION-1: a button counts once it was shown or plays': (snapshot, ghost) =>
        !snapshot.hasTag('answerable') ||
        !(ghost.shown || ghost.played) ||
        snapshot.can({ ...button, at: 0 }),
      'QUESTION-1: that it plays or was heard is never missed': (snapshot, ghost) =>
        !snapshot.hasTag('answerable') ||
        ((ghost.played || snapshot.can({ type: 'question.playing', at: 0 })) &&
          (ghost.heardAt !== null || snapshot.can({ type: 'question.heard', at: 0 }))),
      'QUESTION-2: what was said before it played does not answer it': (_snapshot, { accepted }) =>
        accepted?.channel !== 'speech' || (accepted.utteranceStartedAt ?? -1) >= 0,
      'QUESTION-3: speech that begins before it was heard is decisive': (_snapshot, ghost) => {
        const { accepted, heardAt } = ghost;
        if (accepted?.channel !== 'speech' || accepted.decisive) return true;
        return heardAt !== null && heardAt <= (accepted.utteranceStartedAt ?? -1);
      },
      'QUESTION-10: no words answer it once something else was said': (_snapshot, ghost) => {
        const { accepted, followedAt } = ghost;
        if (followedAt === null || accepted === null || accepted.channel === 'button') return true;
        return accepted.channel === 'speech' && (accepted.utteranceStartedAt ?? 0) < followedAt;
      },
      'QUESTION-10: words to what was said last count': (snapshot, ghost) =>
        !snapshot.hasTag('answerable') ||
        answers
          .filter(({ channel }) => channel !== 'button')
          .every((answer) => !wordsCount(ghost, answer) || snapshot.can({ ...answer, at: 0 })),
      'QUESTION-10: it can always be put again': (snapshot, ghost) =>
        !isOpen(snapshot) ||
        ghost.followedAt === null ||
        snapshot.can({ type: 'question.playing', at: FOLLOWED_AT }),
      'QUESTION-9: words that began after it was first put settle it, and no others': (
        snapshot,
        ghost,
      ) =>
        snapshot.status === 'done' ||
        settlements.every(
          (settlement) => snapshot.can({ ...settlement, at: 0 }) === maySettle(ghost, settlement),
        ),
      'QUESTION-4: its deadline is armed in open only': (snapshot) =>
        same(
          running(snapshot),
          isOpen(snapshot)
            ? ['deadline']
            : isHeld(snapshot)
              ? ['reminder']
              : isReading(snapshot)
                ? ['read', 'reading']
                : [],
        ),
      'QUESTION-11: only the reading that it waits for answers it, in time': (
        _snapshot,
        { answeredBy },
      ) => answeredBy === null || (answeredBy.isThis && answeredBy.isInTime),
      'QUESTION-12: a yes that only a model read answers it only after it was read back': (
        _snapshot,
        { answeredBy },
      ) => !answeredBy?.isConsent || answeredBy.affirmed,
      'QUESTION-12: read words answer it only if it was the last thing said': (
        _snapshot,
        { answeredBy },
      ) => answeredBy?.counts !== false,
    },
    steps: {
      'QUESTION-14: opened beside the floor, its clock runs at once, and nothing is said': (
        _before,
        { type },
        after,
        effects,
      ) =>
        type !== 'question.opened' ||
        (isOpen(after) &&
          after.context.epoch === 0 &&
          after.context.shownAt === null &&
          paramsOf(effects, 'present').length === 0 &&
          after.can({ ...button, at: 0 })),
      'QUESTION-1: nothing answers it but an answer': (before, { type }, after) =>
        before.matches('answered') ||
        !after.matches('answered') ||
        type === 'question.answer' ||
        type === 'reading.ended' ||
        type === 'question.settle',
      'QUESTION-4: the clock starts in open and stands still outside': (before, { at }, after) => {
        const [was, is] = [before.context, after.context];
        if (isOpen(after) && !isOpen(before)) {
          return (
            is.dueAt === (at as number) + was.remainingMs && is.remainingMs === was.remainingMs
          );
        }
        if (isOpen(before) && !isOpen(after)) {
          return is.remainingMs === Math.max(0, was.dueAt - (at as number));
        }
        return is.remainingMs === was.remainingMs && is.dueAt === was.dueAt;
      },
      'QUESTION-4: it starts when heard, or when shown and that is all it gets': (
        before,
        event,
        after,
      ) =>
        isOpen(before) ||
        !isOpen(after) ||
        (isAway(before) && before.context.hasBegun) ||
        event.type === 'question.heard' ||
        event.type === 'question.opened' ||
        (event.type === 'question.shown' && event.startsClock),
      'QUESTION-4 QUESTION-7: the deadline is that of the answer, or of the hold': (
        before,
        event,
        after,
        effects,
      ) => {
        const entered = isOpen(after) && !isOpen(before);
        const due = { dueAt: after.context.dueAt, event: 'deadline.answer' };
        const holds = isHeldAnew(before, event, after);
        const reminder = { dueAt: remindAt, event: 'deadline.reminder' };
        const late = { dueAt: after.context.readBy, event: 'deadline.reading' };
        const begins = event.type === 'reading.begun' && isReading(after);
        return same(
          started(effects, 'deadline'),
          entered ? [due] : holds ? [reminder] : begins ? [late] : [],
        );
      },
      'QUESTION-4: a deadline that is not the armed one is ignored': (before, event) =>
        !('dueAt' in event) ||
        (event.type === 'deadline.reminder'
          ? event.dueAt === before.context.remindAt && isHeld(before)
          : event.type === 'deadline.reading'
            ? event.dueAt === before.context.readBy && isReading(before)
            : event.dueAt === before.context.dueAt && isOpen(before)),
      'QUESTION-4: nobody there, no clock; somebody comes, it is put again': (
        before,
        event,
        after,
        effects,
      ) => {
        const { type } = event;
        if (type === 'client.detached') return after.matches('parked');
        const isPassed = type === 'reading.ended' && event.gives === 'nothing';
        const isRead = type === 'reading.ended' && after.hasTag('answerable');
        const put =
          (isRead && !isPassed) ||
          type === 'deadline.reading' ||
          (type !== 'question.opened' &&
            !before.hasTag('answerable') &&
            after.hasTag('answerable')) ||
          (type === 'question.readBack' && event.after !== 'reply') ||
          type === 'reply.ended' ||
          type === 'question.repeat' ||
          type === 'question.nudge' ||
          type === 'deadline.reminder';
        return paramsOf(effects, 'present').length === (put ? 1 : 0);
      },
      'QUESTION-5: its end gives the floor back, takes it from the outbox and tells the asker, once':
        (before, event, after, effects) => {
          const ends = before.status === 'active' && after.status === 'done';
          const { requestId, epoch } = before.context;
          return (
            same(paramsOf(effects, 'release'), ends ? [{ requestId, epoch }] : []) &&
            // The question is not spoken while it is held.
            same(
              paramsOf(effects, 'retract'),
              ends || isHeldAnew(before, event, after) ? [{ requestId }] : [],
            ) &&
            same(paramsOf(effects, 'reply'), ends ? [{ requestId, end: after.value }] : [])
          );
        },
      'QUESTION-6: read back, it stays as it is but for what was heard of it': (
        before,
        event,
        after,
        effects,
      ) => {
        if (event.type !== 'question.readBack' || isAway(before)) return true;
        const isLater = event.after === 'reply';
        const now = after.context;
        const was = before.context;
        const isForgotten = now.playingSince === null && !now.heard;
        return (
          same(after.value, before.value) &&
          (now.followedAt ?? null) !== null &&
          now.readBack === (isLater ? 'after_reply' : 'due') &&
          (isLater || isForgotten) &&
          paramsOf(effects, 'present').length === (isLater ? 0 : 1) &&
          same([now.dueAt, now.remainingMs, now.shownAt], [was.dueAt, was.remainingMs, was.shownAt])
        );
      },
      'QUESTION-6: it waits for the end of the reply, and is read back then': (
        before,
        { type },
        after,
        effects,
      ) =>
        type !== 'reply.ended' ||
        (before.context.readBack === 'after_reply' &&
          after.context.readBack === (isPutAnew(before, after) ? null : 'due') &&
          paramsOf(effects, 'present').length === 1),
      'QUESTION-11: a hold goes on after words that a model passes on': (
        before,
        { type },
        after,
        effects,
      ) =>
        type !== 'reading.ended' ||
        before.context.remindAt === 0 ||
        after.status === 'done' ||
        isHeld(after) ||
        paramsOf(effects, 'present').length === 1,
      'QUESTION-7: held until then, and put again; its clock stands still': (
        before,
        { type },
        after,
      ) => {
        if (type === 'question.hold') return isHeld(after);
        if (!isHeld(before) || (type !== 'deadline.reminder' && type !== 'question.repeat'))
          return true;
        return after.matches(before.context.hasBegun ? 'open' : 'presenting');
      },
      'QUESTION-8: it is asked again while it is open and was heard, and stays as it is': (
        before,
        { type },
        after,
      ) => {
        if (type !== 'question.nudge') return true;
        const { nudges: _, ...was } = before.context;
        const { nudges: __, ...kept } = after.context;
        return (
          isOpen(before) &&
          before.context.heard &&
          same(after.value, before.value) &&
          same(kept, was)
        );
      },
      'QUESTION-8: the count begins anew when it is put anew or the user asks for it': (
        before,
        { type },
        after,
        effects,
      ) => {
        const [was, is] = [before.context.nudges ?? 0, after.context.nudges ?? 0];
        if (type === 'question.nudge') return is === was + 1;
        const isRenewed = RENEWS.has(type) && paramsOf(effects, 'present').length > 0;
        return is === (isRenewed || isPutAnew(before, after) ? 0 : was);
      },
      'QUESTION-5: it owns the floor from its grant on': (before, event, after) =>
        event.type === 'question.granted'
          ? after.hasTag('owner') && after.context.epoch === (event as { epoch: number }).epoch
          : after.context.epoch === before.context.epoch,
    },
    waits: inScope(scope, {
      'QUESTION-8: a question that nobody answers can be asked again': {
        when: (snapshot) =>
          isOpen(snapshot) && snapshot.context.heard && (snapshot.context.nudges ?? 0) < 2,
        exits: ['question.nudge'],
      },
      'queued ends by the grant': {
        when: (snapshot) => snapshot.matches('queued'),
        exits: ['question.granted'],
      },
      'QUESTION-6: what waits for the end of a reply is read back': {
        when: (snapshot) =>
          snapshot.hasTag('answerable') && snapshot.context.readBack === 'after_reply',
        exits: ['reply.ended'],
      },
      'what is put to the user can be answered': {
        when: isOpen,
        exits: ['question.answer'],
      },
      'open ends by a deadline': { when: isOpen, exits: ['deadline.answer'] },
      'reading ends by a deadline': {
        when: isReading,
        exits: ['deadline.reading'],
      },
      'held ends by its reminder, or an answer': {
        when: isHeld,
        exits: ['deadline.reminder'],
      },
      'presenting ends when it was heard': {
        when: (snapshot) => snapshot.matches('presenting'),
        exits: ['question.heard'],
      },
      'parked ends when somebody comes': {
        when: (snapshot) => snapshot.matches('parked'),
        exits: ['client.attached'],
      },
      'whatever lives can be withdrawn': { when: () => true, exits: ['question.withdraw'] },
    }),
    reachable: inScope(scope, {
      'QUESTION-8: it is asked again twice': ({ context }) => context.nudges === 2,
      'it is answered by speech that interrupts it': (_snapshot, { accepted, heardAt }) =>
        accepted?.channel === 'speech' && heardAt === null,
      'QUESTION-10: it is put again, and answered': (snapshot, { accepted, followedAt }) =>
        accepted?.channel === 'speech' &&
        followedAt === null &&
        snapshot.context.followedAt === null,
      'it is answered on the screen alone': (_snapshot, { accepted, played }) =>
        accepted !== null && !played,
      'it is answered while it is held': (snapshot, { accepted }) =>
        accepted !== null && snapshot.context.remindAt > 0,
      'QUESTION-12: it is answered by a yes that only a model read': (_snapshot, { answeredBy }) =>
        answeredBy?.isConsent === true,
      'it is answered by a no that only a model read': (_snapshot, { answeredBy }) =>
        answeredBy?.isConsent === false,
      'it is settled while nobody is there': (snapshot, { isSettled, played }) =>
        isSettled && !played && snapshot.matches('answered'),
      'QUESTION-14: it is answered beside the floor': ({ context }, { accepted }) =>
        accepted !== null && context.epoch === 0,
      'it expires': (snapshot) => snapshot.matches('expired'),
      'the user comes back with no time left': ({ value, context }) =>
        value === 'presenting' && context.remainingMs === 0,
    }),
  });
}
