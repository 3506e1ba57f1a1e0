// What a session has to say, from the call or question that wants it to the user's ear: outbox,
// session, two calls with results, one question, and a lead agent that says what it is offered.
// The messages within the session are those of `wire`, `shared` and `gateMessage`.
//
// Goes wrong once each: the user breaks in, the client leaves, the connection is lost, something
// urgent comes. Time stands still (`at: 0`): a deadline may go off whenever it is armed. Left out
// of the key: moments, and the generation beyond whether a report is about the attempt under way.

import { initialTransition, transition, type AnyStateMachine } from 'xstate';
import {
  gateIsOpen,
  gateMessage,
  gateOf,
  outboxMachine,
  questionMachine,
  sessionMachine,
  shared,
  toolCallMachine,
  wire,
  type Gate,
  type OutboxItem,
  type OutboxSnapshot,
  type QuestionSnapshot,
  type SessionSnapshot,
  type ToolCallSnapshot,
} from '../../../src/machines/index.ts';
import {
  checkSystem,
  type Delivery,
  type Machines,
  type Step,
  type World,
} from '../../../src/testing/check/index.ts';
import { paramsOf } from './effects.ts';
import { leadMachine, mailboxMachine, type LeadReport, type Letter } from './lead-machine.ts';
import { mutate } from './mutate.ts';
import type { OnViolation } from './verdicts.ts';

export interface SpeechOptions {
  /**
   * `unit`: the machines of the session share each transaction, as in the runtime, and the lead
   * agent reports through a mailbox. `spread`: no two machines share a transaction.
   */
  readonly together: 'unit' | 'spread';
  /** Results that want to be said. @defaultValue 2 */
  readonly results?: 1 | 2;
  /** A question wants to be said, too. @defaultValue true */
  readonly asks?: boolean;
  readonly maxInFlight?: number;
  readonly limit?: number;
  /** What may go wrong. @defaultValue all of it */
  readonly mishaps?: readonly Mishap[];
  readonly onViolation?: OnViolation;
  /** Machines to check in place of the real ones. */
  readonly outbox?: typeof outboxMachine;
  readonly session?: typeof sessionMachine;
  readonly question?: typeof questionMachine;
}

export const mishaps = ['bargeIn', 'detach', 'loss', 'urgent', 'failure', 'timeout'] as const;
type Mishap = (typeof mishaps)[number];

/** The history that no machine holds. */
interface Ghost {
  /** What the outbox was last told of the gate. */
  readonly told: Gate;
  readonly happened: readonly Mishap[];
  /** The first result was interrupted while it was said. */
  readonly interrupted: boolean;
  /** What was heard, seen or waved away. */
  readonly over: readonly string[];
}

type Situation = World<Machines, Ghost>;

interface Params {
  readonly deliveryId: string;
  readonly generation: number;
  readonly grade: string;
  readonly event: { readonly type: string };
  readonly letter: Letter;
}

const at = 0;
const q = 'q';
const lost = { error: { code: 'LOST', message: 'Lost', retryable: true }, retryInMs: 1 };
const urgent: OutboxItem = {
  deliveryId: 'u',
  kind: 'notice',
  priority: 'urgent',
  replaces: null,
  reserved: false,
  expiresAt: null,
};

/** The session, with a region that tells of each event that it takes. */
function watched(machine: AnyStateMachine): AnyStateMachine {
  return mutate(machine, (chart) => {
    chart.states['watch'] = {
      on: { '*': { actions: { type: 'changed', params: ({ event }: Params) => ({ event }) } } },
    } as never;
  });
}

/** The state after these events, as if it had been restored there. */
function restored(machine: AnyStateMachine, input: object, events: readonly object[]): never {
  let [snapshot] = initialTransition(machine, input as never);
  for (const event of events) [snapshot] = transition(machine, snapshot, { ...event, at } as never);
  return snapshot as never;
}

