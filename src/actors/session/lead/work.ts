// Background work as a lead agent's model sees it: the note before a reply, and `running_task`, the runtime's tool with
// which the model reports on a task, stops it, or passes a message to it.
//
// Owns:     the decision about which task the model refers to.
// Does not: read, message or stop a subagent (the subagent service does, as for an agent's tools in toolsets/).
//
// Invariants
//   STEERING-1. The tool is always offered with the same description. Its answers list the tasks.
//   STEERING-2. The tool stops a task, or sends it a message, only if the model's description fits this task and no
//       other. Otherwise the tool does nothing, and its answer lists the tasks.
//   STEERING-3. The tool neither starts work nor answers subagents' questions. A message to an ended task returns the
//       task's result.
//   STEERING-4. A task is stopped or changed only in response to the user's input. A call that the model makes while it
//       reports a result does neither, unless the model has read new user input that has no reply yet.

import { jsonSchema } from 'ai';
import { z } from 'zod';
import { wordsOf } from '../../../values/bm25.ts';
import { clip } from '../../../values/clip.ts';
import { callKey, parsedOrText, propertiesOf } from '../../../values/json.ts';
import { TimeoutError } from '../../../values/errors.ts';
import { raceTime } from '../../../values/race-abort.ts';
import { argumentsText } from '../../../values/visible.ts';
import { withoutUndefined } from '../../../values/without-undefined.ts';
import type { Failure, OutboxItem } from '../../../machines/index.ts';
import type { ToolContext, ToolDefinition } from '../../contracts/lead-tool.ts';
import type { LedgerEntry } from '../../contracts/outcome.ts';
import {
  deliveryAbout,
  subjectOf,
  type CallRecord,
  type QuestionRecord,
} from '../../contracts/records.ts';
import type { Receiver } from '../../contracts/session-protocol.ts';
import { THE_LEAD } from '../../contracts/service-types.ts';
import { isMessage, type ConversationItem, type MessageItem } from '../../conversation/items.ts';
import { ANSWERED, workNote } from '../../conversation/prompts.ts';
import { objectJson, validatedBy } from '../../model/schema.ts';
import { note, sentence, type Note, type Quotes } from '../../notes/note.ts';
import { ASK_USER } from '../../subagent/ask-user.ts';
import { reportOf, type SubagentRecord } from '../../subagents/subagent-registry.ts';
import type { SubagentTree } from '../../subagents/subagent-tree.ts';
import {
  checkView,
  keepReceipt,
  progressText,
  sentMessages,
} from '../../subagents/toolsets/parent-views.ts';
import { speakerOf } from '../questions/settle-question.ts';
import type { UserInput } from '../questions/user-input.ts';
import type { Host } from '../../runtime/host.ts';
import type { Projection } from '../state/projection.ts';
import type { SessionRecords } from '../state/session-records.ts';
import type { SessionUnit } from '../unit/session-unit.ts';
import type { Speaker } from './speaker.ts';
import { defineTool } from './lead-tools.ts';

/** The parts of a session that the note before a reply shows. */
export interface WorkSession {
  readonly records: SessionRecords;
  readonly unit: SessionUnit;
  readonly projection: Projection;
  readonly tree: Pick<SubagentTree, 'live' | 'uppermost'>;
  readonly agents: { readonly steers: boolean };
}

/** The work that the user may ask about, grouped by state and named by task (`summed`). */
export interface WorkNow {
  /** Running work, with its latest progress if there is any. */
  readonly running: readonly (string | { readonly task: string; readonly progress: string })[];
  /** Finished work whose result has not been reported yet. */
  readonly waitsToBeTold: readonly string[];
  /** Results that the user is hearing or has partly heard. */
  readonly beingTold: readonly string[];
  /** Results that are waiting for other results of the same request. */
  readonly finished?: readonly { readonly task: string; readonly result: string }[];
}

