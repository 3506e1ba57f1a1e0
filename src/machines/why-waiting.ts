// Determines why each part of a session is waiting. Reads only the states of its machines.
//
// Owns:     the causes, and the sentences that describe them.
// Does not: read a clock, or inspect words, models and transports.
//
// Invariants
//   WHY-WAITING-1. Each part that has not ended has exactly one cause for waiting, in every combination of states that
//       the machines can reach. The parts are the session and each question, delivery, call of the lead agent,
//       subagent, schedule, service and source.
//   WHY-WAITING-2. When a named cause happens, the wait either changes or ends. If the named causes happen one after
//       another, the wait ends.

import type { BatchSnapshot } from './batch-machine.ts';
import type { ClientCallSnapshot } from './client-call-machine.ts';
import type { EventSourceSnapshot } from './event-source-machine.ts';
import type { InteractionSnapshot } from './interaction-machine.ts';
import type { OutboxSnapshot } from './outbox-machine.ts';
import { isTold, quietUntil, type Waiting } from './outbox-setup.ts';
import type { QuestionSnapshot } from './question-machine.ts';
import type { ReachSnapshot } from './reach-machine.ts';
import type { ScheduleSnapshot } from './schedule-machine.ts';
import type { ServiceSnapshot } from './service-machine.ts';
import type { SessionSnapshot } from './session-machine.ts';
import type { SubagentSnapshot } from './subagent-machine.ts';
import { askOf, requestIdOf, sleepsUntil } from './subagent-setup.ts';
import { runOf, type ToolCallSnapshot } from './tool-call-machine.ts';
import { counted, duration, inTime, listed, ordinal } from './wait-words.ts';

/** A snapshot or its persisted form. */
type StateOf<S extends { readonly value: unknown; readonly context: unknown }> = Pick<
  S,
  'value' | 'context'
>;

/** Facts about a subagent's work that its machine does not contain. */
export interface WorkOf {
  /** The subagent that assigned the task; null if the lead agent or a program did. */
  readonly parentId: string | null;
  /** The call that assigned the task; null if there is none. */
  readonly callId: string | null;
  /** The third-party agent that does the work through a relay. @defaultValue null: a model does the work */
  readonly relay?: string | null;
  /** The engine that runs the subagent's model calls as jobs. @defaultValue null: the process makes the calls */
  readonly engine?: string | null;
  /** The tools that the step calls, and the engine that runs each of them as a job. @defaultValue not known */
  readonly tools?: ReadonlyMap<string, { readonly toolName: string; readonly engine?: string }>;
  /** The tools in the step that may or may not have run. @defaultValue none */
  readonly inDoubt?: readonly string[];
  /** The time at which the subagent's current activity started, in milliseconds since 1970. @defaultValue not known */
  readonly since?: number;
}

/** A service, with its machine, its sources' machines, and the subagent that is examining its event. */
export interface ServiceWork {
  /** Null if the service has ended, although its sources may still be running. */
  readonly state: StateOf<ServiceSnapshot> | null;
  /** The subagent that is examining the current event; null if no subagent is. */
  readonly worker: string | null;
  /** By name. Sources that have ended may be absent. */
  readonly sources: ReadonlyMap<string, StateOf<EventSourceSnapshot>>;
}