export function checkSpeech(options: SpeechOptions) {
  const { together, maxInFlight, limit = 200_000, asks = true } = options;
  const isUnit = together === 'unit';
  const results = ['r1', 'r2'].slice(0, options.results ?? 2);
  const possible = options.mishaps ?? mishaps;
  const session = watched(options.session ?? sessionMachine);
  const outbox = options.outbox ?? outboxMachine;
  const question = options.question ?? questionMachine;
  const actors: Parameters<typeof checkSystem<Machines, Ghost>>[0]['actors'] = {
    session: {
      machine: session,
      start: restored(
        session,
        { maxReconnects: 2, settleTimeoutMs: 1, closeGraceMs: 1, detachGraceMs: null },
        [{ type: 'session.start' }, { type: 'transport.ready' }, { type: 'client.attached' }],
      ),
    },
    outbox: {
      machine: outbox,
      start: restored(
        outbox,
        { capacity: 4, quietMs: 1, offerTimeoutMs: 2, playTimeoutMs: 4, maxAttempts: 2 },
        [{ type: 'outbox.reserve' }, { type: 'outbox.reserve' }, { type: 'gate.opened' }],
      ),
    },
    'question:q': { machine: question, input: { requestId: q, timeoutMs: 1 } },
    lead: { machine: leadMachine },
    mailbox: { machine: mailboxMachine },
  };
  for (const id of results)
    Object.assign(actors, {
      [`call:${id}`]: {
        machine: toolCallMachine,
        start: restored(toolCallMachine, { callId: id, timeoutMs: 1 }, [
          { type: 'call.validated', execution: 'background', acknowledge: true },
          { type: 'subagent.accepted' },
        ]),
      },
    });

  const sessionOf = ({ actors: { session: it } }: Situation) => it as SessionSnapshot;
  const outboxOf = ({ actors: { outbox: it } }: Situation) => it as OutboxSnapshot;
  const questionOf = (world: Situation) => world.actors['question:q'] as QuestionSnapshot;
  const callOf = (world: Situation, id: string) => world.actors[`call:${id}`] as ToolCallSnapshot;
  const itemsIn = (world: Situation) => {
    const { current, pending } = outboxOf(world).context;
    return current === null ? pending : [current, ...pending];
  };
  const isIn = (world: Situation, id: string): boolean =>
    itemsIn(world).some(({ deliveryId }) => deliveryId === id);
  const isOnItsWay = (world: Situation, to: string, type: string, id?: string): boolean =>
    world.inFlight.some(
      ({ to: receiver, event }) =>
        receiver === to &&
        event.type === type &&
        (id === undefined || (event['item'] as OutboxItem | undefined)?.deliveryId === id),
    );

  const messagesOf = (
    from: string,
    type: string,
    params: Params,
    world: Situation,
  ): readonly Delivery[] => {
    if (type === 'changed') {
      const owner = questionOf(world).hasTag('owner') ? q : null;
      const gate = gateOf(sessionOf(world), true);
      const messages = [...shared(params.event, owner)];
      if (gate !== world.ghost.told) messages.push(gateMessage(gate));
      const stops = params.event.type === 'utterance.started';
      return [
        ...messages.map(({ actor: to, event }) => ({ to, event })),
        ...(stops ? [{ to: 'lead', event: { type: 'stop' } }] : []),
      ];
    }
    if (type === 'report') {
      const { deliveryId: about, generation } = leadOf(world);
      const { outbox: name, session: names } = params as unknown as LeadReport;
      const letters: readonly Delivery[] = [
        ...(name === undefined
          ? []
          : [{ to: 'outbox', event: { type: name, generation, grade: 'played', about } }]),
        ...names.map((type) => ({
          to: 'session',
          event: type === 'transport.lost' ? { type, ...lost } : { type },
        })),
      ];
      if (!isUnit) return letters;
      return [{ to: 'mailbox', event: { type: 'post', letter: letters } }];
    }
    if (from === 'mailbox') return params.letter;
    if (from === 'outbox' && type === 'offer') {
      const { deliveryId, generation } = params;
      return [{ to: 'lead', event: { type, deliveryId, generation } }];
    }
    if (from === 'outbox' && (type === 'interrupt' || type === 'abandon'))
      return [{ to: 'lead', event: { type: 'stop' } }];
    const [kind = ''] = from.split(':', 1);
    return wire(kind, type, params).map(({ actor: to, event }) => ({ to, event }));
  };
  /** Is the lead agent at work on the attempt under way? */
  const isSaying = (world: Situation): boolean =>
    ['asked', 'speaking'].includes(world.actors['lead']?.value as string) &&
    leadOf(world).generation === outboxOf(world).context.generation;
  const mailboxOf = ({ actors: { mailbox } }: Situation) =>
    (mailbox?.context as { letters: readonly Letter[] }).letters;
  const leadOf = ({ actors: { lead } }: Situation) =>
    lead?.context as { deliveryId: string; generation: number };

  return checkSystem<Machines, Ghost>({
    name: `outbox × session (${together})`,
    actors,
    mode: isUnit ? 'sync' : 'async',
    ...(maxInFlight === undefined ? {} : { maxInFlight }),
    limit,
    onViolation: options.onViolation ?? 'collect',
    key: (world) => keyOf(world, results),
    route: (from, { type, params }, world) =>
      messagesOf(from, type, (params ?? {}) as Params, world)
        .filter(({ to }) => to in actors)
        .map(({ to, event }) => ({ to, event: { ...event, at } })),
    external: (world, id) => {
      const may = (mishap: Mishap): boolean =>
        possible.includes(mishap) && !world.ghost.happened.includes(mishap);
      // A report may be overtaken, but not by what takes longer than it.
      const letters = mailboxOf(world).length;
      if (id !== 'mailbox' && letters > (id === 'lead' ? 0 : 1)) return [];
      switch (id) {
        case 'session':
          return sessionEvents(sessionOf(world), may);
        case 'outbox':
          return outboxEvents(outboxOf(world), may, isSaying(world));
        case 'question:q':
          return asks ? questionEvents(questionOf(world), outboxOf(world)) : [];
        case 'mailbox':
          return [{ type: 'deliver' }];
        case 'lead':
          return leadEvents(may);
        default:
          return [{ type: 'subagent.ended', at }];
      }
    },
    ghost: {
      initial: { told: 'open', happened: [], interrupted: false, over: [] },
      next(ghost, step, before) {
        let { told, happened, interrupted, over } = ghost;
        const { actor, event, effects, sent } = step;
        for (const { event: message } of sent) {
          if (message.type === 'gate.opened') told = 'open';
          if (message.type === 'gate.closed')
            told = message['interruptible'] === true ? 'interruptible' : 'closed';
        }
        const mishap = step.kind === 'environment' ? mishapOf(step, isSaying(before)) : null;
        if (mishap !== null) happened = [...happened, mishap].toSorted();
        if (actor === 'outbox') {
          const isFirst = outboxOf(before).context.current?.deliveryId === 'r1';
          if (event.type === 'delivery.interrupted' && step.outcome === 'taken' && isFirst)
            interrupted = true;
          const ended = [...paramsOf(effects, 'delivered'), ...paramsOf(effects, 'dismissed')];
          const ids = ended.map(({ deliveryId }: Params) => deliveryId).filter((one) => one !== q);
          if (ids.length > 0) over = [...over, ...ids].toSorted();
        }
        const changed =
          told !== ghost.told ||
          happened !== ghost.happened ||
          interrupted !== ghost.interrupted ||
          over !== ghost.over;
        return changed ? { told, happened, interrupted, over } : ghost;
      },
    },
    invariants: {
      'P4: a result waits, is being said, or has ended': (world) =>
        results.every((id) => {
          const call = callOf(world, id);
          const ended = world.ghost.over.includes(id);
          if (call.matches('delegated')) return !isIn(world, id) && !ended;
          if (call.matches('delivered')) return !isIn(world, id) && ended;
          return isIn(world, id) || isOnItsWay(world, 'outbox', 'outbox.add', id) || ended;
        }),
      'P4: a result ends once': ({ ghost: { over } }) => new Set(over).size === over.length,
      'P4: something urgent waits, is being said, or has ended': (world) =>
        !world.ghost.happened.includes('urgent') || isIn(world, 'u') || world.ghost.over.includes('u'),
      'P4: a question that is put to the user is in the outbox': (world) => {
        const snapshot = questionOf(world);
        return (
          !snapshot.matches('presenting') ||
          isIn(world, q) ||
          isOnItsWay(world, 'outbox', 'outbox.add', q) ||
          isOnItsWay(world, 'question:q', 'question.heard')
        );
      },
      'P4: a question that is over is in the outbox no more': (world) =>
        questionOf(world).status === 'active' ||
        !isIn(world, q) ||
        isOnItsWay(world, 'outbox', 'outbox.retract'),
      'U2: the outbox knows the gate': (world) =>
        !isUnit || outboxOf(world).matches({ gate: 'open' }) === gateIsOpen(sessionOf(world)),
    },
    steps: {
      'O1: only from an open gate': (_before, { actor, effects }, after) =>
        actor !== 'outbox' ||
        paramsOf(effects, 'offer').length === 0 ||
        (outboxOf(after).matches({ gate: 'open' }) &&
          (!isUnit || gateIsOpen(sessionOf(after)))),
      'O1: one at a time': (before, { actor, event }) =>
        !isUnit ||
        actor !== 'lead' ||
        event.type !== 'offer' ||
        ['silent', 'lost'].includes(before.actors['lead']?.value as string),
      'O2: what ends as heard was said to the end, in this attempt': (
        before,
        { actor, event, effects },
      ) =>
        actor !== 'outbox' ||
        paramsOf(effects, 'delivered').every(
          ({ deliveryId, grade }: Params) =>
            grade === 'shown' ||
            (event['about'] === deliveryId &&
              event['generation'] === outboxOf(before).context.generation),
        ),
      'O3: an interruption loses nothing': (before, { actor, event }, world) => {
        const lost = ['delivery.interrupted', 'delivery.failed', 'client.detached'];
        if (actor !== 'outbox' || !lost.includes(event.type)) return true;
        const { current } = outboxOf(before).context;
        return current === null || isIn(world, current.deliveryId);
      },
    },
    end: (world) =>
      world.inFlight.length === 0 &&
      itemsIn(world).length === 0 &&
      world.actors['lead']?.value === 'silent' &&
      results.every((id) => callOf(world, id).matches('delivered')) &&
      mailboxOf(world).length === 0 &&
      (!asks || questionOf(world).status === 'done'),
    reachable: {
      'a result that was interrupted is heard later': ({ ghost: { interrupted, over } }) =>
        (interrupted && over.includes('r1')) ||
        !possible.some((mishap) => mishap === 'bargeIn' || mishap === 'urgent'),
      'everything goes wrong and everything is heard': ({ ghost: { happened, over } }) =>
        happened.length === possible.length && results.every((id) => over.includes(id)),
      'the question is answered': (world) => !asks || questionOf(world).matches('answered'),
    },
  });
}

