// The calls of the step under way, and the unread messages: plain lists, and pure functions that derive facts
// from them.

import type { StepCall } from './subagent-events.ts';

export type CallState = StepCall & { readonly settled: boolean };
type Calls = readonly CallState[];

/** Runs in a run slot. */
export const isRunnable = (call: CallState): boolean => call.kind === 'tool' && !call.settled;

/** Only waits for other subagents. */
export const isDelegation = (call: CallState): boolean =>
  call.kind === 'delegation' && !call.settled;

/** Waits for an answer of the user or of another agent. */
export const isAsk = (call: CallState): boolean =>
  !call.settled && (call.kind === 'question' || call.kind === 'approval' || call.kind === 'input');

export const isCompletion = ({ kind }: StepCall): boolean => kind === 'completion';

/** How a call asks: the user for an answer or for consent, or the agent that gave the task. */
export type AskKind = 'question' | 'approval' | 'input';

/** Returns the call whose question is the one under way: the first unsettled one that asks. */
export function askOf(calls: Calls): (CallState & { readonly kind: AskKind }) | undefined {
  return calls.find(isAsk) as (CallState & { readonly kind: AskKind }) | undefined;
}

export const idsOf = (calls: readonly StepCall[]): readonly string[] =>
  calls.map(({ callId }) => callId);

export const unsettled = (calls: readonly StepCall[]): Calls =>
  calls.map((call) => ({ ...call, settled: false }));

export const settle = (calls: Calls, callId: string): Calls =>
  calls.map((call) => (call.callId === callId ? { ...call, settled: true } : call));

/** Settles the question under way. An approved call becomes the call that it stands for. */
export function settleAsk(calls: Calls, isApproved: boolean): Calls {
  const head = askOf(calls);
  return calls.map((call) => {
    if (call !== head) return call;
    if (!isApproved || call.kind !== 'approval') return { ...call, settled: true };
    return { ...call, kind: call.delegates === true ? 'delegation' : 'tool' };
  });
}

/** A message that has not been read. */
export interface Unread {
  readonly messageId: string;
  /** Not read before the model would end. */
  readonly waits: boolean;
}

export const messageIdsOf = (messages: readonly Unread[]): readonly string[] =>
  messages.map(({ messageId }) => messageId);
