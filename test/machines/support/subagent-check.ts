// Every state of a subagent, and its properties (SUBAGENT-MACHINE-1 to SUBAGENT-MACHINE-15).

import {
  requestIdOf,
  subagentMachine,
  type StepCall,
  type SubagentSnapshot,
} from '../../../src/machines/index.ts';
import { checkMachine } from '../../../src/testing/check/index.ts';
import { paramsOf, same, started, running } from './effects.ts';
import { inboxInvariants, inboxSteps } from './subagent-inbox-check.ts';
import { subagentEvents, subagentInput, type SubagentScope } from './subagent-world.ts';
import type { OnViolation } from './verdicts.ts';

const { maxSteps, maxInputRetries } = subagentInput;

/** The history variables. */
interface Ghost {
  /** Calls that the user approved. */
  readonly consented: readonly string[];
  /** Approved calls that ran. */
  readonly ran: readonly string[];
}

type S = SubagentSnapshot;
type Machine = typeof subagentMachine;

const isRunning = (snapshot: S): boolean => snapshot.matches('running');
const isWaiting = (snapshot: S): boolean => snapshot.matches('waiting_for_input');
const isDelegating = (snapshot: S): boolean => snapshot.matches('waiting_for_children');
const unsettled = (snapshot: S): readonly StepCall[] =>
  snapshot.context.calls.filter(({ settled }) => !settled);
const ids = (calls: readonly StepCall[]): readonly string[] => calls.map(({ callId }) => callId);
const asks = ({ kind }: StepCall): boolean =>
  kind === 'question' || kind === 'approval' || kind === 'input';
const sleeps = ({ kind }: StepCall): boolean => kind === 'sleep';
const isAsleep = (snapshot: S): boolean => snapshot.matches('sleeping');
/** Returns the latest time until which the step's calls sleep. */
const wakesAt = (snapshot: S): number =>
  Math.max(...unsettled(snapshot).map(({ until = 0 }) => until));
const completes = ({ kind }: StepCall): boolean => kind === 'completion';

/** Returns whether the subagent was granted a slot but only had to return its result or to sleep. */
const leavesAtOnce = (type: string, after: S): boolean =>
  type === 'slot.granted' && (after.matches('completed') || isAsleep(after));

