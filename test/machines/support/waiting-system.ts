// Checks the machines of a session and its subagents together. In each reached state, `whyWaiting` must be true: each
// part has a cause, the named event can happen and changes the wait, and the wait ends if the named causes are made
// true one after the other.
//
// Time stands still (`at: 0`), except for deadlines, each of which may fire whenever it is armed. The keys omit
// times and the numbers of attempts and grants.

import {
  createMachine,
  initialTransition,
  transition,
  type AnyEventObject,
  type AnyStateMachine,
  type AnyStateNode,
} from 'xstate';
import {
  askingFor,
  batchMachine,
  eventSourceMachine,
  gateMessage,
  gateOf,
  interactionMachine,
  outboxMachine,
  ownerOf,
  questionMachine,
  requestIdOf,
  resultItem,
  serviceMachine,
  sessionMachine,
  shared,
  sourceMessages,
  subagentMachine,
  toolCallMachine,
  wire,
  type BatchSnapshot,
  type EventSourceSnapshot,
  type InteractionSnapshot,
  type OutboxSnapshot,
  type QuestionSnapshot,
  type ServiceSnapshot,
  type ServiceWork,
  type SessionMachineEvent,
  type SessionSnapshot,
  type StepCall,
  type SubagentSnapshot,
  type ToolCallSnapshot,
  type Wait,
  type WaitCause,
  type WaitingState,
  type WorkOf,
} from '../../../src/machines/index.ts';
import { whyWaiting } from '../../../src/machines/why-waiting.ts';
import { explore, Graph, type Edge } from '../../../src/testing/check/explore.ts';
import type { Delivery, Machines, SystemCheck, World } from '../../../src/testing/check/index.ts';
import { SystemModel, type AnySystem } from '../../../src/testing/check/system-model.ts';
import { mutate } from './mutate.ts';

const at = 0;

/** The parts of the session that change. All others stay idle. */
export type Party =
  | 'user'
  | 'client'
  | 'model'
  | 'playout'
  | 'connection'
  | 'start'
  | 'close'
  | 'sleep';

export interface WaitingOptions {
  readonly parties: readonly Party[];
  /** The calls of each subagent's first step, by subagent id. */
  readonly subagents?: Readonly<Record<string, readonly StepCall['kind'][]>>;
  /** Where each subagent works, by subagent id. @defaultValue here, with a model */
  readonly places?: Readonly<Record<string, 'engine' | 'relay'>>;
  /** The child that a subagent's delegation waits for, by the id of the parent. */
  readonly children?: Readonly<Record<string, string>>;
  /** The identities that may answer a question, by request id. @defaultValue everyone */
  readonly roles?: Readonly<Record<string, readonly string[]>>;
  /** The subagents work for a program, and there is no session. */
  readonly program?: boolean;
  /** The lead agent's calls: each is inline or runs in the named subagent. */
  readonly calls?: Readonly<Record<string, 'inline' | { readonly subagent: string }>>;
  /** The services, each with one source `s`, and the subagent that handles the service's events. */
  readonly services?: Readonly<Record<string, { readonly subagent: string }>>;
  /** A model call may fail and be retried. */
  readonly repeats?: boolean;
  /** The results of the calls are delivered together. The value says what happens to late calls. */
  readonly batch?: 'deliver' | 'cancel';
  /** The number of subagents that may run at once, or undefined for no limit. */
  readonly runSlots?: number;
  readonly results?: number;
  /** The last result is a card that is not spoken. */
  readonly silent?: boolean;
  /** The user may ask for time. */
  readonly holds?: boolean;
  /** A model interprets the user's answer to a question. */
  readonly reads?: boolean;
  /** Open questions are withdrawn after some time without a client. */
  readonly givesUp?: boolean;
  /** The session may take the floor away from a question. */
  readonly revokes?: boolean;
  /** Attempts to speak an item fail. @defaultValue true */
  readonly fails?: boolean;
  /** An item that has been spoken in full is not acknowledged at once. */
  readonly tells?: boolean;
  readonly why?: typeof whyWaiting;
}