/** The states, at one moment, of the machines of one session or of a program's subagents. */
export interface WaitingState {
  /** The current time, in milliseconds since 1970. */
  readonly at: number;
  /** Null (like `interaction` and `outbox`) if a program runs the subagents in a process or on an engine. */
  readonly session: StateOf<SessionSnapshot> | null;
  /** The machine that gives the floor to one question at a time; null if `session` is null. */
  readonly interaction: StateOf<InteractionSnapshot> | null;
  /** The machine that queues the deliveries; null if `session` is null. */
  readonly outbox: StateOf<OutboxSnapshot> | null;
  /** By request id. Ended questions may be absent. */
  readonly questions: ReadonlyMap<string, StateOf<QuestionSnapshot>>;
  /** By id. Ended subagents may be absent. */
  readonly subagents: ReadonlyMap<string, StateOf<SubagentSnapshot>>;
  /** The lead agent's calls, by id. Ended calls may be absent. @defaultValue none is known */
  readonly calls?: ReadonlyMap<string, StateOf<ToolCallSnapshot>>;
  /** The calls that clients execute, by id. Ended calls may be absent. @defaultValue none */
  readonly clientCalls?: ReadonlyMap<string, StateOf<ClientCallSnapshot>>;
  /** By key. Ended schedules may be absent. @defaultValue none */
  readonly schedules?: ReadonlyMap<string, StateOf<ScheduleSnapshot>>;
  /** The machines that send deliveries over channels, by delivery. Ended machines may be absent. @defaultValue none */
  readonly ways?: ReadonlyMap<string, StateOf<ReachSnapshot>>;
  /** The batches of calls whose results are reported together, by batch id. @defaultValue none */
  readonly batches?: ReadonlyMap<string, StateOf<BatchSnapshot>>;
  /** By the id of the subagent. @defaultValue nothing is known */
  readonly work?: ReadonlyMap<string, WorkOf>;
  /** By name. Ended services may be absent. @defaultValue none is known */
  readonly services?: ReadonlyMap<string, ServiceWork>;
  /** The identities that may answer a question, by its request id. @defaultValue everyone may */
  readonly answerableBy?: ReadonlyMap<string, readonly string[]>;
  /** Whether the session is hibernated, so that no process is running it. @defaultValue false */
  readonly isAsleep?: boolean;
  /** The maximum number of the session's subagents that may run at the same time, if known. */
  readonly runSlots?: number;
  /** The lead agent's model calls that have failed since it last answered. @defaultValue none */
  readonly lead?: {
    readonly failed: number;
    /** The code of the last failure. */
    readonly code: string;
    /** The maximum number of calls. The next call is made at `retryAt`; null if no further call follows. */
    readonly attempts: number | null;
    readonly retryAt: number | null;
  };
  /** When the user started to speak, the model to work and the audio to play, and the last client left, if known. */
  readonly since?: Partial<Record<'user' | 'model' | 'playout' | 'client', number>>;
}

/** The event that ends a wait or leads to its next cause. */
export type WaitCause =
  /** A process loads the session, because something uses the session or one of its times is due. */
  | 'wake'
  /** The session or the service is started. */
  | 'start'
  /** The transport is connected. */
  | 'connection'
  /** At `until`, the connection, the source or the invocation for an event is retried. */
  | 'retry'
  /** Another connection attempt is requested after the voice provider has refused the connection. */
  | 'refusal'
  /** Another agent leads. */
  | 'transfer'
  /** The subagents of a closing session have stopped. */
  | 'end'
  /** A client is attached. */
  | 'client'
  /** The user stops speaking. */
  | 'user_silence'
  /** The user's words are known. */
  | 'user_words'
  /** The lead agent has finished speaking for now. */
  | 'model_silence'
  /** The lead agent's tool returns. */
  | 'lead_tool'
  /** The audio has left the speaker. */
  | 'playout'
  /** The user says something; nothing else is pending. */
  | 'user'
  /** The delivery or question `on`, and all others before it, are over. */
  | 'turn'
  /** The question receives the floor. */
  | 'floor'
  /** The pause ends at `until`. */
  | 'pause'
  /** The lead agent starts to deliver the item. */
  | 'telling'
  /** The user has heard the delivery. */
  | 'hearing'
  /** A client acknowledges the delivery, which has been spoken in full. */
  | 'acknowledgement'
  /** A client shows the delivery, and the user reads or dismisses it. */
  | 'screen'
  /** All attempts have failed. The delivery waits until the user says something or a client attaches. */
  | 'new_attempt'
  /** The user answers. */
  | 'answer'
  /** At `until`, the time that the user asked for has passed. */
  | 'reminder'
  /** The subagent is prepared. */
  | 'preparation'
  /** A run slot becomes free. `on`: a subagent that holds a slot, if all slots of the session are taken. */
  | 'run_slot'
  /** The subagent's model answers. */
  | 'model'
  /** The third-party agent continues. */
  | 'agent'
  /** A worker of the engine runs the step. */
  | 'job'
  /** One of the user's clients claims or executes the call `on`. */
  | 'client_call'
  /** The tools of the step have returned. */
  | 'tools'
  /** The children that the subagent is waiting for have ended. */
  | 'children'
  /** The agent that assigned the task answers. */
  | 'task_giver'
  /** The arguments of the call are checked. */
  | 'validation'
  /** The work for the call or the event is accepted or refused. */
  | 'admission'
  /** Ends the subagent that works on the call or the event. */
  | 'result'
  /** The other calls of the same request (such as `on`) end, because their results are reported together. */
  | 'siblings'
  /** The lead agent has answered the request, so no more calls follow for it. */
  | 'lead_reply'
  /** An event arrives from outside. */
  | 'event'
  /** At `until`, a schedule becomes due or a sleeping subagent wakes. */
  | 'time'
  /** A `reach` channel sends the delivery, or fails. */
  | 'channel'
  /** The source reports that it is running. */
  | 'source'
  /** The source has released its resources, or is abandoned at `until`. */
  | 'release';

