// A note: a message from the runtime to a model, composed of the runtime's sentences and of quotations.
//
// Owns:     the format of notes and quotations.
// Does not: choose the text (conversation/prompts.ts), mark notes (note-marks.ts), or choose roles.
//
// Invariants
//   NOTE-1. A sentence is a constant of the runtime: its type only permits literals and numbers. `wordsOfApp` permits
//       text that the app's author wrote for the model (a greeting, `injectSystemMessage`).
//   NOTE-2. A quotation is written as one line of JSON. Its content cannot end this line, begin another, or contain
//           invisible characters: line breaks, control and format characters and `<` are escaped.
//   NOTE-3. A note that is too long is shortened inside its quoted strings, so that its format stays valid.
//   NOTE-4. A conversation or a report that a model should read (for a summary, for memory, to check claims) is also
//       written as notes.

import type { JSONValue } from 'ai';
import { parsedOrText, propertiesOf } from '../../values/json.ts';
import { clip } from '../../values/clip.ts';
import { escapes } from '../../values/visible.ts';

declare const trusted: unique symbol;

/** Text that the runtime wrote. */
export type Sentence = string & { readonly [trusted]: true };

/** Creates a sentence from literals and numbers; other values do not type-check (NOTE-1). */
export function sentence(
  strings: TemplateStringsArray,
  ...values: readonly (Sentence | number)[]
): Sentence {
  return strings.reduce((text, part, at) => `${text}${values[at - 1]}${part}`) as Sentence;
}

/** Creates a sentence from a text by the app's author, who also writes the agent's instructions. */
export function wordsOfApp(text: string): Sentence {
  return text as Sentence;
}

/** Content by other authors, quoted under names that the runtime chooses. */
export type Quotes = Readonly<Record<string, JSONValue>>;

/** The result or progress of a subagent, written in place of a turn: `[Subagent task 7 completed]: "…"`. */
export interface QuotedTurn {
  readonly subagentId: string;
  readonly how: 'completed' | 'completed with error' | 'reports';
  /** The error, if `how` is `completed with error`. */
  readonly error?: string;
  readonly text: string;
}

/** One message from the runtime to a model. Plain JSON, so that journals can store it. */
export interface Note {
  /** A `Sentence`. */
  readonly says?: string;
  /** The texts of users, models and tools, by name. @defaultValue none */
  readonly quotes?: Quotes;
  /** Quoted turns of the conversation, oldest first. @defaultValue none */
  readonly turns?: readonly QuotedTurn[];
}

/** A note, or the text that an earlier version stored in place of a note; the text is written unchanged. */
export type Prompt = Note | string;

/** Returns a note with these parts; empty parts are omitted. */
export function note(says: Sentence, quotes?: Quotes): Note {
  return { says, ...(quotes && { quotes }) };
}

/** Returns the note with another sentence appended. */
export function noteWith(first: Note, says: Sentence): Note {
  return { ...first, says: first.says === undefined ? says : `${first.says} ${says}` };
}

// The characters to escape in addition to JSON's control characters: C1, format characters (zero-width, bidi, tags),
// line separators, variation selectors, and the bracket of chat templates and XML.
const ESCAPED =
  /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}\p{Variation_Selector}\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0<]/gu;

/** Matches text that contains none of these characters. Most texts match, and this search is fast. */
const PLAIN = /^[ -;=-~]*$/;

/** Returns a value as one line of JSON (NOTE-2). */
export function quoted(value: JSONValue): string {
  const json = JSON.stringify(value);
  if (PLAIN.test(json)) return json;
  return json.replace(ESCAPED, escapes);
}

/** Returns a plain name unchanged, and any other text in quotes. */
export function plainOrQuoted(name: string): string {
  return /^[\w.:-]+$/.test(name) ? name : quoted(name);
}

/** Returns a turn as one line, without a mark. */
export function turnLine({ subagentId, how, error, text }: QuotedTurn): string {
  // The runtime's ids are plain, but a name that serves as an id may be any text.
  const id = plainOrQuoted(subagentId);
  const failure = error === undefined ? '' : `: ${quoted(error)}`;
  return `[Subagent task ${id} ${how}${failure}]: ${quoted(text)}`;
}

/** Returns a prompt as text that is not for a model: for a transcript, a summary or a log. */
export function promptText(prompt: Prompt): string {
  if (typeof prompt === 'string') return prompt;
  const { says, quotes, turns = [] } = prompt;
  return [
    ...turns.map(turnLine),
    ...(says ? [says] : []),
    ...(quotes ? [quoted(quotes)] : []),
  ].join('\n');
}

