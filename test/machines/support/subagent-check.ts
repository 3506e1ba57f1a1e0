// Every state of a subagent: what may come, and what shall hold in it (S1 to S9).
//
// Time: only differences matter to the machine, so each stretch in `running` begins at 0 or at
// `wait`, and the key leaves `dueAt` out. What is left of the run's time (3, 2 or 1) stays in it.

import {
  requestIdOf,
  subagentMachine,
  type StepCall,
  type SubagentEvent,
  type SubagentSnapshot,
} from '../../../src/machines/index.ts';
import { checkMachine } from '../../../src/testing/check/index.ts';
import { paramsOf, running, same, spawned } from './effects.ts';
import type { OnViolation } from './verdicts.ts';

const subagentInput = {
  id: 'a',
  at: 0,
  maxSteps: 3,
  timeoutMs: 3,
  maxInputRetries: 2,
} as const;

const { maxSteps, maxInputRetries } = subagentInput;
/** So long it waits for a slot, or the user thinks. */
const wait = 5;
const failure = { code: 'BROKEN', message: 'It broke', retryable: false } as const;

const t1: StepCall = { callId: 't1', kind: 'tool' };
const t2: StepCall = { callId: 't2', kind: 'tool' };
const q1: StepCall = { callId: 'q1', kind: 'question' };
const q2: StepCall = { callId: 'q2', kind: 'question' };
const p1: StepCall = { callId: 'p1', kind: 'approval' };

/** What the model may call in one step. */
const callSets: readonly (readonly StepCall[])[] = [
  [],
  [t1, t2],
  [q1, q2],
  [q1, t1],
  [p1, q1],
  [p1],
];

/** The history that no machine holds. */
interface Ghost {
  /** Calls that the user consented to. */
  readonly consented: readonly string[];
  /** Approvals that were run. */
  readonly ran: readonly string[];
}

type S = SubagentSnapshot;
type Machine = typeof subagentMachine;

const isRunning = (snapshot: S): boolean => snapshot.matches('running');
const isWaiting = (snapshot: S): boolean => snapshot.matches('waiting_for_input');
const unsettled = (snapshot: S): readonly StepCall[] =>
  snapshot.context.calls.filter(({ settled }) => !settled);
const ids = (calls: readonly StepCall[]): readonly string[] => calls.map(({ callId }) => callId);
const nowOf = ({ context }: S): number => context.dueAt - context.remainingMs;

function subagentEvents(snapshot: S): readonly SubagentEvent[] {
  const { step, dueAt, asked, remainingMs } = snapshot.context;
  const at = isRunning(snapshot) ? nowOf(snapshot) : 0;
  const requestId = requestIdOf('a', asked);
  const events: SubagentEvent[] = [
    { type: 'subagent.prepared', at },
    { type: 'subagent.unprepared', at, error: failure },
    { type: 'slot.granted', at },
    { type: 'slot.granted', at: at + wait },
    { type: 'subagent.cancel', at, reason: 'the user said so' },
    { type: 'model.failed', at, step, error: failure },
    { type: 'model.failed', at, step: step - 1, error: failure },
    { type: 'model.responded', at, step: step - 1, calls: [] },
    { type: 'model.responded', at, step, calls: [], again: true },
    { type: 'deadline.preparation', at: dueAt, dueAt },
    { type: 'deadline.preparation', at: dueAt + 1, dueAt: dueAt + 1 },
    { type: 'deadline.run', at: dueAt, dueAt },
    { type: 'deadline.run', at: dueAt + 1, dueAt: dueAt + 1 },
    { type: 'question.answered', at: at + wait, requestId },
    { type: 'question.answered', at, requestId, approved: true },
    { type: 'question.answered', at, requestId, approved: false },
    { type: 'question.answered', at, requestId: requestIdOf('a', asked - 1) },
    { type: 'question.expired', at, requestId },
    { type: 'question.expired', at, requestId: requestIdOf('a', asked - 1) },
    { type: 'question.withdrawn', at, requestId },
    { type: 'question.withdrawn', at, requestId: requestIdOf('a', asked - 1) },
  ];
  for (const calls of callSets) {
    events.push({ type: 'model.responded', at, step, calls });
    // The stretch ends with this answer, so its length can be told by it alone.
    const leaves = calls.every(({ kind }) => kind !== 'tool');
    if (leaves && remainingMs > 1)
      events.push({ type: 'model.responded', at: at + 1, step, calls });
  }
  for (const callId of ['t1', 't2', 'q1', 'p1']) {
    events.push({ type: 'tool.settled', at, step, callId });
    events.push({ type: 'tool.settled', at, step: step - 1, callId });
  }
  return events;
}

