// A subagent's behaviour as a pure function of plain JSON. It computes the next state and the effects from the state
// and an event. A running subagent, its recovery, replays and forks all use this function.
//
// Owns:     how an event changes the machine and the log, and the facts that neither of them stores.
// Does not: execute effects, read a clock, or hold the state (subagent.ts).
//
// Invariants
//   SUBAGENT-UNIT-1. The state depends only on the entries, and survives conversion to JSON and back unchanged.
//   SUBAGENT-UNIT-2. A step never changes its arguments, so a step that throws has no effect.

import type { AnyMachineSnapshot } from 'xstate';
import {
  subagentMachine,
  type Ending,
  type Stamped,
  type SubagentSnapshot,
} from '../../machines/index.ts';
import { askOf, type ModelStepInput, type SubagentEffects } from '../../machines/subagent-setup.ts';
import { forgetOldest } from '../../values/forget-oldest.ts';
import { callKey } from '../../values/json.ts';
import { withoutUndefined } from '../../values/without-undefined.ts';
import type { SubagentState } from '../contracts/session-views.ts';
import type { StepReport } from '../contracts/task.ts';
import { accepts, begun, moved, restored, type Effect } from '../runtime/chart-steps.ts';
import { plain, type Plain } from '../runtime/hosting.ts';
import type { SpawnedEvent, SubagentUnitEvent } from './subagent-events.ts';
import { SubagentLog, type LogRecord } from './subagent-log.ts';

/** A subagent's state as plain JSON. */
export interface SubagentUnitState {
  readonly snapshot: Plain<SubagentSnapshot>;
  readonly log: LogRecord;
  /** Keys of the calls that the user denied. @defaultValue none */
  readonly denied?: readonly string[];
  /** The ids of the latest messages that the subagent received, oldest first. @defaultValue none */
  readonly taken?: readonly string[];
}

/** A subagent's part of its scope's snapshot, as plain JSON. */
export interface SubagentUnitSnapshot extends Omit<SubagentUnitState, 'snapshot' | 'log'> {
  /** The number of its entries in the journal. */
  readonly seq: number;
  readonly life: Pick<SubagentUnitState, 'snapshot' | 'log'> & {
    /** Whether the subagent had nothing to do but wait. @defaultValue false */
    readonly isParked?: true;
  };
}

/** Returns the state of a subagent in a snapshot, from which the subagent continues. */
export function stateIn({ life, denied, taken }: SubagentUnitSnapshot): SubagentUnitState {
  return withoutUndefined({ snapshot: life.snapshot, log: life.log, denied, taken });
}

/** The effects of a subagent's machine and of its unit. */
export interface RunEffects extends SubagentEffects {
  /** The state has changed. */
  readonly changed: undefined;
  readonly ended: Ending;
  /** A message has been written to the journal. */
  readonly taken: string;
  /** The model must read a message immediately. */
  readonly steered: undefined;
  readonly stepped: StepReport;
}

export type SubagentStep = readonly [state: SubagentUnitState, effects: readonly Effect[]];

/** The number of message ids that are remembered. A repeated message arrives soon after the original. */
const MAX_TAKEN = 100;

function effectOf<Name extends keyof RunEffects>(name: Name, params: RunEffects[Name]): Effect {
  return { kind: 'do', name, params };
}

export function snapshotOf({ snapshot }: Pick<SubagentUnitState, 'snapshot'>): SubagentSnapshot {
  return restored(subagentMachine, snapshot);
}

/** Returns the machine's state, without its substates. */
export function stateOf({ value }: Pick<AnyMachineSnapshot, 'value'>): SubagentState {
  return (typeof value === 'string' ? value : Object.keys(value)[0]) as SubagentState;
}

/** Returns the id of the message that an event contains, or null if there is none. */
export function messageIdOf(event: SubagentUnitEvent): string | null {
  return 'messageId' in event && typeof event.messageId === 'string' ? event.messageId : null;
}

/** Returns a subagent's first step. */
export function begin(
  id: string,
  { at, limits }: Pick<SpawnedEvent, 'limits'> & Stamped,
): SubagentStep {
  const [snapshot, effects] = begun(subagentMachine, { id, at, ...limits });
  return [{ snapshot: plain(snapshot), log: new SubagentLog().record }, effects];
}

/** Returns whether the event would change the state. */
export function takes(state: SubagentUnitState, event: SubagentUnitEvent & Stamped): boolean {
  return accepts(snapshotOf(state), event);
}

/** Returns the step for an event. The log records the event before the machine processes it. */
export function reduce(
  state: SubagentUnitState,
  event: Exclude<SubagentUnitEvent, SpawnedEvent> & Stamped,
): SubagentStep {
  const before = snapshotOf(state);
  const log = new SubagentLog(state.log);
  const [facts, reports] = factsOf(state, event, before, log);
  log.fold(event, before);
  const [after, done] = moved(subagentMachine, before, event);
  // The messages for a model call are added here. The entries do not contain them, because they can be derived.
  for (const effect of done)
    if (effect.kind === 'start' && effect.name === 'modelStep')
      log.beginStep(effect.input as ModelStepInput);
  const ended = after.status === 'done';
  if (ended) log.endIn(before);
  return [
    { snapshot: plain(after), log: log.record, ...facts },
    [
      ...reports,
      ...done,
      effectOf('changed', undefined),
      ...(ended ? [effectOf('ended', after.output)] : []),
    ],
  ];
}

/**
 * Returns the effects that report an event, and the facts about it that neither the machine nor the log stores.
 */
function factsOf(
  { denied = [], taken = [] }: SubagentUnitState,
  event: SubagentUnitEvent,
  { context }: SubagentSnapshot,
  log: SubagentLog,
): [Pick<SubagentUnitState, 'denied' | 'taken'>, readonly Effect[]] {
  const effects: Effect[] = [];
  const keys = new Set(denied);
  if (event.type === 'question.answered' && event.approved === false) {
    const asking = askOf(context.calls);
    const call = asking?.kind === 'approval' ? log.call(asking.callId) : undefined;
    if (call) keys.add(callKey(call.toolName, call.input));
  }
  const ids = new Set(taken);
  const messageId = messageIdOf(event);
  if (messageId !== null) {
    forgetOldest(ids.add(messageId), MAX_TAKEN);
    effects.push(effectOf('taken', messageId));
    if (event.type === 'subagent.message' && event.mode === 'steer')
      effects.push(effectOf('steered', undefined));
  }
  const step = stepIn(event);
  if (step) effects.push(effectOf('stepped', step));
  const facts = {
    ...(keys.size > 0 && { denied: [...keys] }),
    ...(ids.size > 0 && { taken: [...ids] }),
  };
  return [facts, effects];
}

/** If the event ends a step, returns the report on that step for the hooks. Otherwise returns null. */
function stepIn(event: SubagentUnitEvent): StepReport | null {
  if (event.type !== 'model.responded' && event.type !== 'model.failed') return null;
  if (event.response === undefined) return null;
  const { calls, usage } = event.response;
  return {
    step: event.step,
    toolCalls: calls.map(({ toolName }) => toolName),
    tokensUsed: usage.totalTokens,
    ...(usage.cost === undefined ? {} : { cost: usage.cost }),
  };
}