function mishapOf({ actor, event: { type } }: Step, isSaying: boolean): Mishap | null {
  if (actor === 'outbox' && isSaying && ['deadline.offer', 'deadline.play'].includes(type))
    return 'timeout';
  const names: Readonly<Record<string, Mishap>> = {
    'session utterance.started': 'bargeIn',
    'session client.detached': 'detach',
    'lead lose': 'loss',
    'lead fail': 'failure',
    'outbox outbox.add': 'urgent',
  };
  return names[`${actor} ${type}`] ?? null;
}

function leadEvents(may: (mishap: Mishap) => boolean) {
  return [
    { type: 'begin' },
    { type: 'finish' },
    { type: 'return' },
    ...(may('failure') ? [{ type: 'fail' }] : []),
    ...(may('loss') ? [{ type: 'lose' }] : []),
  ];
}

function sessionEvents(snapshot: SessionSnapshot, may: (mishap: Mishap) => boolean) {
  const { settleBy, reconnectAt } = snapshot.context;
  const attached = snapshot.matches({ client: 'attached' });
  const speaking = snapshot.matches({ user: 'speaking' });
  const connecting = snapshot.matches({ connection: 'connecting' });
  return [
    ...(attached && may('bargeIn') ? [{ type: 'utterance.started', at }] : []),
    ...(speaking ? [{ type: 'utterance.ended', at }] : []),
    ...(snapshot.matches({ user: 'settling' })
      ? [
          { type: 'utterance.settled', at },
          { type: 'deadline.settle', at: settleBy, dueAt: settleBy },
        ]
      : []),
    ...(attached && may('detach') ? [{ type: 'client.detached', at }] : []),
    ...(attached ? [] : [{ type: 'client.attached', at }]),
    ...(connecting ? [{ type: 'transport.ready', at }] : []),
    ...(snapshot.matches({ connection: 'reconnecting' })
      ? [{ type: 'deadline.reconnect', at: reconnectAt, dueAt: reconnectAt }]
      : []),
  ];
}

