// The machines of a session and its subagents together, and whether `whyWaiting` tells the truth about each state
// that they reach: each subject has a cause, that which it names can happen, the wait is another one afterwards,
// and who makes the named causes true, one after the other, arrives at the end.
//
// Time stands still (`at: 0`), but for deadlines, each of which may go off whenever it is armed. Left out of the
// keys: moments, and the numbers of attempts and grants.

import { initialTransition, transition, type AnyEventObject, type AnyStateMachine } from 'xstate';
import {
  askingFor,
  gateMessage,
  gateOf,
  interactionMachine,
  outboxMachine,
  ownerOf,
  questionMachine,
  requestIdOf,
  resultItem,
  sessionMachine,
  shared,
  subagentMachine,
  whyWaiting,
  wire,
  type InteractionSnapshot,
  type OutboxSnapshot,
  type QuestionSnapshot,
  type SessionMachineEvent,
  type SessionSnapshot,
  type StepCall,
  type SubagentSnapshot,
  type Wait,
  type WaitCause,
  type WaitingState,
} from '../../../src/machines/index.ts';
import { explore, Graph, type Edge } from '../../../src/testing/check/explore.ts';
import type { Delivery, Machines, SystemCheck, World } from '../../../src/testing/check/index.ts';
import { SystemModel, type AnySystem } from '../../../src/testing/check/system-model.ts';
import { mutate } from './mutate.ts';

const at = 0;

/** What of the session changes; all else rests. */
export type Party = 'user' | 'client' | 'model' | 'playout' | 'connection' | 'start' | 'close';

export interface WaitingOptions {
  readonly parties: readonly Party[];
  /** The calls of each subagent's first step, by its id. */
  readonly subagents?: Readonly<Record<string, readonly StepCall['kind'][]>>;
  /** The subagents that may run at once; without it each gets a slot whenever it asks. */
  readonly runSlots?: number;
  readonly results?: number;
  /** The last of the results is a card that is not said. */
  readonly silent?: boolean;
  /** The user may ask for time. */
  readonly holds?: boolean;
  /** Attempts to say something fail. @defaultValue true */
  readonly fails?: boolean;
  /** What is told in full is not acknowledged at once. */
  readonly tells?: boolean;
  readonly why?: typeof whyWaiting;
}

type Situation = World<Machines, readonly string[]>;

export interface WaitingReport {
  readonly worlds: number;
  readonly causes: ReadonlySet<WaitCause>;
  /** The first state that each property does not hold in, with the wait. */
  readonly violations: Readonly<Record<string, string>>;
}

const questionAddress = (id: string): string => `question:${id}`;