/** Explores a subagent, or a faulty one in its place. */
export function checkSubagent(
  machine: Machine = subagentMachine,
  onViolation: OnViolation = 'collect',
) {
  return checkMachine<Machine, Ghost>(machine, {
    name: 'subagent',
    input: subagentInput,
    onViolation,
    key: ({ value, context, children }) => [value, { ...context, dueAt: 0 }, running({ children })],
    events: subagentEvents,
    ghost: {
      initial: { consented: [], ran: [] },
      next(ghost, { event, effects }, before, after) {
        if (after.status === 'done') return { consented: [], ran: [] };
        let { consented, ran } = ghost;
        if (spawned(effects, 'modelStep').length > 0) [consented, ran] = [[], []];
        const head = unsettled(before).find(({ kind }) => kind !== 'tool');
        const { type, approved } = event as { type: string; approved?: boolean };
        if (type === 'question.answered' && approved === true && head?.kind === 'approval')
          consented = [...consented, head.callId];
        for (const { callIds } of spawned(effects, 'toolCalls'))
          ran = [...ran, ...callIds.filter((id) => id.startsWith('p') && !ran.includes(id))];
        return consented === ghost.consented && ran === ghost.ran ? ghost : { consented, ran };
      },
    },
    invariants: {
      'S1: an end is final and says how it ended': ({ status, value, output }) => {
        const ends: Record<string, readonly string[]> = {
          completed: ['completed'],
          failed: ['failed', 'timed_out'],
          cancelled: ['cancelled'],
        };
        const allowed = typeof value === 'string' ? ends[value] : undefined;
        if (allowed === undefined) return status === 'active';
        return status === 'done' && allowed.includes(output?.status ?? '');
      },
      'S2: a deadline is armed while it prepares or runs, and only then': (snapshot) =>
        running(snapshot).includes('deadline') ===
        (snapshot.matches('spawning') || isRunning(snapshot)),
      'S3: while it waits for the user no call is unsettled but questions, and nothing runs': (
        snapshot,
      ) =>
        !isWaiting(snapshot) ||
        (unsettled(snapshot).every(({ kind }) => kind !== 'tool') &&
          running(snapshot).length === 0),
      'S5: a call that needs consent becomes runnable by consent only': (snapshot, ghost) =>
        snapshot.context.calls.every(
          ({ callId, kind }) =>
            !callId.startsWith('p') || kind !== 'tool' || ghost.consented.includes(callId),
        ),
      'S5: a call that has consent is settled only by being run': (snapshot, ghost) =>
        snapshot.context.calls.every(
          ({ callId, settled }) =>
            !settled || !ghost.consented.includes(callId) || ghost.ran.includes(callId),
        ),
      'S6: a live subagent has missed fewer answers than it may': ({ status, context }) =>
        status === 'done' || context.missed < maxInputRetries,
      'S7: no step beyond the last': ({ context }) => context.step <= maxSteps,
      'the activity belongs to the state': (snapshot) => {
        const runs = running(snapshot);
        const owners = {
          prepare: snapshot.matches('spawning'),
          modelStep: snapshot.matches({ running: 'thinking' }),
          toolCalls: snapshot.matches({ running: 'acting' }),
        };
        return Object.entries(owners).every(([name, owns]) => runs.includes(name) === owns);
      },
    },
    steps: {
      'S2: the clock starts with running and stops with it': (before, { at }, after) => {
        const [was, is] = [before.context, after.context];
        if (isRunning(after) && !isRunning(before)) {
          return (
            is.dueAt === (at as number) + was.remainingMs && is.remainingMs === was.remainingMs
          );
        }
        if (isRunning(before) && !isRunning(after)) {
          return is.remainingMs === was.dueAt - (at as number);
        }
        return is.remainingMs === was.remainingMs && is.dueAt === was.dueAt;
      },
      'S2: the deadline is that of the run': (before, _event, after, effects) => {
        const entered = isRunning(after) && !isRunning(before);
        const armed = spawned(effects, 'deadline');
        return same(armed, entered ? [{ dueAt: after.context.dueAt, event: 'deadline.run' }] : []);
      },
      'S2: a deadline that is not the armed one is ignored': (before, event) =>
        !('dueAt' in event) ||
        (event.dueAt === before.context.dueAt &&
          (event.type === 'deadline.run' ? isRunning(before) : before.matches('spawning'))),
      'S3: its questions are asked in call order, one at a time': (
        before,
        _event,
        after,
        effects,
      ) => {
        const asked = paramsOf(effects, 'ask');
        const entered = isWaiting(after) && after.context.asked === before.context.asked + 1;
        if (asked.length !== (entered ? 1 : 0)) return `It asked ${asked.length} questions`;
        const [ask] = asked;
        if (ask === undefined) return after.context.asked === before.context.asked;
        const [head] = unsettled(after);
        return (
          ask.callId === head?.callId &&
          ask.kind === head.kind &&
          ask.requestId === requestIdOf('a', after.context.asked)
        );
      },
      'S4: a step begins when every call of the one before is settled': (
        before,
        event,
        after,
        effects,
      ) => {
        const begun = spawned(effects, 'modelStep');
        if (begun.length === 0) return after.context.step === before.context.step;
        const settles = 'callId' in event ? [event.callId] : [];
        const open = ids(unsettled(before)).filter((id) => !settles.includes(id));
        const step = before.context.step + 1;
        return open.length === 0 && same(begun, [{ id: 'a', step }]) && after.context.step === step;
      },
      'S4: what belongs to another step or question is ignored': (before, event) => {
        const { step, asked } = before.context;
        if ('step' in event) return event.step === step;
        return !('requestId' in event) || event.requestId === requestIdOf('a', asked);
      },
      'S4: exactly the unsettled ordinary calls are run': (_before, _event, after, effects) =>
        spawned(effects, 'toolCalls').every(
          ({ callIds, step }) =>
            step === after.context.step &&
            same(callIds, ids(unsettled(after).filter(({ kind }) => kind === 'tool'))),
        ),
      'S6: a miss counts, an answer starts the count again, the last miss ends it': (
        before,
        { type },
        after,
      ) => {
        const { missed } = before.context;
        if (type === 'question.answered') return after.context.missed === 0;
        if (type !== 'question.expired') return after.context.missed === missed;
        const isLast = missed + 1 === maxInputRetries;
        return isLast
          ? after.matches('failed') && after.context.ending?.error?.code === 'INPUT_TIMEOUT'
          : !after.matches('failed') && after.context.missed === missed + 1;
      },
      'S7: calls of the last step are not run': (before, event, after, effects) => {
        if (event.type !== 'model.responded' || before.context.step < maxSteps) return true;
        const { calls, again } = event;
        if (calls.length === 0 && !again) return after.matches('completed');
        return (
          after.context.ending?.error?.code === 'STEP_LIMIT' &&
          spawned(effects, 'toolCalls').length === 0 &&
          paramsOf(effects, 'ask').length === 0
        );
      },
      'S8: a slot is asked for in ready and given back when it is not needed any more': (
        before,
        _event,
        after,
        effects,
      ) => {
        const wants = after.matches('ready') && !before.matches('ready');
        const gives =
          (isRunning(before) && !isRunning(after)) ||
          (before.matches('ready') && after.status === 'done');
        return (
          same(
            paramsOf(effects, 'requestSlot'),
            wants ? [{ id: 'a', resumed: after.context.step > 0 }] : [],
          ) && same(paramsOf(effects, 'releaseSlot'), gives ? [{ id: 'a' }] : [])
        );
      },
      'S8: it runs only after it was given a slot': (before, { type }, after) =>
        isRunning(before) || !isRunning(after) || type === 'slot.granted',
      'S9: a question that it gives up is withdrawn, no other': (before, event, after, effects) => {
        const isOver = event.type.startsWith('question.');
        const givesUp = isWaiting(before) && !isWaiting(after) && !isOver;
        const requestId = requestIdOf('a', before.context.asked);
        return same(paramsOf(effects, 'withdraw'), givesUp ? [{ id: 'a', requestId }] : []);
      },
    },
    waits: {
      'preparing ends by a deadline': {
        when: (snapshot) => snapshot.matches('spawning'),
        exits: ['deadline.preparation'],
      },
      'waiting for a slot ends by the slot': {
        when: (snapshot) => snapshot.matches('ready'),
        exits: ['slot.granted'],
      },
      'running ends by a deadline': { when: 'active', exits: ['deadline.run'] },
      'waiting for the user ends by an answer': { when: isWaiting, exits: ['question.answered'] },
      'waiting for the user ends without one': { when: isWaiting, exits: ['question.expired'] },
      'waiting for the user ends when the question is withdrawn': {
        when: isWaiting,
        exits: ['question.withdrawn'],
      },
      'whatever lives can be cancelled': { when: 'live', exits: ['subagent.cancel'] },
    },
    reachable: {
      'it completes after two steps': ({ output }) =>
        output?.status === 'completed' && output.steps === 2,
      'it runs out of steps': ({ output }) => output?.error?.code === 'STEP_LIMIT',
      'it runs out of time': ({ output }) => output?.error?.code === 'TIMEOUT',
      'it runs out of patience': ({ output }) => output?.error?.code === 'INPUT_TIMEOUT',
      'it is never ready': ({ output }) => output?.error?.code === 'PREPARATION_TIMEOUT',
      'it is cancelled': ({ output }) => output?.status === 'cancelled',
      'a call runs after consent': ({ context }, { ran }) => ran.length > 0 && context.step === 1,
      'some of its time is used up': ({ context }) => context.remainingMs === 1,
    },
  });
}
