// A session's schedules: the times at which messages are delivered or tasks are started.
//
//   schedule() ─▶ schedule.set ─▶ waits ─▶ deadline.schedule (with the next time) ─▶ notice | a subagent
//
// Owns:     the options of a schedule, the calendar (time zones, cron), and the policy for missed times.
// Does not: decide when a schedule is waiting, due or over (its machine does), or when messages are delivered (outbox).
//
// Invariants
//   SCHEDULES-1. The entry for a due time contains the following due time, so that folding needs no clock, calendar or
//       time zone data.
//   SCHEDULES-2. The next time is always later than the due one, even if the clock was set back.
//   SCHEDULES-3. Each due time starts exactly one subagent for its task, even if the process dies before the start is
//       in the journal.

import { Cron } from 'croner';
import { z } from 'zod';
import { check, checkLength, scopeName } from '../../../values/checks.ts';
import { CapacityError, ConfigurationError, messageOf } from '../../../values/errors.ts';
import { callKey } from '../../../values/json.ts';
import { ownValue } from '../../../values/own-value.ts';
import { withoutUndefined } from '../../../values/without-undefined.ts';
import type { SubagentConfig } from '../../contracts/config.ts';
import type { ScheduleRecord } from '../../contracts/records.ts';
import { THE_LEAD } from '../../contracts/service-types.ts';
import type { EventFor } from '../../contracts/session-protocol.ts';
import type { ScheduleView } from '../../contracts/session-views.ts';
import type { LeadSession } from '../lead/lead-agents.ts';
import { localTime } from '../lead/reminders.ts';
import { dueNotice, type SessionRecords } from '../state/session-records.ts';

/** An occurrence that is later than this counts as missed. */
const LATE_MS = 60_000;
/** If more occurrences than this were missed, even `all` makes up for only one. */
const MAX_MISSED = 100;
const MIN_EVERY_MS = 1000;
/** The latest time that a date can represent. */
const LAST_MS = 8.64e15;
const INVALID = 'INVALID_ARGUMENT';

export const timeZoneName = z.string().refine((timeZone) => {
  try {
    return localTime(0, timeZone) !== '';
  } catch {
    return false;
  }
}, 'expected a time zone such as "Europe/Vienna"');

/** Needed because the library would interpret 30 February as 2 March. */
function isDay(at: string): boolean {
  const day = at.slice(0, 10);
  const read = new Date(`${day}T00:00Z`);
  return !Number.isNaN(read.getTime()) && read.toISOString().startsWith(day);
}

const words = z.string().refine((text) => text.trim() !== '', 'expected words');
const hasOne = (...given: readonly unknown[]): boolean =>
  given.filter((one) => one !== undefined).length === 1;
const shape = z
  .strictObject({
    key: scopeName,
    at: z
      .union([
        z.number().min(0).max(LAST_MS),
        z.string().max(100).refine(isDay, 'expected a time such as "2026-12-24T18:00"'),
      ])
      .optional(),
    everyMs: z.number().min(MIN_EVERY_MS).max(LAST_MS).optional(),
    // The library parses a string with a colon as a single time.
    cron: z
      .string()
      .max(200)
      .regex(/^[^:]*$/, 'expected a pattern such as "0 9 * * MON"')
      .optional(),
    timeZone: timeZoneName.optional(),
    say: words.optional(),
    task: z.strictObject({ subagent: z.string(), task: words }).optional(),
    missed: z.enum(['once', 'all', 'skip']).optional(),
  })
  .refine(({ at, everyMs, cron }) => hasOne(at, everyMs, cron), 'expected one of at, everyMs, cron')
  .refine(({ say, task }) => hasOne(say, task), 'expected one of say, task');

/** A schedule that an app sets. It has exactly one of `at`, `everyMs` and `cron`, and one of `say` and `task`. */
interface ScheduleOptions extends Partial<Omit<ScheduleView, 'key' | 'dueAt' | 'state'>> {
  /** The name of the schedule in this session. Another schedule with the same key replaces this one. */
  readonly key: string;
  /** The time, in milliseconds since 1970 or as `2026-12-24T18:00` in the time zone. */
  readonly at?: number | string;
}

