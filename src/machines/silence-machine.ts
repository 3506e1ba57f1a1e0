// Measures the silence in a voice conversation.
//
//   loud ⇄ still ── nudgeAfterMs ──▶ an open question may be asked again ⇅      ⇅   └─ awayAfterMs ───▶ the user
//   counts as away, until they speak, write or answer waiting (only a tool of the lead agent works: the clocks stop)
//
// The machine runs outside the session's unit and is not in the journal; its consequences are (`question.nudge`).
//
// Owns:     the clocks that measure silence, and whether the user is away.
// Does not: determine who is speaking (turns), whether a question is open, or how often it has been asked (question).
//
// Invariants
//   SILENCE-1. Both clocks run only in `still`. They stop while a tool is working. They restart after speech, and when
//       a client attaches.
//   SILENCE-2. One period of silence causes at most one nudge. A user who is away must come back before they can be
//       reported as away again.
//   SILENCE-3. A user who is away comes back only when they speak, write or answer.

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

/** The lengths of silence after which the session does something. */
export interface SilenceInput {
  /** The length of silence after which an open question may be asked again, in milliseconds; null for never. */
  readonly nudgeAfterMs: number | null;
  /** The length of silence after which the user is considered away, in milliseconds; null for never. */
  readonly awayAfterMs: number | null;
}

interface SilenceContext extends SilenceInput {
  /** The time left on each clock when `still` starts; null if the clock has already expired during this silence. */
  readonly nudgeLeftMs: number | null;
  readonly awayLeftMs: number | null;
  readonly since: number;
  readonly isAway: boolean;
}

/**
 * `loud`: a side is speaking or no client is listening. `waiting`: only a tool is working. `still`: nothing is
 * happening.
 */
export type SilenceState = 'loud' | 'waiting' | 'still';

/** A fact about a session's silence. */
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
  /** The duration of the user's silence, in milliseconds. */
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

/** Starts a clock when the machine enters the state. */
const start = (id: 'nudge' | 'away', leftMs: (of: SilenceContext) => number | null) =>
  ({
    type: 'startActivity',
    params: ({ context }: { context: SilenceContext }) =>
      deadline(`deadline.${id}`, context.since + (leftMs(context) ?? 0), id),
  }) as const;

/** Measures a session's silence, requests a nudge for an open question, and notices when the user is away. */
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
        // Declared before the nudge, so that the user is considered away if both are due at the same time.
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
