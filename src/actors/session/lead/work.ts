// Background work, as a lead agent's model reads and steers it: the note before a reply, and `running_task`, the
// runtime's tool with which the model reports on a task, stops it, and passes words on to it.
//
// Owns:     which task the model's words refer to.
// Does not: read, message or end a subagent: its service does, as for an agent's tools (toolsets/).
//
// Invariants
//   STEERING-1. The tool is always offered, with the same text; its answer contains the tasks.
//   STEERING-2. A task is stopped or told something only if the model's name for it fits this task and no other.
//       Otherwise nothing is done, and the answer lists the tasks.
//   STEERING-3. The tool starts nothing, and answers no subagent's question. Words for an ended task return the task's result.
//   STEERING-4. Only the user's words stop or change a task: a call during the telling of a result does not.

import { jsonSchema } from 'ai';
import { z } from 'zod';
import { wordsOf } from '../../../values/bm25.ts';
import { clip } from '../../../values/clip.ts';
import { TimeoutError } from '../../../values/errors.ts';
import { raceTime } from '../../../values/race-abort.ts';
import { argumentsText } from '../../../values/visible.ts';
import { withoutUndefined } from '../../../values/without-undefined.ts';
import type { OutboxItem } from '../../../machines/index.ts';
import type { ToolContext, ToolDefinition } from '../../contracts/lead-tool.ts';
import { subjectOf } from '../../contracts/records.ts';
import { THE_LEAD } from '../../contracts/service-types.ts';
import { workNote } from '../../conversation/prompts.ts';
import { objectJson, validatedBy } from '../../model/schema.ts';
import { note, sentence, type Note } from '../../notes/note.ts';
import { reportOf, type SubagentRecord } from '../../subagents/subagent-registry.ts';
import type { SubagentTree } from '../../subagents/subagent-tree.ts';
import { checkView, keepReceipt, progressText } from '../../subagents/toolsets/parent-views.ts';
import { speakerOf } from '../questions/settle-question.ts';
import type { UserInput } from '../questions/user-input.ts';
import type { Host } from '../../runtime/host.ts';
import type { Projection } from '../state/projection.ts';
import type { SessionRecords } from '../state/session-records.ts';
import type { SessionUnit } from '../unit/session-unit.ts';
import type { Speaker } from './speaker.ts';
import { defineTool } from './lead-tools.ts';

/** The session, as shown before a reply. */
export interface WorkSession {
  readonly records: SessionRecords;
  readonly unit: SessionUnit;
  readonly projection: Projection;
  readonly tree: Pick<SubagentTree, 'live'>;
}

/** The work that the user may ask the lead agent about, by the names of its subagents and tools (`summed`). */
export interface WorkNow {
  /** Running work, with the latest progress if there is any. */
  readonly running: readonly (string | { readonly task: string; readonly progress: string })[];
  /** Finished work whose result is not told yet. */
  readonly waitsToBeTold: readonly string[];
  /** Results that the user is hearing, or has partly heard. */
  readonly beingTold: readonly string[];
  /** Results that wait for others of the same request. */
  readonly finished?: readonly { readonly task: string; readonly result: string }[];
}

/** Returns the running work, and the results that the user has not heard. `asking`: subagents to omit. */
export function workNow(
  { unit, tree, projection, records }: WorkSession,
  asking: ReadonlySet<string> = new Set(),
): WorkNow {
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
        ? [{ task: delivery.label, result: clip(delivery.text, MAX_FINISHED_CHARS) }]
        : [];
    });
  const labelOf = (id: string): string => projection.delivery(id)?.label ?? subjectOf(id);
  const labelsOf = (of: readonly OutboxItem[]): readonly string[] =>
    of.flatMap(({ deliveryId, kind }) => (kind === 'question' ? [] : [labelOf(deliveryId)]));
  const live = tree.live.filter(({ id }) => !asking.has(id));
  const progressing = live.flatMap(({ id, definition }) => {
    const progress = projection.subagent(id)?.progress;
    return progress
      ? [{ id, task: definition.name, progress: clip(progress, MAX_SHORT_CHARS) }]
      : [];
  });
  const shown = new Map(progressing.slice(-MOST_NAMES).map(({ id, ...told }) => [id, told]));
  return {
    running: [
      ...summed(live.flatMap(({ id, definition }) => (shown.has(id) ? [] : [definition.name]))),
      ...shown.values(),
    ],
    waitsToBeTold: summed(labelsOf(pending)),
    beingTold: summed(labelsOf(current ? [current] : [])),
    ...(finished.length > 0 && { finished }),
  };
}