/** Why something waits. */
export interface Wait {
  /** The kind of actor that is waiting. */
  readonly of:
    | 'session'
    | 'question'
    | 'delivery'
    | 'call'
    | 'subagent'
    | 'schedule'
    | 'service'
    | 'source';
  /** The part's id: a schedule's key, a service's name, or `service/source` for a source; empty for the session. */
  readonly id: string;
  /** The cause of the wait. */
  readonly cause: WaitCause;
  /** The id of the part that is being waited for; null if it has no id. */
  readonly on: string | null;
  /** The time at which the wait ends on its own, in milliseconds since 1970; null if never or unknown. */
  readonly until: number | null;
  /** The identities that may answer; null if everyone may answer or no answer is expected. */
  readonly by: readonly string[] | null;
  /** One English sentence, without any words from users or models. */
  readonly sentence: string;
  /** The reason why that part is itself waiting. */
  readonly because: Wait | null;
}

/** A wait, without the id of the waiting part. */
type Why = Pick<Wait, 'cause' | 'sentence'> &
  Partial<Pick<Wait, 'on' | 'until' | 'by' | 'because'>>;

type OfSession = WaitingState & {
  readonly [Part in 'session' | 'interaction' | 'outbox']: NonNullable<WaitingState[Part]>;
};

/**
 * Returns why the session, its questions, its deliveries, the lead agent's calls, the subagents, the schedules, the
 * services and their sources are waiting. Each part that has not ended has one wait, in this order. The function is
 * pure: the same states always give the same waits.
 */
export function whyWaiting(state: WaitingState): readonly Wait[] {
  if (!isOfSession(state)) return [...subagentWaits(state, new Map()).values()];
  // The session has ended, and so have all its waits.
  if (state.session.value.connection === 'closed') return [];
  const deliveries = deliveryWaits(state);
  const questions = questionWaits(state, deliveries);
  const subagents = subagentWaits(state, questions);
  const calls = new Map(workingCalls(state, subagents));
  // Calls that are still working delay these results. A call whose result is delayed has the same cause as the result.
  for (const held of heldBack(state, deliveries, calls, subagents)) deliveries.set(held.id, held);
  for (const told of settledCalls(state, deliveries)) calls.set(told.id, told);
  return [
    wait('session', '', sessionWhy(state)),
    ...questions.values(),
    ...deliveries.values(),
    ...calls.values(),
    ...subagents.values(),
    ...scheduleWaits(state),
    ...serviceWaits(state, subagents),
  ];
}

const isOfSession = (state: WaitingState): state is OfSession =>
  state.session !== null && state.interaction !== null && state.outbox !== null;

function wait(of: Wait['of'], id: string, why: Why): Wait {
  return { of, id, on: null, until: null, by: null, because: null, ...why };
}

/** Returns a copy of this wait for another part. */
function sameAs({ cause, on, until, by, sentence, because }: Wait): Why {
  return { cause, on, until, by, sentence, because };
}

function sessionWhy(state: OfSession): Why {
  const { value, context } = state.session;
  if (value.connection === 'closing' && state.isAsleep !== true)
    return {
      cause: 'end',
      until: context.closeBy,
      sentence: `closing: its subagents are being stopped, and are killed ${inTime(state, context.closeBy)}`,
    };
  return (
    gateWhy(state) ??
    (value.model === 'waiting'
      ? {
          cause: 'lead_tool',
          on:
            [...(state.calls ?? [])].find(([, call]) => runOf(call.value) === 'awaited')?.[0] ??
            null,
          sentence: "a tool of the lead agent's turn has not answered",
        }
      : { cause: 'user', sentence: quietSentence(state) })
  );
}

function quietSentence({ lead }: OfSession): string {
  const next = 'it is for the user to say something';
  if (!lead) return `all is quiet: ${next}`;
  const times = lead.failed > 1 ? ` ${lead.failed} times` : '';
  return `the lead agent's model call failed${times} (${lead.code}), and is not made again: ${next}`;
}

/** Returns what the lead agent is waiting for during its turn. */
function leadWhy({ at, lead }: OfSession, forHow: string): Why {
  const cause = 'model_silence';
  if (!lead?.attempts || lead.retryAt === null)
    return { cause, sentence: `gate closed: the lead agent has its turn${forHow}` };
  const { failed, attempts, retryAt, code } = lead;
  const next = `attempt ${failed + 1} of ${attempts}`;
  if (retryAt <= at)
    return {
      cause,
      sentence: `gate closed: the lead agent has its turn${forHow}; ${next}, after its model call failed (${code})`,
    };
  const sentence = `gate closed: the lead agent's model call failed (${code}): ${next} ${inTime({ at }, retryAt)}`;
  return { cause, until: retryAt, sentence };
}

