// Subagents that ask, their questions, and the arbiter, connected by the messages of `wire` within a session. No two
// machines share a transaction, so the properties hold however the machines are distributed over processes.
//
// Time stands still (`at: 0`), and a deadline may fire whenever it is armed. The keys omit times and the reasons for an
// end. A subagent's model asks (up to the limit) or finishes. The user's client comes and goes, and a policy may take
// the floor away.

import type { AnyStateMachine } from 'xstate';
import {
  askingFor,
  interactionMachine,
  questionMachine,
  requestIdOf,
  subagentMachine,
  wire,
  type InteractionSnapshot,
  type QuestionEnd,
  type QuestionSnapshot,
  type StepCall,
  type SubagentSnapshot,
} from '../../../src/machines/index.ts';
import {
  checkSystem,
  type Delivery,
  type Machines,
  type SystemCheck,
  type World,
} from '../../../src/testing/check/index.ts';
import { paramsOf } from './effects.ts';
import { mutate } from './mutate.ts';

export interface QuestionsOptions {
  /** How often each subagent may ask, by subagent id. */
  readonly subagents: Readonly<Record<string, number>>;
  readonly maxInFlight?: number;
  /** The subagents whose questions open beside the floor. @defaultValue none */
  readonly beside?: readonly string[];
  /** Messages between a subagent and its question may arrive twice. */
  readonly duplicates?: boolean;
  /** Messages may interrupt the subagents. */
  readonly interrupted?: boolean;
  /** Machines to check in place of the real ones. */
  readonly subagent?: typeof subagentMachine;
  readonly question?: typeof questionMachine;
  readonly interaction?: typeof interactionMachine;
}

/** The questions that have requested the floor and have neither received it nor left, in the order of the requests. */
type Asking = readonly string[];
type Situation = World<Machines, Asking>;
type Params = { readonly requestId: string; readonly id: string; readonly end: QuestionEnd };

const at = 0;

/** A question that does not exist until it is asked, which is its first event. */
function unasked(machine: AnyStateMachine): AnyStateMachine {
  return mutate(machine, (chart) => {
    chart.initial = 'unasked';
    chart.states['unasked'] = {
      on: { 'question.asked': { target: 'queued', actions: 'request' } },
    } as never;
  });
}