/** The schedules of a session. */
export interface Schedules {
  set(options: ScheduleOptions): Promise<{ key: string; dueAt: number; changed: boolean }>;
  /** Resolves with true if there was such a schedule. */
  cancel(key: string): Promise<boolean>;
  /** Returns the next due time of a schedule, or undefined if the schedule has ended. */
  dueAtOf(key: string): number | undefined;
  /** Updates the view of a changed schedule, and removes a schedule that has ended. */
  changed(key: string): void;
  /** Starts the task that is due. */
  start(key: string): void;
}

/** `timeZone`: the default time zone of a schedule. */
export function schedulesOf(
  session: LeadSession & { readonly configs: Readonly<Record<string, SubagentConfig>> },
  { maxSchedules, timeZone: zone }: { maxSchedules: number; timeZone: string },
): Schedules {
  const { records, unit, host, projection } = session;
  /** The keys of schedules that are being set but are not in the journal yet. */
  const beingSet = new Set<string>();
  const dueAtOf = (key: string): number | undefined => {
    const state = unit.schedules.of(key);
    return state?.status === 'active' ? state.context.dueAt : undefined;
  };

  function checkActive(where: string): void {
    if (!unit.unit.isPaused && !unit.unit.disposed) return unit.unit.checkRoom();
    const message = `${where}: expected a session that is started and not over, it is ${projection.connection}`;
    throw new ConfigurationError('SESSION_NOT_ACTIVE', message);
  }

  function checked(options: ScheduleOptions): ScheduleRecord {
    const where = 'schedule(options)';
    const { at, timeZone = zone, missed = 'once', ...rest } = check(where, shape, options, INVALID);
    checkLength(where, rest.say ?? rest.task?.task ?? '');
    const invalid = (why: string) => new ConfigurationError(INVALID, `${where}: ${why}`);
    if (rest.task && !ownValue(session.configs, rest.task.subagent))
      throw invalid(
        `task.subagent: expected one of ${JSON.stringify(Object.keys(session.configs))}, got "${rest.task.subagent}"`,
      );
    const now = host.environment.clock.now();
    const set = { ...withoutUndefined(rest), timeZone, missed, dueAt: now };
    let dueAt: number | null;
    try {
      dueAt =
        typeof at === 'string' ? timeAfter({ ...set, cron: at }, 0) : (at ?? timeAfter(set, now));
    } catch (error) {
      throw invalid(messageOf(error));
    }
    if (dueAt === null) throw invalid(`expected a time that comes, got "${at ?? rest.cron}"`);
    if (dueAt > now) return { ...set, dueAt };
    const message = `${where}: expected a later time than ${localTime(now, timeZone)}, got ${localTime(dueAt, timeZone)}`;
    throw new ConfigurationError('TIME_PASSED', message);
  }

  return {
    async set(options) {
      checkActive('schedule(options)');
      const set = checked(options);
      const { key, dueAt } = set;
      const known = records.schedules.get(key);
      const isKnown = known && contentOf(known) === contentOf(set);
      const before = isKnown ? dueAtOf(key) : undefined;
      if (before !== undefined) return { key, dueAt: before, changed: false };
      const keys = new Set([...records.schedules.keys(), ...beingSet]);
      if (keys.size >= maxSchedules && !keys.has(key)) {
        const message = `The session has ${keys.size} schedules: limits.maxSchedules is ${maxSchedules}`;
        throw new CapacityError('TOO_MANY_SCHEDULES', message);
      }
      beingSet.add(key);
      session.receive('schedules', { type: 'schedule.set', schedule: set });
      await unit.unit.whenHandled().finally(() => beingSet.delete(key));
      return { key, dueAt, changed: true };
    },
    async cancel(key) {
      check('unschedule(key)', scopeName, key, INVALID);
      checkActive('unschedule(key)');
      if (dueAtOf(key) === undefined) return false;
      session.receive(`schedule:${key}`, { type: 'schedule.cancelled' });
      await unit.unit.whenHandled();
      return true;
    },
    dueAtOf,
    changed(key) {
      const record = records.schedules.get(key);
      const state = unit.schedules.of(key);
      if (!record || !state) return;
      const dueAt = dueAtOf(key) ?? null;
      const schedule: ScheduleView = { ...record, dueAt, state: state.value };
      projection.emit({ type: 'schedule.changed', schedule });
      if (dueAt !== null) return;
      records.schedules.delete(key);
      unit.schedules.forget(key);
    },
    start(key) {
      const { task } = records.schedules.get(key) ?? {};
      const dueAt = dueAtOf(key);
      if (dueAt === undefined) return;
      let failure;
      try {
        failure = task && startTask(task, `${session.id}:${key}@${dueAt}`);
      } catch (error) {
        failure = { code: 'INTERNAL', message: messageOf(error) };
      }
      // The next process starts the task.
      if (failure?.code === 'SESSION_CLOSED') return;
      const text = `The scheduled task ${task?.subagent} was not started: ${failure?.message}`;
      if (failure) session.receive('notices', dueNotice(key, text, { dueAt }));
      // SCHEDULES-3: the subagent is written to the journal first. A crash between the two entries therefore does not
      // lose the task.
      const started = { type: 'schedule.started', dueAt } as const;
      void session.tree.whenHandled().then(
        () => session.receive(`schedule:${key}`, started),
        () => {},
      );
    },
  };

  /**
   * Starts the task, unless an earlier process has already started it (SCHEDULES-3). Returns the failure if the task
   * could not be started.
   */
  function startTask(
    { subagent: toolName, task: description }: NonNullable<ScheduleRecord['task']>,
    idempotencyKey: string,
  ) {
    const config = ownValue(session.configs, toolName);
    if (!config) return { code: 'NOT_FOUND', message: 'its configuration no longer exists' };
    const task = { toolName, args: {}, description };
    const receipt = session.tree.spawn({ config, task, caller: THE_LEAD, idempotencyKey });
    return receipt.status === 'accepted' ? undefined : receipt.error;
  }
}