/** Returns why the outbox may not speak; null if it may. The reasons have the same order as in `gateIsOpen`. */
function gateWhy(state: OfSession): Why | null {
  const { session, since = {} } = state;
  const { connection, client, user, model, playout } = session.value;
  const { connectBy, reconnectAt, transferBy, settleBy, failures, maxReconnects } = session.context;
  const forHow = (from: number | undefined): string =>
    from === undefined ? '' : ` for ${duration(state.at - from)}`;
  if (state.isAsleep === true)
    return {
      cause: 'wake',
      sentence: 'asleep: no process has the session until it is used, or one of its times has come',
    };
  if (connection === 'created') return { cause: 'start', sentence: 'the session is not started' };
  if (connection === 'connecting')
    return {
      cause: 'connection',
      until: connectBy,
      sentence: `connecting: given up ${inTime(state, connectBy)}`,
    };
  if (connection === 'reconnecting')
    return {
      cause: 'retry',
      until: reconnectAt,
      sentence: `disconnected: tried again ${inTime(state, reconnectAt)} (${failures} of ${maxReconnects})`,
    };
  const reason = session.context.error ? ` (${session.context.error.code})` : '';
  if (connection === 'resting')
    return {
      cause: 'retry',
      until: reconnectAt,
      sentence: `no connection can be had${reason}: tried again ${inTime(state, reconnectAt)}`,
    };
  if (connection === 'refused')
    return {
      cause: 'refusal',
      sentence: `the connection is refused${reason}: tried again when a client attaches, the user types, or the app says so`,
    };
  if (connection === 'transferring')
    return {
      cause: 'transfer',
      until: transferBy,
      sentence: `another agent takes the lead: given up ${inTime(state, transferBy)}`,
    };
  if (connection === 'closing') return { cause: 'end', sentence: 'the session closes' };
  if (client !== 'attached') {
    const end =
      client.detached === 'counting'
        ? `; questions are withdrawn ${inTime(state, state.session.context.detachedUntil)}`
        : '';
    return { cause: 'client', sentence: `parked: nobody is attached${forHow(since.client)}${end}` };
  }
  if (user === 'speaking')
    return {
      cause: 'user_silence',
      sentence:
        since.user === undefined
          ? 'gate closed: the user speaks'
          : `gate closed: the user has been speaking${forHow(since.user)}`,
    };
  if (user === 'settling')
    return {
      cause: 'user_words',
      until: settleBy,
      sentence: "gate closed: the user's last words are not known yet",
    };
  if (model === 'generating') return leadWhy(state, forHow(since.model));
  if (playout === 'playing')
    return {
      cause: 'playout',
      sentence: `gate closed: the speaker is still playing${forHow(since.playout)}`,
    };
  return null;
}

function deliveryWaits(state: OfSession): Map<string, Wait> {
  const { value, context } = state.outbox;
  const { current, pending } = context;
  const waits = new Map<string, Wait>();
  const put = (id: string, why: Why): Wait => {
    const made = wait('delivery', id, withWay(state, id, why));
    waits.set(id, made);
    return made;
  };
  const isPlaying = isIn(value.slot, 'speaking') && value.slot.speaking === 'playing';
  let first =
    current &&
    put(
      current.deliveryId,
      isPlaying
        ? { cause: 'hearing', until: context.dueAt, sentence: 'being said' }
        : {
            cause: 'telling',
            until: context.dueAt,
            sentence: `offered to the lead agent, attempt ${current.attempts} of ${context.maxAttempts}: it has not begun to say it`,
          },
    );
  let place = first ? 1 : 0;
  for (const item of pending) {
    const { deliveryId: id } = item;
    if (item.resting) put(id, restingWhy(state, item));
    else if (item.read) put(id, READ);
    else if (isSending(state.ways?.get(id)?.value)) put(id, firstWhy(state));
    else {
      place += 1;
      if (first) put(id, behind(place, first.id, first));
      else first = put(id, firstWhy(state));
    }
  }
  return waits;
}

/** Returns why a delivery is waiting, including the channel steps. */
function withWay({ at, ways }: OfSession, id: string, why: Why): Why {
  const {
    value,
    context: { by, dueAt },
  } = ways?.get(id) ?? NO_WAY;
  if (isSending(value)) return { cause: 'channel', sentence: `being sent by ${by}` };
  if (value !== 'waiting') return why;
  return { ...why, sentence: `${why.sentence}; sent by ${by} ${inTime({ at }, dueAt)}` };
}

