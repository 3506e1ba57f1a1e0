// Every state of a tool call: its possible events and its properties (TOOL-CALL-1 to TOOL-CALL-5).
//
// Time: a tool runs once, so its timer starts at 0, and nothing else depends on time.

import {
  toolCallMachine,
  type ToolCallEvent,
  type ToolCallSnapshot,
} from '../../../src/machines/index.ts';
import { checkMachine } from '../../../src/testing/check/index.ts';
import { paramsOf, same, started, running } from './effects.ts';
import type { OnViolation } from './verdicts.ts';

const toolCallInput = { callId: 'c', timeoutMs: 3 } as const;

type Machine = typeof toolCallMachine;
type S = ToolCallSnapshot;

/** Counts. */
interface Ghost {
  /** Answers to the model; a result without an earlier announcement is one. */
  readonly answers: number;
  readonly delegated: number;
  readonly delivered: number;
}

function toolCallEvents({ context: { dueAt } }: S): readonly ToolCallEvent[] {
  return [
    { type: 'call.validated', at: 0, execution: 'inline', acknowledge: false },
    { type: 'call.validated', at: 0, execution: 'background', acknowledge: false },
    { type: 'call.validated', at: 0, execution: 'background', acknowledge: true },
    { type: 'call.invalid', at: 0 },
    { type: 'call.executed', at: 0 },
    { type: 'subagent.accepted', at: 0 },
    { type: 'subagent.rejected', at: 0 },
    { type: 'subagent.ended', at: 0 },
    { type: 'subagent.ended', at: 0, known: true },
    { type: 'delivery.settled', at: 0 },
    { type: 'call.cancel', at: 0 },
    { type: 'deadline.execution', at: dueAt, dueAt },
    { type: 'deadline.execution', at: dueAt + 1, dueAt: dueAt + 1 },
  ];
}

/** The model's answer when the call leaves its state by this event. */
const answerTo: Readonly<Record<string, string>> = {
  'call.invalid': 'invalid',
  'call.executed': 'result',
  'deadline.execution': 'timed_out',
  'subagent.accepted': 'pending',
  'subagent.rejected': 'rejected',
  'call.cancel': 'cancelled',
};

/** Explores a tool call, or a faulty one instead. */
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
      initial: { answers: 0, delegated: 0, delivered: 0 },
      next(ghost, { effects }) {
        // A known result is delivered by the knowledge, even for a model that waits for the answer.
        const delivered = [...paramsOf(effects, 'deliver'), ...paramsOf(effects, 'known')];
        const unannounced = delivered.filter(({ acknowledged }) => !acknowledged);
        return {
          answers: ghost.answers + paramsOf(effects, 'answer').length + unannounced.length,
          delegated: ghost.delegated + paramsOf(effects, 'delegate').length,
          delivered: ghost.delivered + delivered.length,
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
        !['acknowledged', 'delegated', 'settled', 'delivered'].includes(snapshot.value) ||
        ghost.delegated === 1,
      'TOOL-CALL-2: what is settled was delivered to the outbox': (snapshot, ghost) =>
        ghost.delivered === (['settled', 'delivered'].includes(snapshot.value) ? 1 : 0),
      'TOOL-CALL-4: an end is final': ({ status, value }) =>
        (status === 'done') === ['answered', 'delivered', 'cancelled'].includes(value),
      'a tool runs, with a deadline, in executing only': (snapshot) =>
        same(running(snapshot), snapshot.matches('executing') ? ['deadline', 'execute'] : []),
    },
    steps: {
      'TOOL-CALL-1: the answer says what happened': (before, { type }, _after, effects) =>
        paramsOf(effects, 'answer').every(
          ({ callId, answer }) => callId === 'c' && answer === answerTo[type],
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
          before.matches('delegated') && 'known' in event && event.type === 'subagent.ended';
        const known = isKnown ? [{ callId: 'c', acknowledged: before.context.acknowledged }] : [];
        return (
          same(paramsOf(effects, 'known'), known) &&
          (!isKnown || (after.matches('delivered') && paramsOf(effects, 'deliver').length === 0))
        );
      },
      'the deadline is that of the tool': (before, { at }, after, effects) => {
        const entered = after.matches('executing') && !before.matches('executing');
        const dueAt = (at as number) + toolCallInput.timeoutMs;
        const due = { dueAt, event: 'deadline.execution' };
        return same(started(effects, 'deadline'), entered ? [due] : []);
      },
      'a deadline that is not the armed one is ignored': (before, event) =>
        event.type !== 'deadline.execution' ||
        (event as { dueAt: number }).dueAt === before.context.dueAt,
      'a cancelled call cancels its subagent': (before, { type }, _after, effects) => {
        const delegated = before.matches('acknowledged') || before.matches('delegated');
        const cancels = type === 'call.cancel' && delegated;
        return same(paramsOf(effects, 'cancelSubagent'), cancels ? [{ callId: 'c' }] : []);
      },
    },
    waits: {
      'executing ends by a deadline': {
        when: (snapshot) => snapshot.matches('executing'),
        exits: ['deadline.execution'],
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
    },
  });
}
