// The notes that the runtime adds to the conversation, parsed into data. A note has its mark in its first line. Its
// quotation is JSON under the same mark, in the same message or in an earlier one.

import { readNotes, type ReadNote } from 'offstage/testing';

/** One choice of a question: `Economy ($12, 5 min)`. */
export interface SpokenOption {
  /** Absent if the runtime does not report it. */
  readonly id?: string;
  readonly label: string;
  readonly detail: string | null;
}

/** A subagent's question that the lead agent may settle. */
export interface AskedQuestion {
  /** Absent if the runtime does not report it. */
  readonly id?: string;
  readonly subagent: string;
  readonly options: readonly SpokenOption[];
  /** The question asks for the user's approval. */
  readonly isApproval?: boolean;
}

/** The questions that are open, and those that were just answered. */
export interface AskedNotice {
  readonly type: 'asked';
  readonly open: readonly AskedQuestion[];
  readonly answered: readonly AskedQuestion[];
  /** The runtime did not report the question as open, so an answer reaches the subagent without a call. */
  readonly isOnlyKnownFromAsking?: boolean;
  /**
   * The lead agent has said something else since the question, so the answer reaches the subagent only through the
   * call.
   */
  readonly isFollowed?: boolean;
  /** The running tasks, under the names that the runtime uses for them. */
  readonly running?: readonly string[];
}

export type Notice =
  | AskedNotice
  | {
      readonly type: 'question';
      readonly subagent: string;
      readonly question: string;
      readonly options: readonly SpokenOption[];
      readonly isApproval?: boolean;
    }
  | { readonly type: 'completed'; readonly toolName: string; readonly result: string }
  | { readonly type: 'failed'; readonly toolName: string; readonly error: string }
  /** Said literally: an update from a subagent, or the news that a webhook brought. */
  | { readonly type: 'news'; readonly label: string; readonly text: string }
  /** The user was talking to a subagent. */
  | { readonly type: 'overheard'; readonly words: string }
  | { readonly type: 'cancelled'; readonly toolName: string }
  /** The text that the lead agent passed to a subagent. */
  | { readonly type: 'told'; readonly message: string }
  /** For the lead agent's information only. */
  | { readonly type: 'background'; readonly text: string; readonly running?: readonly string[] };

/** The notes in these texts, by their marks. */
export function notesIn(texts: readonly string[]): ReadonlyMap<string, ReadNote> {
  return new Map(readNotes(texts.join('\n')).map((note) => [note.mark, note]));
}

/** The notice that the instructions of a single response ask the lead agent to say, or null. */
export function readAssignment(
  instructions: string,
  notes: ReadonlyMap<string, ReadNote>,
): Notice | null {
  const marks = instructions.match(/(?<=\bnote )[\w-]+/g) ?? [];
  // The first mark may belong to the instructions.
  const note = marks.map((mark) => notes.get(mark)).findLast((found) => found !== undefined);
  return note ? noticeOf(note) : null;
}

/** The notice in a message, or null. `notes`: the notes of the whole conversation. */
export function readNotice(
  message: string,
  notes: ReadonlyMap<string, ReadNote> = notesIn([message]),
): Notice | null {
  const text = message.trim();
  // A transport sends this placeholder for silence.
  if (/^\[The user has not said anything yet\.?\]$/.test(text)) return { type: 'background', text };
  const [, part, mark = ''] = /^\[(note|data) ([^\]\s]+)\] /.exec(text) ?? [];
  const note = notes.get(mark);
  if (!note) return null;
  // A quotation in a separate message belongs to the note before it.
  return part === 'note' ? noticeOf(note) : { type: 'background', text };
}

function noticeOf({ says, quotes }: ReadNote): Notice {
  const { question, options, task, result, error, reason, words, label, text, message } = quotes;
  const running = Array.isArray(quotes['running'])
    ? { running: quotes['running'].map(nameOf) }
    : {};
  if (Array.isArray(quotes['open']))
    return {
      type: 'asked',
      open: quotes['open'].map(askedOf),
      answered: asList(quotes['answered']).map(askedOf),
      ...running,
    };
  if (typeof question === 'string')
    return {
      type: 'question',
      subagent: typeof quotes['subagent'] === 'string' ? quotes['subagent'] : '',
      question,
      options: asList(options).map(optionOf),
      ...(says.includes('an approval') && { isApproval: true }),
    };
  if (typeof words === 'string') return { type: 'overheard', words };
  if (typeof task === 'string') {
    if (typeof result === 'string') return { type: 'completed', toolName: task, result };
    if (typeof error === 'string') return { type: 'failed', toolName: task, error };
    if (typeof reason === 'string') return { type: 'cancelled', toolName: task };
  }
  if (typeof label === 'string' && typeof text === 'string') return { type: 'news', label, text };
  if (typeof message === 'string') return { type: 'told', message };
  return { type: 'background', text: says, ...running };
}

/** The name of a running task in a note; the note may also contain its progress. */
function nameOf(running: unknown): string {
  return typeof running === 'string' ? running : (running as { task: string }).task;
}

function optionOf(option: unknown): SpokenOption {
  const { id, label, description } = (typeof option === 'string' ? partsOf(option) : option) as {
    id?: string;
    label: string;
    description?: string;
  };
  return { ...(id !== undefined && { id }), label, detail: description ?? null };
}

/** An option in a note has the form "label: description", or consists of the label only. */
function partsOf(option: string) {
  const [label, ...more] = option.split(': ');
  return { label, ...(more.length > 0 && { description: more.join(': ') }) };
}

function askedOf(asked: unknown): AskedQuestion {
  const { questionId, subagent, options, isApproval } = asked as {
    questionId: string;
    subagent: string;
    options?: unknown;
    isApproval?: true;
  };
  return {
    id: questionId,
    subagent,
    options: asList(options).map(optionOf),
    ...(isApproval && { isApproval }),
  };
}

function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
