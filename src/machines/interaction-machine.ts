// Grants the floor, which is the right to the user's words, to the lead agent or to one question at a time.
//
//   main_agent ⇄ subagent_interaction ──▶ revoking
//        ▲                                   │
//        └───────────────────────────────────┘
//
// Owns:     the owner, the queue behind it, and the epoch of the grant.
// Does not: know what the questions are, how long they last, or how they end.
//
// Invariants
//   INTERACTION-1. There is at most one owner. Each grant has an epoch. A release must contain this epoch; a question
//       that ended before its grant arrived sends 0.
//   INTERACTION-2. First come, first served: each new owner was at the head of the queue. A repeated request is not
//       queued again, and the order of requests never changes.
//   INTERACTION-3. In `main_agent`, where the lead agent has the floor, the queue is empty.
//   INTERACTION-4. A withdrawal has two phases. The machine first asks the owner to release the floor, and grants the
//       floor to the next owner only after the release. With a single phase, messages that cross could lead to two
//       owners.

import { assign, setup, type SnapshotFrom } from 'xstate';
import { effect, machineOptions, type EffectsOf } from './effect.ts';

interface InteractionContext {
  /** The request id of the question that has the floor; null if the lead agent has it. */
  readonly owner: string | null;
  /** The request ids of the questions that wait for the floor, in the order of their requests. */
  readonly queue: readonly string[];
  /** The number of grants so far; 0 before the first one. */
  readonly epoch: number;
}

/** The events of `interactionMachine`. */
export type InteractionEvent =
  /** The question asks for the floor. */
  | { readonly type: 'interaction.request'; readonly id: string }
  /**
   * The question releases the floor or leaves the queue. `epoch`: the epoch of the question's grant; 0 if the question
   * had none.
   */
  | { readonly type: 'interaction.release'; readonly id: string; readonly epoch: number }
  /** The session takes the floor from the question, or removes the question from the queue. */
  | { readonly type: 'interaction.withdraw'; readonly id: string };

const effects = {
  /** Grants the floor: the question receives the user's words until it releases the floor. */
  grant: effect<{ readonly id: string; readonly epoch: number }>(),
  /** Asks the question to release the floor. */
  revoke: effect<{ readonly id: string; readonly epoch: number }>(),
};

export type InteractionEffects = EffectsOf<typeof effects>;

/**
 * Grants the user's words to one question at a time, first come, first served. The lead agent receives them while there
 * is no question.
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
    // The epoch is 0 if the release and the grant crossed each other. Nothing would release that grant.
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

/** Returns the question that has the floor; null while the lead agent has it. */
export function ownerOf(snapshot: InteractionSnapshot): string | null {
  return snapshot.matches('subagent_interaction') ? snapshot.context.owner : null;
}
