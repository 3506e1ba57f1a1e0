// The path of a delivery from its call or question to the user's ear: the outbox, the session, two calls with results,
// one question, and a lead agent that speaks the offered item. The messages within the session are those of `wire`,
// `shared` and `gateMessage`.
//
// A batch may stand between the calls and the outbox.
//
// Each of these events happens at most once: the user interrupts, the client leaves, the connection is lost, an urgent
// item arrives, a response fails, a deadline passes while the lead agent is speaking, or the lead agent speaks
// unprompted.

import { initialTransition, transition, type AnyEventObject, type AnyStateMachine } from 'xstate';
import {
  batchMachine,
  gateIsOpen,
  gateMessage,
  gateOf,
  outboxMachine,
  questionMachine,
  sessionMachine,
  shared,
  toolCallMachine,
  wire,
  type SessionMachineEvent,
} from '../../../src/machines/index.ts';
import { checkSystem, type Delivery, type Machines } from '../../../src/testing/check/index.ts';
import { paramsOf } from './effects.ts';
import {
  leadMachine,
  mailboxMachine,
  REPLY,
  type LeadReport,
  type Letter,
} from './lead-machine.ts';
import { mutate } from './mutate.ts';
import {
  at,
  batchEvents,
  batchId,
  batchIn,
  callOf,
  isIn,
  isInOutbox,
  isOnItsWay,
  isSaying,
  itemsIn,
  keyOf,
  leadEvents,
  leadOf,
  lettersOf,
  mishapOf,
  mishaps,
  outboxEvents,
  outboxOf,
  q,
  questionEvents,
  questionOf,
  sessionEvents,
  sessionOf,
  type Ghost,
  type Mishap,
  type Situation,
} from './speech-world.ts';

export interface SpeechOptions {
  /**
   * `unit`: the machines of the session share each transaction, as they do in the runtime, and the lead agent reports
   * through a mailbox. `spread`: no two machines share a transaction.
   */
  readonly together: 'unit' | 'spread';
  /** The number of results. @defaultValue 2 */
  readonly results?: 1 | 2;
  /** Also includes a question. @defaultValue true */
  readonly asks?: boolean;
  /** The results belong to one batch. @defaultValue false */
  readonly consolidates?: boolean;
  /**
   * The length of the pause before an item is spoken. 1: any length; 0: the pause is over whenever an item arrives.
   * @defaultValue 1
   */
  readonly quietMs?: 0 | 1;
  readonly maxInFlight?: number;
  /** The possible mishaps. @defaultValue all of them */
  readonly mishaps?: readonly Mishap[];
  /** Machines to check in place of the real ones. */
  readonly outbox?: typeof outboxMachine;
  readonly session?: typeof sessionMachine;
  readonly question?: typeof questionMachine;
  readonly batch?: typeof batchMachine;
}

interface Params {
  readonly deliveryId: string;
  readonly deliveryIds: readonly string[];
  readonly generation: number;
  readonly grade: string;
  readonly event: SessionMachineEvent;
  readonly letter: Letter;
}

const lost = { error: { code: 'LOST', message: 'Lost', retryable: true }, retryInMs: 1 };

/** Returns the session with an additional region that reports each event that the session handles. */
function watched(machine: AnyStateMachine): AnyStateMachine {
  return mutate(machine, (chart) => {
    chart.states['watch'] = {
      on: { '*': { actions: { type: 'changed', params: ({ event }: Params) => ({ event }) } } },
    } as never;
  });
}

/** Returns the state after these events, as if it had been restored. */
function restored(
  machine: AnyStateMachine,
  input: object,
  events: readonly AnyEventObject[],
): never {
  let [snapshot] = initialTransition(machine, input as never);
  for (const event of events) [snapshot] = transition(machine, snapshot, { ...event, at });
  return snapshot as never;
}