const NO_WAY = { value: 'over', context: { by: '', dueAt: 0 } } as const;

const isSending = (value: ReachSnapshot['value'] | undefined): boolean =>
  typeof value === 'object' && value.taken === 'sending';

type Waits = ReadonlyMap<string, Wait>;

/** Yields why results are waiting that are reported together with others. */
function* heldBack(
  state: OfSession,
  deliveries: Waits,
  calls: Waits,
  subagents: Waits,
): Generator<Wait, void> {
  for (const [batchId, batch] of state.batches ?? []) {
    const { working, asking, parts, dueAt: until } = batch.context;
    const told = batch.value === 'telling' ? deliveries.get(batchId) : undefined;
    const late = working.filter((id) => !asking.includes(id));
    const [on = null] = late;
    const because = (on === null ? null : (calls.get(on) ?? subagents.get(on))) ?? null;
    const others = batch.value === 'closing' ? 'are being stopped' : 'still work';
    const why: Why = told
      ? { ...sameAs(told), on: told.on ?? batchId }
      : on === null
        ? {
            cause: 'lead_reply',
            until,
            sentence: `told with others: the lead agent may make more calls for the request; at the latest ${inTime(state, until)}`,
          }
        : {
            cause: 'siblings',
            on,
            until,
            sentence: `told with others, which ${others}: ${listed(late, 'and')}; at the latest ${inTime(state, until)}`,
            because,
          };
    for (const id of parts) yield wait('delivery', id, why);
  }
}

/** Returns why the next delivery is not being spoken. */
function firstWhy(state: OfSession): Why {
  const gate = gateWhy(state);
  if (gate) return gate;
  const { context } = state.outbox;
  const until = quietUntil(context);
  return {
    cause: 'pause',
    until,
    sentence: `waits for a pause: quiet for ${duration(state.at - context.quietSince)} of ${duration(until - context.quietSince)}`,
  };
}

function restingWhy({ outbox }: OfSession, item: Waiting): Why {
  if (isTold(item))
    return {
      cause: 'acknowledgement',
      sentence: 'was told in full: no client has acknowledged it',
    };
  if (item.rests === 'always')
    return { cause: 'screen', sentence: 'a card that is not said: no client has shown it' };
  const times = counted(outbox.context.maxAttempts, 'attempt');
  return {
    cause: 'new_attempt',
    sentence: `could not be said in ${times}: rests until the user speaks or a client comes`,
  };
}

const READ: Why = {
  cause: 'telling',
  sentence: 'the lead agent has read it: offered if the reply does not tell it',
};

function behind(place: number, on: string, because: Wait | null): Why {
  const sentence = `${ordinal(place)} in line behind ${on}`;
  return { cause: 'turn', on, sentence, because };
}

function questionWaits(
  state: OfSession,
  deliveries: ReadonlyMap<string, Wait>,
): ReadonlyMap<string, Wait> {
  const waits = new Map<string, Wait>();
  const { owner, queue } = state.interaction.context;
  const order = new Map(queue.map((id, index) => [id, index]));
  const put = (id: string, why: Why): void =>
    void waits.set(id, wait('question', id, withWay(state, id, why)));
  const inLine: string[] = [];
  for (const [id, { value, context }] of state.questions) {
    if (value === 'queued') inLine.push(id);
    else if (value === 'presenting') put(id, presentingWhy(deliveries.get(id)));
    else if (value === 'open') put(id, openWhy(state, id, context.dueAt));
    else if (value === 'held')
      put(id, {
        cause: 'reminder',
        until: context.remindAt,
        sentence: `the user asked for time: it is asked again ${inTime(state, context.remindAt)}`,
      });
    else if (value === 'reading')
      put(id, {
        cause: 'user_words',
        until: context.readBy ?? 0,
        sentence: `a model reads the user's words: it is asked again ${inTime(state, context.readBy ?? 0)}`,
      });
    else if (value === 'parked')
      put(id, { cause: 'client', sentence: 'parked: nobody is attached' });
  }
  const head = owner === null ? null : (waits.get(owner) ?? null);
  for (const id of inLine) {
    const place = order.get(id);
    if (owner === null || owner === id || place === undefined)
      put(id, { cause: 'floor', sentence: 'its turn to ask has come, and begins' });
    else put(id, behind(place + 2, owner, head));
  }
  return waits;
}

function presentingWhy(said: Wait | undefined): Why {
  return said ? sameAs(said) : { cause: 'screen', sentence: 'not said: no client has shown it' };
}

