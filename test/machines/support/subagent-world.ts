// The possible events of a subagent in each state, in scopes: all kinds of calls; messages; the budget; sleep. Each
// scope has the events that matter to its subject and few others.
//
// Time: only differences matter to the machine, so each interval in `running` starts at 0 or at `wait`, and the key
// omits `dueAt`. The key includes the remaining time of the run (3, 2 or 1).

import {
  requestIdOf,
  type MessageMode,
  type StepCall,
  type SubagentEvent,
  type SubagentSnapshot,
} from '../../../src/machines/index.ts';

type S = SubagentSnapshot;

export const subagentInput = {
  id: 'a',
  at: 0,
  maxSteps: 3,
  timeoutMs: 3,
  maxInputRetries: 2,
} as const;

/** How long a subagent waits for a slot, or how long the user takes to think. */
export const wait = 5;
const failure = { code: 'BROKEN', message: 'It broke', retryable: false } as const;

const t1: StepCall = { callId: 't1', kind: 'tool' };
const t2: StepCall = { callId: 't2', kind: 'tool' };
const d1: StepCall = { callId: 'd1', kind: 'delegation' };
const d2: StepCall = { callId: 'd2', kind: 'delegation' };
const q1: StepCall = { callId: 'q1', kind: 'question' };
const q2: StepCall = { callId: 'q2', kind: 'question' };
const i1: StepCall = { callId: 'i1', kind: 'input' };
const c1: StepCall = { callId: 'c1', kind: 'completion' };
const p1: StepCall = { callId: 'p1', kind: 'approval' };
const s1: StepCall = { callId: 's1', kind: 'sleep', until: 10 };
const s2: StepCall = { callId: 's2', kind: 'sleep', until: 20 };
const p2: StepCall = { callId: 'p2', kind: 'approval', delegates: true };

interface Scope {
  /** The calls that the model may make in one step. */
  readonly callSets: readonly (readonly StepCall[])[];
  readonly messages: readonly MessageMode[];
  /** The largest number of unread messages. */
  readonly maxUnread: number;
  readonly budget: boolean;
  /** Time passes while the subagent runs and while it waits. */
  readonly time: boolean;
}

export const subagentScopes = {
  calls: {
    callSets: [
      [],
      [t1, t2],
      [q1, q2],
      [q1, t1],
      [p1, q1],
      [p1],
      [p2, q1],
      [d1, d2],
      [i1, d1, t1],
      [q1, i1],
      [c1],
      [c1, q1, d1],
    ],
    messages: [],
    maxUnread: 0,
    budget: false,
    time: true,
  },
  messages: {
    callSets: [[], [t1], [t1, q1, d1], [q1, c1], [p1], [c1]],
    messages: ['queue', 'steer', 'interrupt'],
    maxUnread: 2,
    budget: false,
    time: false,
  },
  budget: {
    callSets: [[], [t1, q1, c1], [t1, d1], [q1], [p1, d1], [c1]],
    messages: ['queue', 'interrupt'],
    maxUnread: 1,
    budget: true,
    time: false,
  },
  sleep: {
    callSets: [[], [s1], [s1, s2], [s2, q1, t1], [d1, s1], [s1, c1]],
    messages: ['queue', 'steer', 'interrupt'],
    maxUnread: 1,
    budget: true,
    time: true,
  },
} as const satisfies Record<string, Scope>;

export type SubagentScope = keyof typeof subagentScopes;

const callIds = ['t1', 't2', 'd1', 'd2', 'q1', 'p1', 'p2'];

/** Returns the current time in the check. */
function nowOf(snapshot: S): number {
  const { dueAt, remainingMs } = snapshot.context;
  return snapshot.matches('running') ? dueAt - remainingMs : 0;
}

export function subagentEvents(name: SubagentScope): (snapshot: S) => readonly SubagentEvent[] {
  const scope: Scope = subagentScopes[name];
  return (snapshot) => {
    const at = nowOf(snapshot);
    const events = [...commonEvents(snapshot, at), ...modelEvents(snapshot, at, scope)];
    return [
      // One scope checks that events at the wrong time are ignored.
      ...(scope.time
        ? [...events, ...lateEvents(snapshot, at)]
        : events.filter((event) => isTimely(snapshot, event))),
      ...messageEvents(snapshot, at, scope),
      ...(scope.budget ? budgetEvents(snapshot, at) : []),
      ...(name === 'sleep' ? sleepEvents(at) : []),
    ];
  };
}