const MOST_NAMES = 20;
const MAX_FINISHED_CHARS = 1000;
export const MAX_SHORT_CHARS = 120;

/** Returns each name once, with its count, and the number of omitted names. */
function summed(names: readonly string[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  const lines = [...counts].map(([name, count]) =>
    count === 1 ? name : `${name} (${count} of them)`,
  );
  const leftOut = lines.length - MOST_NAMES;
  return leftOut > 0 ? [...lines.slice(0, MOST_NAMES), `and ${leftOut} other kinds`] : lines;
}

/** Returns the note about the work, so that "How is the report going?" has an answer without an app's tool. */
export function workNoteOf(session: WorkSession): Note | null {
  const work = workNow(session);
  const isWork = Object.values(work).some((names) => names.length > 0);
  const isToUser = session.records.conversation.items.at(-1)?.role === 'user';
  return isWork && isToUser ? workNote(work) : null;
}

/** The session, as the tool steers its work. */
interface SteeredSession extends WorkSession {
  readonly host: Host;
  readonly tree: SubagentTree;
  readonly userInput: Pick<UserInput, 'nextWords'>;
  readonly lead: Pick<Speaker, 'awaitsWords' | 'note'>;
}

/** The runtime's tool with which a lead model steers background work. */
export const RUNNING_TASK = 'running_task';

const DESCRIPTION =
  'Work of this conversation that still runs, or has ended. status: how far it is, or its result; without `task`, of all. ' +
  'stop: ends a task that the user no longer wants; what it has done stays done. tell: gives a running task what the user ' +
  'adds or corrects, in `words` that can be understood alone; it answers no question of the task. For new work call its own ' +
  'tool; to start again, stop and wait for the answer first. task: one task, in the words of the call that began it.';

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

/** How long a voice model's call waits for the user's words. */
export const WORDS_LIMIT_MS = 3000;
/** How long it waits until a task has ended, or has read words. */
const LIMIT_MS = 1000;

/** Returns the tool as the runtime runs it, and as a lead model is offered it. */
export function steerTool(session: SteeredSession): ToolDefinition {
  return defineTool<Args>({
    name: RUNNING_TASK,
    description: DESCRIPTION,
    parameters: jsonSchema<Args>(parameters, { validate: validatedBy(schema) }),
    // A stopped task is recognised as stopped, and a message is recognised by its key.
    idempotent: true,
    execute: (args, context) => steer(session, args, context),
  });
}

/** A user's task, as the tool names it. */
interface Task {
  readonly record: SubagentRecord;
  readonly name: string;
  readonly words: readonly string[];
  /** It runs, or its result waits to be told. */
  readonly isCurrent: boolean;
}

/** Returns the tasks that the lead agent started, oldest first: neither services' tasks, nor those of subagents below. */
function tasksOf({ tree }: SteeredSession): readonly Task[] {
  const own = tree.uppermost.filter(
    ({ admission: { callId, ports } }) => callId !== null || ports.name === 'lead',
  );
  const old = new Set(own.filter(({ isLive }) => !isLive).slice(0, -MOST_NAMES));
  const known = own.filter((record) => !old.has(record));
  const names = known.map(nameOf);
  return known.map((record, at) => {
    const { task, definition, title } = record.admission;
    const { isLive, deliveredAt, outcome } = record;
    const name = names[at] ?? '';
    const alike = names.slice(0, at).filter((one) => one === name).length;
    const about = [task.toolName, definition.name, title, argumentsText(task.args)];
    return {
      record,
      name: alike > 0 ? `${name} (${alike + 1})` : name,
      words: wordsIn(clip([...about, task.description].join(' '), MAX_FINISHED_CHARS)),
      isCurrent: isLive || (deliveredAt === null && outcome?.status !== 'cancelled'),
    };
  });
}

/** Names a task from its journal entry, so that the name is the same after a restart. */
function nameOf({ admission: { task, title } }: SubagentRecord): string {
  const about = argumentsText(task.args) || task.description;
  return clip(title ?? `${task.toolName}: ${about}`, MAX_SHORT_CHARS);
}

/** A character of a script without spaces. */
const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}]/gu;

function wordsIn(text: string): readonly string[] {
  const spaced = text.replaceAll(/(\p{Ll})(?=\p{Lu})/gu, '$1 ').replaceAll(UNSPACED, ' $& ');
  return [...new Set(wordsOf(spaced))];
}