type Situation = World<Machines, readonly string[]>;

export interface WaitingReport {
  readonly worlds: number;
  readonly causes: ReadonlySet<WaitCause>;
  /** The states of the charts that were reached, such as `question.open`. */
  readonly reached: ReadonlySet<string>;
  /** The first state in which each property fails, with the wait in that state. */
  readonly violations: Readonly<Record<string, string>>;
}

/** The charts whose states are explored. */
const CHARTS: Readonly<Record<string, AnyStateMachine>> = {
  session: sessionMachine,
  interaction: interactionMachine,
  outbox: outboxMachine,
  question: questionMachine,
  call: toolCallMachine,
  batch: batchMachine,
  subagent: subagentMachine,
  service: serviceMachine,
  source: eventSourceMachine,
};

/** Returns the states of the charts that have no child states, except final ones. */
export function allStates(): readonly string[] {
  const leaves = (node: AnyStateNode): readonly string[] => {
    const below = Object.values(node.states);
    if (below.length > 0) return below.flatMap(leaves);
    return node.type === 'final' ? [] : [node.path.join('.')];
  };
  return Object.entries(CHARTS).flatMap(([name, { root }]) =>
    leaves(root).map((path) => `${name}.${path}`),
  );
}

function* statesIn(name: string, value: unknown): Generator<string> {
  if (typeof value !== 'object' || value === null) yield `${name}.${String(value)}`;
  else for (const [key, within] of Object.entries(value)) yield* statesIn(`${name}.${key}`, within);
}

/** Represents work elsewhere that reports to the machines. */
const elsewhere = createMachine({
  on: { '*': { actions: { type: 'report', params: ({ event }) => ({ event }) } } },
});

/** The process that has the session. */
const hostMachine = createMachine({
  initial: 'awake',
  states: {
    awake: { on: { 'host.slept': 'asleep' } },
    asleep: { on: { 'host.woken': { target: 'awake', actions: 'wake' } } },
  },
});