function openWhy(state: OfSession, id: string, until: number): Why {
  const by = state.answerableBy?.get(id) ?? null;
  const who =
    by === null
      ? 'the user has not answered'
      : `only ${listed(by, 'or')} may answer, and nobody has`;
  const sentence = `${who}: it expires ${inTime(state, until)}`;
  return { cause: 'answer', until, by, sentence };
}

const AT_CLIENT: Readonly<Partial<Record<ClientCallSnapshot['value'], string>>> = {
  waiting: 'waits for a page of the user that takes it: given up',
  claimed: 'a page of the user carries it out: given up',
  left: 'the page that carries it out has lost its connection: in doubt',
};

/** Returns why one of these calls is waiting for one of the user's clients; null if none of them is waiting. */
function clientCallWhy(
  state: WaitingState,
  subagentId: string | null,
  callIds: readonly string[],
): Why | null {
  for (const [on, { value, context }] of state.clientCalls ?? []) {
    if (context.subagentId !== subagentId || !callIds.includes(context.callId)) continue;
    const why = AT_CLIENT[value];
    const sentence = `${why} ${inTime(state, context.dueAt)}`;
    if (why) return { cause: 'client_call', on, until: context.dueAt, sentence };
  }
  return null;
}

function* scheduleWaits(state: OfSession): Generator<Wait, void> {
  for (const [key, { value, context }] of state.schedules ?? []) {
    const { dueAt: until, isTask } = context;
    const sentence = `${isTask ? 'its task starts' : 'its words are told'} ${inTime(state, until)}`;
    if (value === 'waiting') yield wait('schedule', key, { cause: 'time', until, sentence });
    else yield wait('schedule', key, { cause: 'admission', sentence: 'its task is being started' });
  }
}

/** Yields why the lead agent's calls without a result are waiting. */
function* workingCalls(
  state: OfSession,
  subagents: Waits,
): Generator<readonly [id: string, Wait], void> {
  const workers = new Map<string | null, string>();
  for (const [id, { parentId, callId }] of state.work ?? [])
    if (parentId === null) workers.set(callId, id);
  for (const [id, { value, context }] of state.calls ?? [])
    if (value === 'received')
      yield [
        id,
        wait('call', id, { cause: 'validation', sentence: 'its arguments are being checked' }),
      ];
    else if (runOf(value) !== null) {
      const until = context.dueAt;
      const atClient = clientCallWhy(state, null, [id]);
      if (atClient) {
        yield [id, wait('call', id, atClient)];
        continue;
      }
      const where = runOf(value) === 'detached' ? ' in the background' : '';
      const sentence = `its tool works${where}: given up ${inTime(state, until)}`;
      yield [id, wait('call', id, { cause: 'lead_tool', on: id, until, sentence })];
    } else if (value === 'acknowledged')
      yield [
        id,
        wait('call', id, { cause: 'admission', sentence: 'a subagent is being asked for' }),
      ];
    else if (value === 'delegated') {
      const on = workers.get(id) ?? null;
      const because = (on === null ? null : subagents.get(on)) ?? null;
      const sentence = because ? `${on} works on it: ${because.sentence}` : 'its work goes on';
      yield [id, wait('call', id, { cause: 'result', on, sentence, because })];
    }
}

/** Yields why calls with a result are waiting, which is until the user has received the result. */
function* settledCalls({ calls = new Map() }: OfSession, deliveries: Waits): Generator<Wait, void> {
  for (const [id, { value }] of calls) {
    if (value !== 'settled') continue;
    const told = deliveries.get(id);
    yield wait(
      'call',
      id,
      told
        ? { ...sameAs(told), on: told.on ?? id }
        : { cause: 'telling', sentence: 'its result is on its way to the user' },
    );
  }
}

