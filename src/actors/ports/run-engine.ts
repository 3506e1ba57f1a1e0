// The port to an engine that stores a run (`runSubagent(…, { id, engine })`) and starts its turns, which may run in any
// process. `test/suites/runs` tests an implementation together with its worker (`RunHandler`).
//
// Invariants
//   RUN-ENGINE-1. An id identifies one run across all processes. `start` starts the run if it does not exist. Once the
//       run has ended, its view contains the outcome until the engine deletes the run. Views contain the digest of the
//       order that started the run.
//   RUN-ENGINE-2. The first answer to a request counts, and later answers are refused.
//   RUN-ENGINE-3. The turn numbers of a run's views increase.
//   RUN-ENGINE-4. Every method rejects only with a `JobError` or the signal's reason.
//   RUN-ENGINE-5. A child run is an ordinary run with its own id. Programs can view, answer and cancel it directly,
//       even after the parent run has ended.
//   RUN-ENGINE-6. After `forget`, the engine returns no data about the run or its child runs.
//   RUN-ENGINE-7. Messages reach the run in the order in which the engine accepted them. If an unread message is sent
//       again, it keeps its number. Each later view shows whether the message is still unread, and the last view shows
//       whether the engine accepted it. If the order has a digest, views list the ids of the most recently read
//       messages.

import { z } from 'zod';
import { isLongerThan } from '../../values/json.ts';
import { JobError, jobTooLarge, type Job, type JobEnd, type JobRefusal } from './jobs.ts';
import type {
  RunAnswer,
  RunMessage,
  RunOrder,
  RunStep,
  RunTurn,
  RunTurnEnd,
  RunView,
  RunWait,
} from './run-flow.ts';

export type {
  RunAnswer,
  RunBounds,
  RunChild,
  RunDriver,
  RunEntries,
  RunMessage,
  RunNews,
  RunOrder,
  RunStep,
  RunTurn,
  RunTurnEnd,
  RunView,
  RunWait,
  TakenMessage,
} from './run-flow.ts';

/**
 * The number of an accepted message, or the reason for a refusal: the run has ended (`over`), or it has
 * `MAX_UNREAD_MESSAGES` unread messages (`full`).
 */
export type MessageTaken = { readonly nth: number } | { readonly refused: 'over' | 'full' };

/** The maximum number of unread messages for a run. It is limited because every turn contains them. */
export const MAX_UNREAD_MESSAGES = 25;

/** The program's side of an engine that stores and executes runs. */
export interface RunEngine {
  /** The name of the engine, for error messages. */
  readonly name: string;
  /** Starts the run, unless it has already started. */
  start(order: RunOrder): Promise<void>;
  /**
   * The maximum time between two calls to `view`, in milliseconds, for an engine whose `view` does not wait.
   * @defaultValue 1000
   */
  readonly lookMs?: number;
  /**
   * Resolves with the first view that has more turns than `after`. It may also resolve with an earlier view, in which
   * case the caller calls it again.
   */
  view(id: string, after: number, signal: AbortSignal): Promise<RunView>;
  /** Answers a request. Returns false if the request is no longer open. */
  answer(id: string, answer: RunAnswer): Promise<boolean>;
  /** Stores a message for the run, which reads it once. @defaultValue the engine accepts no messages */
  message?(id: string, message: RunMessage): Promise<MessageTaken>;
  /** Cancels the run, unless it has ended. */
  cancel(id: string, reason: string): Promise<void>;
  /**
   * Deletes all data of an ended run and of its child runs, and returns their ids. An unknown run is not an error. For
   * `forgetRun`. @defaultValue the engine deletes the data after its retention time
   * @throws {JobError} `RUN_UNDER_WAY`, with nothing deleted: one of these runs has not ended.
   */
  forget?(id: string): Promise<readonly string[]>;
}

/** Creates the error for a run that cannot be deleted before it ends. */
export function runUnderWay(id: string): JobError {
  const message = `The run ${id} has not ended: cancel it, and delete it then`;
  return new JobError('RUN_UNDER_WAY', message, { retryable: false });
}

/** The worker's side of an engine, which runs the turns. */
export interface RunHandler {
  /**
   * Runs a turn. If the signal aborts with a `JobError` whose code is `CANCELLED`, the run is cancelled and the turn
   * ends with the run's outcome. After any other abort, the turn rejects with the abort's reason, and another worker
   * runs it again.
   */
  turn(turn: RunTurn, signal: AbortSignal): Promise<RunTurnEnd>;
  /** Like a `JobHandler`, runs a step that a turn left to the engine, or refuses it so that another worker runs it. */
  step(step: Job & Pick<RunStep, 'isKept'>, signal: AbortSignal): Promise<JobEnd | JobRefusal>;
  /** Returns whether this process has had the run in memory since the previous turn. @defaultValue it has no run in memory */
  holds?(turn: RunTurn): boolean;
}

/** Returns the end of a turn, with a refusal in place of each step whose body exceeds the engine's limit. */
export function stepsWithin(end: RunTurnEnd, maxBytes: number): RunTurnEnd {
  const isLarge = ({ body = '' }: RunStep): boolean => isLongerThan(body, maxBytes);
  if (!end.steps?.some(isLarge)) return end;
  const steps = end.steps.map((step): RunStep => {
    if (!isLarge(step)) return step;
    const { key, name, once, body = '' } = step;
    const { code, message, retryable } = jobTooLarge(name, body, maxBytes);
    return { key, name, once, refused: { code, message, retryable } };
  });
  return { ...end, steps };
}

const anyObject = z.custom<object>((value) => typeof value === 'object' && value !== null);
const waitSchema: z.ZodType<RunWait> = z.object({
  requestId: z.string(),
  kind: z.enum(['question', 'input']),
  asked: anyObject,
  askedAt: z.number(),
});

/** Validates a view that an engine returned. */
export const runViewSchema: z.ZodType<RunView> = z.object({
  turn: z.number().int().min(0),
  digest: z.string().optional(),
  waiting: z.array(waitSchema),
  children: z.array(z.string()).optional(),
  messages: z
    .object({
      last: z.number(),
      unread: z.array(z.number()),
      read: z.array(z.string()).optional(),
    })
    .optional(),
  outcome: anyObject.nullable(),
});

/** Validates an engine's answer to a message. */
export const messageTakenSchema: z.ZodType<MessageTaken> = z.union([
  z.object({ nth: z.number().int().min(1) }),
  z.object({ refused: z.enum(['over', 'full']) }),
]);
