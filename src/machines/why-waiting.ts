// Why something of a session waits: a function of the states of its machines, and of nothing else.
//
// Owns:     the causes, and their sentences.
// Does not: read a clock, or know words, models and transports.
//
// Invariants
//   WHY-WAITING-1. The session, each question, each delivery and each subagent that has not ended waits for
//       exactly one cause, in every state that the machines can reach together.
//   WHY-WAITING-2. The cause is true: when that which it names happens, the wait becomes another one or ends; and
//       who makes the named causes true, one after the other, arrives at the end of the wait.

import type { InteractionSnapshot } from './interaction-machine.ts';
import type { OutboxSnapshot } from './outbox-machine.ts';
import { isTold, type Waiting } from './outbox-setup.ts';
import type { QuestionSnapshot } from './question-machine.ts';
import type { SessionSnapshot } from './session-machine.ts';
import type { SubagentSnapshot } from './subagent-machine.ts';
import { askOf, idsOf, requestIdOf } from './subagent-setup.ts';

/** A snapshot, or its persisted form. */
type StateOf<S extends { readonly value: unknown; readonly context: unknown }> = Pick<
  S,
  'value' | 'context'
>;

/** The states of the machines of one session at one moment. */
export interface WaitingState {
  /** Now, in milliseconds since 1970. */
  readonly at: number;
  readonly session: StateOf<SessionSnapshot>;
  readonly interaction: StateOf<InteractionSnapshot>;
  readonly outbox: StateOf<OutboxSnapshot>;
  /** By request id; those that are over may be absent. */
  readonly questions: ReadonlyMap<string, StateOf<QuestionSnapshot>>;
  /** By id; those that are over may be absent. */
  readonly subagents: ReadonlyMap<string, StateOf<SubagentSnapshot>>;
  /** The number of subagents of the session that may run at once, if it is known. */
  readonly runSlots?: number;
  /** Since when the user speaks, the model works, the sound plays and nobody is attached, if that is known. */
  readonly since?: Partial<Record<'user' | 'model' | 'playout' | 'client', number>>;
}

/** That which must happen before the wait goes on. */
export type WaitCause =
  /** The session is started. */
  | 'start'
  /** The transport is connected. */
  | 'connection'
  /** The connection is tried again, at `until`. */
  | 'retry'
  /** The other agent leads. */
  | 'transfer'
  /** The subagents of a session that closes have stopped. */
  | 'end'
  /** A client is attached. */
  | 'client'
  /** The user stops speaking. */
  | 'user_silence'
  /** The words of the user are known. */
  | 'user_words'
  /** The lead agent has said all it has to say now. */
  | 'model_silence'
  /** The lead agent's tool answers. */
  | 'lead_tool'
  /** The sound has left the speaker. */
  | 'playout'
  /** The user says something: nothing else is to be done. */
  | 'user'
  /** That which is named by `on` is over, and the others before it. */
  | 'turn'
  /** The question gets the user's words. */
  | 'floor'
  /** It has been quiet for long enough, at `until`. */
  | 'pause'
  /** The lead agent begins to say it. */
  | 'telling'
  /** The user has heard it. */
  | 'hearing'
  /** A client acknowledges it: it was told. */
  | 'acknowledgement'
  /** A client shows it, and the user reads or dismisses it. */
  | 'screen'
  /** The user says something, or a client comes: all attempts have failed. */
  | 'new_attempt'
  /** The user answers. */
  | 'answer'
  /** The time for which the user has asked is over, at `until`. */
  | 'reminder'
  /** The subagent is prepared. */
  | 'preparation'
  /** A run slot is free: `on` holds one, as long as the session has none left. */
  | 'run_slot'
  /** The subagent's model answers. */
  | 'model'
  /** The tools of the step have answered. */
  | 'tools'
  /** The subagents that it waits for have ended. */
  | 'children'
  /** The agent that gave the task answers. */
  | 'task_giver';

/** Why something waits. */
export interface Wait {
  readonly of: 'session' | 'question' | 'delivery' | 'subagent';
  /** The request id, the delivery id or the subagent's id; empty for the session. */
  readonly id: string;
  readonly cause: WaitCause;
  /** The id of that which it waits for, if it has one. */
  readonly on: string | null;
  /** When the wait goes on by itself, in milliseconds since 1970; null: it does not, or that is not known. */
  readonly until: number | null;
  /** One sentence in English, without words of users or models. */
  readonly sentence: string;
  /** Why that which it waits for waits itself. */
  readonly because: Wait | null;
}