function subagentWaits(
  state: WaitingState,
  questions: ReadonlyMap<string, Wait>,
): ReadonlyMap<string, Wait> {
  const waits = new Map<string, Wait>();
  const slot = slotWhy(state);
  const isUnderWay = new Set<string>();
  const children = new Map<string, string>();
  for (const [id, { parentId, callId }] of state.work ?? [])
    if (parentId !== null && callId !== null) children.set(`${parentId} ${callId}`, id);

  /** Returns the wait of a subagent; a parent's wait contains its child's wait. */
  function waitOf(id: string): Wait | null {
    const known = waits.get(id);
    const subagent = state.subagents.get(id);
    if (known || !subagent || isUnderWay.has(id)) return known ?? null;
    isUnderWay.add(id);
    const why = whyOf(id, subagent);
    isUnderWay.delete(id);
    const made = why && wait('subagent', id, why);
    if (made) waits.set(id, made);
    return made;
  }

  function whyOf(id: string, { value, context }: StateOf<SubagentSnapshot>): Why | null {
    const work = state.work?.get(id);
    const { calls } = context;
    if (value === 'ready') return slot;
    if (value === 'spawning')
      return { cause: 'preparation', until: context.dueAt, sentence: 'it is being prepared' };
    if (value === 'waiting_for_children') {
      const delegations = unsettled(calls, 'delegation').map(({ callId }) => callId);
      const atClient = clientCallWhy(state, id, delegations);
      if (atClient) return atClient;
      const subjects = delegations.map((callId) => children.get(`${id} ${callId}`) ?? callId);
      const on = subjects[0] ?? null;
      const because = on === null ? null : waitOf(on);
      const why = because ? `; ${because.id}: ${because.sentence}` : '';
      return {
        cause: 'children',
        on,
        sentence: `waits for other subagents: ${listed(subjects, 'and')}${why}`,
        because,
      };
    }
    if (value === 'sleeping') {
      const until = sleepsUntil(calls);
      return { cause: 'time', until, sentence: `sleeps: it wakes ${inTime(state, until)}` };
    }
    if (isIn(value, 'waiting_for_input')) {
      if (askOf(calls)?.kind === 'input')
        return {
          cause: 'task_giver',
          on: work?.parentId ?? null,
          sentence: 'asked the agent that gave the task: no answer yet',
        };
      const on = requestIdOf(context.id, context.asked);
      const because = questions.get(on) ?? null;
      const relay = work?.relay ?? null;
      const who = relay === null ? 'asked' : `${relay} asked`;
      if (because)
        return {
          cause: 'answer',
          on,
          until: because.until,
          by: because.by,
          sentence: `${who} ${on}: ${because.sentence}`,
          because,
        };
      const by = state.answerableBy?.get(on) ?? null;
      const isOfProgram = state.session === null;
      const why = isOfProgram ? 'the program that it works for has not answered' : 'no answer yet';
      return { cause: 'answer', on, by, sentence: `${who} ${on}: ${why}` };
    }
    return isIn(value, 'running') ? runningWhy(state.at, value.running, context, work) : null;
  }

  for (const id of state.subagents.keys()) waitOf(id);
  return waits;
}

/** Yields why the session's services are waiting, each followed by its sources. */
function* serviceWaits(state: OfSession, subagents: Waits): Generator<Wait, void> {
  const asleep = state.isAsleep === true ? sessionWhy(state) : null;
  for (const [name, { state: of, worker, sources }] of state.services ?? []) {
    const ofSources = [...sources].map(([source, each]) =>
      wait('source', `${name}/${source}`, asleep ?? sourceWhy(state, each)),
    );
    // Without a running source, no event can arrive.
    const stuck = ofSources.some(({ cause }) => cause === 'event') ? null : (ofSources[0] ?? null);
    const looked = worker === null ? null : (subagents.get(worker) ?? null);
    if (of) yield wait('service', name, asleep ?? serviceWhy(state, of, worker, looked, stuck));
    yield* ofSources;
  }
}

function serviceWhy(
  state: OfSession,
  { value, context }: StateOf<ServiceSnapshot>,
  worker: string | null,
  because: Wait | null,
  stuck: Wait | null,
): Why {
  const { current, waiting, retryAt: until, maxInvocations } = context;
  if (value === 'created') return { cause: 'start', sentence: 'the service is not started' };
  const inLine = (after: number): string =>
    waiting.length > after ? `; ${counted(waiting.length - after, 'event')} in line behind it` : '';
  if (isIn(value, 'working') && value.working === 'waiting') {
    const [first] = waiting;
    const times = `refused ${first?.refusals} of ${maxInvocations} times`;
    const sentence = `no place or no subagent for ${first?.eventId}: tried again ${inTime(state, until)} (${times})${inLine(1)}`;
    return { cause: 'retry', on: first?.eventId ?? null, until, sentence };
  }
  if (current === null)
    return stuck
      ? {
          cause: 'event',
          on: stuck.id,
          sentence: `no event to look at, and no source of it runs; ${stuck.id}: ${stuck.sentence}`,
          because: stuck,
        }
      : { cause: 'event', sentence: 'no event to look at: it waits for one' };
  const { eventId } = current;
  if (worker === null)
    return {
      cause: 'admission',
      on: eventId,
      sentence: `${eventId}: a place for its message and a subagent are being asked for${inLine(0)}`,
    };
  const why = because ? `: ${because.sentence}` : '';
  const sentence = `${worker} looks at ${eventId}${why}${inLine(0)}`;
  return { cause: 'result', on: worker, sentence, because };
}