function outboxEvents(
  { context }: OutboxSnapshot,
  may: (mishap: Mishap) => boolean,
  isSaying: boolean,
) {
  const { dueAt, pending } = context;
  const late = !isSaying || may('timeout') ? ['deadline.offer', 'deadline.play'] : [];
  return [
    ...['deadline.quiet', ...late].map((type) => ({ type, at: dueAt, dueAt })),
    ...(may('urgent') ? [{ type: 'outbox.add', at, item: urgent }] : []),
    // What could not be said is a card: the user sees it, or waves it away.
    ...pending
      .filter(({ resting, deliveryId }) => resting && deliveryId !== q)
      .map(({ deliveryId }) => ({
        type: deliveryId === 'r1' ? 'delivery.dismissed' : 'delivery.shown',
        at,
        deliveryId,
      })),
  ];
}

function questionEvents({ context: { dueAt } }: QuestionSnapshot, { context }: OutboxSnapshot) {
  const isCard = context.pending.some(({ deliveryId, resting }) => deliveryId === q && resting);
  return [
    { type: 'question.granted', at, epoch: 1 },
    { type: 'deadline.answer', at: dueAt, dueAt },
    ...(isCard ? [{ type: 'question.shown', at, startsClock: true }] : []),
    { type: 'question.answer', at, channel: 'speech', utteranceStartedAt: at, decisive: true },
    { type: 'question.withdraw', at, reason: 'cancelled' },
  ];
}

