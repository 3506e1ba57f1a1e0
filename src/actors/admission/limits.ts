// The limits of a session and of a process, and their checks.

import { z } from 'zod';
import { check } from '../../values/checks.ts';
import { readable } from '../../values/plain-checks.ts';

/**
 * The limits of a session or service: how many subagents it may have, how deeply they may be nested, and how long they
 * may wait.
 */
export interface SessionLimits {
  /** The maximum number of subagents in the state `running` at the same time. @defaultValue 10 */
  readonly maxConcurrentPerSession: number;
  /** The maximum number of subagents that have not ended, including waiting ones. @defaultValue 100 */
  readonly maxLivePerSession: number;
  /** The maximum number of subagents over the session's lifetime. @defaultValue 1000 */
  readonly maxTotalPerSession: number;
  /** The maximum depth; a subagent of the lead agent has depth 1. @defaultValue 3 */
  readonly maxDepth: number;
  /** Whether a subagent waits or is refused when no run slot is free. @defaultValue 'queue' */
  readonly whenFull: 'queue' | 'reject';
  /** The maximum total number of pending results, undelivered results and notices. @defaultValue 200 */
  readonly maxDeliveries: number;
  /** The maximum number of schedules that have not ended. @defaultValue 100 */
  readonly maxSchedules: number;
  /** How long a parent may take to answer a subagent's request, in milliseconds. @defaultValue 60000 */
  readonly defaultRequestTimeoutMs: number;
  /** The maximum duration of a wait for subagents, in milliseconds. @defaultValue 300000 */
  readonly defaultAwaitTimeoutMs: number;
  /**
   * How long a result can be looked up after its delivery, in milliseconds; 0 to forget it immediately. @defaultValue
   * 1800000
   */
  readonly stateRetentionMs: number;
  /**
   * The default of `SubagentConfig.inactivityTimeoutMs`: a subagent that shows no activity for this time, in
   * milliseconds, is considered hung; 0 for never. @defaultValue 0
   */
  readonly inactivityTimeoutMs: number;
  /**
   * The interval at which the session looks for hung and expired subagents, in milliseconds; with 0, it looks only when
   * `sweep()` is called.
   * @defaultValue 60000
   */
  readonly sweepIntervalMs: number;
  /**
   * The names of the configurations (or adapters, if the call names one) that may be spawned; empty permits all.
   * @defaultValue []
   */
  readonly allowedAdapters: readonly string[];
  /** The ids of the permitted models, with or without `provider/`; an empty list permits all. @defaultValue [] */
  readonly allowedModels: readonly string[];
}

export const defaultSessionLimits = {
  maxConcurrentPerSession: 10,
  maxLivePerSession: 100,
  maxTotalPerSession: 1000,
  maxDepth: 3,
  whenFull: 'queue',
  maxDeliveries: 200,
  maxSchedules: 100,
  defaultRequestTimeoutMs: 60_000,
  defaultAwaitTimeoutMs: 300_000,
  stateRetentionMs: 1_800_000,
  inactivityTimeoutMs: 0,
  sweepIntervalMs: 60_000,
  allowedAdapters: [],
  allowedModels: [],
} as const satisfies SessionLimits;

/** The maximum number of subagents in the state `running` at the same time, across all sessions of a runtime. */
export const DEFAULT_MAX_TOTAL_ACTIVE = 50;

const count = z.number().int().min(1);
const milliseconds = z.number().positive();
const names = z.array(z.string().min(1));
const schema = z.strictObject({
  maxConcurrentPerSession: count,
  maxLivePerSession: count,
  maxTotalPerSession: count,
  maxDepth: count,
  whenFull: z.enum(['queue', 'reject']),
  maxDeliveries: count,
  maxSchedules: count,
  defaultRequestTimeoutMs: milliseconds,
  defaultAwaitTimeoutMs: milliseconds,
  stateRetentionMs: z.number().min(0),
  inactivityTimeoutMs: z.number().min(0),
  sweepIntervalMs: z.number().min(0),
  allowedAdapters: names,
  allowedModels: names,
});

/** @throws {ConfigurationError} if a limit is unknown or out of range. */
export function sessionLimits(limits: Partial<SessionLimits> = {}): SessionLimits {
  return check('limits', schema, { ...defaultSessionLimits, ...readable('limits', limits) });
}