export function checkQuestions(options: QuestionsOptions) {
  const { maxInFlight = Infinity, duplicates = false, interrupted = false, beside = [] } = options;
  const subagents = Object.keys(options.subagents);
  const questionsOf = (id: string): number => options.subagents[id] ?? 0;
  const requestIds = subagents.flatMap((id) =>
    Array.from({ length: questionsOf(id) }, (_, index) => requestIdOf(id, index + 1)),
  );
  const addressOf = (requestId: string): string => `question:${requestId}`;
  const askerOf = (requestId: string): string => requestId.slice(0, requestId.lastIndexOf('.'));
  const question = unasked(options.question ?? questionMachine);
  const actors: Record<string, SystemCheck<Machines, Asking>['actors'][string]> = {};
  for (const id of subagents)
    actors[id] = {
      machine: options.subagent ?? subagentMachine,
      input: { id, at, maxSteps: questionsOf(id) + 1, timeoutMs: 1, maxInputRetries: 2 },
      key: (snapshot) => {
        const { value, context } = snapshot as SubagentSnapshot;
        const { step, calls, asked, missed, unread } = context;
        // The question accepts no event after it has ended, however it ended.
        return snapshot.status === 'done' ? [] : [value, step, calls, asked, missed, unread.length];
      },
    };
  for (const requestId of requestIds)
    actors[addressOf(requestId)] = {
      machine: question,
      input: { requestId, timeoutMs: 1 },
      key: (snapshot) => {
        const { value, context } = snapshot as QuestionSnapshot;
        const isOver = snapshot.status === 'done';
        return isOver ? [value] : [value, context.epoch, context.playingSince !== null];
      },
    };
  actors['interaction'] = { machine: options.interaction ?? interactionMachine };

  const subagentOf = (world: Situation, id: string) => world.actors[id] as SubagentSnapshot;
  const questionOf = (world: Situation, requestId: string) =>
    world.actors[addressOf(requestId)] as QuestionSnapshot;
  const interactionOf = (world: Situation) => world.actors['interaction'] as InteractionSnapshot;
  const isUnasked = (world: Situation, requestId: string): boolean =>
    (questionOf(world, requestId).value as string) === 'unasked';
  const onItsWay = (world: Situation, from: string, to: string, type: string): boolean =>
    world.inFlight.some(
      (message) =>
        message.from === from && message.to === to && message.event.type.startsWith(type),
    );
  const owners = (world: Situation, tag: 'owner' | 'answerable'): readonly string[] =>
    requestIds.filter(
      (requestId) =>
        !beside.includes(askerOf(requestId)) && questionOf(world, requestId).hasTag(tag),
    );

  const messagesOf = (from: string, type: string, carried: Params): readonly Delivery[] => {
    const [kind = ''] = from.split(':', 1);
    const { requestId, end } = carried;
    switch (type) {
      case 'ask':
        return [{ to: addressOf(requestId), event: { type: 'question.asked' } }];
      case 'withdraw': {
        const event = { type: 'question.withdraw', reason: 'cancelled' };
        return [{ to: addressOf(requestId), event }];
      }
      case 'request': {
        const requestId = from.slice('question:'.length);
        const { actor, event } = askingFor(requestId, beside.includes(askerOf(requestId)));
        return [{ to: actor, event }];
      }
      case 'reply': {
        const name = end === 'superseded' ? 'withdrawn' : end;
        return [{ to: askerOf(requestId), event: { type: `question.${name}`, requestId } }];
      }
      default:
        return wire(kind, type, carried).map(({ actor, event }) => ({ to: actor, event }));
    }
  };

  return checkSystem<Machines, Asking>({
    name:
      `${subagents.length} subagents × ${requestIds.length} questions × interaction` +
      `${interrupted ? ', interrupted' : ''}${duplicates ? ', duplicates' : ''}${maxInFlight === Infinity ? '' : `, ${maxInFlight} in flight`}`,
    actors,
    mode: 'async',
    maxInFlight,
    duplicates: ({ from, to }) =>
      duplicates && (subagents.includes(from) || subagents.includes(to)),
    limit: 200_000,
    onViolation: 'collect',
    route: (from, { type, params }) =>
      messagesOf(from, type, (params ?? {}) as Params)
        .filter(({ to }) => to in actors)
        .map(({ to, event }) => ({ to, event: { ...event, at } })),
    external: (world, id) => {
      if (id === 'interaction') {
        const { owner } = interactionOf(world).context;
        return owner === null ? [] : [{ type: 'interaction.withdraw', id: owner }];
      }
      if (!id.startsWith('question:'))
        return [
          ...subagentEvents(subagentOf(world, id), questionsOf(id)),
          ...(interrupted ? interruptions(subagentOf(world, id)) : []),
        ];
      const all = questionEvents(world.actors[id] as QuestionSnapshot);
      // The wiring passes a client's arrival and departure only to the question that has the floor.
      const isBeside = beside.includes(askerOf(id.slice('question:'.length)));
      return isBeside ? all.filter(({ type }) => !type.startsWith('client.')) : all;
    },
    ghost: {
      initial: [],
      next(asking, { actor, event, effects }, before) {
        if (actor !== 'interaction') return asking;
        const { id } = event as unknown as Params;
        const granted = new Set(paramsOf(effects, 'grant').map((grant) => (grant as Params).id));
        const known = interactionOf(before).context;
        let order = asking;
        if (event.type === 'interaction.request' && known.owner !== id && !order.includes(id))
          order = [...order, id];
        if (event.type !== 'interaction.request') order = order.filter((one) => one !== id);
        return order.filter((one) => !granted.has(one));
      },
    },
    invariants: {
      'P2: at most one question has the floor': (world) => owners(world, 'owner').length <= 1,
      'P2: at most one question can be answered': (world) =>
        owners(world, 'answerable').length <= 1,
      'P2: whoever has the floor is the owner, under its epoch': (world) => {
        const { owner, epoch } = interactionOf(world).context;
        return owners(world, 'owner').every(
          (requestId) =>
            requestId === owner && questionOf(world, requestId).context.epoch === epoch,
        );
      },
      'QUESTION-14: a question beside the floor never has it, and its clock does not wait': (
        world,
      ) =>
        requestIds.every((requestId) => {
          const { value, context, status } = questionOf(world, requestId);
          return (
            !beside.includes(askerOf(requestId)) ||
            (interactionOf(world).context.owner !== requestId &&
              !interactionOf(world).context.queue.includes(requestId) &&
              (status === 'done' ||
                (context.epoch === 0 && ['unasked', 'queued', 'open'].includes(value))))
          );
        }),
      'nobody waits for nothing': (world) =>
        subagents.every((id) => {
          const subagent = subagentOf(world, id);
          if (!subagent.matches('waiting_for_input')) return true;
          const requestId = requestIdOf(id, subagent.context.asked);
          const address = addressOf(requestId);
          const lives = questionOf(world, requestId).status === 'active';
          return (
            onItsWay(world, id, address, 'question.asked') ||
            (lives && !isUnasked(world, requestId)) ||
            onItsWay(world, address, id, 'question.')
          );
        }),
      'nobody asks for one that has ended': (world) =>
        requestIds.every((requestId) => {
          const asker = askerOf(requestId);
          const lives = questionOf(world, requestId).status === 'active';
          return (
            !lives ||
            isUnasked(world, requestId) ||
            subagentOf(world, asker).status === 'active' ||
            onItsWay(world, asker, addressOf(requestId), 'question.withdraw')
          );
        }),
    },
    steps: {
      'P2: owners change in the order of asking': (before, { actor, event, effects }) => {
        if (actor !== 'interaction') return true;
        const { id } = event as unknown as Params;
        const asks = event.type === 'interaction.request';
        const waiting = before.ghost.find((one) => asks || one !== id);
        const first = waiting ?? (asks ? id : undefined);
        return paramsOf(effects, 'grant').every((grant) => (grant as Params).id === first);
      },
      'P2: only the owner frees the floor, under its epoch, or because it is over': (
        before,
        { actor, event },
        after,
      ) => {
        if (actor !== 'interaction') return true;
        const [was, is] = [interactionOf(before).context, interactionOf(after).context];
        if (was.owner === null || (is.owner === was.owner && is.epoch === was.epoch)) return true;
        const { type, id, epoch } = event as unknown as { type: string; id: string; epoch: number };
        if (type !== 'interaction.release' || id !== was.owner) return false;
        const over = questionOf(before, id).status === 'done';
        return epoch === was.epoch || (epoch === 0 && over);
      },
      'P3: an answer reaches only a question that can be answered': (before, step, after) => {
        if (step.event.type !== 'question.answer' || step.outcome !== 'taken') return true;
        const [was, is] = [before.actors[step.actor], after.actors[step.actor]];
        return (was as QuestionSnapshot).hasTag('answerable') && is?.status === 'done';
      },
      'P3: the asker hears an answer once, for the question that it waits for': (
        before,
        { actor, event, outcome },
      ) => {
        if (event.type !== 'question.answered' || outcome !== 'taken') return true;
        const { requestId } = event as unknown as Params;
        const { context } = subagentOf(before, actor);
        return (
          requestId === requestIdOf(actor, context.asked) &&
          questionOf(before, requestId).matches('answered')
        );
      },
      'P1: each subagent ends once': (before, { actor }, after) =>
        before.actors[actor]?.status !== 'done' || before.actors[actor] === after.actors[actor],
    },
    end: (world) =>
      world.inFlight.length === 0 &&
      interactionOf(world).matches('main_agent') &&
      subagents.every((id) => subagentOf(world, id).status === 'done') &&
      requestIds.every(
        (requestId) =>
          isUnasked(world, requestId) || questionOf(world, requestId).status === 'done',
      ),
    waits: {
      'an open question ends by a deadline': {
        when: 'answerable',
        exits: ['question.heard', 'deadline.answer'],
      },
      'a parked question ends when somebody comes': {
        when: (snapshot) => (snapshot as { value: unknown }).value === 'parked',
        exits: ['client.attached'],
      },
      'whatever lives can be cancelled': { when: 'live', exits: ['subagent.cancel'] },
    },
    reachable: {
      'every question is answered': (world) =>
        requestIds.every((requestId) => questionOf(world, requestId).matches('answered')),
      'each of them expires, too': (world) =>
        requestIds.every((requestId) => questionOf(world, requestId).matches('expired')),
      'all ask at once': ({ ghost }) =>
        ghost.length === Math.max(0, subagents.length - beside.length - 1),
    },
  });
}

