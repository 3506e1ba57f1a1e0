// A turn between the session and the outbox. The user speaks or types, leaves and returns; a result is due, and an
// urgent item may arrive; the model calls a tool, fails, or is interrupted. Stand-ins replace the model with the
// loudspeaker, and the microphone with its client.
//
// Everything that the user says is answered (P10), by the first word of a reply or by a report of the turn (`settled`,
// `unanswered`), unless the user leaves.
//
// In the scope `nobody helps`, the words from the microphone never become known, no reply ever has a word, and the tool
// never settles. The turn still waits for two tools, until they settle or their timeout ends them (tool call): the tool
// of a model that cannot speak during an open call, and the tool that is called during a delivery, which continues with
// the result.

import { assign, initialTransition, setup, transition, type AnyEventObject } from 'xstate';
import {
  gateIsOpen,
  gateMessage,
  gateOf,
  modelIsBusy,
  outboxMachine,
  sessionMachine,
  shared,
  turnMachine,
  userHasFloor,
  type Gate,
  type OutboxItem,
  type OutboxSnapshot,
  type SessionMachineEvent,
  type SessionSnapshot,
  type TurnFact,
  type TurnSnapshot,
} from '../../../src/machines/index.ts';
import {
  checkSystem,
  type Delivery,
  type Machines,
  type World,
} from '../../../src/testing/check/index.ts';
import { paramsOf } from './effects.ts';
import { mutate } from './mutate.ts';
import { turnsOf, type Lead, type Scope } from './turn-check.ts';

const at = 0;
const key = 'offer';

interface Ghost {
  readonly told: Gate;
  readonly utterances: number;
  /** The place of the user's words has not been decided yet. */
  readonly isOpen: boolean;
  /** The user is waiting for the lead agent's answer. */
  readonly isOwed: boolean;
  readonly happened: readonly string[];
  readonly heard: readonly string[];
}

type Situation = World<Machines, Ghost>;

interface VoiceContext {
  /** The generation of the offer that the model is speaking, or 0 for a reply. */
  readonly generation: number;
}

/** Reports an action of the model by name. The router chooses the receiver. */
const says = (what: string) => ({ type: 'did', params: { what } }) as const;

/** The model, and the loudspeaker that plays the model's audio. */
const voiceMachine = setup({
  types: {
    context: {} as VoiceContext,
    events: {} as
      | { readonly type: 'say'; readonly generation: number }
      | { readonly type: 'begin' | 'finish' | 'fail' | 'stop' | 'call' },
  },
  actions: { did: (_args, _params: { readonly what: string }) => {} },
}).createMachine({
  id: 'voice',
  context: { generation: 0 },
  initial: 'silent',
  states: {
    silent: {
      on: {
        say: { target: 'asked', actions: assign({ generation: ({ event }) => event.generation }) },
      },
    },
    asked: {
      on: {
        begin: { target: 'speaking', actions: says('began') },
        fail: { target: 'silent', actions: says('failed') },
        stop: { target: 'silent', actions: says('stopped') },
      },
    },
    speaking: {
      on: {
        call: { actions: says('called') },
        finish: { target: 'silent', actions: says('finished') },
        stop: { target: 'silent', actions: says('stopped') },
      },
    },
  },
});

/** The user's microphone. */
const microphoneMachine = setup({
  types: {
    events: {} as {
      readonly type: 'begin' | 'end' | 'words' | 'nothing' | 'late' | 'leave' | 'come';
    },
  },
  actions: { did: (_args, _params: { readonly what: string }) => {} },
}).createMachine({
  id: 'microphone',
  initial: 'silent',
  on: { leave: { target: '.absent', actions: says('left') } },
  states: {
    silent: { on: { begin: { target: 'speaking', actions: says('spoke') } } },
    speaking: { on: { end: { target: 'settling', actions: says('ended') } } },
    settling: {
      on: {
        words: { target: 'silent', actions: says('understood') },
        nothing: { target: 'silent', actions: says('coughed') },
        late: { target: 'silent', actions: says('late') },
      },
    },
    absent: { on: { leave: {}, come: { target: 'silent', actions: says('came') } } },
  },
});

