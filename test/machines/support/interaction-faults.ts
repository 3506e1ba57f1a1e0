// Faults planted in the arbiter, each with the property that must catch it.

import { assign } from 'xstate';
import { interactionMachine } from '../../../src/machines/index.ts';
import { candidates, mutate, provide, stateOf, type Fault } from './mutate.ts';

type Machine = typeof interactionMachine;
type Args = { context: { owner: string | null; epoch: number; queue: readonly string[] } };
type Release = { id: string; epoch: number };

const lastInFirstOut = provide(interactionMachine, 'actions', {
  grantHead: assign(({ context }: Args) => ({
    owner: context.queue.at(-1) ?? null,
    queue: context.queue.slice(0, -1),
    epoch: context.epoch + 1,
  })),
});

export const anybodyReleases = provide(interactionMachine, 'guards', { isGrant: () => true });

export const crossingForgotten = provide(interactionMachine, 'guards', {
  isGrant: ({ context }: Args, { id, epoch }: Release) =>
    context.owner === id && context.epoch === epoch,
});

export const onePhase = mutate(interactionMachine, (chart) => {
  const { on } = stateOf(chart, 'subagent_interaction');
  const { entry: revoke } = stateOf(chart, 'revoking');
  const [owner, ...others] = candidates(on['interaction.withdraw']);
  on['interaction.withdraw'] = [{ ...owner, target: 'main_agent', actions: revoke }, ...others];
});

export const interactionFaults: readonly Fault<Machine>[] = [
  {
    fault: 'last in, first out',
    machine: lastInFirstOut,
    property: 'INTERACTION-2: the new owner was the head of the queue, the others keep their order',
  },
  {
    fault: 'a release by somebody else counts',
    machine: anybodyReleases,
    property: 'INTERACTION-1: only the owner with its epoch frees the floor',
  },
  {
    fault: 'a release under an old epoch counts',
    machine: provide(interactionMachine, 'guards', {
      isGrant: ({ context }: Args, { id }: Release) => context.owner === id,
    }),
    property: 'INTERACTION-1: only the owner with its epoch frees the floor',
  },
  {
    fault: 'the floor is taken away in one phase',
    machine: onePhase,
    property:
      'INTERACTION-4: who shall not have the floor is told, and keeps it until it releases it',
  },
  {
    fault: 'a grant is told twice',
    machine: mutate(interactionMachine, (chart) => {
      const state = stateOf(chart, 'subagent_interaction');
      state.entry = [state.entry, state.entry];
    }),
    property: 'INTERACTION-1: a grant carries its own epoch',
  },
  {
    fault: 'asking twice queues twice',
    machine: mutate(interactionMachine, (chart) => {
      chart.on['interaction.request'] = candidates(chart.on['interaction.request']).slice(1);
    }),
    property: 'INTERACTION-2: the new owner was the head of the queue, the others keep their order',
  },
];
