// How much a session, and a process, may take on. Checked at construction.

import { z } from 'zod';
import { ConfigurationError } from '../../errors.ts';

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
}

export const defaultSessionLimits = {
  maxConcurrentPerSession: 10,
  maxLivePerSession: 100,
  maxTotalPerSession: 1000,
  maxDepth: 3,
  whenFull: 'queue',
  maxDeliveries: 200,
} as const satisfies SessionLimits;

/** Subagents in `running` at the same time, in all sessions of a runtime. */
export const DEFAULT_MAX_TOTAL_ACTIVE = 50;

const count = z.number().int().min(1);
const schema = z.strictObject({
  maxConcurrentPerSession: count,
  maxLivePerSession: count,
  maxTotalPerSession: count,
  maxDepth: count,
  whenFull: z.enum(['queue', 'reject']),
  maxDeliveries: count,
});

/** @throws {ConfigurationError} for a limit that is unknown or no whole number above 0. */
export function sessionLimits(limits: Partial<SessionLimits> = {}): SessionLimits {
  const parsed = schema.safeParse({ ...defaultSessionLimits, ...limits });
  if (parsed.success) return parsed.data;
  throw new ConfigurationError('INVALID_OPTION', `limits: ${z.prettifyError(parsed.error)}`);
}