/** Returns whether two words are equal except for their endings; numbers must be equal. */
function isAlike(word: string, other: string): boolean {
  const size = Math.max(4, Math.ceil(0.7 * Math.max(word.length, other.length)));
  return (
    word.length >= size && other.startsWith(word.slice(0, size)) && !/\p{N}/u.test(word + other)
  );
}

/** Returns whether a word that matches no task makes the meaning uncertain; short words do not. */
const isTelling = (word: string): boolean =>
  word.length > 3 || /\p{N}/u.test(word) || word.search(UNSPACED) >= 0;

/** Returns the tasks that have all the words that any task has. `isClear`: exactly one task is meant. */
function fittingIn(tasks: readonly Task[], named: string) {
  const exact = tasks.find(({ name }) => name === named.trim());
  if (exact) return { fits: [exact], isClear: true };
  const asked = wordsIn(clip(named, MAX_SHORT_CHARS));
  const found = tasks.map((task) => {
    const isIn = (word: string) => task.words.some((one) => one === word || isAlike(word, one));
    return { task, has: asked.filter(isIn) };
  });
  const known = asked.filter((word) => found.some(({ has }) => has.includes(word)));
  const whole = found.filter(({ has }) => has.length > 0 && has.length === known.length);
  const current = whole.filter(({ task }) => task.isCurrent);
  const fits = (current.length > 0 ? current : whole).map(({ task }) => task);
  const unknown = asked.filter((word) => !known.includes(word) && isTelling(word)).length;
  const isSure = unknown === 0 || known.filter(isTelling).length > unknown;
  return { fits, isClear: fits.length === 1 && isSure };
}

const UNCLEAR =
  'Nothing was done: it is not certain which task is meant. If the user means one of these, call again with its name; if you do not know, ask them.';
const NOTHING_RUNS = 'Nothing is running. Begin no task that the user does not ask for.';
const NOT_ASKED = 'Nothing was done: only words of the user stop or change work. Ask them.';
const RESULTS = 'Tell the user the results in here now: they do not come again as notes.';
const STOPPED = 'It is stopped: no result. Say so, with what a note says it had done before.';
const ENDED =
  'It had ended already: nothing was stopped or changed. Tell the user so, and what came of it: that does not come again as a note. Begin it again only if they then say that they want that.';
const READ = 'It knows this now; its result comes as a note. Promise nothing more.';
const UNREAD = 'It reads this at its next step; nothing is done yet. Say so briefly.';
const ASKS = `${UNREAD} Its question to the user is still open, and these words are no answer to it: settle_question is.`;
const NEVER_READ = sentence`A task has ended without having read these words of the user: they changed nothing. Tell the user so with its result.`;

async function steer(
  session: SteeredSession,
  { action, task: named, words }: Args,
  context: ToolContext,
): Promise<object> {
  if (action === 'status') return statusOf(session, named ?? '');
  const { records, lead, userInput, tree } = session;
  const { callId, requester, abortSignal: signal } = context;
  if (records.calls.get(callId)?.requestId === null) return { status: 'refused', next: NOT_ASKED };
  // A voice model calls before the user's words, and their author, are recorded.
  const hears = lead.awaitsWords === true;
  if (hears) await userInput.nextWords(WORDS_LIMIT_MS);
  const by = hears ? speakerOf(records) : (requester ?? undefined);
  const tasks = tasksOf(session);
  const running = tasks.filter(({ record }) => record.isLive);
  const [only, ...others] = action === 'tell' ? running : [];
  const { fits, isClear } = fittingIn(tasks, named || (others.length === 0 && only?.name) || '');
  const [task] = fits;
  if (!task || !isClear) {
    const names = summed((task ? fits : running).map(({ name }) => name));
    if (names.length === 0) return { status: 'nothing_runs', next: NOTHING_RUNS };
    return { status: 'unclear', tasks: names, next: UNCLEAR };
  }
  const vouched = by === undefined ? {} : { by };
  if (action === 'tell') return tell(session, task, words?.trim() ?? '', context, vouched);
  const { name, record } = task;
  if (tree.cancel(record.id, THE_LEAD, 'The user stopped it', vouched))
    await tree.await([record.id], THE_LEAD, { timeoutMs: LIMIT_MS, alsoAsking: false, signal });
  const { status = 'cancelled' } = record.outcome ?? {};
  if (status !== 'cancelled') return { ...taskView(session, task), next: ENDED };
  return { status: 'stopped', task: name, next: STOPPED };
}

