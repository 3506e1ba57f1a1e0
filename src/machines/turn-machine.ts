// Decides whose turn it is in the conversation between the user and the lead agent, for text and voice.
//
//   user    silent → speaking → settling → silent             settling: the words are not known yet
//   doubt   none → speaking → ended → late                     does the user interrupt, or only listen?
//   model   silent ⇄ working                                   with its responses and the calls it waits for
//   offer   none → waiting → begun → none                      an offer of the outbox that is not said yet
//   floor   free → taken → holding → yielded                   does the lead agent keep the outbox waiting?
//   reply   none, expected → overdue, due → asked, calledOff   does the lead agent owe the user a reply?
//
// The host sends `choose` after every fact that could make the model available. By then, all consequences of the fact
// have been processed. The chart then requests a reply, requests an offer, or does nothing. The chart runs outside the
// session's unit and is not in the journal. Its outcomes are in the journal (`response.requested`,
// `delivery.interrupted`, …).
//
// Owns:     who speaks next, the current responses, the calls that the model is waiting for, the doubt about an
//           interruption, the utterances whose words are unknown, and the time limits of all these.
// Does not: handle audio, words or prompts (the leads do), decide when an offer is due (outbox), or decide to whom
//           words are addressed (session).
//
// Invariants
//   TURN-1. At most one response is requested at a time. No response is requested while another response is in
//       progress, the user has the floor, the model is not available, or the model is waiting for the result of a call
//       that belongs to the response.
//   TURN-2. The user has the floor from the start of an utterance until its words are known. After the utterance ends,
//       this lasts for at most `settleTimeoutMs`. The user's speech is monitored until it ends. If the client leaves,
//       the speech ends as well.
//   TURN-3. Every doubt about an interruption is resolved by the words or the length of the utterance, by another
//       utterance, or by the silence after it. The model's speech is paused for exactly as long as the doubt lasts.
//   TURN-4. An owed reply is either given or no longer owed. A model that answers on its own is asked for the reply
//       after `replyTimeoutMs` of silence, at most `maxAsked` times for one cause.
//   TURN-5. A tool keeps the floor for at most `holdsFloorMs`. After that, due deliveries may be spoken, and the turn
//       continues.
//   TURN-6. Only `tell` starts an offer. If a reply is chosen before the offer is over, it interrupts the offer.
//   TURN-7. Silence is not a reply. If a response contains no words or calls, the reply is requested again. After
//       `maxAsked` requests, the reply is reported once as `unanswered`. If the user's voice cancels a reply before its
//       first word, the reply is owed again when the user is silent. No reply is owed to a client that has left.
//   TURN-8. Each utterance ends exactly once. Either its words and addressee become known, or the session stops waiting
//       for them (`settled`), or its client or connection is lost.

import { and, assign, not, or, stateIn, type SnapshotFrom } from 'xstate';
import { deadline, machineOptions, stopActivity } from './effect.ts';
import { turnSetup, type TurnContext } from './turn-setup.ts';

/** The default of `maxAsked`, which limits how often a silent model is asked for a reply. */
const DEFAULT_MAX_ASKED = 3;

const pauses = { type: 'pause', params: {} } as const;
const resumes = { type: 'resume', params: {} } as const;
const breaksOff = { type: 'breakOff', params: {} } as const;
const takes = { type: 'take', params: {} } as const;
const waits = { type: 'wait', params: {} } as const;
const releases = { type: 'release', params: {} } as const;
const rest = { type: 'rest', params: {} } as const;
const givesUp = { type: 'unanswered', params: {} } as const;
/** The transitions by which the lead agent takes the floor. */
const claims = {
  'floor.taken': { target: 'taken', actions: takes },
  'response.began': { target: 'taken', actions: takes },
  'model.working': { target: 'taken', actions: takes },
  'offer.made': { guard: 'saysAtOnce', target: 'taken', actions: takes },
} as const;

const asks = {
  guard: 'mayReply',
  target: 'asked',
  actions: [
    'countReply',
    {
      type: 'reply',
      params: ({ context }: { context: TurnContext }) => ({ key: `reply:${context.replies}` }),
    },
  ],
} as const;

const start = (id: 'settle' | 'doubt' | 'reply' | 'hold', dueAt: (of: TurnContext) => number) =>
  ({
    type: 'startActivity',
    params: ({ context }: { context: TurnContext }) =>
      deadline(`deadline.${id}`, dueAt(context), id),
  }) as const;

