// Explores every state of a turn and checks its properties (TURN-1 to TURN-8).
//
// Time stands still, and a deadline may fire whenever it is armed. There are two scopes: `everything` may happen, or no
// other part `helps`: the wire never reports the end of an utterance, the user's words never become known, a tool never
// settles, a model that answers without a request stays silent, and no reply has a word. Even then, everything that is
// due is finally spoken or reported as abandoned.

import {
  isInDoubt,
  modelIsBusy,
  turnMachine,
  userHasFloor,
  type TurnEvent,
  type TurnFact,
  type TurnInput,
  type TurnSnapshot,
} from '../../../src/machines/index.ts';
import { checkMachine } from '../../../src/testing/check/index.ts';
import { paramsOf, same } from './effects.ts';
import type { OnViolation } from './verdicts.ts';

type Machine = typeof turnMachine;
type TurnDeadline = 'settle' | 'doubt' | 'reply' | 'hold';
type S = TurnSnapshot;

const times = {
  holdsFloorMs: 1,
  settleTimeoutMs: 1,
  replyTimeoutMs: 1,
  doubtMs: 1,
  falseInterruptionMs: 1,
};

/** The lead agents that use the chart. */
export const turnsOf = {
  'a text model': {
    ...times,
    keepsOffers: true,
    maxAsked: 1,
    whileToolWorks: 'ends_turn',
    answersWords: false,
    answersResults: false,
  },
  'a voice model that is asked': {
    ...times,
    keepsOffers: false,
    maxAsked: 2,
    whileToolWorks: 'waits',
    answersWords: false,
    answersResults: false,
  },
  'a voice model that answers by itself': {
    ...times,
    keepsOffers: false,
    // Enough for a first request, another one, and a last one.
    maxAsked: 2,
    whileToolWorks: 'keeps_floor',
    answersWords: true,
    answersResults: true,
  },
} as const satisfies Record<string, TurnInput>;
export type Lead = keyof typeof turnsOf;

export type Scope = 'everything' | 'nobody helps';

/** The history variables. */
interface Ghost {
  readonly isAttached: boolean;
  readonly isPaused: boolean;
  readonly isWatched: boolean;
  readonly deadlines: readonly TurnDeadline[];
  /** The session's knowledge about the model. */
  readonly session: 'idle' | 'generating' | 'waiting';
}

const isText = ({ context }: S): boolean => context.keepsOffers;

function userEvents(snapshot: S, scope: Scope): readonly TurnFact[] {
  const { newest, unknown, answersWords } = snapshot.context;
  if (isText(snapshot)) return [];
  const speaking = snapshot.matches({ user: 'speaking' });
  // The doubt does not depend on any other region, so one kind of voice model is enough to check it.
  const isDoubted = !answersWords;
  const next = newest === 'u1' && isDoubted ? 'u2' : 'u1';
  return [
    ...(speaking || unknown.includes(next)
      ? []
      : ([{ type: 'user.began', utteranceId: next }, { type: 'user.spoke' }] as const)),
    ...(speaking ? ([{ type: 'user.ended', utteranceId: newest }] as const) : []),
    { type: 'client.left' },
    ...(speaking && isDoubted
      ? ([
          { type: 'user.overlaps', utteranceId: newest, canPause: true },
          { type: 'user.overlaps', utteranceId: newest, canPause: false },
        ] as const)
      : []),
    ...(scope === 'everything'
      ? ([
          ...unknown.map((utteranceId) => ({ type: 'user.understood', utteranceId }) as const),
          { type: 'user.lost' },
        ] as const)
      : []),
    ...(scope === 'everything' && isDoubted
      ? ([
          { type: 'user.worded', utteranceId: 'u1', reading: 'interrupts' },
          { type: 'user.worded', utteranceId: 'u1', reading: 'listens' },
          { type: 'user.sounded', utteranceId: 'u1', reading: 'echo' },
          { type: 'user.sounded', utteranceId: 'u1', reading: 'voice' },
          { type: 'speech.stopped' },
          { type: 'model.stopped' },
          { type: 'doubt.lost' },
        ] as const)
      : []),
  ];
}