function sourceWhy(
  state: OfSession,
  { value, context: { failures, restartAt, releaseBy } }: StateOf<EventSourceSnapshot>,
): Why {
  if (value === 'created') return { cause: 'start', sentence: 'its service is not started' };
  const times = failures > 0 ? ` (${counted(failures, 'failure')} in a row)` : '';
  if (value === 'backing_off')
    return {
      cause: 'retry',
      until: restartAt,
      sentence: `it failed: begun again ${inTime(state, restartAt)}${times}`,
    };
  if (isIn(value, 'live'))
    return value.live === 'starting'
      ? { cause: 'source', sentence: `it begins, and has not said that it runs${times}` }
      : { cause: 'event', sentence: 'it runs: no event has come since' };
  return {
    cause: 'release',
    until: releaseBy,
    sentence: `it is being stopped, and is given up ${inTime(state, releaseBy)}`,
  };
}

/** A subagent holds a run slot exactly while it is running. */
function slotWhy({ at, subagents, runSlots, work }: WaitingState): Why {
  const cause = 'run_slot';
  let held = 0;
  let holder: Wait | null = null;
  for (const [id, { value, context }] of subagents) {
    if (!isIn(value, 'running')) continue;
    held += 1;
    holder ??= wait('subagent', id, runningWhy(at, value.running, context, work?.get(id)));
  }
  if (runSlots === undefined) return { cause, sentence: 'waits for a run slot' };
  if (holder && held >= runSlots)
    return {
      cause,
      on: holder.id,
      sentence: `no run slot: ${held} of ${runSlots}`,
      because: holder,
    };
  return {
    cause,
    sentence: `waits for a run slot of the process: the session holds ${held} of ${runSlots}`,
  };
}

/** Returns why a subagent that has a run slot is waiting. */
function runningWhy(
  at: number,
  part: string,
  context: SubagentContext,
  work: WorkOf | undefined,
): Why {
  const { step, maxSteps, calls, isFinal, retry, dueAt: until } = context;
  const { relay = null, engine = null, tools = new Map(), inDoubt = [], since } = work ?? {};
  const forHow = since === undefined || since === at ? '' : ` for ${duration(at - since)}`;
  const doubts =
    inDoubt.length > 0 ? `; nobody knows whether these calls were done: ${inDoubt.join(', ')}` : '';
  if (part !== 'acting') {
    const last = isFinal ? '; its budget is used up: it hands in what it has' : '';
    const about = `${last}${doubts}`;
    const failed = retry?.step === step ? retry : null;
    const times = failed ? `${failed.failed} of ${failed.attempts} attempts failed` : '';
    const pause =
      failed && failed.retryAt > at
        ? `${times} (${failed.code}): called again ${inTime({ at }, failed.retryAt)}`
        : null;
    const works = `${forHow}${failed ? `; ${times} (${failed.code})` : ''}`;
    if (relay !== null)
      return {
        cause: 'agent',
        until,
        sentence: `step ${step}: ${relay} ${pause ?? `works${works}`}${about}`,
      };
    const model = pause === null ? `its model works${works}` : `its model: ${pause}`;
    const job = `a worker of ${engine} calls its model${pause === null ? works : `: ${pause}`}`;
    const sentence = `step ${step} of ${maxSteps}: ${engine === null ? model : job}${about}`;
    return { cause: engine === null ? 'model' : 'job', until, sentence };
  }
  const open = unsettled(calls, 'tool');
  const on = open[0]?.callId ?? null;
  const names = open.map(({ callId }) => tools.get(callId)?.toolName ?? callId);
  const elsewhere = on === null ? undefined : tools.get(on)?.engine;
  if (relay !== null)
    return {
      cause: 'agent',
      on,
      until,
      sentence: `step ${step}: ${relay} runs a tool of its own${forHow}`,
    };
  const sentence = `step ${step} of ${maxSteps}: ${
    elsewhere === undefined
      ? `its tools work${forHow}`
      : `a worker of ${elsewhere} runs its tools${forHow}`
  }: ${names.join(', ')}`;
  return { cause: elsewhere === undefined ? 'tools' : 'job', on, until, sentence };
}

type SubagentContext = SubagentSnapshot['context'];

const unsettled = (calls: SubagentContext['calls'], kind: string): SubagentContext['calls'] =>
  calls.filter((call) => !call.settled && call.kind === kind);

/** Returns whether the value is a compound state with this name. */
function isIn<Value, Name extends string>(
  value: Value,
  name: Name,
): value is Extract<Value, { readonly [Key in Name]?: unknown }> {
  return typeof value === 'object' && value !== null && name in value;
}
