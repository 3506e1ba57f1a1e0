// The life of one question to the user.
//
//   queued ──▶ presenting ──▶ open ──▶ answered | expired | withdrawn | superseded   (final)
//      └──────────────────────▶ ▲        the session's user may not answer: opened beside the floor
//                  ▲  ├─────────┤
//                  │  ├─ held ◀─┤   the user asked for time: put again after it
//                  └── parked ◀─┘   no client is attached
//
//   open, held ──▶ reading ──▶ open, held   a model reads the user's words: put again if it is late
//
// Owns:     whether an answer is accepted now, and how much time the user has left.
// Does not: speak, match words to options, or decide which question is asked next.
//
// Invariants
//   QUESTION-1. No answer is accepted before the user can know about the question. A button is accepted once the
//       question is shown. Speech is accepted once the question starts to play. No answer is accepted after the
//       question has ended.
//   QUESTION-2. An utterance that started before the question played never answers it.
//   QUESTION-3. Speech that interrupts the question is accepted only if it is `decisive` (it names an option, or is the
//       requested text). An approval is accepted only if the utterance started after the question had been heard in
//       full.
//   QUESTION-4. The clock runs only in `open`. It starts when the question is heard or, if no voice is attached, when
//       the question is shown. It stops while no client is attached and while the question is held.
//   QUESTION-5. A question ends exactly once. When it ends, it releases the floor, is retracted from the outbox, and
//       sends a reply to the asker.
//   QUESTION-6. A question that is read back, immediately or after the lead agent's reply, is presented again in its
//       remaining time. Utterances are treated as in the first presentation, and the buttons remain valid.
//   QUESTION-7. A held question is not spoken until `remindAt`, when it is asked again; until then, answers are
//       accepted. Only the user can put a question on hold, and each hold has a time limit. An utterance that a model
//       interprets as being about something else does not end the hold.
//   QUESTION-8. If the user has heard an open question but not answered it, the question is asked again. This happens
//       at most `MAX_NUDGES` times. The count restarts when the user asks to hear the question or it is presented
//       again. The question's clock continues. After that, the question remains on the screen.
//   QUESTION-9. The lead agent needs time to interpret an utterance. It can settle the question with any utterance that
//       started after the first presentation. The question may since have been presented again, or parked because no
//       client was attached.
//   QUESTION-10. An utterance is accepted immediately only if it started while the question was the last thing that the
//       user had heard from the session. A button is always accepted. A repetition of the question, in part or in full,
//       makes the question the last thing said.
//   QUESTION-11. If a model interprets an utterance, only the interpretation that the question is waiting for counts.
//       An interpretation has no effect after the question has ended, after `readBy`, or after the user has said more.
//       While the model interprets words, the clock stops. A button is still accepted.
//   QUESTION-12. A yes that only a model has recognised does not answer the question. The question is read back, and
//       the next such yes counts if it follows the read-back.
//   QUESTION-13. A yes applies to the call that was last put to the user. This is the call as originally asked. After a
//       read-back, it is the changed call or the lasting approval that was read back. A spoken or typed yes to a
//       read-back counts only after the user has heard the read-back. A button that names the arguments always counts.
//   QUESTION-14. A question that is opened beside the floor is neither spoken nor shown by its opening. Its clock starts
//       at once, and its buttons are accepted.

import { and, assign, setup, type SnapshotFrom } from 'xstate';
import {
  activities,
  activity,
  deadline,
  effect,
  machineOptions,
  stopActivity,
  type Activity,
  type Deadline,
  type EffectsOf,
  type Stamped,
} from './effect.ts';

/** The maximum number of times that an unanswered question is asked again. */
const MAX_NUDGES = 2;

/** The maximum time that a model may take to interpret the user's words, in milliseconds. */
const READING_MS = 1200;

/** A subagent's question to the user. */
export interface QuestionInput {
  /** The question's id, which is the same everywhere and does not change after a restart. */
  readonly requestId: string;
  /** The time that the user has to answer after hearing or seeing the question, in milliseconds. */
  readonly timeoutMs: number;
}