/** Returns the running work and the results that the user has not heard. `asking`: subagents to omit. */
export function workNow(session: WorkSession, asking: ReadonlySet<string> = new Set()): WorkNow {
  const { unit, tree, projection, records } = session;
  const named = namesOf(session);
  const { pending, current } = unit.outbox.snapshot.context;
  const items = new Set(
    [...pending, ...(current ? [current] : [])].map(({ deliveryId }) => deliveryId),
  );
  const finished = unit.batches.ids
    .flatMap((id) => (items.has(id) ? [] : (unit.batches.contextOf(id)?.parts ?? [])))
    .slice(-MOST_NAMES)
    .flatMap((id) => {
      const delivery = records.delivery(id);
      return delivery
        ? [
            {
              task: named.get(id) ?? delivery.label,
              result: clip(delivery.text, MAX_FINISHED_CHARS),
            },
          ]
        : [];
    });
  const labelOf = (id: string): string =>
    named.get(id) ?? projection.delivery(id)?.label ?? subjectOf(id);
  const labelsOf = (of: readonly OutboxItem[]): readonly string[] =>
    of.flatMap(({ deliveryId, kind }) => (kind === 'question' ? [] : [labelOf(deliveryId)]));
  const calls = runningCalls(records, unit).map(({ callId, name }) => named.get(callId) ?? name);
  const live = tree.live
    .filter(({ id }) => !asking.has(id))
    .map(({ id, definition }) => ({ id, task: named.get(id) ?? definition.name }));
  const progressing = live.flatMap(({ id, task }) => {
    const progress = projection.subagent(id)?.progress;
    return progress ? [{ id, task, progress: clip(progress, MAX_SHORT_CHARS) }] : [];
  });
  const shown = new Map(progressing.slice(-MOST_NAMES).map(({ id, ...told }) => [id, told]));
  return {
    running: [
      ...summed([...live.flatMap(({ id, task }) => (shown.has(id) ? [] : [task])), ...calls]),
      ...shown.values(),
    ],
    waitsToBeTold: summed(labelsOf(pending)),
    beingTold: summed(labelsOf(current ? [current] : [])),
    ...(finished.length > 0 && { finished }),
  };
}

/** Returns the detached calls whose tools are still running. */
function runningCalls(records: SessionRecords, unit: SessionUnit): readonly CallRecord[] {
  return [...records.calls.values()].filter(({ callId }) => unit.runOf(callId) === 'detached');
}

const MOST_NAMES = 20;
const MAX_FINISHED_CHARS = 1000;
export const MAX_SHORT_CHARS = 120;

