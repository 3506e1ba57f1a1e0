// OpenClaw's task manager with its numbers and names, built on `offstage/tasks`.
//
// Does not: share its text rules, which guess and read only English. An app should use a `plan` function instead.

import { z } from 'zod';
import type { Relay, RelayTask } from '../actors/ports/relay.ts';
import { anObject, check } from '../values/checks.ts';
import {
  taskManager,
  TaskQueueTimeoutError,
  type TaskManager,
  type TaskManagerOptions,
  type TaskPlan,
} from '../tasks/index.ts';

export { TaskQueueTimeoutError as OpenClawTaskQueueTimeoutError };

/** The kinds of tasks that OpenClaw knows. */
export type OpenClawTaskDomain = 'calendar' | 'email' | 'coding' | 'research' | 'other';

/** A task's topic, and whether the task makes a change. */
export interface OpenClawTaskKind {
  /** The topic that the words of the task name; `other` if they name none. */
  readonly domain: OpenClawTaskDomain;
  /** Whether the task makes a change. Only calendar and email tasks can write. */
  readonly operation: 'read' | 'write';
}

/** The limits of OpenClaw's subagents. Use them as `{ ...openClawLimits }` in a configuration. */
export const openClawLimits = { maxSteps: 12, timeout: 300_000 } as const;

const DOMAINS: readonly (readonly [OpenClawTaskDomain, RegExp])[] = [
  ['calendar', /\b(calendar|meetings?|appointments?|(re)?schedul\w*|events?|invit\w*)\b/i],
  ['email', /\b(e-?mails?|inbox|gmail|mails?|reply|replies)\b/i],
  ['coding', /\b(cod(e|ing)|bugs?|repo(sitory)?|refactor\w*|tests?|pull requests?|commit\w*)\b/i],
  ['research', /\b(research\w*|look up|find out|search\w*|compare|summari[sz]e)\b/i],
];
const WRITES =
  /\b(add|accept|archive|book|cancel|change|confirm|create|decline|delete|draft|forward|invite|move|remove|reply|reschedule|schedule|send|update|write)\b/i;

/** Words that refer to earlier ones and therefore do not name a topic. */
const FOLLOWS_UP =
  /^(yes|yeah|yep|ok(ay)?|sure|please|go ahead|do (it|that|so)|confirm\w*|cancel|undo|and|also|now)\b|\b(it|that|this|them|those|these|the same)\b/i;

/** Derives the domain and the operation from the English text of a task. Only calendar and email tasks can write. */
export function openClawTaskKind(words: string): OpenClawTaskKind {
  check('openClawTaskKind(words)', z.string(), words, 'INVALID_ARGUMENT');
  const domain = DOMAINS.find(([, pattern]) => pattern.test(words))?.[0] ?? 'other';
  return { domain, operation: operationOf(domain, words) };
}

function operationOf(domain: OpenClawTaskDomain, words: string): OpenClawTaskKind['operation'] {
  const mayWrite = domain === 'calendar' || domain === 'email';
  return mayWrite && WRITES.test(words) ? 'write' : 'read';
}

/**
 * Returns a task's plan: the domain is the topic, and a writer takes the domain's lock (`calendar-write:primary`). A
 * text without a domain that refers to an earlier one ("yes, confirm it") belongs to the topic of the latest thread.
 * The task argument `thread` is a hint that names another topic, and `resource` names another account.
 */
export function openClawPlan({ args, description }: RelayTask, latestTopic?: string): TaskPlan {
  const words = [description, ...Object.values(args).filter((arg) => typeof arg === 'string')];
  const said = words.join('\n');
  const { thread, resource } = args;
  const hinted = typeof thread === 'string' && thread !== '' ? `hint:${thread}` : undefined;
  const named = openClawTaskKind(said);
  const isFollowUp = named.domain === 'other' && words.some((one) => FOLLOWS_UP.test(one.trim()));
  const topic = hinted ?? (isFollowUp ? latestTopic : undefined) ?? named.domain;
  const domain = isFollowUp ? DOMAINS.find(([name]) => name === topic)?.[0] : named.domain;
  const id = typeof resource === 'string' && resource !== '' ? resource : 'primary';
  return {
    ...(topic === 'other' ? {} : { topic }),
    writes:
      domain !== undefined && operationOf(domain, said) === 'write'
        ? [`${domain}-write:${id}`]
        : [],
  };
}

/** Returns the text that ended an agent's turn if it is a question; otherwise null. */
export function looksLikeQuestion(words: string): string | null {
  check('looksLikeQuestion(words)', z.string(), words, 'INVALID_ARGUMENT');
  const text = words.trim();
  return /[?？]["'”’)\]]*$/.test(text) ? text : null;
}

/**
 * Creates a task manager with OpenClaw's numbers: 10 concurrent tasks, 30 s in the queue, 10 min for a thread, and one
 * retry after an empty answer. A text that looks like a question is treated as a question.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
export function openClawTaskManager(
  relay: Relay,
  options: Partial<Omit<TaskManagerOptions, 'relay'>> = {},
): TaskManager {
  check('openClawTaskManager(relay)', anObject('a relay: acpRelay(…)', 'start'), relay);
  return taskManager({
    maxRunning: 10,
    queueTimeoutMs: 30_000,
    threadTtlMs: 600_000,
    emptyRetries: 1,
    plan: openClawPlan,
    questionIn: looksLikeQuestion,
    ...options,
    relay,
  });
}
