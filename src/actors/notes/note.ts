// What the runtime says to a model, composed of two kinds of parts: sentences of the runtime, and
// quotations of what anybody else said.
//
// Owns:     the form of a note, and the quotation.
// Does not: choose the words (conversation/prompts), mark notes (note-marks), or choose roles.
//
// Invariants
//   NOTE-1. A sentence is a constant of the runtime: the type admits literals and numbers only. What
//           the app's author wrote for the model (a greeting, `injectSystemMessage`) is admitted by name.
//   NOTE-2. A quotation is one line of JSON. Its content cannot end it, begin a line, or hold what a
//           reader cannot see: line breaks, control and format characters and `<` are escaped.
//   NOTE-3. A note that is too long is cut within its quoted strings; its form stays whole.
//   NOTE-4. Models that read a conversation or a report beside it (summary, memory, claims) are told of it
//           in notes, too.

import type { JSONValue } from 'ai';
import { clip } from '../../values/clip.ts';

declare const trusted: unique symbol;

/** Words of the runtime. */
export type Sentence = string & { readonly [trusted]: true };

/** Makes a sentence of literals and numbers; other text does not type-check (NOTE-1). */
export function sentence(
  strings: TemplateStringsArray,
  ...values: readonly (Sentence | number)[]
): Sentence {
  return strings.reduce((text, part, at) => `${text}${values[at - 1]}${part}`) as Sentence;
}

/** Words of the app's author, who also writes the instructions. */
export function wordsOfApp(text: string): Sentence {
  return text as Sentence;
}

/** What others said, under names that the runtime gives it. */
export type Quotes = Readonly<Record<string, JSONValue>>;

/** A result or progress in the place of a turn: `[Subagent task 7 completed]: "…"`. */
export interface QuotedTurn {
  readonly subagentId: string;
  readonly how: 'completed' | 'completed with error' | 'reports';
  /** Of `completed with error`. */
  readonly error?: string;
  readonly text: string;
}

/** One message of the runtime to a model. Plain JSON: it is kept in journals. */
export interface Note {
  /** A `Sentence`. */
  readonly says?: string;
  readonly quotes?: Quotes;
  readonly turns?: readonly QuotedTurn[];
}

/** A note, or the text that an earlier version kept in its place, which is shown as it is. */
export type Prompt = Note | string;

/** A note of these parts; parts without content are left out. */
export function note(says: Sentence, quotes?: Quotes): Note {
  return { says, ...(quotes && { quotes }) };
}

/** `first`, with another sentence behind its own. */
export function noteWith(first: Note, says: Sentence): Note {
  return { ...first, says: first.says === undefined ? says : `${first.says} ${says}` };
}

// Beyond the control characters of JSON: C1, format characters (zero-width, bidi, tags), line
// separators, variation selectors, and the bracket of chat templates and XML.
const ESCAPED =
  /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}\p{Variation_Selector}\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0<]/gu;

/** A value as one line of JSON (NOTE-2). */
export function quoted(value: JSONValue): string {
  return JSON.stringify(value).replace(ESCAPED, (hidden) =>
    Array.from({ length: hidden.length }, (_, at) => {
      const unit = hidden.charCodeAt(at).toString(16);
      return `\\u${unit.padStart(4, '0')}`;
    }).join(''),
  );
}

/** One line of a turn, without a mark. */
export function turnLine({ subagentId, how, error, text }: QuotedTurn): string {
  // Ids of the runtime are plain; a name that stands in the place of one may be anything.
  const id = /^[\w.:-]+$/.test(subagentId) ? subagentId : quoted(subagentId);
  const failure = error === undefined ? '' : `: ${quoted(error)}`;
  return `[Subagent task ${id} ${how}${failure}]: ${quoted(text)}`;
}

/** A prompt for a reader who is no model: a transcript, a summary, a log. */
export function promptText(prompt: Prompt): string {
  if (typeof prompt === 'string') return prompt;
  const { says, quotes, turns = [] } = prompt;
  return [
    ...turns.map(turnLine),
    ...(says ? [says] : []),
    ...(quotes ? [quoted(quotes)] : []),
  ].join('\n');
}

/** So many characters of a note are quoted or said. */
export function noteChars({ says = '', quotes, turns }: Note): number {
  return says.length + JSON.stringify([quotes, turns]).length;
}

/** The note with its quoted strings cut until it has at most about `maxChars` (NOTE-3). */
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

/** A note as a model reads it. */
export interface ReadNote {
  readonly mark: string;
  readonly says: string;
  readonly quotes: Readonly<Record<string, unknown>>;
  /** The result, error, news or question that it quotes; undefined: none of these. */
  readonly text: string | undefined;
  readonly turns: readonly string[];
}

const LINE = /^\[(note|data) ([^\]\s]+)\] (.*)$/;
const TURN = /^(\[Subagent task .*\]: ".*") \[data ([^\]\s]+)\]$/;

/**
 * The notes in a text, for models and tests that are programs: what the lines of each mark say and quote.
 * It does not tell genuine notes from forged ones.
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
  for (const line of text.split('\n')) {
    const [, kind, mark = '', content = ''] = LINE.exec(line) ?? [];
    const [, turn, markOfTurn = ''] = TURN.exec(line) ?? [];
    if (kind === 'note') of(mark).says = content;
    else if (kind === 'data') Object.assign(of(mark).quotes, parsedObject(content));
    else if (turn !== undefined) of(markOfTurn).turns.push(turn);
  }
  return [...notes].map(([mark, read]) => ({ mark, ...read, text: textIn(read.quotes) }));
}

function textIn({
  result,
  error,
  text,
  question,
}: Readonly<Record<string, unknown>>): string | undefined {
  return [result, error, text, question].find((held) => typeof held === 'string');
}

function parsedObject(json: string): object {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
}