interface QuestionContext {
  /** The id of the question. */
  readonly requestId: string;
  /** The epoch of the grant that gave the question the floor; 0 before the first grant. */
  readonly epoch: number;
  /**
   * The time that is left to answer when the clock starts again, in milliseconds. It is updated when the clock stops.
   */
  readonly remainingMs: number;
  /** The time at which the question expires while its clock runs, in milliseconds since 1970. */
  readonly dueAt: number;
  /** The time at which a client first showed the question. */
  readonly shownAt: number | null;
  /** The time at which the question started to play in the current presentation. */
  readonly playingSince: number | null;
  /** Whether the user has heard the question in full in the current presentation. */
  readonly heard: boolean;
  /**
   * The time by which the user had heard the whole question. Absent if unknown, or in an earlier version's snapshot.
   */
  readonly heardAt?: number;
  /**
   * The time at which something else was said to the user, or at which a read-back became due; null if the question was
   * the last thing said. Absent in snapshots of earlier versions.
   */
  readonly followedAt?: number | null;
  /**
   * Whether the question is read back after the lead agent's reply, or as soon as it can be spoken. Absent for never.
   */
  readonly readBack?: 'after_reply' | 'due' | null;
  /** The number of the changed call that is read back. Absent or 0: the call as originally asked. */
  readonly change?: number;
  /** Whether the clock has started in the current presentation. */
  readonly hasBegun: boolean;
  /** The time at which a held question is asked again, even while a model interprets words; 0 in `open`. */
  readonly remindAt: number;
  /** The number of times that the unanswered question has been asked again. Absent in snapshots of earlier versions. */
  readonly nudges?: number;
  /**
   * The utterances that a model is interpreting, or the last ones that it has interpreted. Absent if it has not
   * interpreted any.
   */
  readonly words?: WordsRead;
  /** The deadline for the model's interpretation. */
  readonly readBy?: number;
  /** Whether the question is being read back because only a model has recognised the user's yes. */
  readonly isAffirmed?: boolean;
  /** The combined reports about all presentations. Absent in snapshots of earlier versions. */
  readonly ever?: Presented;
}

interface Presented {
  /** The time at which a client first showed the question; null if none has. */
  readonly shownAt: number | null;
  /** The time at which the question first started to play; null if it has never played. */
  readonly playingSince: number | null;
  /** Whether the user has heard the whole question in any presentation. */
  readonly heard: boolean;
  /** The time by which the user had first heard the whole question. Absent if unknown. */
  readonly heardAt?: number;
}

/** The channel through which the user answered. */
export type AnswerChannel = 'speech' | 'typing' | 'button';

/** The utterances whose interpretation the question is waiting for. */
interface WordsRead {
  /** The last of the utterances that are interpreted together. */
  readonly utteranceId: string;
  /** Whether the user spoke or typed these utterances. */
  readonly channel: 'speech' | 'typing';
  /** The time at which the first of these utterances started. */
  readonly startedAt: number;
}

