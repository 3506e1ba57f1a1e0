// How much a session, and a process, may take on. Checked at construction.

import { z } from 'zod';
import { check, readable } from '../../values/checks.ts';

export interface SessionLimits {
  /** Subagents in `running` at the same time. @defaultValue 10 */
  readonly maxConcurrentPerSession: number;
  /** Subagents that have not ended, waiting ones included. @defaultValue 100 */
  readonly maxLivePerSession: number;
  /** Subagents over the whole life of the session. @defaultValue 1000 */
  readonly maxTotalPerSession: number;
  /** A subagent of the lead agent has depth 1. @defaultValue 3 */
  readonly maxDepth: number;
  /** When no run slot is free: wait for one, or refuse. @defaultValue 'queue' */
  readonly whenFull: 'queue' | 'reject';
  /** Results that wait to be heard or are still being made, and notices. @defaultValue 200 */
  readonly maxDeliveries: number;
  /** Time that a parent has to answer a subagent, in milliseconds. @defaultValue 60000 */
  readonly defaultRequestTimeoutMs: number;
  /** Time that a wait for a subagent takes at most, in milliseconds. @defaultValue 300000 */
  readonly defaultAwaitTimeoutMs: number;
  /** A delivered result can be looked up so long; 0: not at all. @defaultValue 1800000 */
  readonly stateRetentionMs: number;
  /** For a configuration without its own: hung after so long without a sign of life; 0: never. @defaultValue 0 */
  readonly inactivityTimeoutMs: number;
  /** How often to look for who is hung and what is forgotten; 0: only on `sweep()`. @defaultValue 60000 */
  readonly sweepIntervalMs: number;
  /** Names of configurations, or of adapters where the call has one; empty: all. @defaultValue [] */
  readonly allowedAdapters: readonly string[];
  /** Ids of models, alone or after `provider/`; empty: all. @defaultValue [] */
  readonly allowedModels: readonly string[];
}

export const defaultSessionLimits = {
  maxConcurrentPerSession: 10,
  maxLivePerSession: 100,
  maxTotalPerSession: 1000,
  maxDepth: 3,
  whenFull: 'queue',
  maxDeliveries: 200,
  defaultRequestTimeoutMs: 60_000,
  defaultAwaitTimeoutMs: 300_000,
  stateRetentionMs: 1_800_000,
  inactivityTimeoutMs: 0,
  sweepIntervalMs: 60_000,
  allowedAdapters: [],
  allowedModels: [],
} as const satisfies SessionLimits;

/** Subagents in `running` at the same time, in all sessions of a runtime. */
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
  defaultRequestTimeoutMs: milliseconds,
  defaultAwaitTimeoutMs: milliseconds,
  stateRetentionMs: z.number().min(0),
  inactivityTimeoutMs: z.number().min(0),
  sweepIntervalMs: z.number().min(0),
  allowedAdapters: names,
  allowedModels: names,
});

/** @throws {ConfigurationError} for a limit that is unknown or out of range. */
export function sessionLimits(limits: Partial<SessionLimits> = {}): SessionLimits {
  return check('limits', schema, { ...defaultSessionLimits, ...readable('limits', limits) });
}
