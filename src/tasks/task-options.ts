// The options of a manager of tasks, and how they are checked.

import { z } from 'zod';
import type { Clock } from '../actors/ports/environment.ts';
import type { Relay, RelayTask } from '../actors/ports/relay.ts';
import { aFunction, anObject, type ChecksOf } from '../values/checks.ts';

/** The limits of a task. A task that reaches one is stopped, and fails with `RELAY_LIMIT`. */
export interface TaskCaps {
  /** Time at work, in milliseconds: neither in the queue, nor while the user is asked. */
  readonly timeMs?: number;
  /** Tokens that the agent reports. */
  readonly tokens?: number;
  /** In the unit of `price`, or of the costs that the agent reports. */
  readonly cost?: number;
}

/** How one task is to be treated. */
export interface TaskPlan {
  /** Tasks of one topic follow each other, in one conversation with the agent. Absent: one of its own. */
  readonly topic?: string;
  /** The resources that it writes, such as `calendar`: tasks that write the same follow each other. @defaultValue [] */
  readonly writes?: readonly string[];
  /** Another agent, folder or environment for this task; its capabilities must be the same. */
  readonly relay?: Relay;
  /** @defaultValue the caps of the manager */
  readonly caps?: TaskCaps;
}

/** The options of `taskManager`. */
export interface TaskManagerOptions {
  /** The agent that does the tasks. */
  readonly relay: Relay;
  /**
   * Returns how a task is to be treated; called again when it is taken up. `latestTopic` is the topic of the session's
   * task before it, until its thread is given up. @defaultValue none has a topic or locks
   */
  readonly plan?: (task: RelayTask, latestTopic?: string) => TaskPlan;
  /** @defaultValue 10 */
  readonly maxRunning?: number;
  /** The time that a task waits for its turn before it fails, in milliseconds. @defaultValue no limit */
  readonly queueTimeoutMs?: number;
  /** The time that a thread is kept after its last task, in milliseconds. @defaultValue 600000 */
  readonly threadTtlMs?: number;
  /** The oldest ones are given up. @defaultValue 100 */
  readonly maxThreads?: number;
  /** How often an empty answer is asked for again. @defaultValue 1 */
  readonly emptyRetries?: number;
  /**
   * Reads a question for the user in the words with which a turn ended: the user is asked, and the answer is the
   * next prompt. @defaultValue words are a result
   */
  readonly questionIn?: (words: string) => string | null;
  /** @defaultValue none */
  readonly caps?: TaskCaps;
  /** Returns the price of tokens. @defaultValue the costs that the agent reports */
  readonly price?: (used: {
    readonly inputTokens: number;
    readonly outputTokens: number;
  }) => number;
  /** @defaultValue the time of the system */
  readonly clock?: Clock;
}

const count = z.number().int().min(0);
const amount = z.number().min(0).optional();
const milliseconds = z.number().min(1).optional();
const aRelay = anObject('a relay: acpRelay(…)', 'start');
const capsSchema = z
  .strictObject({ timeMs: milliseconds, tokens: amount, cost: amount } satisfies ChecksOf<TaskCaps>)
  .optional();
export const planSchema = z.strictObject({
  topic: z.string().min(1).max(1_000).optional(),
  writes: z.array(z.string().min(1).max(1_000)).max(100).optional(),
  relay: aRelay.optional(),
  caps: capsSchema,
} satisfies ChecksOf<TaskPlan>);
export const managerOptionsSchema = z.strictObject({
  relay: aRelay,
  plan: aFunction.optional(),
  maxRunning: z.number().int().min(1).optional(),
  queueTimeoutMs: milliseconds,
  threadTtlMs: milliseconds,
  maxThreads: count.optional(),
  emptyRetries: count.max(10).optional(),
  questionIn: aFunction.optional(),
  caps: capsSchema,
  price: aFunction.optional(),
  clock: anObject('a clock', 'now').optional(),
} satisfies ChecksOf<TaskManagerOptions>);