type QuestionFact =
  | { readonly type: 'question.granted'; readonly epoch: number }
  /** The session's user may not answer, so the question does not wait for the floor. */
  | { readonly type: 'question.opened' }
  /**
   * A client is showing the question. `startsClock`: no voice is attached, so the user will not hear the question and
   * the clock starts immediately.
   */
  | { readonly type: 'question.shown'; readonly startsClock: boolean }
  | { readonly type: 'question.playing' }
  /**
   * `heardAt`: the time by which the user had heard the whole question. @defaultValue unknown, and treated as earlier
   * than all utterances so far
   */
  | { readonly type: 'question.heard'; readonly heardAt?: number }
  /** Something else is being said to the user (QUESTION-10). */
  | { readonly type: 'question.followed' }
  | {
      readonly type: 'question.answer';
      readonly channel: AnswerChannel;
      /** For speech: the time at which the utterance started. */
      readonly utteranceStartedAt: number | null;
      /** The answer is unambiguous and is not an approval, so it may interrupt the question. */
      readonly decisive: boolean;
      /**
       * For a yes: the number of the changed call, or 0 for the original call. Absent if the answer is not a yes, or if
       * it names the arguments.
       */
      readonly change?: number;
    }
  /** The lead agent has found the answer in what the user started to say at `saidAt` (QUESTION-9). */
  | {
      readonly type: 'question.settle';
      readonly channel: 'speech' | 'typing';
      readonly saidAt: number;
      /** The answer is not an approval. */
      readonly decisive: boolean;
    }
  /**
   * The answer was clear, but it was unclear which question it belongs to, so the question is repeated verbatim.
   * `after`: only after the lead agent has replied to that utterance. @defaultValue immediately
   */
  | {
      readonly type: 'question.readBack';
      readonly after?: 'reply';
      /**
       * Reads back this changed call from now on; 0 is the call as originally asked. @defaultValue the same call
       */
      readonly change?: number;
    }
  /** The lead agent has finished its reply. */
  | { readonly type: 'reply.ended' }
  /** The user asked for time, so the question is asked again at `remindAt`. */
  | { readonly type: 'question.hold'; readonly remindAt: number }
  /** The user wants to hear the question again or did not answer it, so it is asked again. */
  | { readonly type: 'question.repeat' }
  /** The tables cannot interpret these words, so a model interprets them. */
  | ({ readonly type: 'reading.begun' } & WordsRead)
  /**
   * The model has interpreted all utterances up to this one. `gives`: a yes to an approval, another answer, a request
   * to repeat the question, or nothing. `change`: the yes grants a lasting approval, and this is the number of its
   * read-back.
   */
  | {
      readonly type: 'reading.ended';
      readonly utteranceId: string;
      readonly gives: 'consent' | 'answer' | 'again' | 'nothing';
      readonly change?: number;
    }
  /** Neither side has spoken for a while, so the question is asked again. */
  | { readonly type: 'question.nudge' }
  | { readonly type: 'question.withdraw'; readonly reason: string }
  | { readonly type: 'question.supersede' }
  | { readonly type: 'client.attached' }
  | { readonly type: 'client.detached' }
  | { readonly type: 'deadline.answer'; readonly dueAt: number }
  | { readonly type: 'deadline.reminder'; readonly dueAt: number }
  | { readonly type: 'deadline.reading'; readonly dueAt: number };

/** The events of `questionMachine`. */
export type QuestionEvent = QuestionFact & Stamped;

/** How a question ended, as reported to the asker. */
export type QuestionEnd = 'answered' | 'expired' | 'withdrawn' | 'superseded';

const stamp = ({ event }: { event: QuestionEvent }) => event;

const present = {
  type: 'present',
  params: ({ context }: { context: QuestionContext }) => ({ requestId: context.requestId }),
} as const;

/** The clock continues, and the question is spoken and shown again. */
const putAgain = { target: 'open', actions: ['forgetNudges', present] } as const;

/** The transitions out of each state in which the question has the floor. */
const exits = {
  'client.detached': 'parked',
  'question.withdraw': 'withdrawn',
  'question.supersede': 'superseded',
} as const;

const settlement = {
  'question.settle': {
    guard: {
      type: 'maySettle',
      params: ({ event }: { event: Extract<QuestionEvent, { type: 'question.settle' }> }) => event,
    },
    target: 'answered',
  },
} as const;

/** Reports that something else is being said while the question has the floor. */
const sayings = {
  'question.followed': {
    guard: 'isLastSaid',
    actions: { type: 'markFollowed', params: stamp },
  },
} as const;

const noteChange = { type: 'noteChange', params: stamp } as const;

/** Waits for the lead agent's reply and then reads the question back (QUESTION-6). */
const readBackLater = {
  guard: ({ event }: { event: Extract<QuestionEvent, { type: 'question.readBack' }> }) =>
    event.after === 'reply',
  actions: ['awaitReply', { type: 'markFollowed', params: stamp }, noteChange],
} as const;

const readBackNow = [
  'forgetHearing',
  'forgetNudges',
  { type: 'markFollowed', params: stamp },
  present,
] as const;

const replies = {
  'reply.ended': { guard: 'awaitsReply', actions: readBackNow },
} as const;

const ifRead = (does: ReturnType<typeof readingDoes>) =>
  ({
    type: 'ifRead',
    params: ({ event }: { event: ReadingEnded }) => ({ event, does }),
  }) as const;

/** The user's requests while the question is presented or open. */
const wishes = {
  ...sayings,
  ...replies,
  'question.readBack': [readBackLater, { actions: [...readBackNow, noteChange] }],
  'question.hold': 'held',
  'question.repeat': { actions: ['forgetNudges', present] },
} as const;