async function tell(
  session: SteeredSession,
  task: Task,
  content: string,
  { idempotencyKey }: ToolContext,
  vouched: { readonly by?: string },
): Promise<object> {
  const { tree, host, lead, unit } = session;
  const { name, record } = task;
  const { id, subagent } = record;
  if (content === '') return { status: 'refused', next: 'Nothing was done: `words` is missing.' };
  // Interrupts a model step, never a tool call.
  const mode = subagent?.isThinking === true ? 'interrupt' : 'steer';
  const sent = tree.send(id, { content, mode, idempotencyKey }, THE_LEAD, vouched);
  if (!sent.ok) return { ...taskView(session, task), next: ENDED };
  keepReceipt(tree, id, sent.messageId, sent.receipt);
  const question = questionOf(session, id);
  const late = () => new TimeoutError('It was not read yet');
  const limit = { timeoutMs: question ? 0 : LIMIT_MS, scheduler: host.environment.scheduler, late };
  const receipt = await raceTime(() => sent.receipt, limit).catch(() => null);
  if (receipt?.applied) return { status: 'read', task: name, next: READ };
  if (receipt && record.isLive) return { status: 'refused', next: receipt.reason };
  if (receipt) return { ...taskView(session, task), next: ENDED };
  void sent.receipt.then(({ applied }) => {
    if (applied || record.isLive || unit.unit.disposed) return;
    lead.note(note(NEVER_READ, { task: name, words: clip(content, MAX_FINISHED_CHARS) }), false);
  });
  return {
    status: 'passed_on',
    task: name,
    ...(question ? { question, next: ASKS } : { next: UNREAD }),
  };
}

function questionOf({ records }: SteeredSession, id: string): string | undefined {
  return [...records.questions.values()].find(({ subagentId }) => subagentId === id)?.question;
}

/** Longer results are left to be told by themselves. */
const MAX_RESULTS_CHARS = 12_000;

function statusOf(session: SteeredSession, named: string): object {
  const tasks = tasksOf(session);
  const { fits } = fittingIn(tasks, named);
  const shown = fits.length > 0 ? fits : tasks.filter(({ isCurrent }) => isCurrent);
  if (shown.length === 0)
    return { ended: tasks.slice(-MAX_PROGRESS).map(endOf), next: NOTHING_RUNS };
  let chars = 0;
  const views = shown.slice(0, MOST_NAMES).map((task) => {
    const { text = '', partial = '' } = task.record.outcome ?? {};
    chars += text.length + partial.length;
    return taskView(session, task, chars <= MAX_RESULTS_CHARS);
  });
  const others = summed(shown.slice(MOST_NAMES).map(({ name }) => name));
  return { tasks: [...views, ...others], ...(chars > 0 && { next: RESULTS }) };
}

const endOf = ({ name, record: { outcome } }: Task) => ({ task: name, status: outcome?.status });

const MAX_PROGRESS = 5;

/**
 * Returns what is known about a task: its state, its findings, and its result. `isRead`: the lead agent tells the
 * task's result, which is then no longer told by itself.
 */
function taskView(session: SteeredSession, { record, name }: Task, isRead = true): object {
  const { tree, host } = session;
  const { id, subagent, outcome, admission } = record;
  const checked = isRead ? tree.check(id, THE_LEAD) : null;
  const report = checked?.ok === true ? checked.report : reportOf(record);
  const { status, progress, result, summary, error, partial, caveats, workingMemory, messages } =
    checkView(tree, report);
  const isAsking = subagent?.state === 'waiting_for_input';
  // Reading the log would wake a task that only waits.
  const said = subagent && !isAsking ? subagent.log.text : '';
  const runs = Math.round((host.environment.clock.now() - admission.startedAt) / 60_000);
  const parts = tree
    .list({ subagentId: id })
    .filter((part) => part.id !== id)
    .slice(-MAX_PROGRESS)
    .map(({ task, progress: notes }) => [task, ...notes.slice(-1).map(progressText)].join(': '))
    .map((line) => clip(line, MAX_SHORT_CHARS));
  const passedOn = messages?.map(({ applied }) => (applied === true ? 'read' : 'unread'));
  return withoutUndefined({
    task: name,
    status: isAsking ? 'asks_the_user' : status,
    ...(subagent && { minutes: runs }),
    ...(isAsking && { question: questionOf(session, id) }),
    ...(progress.length > 0 && { progress: progress.slice(-MAX_PROGRESS) }),
    ...(said !== '' && { said: clip(said, MAX_FINISHED_CHARS) }),
    ...(parts.length > 0 && { parts }),
    passedOn,
    ...(isRead
      ? { result, summary, error: error?.message, partial, caveats, workingMemory }
      : { beginsWith: clip(outcome?.text ?? '', MAX_FINISHED_CHARS) }),
  });
}