/** Returns each name once, with its count, followed by the number of omitted names. */
function summed(names: readonly string[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  const lines = [...counts].map(([name, count]) =>
    count === 1 ? name : `${name} (${count} of them)`,
  );
  const leftOut = lines.length - MOST_NAMES;
  return leftOut > 0 ? [...lines.slice(0, MOST_NAMES), `and ${leftOut} other kinds`] : lines;
}

/** Returns the note about the work, so that the model can answer "How is the report going?" without an app's tool. */
export function workNoteOf(session: WorkSession, always: readonly Quotes[] = []): Note | null {
  const work = { ...workNow(session), always };
  const isWork = Object.values(work).some((names) => names.length > 0);
  const isToUser = session.records.conversation.items.at(-1)?.role === 'user';
  return isWork && isToUser ? workNote(work, session.agents.steers) : null;
}

/** Returns the names of the tasks, by the ids of their subagents, calls and deliveries. */
function namesOf(session: TaskSession): ReadonlyMap<string, string> {
  return new Map(
    tasksOf(session).flatMap(({ record, callId, name }) => {
      const ids = record
        ? [record.id, deliveryAbout(record.id), record.admission.callId ?? record.id]
        : [callId ?? ''];
      return ids.map((about) => [about, name] as const);
    }),
  );
}

/** The parts of a session that the tool uses. */
interface SteeredSession extends Omit<WorkSession, 'agents'>, Receiver {
  readonly host: Host;
  readonly tree: SubagentTree;
  readonly userInput: Pick<UserInput, 'nextWords'>;
  readonly lead: Pick<Speaker, 'awaitsWords' | 'note'>;
}

/** The runtime's tool that a lead model uses to steer background work. */
export const RUNNING_TASK = 'running_task';

/** Returns whether this call to the tool stops a task. */
export const isStop = ({ name, arguments: json }: CallRecord): boolean =>
  name === RUNNING_TASK && propertiesOf(parsedOrText(json))['action'] === 'stop';

const DESCRIPTION =
  'Checks, stops or adds to background work of this conversation. status: how far a task is, or its result; without `task`, all tasks. ' +
  'stop: ends a task that the user no longer wants; what it has done stays done. A task cannot be paused. tell: gives a running task what the user ' +
  'adds or corrects, in `words` that can be understood alone; it does not answer a question that a task has asked. For new work call its own ' +
  'tool; to restart a task, stop it and wait for the answer first. task: one task, as it is named in notes, or in the words of the call that started it.';

const schema = z.object({
  action: z.enum(['status', 'stop', 'tell']),
  task: z.string().nullish(),
  words: z.string().nullish(),
});

type Args = z.infer<typeof schema>;

const aText = { type: 'string' } as const;
const parameters = objectJson(
  { action: { ...aText, enum: [...schema.shape.action.options] }, task: aText, words: aText },
  ['action'],
);

/** The maximum time for which a voice model's call waits for the user's input, in milliseconds. */
export const WORDS_LIMIT_MS = 3000;
/** The maximum time for which a call waits until a task has ended or has read a message, in milliseconds. */
const LIMIT_MS = 1000;

/** Returns the tool that the runtime runs and offers to a lead model. */
export function steerTool(session: SteeredSession): ToolDefinition {
  return defineTool<Args>({
    name: RUNNING_TASK,
    description: DESCRIPTION,
    parameters: jsonSchema<Args>(parameters, { validate: validatedBy(schema) }),
    // A repeated call is safe, because a task that it stopped has already ended, and a message that it sent is
    // recognised by its key.
    idempotent: true,
    detach: { onWords: false },
    execute: (args, context) => steer(session, args, context),
  });
}

/** One of the user's tasks, with the name that the tool uses for it. */
interface Task {
  /** Null if a tool does the task in a detached call. */
  readonly record: SubagentRecord | null;
  /** The running detached call that does the task, directly or through its only subagent. */
  readonly callId: string | null;
  readonly name: string;
  readonly words: readonly string[];
  readonly isLive: boolean;
  /** Whether the task is running or its result is still to be reported. */
  readonly isCurrent: boolean;
  readonly startedAt: number;
}

/** The parts of a session that determine its tasks. */
type TaskSession = Pick<WorkSession, 'tree' | 'records' | 'unit'>;

/** Returns the tasks that the lead agent started, oldest first, excluding those of services and of other subagents. */
function tasksOf({ tree, records, unit }: TaskSession): readonly Task[] {
  const own = tree.uppermost.filter(
    ({ admission: { callId, ports } }) => callId !== null || ports.name === 'lead',
  );
  const old = new Set(own.filter(({ isLive }) => !isLive).slice(0, -MOST_NAMES));
  const known = own.filter((record) => !old.has(record));
  const calls = runningCalls(records, unit);
  const workersOf = (callId: string | null): number =>
    known.filter(({ admission, isLive }) => isLive && admission.callId === callId).length;
  const ofSubagents = known.map((record) => {
    const { task, definition, title, callId, startedAt } = record.admission;
    const { isLive, deliveredAt, outcome } = record;
    const isOfCall = isLive && calls.some((call) => call.callId === callId);
    return {
      record,
      callId: isOfCall && workersOf(callId) === 1 ? callId : null,
      name: nameOf(task.toolName, argumentsText(task.args) || task.description, title),
      about: [task.toolName, definition.name, title, argumentsText(task.args), task.description],
      isLive,
      isCurrent: isLive || (deliveredAt === null && outcome?.status !== 'cancelled'),
      startedAt,
    };
  });
  const ofCalls = calls.flatMap(({ callId, name, input }) => {
    const about = argumentsText(propertiesOf(input));
    const { dueAt = 0, timeoutMs = 0 } = unit.calls.of(callId)?.context ?? {};
    const startedAt = dueAt - timeoutMs;
    const made = { record: null, callId, isLive: true, isCurrent: true, startedAt };
    const task = { ...made, name: nameOf(name, about, null), about: [name, about] };
    return workersOf(callId) > 0 ? [] : [task];
  });
  const all = [...ofSubagents, ...ofCalls];
  return all.map(({ about, name, ...task }, at) => {
    const alike = all.slice(0, at).filter((one) => one.name === name).length;
    return {
      ...task,
      name: alike > 0 ? `${name} (${alike + 1})` : name,
      words: wordsIn(clip(about.join(' '), MAX_FINISHED_CHARS)),
    };
  });
}

/** Names a task from its journal entry, so that the name stays the same after a restart. */
function nameOf(toolName: string, about: string, title: string | null | undefined): string {
  return clip(title ?? (about === '' ? toolName : `${toolName}: ${about}`), MAX_SHORT_CHARS);
}

/** The time after a call during which further input may continue its request, even if a reply has been given. */
const CONTINUES_MS = 10_000;

/** Returns the user's utterances, oldest first, except those that a subagent received. */
export function wordsForLead(items: readonly ConversationItem[]): readonly MessageItem[] {
  return items
    .filter(isMessage)
    .filter(
      ({ role, note: told, text }, at, all) =>
        role === 'user' && !told && all[at + 1]?.note?.quotes?.['words'] !== text,
    );
}

export const indexOfCall = (items: readonly ConversationItem[], callId: string | null): number =>
  items.findIndex((item) => item.role === 'tool_call' && item.callId === callId);

type Calling = Pick<CallRecord, 'callId' | 'name' | 'input'>;

/** Returns the tasks, oldest first, whose request a call may continue because its arguments extend theirs. */
function extendedBy({ tree }: Pick<WorkSession, 'tree'>, { callId, name, input }: Calling) {
  return tree.uppermost.filter(({ admission, outcome, subagent }) => {
    const { callId: before, task } = admission;
    if (before === null || before === callId || task.toolName !== name) return false;
    const isKept = subagent ? subagent.leaving !== 'stopping' : outcome?.status === 'completed';
    // While the work is running, the `duplicates` option handles further calls for the same work.
    const isSame = subagent !== null && callKey(name, task.args) === callKey(name, input);
    const isSomething = Object.keys(task.args).length > 0;
    return isKept && !isSame && isSomething && extendsJson(task.args, input);
  });
}

/**
 * Returns whether a call may continue an earlier call's request, depending on speech that is not transcribed yet.
 */
export const mayGoOn = (session: Pick<WorkSession, 'tree'>, call: Calling): boolean =>
  extendedBy(session, call).length > 0;

/** Returns the answer to a call if an earlier call has already started the same request; otherwise, returns null. */
export function begunBefore(session: TaskSession, call: Calling) {
  const { conversation, calls, utteranceId } = session.records;
  const { items } = conversation;
  const said = wordsForLead(items).at(-1);
  if (!said) return null;
  const until = items.indexOf(said);
  const begun = extendedBy(session, call).findLast(({ admission: { callId, task } }) => {
    const at = indexOfCall(items, callId);
    const made = items[at];
    const before = calls.get(callId ?? '');
    // An utterance is placed at its start, which may be before the call that it led to.
    const isLater = at < until || (before !== undefined && before.requestId !== utteranceId);
    if (!made || !isLater) return false;
    const since = items.slice(at, until);
    // If the user has answered a question since then, the input is another request.
    if (since.some((item) => isMessage(item) && item.note?.says === ANSWERED)) return false;
    const isSame = callKey(call.name, task.args) === callKey(call.name, call.input);
    return !since.some(isWholeReply) || (!isSame && said.at - made.at <= CONTINUES_MS);
  });
  if (!begun) return null;
  const task = namesOf(session).get(begun.id) ?? call.name;
  return begun.isLive
    ? { status: 'already_in_progress', task, message: HAS_BEGUN }
    : { status: 'already_done', task, message: WAS_DONE };
}

const isWholeReply = (item: ConversationItem): boolean =>
  item.role === 'assistant' && item.text !== '' && item.repliesTo !== null && !item.interrupted;

const HAS_BEGUN =
  'A task for the beginning of this request runs: nothing was started. Give it what the user has added by running_task (tell). If they want another task besides, ask them first.';
const WAS_DONE =
  'This was done before the user added to it: nothing was started. What came of it stands above, or comes as a note. Tell them, and ask whether it shall be done again with the rest.';

/**
 * Returns whether a value contains every word, element and property of an earlier value.
 */
function extendsJson(before: unknown, after: unknown): boolean {
  if (before === null || before === undefined || before === '') return true;
  if (typeof before === 'string' && typeof after === 'string') {
    const has = new Set(wordsIn(after));
    return before === after || wordsIn(before).every((word) => has.has(word));
  }
  if (Array.isArray(before))
    return (
      Array.isArray(after) && before.every((one) => after.some((other) => extendsJson(one, other)))
    );
  if (typeof before !== 'object' || typeof after !== 'object') return before === after;
  const held = propertiesOf(after);
  return Object.entries(before).every(([name, value]) => extendsJson(value, held[name]));
}

/** The characters of scripts that are written without spaces. */
const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}]/gu;

