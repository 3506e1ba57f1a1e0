// Reminders that the user requests from the lead agent, and `reminders`, the runtime's tool with which the model sets,
// lists and cancels them. A reminder is a schedule that delivers a message.
//
// Owns:     the parsing of the times that a model writes, and the keys of reminders.
// Does not: store a reminder until it is due (effects/schedules.ts), or deliver it (outbox).
//
// Invariants
//   REMINDERS-1. The tool's description never changes, and every answer contains the user's local time.
//   REMINDERS-2. The tool lists and cancels only schedules that it has set. It cancels a reminder only if the model's
//       description fits that reminder and no other.
//   REMINDERS-3. A reminder is set or cancelled only in response to the user's input (like STEERING-4).
//   REMINDERS-4. Calls with the same text and the same time set only one reminder, even if a call is repeated after a
//       crash.

import { jsonSchema } from 'ai';
import { z } from 'zod';
import { codeOf } from '../../../values/errors.ts';
import { hashOf } from '../../../values/storable.ts';
import { withoutUndefined } from '../../../values/without-undefined.ts';
import type { ToolContext, ToolDefinition } from '../../contracts/lead-tool.ts';
import type { ScheduleRecord } from '../../contracts/records.ts';
import { objectJson, validatedBy } from '../../model/schema.ts';
import type { Host } from '../../runtime/host.ts';
import type { SessionRecords } from '../state/session-records.ts';
import type { SessionUnit } from '../unit/session-unit.ts';
import { defineTool } from './lead-tools.ts';
import { chosenIn, wordsIn } from './work.ts';

type Times = Partial<Pick<ScheduleRecord, 'everyMs' | 'cron'>> & { readonly at?: number | string };

/** The parts of a session that the tool uses. */
export interface RemindedSession {
  readonly host: Host;
  readonly records: SessionRecords;
  readonly unit: SessionUnit;
  readonly schedules: {
    set(options: Times & { readonly key: string; readonly say: string }): Promise<object>;
    cancel(key: string): Promise<boolean>;
    /** Returns the next due time of a schedule, or undefined if the schedule has ended. */
    dueAtOf(key: string): number | undefined;
  };
  readonly timeZone: string;
}

/** The name of the runtime's tool for reminders. */
export const REMINDERS = 'reminders';

/** The prefix of the keys of all schedules that the tool has set. */
const OF_TOOL = 'reminder:';
const MAX_WORDS_CHARS = 1000;
const MINUTE_MS = 60_000;

const DESCRIPTION =
  "Reminders for the user, told at their time, even after a restart. set: `words`, what to remind them of, in their language, and one of `at` (the user's local time: HH:MM for the next time the clock shows it, tomorrow HH:MM, friday HH:MM or YYYY-MM-DD HH:MM), `inMinutes`, `everyMinutes`, `cron` (for what repeats, in local time: minute hour day month weekday). list: all reminders, and the user's date and time. cancel: the `reminder`, as list names it or by some of its words. To change one, cancel it and set it again.";

const schema = z.object({
  action: z.enum(['set', 'list', 'cancel']),
  words: z.string().max(MAX_WORDS_CHARS).nullish(),
  at: z.string().nullish(),
  inMinutes: z.number().nullish(),
  everyMinutes: z.number().nullish(),
  cron: z.string().nullish(),
  reminder: z.string().nullish(),
});

type Args = z.infer<typeof schema>;

const aText = { type: 'string' } as const;
const aNumber = { type: 'number' } as const;
const parameters = objectJson(
  {
    action: { ...aText, enum: [...schema.shape.action.options] },
    words: aText,
    at: aText,
    inMinutes: aNumber,
    everyMinutes: aNumber,
    cron: aText,
    reminder: aText,
  },
  ['action'],
);