/** Returns the schedule's first time after `after`, or null if there is none. */
export function timeAfter(
  { dueAt, everyMs, cron, timeZone: timezone }: Omit<ScheduleRecord, 'key' | 'missed'>,
  after: number,
): number | null {
  if (everyMs !== undefined)
    return dueAt + Math.max(0, Math.floor((after - dueAt) / everyMs) + 1) * everyMs;
  if (cron === undefined) return null;
  return new Cron(cron, { timezone, paused: true }).nextRun(new Date(after))?.getTime() ?? null;
}

/** Adds the schedule's next time to the event for a due time. Missed times may be skipped (SCHEDULES-1). */
export function withNextTime(
  { schedules }: SessionRecords,
  key: string,
  event: EventFor<`schedule:${string}`> & {
    readonly type: 'deadline.schedule';
    readonly at: number;
  },
): EventFor<`schedule:${string}`> & { readonly at: number } {
  const schedule = schedules.get(key);
  if (!schedule) return event;
  const { dueAt, at } = event;
  const { missed, timeZone, task } = schedule;
  let next = timeAfter(schedule, dueAt);
  // SCHEDULES-2: counts from the due time, unless the result is in the past.
  if (next !== null && next <= at && !(missed === 'all' && missesFew(schedule, next, at)))
    next = timeAfter(schedule, at);
  if (at - dueAt <= LATE_MS) return { ...event, next };
  if (missed !== 'skip') return { ...event, next, late: localTime(dueAt, timeZone) };
  return next === null
    ? { type: 'schedule.cancelled', at }
    : { type: 'schedule.moved', at, dueAt: next, isTask: task !== undefined };
}

function missesFew(schedule: ScheduleRecord, from: number, until: number): boolean {
  let next: number | null = from;
  for (let count = 1; count < MAX_MISSED && next !== null && next <= until; count += 1)
    next = timeAfter(schedule, next);
  return next === null || next > until;
}

/** Returns the same string for equal schedules, so that a repeating schedule keeps its times when it is set again. */
function contentOf({ dueAt, ...rest }: ScheduleRecord): string {
  const repeats = rest.everyMs !== undefined || rest.cron !== undefined;
  return callKey('', { ...rest, dueAt: repeats ? null : dueAt });
}