function isTimely(snapshot: S, event: SubagentEvent): boolean {
  switch (event.type) {
    case 'subagent.prepared':
    case 'subagent.unprepared':
    case 'deadline.preparation':
      return snapshot.matches('spawning');
    case 'slot.granted':
      return snapshot.matches('ready');
    case 'model.responded':
    case 'model.failed':
    case 'model.retried':
      return snapshot.matches({ running: 'thinking' });
    case 'tool.settled':
      return snapshot.context.calls.some(
        ({ callId, settled }) => callId === event.callId && !settled,
      );
    case 'question.answered':
    case 'question.expired':
    case 'question.withdrawn':
      return snapshot.matches('waiting_for_input');
    case 'deadline.run':
      return snapshot.matches('running');
    case 'deadline.sleep':
      return snapshot.matches('sleeping');
    case 'subagent.message':
    case 'budget.exhausted':
    case 'budget.raised':
    case 'subagent.cancel':
      return true;
    default:
      return event satisfies never;
  }
}

function commonEvents({ context }: S, at: number): readonly SubagentEvent[] {
  const { dueAt, asked, step } = context;
  const requestId = requestIdOf('a', asked);
  return [
    { type: 'subagent.prepared', at },
    { type: 'subagent.unprepared', at, error: failure },
    { type: 'slot.granted', at },
    { type: 'subagent.cancel', at, reason: 'the user said so' },
    { type: 'deadline.preparation', at: dueAt, dueAt },
    { type: 'deadline.run', at: dueAt, dueAt },
    { type: 'question.answered', at, requestId },
    { type: 'question.answered', at, requestId, approved: true },
    { type: 'question.expired', at, requestId },
    { type: 'question.withdrawn', at, requestId },
    ...callIds.map((callId): SubagentEvent => ({ type: 'tool.settled', at, step, callId })),
  ];
}

function modelEvents({ context }: S, at: number, { callSets, time }: Scope): SubagentEvent[] {
  const { step, remainingMs } = context;
  const events: SubagentEvent[] = [
    { type: 'model.failed', at, step, error: failure },
    { type: 'model.responded', at, step, calls: [], again: true },
  ];
  for (const calls of callSets) {
    events.push({ type: 'model.responded', at, step, calls });
    // The interval ends with this response, which alone determines its length.
    const leaves = calls.every(({ kind }) => kind !== 'tool');
    if (time && leaves && remainingMs > 1)
      events.push({ type: 'model.responded', at: at + 1, step, calls });
  }
  return events;
}

/** Returns events that arrive late, and events about parts that have ended. */
function lateEvents({ context }: S, at: number): SubagentEvent[] {
  const { step, dueAt, asked } = context;
  const over = requestIdOf('a', asked - 1);
  return [
    { type: 'slot.granted', at: at + wait },
    { type: 'model.failed', at, step: step - 1, error: failure },
    {
      type: 'model.retried',
      at,
      step: step - 1,
      failed: 1,
      attempts: 2,
      retryAt: at,
      error: failure,
    },
    { type: 'model.responded', at, step: step - 1, calls: [] },
    { type: 'deadline.preparation', at: dueAt + 1, dueAt: dueAt + 1 },
    { type: 'deadline.run', at: dueAt + 1, dueAt: dueAt + 1 },
    { type: 'question.answered', at: at + wait, requestId: requestIdOf('a', asked) },
    { type: 'question.answered', at, requestId: requestIdOf('a', asked), approved: false },
    { type: 'question.answered', at, requestId: over },
    { type: 'question.expired', at, requestId: over },
    { type: 'question.withdrawn', at, requestId: over },
    ...callIds.map((callId): SubagentEvent => ({
      type: 'tool.settled',
      at,
      step: step - 1,
      callId,
    })),
  ];
}

/**
 * Returns messages. A message id may be reused once the message has been read, because the ids of read messages are not
 * remembered.
 */
function messageEvents({ context }: S, at: number, scope: Scope): SubagentEvent[] {
  const { unread } = context;
  if (unread.length >= scope.maxUnread) return [];
  const messageId = unread.some((message) => message.messageId === 'm1') ? 'm2' : 'm1';
  return scope.messages.map((mode) => ({ type: 'subagent.message', at, messageId, mode }));
}

/** Returns the events that end a sleep, whether or not the subagent is sleeping. */
function sleepEvents(at: number): SubagentEvent[] {
  return [10, 20].map((dueAt) => ({ type: 'deadline.sleep', at, dueAt }));
}

function budgetEvents({ context: { step, raised } }: S, at: number): SubagentEvent[] {
  return [
    // One increase is enough. With two, the exploration would never end.
    ...(raised ? [] : [{ type: 'budget.raised', at, limits: { tokens: 10 } } as const]),
    { type: 'budget.exhausted', at, graceful: true, message: 'Too many tokens' },
    { type: 'budget.exhausted', at, graceful: true, message: 'Too many steps' },
    { type: 'budget.exhausted', at, graceful: true, message: 'Refused', step },
    { type: 'budget.exhausted', at, graceful: false, message: 'Too late' },
  ];
}