export function checkSpeech(options: SpeechOptions) {
  const { together, maxInFlight, asks = true } = options;
  const isUnit = together === 'unit';
  const results = ['r1', 'r2'].slice(0, options.results ?? 2);
  const possible = options.mishaps ?? mishaps;
  const session = watched(options.session ?? sessionMachine);
  const outbox = options.outbox ?? outboxMachine;
  const question = options.question ?? questionMachine;
  const batch = options.batch ?? batchMachine;
  const batchOf = (): string | null => (options.consolidates ? batchId : null);
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
        {
          capacity: 4,
          quietMs: options.quietMs ?? 1,
          offerTimeoutMs: 2,
          playTimeoutMs: 4,
          maxAttempts: 2,
        },
        [...results.map(() => ({ type: 'outbox.reserve' })), { type: 'gate.opened' }],
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
        start: restored(toolCallMachine, { callId: id, timeoutMs: 1, batchId: batchOf() }, [
          { type: 'call.validated', execution: 'background', acknowledge: true },
          { type: 'subagent.accepted' },
        ]),
      },
    });

  if (options.consolidates)
    Object.assign(actors, {
      [`batch:${batchId}`]: {
        machine: batch,
        start: restored(batch, { batchId, ceilingMs: 1, graceMs: 1, atCeiling: 'deliver' }, [
          ...results.map((callId) => ({ type: 'batch.joined', callId })),
          { type: 'batch.replied' },
        ]),
      },
    });

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
      const { deliveryId: about, generation } = leadOf(world).context;
      const { outbox: name, session: names } = params as unknown as LeadReport;
      const follows = names.includes('playout.started') && about !== q;
      const letters: readonly Delivery[] = [
        ...(follows ? [{ to: 'question:q', event: { type: 'question.followed' } }] : []),
        ...(name === undefined || about === REPLY
          ? []
          : [{ to: 'outbox', event: { type: name, generation, grade: 'played', about } }]),
        ...names.map((told) => ({
          to: 'session',
          event: told === 'transport.lost' ? { type: told, ...lost } : { type: told },
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
    return wire(kind, type, params, batchOf).map(({ actor: to, event }) => ({ to, event }));
  };
  return checkSystem<Machines, Ghost>({
    name: `outbox × session (${together})`,
    actors,
    mode: isUnit ? 'sync' : 'async',
    ...(maxInFlight === undefined ? {} : { maxInFlight }),
    limit: 200_000,
    onViolation: 'collect',
    key: (world) => keyOf(world, results),
    route: (from, { type, params }, world) =>
      messagesOf(from, type, (params ?? {}) as Params, world)
        .filter(({ to }) => to in actors)
        .map(({ to, event }) => ({ to, event: { ...event, at } })),
    external: (world, id) => {
      const may = (mishap: Mishap): boolean =>
        possible.includes(mishap) && !world.ghost.happened.includes(mishap);
      // A report may be overtaken, but not by an event that takes longer to occur.
      const letters = lettersOf(world).length;
      if (id !== 'mailbox' && letters > (id === 'lead' ? 0 : 1)) return [];
      switch (id) {
        case 'session':
          return sessionEvents(sessionOf(world), may);
        case 'outbox':
          return outboxEvents(outboxOf(world), may, isSaying(world));
        case 'question:q':
          return asks
            ? questionEvents(questionOf(world), outboxOf(world)).filter(
                // An utterance is handled after the reports that arrived before it.
                ({ type }) => type !== 'question.answer' || letters === 0,
              )
            : [];
        case 'mailbox':
          return [{ type: 'deliver' }];
        case 'lead':
          return leadEvents(may);
        case `batch:${batchId}`:
          return batchEvents(batchIn(world), outboxOf(world));
        // The two results are interchangeable, so the one that arrives first counts as the first.
        case 'call:r2':
          return callOf(world, 'r1').matches('delegated') ? [] : [{ type: 'subagent.ended', at }];
        default:
          return [{ type: 'subagent.ended', at }];
      }
    },
    ghost: {
      initial: { told: 'open', happened: [], interrupted: false, over: [], last: null },
      next(ghost, step, before) {
        let { told, happened, interrupted, over, last } = ghost;
        const { actor, event, effects, sent } = step;
        for (const { event: message } of sent) {
          if (message.type === 'gate.opened') told = 'open';
          if (message.type === 'gate.closed')
            told = message['interruptible'] === true ? 'interruptible' : 'closed';
        }
        if (asks && actor === 'lead' && event.type === 'begin' && step.outcome === 'taken')
          last = leadOf(before).context.deliveryId === q ? 'question' : 'other';
        const mishap = step.kind === 'environment' ? mishapOf(step, isSaying(before)) : null;
        if (mishap !== null) happened = [...happened, mishap].toSorted();
        if (actor === 'outbox') {
          const isFirst = ['r1', batchId].includes(
            outboxOf(before).context.current?.deliveryId ?? '',
          );
          if (event.type === 'delivery.interrupted' && step.outcome === 'taken' && isFirst)
            interrupted = true;
          const ended = [...paramsOf(effects, 'delivered'), ...paramsOf(effects, 'dismissed')];
          const ids = ended
            .map(({ deliveryId }: Params) => deliveryId)
            .filter((one) => one !== q && one !== batchId);
          if (ids.length > 0) over = [...over, ...ids].toSorted();
        }
        if (actor === `batch:${batchId}`) {
          const ended = [...paramsOf(effects, 'delivered'), ...paramsOf(effects, 'dismissed')];
          const ids = ended.flatMap(({ deliveryIds }: Params) => deliveryIds);
          if (ids.length > 0) over = [...over, ...ids].toSorted();
        }
        const changed =
          told !== ghost.told ||
          happened !== ghost.happened ||
          interrupted !== ghost.interrupted ||
          over !== ghost.over ||
          last !== ghost.last;
        return changed ? { told, happened, interrupted, over, last } : ghost;
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
      'P4: what is told together is in the outbox': (world) =>
        !options.consolidates ||
        (batchIn(world)?.matches('telling') === true) ===
          itemsIn(world).some(({ deliveryId }) => deliveryId === batchId),
      'OUTBOX-6: what waits has its place, and no more': (world) => {
        const { reserved } = outboxOf(world).context;
        const held = itemsIn(world).filter(({ kind }) => kind === 'result').length;
        const waits = results.filter((id) => !callOf(world, id).matches('delivered')).length;
        return !isUnit || held + reserved === waits || `${held} + ${reserved} places for ${waits}`;
      },
      'P4: something urgent waits, is being said, or has ended': (world) =>
        !world.ghost.happened.includes('urgent') ||
        isIn(world, 'u') ||
        world.ghost.over.includes('u'),
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
      'SESSION-UNIT-2: the outbox knows the gate': (world) =>
        !isUnit || outboxOf(world).matches({ gate: 'open' }) === gateIsOpen(sessionOf(world)),
    },
    steps: {
      'OUTBOX-1: only from an open gate': (_before, { actor, effects }, after) =>
        actor !== 'outbox' ||
        paramsOf(effects, 'offer').length === 0 ||
        (outboxOf(after).matches({ gate: 'open' }) && (!isUnit || gateIsOpen(sessionOf(after)))),
      'OUTBOX-1: one at a time': (before, { actor, event }) =>
        !isUnit ||
        actor !== 'lead' ||
        event.type !== 'offer' ||
        // The turn puts off an offer until a requested reply is over (TURN-1).
        leadOf(before).context.deliveryId === REPLY ||
        ['silent', 'lost'].includes(leadOf(before).value),
      'OUTBOX-2: what ends as heard was said to the end, in this attempt': (
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
      'P3: words answer the question only if it was the last thing said to the user': (
        before,
        { actor, event, outcome },
      ) =>
        actor !== 'question:q' ||
        event.type !== 'question.answer' ||
        outcome !== 'taken' ||
        before.ghost.last === 'question',
      'OUTBOX-3: an interruption loses nothing': (before, { actor, event }, world) => {
        const breaks = ['delivery.interrupted', 'delivery.failed', 'client.detached'];
        if (actor !== 'outbox' || !breaks.includes(event.type)) return true;
        const { current } = outboxOf(before).context;
        return current === null || isInOutbox(world, current.deliveryId);
      },
    },
    end: (world) =>
      world.inFlight.length === 0 &&
      itemsIn(world).length === 0 &&
      leadOf(world).value === 'silent' &&
      results.every((id) => callOf(world, id).matches('delivered')) &&
      lettersOf(world).length === 0 &&
      (!options.consolidates || batchIn(world)?.status === 'done') &&
      (!asks || questionOf(world).status === 'done'),
    reachable: {
      'a result that was interrupted is heard later': ({ ghost: { interrupted, over } }) =>
        (interrupted && over.includes('r1')) ||
        !possible.some((mishap) => mishap === 'bargeIn' || mishap === 'urgent'),
      'everything goes wrong and everything is heard': ({ ghost: { happened, over } }) =>
        happened.length === possible.length && results.every((id) => over.includes(id)),
      'two results are told together': (world) =>
        !options.consolidates ||
        results.length < 2 ||
        (batchIn(world)?.context.parts.length === 2 && batchIn(world)?.matches('telling') === true),
      'the question is answered': (world) => !asks || questionOf(world).matches('answered'),
      'the question is answered after something else was said': (world) =>
        !asks ||
        !possible.includes('reply') ||
        (questionOf(world).matches('answered') && world.ghost.happened.includes('reply')),
    },
  });
}