/** Decides whose turn it is: what the user and the model are saying, and what interrupts them. */
export const turnMachine = turnSetup.createMachine({
  id: 'turn',
  type: 'parallel',
  options: machineOptions,
  context: ({ input }) => ({
    keepsOffers: input?.keepsOffers ?? true,
    whileToolWorks: input?.whileToolWorks ?? 'ends_turn',
    answersWords: input?.answersWords ?? false,
    answersResults: input?.answersResults ?? false,
    holdsFloorMs: input?.holdsFloorMs ?? 0,
    settleTimeoutMs: input?.settleTimeoutMs ?? 0,
    replyTimeoutMs: input?.replyTimeoutMs ?? 0,
    maxAsked: input?.maxAsked ?? DEFAULT_MAX_ASKED,
    doubtMs: input?.doubtMs ?? 0,
    falseInterruptionMs: input?.falseInterruptionMs ?? 0,
    unknown: [],
    newest: '',
    doubted: null,
    responses: [],
    calls: [],
    replies: 0,
    offer: null,
    hasAnswered: false,
    isOwed: false,
    before: [],
    asked: 0,
    settleBy: 0,
    doubtBy: 0,
    replyBy: 0,
    holdBy: 0,
  }),
  states: {
    user: {
      initial: 'silent',
      on: {
        'user.began': {
          target: '.speaking',
          actions: assign({ newest: ({ event }) => event.utteranceId }),
        },
        'client.left': '.silent',
        'user.lost': '.silent',
      },
      states: {
        silent: { entry: assign({ unknown: [] }) },
        speaking: {
          entry: { type: 'watchSpeech', params: {} },
          exit: { type: 'unwatchSpeech', params: {} },
          on: {
            'user.ended': {
              target: 'settling',
              actions: assign(({ context, event }) => ({
                unknown: [
                  ...context.unknown.filter((id) => id !== event.utteranceId),
                  event.utteranceId,
                ],
              })),
            },
            'user.understood': {
              actions: assign(({ context, event }) => ({
                unknown: context.unknown.filter((id) => id !== event.utteranceId),
              })),
            },
          },
        },
        settling: {
          entry: [
            assign(({ context, event }) => ({ settleBy: event.at + context.settleTimeoutMs })),
            start('settle', ({ settleBy }) => settleBy),
          ],
          exit: stopActivity('deadline', 'settle'),
          on: {
            'user.understood': [
              {
                guard: ({ context, event }) =>
                  context.unknown.some((id) => id !== event.utteranceId),
                actions: assign(({ context, event }) => ({
                  unknown: context.unknown.filter((id) => id !== event.utteranceId),
                })),
              },
              { target: 'silent' },
            ],
            'deadline.settle': {
              guard: ({ context, event }) => event.dueAt === context.settleBy,
              target: 'silent',
              actions: {
                type: 'settled',
                params: ({ context }) => ({ utteranceIds: context.unknown }),
              },
            },
          },
        },
      },
    },
    doubt: {
      initial: 'none',
      on: {
        'user.overlaps': [
          {
            guard: ({ event }) => event.canPause,
            target: '.speaking',
            actions: [assign({ doubted: ({ event }) => event.utteranceId }), pauses],
          },
          { target: '.none', actions: breaksOff },
        ],
        'client.left': '.none',
        'doubt.lost': '.none',
      },
      states: {
        none: { entry: assign({ doubted: null }) },
        // The model's speech is paused because the user is speaking.
        speaking: {
          entry: [
            assign(({ context, event }) => ({ doubtBy: event.at + context.doubtMs })),
            start('doubt', ({ doubtBy }) => doubtBy),
          ],
          exit: stopActivity('deadline', 'doubt'),
          on: {
            'user.overlaps': { target: 'none', actions: breaksOff },
            'user.ended': { guard: 'isDoubted', target: 'ended' },
            'user.worded': [
              { guard: 'interrupts', target: 'none', actions: breaksOff },
              { guard: 'listens', target: 'none', actions: resumes },
            ],
            'user.sounded': { guard: 'isEcho', target: 'late', actions: resumes },
            'deadline.doubt': {
              guard: ({ context, event }) => event.dueAt === context.doubtBy,
              target: 'none',
              actions: breaksOff,
            },
            'model.stopped': { target: 'none', actions: breaksOff },
            'doubt.lost': { target: 'none', actions: breaksOff },
            'speech.stopped': 'late',
          },
        },
        // The model's speech is paused. The user has stopped speaking, but the words are not known yet.
        ended: {
          entry: [
            assign(({ context, event }) => ({ doubtBy: event.at + context.falseInterruptionMs })),
            start('doubt', ({ doubtBy }) => doubtBy),
          ],
          exit: stopActivity('deadline', 'doubt'),
          on: {
            'user.overlaps': { target: 'none', actions: breaksOff },
            'user.worded': [
              { guard: 'interrupts', target: 'none', actions: breaksOff },
              { guard: 'listens', target: 'none', actions: resumes },
            ],
            'user.sounded': { guard: 'isEcho', target: 'late', actions: resumes },
            'deadline.doubt': {
              guard: ({ context, event }) => event.dueAt === context.doubtBy,
              target: 'late',
              actions: resumes,
            },
            'model.stopped': { target: 'none', actions: breaksOff },
            'doubt.lost': { target: 'none', actions: resumes },
            'speech.stopped': 'late',
          },
        },
        // The model's speech continues or has ended, but words that arrive now may still interrupt it.
        late: {
          on: {
            'user.worded': [
              { guard: 'interrupts', target: 'none', actions: breaksOff },
              { guard: 'listens', target: 'none' },
            ],
            // Another person is speaking while the echo can be heard.
            'user.sounded': { guard: 'isVoice', target: 'none', actions: breaksOff },
          },
        },
      },
    },
    model: {
      initial: 'silent',
      on: {
        choose: [
          {
            guard: 'mayReply',
            actions: [
              {
                type: 'request',
                params: ({ context }) => ({ key: `reply:${context.replies + 1}`, says: 'reply' }),
              },
            ],
          },
          {
            guard: 'mayTell',
            actions: {
              type: 'request',
              params: ({ context }) => ({ key: context.offer?.key ?? '', says: 'offer' }),
            },
          },
        ],
        'offer.made': {
          guard: 'saysAtOnce',
          actions: { type: 'request', params: ({ event }) => ({ key: event.key, says: 'offer' }) },
        },
        'response.started': {
          actions: assign(({ context, event }) => ({
            responses: context.responses.map((response) =>
              response.key === event.key ? { ...response, id: event.responseId } : response,
            ),
          })),
        },
        'response.began': {
          actions: assign(({ context, event }) => ({
            responses: [
              ...context.responses,
              { key: null, id: event.responseId, says: 'reply' as const, isCancelled: false },
            ],
          })),
        },
        'response.ended': {
          actions: assign(({ context, event }) => ({
            responses: context.responses.filter(
              ({ key, id }) => key !== null || id !== event.responseId,
            ),
          })),
        },
        'request.ended': {
          actions: assign(({ context, event: { continuesAs } }) => ({
            responses: context.responses.flatMap((response) => {
              if (response.key === null) return response;
              return continuesAs === null
                ? []
                : { ...response, key: null, id: continuesAs, says: 'reply' as const };
            }),
          })),
        },
        'response.cancelled': {
          actions: assign(({ context, event }) => ({
            responses: context.responses.map((response) =>
              event.responseId === null ||
              (response.key === null && response.id === event.responseId)
                ? { ...response, isCancelled: true }
                : response,
            ),
          })),
        },
        'responses.lost': { target: '.silent', actions: assign({ responses: [] }) },
        'call.made': {
          actions: assign(({ context, event: { callId, responseId, of } }) => ({
            calls: [...context.calls, { callId, responseId, of }],
          })),
        },
        'call.dropped': { actions: 'dropCall' },
        'calls.lost': { actions: assign({ calls: [] }) },
      },
      states: {
        silent: { on: { 'model.working': 'working' } },
        // The model reports that it is working on a response.
        working: { on: { 'model.idle': 'silent' } },
      },
    },
    offer: {
      initial: 'none',
      on: {
        'offer.made': [
          {
            guard: 'refuses',
            actions: {
              type: 'refuse',
              params: ({ event: { generation } }) => ({ generation }),
            },
          },
          {
            guard: 'saysAtOnce',
            actions: {
              type: 'tell',
              params: ({ event: { generation, key } }) => ({ generation, key }),
            },
          },
          { target: '.waiting', actions: 'keepOffer' },
        ],
      },
      states: {
        none: { entry: 'endOffer' },
        waiting: {
          on: {
            choose: {
              guard: 'mayTell',
              target: 'begun',
              actions: {
                type: 'tell',
                params: ({ context }) => context.offer ?? { generation: 0, key: '' },
              },
            },
            'offer.over': {
              guard: ({ context, event }) => event.generation === context.offer?.generation,
              target: 'none',
            },
          },
        },
        // If the model makes calls, it may need several responses to deliver an offer.
        begun: {
          on: {
            choose: [
              {
                guard: 'mayReply',
                target: 'none',
                actions: {
                  type: 'brokenOff',
                  params: ({ context }) => context.offer ?? { generation: 0 },
                },
              },
              {
                guard: 'mayTell',
                actions: {
                  type: 'tell',
                  params: ({ context }) => context.offer ?? { generation: 0, key: '' },
                },
              },
            ],
            'urgent.waits': {
              guard: 'hasNoResponse',
              target: 'none',
              actions: {
                type: 'brokenOff',
                params: ({ context }) => context.offer ?? { generation: 0 },
              },
            },
            'offer.over': {
              guard: ({ context, event }) => event.generation === context.offer?.generation,
              target: 'none',
            },
          },
        },
      },
    },
    floor: {
      initial: 'free',
      on: {
        choose: { guard: 'rests', target: '.free', actions: [releases, rest] },
        'urgent.waits': [
          {
            guard: and([
              'hasNoResponse',
              stateIn({ model: 'silent' }),
              not('hasNoCall'),
              not('endsTurn'),
            ]),
            target: '.yielded',
            actions: waits,
          },
          {
            guard: and(['hasNoResponse', stateIn({ model: 'silent' })]),
            target: '.free',
            actions: releases,
          },
        ],
        // When the connection is lost, the state of the turn is reset.
        'responses.lost': '.free',
      },
      states: {
        free: {
          on: {
            ...claims,
            choose: [
              { guard: or(['mayReply', 'mayTell']), target: 'taken', actions: takes },
              { guard: 'rests', actions: rest },
            ],
            'urgent.waits': {},
          },
        },
        taken: { always: { guard: 'onlyToolWorks', target: 'holding' } },
        // Only a tool is working: the lead agent keeps the floor for a while.
        holding: {
          entry: [
            assign(({ context, event }) => ({ holdBy: event.at + context.holdsFloorMs })),
            start('hold', ({ holdBy }) => holdBy),
          ],
          exit: stopActivity('deadline', 'hold'),
          always: { guard: not('onlyToolWorks'), target: 'taken' },
          on: {
            'deadline.hold': [
              { guard: and(['isHeldLong', 'endsTurn']), target: 'free', actions: releases },
              { guard: 'isHeldLong', target: 'yielded', actions: waits },
            ],
          },
        },
        // The tool has been working for a long time, so due deliveries may be spoken.
        yielded: {
          on: {
            ...claims,
            choose: [
              { guard: or(['mayReply', 'mayTell']), target: 'taken', actions: takes },
              { guard: 'rests', target: 'free', actions: [releases, rest] },
            ],
          },
        },
      },
    },
    reply: {
      initial: 'none',
      on: {
        'reply.wanted': { target: '.due', actions: 'expectReply' },
        'reply.toWords': [
          {
            guard: ({ context, event }) => event.typed || !context.answersWords,
            target: '.due',
            actions: ['expectReply', assign({ isOwed: false })],
          },
          {
            guard: or(['hasAnswered', stateIn({ reply: 'due' })]),
            actions: assign({ isOwed: false }),
          },
          { target: '.expected', actions: ['expectReply', assign({ isOwed: false })] },
        ],
        'call.answered': [
          // The model continues to deliver the offer without another request.
          {
            guard: ({ context, event }) =>
              !event.respond ||
              context.calls.some(({ callId, of }) => callId === event.callId && of === 'offer'),
            actions: 'dropCall',
          },
          {
            guard: and(['answersResults', not(stateIn({ reply: 'due' }))]),
            target: '.expected',
            actions: ['withResult', 'dropCall'],
          },
          { guard: 'answersResults', actions: 'dropCall' },
          { target: '.due', actions: ['expectReply', 'dropCall'] },
        ],
        'user.spoke': { actions: assign({ hasAnswered: false }) },
        'reply.cutOff': { actions: assign({ isOwed: true }) },
        'urgent.over': {
          guard: ({ context }) => context.isOwed,
          target: '.due',
          actions: ['expectReply', assign({ isOwed: false }), { type: 'remind', params: {} }],
        },
        'reply.moved': {
          guard: ({ event }) => event.wasReplying,
          target: '.due',
          actions: 'expectReply',
        },
        'reply.forgotten': '.none',
        'model.spoke': { guard: 'answers', actions: 'noteAnswer' },
      },
      states: {
        none: {
          on: {
            'reply.failed': {
              guard: and(['answersWords', 'mayAskAgain']),
              target: 'expected',
              actions: assign({ before: [] }),
            },
          },
        },
        // The model is about to answer on its own.
        expected: {
          entry: [
            assign(({ context, event }) => ({ replyBy: event.at + context.replyTimeoutMs })),
            start('reply', ({ replyBy }) => replyBy),
          ],
          exit: stopActivity('deadline', 'reply'),
          on: {
            'deadline.reply': [
              {
                guard: and(['isReplyLate', 'isQuiet', not('mayAskAgain')]),
                target: 'none',
                actions: givesUp,
              },
              {
                guard: and(['isReplyLate', 'isQuiet']),
                target: 'overdue',
                actions: { type: 'overdue', params: {} },
              },
              {
                guard: ({ context, event }) => event.dueAt === context.replyBy,
                target: 'expected',
                reenter: true,
              },
            ],
            'model.spoke': { guard: 'answers', target: 'none', actions: 'noteAnswer' },
            'reply.moved': { target: 'due', actions: 'expectReply' },
          },
        },
        // The model has stayed silent.
        overdue: {
          on: {
            choose: asks,
            'model.spoke': { guard: 'answers', target: 'none', actions: 'noteAnswer' },
            'reply.moved': { target: 'due', actions: 'expectReply' },
          },
        },
        due: {
          on: {
            choose: asks,
            // The reply became due before the model read the conversation, so the current response contains it.
            'request.read': { guard: 'isReplying', target: 'asked' },
          },
        },
        // The reply has been requested, but the model has not said anything yet.
        asked: {
          on: {
            'model.spoke': { guard: 'answers', target: 'none', actions: 'noteAnswer' },
            'request.ended': [
              { guard: ({ event }) => event.continuesAs !== null, target: 'expected' },
              { guard: 'isCalledOff', target: 'calledOff' },
              // The model has already responded to these words and has been reminded of the rest, so it has nothing to
              // add.
              { guard: and(['answersWords', 'hasAnswered', 'isDone']), target: 'none' },
              { guard: and(['mayAskAgain', 'answersWords']), target: 'expected' },
              { guard: 'mayAskAgain', target: 'due' },
              { target: 'none', actions: givesUp },
            ],
            'reply.cutOff': { target: 'none', actions: assign({ isOwed: true }) },
            'responses.lost': { target: 'due', actions: 'expectReply' },
            'client.left': 'none',
          },
        },
        // The reply was cancelled before its first word. If the user then says nothing to the lead agent (a cough, an
        // answer to a question), the earlier words still need a reply.
        calledOff: {
          always: [
            { guard: and([stateIn({ user: 'silent' }), 'mayAskAgain']), target: 'due' },
            { guard: stateIn({ user: 'silent' }), target: 'none', actions: givesUp },
          ],
          on: {
            'model.spoke': { guard: 'answers', target: 'none', actions: 'noteAnswer' },
            'responses.lost': { target: 'due', actions: 'expectReply' },
            'client.left': 'none',
          },
        },
      },
    },
  },
});