/** The session with an additional region that reports each event that the session receives. */
const watchedSession = mutate(sessionMachine, (chart) => {
  chart.states['watch'] = {
    on: {
      '*': {
        actions: {
          type: 'changed',
          params: ({ event }: { event: SessionMachineEvent }) => ({ event }),
        },
      },
    },
  } as never;
});

const item = (deliveryId: string, isUrgent: boolean): OutboxItem => ({
  deliveryId,
  kind: isUrgent ? 'notice' : 'result',
  priority: isUrgent ? 'urgent' : 'normal',
  replaces: null,
  reserved: false,
  expiresAt: null,
});

function restored(
  machine: typeof sessionMachine | typeof outboxMachine,
  input: object,
  events: readonly AnyEventObject[],
): never {
  let [snapshot] = initialTransition(machine as typeof outboxMachine, input as never);
  for (const event of events)
    [snapshot] = transition(machine as typeof outboxMachine, snapshot, { ...event, at } as never);
  return snapshot as never;
}

const sessionOf = ({ actors }: Situation) => actors['session'] as SessionSnapshot;
const outboxOf = ({ actors }: Situation) => actors['outbox'] as OutboxSnapshot;
const turnIn = ({ actors }: Situation) => actors['turn'] as TurnSnapshot;
const voiceOf = ({ actors }: Situation) =>
  actors['voice'] as unknown as { readonly value: string; readonly context: VoiceContext };
const microphoneOf = ({ actors }: Situation) =>
  actors['microphone'] as unknown as { readonly value: string };

export interface TurnSystemOptions {
  /** How often the user speaks. @defaultValue 1 */
  readonly utterances?: number;
  readonly lead: Lead;
  readonly scope: Scope;
  readonly turn?: typeof turnMachine;
}

