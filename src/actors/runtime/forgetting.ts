// Deletes all stored data for a session or run, or for every session that a retention policy does not keep.
//
// Owns:     the order of the deletions.
// Does not: document what each store leaves behind (see docs/privacy.md).
//
//   FORGETTING-1. The journal is deleted last, so that a failed deletion can be repeated for as long as the journal
//       lists the session.
//   FORGETTING-2. A session that is in another process's memory is not deleted.

import { z } from 'zod';
import { aFunction, anObject, check, scopeName, type ChecksOf } from '../../values/checks.ts';
import { ConfigurationError, isError } from '../../values/errors.ts';
import { wallTime, type Clock } from '../ports/environment.ts';
import type { Jobs } from '../ports/jobs.ts';
import type { Journal, ScopeSummary } from '../ports/journal.ts';
import type { MemoryStore } from '../ports/memory-store.ts';
import type { RunEngine } from '../ports/run-engine.ts';
import type { WorkingMemory } from '../ports/working-memory.ts';

/** The stores from which `forgetSession` deletes a session. */
export interface ForgetStores {
  /** A journal with `forget`, which all of Offstage's journals have. */
  readonly journal: Journal;
  /** The working memory from which the session's entries are deleted. @defaultValue none */
  readonly workingMemory?: WorkingMemory;
  /** The memory and the scope that contain the facts to delete: those whose `source` is the session. */
  readonly memory?: { readonly store: MemoryStore; readonly scope: string };
  /** The engine that ran the session's steps; its `forget` also deletes their claims. @defaultValue none */
  readonly jobs?: Jobs;
  /** Deletes the app's own data about the session: files, rows, recordings. Called before the journal's `forget`. */
  readonly also?: (sessionId: string) => void | Promise<void>;
}

/** A policy that determines, by age and number, which sessions `applyRetention` keeps. It forgets all others. */
export interface RetentionPolicy {
  /** The age of a session's last entry, in milliseconds, at which the session is forgotten. @defaultValue Infinity */
  readonly maxAgeMs?: number;
  /** The maximum number of sessions to keep; those with the latest entries are kept. @defaultValue Infinity */
  readonly maxSessions?: number;
  /** Returns whether a session is kept regardless of its age, for example because a pool has it in memory. */
  readonly keep?: (session: ScopeSummary) => boolean;
}

/** The stores from which `applyRetention` deletes sessions, and the clock that determines their age. */
export interface RetentionStores extends Omit<ForgetStores, 'memory'> {
  /** The clock; a session's age is the time since its last entry. */
  readonly clock: Clock;
  /** Returns the memory that contains the session's facts, if any. */
  readonly memoryOf?: (sessionId: string) => ForgetStores['memory'];
}

const forgettingJobs = anObject(
  'jobs that can be deleted, with forget(): restateJobs({ admin, … }), temporalJobs(…)',
  'run',
  'forget',
);
const method = {
  journal: z.looseObject({ append: aFunction, read: aFunction, forget: aFunction }),
};
const forgetShape = {
  ...method,
  workingMemory: z.looseObject({ forget: aFunction }).optional(),
  jobs: forgettingJobs.optional(),
  also: aFunction.optional(),
};
const memorySchema = z.strictObject({
  store: z.looseObject({ facts: aFunction, forget: aFunction }),
  scope: z.string().min(1),
});
const forgetSchema = z.strictObject({
  ...forgetShape,
  memory: memorySchema.optional(),
} satisfies ChecksOf<ForgetStores>);
const retentionSchema = z.strictObject({
  ...forgetShape,
  clock: z.looseObject({ now: aFunction }),
  memoryOf: aFunction.optional(),
} satisfies ChecksOf<RetentionStores>);
const policySchema = z.strictObject({
  maxAgeMs: z.union([z.number().nonnegative(), z.literal(Infinity)]).optional(),
  maxSessions: z.union([z.int().nonnegative(), z.literal(Infinity)]).optional(),
  keep: aFunction.optional(),
} satisfies ChecksOf<RetentionPolicy>);
const sessionSchema = z.string().min(1);

/**
 * Permanently deletes a session: its working memory, the facts learned in it, its jobs on an engine, the data that
 * `also` deletes, its journal and its wake time. An unknown session is not an error. If the session is running in this
 * process, suspend it first.
 * @throws {ConfigurationError} `INVALID_ARGUMENT`.
 * @throws {CapacityError} `SCOPE_IN_USE`: another process has the session.
 * @throws {JobError} if the engine is unreachable or refuses; then neither `also` nor the journal is called.
 */