/** The client's reports about a question that has already been presented to the user. */
const reports = {
  'question.shown': { actions: { type: 'markShown', params: stamp } },
  // The question was only shown, or something else has been said since. If the question is repeated on request, the
  // first start time is kept.
  'question.playing': {
    guard: 'isSaidAnew',
    actions: { type: 'markPlaying', params: stamp },
  },
  'question.heard': { actions: { type: 'markHeard', params: stamp } },
} as const;

const effects = {
  /** Speaks and shows the question. */
  present: effect<{ readonly requestId: string }>(),
  /** Stops speaking and showing the question. */
  retract: effect<{ readonly requestId: string }>(),
  /** Releases the floor, or leaves the queue for the floor. */
  release: effect<{ readonly requestId: string; readonly epoch: number }>(),
  /** Reports to the asker how the question ended. */
  reply: effect<{ readonly requestId: string; readonly end: QuestionEnd }>(),
};

export type QuestionEffects = EffectsOf<typeof effects>;

/**
 * The life of a question: it waits for the floor, is presented to the user, and is then answered, expires or is
 * withdrawn. The output states how the question ended.
 */
export const questionMachine = setup({
  types: {
    input: {} as QuestionInput,
    context: {} as QuestionContext,
    events: {} as QuestionEvent,
    output: {} as QuestionEnd,
    tags: {} as 'owner' | 'answerable',
  },
  actions: {
    ...activities<Deadline | Activity<'read', { readonly requestId: string }>>(),
    ...effects,
    startClock: assign(({ context }, { at }: Stamped) => ({
      dueAt: at + context.remainingMs,
      hasBegun: true,
      remindAt: 0,
    })),
    stopClock: assign(({ context }, { at }: Stamped) => ({
      remainingMs: Math.max(0, context.dueAt - at),
    })),
    keepReminder: assign((_, event: QuestionEvent) =>
      event.type === 'question.hold' ? { remindAt: event.remindAt } : {},
    ),
    keepWords: assign((_, event: QuestionEvent) => {
      if (event.type !== 'reading.begun') return {};
      const { utteranceId, channel, startedAt, at } = event;
      return { words: { utteranceId, channel, startedAt }, readBy: at + READING_MS };
    }),
    forgetHearing: assign({
      playingSince: null,
      heard: false,
      heardAt: undefined,
      readBack: 'due' as const,
    }),
    /** A report about another call does not apply to this call, even if the user's words become known much later. */
    noteChange: assign(({ context }, event: QuestionEvent) => {
      const { change: put = 0 } = context;
      const change =
        event.type === 'question.readBack' || event.type === 'reading.ended' ? event.change : put;
      if (change === undefined || change === put) return {};
      return {
        change,
        playingSince: null,
        heard: false,
        heardAt: undefined,
        isAffirmed: false,
      };
    }),
    awaitReply: assign({ readBack: 'after_reply' as const }),
    markFollowed: assign(({ context }, { at }: Stamped) => ({
      followedAt: context.followedAt ?? at,
    })),
    /**
     * The card is now the last thing that the user has seen. The last thing that the user has heard may be something
     * else.
     */
    endWithCard: assign(({ context }) => ({
      followedAt: null,
      readBack: null,
      ...(isFollowed(context) && { playingSince: null, heard: false, heardAt: undefined }),
    })),
    countNudge: assign(({ context }) => ({ nudges: (context.nudges ?? 0) + 1 })),
    forgetNudges: assign({ nudges: 0 }),
    markShown: assign(({ context }, { at }: Stamped) => {
      const ever = everOf(context);
      return {
        shownAt: context.shownAt ?? at,
        ever: { ...ever, shownAt: ever.shownAt ?? at },
      };
    }),
    markPlaying: assign(({ context }, { at }: Stamped) => {
      const ever = everOf(context);
      return {
        playingSince: at,
        ever: { ...ever, playingSince: ever.playingSince ?? at },
        ...(isFollowed(context) && { heard: false, heardAt: undefined }),
        followedAt: null,
        readBack: null,
      };
    }),
    /** A transport that does not report when playback starts still reports when it ends. */
    markHeard: assign(({ context }, { at, heardAt }: Heard) => {
      const ever = everOf(context);
      const first = ever.heard ? ever.heardAt : heardAt;
      return {
        playingSince: context.playingSince ?? at,
        ...(context.playingSince === null && { followedAt: null, readBack: null }),
        heard: true,
        heardAt: context.heard ? context.heardAt : heardAt,
        ever: {
          ...ever,
          playingSince: ever.playingSince ?? at,
          heard: true,
          ...(first !== undefined && { heardAt: first }),
        },
      };
    }),
  },
  guards: {
    mayAnswerNow: ({ context }, event: AnswerEvent) =>
      isForCall(context, event) &&
      (event.channel === 'button' ? isPut(context) : wordsCount(context, event)),
    mayAnswerOpen: ({ context }, event: AnswerEvent) =>
      isForCall(context, event) && (event.channel === 'button' || wordsCount(context, event)),
    maySettle: (
      { context },
      { channel, saidAt, decisive }: Extract<QuestionEvent, { type: 'question.settle' }>,
    ) => {
      const { shownAt, playingSince, heard, heardAt = -Infinity } = everOf(context);
      if (channel === 'speech')
        return (
          playingSince !== null &&
          playingSince <= saidAt &&
          (decisive || (heard && heardAt <= saidAt))
        );
      return Math.min(shownAt ?? Infinity, playingSince ?? Infinity) <= saidAt;
    },
    mayNudge: ({ context }) => context.heard && (context.nudges ?? 0) < MAX_NUDGES,
    hasBegun: ({ context }) => context.hasBegun,
    mayAnswerHeld: ({ context }, event: AnswerEvent) =>
      isForCall(context, event) &&
      (event.channel === 'button'
        ? isPut(context) || context.hasBegun
        : wordsCount(context, event)),
    isLastSaid: ({ context }) => isPut(context) && !isFollowed(context),
    awaitsReply: ({ context }) => context.readBack === 'after_reply',
    isReminderOfBegun: ({ context }, { dueAt }: { dueAt: number }) =>
      dueAt === context.remindAt && context.hasBegun,
    isThisReminder: ({ context }, { dueAt }: { dueAt: number }) => dueAt === context.remindAt,
    isSaidAnew: ({ context }) => context.playingSince === null || isFollowed(context),
    isThisDeadline: ({ context }, { dueAt }: { dueAt: number }) => dueAt === context.dueAt,
    ifRead: (
      { context },
      { event, does }: { event: ReadingEnded; does: ReturnType<typeof readingDoes> },
    ) => readingDoes(context, event) === does,
    isLateReading: ({ context }, { dueAt }: { dueAt: number }) => dueAt === context.readBy,
  },
}).createMachine({
  id: 'question',
  context: ({ input }) => ({
    requestId: input?.requestId ?? '',
    epoch: 0,
    remainingMs: input?.timeoutMs ?? 0,
    dueAt: 0,
    shownAt: null,
    playingSince: null,
    heard: false,
    hasBegun: false,
    remindAt: 0,
    nudges: 0,
    ever: { shownAt: null, playingSince: null, heard: false },
  }),
  initial: 'queued',
  options: machineOptions,
  output: ({ event }) => event.output as QuestionEnd,
  states: {
    queued: {
      on: {
        'question.granted': {
          target: 'presenting',
          actions: assign({ epoch: ({ event }) => event.epoch }),
        },
        'question.opened': 'open',
        'question.withdraw': 'withdrawn',
        'question.supersede': 'superseded',
      },
    },
    presenting: {
      tags: ['owner', 'answerable'],
      entry: [
        // Clears the reports of the previous presentation.
        assign({
          shownAt: null,
          playingSince: null,
          heard: false,
          heardAt: undefined,
          followedAt: null,
          readBack: null,
          hasBegun: false,
          nudges: 0,
        }),
        present,
      ],
      on: {
        'question.shown': [
          {
            guard: ({ event }) => event.startsClock,
            target: 'open',
            actions: [{ type: 'markShown', params: ({ event }) => event }, 'endWithCard'],
          },
          { actions: { type: 'markShown', params: ({ event }) => event } },
        ],
        'question.playing': { actions: { type: 'markPlaying', params: ({ event }) => event } },
        'question.heard': {
          target: 'open',
          actions: { type: 'markHeard', params: ({ event }) => event },
        },
        'question.answer': {
          guard: { type: 'mayAnswerNow', params: ({ event }) => event },
          target: 'answered',
        },
        ...settlement,
        ...wishes,
        ...exits,
      },
    },
    open: {
      tags: ['owner', 'answerable'],
      entry: [
        { type: 'startClock', params: ({ event }) => event },
        {
          type: 'startActivity',
          params: ({ context }) => deadline('deadline.answer', context.dueAt),
        },
      ],
      exit: [{ type: 'stopClock', params: ({ event }) => event }, stopActivity('deadline')],
      on: {
        ...reports,
        'question.answer': {
          guard: { type: 'mayAnswerOpen', params: ({ event }) => event },
          target: 'answered',
        },
        'deadline.answer': {
          guard: { type: 'isThisDeadline', params: ({ event }) => event },
          target: 'expired',
        },
        ...settlement,
        'reading.begun': 'reading',
        'question.nudge': { guard: 'mayNudge', actions: ['countNudge', present] },
        ...wishes,
        ...exits,
      },
    },
    held: {
      tags: ['owner', 'answerable'],
      entry: [
        { type: 'keepReminder', params: ({ event }) => event },
        { type: 'retract', params: ({ context }) => ({ requestId: context.requestId }) },
        {
          type: 'startActivity',
          params: ({ context }) => deadline('deadline.reminder', context.remindAt, 'reminder'),
        },
      ],
      exit: stopActivity('deadline', 'reminder'),
      on: {
        ...reports,
        'question.answer': {
          guard: { type: 'mayAnswerHeld', params: ({ event }) => event },
          target: 'answered',
        },
        ...settlement,
        'question.hold': { target: 'held', reenter: true },
        'deadline.reminder': [
          {
            guard: { type: 'isReminderOfBegun', params: ({ event }) => event },
            ...putAgain,
          },
          {
            guard: { type: 'isThisReminder', params: ({ event }) => event },
            target: 'presenting',
          },
        ],
        'reading.begun': { guard: 'hasBegun', target: 'reading' },
        ...sayings,
        'question.repeat': [{ guard: 'hasBegun', ...putAgain }, { target: 'presenting' }],
        'reply.ended': [
          { guard: and(['awaitsReply', 'hasBegun']), target: 'open', actions: readBackNow },
          { guard: 'awaitsReply', target: 'presenting' },
        ],
        'question.readBack': [
          readBackLater,
          { guard: 'hasBegun', target: 'open', actions: [...readBackNow, noteChange] },
          { target: 'presenting', actions: noteChange },
        ],
        ...exits,
      },
    },
    reading: {
      tags: ['owner', 'answerable'],
      entry: [
        { type: 'keepWords', params: ({ event }) => event },
        {
          type: 'startActivity',
          params: ({ context }) => activity('read', { requestId: context.requestId }),
        },
        {
          type: 'startActivity',
          params: ({ context }) => deadline('deadline.reading', context.readBy ?? 0, 'reading'),
        },
      ],
      exit: [stopActivity('read'), stopActivity('deadline', 'reading')],
      on: {
        ...reports,
        ...sayings,
        'question.answer': {
          guard: { type: 'mayAnswerOpen', params: ({ event }) => event },
          target: 'answered',
        },
        ...settlement,
        'reading.begun': { target: 'reading', reenter: true },
        'reading.ended': [
          { guard: ifRead('answers'), target: 'answered' },
          {
            guard: ifRead('readsBack'),
            target: 'open',
            actions: [...readBackNow, noteChange, assign({ isAffirmed: true })],
          },
          { guard: ifRead('passes'), target: 'open' },
          { guard: ifRead('holds'), target: 'held' },
          { guard: ifRead('asks'), ...putAgain },
        ],
        'deadline.reading': {
          guard: { type: 'isLateReading', params: ({ event }) => event },
          ...putAgain,
        },
        'question.repeat': putAgain,
        'reply.ended': { guard: 'awaitsReply', target: 'open', actions: readBackNow },
        'question.readBack': [
          readBackLater,
          { target: 'open', actions: [...readBackNow, noteChange] },
        ],
        'question.hold': 'held',
        ...exits,
      },
    },
    parked: {
      tags: ['owner'],
      on: {
        'client.attached': 'presenting',
        ...settlement,
        'question.withdraw': 'withdrawn',
        'question.supersede': 'superseded',
      },
    },
    answered: { type: 'final', entry: ending('answered'), output: 'answered' },
    expired: { type: 'final', entry: ending('expired'), output: 'expired' },
    withdrawn: { type: 'final', entry: ending('withdrawn'), output: 'withdrawn' },
    superseded: { type: 'final', entry: ending('superseded'), output: 'superseded' },
  },
});