/** Explores the subagent machine or a faulty version of it. */
export function checkSubagent(
  scope: SubagentScope,
  machine: Machine = subagentMachine,
  onViolation: OnViolation = 'collect',
) {
  return checkMachine<Machine, Ghost>(machine, {
    name: `subagent: ${scope}`,
    input: subagentInput,
    onViolation,
    key: ({ value, context }) => [value, { ...context, dueAt: 0 }],
    events: subagentEvents(scope),
    ghost: {
      initial: { consented: [], ran: [] },
      next(ghost, { event, effects }, before, after) {
        if (after.status === 'done') return { consented: [], ran: [] };
        let { consented, ran } = ghost;
        if (started(effects, 'modelStep').length > 0) [consented, ran] = [[], []];
        const head = unsettled(before).find(asks);
        const { type, approved } = event as { type: string; approved?: boolean };
        if (type === 'question.answered' && approved === true && head?.kind === 'approval')
          consented = [...consented, head.callId];
        for (const { callIds } of started(effects, 'toolCalls'))
          ran = [...ran, ...callIds.filter((id) => id.startsWith('p') && !ran.includes(id))];
        return consented === ghost.consented && ran === ghost.ran ? ghost : { consented, ran };
      },
    },
    invariants: {
      'SUBAGENT-MACHINE-1: an end is final and says how it ended': ({ status, value, output }) => {
        const ends: Record<string, readonly string[]> = {
          completed: ['completed'],
          failed: ['failed', 'timed_out'],
          cancelled: ['cancelled'],
        };
        const allowed = typeof value === 'string' ? ends[value] : undefined;
        if (allowed === undefined) return status === 'active';
        return status === 'done' && allowed.includes(output?.status ?? '');
      },
      'SUBAGENT-MACHINE-2: a deadline is armed while it prepares, runs or sleeps, and only then': (
        snapshot,
      ) =>
        running(snapshot).includes('deadline') ===
        (snapshot.matches('spawning') || isRunning(snapshot) || isAsleep(snapshot)),
      'SUBAGENT-MACHINE-3: while it waits for an answer no call is unsettled but what asks, and nothing runs':
        (snapshot) =>
          !isWaiting(snapshot) ||
          (unsettled(snapshot).every((call) => asks(call) || sleeps(call) || completes(call)) &&
            running(snapshot).length === 0),
      'SUBAGENT-MACHINE-3: while it waits for others no ordinary call is unsettled': (snapshot) =>
        !isDelegating(snapshot) || unsettled(snapshot).every(({ kind }) => kind !== 'tool'),
      'SUBAGENT-MACHINE-15: while it sleeps no other call is unsettled, and nothing runs': (
        snapshot,
      ) =>
        !isAsleep(snapshot) ||
        (unsettled(snapshot).every((call) => sleeps(call) || completes(call)) &&
          unsettled(snapshot).some(sleeps) &&
          same(running(snapshot), ['deadline'])),
      'SUBAGENT-MACHINE-5: a call that needs consent becomes runnable by consent only': (
        snapshot,
        ghost,
      ) =>
        snapshot.context.calls.every(
          ({ callId, kind }) =>
            !callId.startsWith('p') || kind === 'approval' || ghost.consented.includes(callId),
        ),
      'SUBAGENT-MACHINE-5: a call that has consent is settled only by being run': (
        snapshot,
        ghost,
      ) =>
        snapshot.context.calls.every(
          ({ callId, settled }) =>
            !settled || !ghost.consented.includes(callId) || ghost.ran.includes(callId),
        ),
      'SUBAGENT-MACHINE-6: a live subagent has missed fewer answers than it may': ({
        status,
        context,
      }) => status === 'done' || context.missed < maxInputRetries,
      'SUBAGENT-MACHINE-7: no step beyond the last': ({ context }) => context.step <= maxSteps,
      'the activity belongs to the state': (snapshot) => {
        const runs = running(snapshot);
        const owners = {
          prepare: snapshot.matches('spawning'),
          modelStep: snapshot.matches({ running: 'thinking' }),
          toolCalls: snapshot.matches({ running: 'acting' }) || isDelegating(snapshot),
        };
        return Object.entries(owners).every(([name, owns]) => runs.includes(name) === owns);
      },
      ...(inboxInvariants as object),
    },
    steps: {
      'SUBAGENT-MACHINE-2: the clock starts with running and stops with it': (
        before,
        { type, at },
        after,
      ) => {
        const [was, is] = [before.context, after.context];
        if (leavesAtOnce(type, after)) return is.remainingMs === was.remainingMs;
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
      'SUBAGENT-MACHINE-2: the deadline is that of the run': (before, { type }, after, effects) => {
        const entered = (isRunning(after) && !isRunning(before)) || leavesAtOnce(type, after);
        const armed = started(effects, 'deadline').filter(
          ({ event }) => event !== 'deadline.sleep',
        );
        return same(armed, entered ? [{ dueAt: after.context.dueAt, event: 'deadline.run' }] : []);
      },
      'SUBAGENT-MACHINE-15: the deadline of a sleep is the last of its times': (
        before,
        _event,
        after,
        effects,
      ) => {
        const armed = started(effects, 'deadline').filter(
          ({ event }) => event === 'deadline.sleep',
        );
        const due = { dueAt: wakesAt(after), event: 'deadline.sleep', byClock: true };
        return same(armed, isAsleep(after) && !isAsleep(before) ? [due] : []);
      },
      'SUBAGENT-MACHINE-15: it wakes by its time or a message that does not queue, once': (
        before,
        event,
        after,
      ) => {
        if (!isAsleep(before)) return true;
        const isGivenUp = event.type === 'subagent.cancel' || event.type === 'budget.exhausted';
        const wakes =
          event.type === 'deadline.sleep' ||
          (event.type === 'subagent.message' && event.mode !== 'queue');
        if (isAsleep(after)) return !wakes && !isGivenUp;
        return (wakes || isGivenUp) && !unsettled(after).some(sleeps);
      },
      'SUBAGENT-MACHINE-2: a deadline that is not the armed one is ignored': (before, event) =>
        !('dueAt' in event) ||
        (event.dueAt === before.context.dueAt &&
          (event.type === 'deadline.run' ? isRunning(before) : before.matches('spawning'))) ||
        (event.type === 'deadline.sleep' && isAsleep(before) && event.dueAt === wakesAt(before)),
      'SUBAGENT-MACHINE-3: its questions are asked in call order, one at a time': (
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
        const head = unsettled(after).find(asks);
        return (
          ask.callId === head?.callId &&
          ask.kind === head.kind &&
          ask.requestId === requestIdOf('a', after.context.asked)
        );
      },
      'SUBAGENT-MACHINE-4: a step begins when every call of the one before is settled or given up':
        (before, event, after, effects) => {
          const begun = started(effects, 'modelStep');
          if (begun.length === 0) return after.context.step === before.context.step;
          const settles = 'callId' in event ? [event.callId] : [];
          const left = unsettled(before).filter((call) => !completes(call));
          const open = ids(left).filter((id) => !settles.includes(id));
          const isGivenUp = event.type === 'subagent.message' && event.mode === 'interrupt';
          const step = before.context.step + 1;
          return (
            (open.length === 0 || isGivenUp) &&
            begun.length === 1 &&
            begun[0]?.step === step &&
            after.context.step === step
          );
        },
      'SUBAGENT-MACHINE-4: what belongs to another step or question is ignored': (
        before,
        event,
      ) => {
        const { step, asked } = before.context;
        if ('step' in event) return event.step === step;
        return !('requestId' in event) || event.requestId === requestIdOf('a', asked);
      },
      'SUBAGENT-MACHINE-4: exactly the unsettled calls of one kind are run side by side': (
        _before,
        _event,
        after,
        effects,
      ) => {
        const wanted = isDelegating(after) ? 'delegation' : 'tool';
        return started(effects, 'toolCalls').every(
          ({ callIds, step }) =>
            step === after.context.step &&
            same(callIds, ids(unsettled(after).filter(({ kind }) => kind === wanted))),
        );
      },
      'SUBAGENT-MACHINE-6: a miss counts, an answer starts the count again, the last miss ends it':
        (before, { type }, after) => {
          const { missed } = before.context;
          const isOfUser = unsettled(before).find(asks)?.kind !== 'input';
          if (!isOfUser) return after.context.missed === missed;
          if (type === 'question.answered') return after.context.missed === 0;
          if (type !== 'question.expired') return after.context.missed === missed;
          const isLast = missed + 1 === maxInputRetries;
          return isLast
            ? after.matches('failed') && after.context.ending?.error?.code === 'INPUT_TIMEOUT'
            : !after.matches('failed') && after.context.missed === missed + 1;
        },
      'SUBAGENT-MACHINE-7: calls of the last step are not run': (before, event, after, effects) => {
        const { step, isFinal } = before.context;
        if (event.type !== 'model.responded' || step < maxSteps || isFinal) return true;
        const { calls, again } = event;
        if (calls.length === 0 ? !again : calls.some(completes)) return after.matches('completed');
        return (
          after.context.ending?.error?.code === 'STEP_LIMIT' &&
          started(effects, 'toolCalls').length === 0 &&
          paramsOf(effects, 'ask').length === 0
        );
      },
      'SUBAGENT-MACHINE-8: a slot is asked for in ready and given back when it is not needed any more':
        (before, _event, after, effects) => {
          const wants = after.matches('ready') && !before.matches('ready');
          const gives =
            (isRunning(before) && !isRunning(after)) ||
            (before.matches('ready') && isAsleep(after)) ||
            (before.matches('ready') && after.status === 'done');
          return (
            same(
              paramsOf(effects, 'requestSlot'),
              wants ? [{ id: 'a', resumed: after.context.step > 0 }] : [],
            ) && same(paramsOf(effects, 'releaseSlot'), gives ? [{ id: 'a' }] : [])
          );
        },
      'SUBAGENT-MACHINE-8: it runs only after it was given a slot': (before, { type }, after) =>
        isRunning(before) || !isRunning(after) || type === 'slot.granted',
      'SUBAGENT-MACHINE-9: a question that it gives up is withdrawn, no other': (
        before,
        event,
        after,
        effects,
      ) => {
        const isOver = event.type.startsWith('question.');
        const givesUp = isWaiting(before) && !isWaiting(after) && !isOver;
        const requestId = requestIdOf('a', before.context.asked);
        const kind = unsettled(before).find(asks)?.kind;
        return same(paramsOf(effects, 'withdraw'), givesUp ? [{ id: 'a', requestId, kind }] : []);
      },
      'what is handed in is the result, unless a message comes first': (
        before,
        event,
        _after,
        effects,
      ) => {
        const calls = event.type === 'model.responded' ? event.calls : before.context.calls;
        if (started(effects, 'modelStep').length === 0 || !calls.some(completes)) return true;
        return event.type === 'subagent.message' || before.context.unread.length > 0;
      },
      ...(inboxSteps as object),
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
      'waiting for others ends by their end': { when: isDelegating, exits: ['tool.settled'] },
      'waiting for the user ends by an answer': { when: isWaiting, exits: ['question.answered'] },
      'waiting for the user ends without one': { when: isWaiting, exits: ['question.expired'] },
      'waiting for the user ends when the question is withdrawn': {
        when: isWaiting,
        exits: ['question.withdrawn'],
      },
      'sleeping ends by its time': { when: isAsleep, exits: ['deadline.sleep'] },
      'whatever lives can be cancelled': { when: 'live', exits: ['subagent.cancel'] },
    },
    reachable: reachable[scope],
  });
}

type Reachable = Readonly<Record<string, (snapshot: S, ghost: Ghost) => boolean>>;

const anyScope: Reachable = {
  'it completes after two steps': ({ output }) =>
    output?.status === 'completed' && output.steps === 2,
  'it runs out of steps': ({ output }) => output?.error?.code === 'STEP_LIMIT',
  'it runs out of time': ({ output }) => output?.error?.code === 'TIMEOUT',
  'it is never ready': ({ output }) => output?.error?.code === 'PREPARATION_TIMEOUT',
  'it is cancelled': ({ output }) => output?.status === 'cancelled',
  'a call runs after consent': ({ context }, { ran }) => ran.length > 0 && context.step === 1,
};

const reachable: Readonly<Record<SubagentScope, Reachable>> = {
  calls: {
    ...anyScope,
    'it runs out of patience': ({ output }) => output?.error?.code === 'INPUT_TIMEOUT',
    'some of its time is used up': ({ context }) => context.remainingMs === 1,
    'a delegation runs after consent': (snapshot, { ran }) =>
      isDelegating(snapshot) && ran.includes('p2'),
    'it asks after it waited for others': (snapshot) =>
      isWaiting(snapshot) && snapshot.context.calls.some(({ callId }) => callId === 'd1'),
  },
  messages: {
    ...anyScope,
    'it ends with something unread': ({ value, context }) =>
      value === 'completed' && context.unread.length === 2,
    'a step reads two messages': ({ context }) => context.reading.length === 2,
  },
  budget: {
    ...anyScope,
    'it hands in what there is': ({ context, output }) =>
      context.isFinal && output?.error?.code === 'BUDGET_EXHAUSTED',
    'its last tools settle first': ({ context, value }) =>
      context.exhausted !== null && same(value, { running: 'acting' }),
    'a result under way counts': ({ context, output }) =>
      context.exhausted !== null && output?.status === 'completed',
  },
  sleep: {
    'it sleeps after it asked': (snapshot) =>
      isAsleep(snapshot) && snapshot.context.calls.some(({ callId }) => callId === 'q1'),
    'it sleeps after it waited for others': (snapshot) =>
      isAsleep(snapshot) && snapshot.context.calls.some(({ callId }) => callId === 'd1'),
    'it completes after it slept': ({ value, context }) =>
      value === 'completed' && context.step === 2,
    'it sleeps with something unread': (snapshot) =>
      isAsleep(snapshot) && snapshot.context.unread.length === 1,
  },
};
