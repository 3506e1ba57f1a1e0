// Explores every state of a tool call and checks its properties (TOOL-CALL-1 to TOOL-CALL-6).
//
// Time: a tool runs once, starting at 0. The user's words arrive at 0 or 1 and wait for 1.

import {
  toolCallMachine,
  type ToolCallEvent,
  type ToolCallSnapshot,
} from '../../../src/machines/index.ts';
import { checkMachine } from '../../../src/testing/check/index.ts';
import { paramsOf, same, started, running } from './effects.ts';
import type { OnViolation } from './verdicts.ts';

const toolCallInput = { callId: 'c', timeoutMs: 5 } as const;

const WORDS_MS = 1;

type Machine = typeof toolCallMachine;
type S = ToolCallSnapshot;

/** Counts. */
interface Ghost {
  /** Answers to the model. A result without an earlier announcement counts as an answer. */
  readonly answers: number;
  readonly delegated: number;
  readonly delivered: number;
  /** Places in the outbox that are reserved for the result of a detached call. */
  readonly places: number;
}

/** Returns the state as text. */
const nameOf = ({ value }: S): string =>
  typeof value === 'string' ? value : `executing ${value.executing}`;

function toolCallEvents({ context: { dueAt, detachAt = 0 } }: S): readonly ToolCallEvent[] {
  return [
    { type: 'call.validated', at: 0, execution: 'inline', acknowledge: false },
    { type: 'call.validated', at: 0, execution: 'background', acknowledge: false },
    { type: 'call.validated', at: 0, execution: 'background', acknowledge: true },
    {
      type: 'call.validated',
      at: 0,
      execution: 'inline',
      acknowledge: false,
      detach: { afterMs: 3, wordsMs: WORDS_MS },
    },
    {
      type: 'call.validated',
      at: 0,
      execution: 'inline',
      acknowledge: false,
      detach: { afterMs: null, wordsMs: 0 },
    },
    { type: 'call.talkedOver', at: 1, saidAt: -1 },
    { type: 'call.talkedOver', at: 0, saidAt: 0 },
    { type: 'call.talkedOver', at: 1, saidAt: 1 },
    { type: 'deadline.detachment', at: detachAt, dueAt: detachAt },
    { type: 'deadline.detachment', at: detachAt + 1, dueAt: detachAt + 1 },
    { type: 'call.placed', at: 0, granted: true },
    { type: 'call.placed', at: 0, granted: false },
    { type: 'call.invalid', at: 0 },
    { type: 'call.executed', at: 0 },
    { type: 'call.executed', at: 0, known: true },
    { type: 'call.executed', at: 0, failed: true },
    { type: 'subagent.accepted', at: 0 },
    { type: 'subagent.rejected', at: 0 },
    { type: 'subagent.ended', at: 0 },
    { type: 'subagent.ended', at: 0, known: true },
    { type: 'delivery.settled', at: 0 },
    { type: 'call.cancel', at: 0 },
    { type: 'call.cancel', at: 0, withdrawn: true },
    { type: 'deadline.execution', at: dueAt, dueAt },
    { type: 'deadline.execution', at: dueAt + 1, dueAt: dueAt + 1 },
  ];
}

/** The answer that the model receives when the call leaves its state on this event. */
const answerTo: Readonly<Record<string, string>> = {
  'call.invalid': 'invalid',
  'call.executed': 'result',
  'call.placed': 'pending',
  'deadline.execution': 'timed_out',
  'subagent.accepted': 'pending',
  'subagent.rejected': 'rejected',
  'call.cancel': 'cancelled',
};