/** A snapshot of `questionMachine`. */
export type QuestionSnapshot = SnapshotFrom<typeof questionMachine>;

function ending(end: QuestionEnd) {
  type Args = { context: QuestionContext };
  return [
    { type: 'retract', params: ({ context }: Args) => ({ requestId: context.requestId }) },
    {
      type: 'release',
      params: ({ context }: Args) => ({ requestId: context.requestId, epoch: context.epoch }),
    },
    { type: 'reply', params: ({ context }: Args) => ({ requestId: context.requestId, end }) },
  ] as const;
}

function everOf({ ever, shownAt, playingSince, heard }: QuestionContext): Presented {
  return ever ?? { shownAt, playingSince, heard };
}

function isPut({ shownAt, playingSince }: QuestionContext): boolean {
  return shownAt !== null || playingSince !== null;
}

type Heard = Stamped & { readonly heardAt?: number };

type ReadingEnded = Extract<QuestionEvent, { type: 'reading.ended' }>;

type AnswerEvent = Extract<QuestionEvent, { type: 'question.answer' }>;

/** QUESTION-13 */
function isForCall({ change: put = 0 }: QuestionContext, { change = put }: AnswerEvent): boolean {
  return change === put;
}

function isFollowed({ followedAt = null }: QuestionContext): boolean {
  return followedAt !== null;
}