export function checkWaiting(options: WaitingOptions): WaitingReport {
  const system = systemOf(options) as unknown as AnySystem;
  const model = new SystemModel(system);
  const graph = new Graph();
  const edgesOf: (readonly Edge[])[] = [];
  explore(
    model,
    graph,
    {
      discovered() {},
      happened(path, happenings) {
        const { cause, step } = happenings.at(-1) ?? {};
        if (cause !== undefined)
          throw new Error(`${step?.actor} threw after ${JSON.stringify(path())}`, { cause });
      },
      missed() {},
      expanded(index, _world, edges) {
        edgesOf[index] = edges;
      },
    },
    { limit: 200_000, name: 'waiting' },
  );
  const why = options.why ?? whyWaiting;
  const states = graph.worlds.map((world) =>
    stateOf(world as unknown as Situation, options.runSlots),
  );
  const waits = states.map((state) => new Map(why(state).map((each) => [nameOf(each), each])));
  const causes = new Set(waits.flatMap((each) => [...each.values()].map(({ cause }) => cause)));
  const violations: Record<string, string> = {};
  const violated = (property: string, index: number, what: string): void => {
    violations[property] ??= `${what}\n${graph
      .pathTo(index)
      .map(({ event }) => JSON.stringify(event))
      .join('\n')}`;
  };
  const ends = new Map<string, boolean>();

  /** The world after that which the root of the wait names; null if it cannot happen. */
  const after = (index: number, wait: Wait): number | null => {
    for (const remedy of REMEDIES[rootOf(wait).cause]) {
      let now: number | null = index;
      for (const type of remedy) {
        const edge: Edge | undefined =
          now === null
            ? undefined
            : edgesOf[now]?.find(
                ({ choice }) =>
                  choice.event.type === type &&
                  isFor(rootOf(wait), model.ids[choice.actor] ?? '', choice.event),
              );
        now = edge?.to ?? null;
      }
      if (now !== null) return now;
    }
    return null;
  };

  const arrives = (index: number, name: string): boolean => {
    const seen = new Set<number>();
    for (let now = index; ;) {
      const wait = waits[now]?.get(name);
      const known = ends.get(`${now} ${name}`);
      const result = known ?? (wait === undefined ? true : seen.has(now) ? false : undefined);
      if (result !== undefined) {
        for (const each of seen) ends.set(`${each} ${name}`, result);
        return result;
      }
      seen.add(now);
      const then = wait && after(now, wait);
      if (typeof then !== 'number') {
        for (const each of seen) ends.set(`${each} ${name}`, false);
        return false;
      }
      now = then;
    }
  };

  for (const [index, state] of states.entries()) {
    const given = waits[index] ?? new Map<string, Wait>();
    const expected = subjectsIn(state);
    for (const name of expected)
      if (!given.has(name)) violated('each subject has a cause', index, name);
    for (const name of given.keys())
      if (!expected.includes(name)) violated('nobody else waits', index, name);
    for (const [name, wait] of given) {
      // Nobody is there who could do something of his own accord.
      if (wait.cause === 'user' && options.parties.length === 0) continue;
      const then = after(index, wait);
      if (then === null) violated('what is named can happen', index, show(wait));
      else {
        const next = waits[then]?.get(name);
        if (next && signatureOf(next) === signatureOf(wait))
          violated('what is named changes the wait', index, show(wait));
      }
      if (wait.of !== 'session' && !arrives(index, name))
        violated('who follows the causes arrives at the end', index, show(wait));
    }
  }
  return { worlds: graph.worlds.length, causes, violations };
}

/** The events that make a cause true, as ways of one event after the other; the first that is possible counts. */
const REMEDIES: Readonly<Record<WaitCause, readonly (readonly string[])[]>> = {
  start: [['session.start']],
  connection: [['transport.ready']],
  retry: [['deadline.reconnect']],
  transfer: [['transfer.ended']],
  end: [['subagents.ended']],
  client: [['client.attached']],
  user_silence: [['utterance.ended']],
  user_words: [['utterance.settled']],
  model_silence: [['response.ended']],
  lead_tool: [['response.requested']],
  playout: [['playout.drained']],
  user: [['utterance.started'], ['response.requested'], ['client.detached']],
  turn: [],
  floor: [],
  pause: [['deadline.quiet']],
  telling: [['delivery.playing']],
  hearing: [['delivery.heard']],
  acknowledgement: [['delivery.heard']],
  screen: [['delivery.shown'], ['question.shown']],
  new_attempt: [['client.attached'], ['utterance.ended'], ['utterance.started', 'utterance.ended']],
  answer: [['question.answer']],
  reminder: [['deadline.reminder']],
  preparation: [['subagent.prepared']],
  run_slot: [['slot.granted']],
  model: [['model.responded']],
  tools: [['tool.settled']],
  children: [['tool.settled']],
  task_giver: [['question.answered']],
};

/** Whether an event for an actor is one that this wait names. */
function isFor({ of, id, on, cause }: Wait, actor: string, event: AnyEventObject): boolean {
  if (event.type === 'model.responded') return actor === id && event['calls'].length === 0;
  if (event.type === 'tool.settled') return actor === id && event['callId'] === on;
  if (event.type === 'delivery.shown') return event['deliveryId'] === id;
  if (event.type === 'delivery.heard' && cause === 'acknowledgement') return event['of'] === id;
  if (event.type === 'delivery.heard') return event['of'] === undefined;
  if (actor.startsWith('question:')) return of === 'question' && actor === questionAddress(id);
  return of !== 'subagent' || actor === id;
}

const nameOf = ({ of, id }: Pick<Wait, 'of' | 'id'>): string => `${of} ${id}`;
const rootOf = (wait: Wait): Wait => (wait.because ? rootOf(wait.because) : wait);
const show = (wait: Wait): string => `${nameOf(wait)}: ${wait.cause}: ${wait.sentence}`;

