// The options of a task manager and their checks.

import { z } from 'zod';
import type { Clock } from '../actors/ports/environment.ts';
import type { Relay, RelayTask } from '../actors/ports/relay.ts';
import { aFunction, anObject, type ChecksOf } from '../values/checks.ts';

/** A task's limits. A task that reaches a limit is stopped and fails with `RELAY_LIMIT`. */
export interface TaskCaps {
  /** Working time in milliseconds, without the time in the queue and the time during which the user is being asked. */
  readonly timeMs?: number;
  /** The tokens that the agent reports. */
  readonly tokens?: number;
  /** The costs, in the unit of `price` or of the costs that the agent reports. */
  readonly cost?: number;
}

/** The rules for one task. */
export interface TaskPlan {
  /**
   * Tasks of the same topic run one after another, in one conversation with the agent. A task without a topic has its
   * own conversation.
   */
  readonly topic?: string;
  /**
   * The resources that the task writes to, such as `calendar`. Tasks that write to the same resource run one after
   * another.
   * @defaultValue []
   */
  readonly writes?: readonly string[];
  /** Another agent, folder or environment for this task. Its capabilities must be the same. */
  readonly relay?: Relay;
  /** @defaultValue the manager's caps */
  readonly caps?: TaskCaps;
}

/** The options of `taskManager`. */
export interface TaskManagerOptions {
  /** The agent that performs the tasks. */
  readonly relay: Relay;
  /**
   * Returns the rules for a task. It is called again when the task is resumed. `latestTopic` is the topic of the
   * session's previous task, until its thread expires. @defaultValue no topics or locks
   */
  readonly plan?: (task: RelayTask, latestTopic?: string) => TaskPlan;
  /** @defaultValue 10 */
  readonly maxRunning?: number;
  /** The maximum time in the queue, in milliseconds. A task that waits longer fails. @defaultValue no limit */
  readonly queueTimeoutMs?: number;
  /** How long a thread is stored after its last task, in milliseconds. @defaultValue 600000 */
  readonly threadTtlMs?: number;
  /** The maximum number of threads. The least recently used threads are dropped. @defaultValue 100 */
  readonly maxThreads?: number;
  /** The number of times that the prompt is repeated after an empty answer. @defaultValue 1 */
  readonly emptyRetries?: number;
  /**
   * Returns the question for the user if the text at the end of a turn contains one, or null. The user is then asked,
   * and the answer becomes the next prompt. @defaultValue none: the text is a result
   */
  readonly questionIn?: (words: string) => string | null;
  /** @defaultValue none */
  readonly caps?: TaskCaps;
  /** Returns the price of a number of tokens. @defaultValue the costs that the agent reports */
  readonly price?: (used: {
    readonly inputTokens: number;
    readonly outputTokens: number;
  }) => number;
  /** @defaultValue the system time */
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