function modelEvents(snapshot: S, scope: Scope): readonly TurnFact[] {
  const { responses, calls, whileToolWorks, keepsOffers, answersWords } = snapshot.context;
  const requested = responses.find(({ key }) => key !== null);
  const own = responses.filter(({ key }) => key === null);
  const speaks = responses[0];
  const canCall = speaks !== undefined && calls.length < (whileToolWorks === 'ends_turn' ? 2 : 1);
  const all = scope === 'everything';
  return [
    { type: 'choose' },
    ...(requested && requested.id === null
      ? ([{ type: 'response.started', key: requested.key ?? '', responseId: 'r' }] as const)
      : []),
    ...(requested ? ([{ type: 'request.ended', continuesAs: null }] as const) : []),
    ...own.map(({ id }) => ({ type: 'response.ended', responseId: id ?? '' }) as const),
    ...(canCall
      ? (
          [
            {
              type: 'call.made',
              callId: calls.length === 0 ? 'c1' : 'c2',
              responseId: speaks.id ?? '',
              of: keepsOffers ? speaks.says : 'reply',
            },
          ] as const
        ).filter(({ callId }) => calls.every((call) => call.callId !== callId))
      : []),
    ...(responses.some(({ isCancelled }) => !isCancelled) && !answersWords
      ? ([{ type: 'response.cancelled', responseId: null }] as const)
      : []),
    ...(all
      ? ([
          ...calls.flatMap(
            ({ callId }) =>
              [
                { type: 'call.answered', callId, respond: true },
                { type: 'call.dropped', callId },
              ] as const,
          ),
          { type: 'calls.lost' },
          { type: 'responses.lost' },
          { type: 'reply.moved', wasReplying: true },
          { type: 'reply.moved', wasReplying: false },
          { type: 'reply.forgotten' },
        ] as const)
      : calls
          .filter(({ of }) => of === 'offer')
          .map(({ callId }) => ({ type: 'call.dropped', callId }) as const)),
    ...(all && !answersWords && requested?.says === 'reply'
      ? ([{ type: 'model.spoke', responseId: null }] as const)
      : []),
    ...(all && answersWords
      ? ([
          ...(own.length === 0 ? ([{ type: 'response.began', responseId: 'o' }] as const) : []),
          ...(requested && requested.id !== null && own.length === 0
            ? ([{ type: 'request.ended', continuesAs: 'o' }] as const)
            : []),
          { type: 'model.spoke', responseId: 'o' },
          ...(snapshot.matches({ model: 'working' })
            ? ([{ type: 'model.idle' }] as const)
            : ([{ type: 'model.working' }] as const)),
        ] as const)
      : []),
  ];
}

function sessionEvents(snapshot: S): readonly TurnFact[] {
  const { offer } = snapshot.context;
  const isTelling = snapshot.context.responses.some(({ says }) => says === 'offer');
  return [
    ...(offer === null && !isTelling
      ? ([{ type: 'offer.made', generation: 1, key: 'offer:1' }] as const)
      : []),
    ...(offer === null ? [] : ([{ type: 'offer.over', generation: 1 }] as const)),
    { type: 'floor.taken' },
    { type: 'urgent.waits' },
    { type: 'urgent.over' },
    { type: 'reply.toWords', typed: false },
    { type: 'reply.toWords', typed: true },
    // Typed words make no difference to a model that answers unprompted.
    ...(snapshot.context.answersWords ? [] : ([{ type: 'reply.wanted' }] as const)),
    { type: 'reply.failed' },
    // The models that wait for a request show the effect of a reply that was cut off.
    ...(snapshot.context.answersWords ? [] : ([{ type: 'reply.cutOff' }] as const)),
  ];
}

const deadlineOf: Readonly<Record<TurnDeadline, (snapshot: S) => boolean>> = {
  settle: (snapshot) => snapshot.matches({ user: 'settling' }),
  doubt: (snapshot) => isInDoubt(snapshot),
  reply: (snapshot) => snapshot.matches({ reply: 'expected' }),
  hold: (snapshot) => snapshot.matches({ floor: 'holding' }),
};

