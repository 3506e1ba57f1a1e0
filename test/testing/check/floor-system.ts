// Small machines for the tests of the checker: speakers who request the floor, and a steward who gives it to one of
// them at a time. One steward takes the floor away in a single phase, which is wrong as soon as messages can cross.
// Another steward waits until the speaker has given the floor back.

import { assign, setup, type AnyStateMachine } from 'xstate';
import type { SystemCheck } from '../../../src/testing/check/index.ts';

type SpeakerEvent =
  | { type: 'want' }
  | { type: 'grant' }
  | { type: 'revoke' }
  | { type: 'say' }
  | { type: 'leave' };

const noop = (): void => {};

const speakerSetup = setup({
  types: { events: {} as SpeakerEvent, tags: {} as 'speaking' | 'waiting' },
  actions: { request: noop, release: noop },
});

/** A speaker that gives the floor back on `revoke` and requests it again. */
export const speaker = speakerSetup.createMachine({
  id: 'speaker',
  initial: 'listening',
  states: {
    listening: { on: { want: { target: 'queued', actions: 'request' }, leave: 'gone' } },
    queued: {
      tags: 'waiting',
      on: { grant: 'speaking', leave: { target: 'gone', actions: 'release' } },
    },
    speaking: {
      tags: 'speaking',
      on: {
        say: { target: 'listening', actions: 'release' },
        revoke: { target: 'queued', actions: ['release', 'request'] },
        leave: { target: 'gone', actions: 'release' },
      },
    },
    gone: { type: 'final' },
  },
});

/** A speaker that does not give the floor back if it leaves while it is speaking. */
export const forgetfulSpeaker = speakerSetup.createMachine({
  id: 'speaker',
  initial: 'listening',
  states: {
    listening: { on: { want: { target: 'queued', actions: 'request' }, leave: 'gone' } },
    queued: {
      tags: 'waiting',
      on: { grant: 'speaking', leave: { target: 'gone', actions: 'release' } },
    },
    speaking: {
      tags: 'speaking',
      on: { say: { target: 'listening', actions: 'release' }, leave: 'gone' },
    },
    gone: { type: 'final' },
  },
});

type StewardEvent =
  | { type: 'request'; id: string }
  | { type: 'release'; id: string }
  | { type: 'bell' };

const stewardSetup = setup({
  types: {
    context: {} as { owner: string | null; queue: string[] },
    events: {} as StewardEvent,
  },
  guards: {
    someoneWaits: ({ context }) => context.queue.length > 0,
    isOwner: ({ context, event }) => 'id' in event && event.id === context.owner,
    isKnown: ({ context, event }) =>
      'id' in event && (event.id === context.owner || context.queue.includes(event.id)),
  },
  actions: {
    grant: (_args, _params: { to: string }) => {},
    revoke: (_args, _params: { to: string }) => {},
    enqueue: assign(({ context, event }) => ({
      queue: 'id' in event ? [...context.queue, event.id] : context.queue,
    })),
    forget: assign(({ context, event }) => ({
      queue: context.queue.filter((id) => !('id' in event) || id !== event.id),
    })),
    chooseHead: assign(({ context }) => ({
      owner: context.queue[0] ?? null,
      queue: context.queue.slice(1),
    })),
    chooseLast: assign(({ context }) => ({
      owner: context.queue.at(-1) ?? null,
      queue: context.queue.slice(0, -1),
    })),
    free: assign({ owner: null }),
  },
});

const request = [{ guard: 'isKnown' as const }, { actions: 'enqueue' as const }];

function steward(choose: 'chooseHead' | 'chooseLast', onBell: 'onePhase' | 'twoPhase') {
  const revoke = {
    type: 'revoke' as const,
    params: ({ context }: { context: { owner: string | null } }) => ({ to: context.owner ?? '' }),
  };
  return stewardSetup.createMachine({
    id: 'steward',
    context: { owner: null, queue: [] },
    initial: 'free',
    on: { request },
    states: {
      free: {
        entry: 'free',
        on: { release: { actions: 'forget' } },
        always: { guard: 'someoneWaits', target: 'owned', actions: choose },
      },
      owned: {
        entry: { type: 'grant', params: ({ context }) => ({ to: context.owner ?? '' }) },
        on: {
          release: [{ guard: 'isOwner', target: 'free' }, { actions: 'forget' }],
          bell:
            onBell === 'onePhase'
              ? { target: 'free', actions: revoke }
              : { target: 'revoking', actions: revoke },
        },
      },
      revoking: {
        on: { release: [{ guard: 'isOwner', target: 'free' }, { actions: 'forget' }] },
      },
    },
  });
}

export const onePhaseSteward = steward('chooseHead', 'onePhase');
export const twoPhaseSteward = steward('chooseHead', 'twoPhase');
export const lastInFirstOutSteward = steward('chooseLast', 'twoPhase');

export type Floor = Record<string, AnyStateMachine>;

/** Checks Ann, Bob and a steward. */
export function floor<G = undefined>(
  options: Partial<SystemCheck<Floor, G>> & {
    readonly mode: 'sync' | 'async';
    readonly speakers?: readonly string[];
    readonly speaker?: AnyStateMachine;
    readonly steward?: AnyStateMachine;
  },
): SystemCheck<Floor, G> {
  const { speakers = ['ann', 'bob'], ...others } = options;
  const { speaker: machine = speaker, steward: chair = twoPhaseSteward, ...rest } = others;
  return {
    actors: {
      ...Object.fromEntries(speakers.map((id) => [id, { machine }])),
      steward: { machine: chair },
    },
    external: (_world, id) =>
      id === 'steward'
        ? [{ type: 'bell' }]
        : [{ type: 'want' }, { type: 'say' }, { type: 'leave' }],
    route: (from, effect) => {
      const { type, params } = effect as { type: string; params: { to: string } };
      if (type === 'request' || type === 'release') {
        return { to: 'steward', event: { type, id: from } };
      }
      if (type === 'grant' || type === 'revoke') return { to: params.to, event: { type } };
      return undefined;
    },
    invariants: {
      'one speaks at a time': ({ actors }) => {
        const speaking = speakers.filter((id) => actors[id]?.hasTag('speaking') === true);
        return speaking.length <= 1 || `${speaking.join(' and ')} speak.`;
      },
    },
    ...rest,
  };
}