/** The wait without moments. */
function signatureOf(wait: Wait): string {
  const { cause, on, sentence, because } = wait;
  const place = cause === 'turn' ? sentence : '';
  return `${nameOf(wait)} ${cause} ${on} ${place} < ${because ? signatureOf(because) : ''}`;
}

function subjectsIn({ session, outbox, questions, subagents }: WaitingState): readonly string[] {
  const { current, pending } = outbox.context;
  if (session.value.connection === 'closed') return [];
  return [
    'session ',
    ...[...questions.keys()].map((id) => `question ${id}`),
    ...[...(current ? [current] : []), ...pending].map(
      ({ deliveryId }) => `delivery ${deliveryId}`,
    ),
    ...[...subagents.keys()].map((id) => `subagent ${id}`),
  ];
}

function stateOf({ actors }: Situation, runSlots?: number): WaitingState {
  const questions = new Map<string, QuestionSnapshot>();
  const subagents = new Map<string, SubagentSnapshot>();
  for (const [id, snapshot] of Object.entries(actors)) {
    if (snapshot.status !== 'active') continue;
    if (id.startsWith('question:') && snapshot.value !== 'unasked')
      questions.set(id.slice('question:'.length), snapshot as QuestionSnapshot);
    else if (id.length === 1) subagents.set(id, snapshot as SubagentSnapshot);
  }
  return {
    at,
    session: actors['session'] as SessionSnapshot,
    interaction: actors['interaction'] as InteractionSnapshot,
    outbox: actors['outbox'] as OutboxSnapshot,
    questions,
    subagents,
    ...(runSlots !== undefined && { runSlots }),
  };
}

/** How many subagents hold a slot. */
const heldIn = ({ actors }: Situation, ids: readonly string[]): number =>
  ids.filter((id) => {
    const { status, value } = actors[id] as SubagentSnapshot;
    return status === 'active' && typeof value === 'object' && 'running' in value;
  }).length;

function restored(machine: AnyStateMachine, input: object, types: readonly string[]): never {
  let [snapshot] = initialTransition(machine, input as never);
  for (const type of types) [snapshot] = transition(machine, snapshot, { type, at });
  return snapshot as never;
}

interface Params {
  readonly requestId: string;
  readonly end: string;
  readonly event: SessionMachineEvent;
}

