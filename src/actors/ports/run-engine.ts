// Runs on an engine: the engine keeps a run (`runSubagent(…, { id, engine })`), wherever its turns are done, and wakes it.
// `test/suites/runs` tests an implementation together with its worker (`RunHandler`).
//
// Invariants
//   RUN-ENGINE-1. One id is one run, in however many processes: begun if there is none, and its view with the outcome once
//       it has ended, for as long as the engine keeps it. Its views have the digest of the order that began it.
//   RUN-ENGINE-2. Of the answers to one request, the first counts; another one is refused.
//   RUN-ENGINE-3. Views of one run have ascending turns.
//   RUN-ENGINE-4. Every method rejects with a `JobError` or the reason of the signal, and with nothing else.
//   RUN-ENGINE-5. A child run is a run like any other under its id: its view, answers and cancel are its own, and reach it
//       whatever has become of the run that it works for.
//   RUN-ENGINE-6. After `forget`, the engine gives nothing of the run and of its child runs to anybody.
//   RUN-ENGINE-7. Messages reach the run in the order in which they were taken; one that is sent again while it is unread has the
//       number of the first. A view after that number says whether it is unread; the last one, whether it was taken at all. An
//       order with a digest has the ids of the messages that were read last in its views.

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
 * The number of a message that the engine keeps for the run, in its order; or why it does not: the run has ended (`over`), or has
 * `MAX_UNREAD_MESSAGES` that it has not read (`full`).
 */
export type MessageTaken = { readonly nth: number } | { readonly refused: 'over' | 'full' };

/** The unread messages that an engine keeps for a run: every turn carries them. */
export const MAX_UNREAD_MESSAGES = 25;

/** An engine that keeps runs, as a program sees it. */
export interface RunEngine {
  /** Names the engine in errors. */
  readonly name: string;
  /** Begins the run, unless it was begun. */
  start(order: RunOrder): Promise<void>;
  /** The longest pause of a program between two looks, where `view` does not wait, in milliseconds. @defaultValue 1000 */
  readonly lookMs?: number;
  /** Resolves with the first view that has more turns than `after`, or with an earlier one: then it is asked again. */
  view(id: string, after: number, signal: AbortSignal): Promise<RunView>;
  /** Answers a request. Returns false for a request that is not open any more. */
  answer(id: string, answer: RunAnswer): Promise<boolean>;
  /** Keeps a message for the run, which reads it once. @defaultValue the engine takes no messages */
  message?(id: string, message: RunMessage): Promise<MessageTaken>;
  /** Cancels the run, unless it has ended. */
  cancel(id: string, reason: string): Promise<void>;
  /**
   * Deletes what is kept of a run that has ended, and of its child runs; returns their ids. An unknown run is no error.
   * For `forgetRun`. @defaultValue the engine deletes it after a time of its own
   * @throws {JobError} `RUN_UNDER_WAY`, with nothing deleted: one of them has not ended.
   */
  forget?(id: string): Promise<readonly string[]>;
}

/** The error for a run that cannot be deleted yet. */
export function runUnderWay(id: string): JobError {
  const message = `The run ${id} has not ended: cancel it, and delete it then`;
  return new JobError('RUN_UNDER_WAY', message, { retryable: false });
}

/** The end where turns are done. */
export interface RunHandler {
  /**
   * Does a turn. An abort with a `JobError` of code `CANCELLED` cancels the run, and the turn ends with its outcome;
   * with another reason, the turn rejects with that, and is done again elsewhere.
   */
  turn(turn: RunTurn, signal: AbortSignal): Promise<RunTurnEnd>;
  /** Does a step that a turn has left to the engine, as a `JobHandler` does a job; or refuses it, for another worker to do. */
  step(step: Job & Pick<RunStep, 'isKept'>, signal: AbortSignal): Promise<JobEnd | JobRefusal>;
  /** Tells whether this process has kept the run since the turn before. @defaultValue it keeps none */
  holds?(turn: RunTurn): boolean;
}

/** Returns the end of a turn with a refusal in place of each step whose body is larger than the engine keeps. */
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

/** Reads a view as an engine gives it back. */
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

/** Reads what an engine says of a message. */
export const messageTakenSchema: z.ZodType<MessageTaken> = z.union([
  z.object({ nth: z.number().int().min(1) }),
  z.object({ refused: z.enum(['over', 'full']) }),
]);