/** A wait without its subject. */
type Why = Pick<Wait, 'cause' | 'sentence'> & Partial<Pick<Wait, 'on' | 'until' | 'because'>>;

/**
 * Returns why the session, its questions, its deliveries and its subagents wait: one wait for each that has not
 * ended, in this order. A pure function: the same states give the same waits.
 */
export function whyWaiting(state: WaitingState): readonly Wait[] {
  // The session is over, and with it all that waited.
  if (state.session.value.connection === 'closed') return [];
  const deliveries = new Map(
    deliveryWhys(state).map(([id, why]) => [id, wait('delivery', id, why)]),
  );
  const questions = questionWaits(state, deliveries);
  return [
    wait('session', '', sessionWhy(state)),
    ...questions.values(),
    ...deliveries.values(),
    ...subagentWaits(state, questions),
  ];
}

function wait(of: Wait['of'], id: string, why: Why): Wait {
  return { of, id, on: null, until: null, because: null, ...why };
}

function sessionWhy(state: WaitingState): Why {
  const { value, context } = state.session;
  if (value.connection === 'closing')
    return {
      cause: 'end',
      until: context.closeBy,
      sentence: `closing: its subagents are being stopped, and are killed ${inTime(state, context.closeBy)}`,
    };
  return (
    gateWhy(state) ??
    (value.model === 'waiting'
      ? { cause: 'lead_tool', sentence: "a tool of the lead agent's turn has not answered" }
      : { cause: 'user', sentence: 'all is quiet: it is for the user to say something' })
  );
}

/** Returns why the outbox may say nothing; null: it may. In the order in which `gateIsOpen` would have it. */
function gateWhy(state: WaitingState): Why | null {
  const { session, since = {} } = state;
  const { connection, client, user, model, playout } = session.value;
  const { connectBy, reconnectAt, transferBy, settleBy, failures, maxReconnects } = session.context;
  const forHow = (from: number | undefined): string =>
    from === undefined ? '' : ` for ${duration(state.at - from)}`;
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
  if (connection === 'transferring')
    return {
      cause: 'transfer',
      until: transferBy,
      sentence: `another agent takes the lead: given up ${inTime(state, transferBy)}`,
    };
  if (connection === 'closing') return { cause: 'end', sentence: 'the session closes' };
  if (client !== 'attached')
    return { cause: 'client', sentence: `parked: nobody is attached${forHow(since.client)}` };
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
  if (model === 'generating')
    return {
      cause: 'model_silence',
      sentence: `gate closed: the lead agent has its turn${forHow(since.model)}`,
    };
  if (playout === 'playing')
    return {
      cause: 'playout',
      sentence: `gate closed: the speaker is still playing${forHow(since.playout)}`,
    };
  return null;
}

type Named = readonly [id: string, why: Why];

function deliveryWhys(state: WaitingState): readonly Named[] {
  const { value, context } = state.outbox;
  const { current, pending } = context;
  const isPlaying = isIn(value.slot, 'speaking') && value.slot.speaking === 'playing';
  const head: Named | null = current && [
    current.deliveryId,
    isPlaying
      ? { cause: 'hearing', until: context.dueAt, sentence: 'being said' }
      : {
          cause: 'telling',
          until: context.dueAt,
          sentence: `offered to the lead agent, attempt ${current.attempts} of ${context.maxAttempts}: it has not begun to say it`,
        },
  ];
  let place = head ? 1 : 0;
  let first = head;
  const waiting = pending.map((item): Named => {
    const { deliveryId: id } = item;
    if (item.resting) return [id, restingWhy(state, item)];
    place += 1;
    if (first) return [id, behind(place, first[0], wait('delivery', ...first))];
    first = [id, firstWhy(state)];
    return first;
  });
  return head ? [head, ...waiting] : waiting;
}

/** Why the next delivery is not said. */
function firstWhy(state: WaitingState): Why {
  const gate = gateWhy(state);
  if (gate) return gate;
  const { context } = state.outbox;
  const until = context.quietSince + context.quietMs;
  return {
    cause: 'pause',
    until,
    sentence: `waits for a pause: quiet for ${duration(state.at - context.quietSince)} of ${duration(context.quietMs)}`,
  };
}