/** Explores the tool call machine or a faulty version of it. */
export function checkToolCall(
  machine: Machine = toolCallMachine,
  onViolation: OnViolation = 'collect',
) {
  return checkMachine<Machine, Ghost>(machine, {
    name: 'tool call',
    input: toolCallInput,
    onViolation,
    events: toolCallEvents,
    ghost: {
      initial: { answers: 0, delegated: 0, delivered: 0, places: 0 },
      next(ghost, { effects }, before, after) {
        const isPlaced =
          before.matches({ executing: 'reserving' }) && after.matches({ executing: 'detached' });
        // Either the outbox gets an item in its place, or the place is free.
        const left = ['deliver', 'known', 'cancelSubagent'] as const;
        const freed = left.flatMap((name) => [...paramsOf(effects, name)]).length;
        // A known result counts as delivered because it is known, even for a model that is waiting for the answer.
        const delivered = [...paramsOf(effects, 'deliver'), ...paramsOf(effects, 'known')];
        const unannounced = delivered.filter(({ acknowledged }) => !acknowledged);
        return {
          answers: ghost.answers + paramsOf(effects, 'answer').length + unannounced.length,
          delegated: ghost.delegated + paramsOf(effects, 'delegate').length,
          delivered: ghost.delivered + delivered.length,
          places: ghost.places + (isPlaced ? 1 : 0) - (ghost.places > 0 ? freed : 0),
        };
      },
    },
    invariants: {
      'TOOL-CALL-1: at most one answer': (_snapshot, { answers }) => answers <= 1,
      'TOOL-CALL-1: no end without an answer': ({ status }, { answers }) =>
        status === 'active' || answers === 1,
      'TOOL-CALL-2: delegated at most once, settled at most once': (_snapshot, ghost) =>
        ghost.delegated <= 1 && ghost.delivered <= 1,
      'TOOL-CALL-2: what is delegated or settled was delegated': (snapshot, ghost) =>
        !['acknowledged', 'delegated', 'settled', 'delivered'].includes(nameOf(snapshot)) ||
        ghost.delegated === 1 ||
        snapshot.context.dueAt > 0,
      'TOOL-CALL-2: what is settled was delivered to the outbox': (snapshot, ghost) =>
        ghost.delivered === (['settled', 'delivered'].includes(nameOf(snapshot)) ? 1 : 0),
      'TOOL-CALL-4: an end is final': (snapshot) =>
        (snapshot.status === 'done') ===
        ['answered', 'delivered', 'cancelled'].includes(nameOf(snapshot)),
      'TOOL-CALL-6: a detached tool has a place, and no other call has one': (snapshot, ghost) =>
        ghost.places === (snapshot.matches({ executing: 'detached' }) ? 1 : 0),
      'a tool runs, with a deadline, in executing only': (snapshot) => {
        const isAwaited = snapshot.matches({ executing: 'awaited' });
        const runs = ['deadline', ...(isAwaited ? ['detachment'] : []), 'execute'];
        return same(running(snapshot), snapshot.matches('executing') ? runs : []);
      },
    },
    steps: {
      'TOOL-CALL-1: the answer says what happened': (before, { type }, _after, effects) =>
        paramsOf(effects, 'answer').every(
          ({ callId, answer }) =>
            callId === 'c' &&
            (answer === answerTo[type] || (type === 'call.executed' && answer === 'failed')),
        ) &&
        (before.context.acknowledged ||
          type !== 'subagent.accepted' ||
          paramsOf(effects, 'answer').length === 0),
      'TOOL-CALL-3: a settled result stays until its delivery is over': (before, { type }, after) =>
        !before.matches('settled') || after.matches('settled') || type === 'delivery.settled',
      'TOOL-CALL-5: what is known goes to no outbox, and ends at once': (
        before,
        event,
        after,
        effects,
      ) => {
        const isKnown =
          'known' in event &&
          (before.matches('delegated') || before.matches({ executing: 'detached' })) &&
          (event.type === 'subagent.ended') === before.matches('delegated');
        const known = isKnown ? [{ callId: 'c', acknowledged: before.context.acknowledged }] : [];
        return (
          same(paramsOf(effects, 'known'), known) &&
          (!isKnown || (after.matches('delivered') && paramsOf(effects, 'deliver').length === 0))
        );
      },
      'the deadlines are those of the tool': (
        before,
        { type, at },
        { context, ...after },
        effects,
      ) => {
        const entered = context.dueAt > 0 && !before.matches('executing');
        const due = { dueAt: toolCallInput.timeoutMs, event: 'deadline.execution' };
        const isAwaited = !same(after.value, before.value) || type === 'call.talkedOver';
        const detaches = { dueAt: context.detachAt ?? 0, event: 'deadline.detachment' };
        const { executing = '' } = typeof after.value === 'string' ? {} : after.value;
        const armed = executing === 'awaited' && isAwaited ? [detaches] : [];
        return same(started(effects, 'deadline'), [
          ...(entered && type === 'call.validated' && at === 0 && executing ? [due] : []),
          ...armed,
        ]);
      },
      'a deadline that is not the armed one is ignored': ({ context }, event) => {
        if (event.type !== 'deadline.execution' && event.type !== 'deadline.detachment')
          return true;
        const armed = event.type === 'deadline.execution' ? context.dueAt : context.detachAt;
        return event.dueAt === armed;
      },
      'TOOL-CALL-6: only a tool that has run too long, or was talked over, is detached': (
        before,
        { type },
        after,
      ) => {
        const isLeaving =
          after.matches({ executing: 'reserving' }) && !before.matches({ executing: 'reserving' });
        const { detachAt = 0, dueAt, wordsMs } = before.context;
        return (
          !isLeaving ||
          (type === 'deadline.detachment' && detachAt < dueAt) ||
          (type === 'call.cancel' && wordsMs === 0)
        );
      },
      'TOOL-CALL-6: words that began before the run, or that may wait, change nothing': (
        before,
        event,
        after,
      ) => {
        if (event.type !== 'call.talkedOver' || !('saidAt' in event)) return true;
        const { wordsMs } = before.context;
        const detachAt = event.at + (wordsMs ?? Infinity);
        return event.saidAt >= 0 && (after.context.detachAt ?? 0) <= detachAt;
      },
      'a cancelled call cancels its subagent': (before, { type }, _after, effects) => {
        const delegated =
          before.matches('acknowledged') ||
          before.matches('delegated') ||
          before.matches({ executing: 'detached' });
        const cancels = type === 'call.cancel' && delegated;
        return same(paramsOf(effects, 'cancelSubagent'), cancels ? [{ callId: 'c' }] : []);
      },
    },
    waits: {
      'executing ends by a deadline': {
        when: (snapshot) =>
          snapshot.matches('executing') && !snapshot.matches({ executing: 'reserving' }),
        exits: ['deadline.execution'],
      },
      'a reservation is answered': {
        when: (snapshot) => snapshot.matches({ executing: 'reserving' }),
        exits: ['call.placed'],
      },
      'settled ends by its delivery': {
        when: (snapshot) => snapshot.matches('settled'),
        exits: ['delivery.settled'],
      },
      'whatever has no result can be cancelled': {
        when: (snapshot) => !snapshot.matches('settled'),
        exits: ['call.cancel'],
      },
    },
    reachable: {
      'a result is delivered that was announced': ({ context, value }) =>
        value === 'delivered' && context.acknowledged,
      'a result is delivered that was not': ({ context, value }) =>
        value === 'delivered' && !context.acknowledged,
      'the result of a detached tool is delivered': ({ context, value }) =>
        value === 'delivered' && context.dueAt > 0,
    },
  });
}
