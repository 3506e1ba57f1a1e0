// The rules for running work: which call of the runtime's tool `running_task` the user's message needs, and what the
// lead agent says about the result.

import { asRecord, textOf, type Entry, type ToolResultEntry } from './conversation.ts';
import type { Work } from './clause.ts';
import { capital, listed, sentence, slotQuestions, speakable } from './phrases.ts';
import type { ToolCall } from './reply.ts';
import { understand } from './requests.ts';
import { mentions, normalise } from './words.ts';

/** The runtime's tool that reports on running work, stops it, and passes words on to it. */
export const STEER = 'running_task';

/** The running tasks, as named in the latest note. */
function running(entries: readonly Entry[]): readonly string[] {
  const told = entries.findLast(
    (entry) =>
      entry.kind === 'notice' && 'running' in entry.notice && entry.notice.running !== undefined,
  );
  return (told?.kind === 'notice' && 'running' in told.notice && told.notice.running) || [];
}

/** A call to the tool. A task is named by its kind and its detail; "it" is the only task that is running. */
export function steer(
  action: string,
  meant: { readonly work: Work; readonly about?: string; readonly words?: string },
  entries: readonly Entry[],
): ToolCall {
  const { work, about, words } = meant;
  const tasks = running(entries);
  const [only, ...others] = tasks;
  const kind = work === 'unclear' || work === 'everything' ? [] : [work];
  const named = [...kind, ...(about === undefined ? [] : [about])].join(' ');
  const isOnly = named === '' && only !== undefined && others.length === 0 && action !== 'status';
  const task = isOnly ? only : named;
  return {
    toolName: STEER,
    input: { action, ...(task !== '' && { task }), ...(words !== undefined && { words }) },
  };
}

/**
 * The same call again, if it did not name a task: for the only task, or for each task if the user wants to stop
 * everything.
 */
export function namedAgain(
  results: readonly ToolResultEntry[],
  entries: readonly Entry[],
): readonly ToolCall[] {
  const result = results.at(-1);
  const { status, tasks } = asRecord(result?.output);
  if (!result || status !== 'unclear') return [];
  const input = inputOf(result, entries);
  const names = namesIn(tasks);
  const words = entries.findLast((entry) => entry.kind === 'user')?.text ?? '';
  const isAll = understand(words).some(
    (request) => request.type === 'cancel' && request.work === 'everything',
  );
  if (input['task'] !== undefined || (names.length > 1 && !isAll)) return [];
  return names.map((task) => ({ toolName: STEER, input: { action: 'stop', ...input, task } }));
}

/** The same calls again, if the user names tasks that the lead agent has just listed. */
export function clarified(words: string, entries: readonly Entry[]): readonly ToolCall[] {
  const spoke = entries.findLastIndex(({ kind }) => kind === 'assistant');
  const before = entries.slice(0, spoke).findLastIndex(({ kind }) => kind === 'user');
  const result = entries
    .slice(before + 1, spoke)
    .findLast(
      (entry): entry is ToolResultEntry =>
        entry.kind === 'result' &&
        entry.toolName === STEER &&
        asRecord(entry.output)['status'] === 'unclear',
    );
  if (!result || words === '') return [];
  const tasks = namesIn(asRecord(result.output)['tasks']);
  const input = { action: 'stop', ...inputOf(result, entries) };
  return chosenIn(normalise(words), tasks).map((task) => ({
    toolName: STEER,
    input: { ...input, task },
  }));
}

const common = new Set('a an the of for to in on my and at sales it'.split(' '));

/** The tasks that an utterance names: all, by their place in the list, or by words that match only one of them. */
function chosenIn(plain: string, tasks: readonly string[]): readonly string[] {
  if (/^(?:um |uh )?(?:both|all)\b|\b(?:both of them|all of them)\b/.test(plain)) return tasks;
  const contents = tasks.map((task) => normalise(task).split(' '));
  const fitting = tasks.filter((_, index) =>
    contents[index]?.some(
      (word) =>
        !common.has(word) &&
        mentions(plain, word) &&
        contents.every((content, other) => other === index || !content.includes(word)),
    ),
  );
  if (fitting.length > 0) return fitting.length === 1 ? fitting : [];
  const place = [/\bfirst\b/, /\bsecond\b(?! quarter)/].findIndex((each) => each.test(plain));
  const found = tasks[place];
  return found === undefined ? [] : [found];
}

function namesIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(textOf) : [];
}

function inputOf({ callId }: ToolResultEntry, entries: readonly Entry[]) {
  const made = entries.find((entry) => entry.kind === 'call' && entry.callId === callId);
  return made?.kind === 'call' ? made.input : {};
}

/** "A ride to the airport" is "the ride to the airport". */
function spoken(task: unknown): string {
  const name = speakable(textOf(task)).replace(/[.!]$/, '');
  const known = name.replace(/^An? /, 'the ');
  return known === name ? `“${name}”` : known;
}

/** Returns the lead agent's reply to the tool's results. */
export function sayTasks(all: readonly ToolResultEntry[], entries: readonly Entry[]): string {
  // An unclear call was followed by others.
  const results = all.filter(
    ({ output }, index) => index === all.length - 1 || asRecord(output)['status'] !== 'unclear',
  );
  const outputs = results.map(({ output }) => asRecord(output));
  const stopped = outputs.filter(({ status }) => status === 'stopped');
  const parts: string[] = [];
  if (stopped.length > 0)
    parts.push(`Okay, I've stopped ${listed(stopped.map(({ task }) => spoken(task)))}.`);
  for (const { done, unknown } of stopped) parts.push(sayDone(done, unknown));
  results.forEach((result, index) => {
    if (asRecord(result.output)['status'] === 'stopped') return;
    const said =
      result.error === null
        ? sayTask(outputs[index] ?? {}, textOf(inputOf(result, entries)['action']))
        : `That did not work: ${sentence(speakable(result.error))}`;
    parts.push(said);
  });
  return [...new Set(parts)].filter((part) => part !== '').join(' ');
}

/** The tools whose effects remain after a stop. */
const lasting = /^(?:confirm_ride|reserve_table|refund)\b/;

function sayDone(done: unknown, unknown: unknown): string {
  if (namesIn(done).some((call) => lasting.test(call)))
    return 'What it had done by then stays done.';
  return namesIn(unknown).some((call) => lasting.test(call))
    ? 'It was in the middle of it, so I cannot say whether it is done.'
    : '';
}

function sayTask(output: Readonly<Record<string, unknown>>, action: string): string {
  const { status, task, tasks, result } = output;
  const name = spoken(task);
  switch (status) {
    case 'stopping':
      return `${capital(name)} is being stopped.`;
    case 'read':
    case 'passed_on':
      return "Okay, I've passed that on.";
    case 'told_before':
      return 'That is passed on already.';
    case 'too_late':
      return 'That comes too late: it is almost done.';
    case 'refused':
      return "I can't change that now.";
    case 'unclear': {
      const names = namesIn(tasks).map(spoken);
      const which = action === 'tell' ? 'Which one do you mean?' : slotQuestions.work;
      return `I'm working on ${listed(names)}. ${which}`;
    }
    case 'nothing_runs':
      return action === 'tell'
        ? 'Nothing is running that I could change.'
        : 'There is nothing to stop: nothing is running.';
    case undefined:
      return Array.isArray(tasks)
        ? tasks.map((one) => sayView(asRecord(one))).join(' ')
        : 'Nothing is running right now. What can I do for you?';
    default:
      return `${capital(name)} had ended already. ${sentence(speakable(textOf(result)))}`.trim();
  }
}

function sayView({ task, status, progress, result, why }: Readonly<Record<string, unknown>>) {
  const name = capital(spoken(task));
  const latest = namesIn(progress).at(-1);
  switch (status) {
    case 'asks_the_user':
      return `${name} is waiting for your answer.`;
    case 'completed':
      return `${name} is done. ${sentence(speakable(textOf(result)))}`;
    case 'cancelled':
      return `${name} was stopped.`;
    case 'failed':
      return `${name} did not work out. ${sentence(textOf(why))}`;
    case 'running':
      // "Reading sales, 40%" fits after "is".
      return latest === undefined
        ? `${name} is under way.`
        : sentence(`${name} is ${speakable(latest.charAt(0).toLowerCase() + latest.slice(1))}`);
    default:
      return `${name} is about to start.`;
  }
}