/**
 * Returns whether the user's words follow the question or something that was said after it; null if the question has
 * not been presented. `startedAt`: the time at which the utterance started; null if the user has just typed it.
 */
export function wordsFollow(
  {
    playingSince,
    shownAt,
    hasBegun,
    followedAt = null,
  }: Pick<QuestionContext, 'playingSince' | 'shownAt' | 'hasBegun' | 'followedAt'>,
  startedAt: number | null,
): 'question' | 'other' | null {
  // In a session with a voice, a question that is only shown is ignored, because the lead agent may be speaking about
  // something else.
  const wasPut =
    startedAt === null
      ? playingSince !== null || (shownAt !== null && hasBegun)
      : playingSince !== null && playingSince <= startedAt;
  if (!wasPut) return null;
  const isLast = followedAt === null || (startedAt !== null && startedAt < followedAt);
  return isLast ? 'question' : 'other';
}

/** Returns whether words may answer the question now. */
function wordsCount(
  context: QuestionContext,
  { utteranceStartedAt, channel, decisive }: AnswerEvent,
): boolean {
  if (channel === 'typing') return wordsFollow(context, null) === 'question';
  if (utteranceStartedAt === null || wordsFollow(context, utteranceStartedAt) !== 'question')
    return false;
  const { heard, heardAt = -Infinity } = context;
  return decisive || (heard && heardAt <= utteranceStartedAt);
}

