// The options of a pool of sessions.

import { z } from 'zod';
import { aFunction, check, type ChecksOf } from '../../values/checks.ts';
import { quietly } from '../../values/errors.ts';
import type { Runtime } from '../admission/runtime.ts';
import type { PooledSession } from './pooled-entry.ts';

export interface SessionPoolOptions<S extends PooledSession> {
  /** The runtime of the sessions. Its journal also stores when sleeping sessions must be woken, if it can. */
  readonly runtime: Runtime;
  /** Creates the session with this id, not started yet: with this `sessionId` and `runtime`. */
  readonly open: (sessionId: string) => S;
  /** Time after which an idle, unused session is suspended, in milliseconds. @defaultValue 30_000 */
  readonly idleMs?: number;
  /**
   * The number of awake sessions above which the one that was idle longest is suspended at once.
   * @defaultValue 1000
   */
  readonly maxAwake?: number;
  /**
   * The approximate interval in milliseconds at which the pool looks for sessions that must be awake: the
   * process that suspended them may have died, and sessions that could not be woken are tried again.
   * @defaultValue 30_000
   */
  readonly lookMs?: number;
  /** Called with the errors of a session that is not in use at the moment. */
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