function factsOf(snapshot: S, scope: Scope): readonly TurnFact[] {
  const { settleBy, doubtBy, replyBy, holdBy } = snapshot.context;
  return [
    ...userEvents(snapshot, scope),
    ...modelEvents(snapshot, scope),
    ...sessionEvents(snapshot),
    { type: 'deadline.settle', dueAt: settleBy },
    { type: 'deadline.doubt', dueAt: doubtBy },
    { type: 'deadline.reply', dueAt: replyBy },
    { type: 'deadline.hold', dueAt: holdBy },
  ];
}

const count = (effects: Parameters<typeof paramsOf>[0], type: string): number =>
  paramsOf(effects, type as never).length;

/** Explores the turn machine or a faulty version of it. */
export function checkTurn(
  lead: Lead,
  scope: Scope,
  machine: Machine = turnMachine,
  onViolation: OnViolation = 'collect',
) {
  return checkMachine<Machine, Ghost>(machine, {
    name: `turn of ${lead}, ${scope}`,
    input: turnsOf[lead],
    onViolation,
    limit: 400_000,
    key: ({ value, context }) => [
      value,
      context.unknown,
      context.newest,
      context.doubted,
      context.responses.map(({ key, id, says, isCancelled }) => [
        key !== null,
        id,
        says,
        // Only the end of a request for a reply uses this value.
        isCancelled && value.reply === 'asked',
      ]),
      context.calls,
      context.offer,
      // This affects only a model that answers unprompted.
      context.hasAnswered && context.answersWords,
      context.isOwed,
      context.before,
      // If no reply is owed, it matters only to a failed request.
      context.answersWords || value.reply !== 'none' ? context.asked : 0,
    ],
    events: (snapshot) =>
      factsOf(snapshot, scope).flatMap((fact): readonly TurnEvent[] => {
        const now = { ...fact, at: 0 };
        return fact.type === 'choose' && scope === 'everything'
          ? [
              { ...now, isFree: true },
              { ...now, isFree: false },
            ]
          : [{ ...now, isFree: true }];
      }),
    end: (snapshot) =>
      !userHasFloor(snapshot) &&
      !isInDoubt(snapshot) &&
      !modelIsBusy(snapshot) &&
      snapshot.matches({ offer: 'none' }) &&
      // If a tool never settles, the reply is owed, but the floor is not reserved for it.
      (snapshot.matches({ reply: 'none' }) || snapshot.context.calls.length > 0) &&
      (snapshot.matches({ floor: 'free' }) ||
        snapshot.matches({ floor: 'yielded' }) ||
        (snapshot.context.whileToolWorks === 'keeps_floor' && snapshot.context.calls.length > 0)),
    ghost: {
      initial: {
        isAttached: true,
        isPaused: false,
        isWatched: false,
        deadlines: [],
        session: 'idle',
      },
      next(ghost, { event: { type }, effects }) {
        let { session } = ghost;
        if (count(effects, 'release') > 0 || type === 'responses.lost') session = 'idle';
        if (count(effects, 'wait') > 0) session = 'waiting';
        if (count(effects, 'take') > 0) session = 'generating';
        const stopped = new Set(paramsOf(effects, 'stopActivity').map(({ id }) => id));
        const started = paramsOf(effects, 'startActivity').map(({ id }) => id as TurnDeadline);
        const paused = count(effects, 'pause') > 0;
        const isOver =
          count(effects, 'resume') + count(effects, 'breakOff') > 0 ||
          type === 'speech.stopped' ||
          type === 'client.left';
        const watches = count(effects, 'watchSpeech') > 0;
        const ends = count(effects, 'unwatchSpeech') > 0;
        return {
          isAttached: type === 'user.began' || (type !== 'client.left' && ghost.isAttached),
          isPaused: paused || (ghost.isPaused && !isOver),
          isWatched: watches || (ghost.isWatched && !ends),
          deadlines: [...ghost.deadlines.filter((id) => !stopped.has(id)), ...started].toSorted(),
          session,
        };
      },
    },
    invariants: {
      'TURN-1: at most one response is requested': ({ context }) =>
        context.responses.filter(({ key }) => key !== null).length <= 1,
      'TURN-1: the session knows that the model speaks': (snapshot, { session }) =>
        !modelIsBusy(snapshot) || session === 'generating',
      'TURN-5: the session knows the floor': ({ value: { floor } }, { session }) =>
        session ===
        { free: 'idle', taken: 'generating', holding: 'generating', yielded: 'waiting' }[floor],
      'TURN-2: what the user says is watched as long as it lasts': (snapshot, { isWatched }) =>
        isWatched === snapshot.matches({ user: 'speaking' }),
      'TURN-2: nobody speaks where nobody is': (snapshot, { isAttached }) =>
        isAttached || !userHasFloor(snapshot),
      'TURN-2: the words of the silent are known': (snapshot) =>
        !snapshot.matches({ user: 'silent' }) || snapshot.context.unknown.length === 0,
      'TURN-3: the speech is paused as long as the doubt lasts': (snapshot, { isPaused }) =>
        isPaused === isInDoubt(snapshot),
      'TURN-7: a reply that was requested is under way': (snapshot) =>
        !snapshot.matches({ reply: 'asked' }) ||
        snapshot.context.responses.some(({ key, says }) => key !== null && says === 'reply'),
      'TURN-7: a reply that was called off waits only while the user has the floor': (snapshot) =>
        !snapshot.matches({ reply: 'calledOff' }) || userHasFloor(snapshot),
      'each deadline runs in its own state, once': (snapshot, { deadlines }) => {
        const ids = Object.keys(deadlineOf) as TurnDeadline[];
        return same(deadlines, ids.filter((id) => deadlineOf[id](snapshot)).toSorted());
      },
      'TURN-5: the floor is held for a tool, and for nothing else': (snapshot) =>
        !snapshot.matches({ floor: 'holding' }) ||
        (snapshot.context.calls.length > 0 && !modelIsBusy(snapshot) && !userHasFloor(snapshot)),
    },
    steps: {
      'TURN-1: nothing is requested while a party speaks': (before, event, _after, effects) => {
        const requests = count(effects, 'reply') + count(effects, 'tell');
        if (requests === 0) return true;
        const { isFree } = event as TurnEvent;
        return requests === 1 && isFree && !userHasFloor(before) && !modelIsBusy(before);
      },
      'TURN-1: no reply is requested while the model waits for a result': (
        before,
        _event,
        _after,
        effects,
      ) => count(effects, 'reply') === 0 || before.context.calls.length === 0,
      'TURN-1: the request is under way at once': (_before, _event, after, effects) =>
        count(effects, 'reply') + count(effects, 'tell') === 0 ||
        after.context.responses.some(({ key }) => key !== null),
      'TURN-3: a doubt ends once': (before, _event, after, effects) => {
        const ends = count(effects, 'resume') + count(effects, 'breakOff');
        return (
          ends <= 1 && (count(effects, 'resume') === 0 || (isInDoubt(before) && !isInDoubt(after)))
        );
      },
      'TURN-4: a reply that is due is owed until it is requested': (
        before,
        event,
        after,
        effects,
      ) =>
        !before.matches({ reply: 'due' }) ||
        !after.matches({ reply: 'none' }) ||
        event.type === 'reply.forgotten' ||
        count(effects, 'reply') === 1,
      'TURN-7: a reply that was requested is given, owed, or given up aloud': (
        before,
        event,
        after,
        effects,
      ) =>
        !(before.matches({ reply: 'asked' }) || before.matches({ reply: 'calledOff' })) ||
        !after.matches({ reply: 'none' }) ||
        ['model.spoke', 'client.left', 'reply.forgotten'].includes(event.type) ||
        after.context.isOwed ||
        count(effects, 'unanswered') === 1,
      'TURN-7: a reply is given up once, after all requests': (before, _event, after, effects) =>
        count(effects, 'unanswered') === 0 ||
        (count(effects, 'unanswered') === 1 &&
          before.context.asked >= before.context.maxAsked &&
          !before.matches({ reply: 'none' }) &&
          after.matches({ reply: 'none' })),
      'TURN-7: a model that says nothing is not asked forever': (_before, _event, after) =>
        after.context.asked <= after.context.maxAsked,
      'TURN-8: an utterance whose words do not come is settled by name': (
        before,
        event,
        after,
        effects,
      ) =>
        event.type !== 'deadline.settle' ||
        userHasFloor(after) ||
        !userHasFloor(before) ||
        same(
          paramsOf(effects, 'settled').flatMap(({ utteranceIds }) => utteranceIds),
          before.context.unknown,
        ),
      'TURN-8: an utterance is over when its words are known, it is settled, or nobody is there': (
        before,
        event,
        after,
      ) =>
        before.context.unknown.every((id) => after.context.unknown.includes(id)) ||
        ['user.understood', 'deadline.settle', 'client.left', 'user.lost'].includes(event.type),
      'TURN-6: an offer is told, refused, kept, or was over': (before, event, after, effects) =>
        event.type !== 'offer.made' ||
        count(effects, 'tell') + count(effects, 'refuse') === 1 ||
        (after.matches({ offer: 'waiting' }) && before.context.keepsOffers),
      'TURN-6: an offer is begun when it is told': (_before, _event, after, effects) =>
        count(effects, 'tell') === 0 ||
        !after.context.keepsOffers ||
        after.matches({ offer: 'begun' }),
      'TURN-6: a reply breaks off the offer that was begun': (before, _event, _after, effects) =>
        count(effects, 'reply') === 0 ||
        !before.matches({ offer: 'begun' }) ||
        count(effects, 'brokenOff') === 1,
      'TURN-6: only an offer that was begun is broken off': (before, _event, after, effects) =>
        count(effects, 'brokenOff') === 0 ||
        (before.matches({ offer: 'begun' }) && after.matches({ offer: 'none' })),
      'TURN-5: the session learns of an end only where the model is silent': (
        before,
        _event,
        _after,
        effects,
      ) =>
        count(effects, 'rest') + count(effects, 'release') + count(effects, 'wait') === 0 ||
        !modelIsBusy(before),
    },
    waits: {
      'TURN-2: words that nobody tells are not waited for': {
        when: (snapshot) => snapshot.matches({ user: 'settling' }),
        exits: ['deadline.settle'],
      },
      'TURN-2: an utterance ends when its watch says so, or its client leaves': {
        when: (snapshot) => snapshot.matches({ user: 'speaking' }),
        exits: ['user.ended'],
      },
      'TURN-2: a client that leaves is not listened to': {
        when: (snapshot) => userHasFloor(snapshot),
        exits: ['client.left'],
      },
      'TURN-3: a doubt that nobody resolves ends': {
        when: (snapshot) => isInDoubt(snapshot),
        exits: ['deadline.doubt'],
      },
      'TURN-4: a model that stays silent is asked': {
        when: (snapshot) =>
          snapshot.matches({ reply: 'expected' }) &&
          !userHasFloor(snapshot) &&
          !modelIsBusy(snapshot) &&
          snapshot.context.calls.length === 0,
        exits: ['deadline.reply'],
      },
      'TURN-4: what is due is requested as soon as nobody speaks': {
        when: (snapshot) =>
          (snapshot.matches({ reply: 'due' }) || snapshot.matches({ reply: 'overdue' })) &&
          !userHasFloor(snapshot) &&
          !modelIsBusy(snapshot) &&
          snapshot.context.calls.length === 0,
        exits: ['choose'],
      },
      'TURN-5: a tool that never settles gives up the floor': {
        when: (snapshot) => snapshot.matches({ floor: 'holding' }),
        exits: ['deadline.hold'],
      },
      'TURN-6: an offer that waits is told as soon as nobody speaks': {
        when: (snapshot) =>
          !snapshot.matches({ offer: 'none' }) &&
          !userHasFloor(snapshot) &&
          !modelIsBusy(snapshot) &&
          snapshot.context.calls.every(({ of }) => of !== 'offer'),
        exits: ['choose'],
      },
    },
    reachable: {
      'a reply is given': ({ context }) => context.responses.some(({ key }) => key === 'reply:1'),
      'a reply is requested for the last time': ({ context }) => context.asked === context.maxAsked,
      'an offer is told': ({ context }) => context.responses.some(({ says }) => says === 'offer'),
      'a tool holds the floor, or may not': (snapshot) =>
        snapshot.matches({ floor: 'holding' }) || snapshot.context.whileToolWorks === 'keeps_floor',
      'the user is in doubt, or cannot be': (snapshot) =>
        isInDoubt(snapshot) || isText(snapshot) || snapshot.context.answersWords,
    },
  });
}