/** Returns the tool that the runtime runs and offers to a lead model. */
export function remindersTool(session: RemindedSession): ToolDefinition {
  return defineTool<Args>({
    name: REMINDERS,
    description: DESCRIPTION,
    parameters: jsonSchema<Args>(parameters, { validate: validatedBy(schema) }),
    // REMINDERS-4
    idempotent: true,
    detach: { onWords: false },
    execute: async (args, context) => {
      const answer = await remind(session, args, context);
      const { host, timeZone } = session;
      return { ...answer, now: localTime(host.environment.clock.now(), timeZone), timeZone };
    },
  });
}

const NOT_ASKED = 'Nothing was done: only words of the user set or cancel a reminder. Ask them.';
const NO_WORDS = 'Nothing was set: `words` is missing.';
const NO_TIME =
  'Nothing was set. Call again with one time: at (HH:MM, tomorrow HH:MM, friday HH:MM or YYYY-MM-DD HH:MM), inMinutes, everyMinutes or cron (five fields). If the user has not said when, ask them.';
const TOO_MANY = 'Nothing was set: there are too many reminders. Tell the user.';
const PASSED =
  'Nothing was set: this time has passed. `now` is the present time of the user. Call again with the time that they mean; if you do not know it, ask them.';
const IS_SET = 'Tell the user the day and the time in a few words.';
const CANCELLED = 'It is cancelled. Say which one in a few words.';
const NONE = 'The user has no reminders.';
const OR_ASK =
  'If the user means one of these, call again with its whole name; if you do not know, ask them.';
const UNCLEAR = {
  none: `Nothing was cancelled: no reminder has these words. ${OR_ASK}`,
  one: `Nothing was cancelled: this reminder has only some of these words. ${OR_ASK}`,
  several: `Nothing was cancelled: these words fit all of these. If the user means all, call once for each. ${OR_ASK}`,
};

async function remind(
  session: RemindedSession,
  args: Args,
  { callId }: ToolContext,
): Promise<object> {
  const { action, reminder } = args;
  if (action === 'list') {
    const names = remindersOf(session).map(({ name }) => name);
    return { reminders: names, ...(names.length === 0 && { next: NONE }) };
  }
  const { requestId } = session.records.calls.get(callId) ?? {};
  if (requestId === null) return { status: 'refused', next: NOT_ASKED };
  return action === 'set' ? set(session, args, callId) : cancel(session, reminder);
}

async function set(session: RemindedSession, args: Args, callId: string): Promise<object> {
  const { schedules, records, timeZone } = session;
  const refused = (next: string) => ({ status: 'not_set', next });
  const say = args.words?.trim() ?? '';
  if (say === '') return refused(NO_WORDS);
  const times = timesOf(args, beganAt(session, callId), timeZone);
  if (times === null) return refused(NO_TIME);
  const key = `${OF_TOOL}${hashOf(JSON.stringify([say, times]))}`;
  const isSet = () => ({
    status: 'set',
    reminder: remindersOf(session).find(({ key: of }) => of === key)?.name ?? say,
    next: IS_SET,
  });
  try {
    await schedules.set({ key, say, ...times });
    return isSet();
  } catch (error) {
    const code = codeOf(error);
    // An earlier process set the reminder, and it has been delivered since.
    const isTold = [...records.deliveries.keys()].some((id) => id.startsWith(`${key}@`));
    if (code === 'TIME_PASSED') return isTold ? isSet() : refused(PASSED);
    if (code === 'TOO_MANY_SCHEDULES') return refused(TOO_MANY);
    if (code === 'INVALID_ARGUMENT') return refused(NO_TIME);
    throw error;
  }
}

async function cancel(session: RemindedSession, named: Args['reminder']): Promise<object> {
  const all = remindersOf(session);
  if (all.length === 0) return { status: 'nothing_set', next: NONE };
  const { task: reminder, fits, why } = chosenIn(all, named, all);
  if (!reminder) {
    const reminders = (fits.length > 0 ? fits : all).map(({ name }) => name);
    return { status: 'unclear', reminders, next: UNCLEAR[why] };
  }
  // Two reminders may have the same text and be due in the same minute.
  for (const { key, name } of all) if (name === reminder.name) await session.schedules.cancel(key);
  return { status: 'cancelled', reminder: reminder.name, next: CANCELLED };
}

