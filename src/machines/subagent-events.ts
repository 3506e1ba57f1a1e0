// The events of a subagent's machine, and the reasons for which it fails.

import type { Stamped } from './effect.ts';
import type { Failure } from './outcome.ts';

export interface SubagentInput {
  readonly id: string;
  /** When the subagent was accepted; the preparation's deadline counts from here. */
  readonly at: number;
  readonly maxSteps: number;
  /** Time that it may spend in `running`, in milliseconds. */
  readonly timeoutMs: number;
  readonly maxInputRetries: number;
}

/** A call that the model made in the step under way. */
export interface StepCall {
  readonly callId: string;
  /**
   * `tool`: runs in a run slot. `delegation`: only waits for other subagents. `question`: to the
   * user. `input`: to the agent that gave the task. `approval`: a call that needs the user's
   * consent first. `completion`: hands in the result.
   */
  readonly kind: 'tool' | 'delegation' | 'question' | 'approval' | 'input' | 'completion';
  /** An `approval` whose call is a `delegation` once it is approved. */
  readonly delegates?: boolean;
}

/**
 * When a message to a running subagent is read. `steer`: at its next step. `queue`: when it would have ended.
 * `interrupt`: at once, and the step under way is broken off.
 */
export type MessageMode = 'queue' | 'steer' | 'interrupt';

type Unstamped =
  | { readonly type: 'subagent.prepared' }
  | { readonly type: 'subagent.unprepared'; readonly error: Failure }
  | { readonly type: 'slot.granted' }
  /** The model answered. No calls: this is the result, unless `again` (it must be asked once more). */
  | {
      readonly type: 'model.responded';
      readonly step: number;
      readonly calls: readonly StepCall[];
      readonly again?: boolean;
    }
  | { readonly type: 'model.failed'; readonly step: number; readonly error: Failure }
  | { readonly type: 'tool.settled'; readonly step: number; readonly callId: string }
  | {
      readonly type: 'question.answered';
      readonly requestId: string;
      /** For an approval: whether the user consents. */
      readonly approved?: boolean;
    }
  | { readonly type: 'question.expired'; readonly requestId: string }
  | { readonly type: 'question.withdrawn'; readonly requestId: string }
  /** A message to the subagent; each has an id of its own. */
  | {
      readonly type: 'subagent.message';
      readonly messageId: string;
      readonly mode: MessageMode;
    }
  /** The budget is exhausted: one last step to hand in the work done, if `graceful`. */
  | {
      readonly type: 'budget.exhausted';
      readonly graceful: boolean;
      readonly message: string;
      /** The model call of this step was refused before it was made: the step is the last one. */
      readonly step?: number;
    }
  | { readonly type: 'deadline.preparation'; readonly dueAt: number }
  | { readonly type: 'deadline.run'; readonly dueAt: number }
  | { readonly type: 'subagent.cancel'; readonly reason: string };

export type SubagentEvent = Unstamped & Stamped;

/** The time after which a subagent that is not ready to run has failed. */
export const PREPARATION_TIMEOUT_MS = 30_000;

/** The id of the question that a waiting subagent waits for: unique, and the same after a restart. */
export const requestIdOf = (id: string, asked: number): string => `${id}.q${asked}`;

export function cancelled(reason: string): Failure {
  return { code: 'CANCELLED', message: `Cancelled: ${reason}`, retryable: false };
}

export function budgetExhausted(message: string): Failure {
  return { code: 'BUDGET_EXHAUSTED', message, retryable: false };
}

export function stepLimit(maxSteps: number): Failure {
  return {
    code: 'STEP_LIMIT',
    message: `The work was not done after ${maxSteps} model steps (maxSteps)`,
    retryable: false,
  };
}

export function inputTimeout(maxInputRetries: number): Failure {
  return {
    code: 'INPUT_TIMEOUT',
    message: `The user did not answer ${maxInputRetries} questions in a row (maxInputRetries)`,
    retryable: false,
  };
}
