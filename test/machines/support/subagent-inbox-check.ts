// The properties of a subagent's messages and budget (SUBAGENT-MACHINE-10 to SUBAGENT-MACHINE-12).

import type { StepCall, subagentMachine, SubagentSnapshot } from '../../../src/machines/index.ts';
import type { MachineCheck } from '../../../src/testing/check/index.ts';
import { paramsOf, same, started } from './effects.ts';
import { subagentInput } from './subagent-world.ts';

type S = SubagentSnapshot;
type Properties = MachineCheck<typeof subagentMachine, never>;
type Event = Parameters<NonNullable<Properties['steps']>[string]>[1];

const { maxSteps } = subagentInput;
const completes = ({ kind }: StepCall): boolean => kind === 'completion';
const idsOf = ({ context }: S): readonly string[] =>
  context.unread.map(({ messageId }) => messageId);
/** Returns whether the model would have finished at this event, as far as the model knows. */
function wouldEnd(before: S, event: Event): boolean {
  if (event.type === 'model.responded') {
    const { calls, again } = event;
    return calls.length === 0 ? again !== true : calls.every(completes);
  }
  return event.type !== 'subagent.message' && before.context.calls.some(completes);
}

export const inboxInvariants: NonNullable<Properties['invariants']> = {
  'SUBAGENT-MACHINE-10: it completes with something unread in its last step only': ({
    value,
    context,
  }) =>
    value !== 'completed' ||
    context.unread.length === 0 ||
    context.step >= maxSteps ||
    context.exhausted !== null,
  'SUBAGENT-MACHINE-12: with an exhausted budget it waits for nobody': (snapshot) =>
    snapshot.context.exhausted === null ||
    (!snapshot.matches('waiting_for_input') && !snapshot.matches('waiting_for_children')),
  'SUBAGENT-MACHINE-12: after the final step it is over': (snapshot) =>
    !snapshot.context.isFinal ||
    snapshot.status === 'done' ||
    snapshot.matches({ running: 'thinking' }),
};

export const inboxSteps: NonNullable<Properties['steps']> = {
  'SUBAGENT-MACHINE-10: each message is unread or read, in the order of arrival, and never both': (
    before,
    event,
    after,
    effects,
  ) => {
    const came = event.type === 'subagent.message' ? [event.messageId] : [];
    const had = [...idsOf(before), ...came];
    const [begun] = started(effects, 'modelStep');
    const read = begun?.messageIds ?? [];
    return (
      same(
        had.filter((id) => read.includes(id)),
        read,
      ) &&
      same(
        had.filter((id) => !read.includes(id)),
        idsOf(after),
      )
    );
  },
  'SUBAGENT-MACHINE-10: a step reads what is due, and everything where it would have ended': (
    before,
    event,
    after,
    effects,
  ) => {
    const [begun] = started(effects, 'modelStep');
    if (begun === undefined) return true;
    const came =
      event.type === 'subagent.message' ? [{ messageId: event.messageId, waits: false }] : [];
    const all = [...before.context.unread, ...came];
    const readsAll = after.context.isFinal || wouldEnd(before, event);
    const due = all.filter(({ waits }) => readsAll || !waits);
    return same(
      begun.messageIds,
      due.map(({ messageId }) => messageId),
    );
  },
  'SUBAGENT-MACHINE-10: what is queued waits, unless nothing ran yet': (before, event, after) => {
    if (event.type !== 'subagent.message') return true;
    const kept = after.context.unread.find(({ messageId }) => messageId === event.messageId);
    const hasRun = before.context.step > 0;
    return kept === undefined || kept.waits === (event.mode === 'queue' && hasRun);
  },
  'SUBAGENT-MACHINE-11: an interruption breaks off what is under way, if there is a step left': (
    before,
    event,
    after,
    effects,
  ) => {
    if (event.type !== 'subagent.message') return true;
    const { mode, messageId } = event;
    const { step, isFinal } = before.context;
    const breaksOff = mode === 'interrupt' && step < maxSteps && !isFinal;
    if (before.matches('running') && breaksOff)
      return started(effects, 'modelStep').some((begun) => begun.messageIds.includes(messageId));
    if (breaksOff && after.context.calls.length > 0) return false;
    // A subagent that is only waiting for a slot has no work to stop and starts none.
    const wakes = before.matches('sleeping') && mode !== 'queue';
    const staysPut = !(breaksOff || wakes) || before.matches('spawning') || before.matches('ready');
    return staysPut
      ? effects.length === 0 && same(after.value, before.value)
      : after.matches('ready');
  },
  'SUBAGENT-MACHINE-12: with an exhausted budget nothing new of the step begins': (
    _before,
    _event,
    after,
    effects,
  ) =>
    after.context.exhausted === null ||
    (started(effects, 'toolCalls').length === 0 && paramsOf(effects, 'ask').length === 0),
  'SUBAGENT-MACHINE-12: the one model call after it is the final one': (
    before,
    _event,
    after,
    effects,
  ) =>
    started(effects, 'modelStep').every(
      ({ final }) => final === (before.context.exhausted !== null) && !before.context.isFinal,
    ) &&
    (!after.context.isFinal || after.context.exhausted !== null),
  'SUBAGENT-MACHINE-12: after the final step it has failed with BUDGET_EXHAUSTED': (
    before,
    event,
    after,
  ) =>
    !before.context.isFinal ||
    !event.type.startsWith('model.') ||
    after.context.ending?.error?.code === 'BUDGET_EXHAUSTED',
  'SUBAGENT-MACHINE-12: a step whose call was refused is the final one, without another': (
    before,
    event,
    after,
    effects,
  ) => {
    if (event.type !== 'budget.exhausted' || event.step !== before.context.step) return true;
    if (!same(before.value, { running: 'thinking' })) return !after.context.isFinal;
    return after.context.isFinal && effects.length === 0 && same(after.value, before.value);
  },
  'SUBAGENT-MACHINE-12: a result that was under way counts': (before, event, after) =>
    event.type !== 'model.responded' ||
    before.context.isFinal ||
    before.context.exhausted === null ||
    (event.calls.length === 0 ? event.again === true : !event.calls.some(completes)) ||
    after.matches('completed'),
  'SUBAGENT-MACHINE-13: a raise is kept, unless it comes too late, and changes nothing else': (
    before,
    event,
    after,
    effects,
  ) => {
    const { raised: was, ...rest } = before.context;
    const { raised, ...restAfter } = after.context;
    if (event.type !== 'budget.raised') return same(raised ?? null, was ?? null);
    const isKept = before.context.exhausted === null && before.status === 'active';
    const wanted = isKept ? { ...was, ...event.limits } : was;
    return (
      same(raised ?? null, wanted ?? null) &&
      same(restAfter, rest) &&
      same(after.value, before.value) &&
      effects.length === 0
    );
  },
  'SUBAGENT-MACHINE-12: the first reason counts, at once if it says so': (before, event, after) => {
    if (event.type !== 'budget.exhausted') return true;
    const reason = before.context.exhausted ?? event.message;
    if (event.graceful) return after.context.exhausted === reason;
    return (
      after.matches('failed') &&
      after.context.ending?.error?.code === 'BUDGET_EXHAUSTED' &&
      after.context.ending.error.message === reason
    );
  },
};