export function wordsIn(text: string): readonly string[] {
  const spaced = text.replaceAll(/(\p{Ll})(?=\p{Lu})/gu, '$1 ').replaceAll(UNSPACED, ' $& ');
  return [...new Set(wordsOf(spaced))];
}

/** Returns whether two words are equal except for their endings. Numbers must be equal. */
function isAlike(word: string, other: string): boolean {
  const size = Math.max(4, Math.ceil(0.7 * Math.max(word.length, other.length)));
  return (
    word.length >= size && other.startsWith(word.slice(0, size)) && !/\p{N}/u.test(word + other)
  );
}

/**
 * Short function words do not identify a task: "the table for two" does not mean the only task that contains "for".
 */
const JOINING =
  /^(?:an?|the|of|for|to|in|on|at|by|and|or|with|my|der|die|das|den|dem|des|ein|zu|im|am|und|la|les?|du|une?|et|au|en|el|las|los|una|y|del|al|por|con)$/;

/** Returns whether a word that matches no task makes the meaning uncertain, which short words do not. */
const isTelling = (word: string): boolean =>
  word.length > 3 || /\p{N}/u.test(word) || word.search(UNSPACED) >= 0;

type Named = Pick<Task, 'name' | 'words' | 'isCurrent'>;

/**
 * Returns the task that `named` means. If none is chosen, returns the tasks that it may mean, and why. `unnamed`: the
 * tasks of which the only one is meant if `named` is empty.
 */
