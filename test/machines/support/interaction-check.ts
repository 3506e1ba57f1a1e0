// Explores every state of the arbiter with three questions and checks its properties (INTERACTION-1 to INTERACTION-4).
//
// The epoch only grows, and only its equality matters. So the key distinguishes no epoch, the first one and later ones,
// and releases arrive with the current epoch, the previous one, or none.

import {
  interactionMachine,
  ownerOf,
  type InteractionEvent,
  type InteractionSnapshot,
} from '../../../src/machines/index.ts';
import { checkMachine } from '../../../src/testing/check/index.ts';
import { paramsOf, same } from './effects.ts';
import type { OnViolation } from './verdicts.ts';

type Machine = typeof interactionMachine;
type S = InteractionSnapshot;

const members = ['a', 'b', 'c'] as const;

/** The questions that received the floor and have not released it. */
type Holders = readonly string[];

function interactionEvents({ context: { epoch, queue } }: S): readonly InteractionEvent[] {
  const epochs = [...new Set([epoch, epoch - 1, 0])].filter((one) => one >= 0);
  // One more request than may wait, so that the check notices if the queue is too long, and so that the check still
  // ends.
  const asks = queue.length < members.length;
  return members.flatMap((id): InteractionEvent[] => [
    ...(asks ? [{ type: 'interaction.request', id } as const] : []),
    { type: 'interaction.withdraw', id },
    ...epochs.map((one) => ({ type: 'interaction.release', id, epoch: one }) as const),
  ]);
}

/**
 * Returns whether this event frees the floor. A release with epoch 0 comes from a question that left before its grant
 * arrived.
 */
function frees({ context }: S, event: { readonly type: string }): boolean {
  const { type, id, epoch } = event as { type: string; id: string; epoch: number };
  return (
    type === 'interaction.release' &&
    id === context.owner &&
    (epoch === context.epoch || epoch === 0)
  );
}

/** Explores the arbiter or a faulty version of it. */
export function checkInteraction(
  machine: Machine = interactionMachine,
  onViolation: OnViolation = 'collect',
) {
  return checkMachine<Machine, Holders>(machine, {
    name: 'interaction',
    onViolation,
    key: ({ value, context: { owner, queue, epoch } }) => [value, owner, queue, Math.min(epoch, 2)],
    events: interactionEvents,
    end: (snapshot) => snapshot.matches('main_agent'),
    ghost: {
      initial: [],
      next(holders, { event, effects }, before) {
        const left = frees(before, event)
          ? holders.filter((id) => id !== before.context.owner)
          : holders;
        return [...left, ...paramsOf(effects, 'grant').map(({ id }) => id)];
      },
    },
    invariants: {
      'INTERACTION-1: at most one has the floor, and it is the owner': ({ context }, holders) =>
        same(holders, context.owner === null ? [] : [context.owner]),
      'INTERACTION-1: what the user says goes to an owner that may keep it': (snapshot) =>
        ownerOf(snapshot) ===
        (snapshot.matches('subagent_interaction') ? snapshot.context.owner : null),
      'INTERACTION-2: nobody waits twice, the owner does not wait': ({
        context: { owner, queue },
      }) => new Set([owner, ...queue]).size === queue.length + 1,
      'INTERACTION-3: the floor is free exactly while nobody waits': (snapshot) => {
        const { owner, queue } = snapshot.context;
        return snapshot.matches('main_agent')
          ? owner === null && queue.length === 0
          : owner !== null;
      },
    },
    steps: {
      'INTERACTION-4: who shall not have the floor is told, and keeps it until it releases it': (
        before,
        { type, id },
        after,
        effects,
      ) => {
        const { owner, epoch } = before.context;
        const told =
          type === 'interaction.withdraw' && id === owner && before.matches('subagent_interaction');
        if (!told) return paramsOf(effects, 'revoke').length === 0;
        return (
          same(paramsOf(effects, 'revoke'), [{ id, epoch }]) &&
          after.matches('revoking') &&
          after.context.owner === owner
        );
      },
      'INTERACTION-1: only the owner with its epoch frees the floor': (before, event, after) => {
        const { owner } = before.context;
        return owner === null || after.context.epoch === before.context.epoch
          ? owner === null || after.context.owner === owner || frees(before, event)
          : frees(before, event);
      },
      'INTERACTION-1: a grant carries its own epoch': (before, _event, after, effects) => {
        const { owner, epoch } = after.context;
        const granted = epoch !== before.context.epoch;
        if (granted && epoch !== before.context.epoch + 1) return false;
        return same(paramsOf(effects, 'grant'), granted ? [{ id: owner, epoch }] : []);
      },
      'INTERACTION-2: the new owner was the head of the queue, the others keep their order': (
        before,
        event,
        after,
      ) => {
        const { owner, queue } = before.context;
        const { type, id } = event as InteractionEvent;
        const known = id === owner || queue.includes(id);
        let expected = [...queue];
        if (type === 'interaction.request' && !known) expected.push(id);
        if (type !== 'interaction.request') expected = expected.filter((waiting) => waiting !== id);
        const granted = after.context.epoch !== before.context.epoch;
        const got = granted ? [after.context.owner, ...after.context.queue] : after.context.queue;
        return same(got, expected) || `Expected ${expected.join()} to wait, got ${got.join()}`;
      },
      'INTERACTION-4: the next grant waits for the release': (before, event, _after, effects) =>
        before.context.owner === null ||
        paramsOf(effects, 'grant').length === 0 ||
        frees(before, event),
    },
    waits: {
      'an owner can release the floor': {
        when: ({ context }) => context.owner !== null,
        exits: ['interaction.release'],
      },
      'who waits can leave': {
        when: ({ context }) => context.queue.length > 0,
        exits: ['interaction.release'],
      },
    },
    reachable: {
      'two wait behind an owner': ({ context }) => context.queue.length === 2,
      'two wait while the owner is asked to go': (snapshot) =>
        snapshot.matches('revoking') && snapshot.context.queue.length === 2,
    },
  });
}