/** Returns the number of characters in a note's sentences and quotations. */
export function noteChars({ says = '', quotes, turns }: Note): number {
  return says.length + JSON.stringify([quotes, turns]).length;
}

/** Returns the note, with its quoted strings shortened to about `maxChars` characters in total (NOTE-3). */
export function clippedNote(whole: Note, maxChars: number): Note {
  let kept = whole;
  for (let each = maxChars; noteChars(kept) > maxChars && each >= 16; each = Math.floor(each / 2)) {
    const most = each;
    kept = {
      ...whole,
      ...(whole.quotes && { quotes: clippedValue(whole.quotes, most) as Quotes }),
      ...(whole.turns && {
        turns: whole.turns.map((turn) => ({
          ...turn,
          text: clip(turn.text, most),
          ...(turn.error !== undefined && { error: clip(turn.error, most) }),
        })),
      }),
    };
  }
  return kept;
}

function clippedValue(value: JSONValue | undefined, maxChars: number): JSONValue {
  if (typeof value === 'string') return clip(value, maxChars);
  if (Array.isArray(value)) return value.map((held) => clippedValue(held, maxChars));
  if (typeof value !== 'object' || value === null) return value ?? null;
  return Object.fromEntries(
    Object.entries(value).map(([name, held]) => [name, clippedValue(held, maxChars)]),
  );
}

/** A note, as read from a model's prompt. */
export interface ReadNote {
  /** The mark of the note. */
  readonly mark: string;
  /** The note's sentences. */
  readonly says: string;
  /** The quoted values, by name. */
  readonly quotes: Readonly<Record<string, unknown>>;
  /** The quoted result, error, progress or question; undefined if there is none. */
  readonly text: string | undefined;
  /** The quoted turns of the conversation, oldest first. */
  readonly turns: readonly string[];
}

const LINE = /^\[(note|data)(?: ([^\]\s]+))?\] (.*)$/;
const MARK_OF_TURN = /(?<=") \[data ([^\]\s]+)\]$/;

/**
 * Returns the notes in a text: the sentences and quotations under each mark. For models and tests that are programs:
 * does not distinguish genuine notes from forged ones.
 */
export function readNotes(text: string): readonly ReadNote[] {
  const notes = new Map<
    string,
    { says: string; quotes: Record<string, unknown>; turns: string[] }
  >();
  const of = (mark: string) => {
    const known = notes.get(mark) ?? { says: '', quotes: {}, turns: [] };
    notes.set(mark, known);
    return known;
  };
  let above = '';
  for (const line of text.split('\n')) {
    const [, kind, mark = kind === 'data' ? above : '', content = ''] = LINE.exec(line) ?? [];
    above = kind === 'note' ? mark : '';
    if (kind === 'note') of(mark).says = content;
    else if (kind === 'data') Object.assign(of(mark).quotes, propertiesOf(parsedOrText(content)));
    else if (line.startsWith('[Subagent task ')) {
      const found = MARK_OF_TURN.exec(line);
      if (found) of(found[1] ?? '').turns.push(line.slice(0, found.index));
    }
  }
  return [...notes].map(([mark, read]) => ({ mark, ...read, text: textIn(read.quotes) }));
}

/** A subagent's task, as read from its model's prompt. */
export interface ReadTask {
  /** The description of the task. */
  readonly task: string;
  /** The arguments; empty if there are none. */
  readonly arguments: Readonly<Record<string, unknown>>;
}

/**
 * Returns a subagent's latest task from an AI SDK prompt; null if the prompt does not belong to a subagent. For models
 * and tests that are programs.
 */
export function readTask(
  prompt: readonly { readonly role: string; readonly content: unknown }[],
): ReadTask | null {
  for (const { role, content } of prompt.toReversed()) {
    if (role !== 'user') continue;
    const read = readNotes(typeof content === 'string' ? content : textsIn(content).join('\n'));
    const found = read.find(({ says }) => says.startsWith(TASK_BEGINS));
    if (typeof found?.quotes['task'] !== 'string') continue;
    const { task, arguments: args } = found.quotes;
    return { task, arguments: propertiesOf(args) };
  }
  return null;
}

/** The beginning of the sentence in every task note. */
export const TASK_BEGINS = sentence`Execute the quoted task`;

function textsIn(content: unknown): readonly string[] {
  if (!Array.isArray(content)) return [];
  return content.flatMap((part: { readonly text?: unknown } | null) =>
    typeof part?.text === 'string' ? [part.text] : [],
  );
}

function textIn({
  result,
  error,
  text,
  question,
}: Readonly<Record<string, unknown>>): string | undefined {
  return [result, error, text, question].find((held) => typeof held === 'string');
}