export function chosenIn<T extends Named>(
  tasks: readonly T[],
  named: string | null | undefined,
  unnamed: readonly T[],
) {
  const [only, ...others] = unnamed;
  const { fits, isClear } = fittingIn(tasks, named || (others.length === 0 && only?.name) || '');
  const [task, another] = fits;
  if (task && isClear) return { task };
  return { fits, why: another || !named ? 'several' : task ? 'one' : 'none' } as const;
}

/**
 * Returns the tasks that contain every word of `named`, apart from words that occur in no task. `isClear`: exactly one
 * task is meant.
 */
function fittingIn<T extends Named>(tasks: readonly T[], named: string) {
  const exact = tasks.find(({ name }) => name === named.trim());
  if (exact) return { fits: [exact], isClear: true };
  const asked = wordsIn(clip(named, MAX_SHORT_CHARS)).filter((word) => !JOINING.test(word));
  const isIn = (task: T) => (word: string) =>
    task.words.some((one) => one === word || isAlike(word, one));
  const found = tasks.map((task) => ({ task, has: asked.filter(isIn(task)) }));
  const known = asked.filter((word) => found.some(({ has }) => has.includes(word)));
  const whole = found.filter(({ has }) => has.length > 0 && has.length === known.length);
  const current = whole.filter(({ task }) => task.isCurrent);
  const fits = (current.length > 0 ? current : whole).map(({ task }) => task);
  const unknown = asked.filter((word) => !known.includes(word) && isTelling(word)).length;
  const isSure = unknown === 0 || known.filter(isTelling).length > unknown;
  return { fits, isClear: fits.length === 1 && isSure };
}

const OR_ASK = 'If the user means it, call again with its name; if you do not know, ask them.';
const UNCLEAR = {
  none: `Nothing was done: no task has these words. These run. ${OR_ASK}`,
  one: `Nothing was done: this task has only some of these words. ${OR_ASK}`,
  several: `Nothing was done: these words fit all of these. If the user means all, call once for each. ${OR_ASK}`,
};
const NOTHING_RUNS = 'Nothing is running. Start a task only if the user asks for one.';
const NOT_ASKED = 'Nothing was done: only words of the user stop or change work. Ask them.';
const RESULTS = 'Tell the user the results in here now: they do not come again as notes.';
const STOPPED = 'It is stopped, and no result comes. Tell the user briefly that it is stopped.';
const DONE = 'The calls in done stay done.';
const UNKNOWN = 'The calls in unknown may or may not have been carried out.';
const CHANGES = 'Mention only those that change something, not look-ups.';
const STOPPING = 'It is being stopped and gives no result; a note says what it had done.';
const BROKEN_OFF =
  'It is told to stop, and no result comes. Tell the user that it is stopped. It may have done its work already: mention that only if the work changes something.';