function restingWhy({ outbox }: WaitingState, item: Waiting): Why {
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

function behind(place: number, on: string, because: Wait | null): Why {
  const sentence = `${ordinal(place)} in line behind ${on}`;
  return { cause: 'turn', on, sentence, because };
}

function questionWaits(
  state: WaitingState,
  deliveries: ReadonlyMap<string, Wait>,
): ReadonlyMap<string, Wait> {
  const waits = new Map<string, Wait>();
  const { owner, queue } = state.interaction.context;
  const order = new Map(queue.map((id, index) => [id, index]));
  const put = (id: string, why: Why): void => void waits.set(id, wait('question', id, why));
  const inLine: string[] = [];
  for (const [id, { value, context }] of state.questions) {
    if (value === 'queued') inLine.push(id);
    else if (value === 'presenting') put(id, presentingWhy(deliveries.get(id)));
    else if (value === 'open')
      put(id, {
        cause: 'answer',
        until: context.dueAt,
        sentence: `the user has not answered: it expires ${inTime(state, context.dueAt)}`,
      });
    else if (value === 'held')
      put(id, {
        cause: 'reminder',
        until: context.remindAt,
        sentence: `the user asked for time: it is asked again ${inTime(state, context.remindAt)}`,
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
  if (!said) return { cause: 'screen', sentence: 'not said: no client has shown it' };
  const { cause, on, until, sentence, because } = said;
  return { cause, on, until, sentence, because };
}

function* subagentWaits(
  state: WaitingState,
  questions: ReadonlyMap<string, Wait>,
): Generator<Wait, void> {
  const slot = slotWhy(state);
  for (const [id, subagent] of state.subagents) {
    const why = subagent.value === 'ready' ? slot : subagentWhy(subagent, questions);
    if (why) yield wait('subagent', id, why);
  }
}

/** A subagent holds a run slot exactly while it is running. */
function slotWhy({ subagents, runSlots }: WaitingState): Why {
  const cause = 'run_slot';
  let held = 0;
  let holder: Wait | null = null;
  for (const [id, { value, context }] of subagents) {
    if (!isIn(value, 'running')) continue;
    held += 1;
    holder ??= wait('subagent', id, runningWhy(value.running, context));
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

/** Why a subagent that has a run slot waits. */
function runningWhy(part: string, { step, maxSteps, calls, dueAt: until }: SubagentContext): Why {
  if (part !== 'acting')
    return { cause: 'model', until, sentence: `step ${step} of ${maxSteps}: its model works` };
  const tools = unsettled(calls, 'tool');
  const sentence = `step ${step} of ${maxSteps}: its tools work: ${tools.join(', ')}`;
  return { cause: 'tools', on: tools[0] ?? null, until, sentence };
}

type SubagentContext = SubagentSnapshot['context'];

const unsettled = (calls: SubagentContext['calls'], kind: string): readonly string[] =>
  idsOf(calls.filter((call) => !call.settled && call.kind === kind));

function subagentWhy(
  { value, context }: StateOf<SubagentSnapshot>,
  questions: ReadonlyMap<string, Wait>,
): Why | null {
  const { calls } = context;
  if (value === 'spawning')
    return { cause: 'preparation', until: context.dueAt, sentence: 'it is being prepared' };
  if (value === 'waiting_for_children') {
    const delegations = unsettled(calls, 'delegation');
    return {
      cause: 'children',
      on: delegations[0] ?? null,
      sentence: `waits for other subagents: ${delegations.join(', ')}`,
    };
  }
  if (isIn(value, 'waiting_for_input')) {
    if (askOf(calls)?.kind === 'input')
      return { cause: 'task_giver', sentence: 'asked the agent that gave the task: no answer yet' };
    const on = requestIdOf(context.id, context.asked);
    const because = questions.get(on) ?? null;
    const sentence = because ? `asked ${on}: ${because.sentence}` : `asked ${on}: no answer yet`;
    return { cause: 'answer', on, until: because?.until ?? null, sentence, because };
  }
  return isIn(value, 'running') ? runningWhy(value.running, context) : null;
}

/** The name of a state that has states of its own. */
function isIn<Value, Name extends string>(
  value: Value,
  name: Name,
): value is Extract<Value, { readonly [Key in Name]?: unknown }> {
  return typeof value === 'object' && value !== null && name in value;
}

function inTime({ at }: WaitingState, then: number): string {
  return then <= at ? 'now' : `in ${duration(then - at)}`;
}

function duration(ms: number): string {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`;
}

const counted = (count: number, what: string): string =>
  count === 1 ? `1 ${what}` : `${count} ${what}s`;

const FIRST = ['first', 'second', 'third', 'fourth', 'fifth', 'sixth'];

function ordinal(place: number): string {
  return FIRST[place - 1] ?? `number ${place}`;
}