/** Represents the outbox's place and the subagent of a service's event. */
const deskMachine = createMachine({
  initial: 'closed',
  states: {
    closed: { on: { 'desk.asked': 'asked' } },
    asked: { on: { 'desk.granted': 'granted', 'desk.left': 'closed' } },
    granted: { on: { 'desk.left': 'closed' } },
  },
});

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
  const states = graph.worlds.map((world) => stateOf(world as unknown as Situation, options));
  const reached = new Set<string>();
  for (const { actors } of graph.worlds as unknown as readonly Situation[])
    for (const [id, { value }] of Object.entries(actors))
      for (const state of statesIn(id.length === 1 ? 'subagent' : (id.split(':')[0] ?? ''), value))
        reached.add(state);
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

  /** Returns the world after the event that the root of the wait names, or null if that event cannot happen. */
  const after = (index: number, wait: Wait): number | null => {
    const root = rootOf(wait);
    const state = states[index];
    // A wait for a person is valid even while no process has the session, because people wake the session.
    const isWoken = state?.isAsleep === true && root.of !== 'session' && BY_PEOPLE.has(root.cause);
    for (const known of REMEDIES[root.cause]) {
      const remedy = isWoken ? ['host.woken', ...known] : known;
      let now: number | null = index;
      for (const type of remedy) {
        const edge: Edge | undefined =
          now === null
            ? undefined
            : edgesOf[now]?.find(
                ({ choice }) =>
                  choice.event.type === type &&
                  isFor(root, model.ids[choice.actor] ?? '', choice.event, options),
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
      const given = waits[now]?.get(name);
      // A service and its sources wait for events forever.
      const wait = given?.cause === 'event' ? undefined : given;
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
      // There is no party that could act.
      if (rootOf(wait).cause === 'user' && options.parties.length === 0) continue;
      const then = after(index, wait);
      if (then === null) violated('what is named can happen', index, show(wait));
      else {
        const next = waits[then]?.get(name);
        // A running source is waiting for the next event.
        const isRunning = wait.of === 'source' && wait.cause === 'event';
        if (next && !isRunning && signatureOf(next) === signatureOf(wait))
          violated('what is named changes the wait', index, show(wait));
      }
      if (wait.of !== 'session' && !arrives(index, name))
        violated('who follows the causes arrives at the end', index, show(wait));
    }
  }
  return { worlds: graph.worlds.length, causes, reached, violations };
}

/** The events that make a cause true, as sequences. The first sequence that is possible counts. */
const REMEDIES: Readonly<Record<WaitCause, readonly (readonly string[])[]>> = {
  wake: [['host.woken']],
  start: [['session.start'], ['service.start']],
  connection: [['transport.ready']],
  refusal: [['session.reconnect']],
  retry: [['deadline.reconnect'], ['deadline.retry'], ['deadline.restart']],
  transfer: [['transfer.ended']],
  end: [['subagents.ended']],
  client: [['client.attached']],
  user_silence: [['utterance.ended']],
  user_words: [['utterance.settled'], ['reading.ended']],
  model_silence: [['response.ended']],
  lead_tool: [['response.requested'], ['call.executed']],
  client_call: [['client.answered']],
  time: [['deadline.schedule'], ['deadline.sleep']],
  channel: [['reach.ended']],
  playout: [['playout.drained']],
  user: [['utterance.started'], ['response.requested'], ['client.detached']],
  turn: [],
  floor: [],
  pause: [['deadline.quiet']],
  telling: [['delivery.playing']],
  hearing: [['delivery.heard']],
  acknowledgement: [['delivery.heard']],
  screen: [['delivery.shown'], ['question.shown']],
  event: [['event.arrived']],
  source: [['source.started']],
  release: [['source.released']],
  validation: [['call.validated']],
  admission: [['subagent.accepted'], ['desk.granted']],
  result: [['subagent.ended'], ['invocation.ended']],
  siblings: [['batch.settled'], ['subagent.ended']],
  lead_reply: [['batch.replied']],
  agent: [['agent.acted']],
  job: [['job.done']],
  new_attempt: [['client.attached'], ['utterance.ended'], ['utterance.started', 'utterance.ended']],
  answer: [['question.answer'], ['question.answered']],
  reminder: [['deadline.reminder']],
  preparation: [['subagent.prepared']],
  run_slot: [['slot.granted']],
  model: [['model.responded']],
  tools: [['tool.settled']],
  children: [['tool.settled']],
  task_giver: [['question.answered']],
};

const BY_PEOPLE: ReadonlySet<WaitCause> = new Set([
  'answer',
  'screen',
  'acknowledgement',
  'new_attempt',
  'client',
  'reminder',
]);

/** Returns whether this wait names the event. */
function isFor(wait: Wait, actor: string, event: AnyEventObject, options: WaitingOptions): boolean {
  const { of, id, on, by, cause } = wait;
  const { type } = event;
  if (type === 'host.woken') return true;
  if (type === 'job.done' || type === 'agent.acted')
    return (
      (event['event'].type === 'tool.settled') === (on !== null) &&
      isFor(wait, event['to'], event['event'], options)
    );
  if (type === 'deadline.sleep') return actor === id;
  if (type === 'model.responded') return actor === id && event['calls'].length === 0;
  if (type === 'tool.settled') {
    const { callId } = event;
    return actor === id && (callId === on || (on !== null && options.children?.[id] === on));
  }
  if (type === 'delivery.shown') return event['deliveryId'] === id || event['deliveryId'] === on;
  if (type === 'delivery.heard' && cause === 'acknowledgement')
    return event['of'] === id || event['of'] === on;
  if (type === 'delivery.heard') return event['of'] === undefined;
  if (type === 'event.arrived') return of === 'source' || actor === `service:${id}`;
  if (type === 'service.start') return actor === `service:${id.split('/')[0]}`;
  if (of === 'service') return actor === `service:${id}` || actor === `desk:${id}`;
  if (of === 'source') return actor === `source:${id}`;
  if (cause === 'lead_tool')
    return of === 'call' ? actor === `call:${id}` : type === 'response.requested';
  if (cause === 'siblings') return actor === `call:${on}`;
  if (type === 'question.answer') {
    const isAllowed = by === null ? event['by'] === undefined : by.includes(event['by']);
    return of === 'question' && actor === questionAddress(id) && isAllowed;
  }
  if (type === 'question.answered')
    return actor === id && (by === null || by.includes(event['by']));
  if (actor.startsWith('question:')) return of === 'question' && actor === questionAddress(id);
  if (actor.startsWith('call:')) return of === 'call' && actor === `call:${id}`;
  return of !== 'subagent' || actor === id;
}

const nameOf = ({ of, id }: Pick<Wait, 'of' | 'id'>): string => `${of} ${id}`;
const rootOf = (wait: Wait): Wait => (wait.because ? rootOf(wait.because) : wait);
const show = (wait: Wait): string => `${nameOf(wait)}: ${wait.cause}: ${wait.sentence}`;

/** Returns the wait without times. */
function signatureOf(wait: Wait): string {
  const { cause, on, sentence, because } = wait;
  const place = cause === 'turn' ? sentence : '';
  return `${nameOf(wait)} ${cause} ${on} ${place} < ${because ? signatureOf(because) : ''}`;
}

function subjectsIn(state: WaitingState): readonly string[] {
  const { session, outbox, questions, subagents, calls = new Map(), batches = new Map() } = state;
  const { services = new Map() } = state;
  const ofSubagents = [...subagents.keys()].map((id) => `subagent ${id}`);
  if (!session || !outbox) return ofSubagents;
  const { current, pending } = outbox.context;
  if (session.value.connection === 'closed') return [];
  const parts = [...batches.values()].flatMap(({ context }): readonly string[] => context.parts);
  return [
    'session ',
    ...[...questions.keys()].map((id) => `question ${id}`),
    ...[...(current ? [current] : []), ...pending].map(
      ({ deliveryId }) => `delivery ${deliveryId}`,
    ),
    ...parts.map((id) => `delivery ${id}`),
    ...[...calls.keys()].map((id) => `call ${id}`),
    ...ofSubagents,
    ...[...services].flatMap(([name, { state: service, sources }]) => [
      ...(service ? [`service ${name}`] : []),
      ...[...sources.keys()].map((source) => `source ${name}/${source}`),
    ]),
  ];
}

function stateOf({ actors }: Situation, options: WaitingOptions): WaitingState {
  const { runSlots, places = {}, children = {}, calls = {}, program = false } = options;
  const questions = new Map<string, QuestionSnapshot>();
  const subagents = new Map<string, SubagentSnapshot>();
  const made = new Map<string, ToolCallSnapshot>();
  const batches = new Map<string, BatchSnapshot>();
  const work = new Map<string, WorkOf>();
  const services = new Map<string, ServiceWork>();
  for (const [name, { subagent }] of Object.entries(options.services ?? {})) {
    const service = actors[`service:${name}`] as ServiceSnapshot;
    const source = actors[`source:${name}/s`] as EventSourceSnapshot;
    services.set(name, {
      state: service.status === 'active' ? service : null,
      worker: actors[`desk:${name}`]?.value === 'granted' ? subagent : null,
      sources: new Map(source.status === 'active' ? [['s', source]] : []),
    });
  }
  for (const [id, snapshot] of Object.entries(actors)) {
    if (snapshot.status !== 'active') continue;
    const [kind = '', name = ''] = id.split(':');
    if (kind === 'question' && snapshot.value !== 'unasked')
      questions.set(name, snapshot as QuestionSnapshot);
    else if (kind === 'call') made.set(name, snapshot as ToolCallSnapshot);
    else if (kind === 'batch') batches.set(name, snapshot as BatchSnapshot);
    else if (id.length === 1) {
      const subagent = snapshot as SubagentSnapshot;
      subagents.set(id, subagent);
      const [parentId] = Object.entries(children).find(([, child]) => child === id) ?? [];
      const [callId] =
        Object.entries(calls).find(
          ([, call]) => typeof call === 'object' && call.subagent === id,
        ) ?? [];
      const engine = places[id] === 'engine' ? 'engine' : null;
      const tools = subagent.context.calls.map(
        ({ callId: call, kind: toolName }) =>
          [call, { toolName, ...(engine !== null && { engine }) }] as const,
      );
      work.set(id, {
        parentId: parentId ?? null,
        callId: parentId === undefined ? (callId ?? null) : delegationOf(options, parentId),
        relay: places[id] === 'relay' ? 'peer' : null,
        engine,
        tools: new Map(tools),
      });
    }
  }
  return {
    at,
    session: program ? null : (actors['session'] as SessionSnapshot),
    interaction: program ? null : (actors['interaction'] as InteractionSnapshot),
    outbox: program ? null : (actors['outbox'] as OutboxSnapshot),
    questions,
    subagents,
    calls: made,
    batches,
    work,
    services,
    answerableBy: new Map(Object.entries(options.roles ?? {})),
    isAsleep: actors['host']?.value === 'asleep',
    ...(runSlots !== undefined && { runSlots }),
  };
}

/** Returns the first delegation in a subagent's step. */
const delegationOf = ({ subagents = {} }: WaitingOptions, id: string): string =>
  `c${subagents[id]?.indexOf('delegation')}`;

/** The events from the parties that do a subagent's work. */
const ELSEWHERE: ReadonlySet<string> = new Set(['model.responded', 'tool.settled']);

/** Returns whether the session may hibernate. */
function isIdle({ actors }: Situation, ids: readonly string[]): boolean {
  const { connection, client, user, model, playout } = (actors['session'] as SessionSnapshot).value;
  const { current, pending } = (actors['outbox'] as OutboxSnapshot).context;
  const isWaiting = (id: string): boolean => {
    const { status, value } = actors[id] as SubagentSnapshot;
    return status !== 'active' || (typeof value === 'object' && 'waiting_for_input' in value);
  };
  return (
    connection === 'active' &&
    user === 'silent' &&
    model === 'idle' &&
    playout === 'drained' &&
    current === null &&
    (client !== 'attached' || pending.every(({ resting }) => resting)) &&
    ids.every(isWaiting)
  );
}

/** Counts the subagents that have a slot. */
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
  readonly name: string;
  readonly requestId: string;
  readonly end: string;
  readonly event: SessionMachineEvent;
}