/** Returns whether words that a model has interpreted may answer the question (QUESTION-2, QUESTION-3, QUESTION-10). */
function readWordsCount({ words, ...context }: QuestionContext): boolean {
  const { playingSince, shownAt, hasBegun, followedAt = null } = context;
  if (!words || (followedAt !== null && words.startedAt >= followedAt)) return false;
  if (words.channel === 'typing') return playingSince !== null || (shownAt !== null && hasBegun);
  const { heard, heardAt = -Infinity } = context;
  const { startedAt } = words;
  return playingSince !== null && playingSince <= startedAt && heard && heardAt <= startedAt;
}

/** Returns what an interpretation changes; null if the question is not waiting for it (QUESTION-11, QUESTION-12). */
export function readingDoes(
  context: QuestionContext,
  { utteranceId, gives, change, at }: ReadingEnded,
): 'answers' | 'readsBack' | 'passes' | 'holds' | 'asks' | null {
  const { words, readBy = -Infinity, isAffirmed, remindAt } = context;
  if (words?.utteranceId !== utteranceId || at > readBy) return null;
  if (gives === 'nothing') return remindAt > 0 ? 'holds' : 'passes';
  if (gives === 'again' || !readWordsCount(context)) return 'asks';
  // The user's request not to be asked again has not been read back yet.
  if (change !== undefined) return 'readsBack';
  return gives === 'answer' || isAffirmed ? 'answers' : 'readsBack';
}
