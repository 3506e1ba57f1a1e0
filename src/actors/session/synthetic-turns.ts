// The words in which results reach the lead model: one by one or together, as a notice of
// the runtime or as a turn in the user's place. Results are quoted as data: they cannot
// speak in the runtime's name.

import type { Failure } from '../../machines/index.ts';
import { isUnfinished as endsUnfinished } from '../claims/unfinished.ts';
import type { Outcome } from '../subagent/outcome.ts';
import { completedPrompt, failedPrompt, fenced, noticePrompt } from './prompts.ts';

/**
 * How results are put to the lead model. `notice`: `[SYSTEM: Background task "x" completed
 * successfully. Result: …]`. `turn`: `[Subagent task x completed]: …`, in a turn in the user's
 * place, which is recorded in the conversation as the reply to it is.
 */
export type PromptStyle = 'notice' | 'turn';

/** A result that shall be told. */
export interface ToldResult {
  readonly toolName: string;
  readonly subagentId: string | null;
  /** Null: it completed. */
  readonly error: Failure | null;
  /** The result; what there was of it when it did not complete. */
  readonly text: string;
  /** Keys that the subagent left in working memory. */
  readonly notes: readonly string[];
  /** What it says that it has done, and its tools have not. */
  readonly unverified: readonly string[];
  /** Its last words announce work that it has not done. */
  readonly isUnfinished: boolean;
}

/** What there is to tell of an outcome. */
export function toldResult(
  toolName: string,
  subagentId: string | null,
  { status, text: result, partial = '', error, verification, notes = [] }: Outcome,
): ToldResult {
  const isCompleted = status === 'completed';
  const text = isCompleted ? result : partial;
  const failure = error ?? {
    code: 'INTERNAL',
    message: `It ended as ${status}`,
    retryable: false,
  };
  return {
    toolName,
    subagentId,
    text,
    notes,
    unverified: verification?.unverified.map(({ claim }) => claim) ?? [],
    isUnfinished: isCompleted && (verification?.incomplete ?? endsUnfinished(text)),
    error: isCompleted ? null : failure,
  };
}

/** What is said of it: the short form, where there is one; the model reads the whole. */
export function saidOf({ error, text }: ToldResult, { summary }: Outcome): string {
  return error?.message ?? summary ?? text;
}

export interface ResultWords {
  readonly role: 'system' | 'user';
  one(result: ToldResult): string;
  /** Results of one request; `working`: the names of tools that still work for it. */
  together(results: readonly ToldResult[], working: readonly string[]): string;
  /** Progress that is to be said aloud. */
  progress(subagent: { readonly id: string; readonly name: string }, text: string): string;
}

const MAX_KEYS = 10;

/** The user hears of it all in one reply: what came of it, what failed and why, what is still to come. */
function inOneReply(working: readonly string[]): string {
  const rest =
    working.length > 0
      ? ` Still at work, to be told later: ${working.map((name) => `"${fenced(name)}"`).join(', ')}.`
      : '';
  return (
    `[SYSTEM: These results belong to one request. Tell the user about all of them in one reply: ` +
    `for a failure the exact error details, then ask how to proceed.${rest}]`
  );
}

const notice: ResultWords = {
  role: 'system',
  one: (result) =>
    result.error === null
      ? completedPrompt(result.toolName, reported(result)) + hint(result)
      : failedPrompt(result.toolName, result.error) + hint(result),
  together: (results, working) =>
    [...results.map((result) => noticeOf(result) + hint(result)), inOneReply(working)].join('\n'),
  progress: ({ name }, text) => noticePrompt('SUBAGENT UPDATE', `${name}: ${text}`),
};

const turn: ResultWords = {
  role: 'user',
  one: (result) => turnOf(result) + hint(result),
  together: (results, working) =>
    [...results.map((result) => turnOf(result) + hint(result)), inOneReply(working)].join('\n\n'),
  progress: ({ id }, text) => `[Subagent task ${id} reports]: ${fenced(text)}`,
};

export const resultWords: Readonly<Record<PromptStyle, ResultWords>> = { notice, turn };

function noticeOf(result: ToldResult): string {
  const { toolName, error } = result;
  return error === null
    ? `[SYSTEM: Background task "${toolName}" completed successfully. Result: ${reported(result)}]`
    : `[SYSTEM: Background task "${toolName}" failed. Exact error details: ${fenced(error.message)}]`;
}

function turnOf(result: ToldResult): string {
  const { toolName, subagentId, error } = result;
  const how = error === null ? 'completed' : `completed with error: ${fenced(error.message)}`;
  return `[Subagent task ${subagentId ?? toolName} ${how}]: ${reported(result)}`;
}

/** Where there is more to read. Nothing is said where there is nothing: a model would look for it. */
function hint({ subagentId, notes }: ToldResult): string {
  if (subagentId === null || notes.length === 0) return '';
  const keys = notes.slice(0, MAX_KEYS).map(fenced).join(', ');
  const more = notes.length > MAX_KEYS ? `, and ${notes.length - MAX_KEYS} more` : '';
  return `\n[SYSTEM: More of it is in working memory: ${keys}${more}. Read it there when the user wants details.]`;
}

/** What speaks against a report stands beside it, so that it is not passed on as it is. */
function reported({ text, unverified, isUnfinished }: ToldResult): string {
  const claims = unverified.map((claim) => `"${fenced(claim)}"`).join(', ');
  return [
    fenced(text),
    ...(isUnfinished
      ? ['(It ends with an announcement: the work may not be finished. Do not say that it is.)']
      : []),
    ...(claims === '' ? [] : [`(Its tools do not confirm that this was done: ${claims}. Say so.)`]),
  ].join(' ');
}