/** A snapshot of `turnMachine`. */
export type TurnSnapshot = SnapshotFrom<typeof turnMachine>;

/** Returns whether the user is speaking, or the words and the addressee of their last utterance are not known yet. */
export function userHasFloor(snapshot: TurnSnapshot): boolean {
  return !snapshot.matches({ user: 'silent' });
}

/** Returns whether a response is in progress or the model is working on one. */
export function modelIsBusy(snapshot: TurnSnapshot): boolean {
  return snapshot.context.responses.length > 0 || snapshot.matches({ model: 'working' });
}

/** Returns whether the model is about to reply without a request, or should be about to. */
export function replyIsExpected(snapshot: TurnSnapshot): boolean {
  return snapshot.matches({ reply: 'expected' }) || snapshot.matches({ reply: 'overdue' });
}

/**
 * Returns whether a reply has been requested, or is about to come without a request, and the model has not said
 * anything yet.
 */
export function replyIsComing(snapshot: TurnSnapshot): boolean {
  return replyIsExpected(snapshot) || snapshot.matches({ reply: 'asked' });
}

/** Returns whether a reply is due or will soon be due. */
export function replyIsWanted(snapshot: TurnSnapshot): boolean {
  return !snapshot.matches({ reply: 'none' });
}

/** Returns whether the model's speech is paused because the user may be interrupting it. */
export function isInDoubt(snapshot: TurnSnapshot): boolean {
  return snapshot.matches({ doubt: 'speaking' }) || snapshot.matches({ doubt: 'ended' });
}
