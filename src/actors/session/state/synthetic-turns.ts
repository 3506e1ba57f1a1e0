// The notes that report results to the lead model, individually or together: either as a notice from the runtime or as
// a turn in the user's name.

import { isUnfinished as endsUnfinished } from '../../../results/verify-claims.ts';
import type { Outcome } from '../../contracts/outcome.ts';
import { note, sentence, type Note, type Quotes, type Sentence } from '../../notes/note.ts';
import { isJson } from '../../../values/json.ts';
import { completedSentence, failedSentence } from '../../conversation/prompts.ts';
import type { ToldResult } from '../../contracts/records.ts';

/**
 * The form in which results reach the lead model. `notice`: a note from the runtime, "Background task completed
 * successfully. …", which quotes the result. `turn`: `[Subagent task x completed]: "…"`, as a turn in the user's name.
 * The conversation records this turn and the reply to it like any other.
 */
export type PromptStyle = 'notice' | 'turn';

/**
 * Returns a spawned subagent's name for the lead model, with its id, because several subagents may share a
 * configuration.
 */
export function nameOfSpawned({
  id,
  name,
}: {
  readonly id: string;
  readonly name: string;
}): string {
  return `${name} (${id})`;
}

/** Returns an outcome's content for the lead model. */
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

/** Returns the text to speak about a result: its summary, if it has one. The model receives the whole result. */
export function saidOf({ error, text }: ToldResult, { summary }: Outcome): string {
  return error?.message ?? summary ?? text;
}

export interface ResultWords {
  readonly role: 'system' | 'user';
  one(result: ToldResult): Note;
  /**
   * Builds the note about the results of one request. `working`: the names of tools that are still working on the
   * request.
   */
  together(results: readonly ToldResult[], working: readonly string[]): Note;
  /** Builds the note about progress that must be spoken. */
  progress(subagent: { readonly id: string; readonly name: string }, text: string): Note;
}

const MAX_KEYS = 10;

const UNFINISHED = sentence`A result ends with an announcement: the work may not be finished. Do not say that it is.`;
const UNCONFIRMED = sentence`What is quoted as unconfirmed, the tools do not confirm as done. Say so.`;
const MORE_KEPT = sentence`More of it is in working memory, under the quoted keys. Read it there when the user wants details.`;
const IN_ONE_REPLY = sentence`These results belong to one request. Tell the user about them in one reply; skip those that you have already told.`;
const FAILURES = sentence`If something failed, say in plain words what did not work, and suggest what to do next.`;
const STILL_WORKING = sentence`What is still working comes later.`;

const notice: ResultWords = {
  role: 'system',
  one: (result) =>
    note(
      joined(result.error === null ? completedSentence : failedSentence, ...remarks([result])),
      quotesOf(result),
    ),
  together: (results, working) =>
    note(togetherSentence(results, working), {
      results: results.map(quotesOf),
      ...(working.length > 0 && { stillWorking: [...working] }),
    }),
  progress: ({ name }, text) =>
    note(sentence`A subagent says how far it is. Tell the user; it is not done.`, {
      label: 'SUBAGENT UPDATE',
      subagent: name,
      text,
    }),
};

const turn: ResultWords = {
  role: 'user',
  one: (result) => withRemarks([turnOf(result)], remarks([result]), besides([result])),
  together: (results, working) =>
    withRemarks(results.map(turnOf), [togetherSentence(results, working)], {
      ...besides(results),
      ...(working.length > 0 && { stillWorking: [...working] }),
    }),
  progress: ({ id }, text) => ({ turns: [{ subagentId: id, how: 'reports', text }] }),
};

export const resultWords: Readonly<Record<PromptStyle, ResultWords>> = { notice, turn };

function joined(first: Sentence, ...others: readonly Sentence[]): Sentence {
  return others.reduce((text, other) => sentence`${text} ${other}`, first);
}

/**
 * Returns the sentence that asks the model to report all results in one reply. If there are failures or unfinished
 * work, the sentence asks for those too.
 */
function togetherSentence(results: readonly ToldResult[], working: readonly string[]): Sentence {
  return joined(
    IN_ONE_REPLY,
    ...(results.some(({ error }) => error !== null) ? [FAILURES] : []),
    ...(working.length > 0 ? [STILL_WORKING] : []),
    ...remarks(results),
  );
}

/**
 * Returns the doubts about results, so that the model does not present them as certain. Also names where the model can
 * read more. Empty if there are no doubts, because otherwise a model would look for them.
 */
function remarks(results: readonly ToldResult[]): readonly Sentence[] {
  return [
    ...(results.some(({ isUnfinished }) => isUnfinished) ? [UNFINISHED] : []),
    ...(results.some(({ unverified }) => unverified.length > 0) ? [UNCONFIRMED] : []),
    ...(results.some(hasKeys) ? [MORE_KEPT] : []),
  ];
}

function hasKeys({ subagentId, notes }: ToldResult): boolean {
  return subagentId !== null && notes.length > 0;
}

function quotesOf(result: ToldResult): Quotes {
  const { toolName: task, error, text, input } = result;
  return {
    task,
    ...(error === null
      ? { result: text }
      : { ...(isJson(input) && { arguments: input }), error: error.message }),
    ...beside(result),
  };
}

/** Returns a result's quoted texts. */
function beside(result: ToldResult): Quotes {
  const { notes, unverified, isUnfinished } = result;
  const missing = notes.length - MAX_KEYS;
  return {
    ...(isUnfinished && { mayBeUnfinished: true }),
    ...(unverified.length > 0 && { unconfirmed: [...unverified] }),
    ...(hasKeys(result) && { keys: notes.slice(0, MAX_KEYS) }),
    ...(hasKeys(result) && missing > 0 && { moreKeys: missing }),
  };
}

/** Returns the quoted texts of several results, grouped by task. */
function besides(results: readonly ToldResult[]): Quotes {
  const [only] = results;
  if (results.length === 1 && only) return beside(only);
  const about = results.flatMap((result) => {
    const quotes = beside(result);
    return Object.keys(quotes).length === 0
      ? []
      : [{ task: result.subagentId ?? result.toolName, ...quotes }];
  });
  return about.length === 0 ? {} : { about };
}

function withRemarks(
  turns: NonNullable<Note['turns']>,
  says: readonly Sentence[],
  quotes: Quotes,
): Note {
  const [first, ...others] = says;
  return {
    turns,
    ...(first !== undefined && { says: joined(first, ...others) }),
    ...(Object.keys(quotes).length > 0 && { quotes }),
  };
}

function turnOf({ toolName, subagentId, error, text }: ToldResult) {
  const id = subagentId ?? toolName;
  return error === null
    ? ({ subagentId: id, how: 'completed', text } as const)
    : ({ subagentId: id, how: 'completed with error', error: error.message, text } as const);
}