function systemOf(options: WaitingOptions): SystemCheck<Machines, readonly string[]> {
  const { parties, subagents = {}, results = 0 } = options;
  const has = (party: Party): boolean => parties.includes(party);
  const ids = Object.keys(subagents);
  const results_ = Array.from({ length: results }, (_, index) => `r${index + 1}`);
  const session = mutate(sessionMachine as AnyStateMachine, (chart) => {
    chart.states['watch'] = {
      on: { '*': { actions: { type: 'changed', params: ({ event }: Params) => ({ event }) } } },
    } as never;
  });
  const question = mutate(questionMachine as AnyStateMachine, (chart) => {
    chart.initial = 'unasked';
    chart.states['unasked'] = {
      on: { 'question.asked': { target: 'queued', actions: 'request' } },
    } as never;
  });
  const started = has('start') ? [] : ['session.start', 'transport.ready', 'client.attached'];
  const actors: Record<string, SystemCheck<Machines>['actors'][string]> = {
    session: {
      machine: session,
      start: restored(
        session,
        { maxReconnects: 2, settleTimeoutMs: 1, closeGraceMs: 1, detachGraceMs: null },
        started,
      ),
    },
    outbox: {
      machine: outboxMachine,
      start: restored(
        outboxMachine,
        { capacity: 4, quietMs: 1, offerTimeoutMs: 2, playTimeoutMs: 4, maxAttempts: 2 },
        has('start') ? [] : ['gate.opened'],
      ),
    },
    interaction: { machine: interactionMachine },
  };
  for (const [id, kinds] of Object.entries(subagents)) {
    actors[id] = {
      machine: subagentMachine,
      input: { id, at, maxSteps: 2, timeoutMs: 1, maxInputRetries: 2 },
    };
    const asks = kinds.filter((kind) => kind === 'question' || kind === 'approval');
    for (const [index] of asks.entries()) {
      const requestId = requestIdOf(id, index + 1);
      actors[questionAddress(requestId)] = {
        machine: question,
        input: { requestId, timeoutMs: 1 },
      };
    }
  }
  const sessionIn = ({ actors: all }: Situation) => all['session'] as SessionSnapshot;
  const outboxIn = ({ actors: all }: Situation) => all['outbox'] as OutboxSnapshot;
  const messagesOf = (from: string, type: string, params: Params, world: Situation) => {
    if (type === 'changed') {
      const owner = ownerOf(world.actors['interaction'] as InteractionSnapshot);
      const gate = gateOf(sessionIn(world), true);
      return [...shared(params.event, owner), gateMessage(gate)].map(toDelivery);
    }
    const { requestId, end } = params;
    if (type === 'ask')
      return [{ to: questionAddress(requestId), event: { type: 'question.asked' } }];
    if (type === 'withdraw')
      return [{ to: questionAddress(requestId), event: { type: 'question.withdraw', reason: '' } }];
    if (type === 'request') return [toDelivery(askingFor(from.slice('question:'.length)))];
    if (type === 'reply') {
      const asker = requestId.slice(0, requestId.lastIndexOf('.'));
      return [{ to: asker, event: { type: `question.${end}`, requestId, approved: true } }];
    }
    const [kind = ''] = from.split(':', 1);
    return wire(kind, type, params).map(toDelivery);
  };
  return {
    name: 'waiting',
    actors,
    mode: 'sync',
    key: keyOf,
    route: (from, effect, world) => {
      const { type, params } = effect as { readonly type: string; readonly params?: unknown };
      return messagesOf(from, type, (params ?? {}) as Params, world)
        .filter(({ to }) => to in actors)
        .map(({ to, event }) => ({ to, event: { ...event, at } }));
    },
    external: (world, id) => {
      if (id === 'session') return sessionEvents(sessionIn(world), has);
      if (id === 'outbox') {
        const added = results_.filter((one) => !world.ghost.includes(one)).slice(0, 1);
        const mode = options.silent && added[0] === results_.at(-1) ? 'silent' : 'when_idle';
        return [
          ...added.map((one) => ({ type: 'outbox.add', at, item: resultItem(one, mode) })),
          ...outboxEvents(outboxIn(world), options),
        ];
      }
      if (id.startsWith('question:'))
        return questionEvents(world.actors[id] as QuestionSnapshot, options);
      if (!ids.includes(id)) return [];
      const isFull = heldIn(world, ids) >= (options.runSlots ?? Infinity);
      return subagentEvents(world.actors[id] as SubagentSnapshot, subagents[id] ?? []).filter(
        ({ type }) => !isFull || type !== 'slot.granted',
      );
    },
    ghost: {
      initial: [],
      next: (added, { event, actor }) =>
        actor === 'outbox' &&
        event.type === 'outbox.add' &&
        results_.includes(event['item'].deliveryId)
          ? [...added, event['item'].deliveryId]
          : added,
    },
  };
}

const toDelivery = ({ actor: to, event }: { actor: string; event: AnyEventObject }): Delivery => ({
  to,
  event,
});

function sessionEvents(snapshot: SessionSnapshot, has: (party: Party) => boolean) {
  const { settleBy, reconnectAt, transferId } = snapshot.context;
  const lost = { error: { code: 'LOST', message: 'Lost', retryable: true }, retryInMs: 1 };
  const of = (party: Party, ...types: readonly string[]) => (has(party) ? types : []);
  return [
    ...[
      ...of('start', 'session.start', 'transport.ready', 'client.attached'),
      ...of('user', 'utterance.started', 'utterance.ended', 'utterance.settled'),
      ...of('client', 'client.attached', 'client.detached'),
      ...of('model', 'response.requested', 'response.waiting', 'response.ended'),
      ...of('playout', 'playout.started', 'playout.drained'),
      ...of('close', 'session.close', 'subagents.ended'),
      ...of('connection', 'transport.ready', 'subagents.ended'),
    ].map((type) => ({ type, at })),
    ...(has('connection')
      ? [
          { type: 'transport.lost', at, ...lost },
          { type: 'deadline.reconnect', at: reconnectAt, dueAt: reconnectAt },
          { type: 'transfer.started', at, transferId: 't', to: 'other' },
          { type: 'transfer.ended', at, transferId, error: null },
        ]
      : []),
    ...(has('user') ? [{ type: 'deadline.settle', at: settleBy, dueAt: settleBy }] : []),
  ];
}