export function checkTurns({
  lead,
  scope,
  utterances: most = 1,
  turn = turnMachine,
}: TurnSystemOptions) {
  const { keepsOffers } = turnsOf[lead];
  const toTurn = (...facts: readonly TurnFact[]): readonly Delivery[] =>
    facts.map((event) => ({ to: 'turn', event }));
  const toSession = (...types: readonly string[]): readonly Delivery[] =>
    types.map((type) => ({ to: 'session', event: { type } }));
  const utteranceId = 'u';

  /** Returns the lead agent's reports on the actions of the stand-ins. */
  const reports = (what: string, world: Situation): readonly Delivery[] => {
    const { generation } = voiceOf(world).context;
    const isOffer = generation > 0;
    const toOutbox = (type: string): readonly Delivery[] =>
      isOffer ? [{ to: 'outbox', event: { type, generation, grade: 'played' } }] : [];
    const isOver: readonly Delivery[] = [
      ...toTurn({ type: 'request.ended', continuesAs: null }, { type: 'speech.stopped' }),
      ...(isOffer ? toTurn({ type: 'offer.over', generation }) : []),
      ...toSession('playout.drained'),
    ];
    const { settleBy } = turnIn(world).context;
    switch (what) {
      case 'began':
        return [
          ...(isOffer ? [] : toTurn({ type: 'model.spoke', responseId: null })),
          ...toSession('playout.started'),
          ...toOutbox('delivery.playing'),
        ];
      case 'called':
        return toTurn({
          type: 'call.made',
          callId: 'c',
          responseId: '',
          of: isOffer && keepsOffers ? 'offer' : 'reply',
        });
      case 'finished':
        return [
          ...isOver,
          ...toOutbox('delivery.heard'),
          ...(isOffer ? toTurn({ type: 'urgent.over' }) : []),
          ...toTurn({ type: 'choose' }),
        ];
      case 'stopped':
        return [
          ...toTurn({ type: 'response.cancelled', responseId: null }),
          ...isOver,
          ...toOutbox('delivery.interrupted'),
          ...(isOffer ? toTurn({ type: 'urgent.over' }) : []),
          ...toTurn({ type: 'choose' }),
        ];
      case 'failed':
        return [
          ...isOver,
          ...toOutbox('delivery.failed'),
          ...toTurn({ type: isOffer ? 'urgent.over' : 'reply.failed' }),
          ...toTurn({ type: 'choose' }),
        ];
      case 'spoke':
        return [
          ...toTurn({ type: 'user.began', utteranceId }),
          ...toSession('utterance.started'),
          ...toTurn({ type: 'user.spoke' }),
          ...(voiceOf(world).value === 'silent'
            ? []
            : // Only audible speech can be paused.
              toTurn({
                type: 'user.overlaps',
                utteranceId,
                canPause: voiceOf(world).value === 'speaking',
              })),
        ];
      case 'ended':
        return [...toSession('utterance.ended'), ...toTurn({ type: 'user.ended', utteranceId })];
      case 'understood':
        return [
          ...toTurn(
            { type: 'user.worded', utteranceId, reading: 'interrupts' },
            { type: 'reply.toWords', typed: false },
            { type: 'floor.taken' },
            { type: 'user.understood', utteranceId },
          ),
          ...toSession('utterance.settled'),
          ...toTurn({ type: 'choose' }),
        ];
      case 'coughed':
        return [
          ...toTurn(
            { type: 'user.worded', utteranceId, reading: 'listens' },
            { type: 'user.understood', utteranceId },
          ),
          ...toSession('utterance.settled'),
          ...toTurn({ type: 'choose' }),
        ];
      case 'late':
        return [
          { to: 'session', event: { type: 'deadline.settle', dueAt: settleBy } },
          ...toTurn({ type: 'deadline.settle', dueAt: settleBy }),
        ];
      case 'left':
        return [
          ...toTurn({ type: 'client.left' }),
          { to: 'voice', event: { type: 'stop' } },
          ...toSession('client.detached'),
          ...toTurn({ type: 'choose' }),
        ];
      default:
        return toSession('client.attached');
    }
  };

  const routed = (
    from: string,
    type: string,
    params: Record<string, never>,
    world: Situation,
  ): readonly Delivery[] => {
    const { generation, what, event } = params as unknown as {
      generation: number;
      what: string;
      event: SessionMachineEvent;
    };
    if (type === 'did') return reports(what, world);
    if (type === 'changed') {
      const gate = gateOf(sessionOf(world), true);
      const messages = [...shared(event, null)];
      if (gate !== world.ghost.told) messages.push(gateMessage(gate));
      return messages
        .filter(({ actor }) => actor === 'outbox')
        .map(({ actor: to, event: message }) => ({ to, event: message }));
    }
    if (from === 'outbox') {
      if (type === 'offer')
        return toTurn({ type: 'offer.made', generation, key }, { type: 'choose' });
      const stops = { to: 'voice', event: { type: 'stop' } };
      const { responses } = turnIn(world).context;
      if (type === 'interrupt')
        return [
          ...(responses.some((one) => one.says === 'reply')
            ? toTurn({ type: 'reply.cutOff' })
            : []),
          stops,
          ...toTurn({ type: 'urgent.waits' }),
        ];
      if (type === 'abandon')
        return [
          ...toTurn({ type: 'offer.over', generation }),
          ...(voiceOf(world).context.generation === generation ? [stops] : []),
        ];
      return [];
    }
    if (from !== 'turn') return [];
    if (type === 'take') return toSession('response.requested');
    if (type === 'wait') return toSession('response.waiting');
    if (type === 'release') return toSession('response.ended');
    if (type === 'reply') return [{ to: 'voice', event: { type: 'say', generation: 0 } }];
    if (type === 'tell') return [{ to: 'voice', event: { type: 'say', generation } }];
    if (type === 'refuse' || type === 'brokenOff')
      return [{ to: 'outbox', event: { type: 'delivery.interrupted', generation } }];
    if (type === 'breakOff') return [{ to: 'voice', event: { type: 'stop' } }];
    if (type === 'settled' || type === 'overdue') return toTurn({ type: 'choose' });
    return [];
  };

  return checkSystem<Machines, Ghost>({
    name: `turn × outbox × session (${lead}, ${scope})`,
    actors: {
      session: {
        machine: watchedSession,
        start: restored(
          watchedSession,
          { maxReconnects: 2, settleTimeoutMs: 1, closeGraceMs: 1, detachGraceMs: null },
          [{ type: 'session.start' }, { type: 'transport.ready' }, { type: 'client.attached' }],
        ),
      },
      outbox: {
        machine: outboxMachine,
        start: restored(
          outboxMachine,
          { capacity: 4, quietMs: 1, offerTimeoutMs: 2, playTimeoutMs: 4, maxAttempts: 2 },
          [{ type: 'gate.opened' }, { type: 'outbox.add', item: item('r', false) }],
        ),
      },
      turn: { machine: turn, input: turnsOf[lead] },
      voice: { machine: voiceMachine },
      microphone: { machine: microphoneMachine },
    },
    mode: 'sync',
    limit: 200_000,
    onViolation: 'collect',
    route: (from, { type, params }, world) =>
      routed(from, type, (params ?? {}) as Record<string, never>, world).map(({ to, event }) => ({
        to,
        event: { ...event, at, isFree: true },
      })),
    external: (world, id) => {
      const { happened, utterances } = world.ghost;
      const may = (what: string): boolean => !happened.includes(what);
      const { doubtBy, replyBy, holdBy, calls, whileToolWorks } = turnIn(world).context;
      const settles =
        scope === 'everything' ||
        whileToolWorks === 'keeps_floor' ||
        calls.some(({ of }) => of === 'offer');
      const { dueAt } = outboxOf(world).context;
      const now = { at, isFree: true };
      const isMute = scope === 'nobody helps' && voiceOf(world).context.generation === 0;
      switch (id) {
        case 'outbox':
          return [
            { type: 'deadline.quiet', at: dueAt, dueAt },
            ...(may('urgent') ? [{ type: 'outbox.add', at, item: item('u', true) }] : []),
          ];
        case 'turn':
          return [
            { type: 'deadline.doubt', dueAt: doubtBy, ...now },
            { type: 'deadline.reply', dueAt: replyBy, ...now },
            { type: 'deadline.hold', dueAt: holdBy, ...now },
            ...(calls.length > 0 && settles
              ? [{ type: 'call.answered', callId: 'c', respond: true, ...now }]
              : []),
            ...(keepsOffers && may('reply.toWords')
              ? [{ type: 'reply.toWords', typed: true, ...now }]
              : []),
            { type: 'choose', ...now },
          ];
        case 'voice':
          return [
            ...(isMute ? [] : [{ type: 'begin' }]),
            { type: 'finish' },
            ...(may('fail') || isMute ? [{ type: 'fail' }] : []),
            ...(may('call') ? [{ type: 'call' }] : []),
          ];
        case 'microphone':
          return [
            ...(utterances < most && !keepsOffers ? [{ type: 'begin' }] : []),
            { type: 'end' },
            ...(scope === 'everything' ? [{ type: 'words' }, { type: 'nothing' }] : []),
            { type: 'late' },
            ...(may('leave') ? [{ type: 'leave' }] : []),
            { type: 'come' },
          ];
        default:
          return [];
      }
    },
    ghost: {
      initial: {
        told: 'open',
        utterances: 0,
        isOpen: false,
        isOwed: false,
        happened: [],
        heard: [],
      },
      next(ghost, { actor, event: { type }, effects, sent, kind, outcome }) {
        let { told, utterances, isOpen, isOwed, happened, heard } = ghost;
        if (actor === 'turn') {
          if (type === 'user.began') isOpen = true;
          if (type === 'user.understood' || paramsOf(effects, 'settled').length > 0) isOpen = false;
          if (type === 'reply.toWords') isOwed = true;
          if (type === 'model.spoke' || paramsOf(effects, 'unanswered').length > 0) isOwed = false;
          if (type === 'client.left') [isOpen, isOwed] = [false, false];
        }
        for (const { event } of sent) {
          if (event.type === 'gate.opened') told = 'open';
          if (event.type === 'gate.closed')
            told = event['interruptible'] === true ? 'interruptible' : 'closed';
        }
        if (kind === 'environment' && outcome === 'taken') {
          if (actor === 'microphone' && type === 'begin') utterances += 1;
          const once = type === 'outbox.add' ? 'urgent' : type;
          if (['urgent', 'fail', 'call', 'leave', 'reply.toWords'].includes(once))
            happened = [...happened, once].toSorted();
        }
        if (actor === 'outbox') {
          const ids = paramsOf(effects, 'delivered').map(
            ({ deliveryId }: { readonly deliveryId: string }) => deliveryId,
          );
          if (ids.length > 0) heard = [...heard, ...ids].toSorted();
        }
        return { told, utterances, isOpen, isOwed, happened, heard };
      },
    },
    invariants: {
      'the gate is closed while a party speaks': (world) =>
        !gateIsOpen(sessionOf(world)) ||
        (!userHasFloor(turnIn(world)) && !modelIsBusy(turnIn(world))),
      'the gate is open where somebody listens, and nobody speaks': (world) => {
        const snapshot = turnIn(world);
        const { floor } = snapshot.value;
        return (
          gateIsOpen(sessionOf(world)) ||
          !sessionOf(world).matches({ client: 'attached' }) ||
          userHasFloor(snapshot) ||
          modelIsBusy(snapshot) ||
          floor === 'taken' ||
          floor === 'holding'
        );
      },
      'the model speaks as long as its response is under way': (world) =>
        (voiceOf(world).value === 'silent') === !modelIsBusy(turnIn(world)),
      'P10: where nothing is under way, nobody waits for an answer': (world) => {
        const snapshot = turnIn(world);
        const { calls, isOwed } = snapshot.context;
        const isOver =
          !userHasFloor(snapshot) &&
          !modelIsBusy(snapshot) &&
          snapshot.matches({ reply: 'none' }) &&
          calls.length === 0 &&
          !isOwed;
        return !isOver || (!world.ghost.isOpen && !world.ghost.isOwed);
      },
      'P10: what has no place keeps the floor': (world) =>
        !world.ghost.isOpen || userHasFloor(turnIn(world)),
      'nobody speaks where nobody is': (world) =>
        microphoneOf(world).value !== 'absent' || !userHasFloor(turnIn(world)),
    },
    steps: {
      'the model is asked only when it is silent': (before, { actor, event }) =>
        actor !== 'voice' || event.type !== 'say' || voiceOf(before).value === 'silent',
      'nothing is said while the user speaks': (before, { actor, event }) =>
        actor !== 'voice' || event.type !== 'say' || !userHasFloor(turnIn(before)),
      'an offer is told where nobody speaks': (before, { actor, event, effects }) => {
        const snapshot = turnIn(before);
        const isFree = !userHasFloor(snapshot) && !modelIsBusy(snapshot);
        return (
          actor !== 'turn' ||
          event.type !== 'offer.made' ||
          keepsOffers ||
          !isFree ||
          paramsOf(effects, 'tell').length === 1
        );
      },
    },
    end: (world) => {
      const { current, pending } = outboxOf(world).context;
      return (
        current === null &&
        pending.every(({ resting }) => resting) &&
        voiceOf(world).value === 'silent' &&
        !userHasFloor(turnIn(world)) &&
        // P10. The answer is still owed if a tool never settles.
        !world.ghost.isOpen &&
        (!world.ghost.isOwed || turnIn(world).context.calls.length > 0)
      );
    },
    reachable: {
      'a result is heard while a tool works, or may not be': (world) =>
        (world.ghost.heard.includes('r') && turnIn(world).context.calls.length > 0) ||
        turnsOf[lead].whileToolWorks === 'keeps_floor',
      'everything is heard': ({ ghost: { heard } }) => heard.length === 2,
      'the result is heard after the user has spoken, or cannot': ({ ghost }) =>
        (ghost.utterances > 0 && ghost.heard.includes('r')) || keepsOffers,
    },
  });
}