const TAKES_NO_WORDS =
  'Nothing was done: this task takes no words. Tell the user; to change it, stop it and begin it again.';
const ENDED =
  'The task had ended before this: nothing was stopped or changed. Tell the user its result, which no note brings again, and whether it fits what they have just said. Start it again only if they then ask for that.';
const ENDING =
  'It has just ended: nothing was stopped or changed. Say so; its result comes as a note.';
const READ = 'It knows this now; its result comes as a note. Confirm it in a few words.';
const READ_LAST =
  'It reads this in its last step, in which it can do nothing but report: what it does stays as it was. Say that it came too late for more; the result comes as a note.';
const TOLD_BEFORE = 'It has these words already: they were not added again.';
const UNREAD =
  'Added to the task, but not read yet: the task may end before it reads this. Tell the user briefly that you have added it; do not promise that the result will contain it.';
const READS_NONE =
  'It is in its last step and reads nothing more: this changes nothing. Say that it came too late; the result comes as a note.';
const ASKS_ANOTHER = `${UNREAD} Its question to another person is still open, and these words are no answer to it.`;
const ASKS = `${UNREAD} Its question to the user is still open, and these words are no answer to it: settle_question is.`;
const NEVER_READ = sentence`A task has ended without having read these words of the user: they changed nothing. Tell the user so with its result.`;

async function steer(
  session: SteeredSession,
  { action, task: named, words }: Args,
  context: ToolContext,
): Promise<object> {
  if (action === 'status') return statusOf(session, named ?? '');
  const { records, lead, userInput } = session;
  const { callId, requester } = context;
  if (records.calls.get(callId)?.requestId === null) return { status: 'refused', next: NOT_ASKED };
  // A voice model makes the call before the user's input and its author are recorded.
  const hears = lead.awaitsWords === true;
  if (hears) await userInput.nextWords(WORDS_LIMIT_MS);
  const by = hears ? speakerOf(records) : (requester ?? undefined);
  const tasks = tasksOf(session);
  const running = tasks.filter(({ isLive }) => isLive);
  const { task, fits, why } = chosenIn(tasks, named, action === 'tell' ? running : []);
  if (!task) {
    const names = summed((fits.length > 0 ? fits : running).map(({ name }) => name));
    if (names.length === 0) return { status: 'nothing_runs', next: NOTHING_RUNS };
    return { status: 'unclear', tasks: names, next: UNCLEAR[why] };
  }
  const vouched = by === undefined ? {} : { by };
  return action === 'tell'
    ? tell(session, task, words?.trim() ?? '', context, vouched)
    : stop(session, task, context, vouched);
}

type Vouched = { readonly by?: string };

async function stop(
  session: SteeredSession,
  task: Task,
  { abortSignal: signal }: ToolContext,
  vouched: Vouched,
): Promise<object> {
  const { tree } = session;
  const { name, record } = task;
  if (task.callId !== null) {
    const reason = 'The user stopped it';
    session.receive(`call:${task.callId}`, { type: 'call.cancel', reason });
    return { status: 'stopped', task: name, next: BROKEN_OFF };
  }
  if (!record) return { status: 'stopped', task: name, next: STOPPED };
  // The wait must start before the task ends. It then returns the outcome, so that no note repeats the outcome.
  const limit = { timeoutMs: LIMIT_MS, alsoAsking: false, signal };
  const ended = tree.await([record.id], THE_LEAD, limit);
  tree.cancel(record.id, THE_LEAD, 'The user stopped it', vouched);
  await ended;
  const { outcome } = record;
  if (!outcome) return leavingView(name, record);
  if (outcome.status !== 'cancelled') return { ...taskView(session, task), next: ENDED };
  const did = workDone(outcome.toolLedger);
  const stays = [...(did.done ? [DONE] : []), ...(did.unknown ? [UNKNOWN] : [])];
  const next = [STOPPED, ...stays, ...(stays.length > 0 ? [CHANGES] : [])].join(' ');
  return { status: 'stopped', task: name, ...did, next };
}

/** Returns the answer that says that a task is about to end. */
const leavingView = (name: string, { subagent }: SubagentRecord) =>
  subagent?.leaving === 'over'
    ? { status: 'too_late', task: name, next: ENDING }
    : { status: 'stopping', task: name, next: STOPPING };