function subagentEvents({ context }: SubagentSnapshot, questions: number) {
  const { step, asked, dueAt } = context;
  const ask: readonly StepCall[] = [{ callId: 'q', kind: 'question' }];
  return [
    { type: 'subagent.prepared', at },
    { type: 'slot.granted', at },
    { type: 'subagent.cancel', at, reason: 'the user said so' },
    { type: 'deadline.run', at: dueAt, dueAt },
    { type: 'model.responded', at, step, calls: [] },
    ...(asked < questions ? [{ type: 'model.responded', at, step, calls: ask }] : []),
  ];
}

function interruptions({ context }: SubagentSnapshot) {
  return context.unread.length > 0
    ? []
    : [{ type: 'subagent.message', at, messageId: 'm', mode: 'interrupt' }];
}

function questionEvents({ context: { dueAt } }: QuestionSnapshot) {
  return [
    { type: 'question.playing', at },
    { type: 'question.heard', at },
    { type: 'deadline.answer', at: dueAt, dueAt },
    { type: 'client.attached', at },
    { type: 'client.detached', at },
    {
      type: 'question.answer',
      at,
      channel: 'speech',
      utteranceStartedAt: at,
      decisive: true,
    },
    { type: 'question.settle', at, channel: 'speech', saidAt: at, decisive: true },
  ];
}