function outboxEvents({ context }: OutboxSnapshot, options: WaitingOptions) {
  const { tells = false, fails = true } = options;
  const { dueAt, generation, pending } = context;
  return [
    ...['deadline.quiet', ...(fails ? ['deadline.offer', 'deadline.play'] : [])].map((type) => ({
      type,
      at: dueAt,
      dueAt,
    })),
    ...[
      'delivery.playing',
      ...(fails ? ['delivery.failed', 'delivery.interrupted'] : []),
      ...(tells ? ['delivery.told'] : []),
    ].map((type) => ({ type, at, generation })),
    { type: 'delivery.heard', at, generation, grade: 'played' },
    ...pending.flatMap(({ deliveryId, resting, toldIn }) => [
      ...(resting ? [{ type: 'delivery.shown', at, deliveryId }] : []),
      ...(toldIn === undefined
        ? []
        : [{ type: 'delivery.heard', at, generation: toldIn, grade: 'played', of: deliveryId }]),
    ]),
  ];
}

function questionEvents({ context }: QuestionSnapshot, { holds = false }: WaitingOptions) {
  const { dueAt, remindAt } = context;
  const answer = { type: 'question.answer', at, utteranceStartedAt: at, decisive: true };
  return [
    { ...answer, channel: 'button' },
    { type: 'question.shown', at, startsClock: true },
    { type: 'deadline.answer', at: dueAt, dueAt },
    { type: 'question.withdraw', at, reason: 'cancelled' },
    ...(holds
      ? [
          { type: 'question.hold', at, remindAt: at },
          { type: 'deadline.reminder', at: remindAt, dueAt: remindAt },
        ]
      : []),
  ];
}

function subagentEvents({ context }: SubagentSnapshot, kinds: readonly StepCall['kind'][]) {
  const { step, asked, id, calls } = context;
  const made = kinds.map((kind, index): StepCall => ({ callId: `c${index}`, kind }));
  return [
    { type: 'subagent.prepared', at },
    { type: 'slot.granted', at },
    { type: 'model.responded', at, step, calls: [] },
    ...(step === 1 ? [{ type: 'model.responded', at, step, calls: made }] : []),
    ...calls.map(({ callId }) => ({ type: 'tool.settled', at, step, callId })),
    ...(kinds.includes('input')
      ? [{ type: 'question.answered', at, requestId: requestIdOf(id, asked) }]
      : []),
  ];
}

function keyOf({ actors, ghost }: Situation): unknown {
  return [
    ghost,
    ...Object.entries(actors).map(([id, snapshot]) => {
      if (snapshot.status !== 'active') return 'over';
      if (id === 'outbox') {
        const { current, pending, interruptible } = (snapshot as OutboxSnapshot).context;
        const items = [...(current ? [current] : []), ...pending];
        return [
          snapshot.value,
          interruptible,
          current !== null,
          items.map(({ deliveryId, attempts, resting, toldIn }) => [
            deliveryId,
            attempts,
            resting,
            toldIn !== undefined,
          ]),
        ];
      }
      if (id === 'interaction') {
        const { owner, queue } = (snapshot as InteractionSnapshot).context;
        return [snapshot.value, owner, queue];
      }
      if (id.startsWith('question:')) {
        const { playingSince, shownAt, heard, hasBegun } = (snapshot as QuestionSnapshot).context;
        return [snapshot.value, playingSince !== null, shownAt !== null, heard, hasBegun];
      }
      if (id === 'session') {
        const { failures, transferId } = (snapshot as SessionSnapshot).context;
        return [snapshot.value, failures, transferId];
      }
      const { step, calls, asked, missed } = (snapshot as SubagentSnapshot).context;
      return [snapshot.value, step, calls, asked, missed];
    }),
  ];
}
