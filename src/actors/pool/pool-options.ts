// What a pool of sessions is given.

import { z } from 'zod';
import { aFunction, check, type ChecksOf } from '../../values/checks.ts';
import { quietly } from '../../values/errors.ts';
import type { Runtime } from '../admission/runtime.ts';
import type { PooledSession } from './guest.ts';

export interface SessionPoolOptions<S extends PooledSession> {
  /** That of the sessions. Its journal also keeps when those who sleep must be looked at, if it can. */
  readonly runtime: Runtime;
  /** Makes the session of this id, which is not started yet: with this `sessionId` and `runtime`. */
  readonly open: (sessionId: string) => S;
  /** Who is idle and not used for so long is put away, in milliseconds. @defaultValue 30_000 */
  readonly idleMs?: number;
  /** When more are awake, whoever has been idle for longest is put away at once. @defaultValue 1000 */
  readonly maxAwake?: number;
  /**
   * About every so many milliseconds the pool looks for sessions that must be awake: a process that put
   * them away may have died, and what could not be woken is tried again. @defaultValue 30_000
   */
  readonly lookMs?: number;
  /** Learns of what went wrong with a session that nobody is using at the moment. */
  readonly onError?: (error: unknown, where: string) => void;
}

const optionsSchema = z.strictObject({
  runtime: z.looseObject({ environment: z.looseObject({}), journal: z.looseObject({}) }),
  open: z.custom((open) => typeof open === 'function', 'expected a function'),
  idleMs: z.number().nonnegative().optional(),
  maxAwake: z.union([z.int().positive(), z.literal(Infinity)]).optional(),
  lookMs: z.number().positive().optional(),
  onError: aFunction.optional(),
} satisfies ChecksOf<SessionPoolOptions<PooledSession>>);

/** @throws {ConfigurationError} `INVALID_OPTION` */
export function checkedPool<S extends PooledSession>(
  options: SessionPoolOptions<S>,
): Required<SessionPoolOptions<S>> {
  check('createSessionPool(options)', optionsSchema, options);
  const { runtime, open, onError } = options;
  const { idleMs = 30_000, maxAwake = 1000, lookMs = 30_000 } = options;
  return {
    runtime,
    open,
    idleMs,
    maxAwake,
    lookMs,
    onError: quietly(onError),
  };
}
