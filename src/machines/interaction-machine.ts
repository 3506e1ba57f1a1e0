// Grants the user's words to the lead agent, or to one question at a time.
//
//   main_agent ⇄ subagent_interaction ──▶ revoking
//        ▲                                   │
//        └───────────────────────────────────┘
//
// Owns:     the owner, the queue behind it, and the epoch of the grant.
// Does not: know the questions, their duration or their end.
//
// Invariants
//   INTERACTION-1. There is at most one owner. A grant has an epoch; a release is accepted only with this epoch, or
//       with 0 from a question that ended before its grant arrived.
//   INTERACTION-2. First come, first served: a new owner was the head of the queue. A repeated request is not queued
//       twice, and no request overtakes another.
//   INTERACTION-3. The floor is free only while the queue is empty: `main_agent` has an empty queue.
//   INTERACTION-4. A withdrawal has two phases: the machine asks the owner to release, and grants the floor again only
//       after the release. With a single phase, there would be two owners when messages cross.

import { assign, setup, type SnapshotFrom } from 'xstate';
import { effect, machineOptions, type EffectsOf } from './effect.ts';

interface InteractionContext {
  readonly owner: string | null;
  readonly queue: readonly string[];
  /** The number of grants; 0 before the first. */
  readonly epoch: number;
}

/** The events of `interactionMachine`. */
export type InteractionEvent =
  /** The question requests the floor. */
  | { readonly type: 'interaction.request'; readonly id: string }
  /** The question no longer has the floor, or leaves the queue. `epoch` is the epoch of its grant; 0 if it had none. */
  | { readonly type: 'interaction.release'; readonly id: string; readonly epoch: number }
  /** The session takes the floor from the question, or removes the question from the queue. */
  | { readonly type: 'interaction.withdraw'; readonly id: string };

const effects = {
  /** Grants the floor: the question owns the user's words until it releases the floor. */
  grant: effect<{ readonly id: string; readonly epoch: number }>(),
  /** Asks the question to release the floor. */
  revoke: effect<{ readonly id: string; readonly epoch: number }>(),
};

export type InteractionEffects = EffectsOf<typeof effects>;

/**
 * Grants the user's words to one question at a time, first come, first served. The lead agent has them while there is
 * no question.
 */
export const interactionMachine = setup({
  types: { context: {} as InteractionContext, events: {} as InteractionEvent },
  actions: {
    ...effects,
    enqueue: assign(({ context }, { id }: { id: string }) => ({ queue: [...context.queue, id] })),
    leave: assign(({ context }, { id }: { id: string }) => ({
      queue: context.queue.filter((waiting) => waiting !== id),
    })),
    grantHead: assign(({ context }) => ({
      owner: context.queue[0] ?? null,
      queue: context.queue.slice(1),
      epoch: context.epoch + 1,
    })),
  },
  guards: {
    isOwner: ({ context }, { id }: { id: string }) => context.owner === id,
    // 0: the release and the grant crossed, so the grant has no owner that could release it.
    isGrant: ({ context }, { id, epoch }: { id: string; epoch: number }) =>
      context.owner === id && (context.epoch === epoch || epoch === 0),
    isKnown: ({ context }, { id }: { id: string }) =>
      context.owner === id || context.queue.includes(id),
    isQueued: ({ context }, { id }: { id: string }) => context.queue.includes(id),
  },
}).createMachine({
  id: 'interaction',
  context: { owner: null, queue: [], epoch: 0 },
  initial: 'main_agent',
  options: machineOptions,
  on: {
    'interaction.request': [
      { guard: { type: 'isKnown', params: ({ event }) => event } },
      { actions: { type: 'enqueue', params: ({ event }) => event } },
    ],
    'interaction.release': {
      guard: { type: 'isQueued', params: ({ event }) => event },
      actions: { type: 'leave', params: ({ event }) => event },
    },
    'interaction.withdraw': {
      guard: { type: 'isQueued', params: ({ event }) => event },
      actions: { type: 'leave', params: ({ event }) => event },
    },
  },
  states: {
    main_agent: {
      entry: assign({ owner: null }),
      always: {
        guard: ({ context }) => context.queue.length > 0,
        target: 'subagent_interaction',
        actions: 'grantHead',
      },
    },
    subagent_interaction: {
      entry: {
        type: 'grant',
        params: ({ context }) => ({ id: context.owner ?? '', epoch: context.epoch }),
      },
      on: {
        'interaction.release': [
          { guard: { type: 'isGrant', params: ({ event }) => event }, target: 'main_agent' },
          {
            guard: { type: 'isQueued', params: ({ event }) => event },
            actions: { type: 'leave', params: ({ event }) => event },
          },
        ],
        'interaction.withdraw': [
          { guard: { type: 'isOwner', params: ({ event }) => event }, target: 'revoking' },
          {
            guard: { type: 'isQueued', params: ({ event }) => event },
            actions: { type: 'leave', params: ({ event }) => event },
          },
        ],
      },
    },
    revoking: {
      entry: {
        type: 'revoke',
        params: ({ context }) => ({ id: context.owner ?? '', epoch: context.epoch }),
      },
      on: {
        'interaction.release': [
          { guard: { type: 'isGrant', params: ({ event }) => event }, target: 'main_agent' },
          {
            guard: { type: 'isQueued', params: ({ event }) => event },
            actions: { type: 'leave', params: ({ event }) => event },
          },
        ],
      },
    },
  },
});

/** A snapshot of `interactionMachine`. */
export type InteractionSnapshot = SnapshotFrom<typeof interactionMachine>;

/** Returns the question that owns the user's words; null while the lead agent owns them. */
export function ownerOf(snapshot: InteractionSnapshot): string | null {
  return snapshot.matches('subagent_interaction') ? snapshot.context.owner : null;
}