/** Returns the work that a stopped task had done, and the calls that were interrupted, whose outcome is unknown. */
function workDone(ledger: readonly LedgerEntry[]) {
  const calls = (status: LedgerEntry['status']): readonly string[] | undefined => {
    const of = ledger.filter((entry) => entry.status === status && entry.toolName !== ASK_USER);
    if (of.length === 0) return undefined;
    return of.slice(-MAX_PROGRESS).map(({ toolName, input, output }) => {
      const came = status === 'ok' ? ` → ${JSON.stringify(output)}` : '';
      return clip(`${toolName}: ${argumentsText(input)}${came}`, 2 * MAX_SHORT_CHARS);
    });
  };
  return withoutUndefined({ done: calls('ok'), unknown: calls('in_flight') });
}

async function tell(
  session: SteeredSession,
  task: Task,
  content: string,
  { idempotencyKey }: ToolContext,
  vouched: Vouched,
): Promise<object> {
  const { tree, host, lead, unit } = session;
  const { name, record } = task;
  if (!record) return { status: 'refused', task: name, next: TAKES_NO_WORDS };
  const { id, subagent } = record;
  if (content === '') return { status: 'refused', next: 'Nothing was done: `words` is missing.' };
  if (record.isLive && wasTold(session, name, content))
    return { status: 'told_before', task: name, next: TOLD_BEFORE };
  // Interrupts a model step but not a tool call.
  const mode = subagent?.isThinking === true ? 'interrupt' : 'steer';
  const sent = tree.send(id, { content, mode, idempotencyKey }, THE_LEAD, vouched);
  if (!sent.ok) return { ...taskView(session, task), next: ENDED };
  keepReceipt(tree, id, sent.messageId, sent.receipt, content);
  const question = questionOf(session, id);
  const late = () => new TimeoutError('It was not read yet');
  const limit = { timeoutMs: question ? 0 : LIMIT_MS, scheduler: host.environment.scheduler, late };
  const receipt = await raceTime(() => sent.receipt, limit).catch(() => null);
  const tooLate = (next: string) => ({ status: 'too_late', task: name, next });
  if (receipt?.applied)
    return subagent?.isLastStep(receipt.step) === true
      ? tooLate(READ_LAST)
      : { status: 'read', task: name, next: READ };
  if (receipt && !record.isLive) return { ...taskView(session, task), next: ENDED };
  if (receipt && subagent?.leaving) return leavingView(name, record);
  if (receipt) return { status: 'refused', next: receipt.reason };
  if (subagent?.isThinking === true && subagent.isLastStep(subagent.step))
    return tooLate(READS_NONE);
  void sent.receipt.then(({ applied }) => {
    if (applied || record.isLive || unit.unit.disposed) return;
    lead.note(note(NEVER_READ, { task: name, words: clip(content, MAX_FINISHED_CHARS) }), false);
  });
  return {
    status: 'passed_on',
    task: name,
    ...(question
      ? { question: question.question, next: question.beside ? ASKS_ANOTHER : ASKS }
      : { next: UNREAD }),
  };
}

/** Returns whether the conversation (which survives a crash) shows that the task has just received the same message. */
function wasTold({ records, host }: SteeredSession, task: string, content: string): boolean {
  const { items } = records.conversation;
  const since = host.environment.clock.now() - CONTINUES_MS;
  return items.some((item) => {
    if (item.role !== 'tool_call' || item.toolName !== RUNNING_TASK || item.at < since)
      return false;
    const { action, words } = propertiesOf(item.args);
    const came = items.find((one) => one.role === 'tool_result' && one.callId === item.callId);
    const output =
      came?.role === 'tool_result' && came.output.type === 'value' ? came.output.value : null;
    const { task: about, status } = propertiesOf(output);
    const isSame = action === 'tell' && String(words).trim() === content && about === task;
    return isSame && TOLD.has(String(status));
  });
}

const TOLD: ReadonlySet<string> = new Set(['read', 'passed_on', 'told_before']);

function questionOf({ records }: SteeredSession, id: string): QuestionRecord | undefined {
  return [...records.questions.values()].find(({ subagentId }) => subagentId === id);
}

/** Results beyond this total are reported separately. */
const MAX_RESULTS_CHARS = 12_000;