/** Returns the pending reminders, in the order of their times. */
function remindersOf({ records, schedules, timeZone }: RemindedSession) {
  const ofTool = [...records.schedules.values()].flatMap(({ key, say = '', cron, everyMs }) => {
    const dueAt = key.startsWith(OF_TOOL) ? schedules.dueAtOf(key) : undefined;
    if (dueAt === undefined) return [];
    const every = everyMs === undefined ? cron : `every ${everyMs / MINUTE_MS} minutes`;
    const again = every === undefined ? '' : ` (repeats: ${every})`;
    return { key, dueAt, name: `${localTime(dueAt, timeZone)}${again}: ${say}` };
  });
  return ofTool
    .toSorted((one, other) => one.dueAt - other.dueAt)
    .map((one) => ({ ...one, words: wordsIn(one.name), isCurrent: true }));
}

/** Returns the time at which the call first started, so that a repeat after a crash refers to the same times. */
function beganAt({ unit, host }: RemindedSession, callId: string): number {
  const { dueAt, timeoutMs } = unit.calls.of(callId)?.context ?? {};
  const now = host.environment.clock.now();
  return dueAt === undefined || timeoutMs === undefined ? now : dueAt - timeoutMs;
}

/** Returns the time that a model has given. Null if the model gave none or several, or if the time cannot be parsed. */
function timesOf(
  { at, inMinutes, everyMinutes, cron }: Args,
  now: number,
  timeZone: string,
): Times | null {
  const time = at?.trim() ? localAt(at.trim(), now, timeZone) : undefined;
  const pattern = cron?.trim() || undefined;
  const given: Times = withoutUndefined({
    at: time ?? (inMinutes ? now + Math.round(inMinutes * MINUTE_MS) : undefined),
    everyMs: everyMinutes ? Math.round(everyMinutes * MINUTE_MS) : undefined,
    cron: pattern,
  });
  const isOne = [at?.trim(), inMinutes, everyMinutes, pattern].filter(Boolean).length === 1;
  const hasFiveFields = pattern === undefined || pattern.split(/\s+/).length === 5;
  return isOne && time !== null && hasFiveFields && (given.everyMs ?? MINUTE_MS) >= MINUTE_MS
    ? given
    : null;
}

const AT = /^(?:(\d{4}-\d\d-\d\d)[ T]|([a-z]+) )?([01]?\d|2[0-3]):([0-5]\d)(?::00)?$/i;
const DAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'];
const DAY_MS = 24 * 60 * MINUTE_MS;

/** Returns `at` as a local time such as `2026-12-24T18:00`; null if it is not a time. */
function localAt(at: string, now: number, timeZone: string): string | null {
  const [, date, named, hours = '', minutes] = AT.exec(at) ?? [];
  if (minutes === undefined) return null;
  const time = `${hours.padStart(2, '0')}:${minutes}`;
  if (date !== undefined) return `${date}T${time}`;
  // Sweden writes "2026-12-24 18:00".
  const style = { timeZone, dateStyle: 'short', timeStyle: 'short' } as const;
  const [today = '', clock = ''] = new Intl.DateTimeFormat('sv-SE', style).format(now).split(' ');
  const midnight = new Date(`${today}T00:00Z`);
  const isPast = time <= clock;
  const day = named?.toLowerCase() ?? '';
  const ahead = (DAYS.indexOf(day) - midnight.getUTCDay() + 7) % 7;
  const days = { '': Number(isPast), today: 0, tomorrow: 1 }[day] ?? (ahead || (isPast ? 7 : 0));
  if (named !== undefined && !['today', 'tomorrow', ...DAYS].includes(day)) return null;
  const then = new Date(midnight.getTime() + days * DAY_MS);
  return `${then.toISOString().slice(0, 10)}T${time}`;
}

/** Returns a time in readable form: `Monday 30 November 2026 at 09:00`. */
export function localTime(at: number, timeZone: string): string {
  const style = { timeZone, dateStyle: 'full', timeStyle: 'short' } as const;
  return new Intl.DateTimeFormat('en-GB', style).format(at);
}