const texts = new WeakMap<object, string>();

/** The text of something that does not change, made once. */
function textOf(it: object, make: () => unknown): string {
  let text = texts.get(it);
  if (text === undefined) texts.set(it, (text = JSON.stringify(make())));
  return text;
}

function keyOf(world: Situation, results: readonly string[]): string {
  const { session, outbox, lead, mailbox } = world.actors;
  const { generation } = (outbox as OutboxSnapshot).context;
  const said = (lead?.context as { generation: number }).generation === generation;
  const letterText = ({ to, event }: Letter[number]): string => {
    const about = 'generation' in event ? event['generation'] === generation : '';
    return `${to}:${about}${textOf(event, () => ({ ...event, generation: 0 }))}`;
  };
  const parts = [
    textOf(session!, () => session!.value),
    textOf(outbox!, () => {
      const { value, context } = outbox as OutboxSnapshot;
      const { current, pending, interruptible } = context;
      const items = [...pending, ...(current ? [current] : [])];
      return [
        value,
        interruptible,
        current?.deliveryId,
        items.map(({ deliveryId, attempts, resting }) => [deliveryId, attempts, resting]),
      ];
    }),
    textOf(world.actors['question:q']!, () => {
      const { value, context } = world.actors['question:q'] as QuestionSnapshot;
      return [value, context.playingSince !== null, context.heard, context.shownAt !== null];
    }),
    ...results.map((id) => world.actors[`call:${id}`]!.value as string),
    `${lead!.value as string}${said ? '' : '!'}`,
    textOf(world.ghost, () => world.ghost),
    ...(mailbox?.context as { letters: readonly Letter[] }).letters.flat().map(letterText),
    ...world.inFlight.map((message) => `${message.from}>${letterText(message)}`),
  ];
  return parts.join('|');
}