export async function forgetSession(sessionId: string, stores: ForgetStores): Promise<void> {
  check('forgetSession(sessionId, stores)', sessionSchema, sessionId, 'INVALID_ARGUMENT');
  check('forgetSession(sessionId, stores)', forgetSchema, stores, 'INVALID_ARGUMENT');
  const { journal, workingMemory, memory, jobs, also } = stores;
  // FORGETTING-2
  await journal.claim?.(sessionId);
  try {
    await workingMemory?.forget(sessionId);
    if (memory) await forgetFacts(memory, sessionId);
    await jobs?.forget?.(`${sessionId}/`);
    await also?.(sessionId);
    await journal.forget?.(sessionId);
  } finally {
    await journal.release?.(sessionId);
  }
}

/** The stores from which `forgetRun` deletes a run. */
export interface ForgetRunStores {
  /** The engine that stores the run and implements `forget`: `restateRuns({ admin, … })`, `temporalRuns(…)`. */
  readonly engine: RunEngine;
  /** The engine that ran the steps of the run's turns and has `forget`. @defaultValue none: the steps are kept */
  readonly jobs?: Jobs;
}

const runStoresSchema = z.strictObject({
  engine: anObject(
    'an engine whose runs can be deleted, with forget(): restateRuns({ admin, … }), temporalRuns(…)',
    'view',
    'forget',
  ),
  jobs: forgettingJobs.optional(),
} satisfies ChecksOf<ForgetRunStores>);

/**
 * Permanently deletes a run on an engine, including the subagents that were separate runs, their steps and their
 * claims. An unknown run is not an error. If the run has not ended, cancel it first. A failed call may be repeated.
 * @throws {ConfigurationError} `INVALID_ARGUMENT`.
 * @throws {JobError} `RUN_UNDER_WAY`: the run, or a subagent that it abandoned, has not ended; or the engine is
 *   unreachable or refuses.
 */
export async function forgetRun(id: string, stores: ForgetRunStores): Promise<void> {
  check('forgetRun(id, stores)', scopeName, id, 'INVALID_ARGUMENT');
  check('forgetRun(id, stores)', runStoresSchema, stores, 'INVALID_ARGUMENT');
  const { engine, jobs } = stores;
  // The engine's `forget` throws for a run that has not ended.
  const ids = (await engine.forget?.(id)) ?? [];
  for (const one of [id, ...beside(id, ids)]) await jobs?.forget?.(`${one}/`);
}

/**
 * Forgets the sessions that the policy does not keep, and returns their ids. Call it periodically, from one process.
 * Skips sessions that another process has in memory; a later call can delete them.
 * @throws {ConfigurationError} `INVALID_ARGUMENT`, including when the journal cannot list its scopes.
 */
export async function applyRetention(
  stores: RetentionStores,
  policy: RetentionPolicy,
): Promise<readonly string[]> {
  check('applyRetention(stores, policy)', retentionSchema, stores, 'INVALID_ARGUMENT');
  check('applyRetention(stores, policy)', policySchema, policy, 'INVALID_ARGUMENT');
  const { clock, memoryOf, ...rest } = stores;
  const { maxAgeMs = Infinity, maxSessions = Infinity, keep } = policy;
  const sessions = await rest.journal.scopes?.();
  if (!sessions)
    throw new ConfigurationError(
      'INVALID_ARGUMENT',
      'applyRetention(stores, policy): expected `stores.journal` to have `scopes`',
    );
  const oldest = wallTime(clock) - maxAgeMs;
  const forgotten: string[] = [];
  for (const [at, session] of sessions.toSorted((a, b) => b.lastAt - a.lastAt).entries()) {
    const isKept = at < maxSessions && session.lastAt >= oldest;
    if (isKept || keep?.(session) === true) continue;
    const memory = memoryOf?.(session.scope);
    try {
      await forgetSession(session.scope, { ...rest, ...(memory && { memory }) });
      forgotten.push(session.scope);
    } catch (error) {
      // FORGETTING-2
      if (!isError(error) || !('code' in error) || error.code !== 'SCOPE_IN_USE') throw error;
    }
  }
  return forgotten;
}

/** Returns the ids other than this run's own id and those of the runs below it. */
function beside(id: string, ids: readonly string[]): readonly string[] {
  return ids.filter((one) => one !== id && !one.startsWith(`${id}/`));
}

/** Deletes all facts whose source is the session. */
async function forgetFacts(
  { store, scope }: NonNullable<ForgetStores['memory']>,
  sessionId: string,
): Promise<void> {
  const facts = await store.facts({ scope, limit: Number.MAX_SAFE_INTEGER });
  for (const { id, source } of facts) if (source === sessionId) await store.forget({ scope, id });
}