function systemOf(options: WaitingOptions): SystemCheck<Machines, readonly string[]> {
  const { parties, subagents = {}, results = 0, calls = {}, batch, program = false } = options;
  const { places = {}, children = {}, services = {} } = options;
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
  const background = Object.keys(calls).filter((callId) => calls[callId] !== 'inline');
  const batchId = batch === undefined ? null : 'b1';
  const all: Record<string, SystemCheck<Machines>['actors'][string]> = {
    host: { machine: hostMachine },
    session: {
      machine: session,
      start: restored(
        session,
        {
          maxReconnects: 2,
          settleTimeoutMs: 1,
          closeGraceMs: 1,
          detachGraceMs: options.givesUp === true ? 1 : null,
        },
        started,
      ),
    },
    outbox: {
      machine: outboxMachine,
      start: restored(
        outboxMachine,
        { capacity: 4, quietMs: 1, offerTimeoutMs: 2, playTimeoutMs: 4, maxAttempts: 2 },
        [...background.map(() => 'outbox.reserve'), ...(has('start') ? [] : ['gate.opened'])],
      ),
    },
    interaction: { machine: interactionMachine },
  };
  const actors = program ? {} : all;
  if (Object.values(places).includes('engine')) actors['engine'] = { machine: elsewhere };
  if (Object.values(places).includes('relay')) actors['peer'] = { machine: elsewhere };
  for (const callId of Object.keys(calls))
    actors[`call:${callId}`] = {
      machine: toolCallMachine,
      input: { callId, timeoutMs: 1, batchId: calls[callId] === 'inline' ? null : batchId },
    };
  if (batch !== undefined && batchId !== null) {
    let [joined] = initialTransition(batchMachine, {
      batchId,
      ceilingMs: 1,
      graceMs: 1,
      atCeiling: batch,
    });
    for (const callId of background)
      [joined] = transition(batchMachine, joined, { type: 'batch.joined', at, callId });
    actors[`batch:${batchId}`] = { machine: batchMachine, start: joined as never };
  }
  for (const name of Object.keys(services)) {
    const backoff = { baseDelayMs: 1, maxDelayMs: 1 };
    const input = { maxWaiting: 1, maxInvocations: 2, ...backoff };
    actors[`service:${name}`] = { machine: serviceMachine, input };
    actors[`source:${name}/s`] = {
      machine: eventSourceMachine,
      input: { ...backoff, stableMs: 1, stopTimeoutMs: 1 },
    };
    actors[`desk:${name}`] = { machine: deskMachine };
  }
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
    if (type === 'report') {
      const { to, event } = params.event as unknown as Delivery;
      return [{ to, event }];
    }
    if (type === 'wake') return [{ to: 'session', event: { type: 'session.woken' } }];
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
    const [kind = '', name = ''] = from.split(':', 2);
    if (kind === 'service') {
      const desk = `desk:${name}`;
      if (type === 'startActivity' && params.name === 'invocation')
        return [{ to: desk, event: { type: 'desk.asked' } }];
      if (type === 'stopActivity' && params.name === 'invocation')
        return [{ to: desk, event: { type: 'desk.left' } }];
      return sourceMessages(type, ['s']).map(({ event }) => ({ to: `source:${name}/s`, event }));
    }
    if (kind === 'source') return [];
    return wire(kind, type, params, (callId) => (background.includes(callId) ? batchId : null)).map(
      toDelivery,
    );
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
      if (id === 'host') {
        if (!has('sleep')) return [];
        return world.actors['host']?.value === 'asleep'
          ? [{ type: 'host.woken', at }]
          : isIdle(world, ids)
            ? [{ type: 'host.slept', at }]
            : [];
      }
      if (world.actors['host']?.value === 'asleep') return [];
      if (id === 'session') return sessionEvents(sessionIn(world), has);
      if (id === 'interaction') {
        const owner = ownerOf(world.actors['interaction'] as InteractionSnapshot);
        return options.revokes === true && owner !== null
          ? [{ type: 'interaction.withdraw', at, id: owner }]
          : [];
      }
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
      if (id.startsWith('call:')) {
        const callId = id.slice('call:'.length);
        const call = calls[callId] ?? 'inline';
        const isOver =
          call !== 'inline' && (world.actors[call.subagent] as SubagentSnapshot).status === 'done';
        return callEvents(world.actors[id] as ToolCallSnapshot, call, isOver);
      }
      if (id.startsWith('service:')) {
        const name = id.slice('service:'.length);
        const desk = world.actors[`desk:${name}`]?.value;
        const worker = world.actors[services[name]?.subagent ?? ''] as SubagentSnapshot;
        const source = world.actors[`source:${name}/s`] as EventSourceSnapshot;
        const isRunning = source.matches({ live: 'running' });
        const { waiting, current } = (world.actors[id] as ServiceSnapshot).context;
        const known = new Set([current, ...waiting].map((event) => event?.eventId));
        const eventId = ['evt0', 'evt1'].find((each) => !known.has(each)) ?? 'evt2';
        const isDone = desk === 'granted' && worker.status === 'done';
        return [
          ...(isRunning ? [{ type: 'event.arrived', at, eventId, priority: 'normal' }] : []),
          ...serviceEvents(world.actors[id] as ServiceSnapshot, desk === 'asked', isDone),
        ];
      }
      if (id.startsWith('source:')) return sourceEvents(world.actors[id] as EventSourceSnapshot);
      if (id.startsWith('desk:'))
        return world.actors[id]?.value === 'asked' ? [{ type: 'desk.granted', at }] : [];
      if (id.startsWith('batch:')) return batchEvents(world.actors[id] as BatchSnapshot);
      const ofSubagent = (subagent: string) => {
        const isFull = heldIn(world, ids) >= (options.runSlots ?? Infinity);
        const child = children[subagent];
        const isChildLive =
          child !== undefined && (world.actors[child] as SubagentSnapshot).status === 'active';
        const snapshot = world.actors[subagent] as SubagentSnapshot;
        return subagentEvents(snapshot, subagents[subagent] ?? [], options).filter(
          (event) =>
            (!isFull || event.type !== 'slot.granted') &&
            !(
              isChildLive &&
              event.type === 'tool.settled' &&
              'callId' in event &&
              event.callId === delegationOf(options, subagent)
            ),
        );
      };
      if (id === 'engine' || id === 'peer')
        return ids
          .filter((to) => places[to] === (id === 'engine' ? 'engine' : 'relay'))
          .flatMap((to) =>
            ofSubagent(to)
              .filter(({ type }) => ELSEWHERE.has(type))
              .map((event) => ({
                type: id === 'engine' ? 'job.done' : 'agent.acted',
                at,
                to,
                event,
              })),
          );
      if (!ids.includes(id)) return [];
      return ofSubagent(id).filter(({ type }) => places[id] === undefined || !ELSEWHERE.has(type));
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
  const { settleBy, reconnectAt, transferId, detachedUntil } = snapshot.context;
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
      ...of('connection', 'transport.ready', 'session.reconnect', 'subagents.ended'),
    ].map((type) => ({ type, at })),
    ...(has('connection')
      ? [
          { type: 'transport.lost', at, ...lost },
          { type: 'transport.lost', at, ...lost, retryInMs: null },
          { type: 'deadline.reconnect', at: reconnectAt, dueAt: reconnectAt },
          { type: 'transfer.started', at, transferId: 't', to: 'other' },
          { type: 'transfer.ended', at, transferId, error: null },
        ]
      : []),
    ...(has('client')
      ? [{ type: 'deadline.detach', at: detachedUntil, dueAt: detachedUntil }]
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

function questionEvents(
  { context }: QuestionSnapshot,
  { holds = false, reads = false, roles = {} }: WaitingOptions,
) {
  const { dueAt, remindAt, requestId, readBy = 0 } = context;
  const words = { at, utteranceId: 'u1' };
  const answer = { type: 'question.answer', at, utteranceStartedAt: at, decisive: true };
  return [
    // The session passes on the identities that may answer.
    ...(roles[requestId]?.map((by) => ({ ...answer, channel: 'button', by })) ?? [
      { ...answer, channel: 'button' },
    ]),
    { type: 'question.shown', at, startsClock: true },
    { type: 'deadline.answer', at: dueAt, dueAt },
    { type: 'question.withdraw', at, reason: 'cancelled' },
    ...(holds
      ? [
          { type: 'question.hold', at, remindAt: at },
          { type: 'deadline.reminder', at: remindAt, dueAt: remindAt },
        ]
      : []),
    ...(reads
      ? [
          { type: 'reading.begun', ...words, channel: 'typing', startedAt: at },
          { type: 'reading.ended', ...words, gives: 'answer' },
          { type: 'reading.ended', ...words, gives: 'again' },
          { type: 'deadline.reading', at: readBy, dueAt: readBy },
        ]
      : []),
  ];
}

function subagentEvents(
  { context }: SubagentSnapshot,
  kinds: readonly StepCall['kind'][],
  { program = false, roles = {}, repeats = false }: WaitingOptions,
) {
  const { step, asked, id, calls } = context;
  const error = { code: 'OVERLOADED', message: 'Overloaded', retryable: true };
  const made = kinds.map((kind, index): StepCall => ({
    callId: `c${index}`,
    kind,
    ...(kind === 'sleep' && { until: 1000 }),
  }));
  return [
    { type: 'subagent.prepared', at },
    { type: 'slot.granted', at },
    { type: 'model.responded', at, step, calls: [] },
    ...(step === 1 ? [{ type: 'model.responded', at, step, calls: made }] : []),
    ...(repeats
      ? [{ type: 'model.retried', at, step, failed: 1, attempts: 3, retryAt: 1000, error }]
      : []),
    ...calls.map(({ callId }) => ({ type: 'tool.settled', at, step, callId })),
    ...(kinds.includes('sleep') ? [{ type: 'deadline.sleep', at, dueAt: 1000 }] : []),
    ...(program || kinds.includes('input')
      ? (roles[requestIdOf(id, asked)] ?? [undefined]).map((by) => ({
          type: 'question.answered',
          at,
          requestId: requestIdOf(id, asked),
          approved: true,
          ...(by !== undefined && { by }),
        }))
      : []),
  ];
}

const DETACH = { afterMs: 0, wordsMs: null };

function callEvents(
  { context: { callId, dueAt, detachAt = dueAt } }: ToolCallSnapshot,
  call: 'inline' | { readonly subagent: string },
  isOver: boolean,
) {
  if (call === 'inline')
    return [
      { type: 'call.validated', at, execution: 'inline', acknowledge: false, detach: DETACH },
      { type: 'deadline.detachment', at: detachAt, dueAt: detachAt },
      { type: 'call.invalid', at },
      { type: 'call.executed', at },
      { type: 'deadline.execution', at: dueAt, dueAt },
    ];
  return [
    { type: 'call.validated', at, execution: 'background', acknowledge: true },
    { type: 'subagent.accepted', at },
    { type: 'subagent.rejected', at },
    ...(isOver ? [{ type: 'subagent.ended', at, callId }] : []),
  ];
}

function serviceEvents({ context }: ServiceSnapshot, mayRefuse: boolean, isDone: boolean) {
  const { current, retryAt } = context;
  const eventId = current?.eventId ?? '';
  return [
    { type: 'service.start', at },
    { type: 'service.stop', at },
    { type: 'deadline.retry', at: retryAt, dueAt: retryAt },
    ...(isDone ? [{ type: 'invocation.ended', at, eventId }] : []),
    ...(mayRefuse ? [{ type: 'invocation.refused', at, eventId, retryable: true, jitter: 0 }] : []),
  ];
}

function sourceEvents({ context }: EventSourceSnapshot) {
  const { attempt, failures, restartAt, releaseBy } = context;
  return [
    { type: 'source.started', at, attempt },
    ...(failures === 0 ? [{ type: 'source.failed', at, attempt, jitter: 0 }] : []),
    { type: 'source.released', at, attempt },
    { type: 'deadline.restart', at: restartAt, dueAt: restartAt },
    { type: 'deadline.release', at: releaseBy, dueAt: releaseBy },
  ];
}

function batchEvents({ context: { dueAt, working, asking, parts } }: BatchSnapshot) {
  return [
    { type: 'batch.replied', at },
    { type: 'deadline.ceiling', at: dueAt, dueAt },
    { type: 'deadline.grace', at: dueAt, dueAt },
    ...working.slice(0, 1).map((callId) => ({ type: 'batch.asking', at, callId })),
    ...asking.map((callId) => ({ type: 'batch.resumed', at, callId })),
    ...parts.map((deliveryId) => ({ type: 'delivery.shown', at, deliveryId })),
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
      if (id.startsWith('call:') || id.startsWith('desk:')) return snapshot.value;
      if (id.startsWith('service:')) {
        const { waiting, current } = (snapshot as ServiceSnapshot).context;
        return [snapshot.value, waiting, current];
      }
      if (id.startsWith('source:'))
        return [snapshot.value, (snapshot as EventSourceSnapshot).context.failures];
      if (id === 'host' || id === 'engine' || id === 'peer') return snapshot.value;
      if (id.startsWith('batch:')) {
        const { isReplying, working, asking, parts } = (snapshot as BatchSnapshot).context;
        return [snapshot.value, isReplying, working, asking, parts];
      }
      if (id === 'session') {
        const { failures, transferId } = (snapshot as SessionSnapshot).context;
        return [snapshot.value, failures, transferId];
      }
      const { step, calls, asked, missed, retry } = (snapshot as SubagentSnapshot).context;
      return [snapshot.value, step, calls, asked, missed, retry?.step];
    }),
  ];
}