function statusOf(session: SteeredSession, named: string): object {
  const tasks = tasksOf(session);
  const { fits } = fittingIn(tasks, named);
  const shown = fits.length > 0 ? fits : tasks.filter(({ isCurrent }) => isCurrent);
  if (shown.length === 0)
    return { ended: tasks.slice(-MAX_PROGRESS).map(endOf), next: NOTHING_RUNS };
  let chars = 0;
  const views = shown.slice(0, MOST_NAMES).map((task) => {
    const { text = '', partial = '' } = task.record?.outcome ?? {};
    chars += text.length + partial.length;
    return taskView(session, task, chars <= MAX_RESULTS_CHARS);
  });
  const others = summed(shown.slice(MOST_NAMES).map(({ name }) => name));
  return { tasks: [...views, ...others], ...(chars > 0 && { next: RESULTS }) };
}

const endOf = ({ name, record }: Task) =>
  withoutUndefined({
    task: name,
    ...(record && { status: reportOf(record).state, why: whyOf(record) }),
  });

/** Returns an explanation for the user: why an ended task has no result. */
function whyOf({ outcome }: SubagentRecord): string | undefined {
  return (
    outcome?.error && (WHY[outcome.error.code] ?? clip(reasonOf(outcome.error), MAX_FINISHED_CHARS))
  );
}

/** Returns the reason for a failure or cancellation. */
const reasonOf = ({ message }: Failure): string => message.replace(/^Cancelled: /, '');

const LOST = 'It was lost with the program that ran it.';
const WHY: Readonly<Record<string, string>> = {
  STEP_LIMIT: 'It was not done in the number of steps that it had.',
  TIMEOUT: 'It took too long.',
  PREPARATION_TIMEOUT: 'It could not begin in time.',
  INPUT_TIMEOUT: 'The user did not answer its question.',
  BUDGET_EXHAUSTED: 'It had used up what it may use.',
  INTERNAL: 'An error of the program ended it.',
  KILLED: LOST,
  NOT_RECOVERABLE: LOST,
  JOURNAL_REFUSED: LOST,
  JOB_LOST: LOST,
};

const MAX_PROGRESS = 5;

/**
 * Returns the available information about a task: its state, its findings and its result. `isRead`: the lead agent is
 * reporting the task's result now, so no delivery reports it.
 */
function taskView(
  session: SteeredSession,
  { record, name, startedAt }: Task,
  isRead = true,
): object {
  const { tree, host } = session;
  const runs = Math.round((host.environment.clock.now() - startedAt) / 60_000);
  if (!record) return { task: name, status: 'running', runningForMinutes: runs };
  const { id, subagent, outcome } = record;
  const checked = isRead ? tree.check(id, THE_LEAD) : null;
  const report = checked?.ok === true ? checked.report : reportOf(record);
  const { status, progress, result, summary, partial, caveats, workingMemory } = checkView(
    tree,
    report,
  );
  const isAsking = subagent?.state === 'waiting_for_input';
  const isAsleep = subagent?.state === 'sleeping';
  const asked = questionOf(session, id);
  const asks = asked?.beside ? 'asks_another_person' : 'asks_the_user';
  // Reading the log would wake a parked subagent.
  const said = subagent && !isAsking && !isAsleep ? subagent.log.text : '';
  const parts = tree
    .list({ subagentId: id })
    .filter((part) => part.id !== id)
    .slice(-MAX_PROGRESS)
    .map(({ task, progress: notes }) => [task, ...notes.slice(-1).map(progressText)].join(': '))
    .map((line) => clip(line, MAX_SHORT_CHARS));
  const passedOn = sentMessages(tree, id).map(({ words = '', applied }) => ({
    words: clip(words, MAX_SHORT_CHARS),
    isRead: applied === true,
  }));
  return withoutUndefined({
    task: name,
    status: isAsking ? asks : isAsleep ? 'sleeping' : status,
    ...(isAsleep && { until: new Date(subagent.nextDueAt).toISOString() }),
    ...(subagent && runs > 0 && { runningForMinutes: runs }),
    ...(isAsking && { question: asked?.question }),
    ...(progress.length > 0 && { progress: progress.slice(-MAX_PROGRESS) }),
    ...(said !== '' && { said: clip(said, MAX_FINISHED_CHARS) }),
    ...(parts.length > 0 && { parts }),
    ...(passedOn.length > 0 && { passedOn }),
    why: whyOf(record),
    ...(isRead
      ? { result, summary, partial, caveats, workingMemory }
      : { beginsWith: clip(outcome?.text ?? '', MAX_FINISHED_CHARS) }),
  });
}
