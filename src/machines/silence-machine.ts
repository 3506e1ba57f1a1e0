// How long nobody has spoken, in a conversation by voice.
//
//   loud ⇄ still ── nudgeAfterMs ──▶ an open question may be asked again
//     ⇅      ⇅   └─ awayAfterMs ───▶ the user counts as away, until anything is heard of them
//   waiting (only a tool of the lead agent works: the clocks stand)
//
// It is hosted beside the session and not journalled: what follows from it is (`question.nudge`).
//
// Owns:     the clocks of the silence, and whether the user is away.
// Does not: know who speaks (turns), or whether a question is open and how often it was asked (question).
//
// Invariants
//   SILENCE-1. Both clocks run in `still` only: they stand while a tool works, and begin anew after any speech and
//       when a client comes.
//   SILENCE-2. In one silence a nudge is due at most once, and nobody goes away twice without coming back.
//   SILENCE-3. Who is away comes back as soon as anything is heard of them, and by nothing else.

import { assign, setup, type SnapshotFrom } from 'xstate';
import {
  activities,
  deadline,
  effect,
  machineOptions,
  stopActivity,
  type Deadline,
  type EffectsOf,
  type Stamped,
} from './effect.ts';

/** The silences after which the session acts. */
export interface SilenceInput {
  /** Null: no question is asked again. */
  readonly nudgeAfterMs: number | null;
  /** Null: nobody goes away. */
  readonly awayAfterMs: number | null;
}

interface SilenceContext extends SilenceInput {
  /** The rest of the clocks when `still` begins; null: they do not run any more in this silence. */
  readonly nudgeLeftMs: number | null;
  readonly awayLeftMs: number | null;
  readonly since: number;
  readonly isAway: boolean;
}

/** The activity in the session: somebody speaks or nobody listens, only a tool works, or nothing. */
export type SilenceState = 'loud' | 'waiting' | 'still';

/** A fact about the silence of a session. */
export type SilenceFact =
  | { readonly type: 'silence.changed'; readonly to: SilenceState }
  /** The user speaks, writes or answers. */
  | { readonly type: 'user.noticed' }
  | { readonly type: 'deadline.nudge'; readonly dueAt: number }
  | { readonly type: 'deadline.away'; readonly dueAt: number };

/** The events of `silenceMachine`. */
export type SilenceEvent = SilenceFact & Stamped;

const effects = {
  /** An open question may be asked again. */
  nudge: effect<object>(),
  /** The user has not been heard for so long, in milliseconds. */
  away: effect<{ readonly silentMs: number }>(),
  back: effect<object>(),
};

export type SilenceEffects = EffectsOf<typeof effects>;

const changed = [
  { guard: ({ event }: { event: SilenceEvent }) => goesTo(event, 'loud'), target: 'loud' },
  { guard: ({ event }: { event: SilenceEvent }) => goesTo(event, 'waiting'), target: 'waiting' },
  { guard: ({ event }: { event: SilenceEvent }) => goesTo(event, 'still'), target: 'still' },
] as const;

function goesTo(event: SilenceEvent, to: SilenceState): boolean {
  return event.type === 'silence.changed' && event.to === to;
}

/** Starts a clock in its state. */
const start = (id: 'nudge' | 'away', leftMs: (of: SilenceContext) => number | null) =>
  ({
    type: 'startActivity',
    params: ({ context }: { context: SilenceContext }) =>
      deadline(`deadline.${id}`, context.since + (leftMs(context) ?? 0), id),
  }) as const;

/** Counts how long a session is silent, reminds the user, and notices that the user is away. */
export const silenceMachine = setup({
  types: {
    input: {} as SilenceInput,
    context: {} as SilenceContext,
    events: {} as SilenceEvent,
  },
  actions: {
    ...activities<Deadline>(),
    ...effects,
    beginAnew: assign(({ context }) => ({
      nudgeLeftMs: context.nudgeAfterMs,
      awayLeftMs: context.isAway ? null : context.awayAfterMs,
    })),
    begin: assign((_, { at }: Stamped) => ({ since: at })),
    stand: assign(({ context }, { at }: Stamped) => ({
      nudgeLeftMs: leftOf(context.nudgeLeftMs, at - context.since),
      awayLeftMs: leftOf(context.awayLeftMs, at - context.since),
    })),
  },
  guards: {
    isNudge: ({ context, event }) =>
      event.type === 'deadline.nudge' &&
      context.nudgeLeftMs !== null &&
      event.dueAt === context.since + context.nudgeLeftMs,
    isAway: ({ context, event }) =>
      event.type === 'deadline.away' &&
      context.awayLeftMs !== null &&
      event.dueAt === context.since + context.awayLeftMs,
  },
}).createMachine({
  id: 'silence',
  options: machineOptions,
  context: ({ input }) => ({
    nudgeAfterMs: input?.nudgeAfterMs ?? null,
    awayAfterMs: input?.awayAfterMs ?? null,
    nudgeLeftMs: null,
    awayLeftMs: null,
    since: 0,
    isAway: false,
  }),
  initial: 'loud',
  on: {
    'user.noticed': {
      guard: ({ context }) => context.isAway,
      actions: [assign({ isAway: false }), { type: 'back', params: {} }],
    },
  },
  states: {
    loud: { entry: 'beginAnew', on: { 'silence.changed': changed.slice(1) } },
    waiting: { on: { 'silence.changed': [changed[0], changed[2]] } },
    still: {
      entry: { type: 'begin', params: ({ event }) => event },
      exit: { type: 'stand', params: ({ event }) => event },
      on: { 'silence.changed': changed.slice(0, 2) },
      type: 'parallel',
      states: {
        // Before the nudge: where both are due at once, the user is away.
        away: {
          initial: 'off',
          states: {
            off: { always: { guard: ({ context }) => context.awayLeftMs !== null, target: 'on' } },
            on: {
              entry: start('away', ({ awayLeftMs }) => awayLeftMs),
              exit: stopActivity('deadline', 'away'),
              on: {
                'deadline.away': {
                  guard: 'isAway',
                  target: 'off',
                  actions: [
                    assign({ awayLeftMs: null, isAway: true }),
                    {
                      type: 'away',
                      params: ({ context }) => ({ silentMs: context.awayAfterMs ?? 0 }),
                    },
                  ],
                },
              },
            },
          },
        },
        nudge: {
          initial: 'off',
          states: {
            off: { always: { guard: ({ context }) => context.nudgeLeftMs !== null, target: 'on' } },
            on: {
              entry: start('nudge', ({ nudgeLeftMs }) => nudgeLeftMs),
              exit: stopActivity('deadline', 'nudge'),
              on: {
                'deadline.nudge': {
                  guard: 'isNudge',
                  target: 'off',
                  actions: [assign({ nudgeLeftMs: null }), { type: 'nudge', params: {} }],
                },
              },
            },
          },
        },
      },
    },
  },
});

/** A snapshot of `silenceMachine`. */
export type SilenceSnapshot = SnapshotFrom<typeof silenceMachine>;

function leftOf(leftMs: number | null, passedMs: number): number | null {
  return leftMs === null ? null : Math.max(0, leftMs - passedMs);
}
