// Runs on an engine: the engine keeps a run (`runSubagent(…, { id, engine })`) and wakes it, wherever its turns run.
// `test/suites/runs` tests an implementation together with its worker (`RunHandler`).
//
// Invariants
//   RUN-ENGINE-1. An id identifies one run across all processes. `start` starts the run if it does not exist; once the
//       run has ended, its view contains the outcome, for as long as the engine keeps the run. Views contain the digest
//       of the order that started the run.
//   RUN-ENGINE-2. A request's first answer counts; further answers are refused.
//   RUN-ENGINE-3. Views of one run have ascending turn numbers.
//   RUN-ENGINE-4. Every method rejects only with a `JobError` or the signal's reason.
//   RUN-ENGINE-5. A child run is an ordinary run with its own id: programs view, answer and cancel it directly, even
//       after the parent run has ended.
//   RUN-ENGINE-6. After `forget`, the engine returns no data about the run or its child runs.
//   RUN-ENGINE-7. Messages reach the run in the order in which the engine accepted them; a message that is sent again while it
//       is unread has the number of the first one. A later view says whether the message is unread; the last view says whether
//       the engine accepted it at all. If the order has a digest, views list the ids of the messages that were read last.

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
 * The number of a message that the engine keeps for the run; or the refusal: the run has ended (`over`), or has
 * `MAX_UNREAD_MESSAGES` unread messages (`full`).
 */
export type MessageTaken = { readonly nth: number } | { readonly refused: 'over' | 'full' };

/** The maximum number of unread messages that an engine keeps for a run, since every turn contains them. */
export const MAX_UNREAD_MESSAGES = 25;

/** An engine that keeps runs, as a program sees it. */
export interface RunEngine {
  /** The name of the engine in errors. */
  readonly name: string;
  /** Starts the run, unless it has already started. */
  start(order: RunOrder): Promise<void>;
  /** A program's longest pause between two calls of `view`, if `view` does not wait, in milliseconds. @defaultValue 1000 */
  readonly lookMs?: number;
  /** Resolves with the first view that has more turns than `after`, or with an earlier view; the caller then asks again. */
  view(id: string, after: number, signal: AbortSignal): Promise<RunView>;
  /** Answers a request. Returns false if the request is no longer open. */
  answer(id: string, answer: RunAnswer): Promise<boolean>;
  /** Keeps a message for the run, which reads it once. @defaultValue the engine accepts no messages */
  message?(id: string, message: RunMessage): Promise<MessageTaken>;
  /** Cancels the run, unless it has ended. */
  cancel(id: string, reason: string): Promise<void>;
  /**
   * Deletes all data of an ended run and of its child runs; returns their ids. An unknown run is not an error. For
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

/** The end that runs turns. */
export interface RunHandler {
  /**
   * Runs a turn. An abort with a `JobError` of code `CANCELLED` cancels the run, and the turn ends with the run's
   * outcome; after any other abort, the turn rejects with the abort's reason, and runs again elsewhere.
   */
  turn(turn: RunTurn, signal: AbortSignal): Promise<RunTurnEnd>;
  /** Runs a step that a turn has left to the engine, like a `JobHandler`; or refuses it, so that another worker runs it. */
  step(step: Job & Pick<RunStep, 'isKept'>, signal: AbortSignal): Promise<JobEnd | JobRefusal>;
  /** Returns whether this process has had the run in memory since the previous turn. @defaultValue it has no run in memory */
  holds?(turn: RunTurn): boolean;
}

/** Returns a turn's end, with a refusal in place of each step whose body exceeds the engine's limit. */
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

/** Reads a view from an engine. */
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

/** Reads an engine's answer to a message. */
export const messageTakenSchema: z.ZodType<MessageTaken> = z.union([
  z.object({ nth: z.number().int().min(1) }),
  z.object({ refused: z.enum(['over', 'full']) }),
]);
