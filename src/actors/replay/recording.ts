// Exports a session as text, with its accepted events and the changes that each entry caused. Comparing it with a
// replay by another version of the code shows the differences.
//
//   {"recording":1,"scope":"ses_1","entries":2}
//   {"unit":"ses_1","seq":1,"at":1778587391000,"actor":"opening",…,"ledTo":{"connection":"created",…}}
//   {"unit":"ses_1","seq":2,…,"ledTo":{"connection":"connecting"}}
//
// Owns:     the format, and the comparison.
// Does not: read or write files, or remove secrets (`redactingJournal` does, before the entries are stored).
//
// Invariants
//   RECORDING-1. An exported recording can be imported again. A check by the same code then finds no difference.
//   RECORDING-2. If the text of a recording was cut or changed, or comes from a newer version, reading it fails with an
//       error that names the line.

import { z } from 'zod';
import { check } from '../../values/checks.ts';
import {
  ConfigurationError,
  OffstageError,
  ProtocolError,
  isA,
  messageOf,
} from '../../values/errors.ts';
import { journalEntryOf } from '../ports/journal-entry.ts';
import type { Journal, JournalEntry } from '../ports/journal.ts';
import { writeScope } from './fork-session.ts';
import { replaySession } from './replay-session.ts';
import type { Changes } from './replay-view.ts';

const VERSION = 1;

/** An entry, and the changes that it caused at the time of the export. */
export interface RecordedStep {
  /** The journal entry. */
  readonly entry: JournalEntry;
  /** The changes that the entry caused. */
  readonly changes: Changes;
  /** False if the code that exported the recording would refuse the entry. */
  readonly isAccepted: boolean;
}

/**
 * A recorded session, which consists of its journal entries and the changes that each one caused at the time of the
 * export.
 */
export interface Recording {
  /** The id of the session. */
  readonly scope: string;
  /** The steps, in the order of the journal. */
  readonly steps: readonly RecordedStep[];
}

const headerSchema = z.looseObject({
  recording: z.int().positive(),
  scope: z.string(),
  entries: z.int().nonnegative(),
});

const lineSchema = z.looseObject({
  ledTo: z.record(z.string(), z.string().nullable()).optional(),
  isAccepted: z.boolean().optional(),
});

/**
 * Exports a session's journal entries as JSON Lines, for tests or for inspection elsewhere.
 * @throws {ConfigurationError} `UNKNOWN_SESSION`; and the errors of `replaySession`.
 */
export async function exportRecording(journal: Journal, scope: string): Promise<string> {
  const entries = await journal.read({ scope });
  if (entries.length === 0)
    throw new ConfigurationError('UNKNOWN_SESSION', `The journal has no session "${scope}"`);
  const lines = [JSON.stringify({ recording: VERSION, scope, entries: entries.length })];
  for (const { entry, changes, isAccepted } of replaySession(entries)) {
    const { scope: _, ...kept } = entry;
    const ledTo = Object.keys(changes).length > 0 ? { ledTo: changes } : {};
    lines.push(JSON.stringify({ ...kept, ...ledTo, ...(isAccepted ? {} : { isAccepted }) }));
  }
  return `${lines.join('\n')}\n`;
}

/**
 * Reads the output of `exportRecording`. Errors refer to the text as `source`.
 * @throws {ProtocolError} `MALFORMED_RECORDING`.
 * @throws {ConfigurationError} `RECORDING_TOO_NEW`.
 */
export function parseRecording(text: string, source = 'The recording'): Recording {
  check('parseRecording(text, source)', z.tuple([z.string(), z.string()]), [text, source]);
  const [first = '', ...lines] = text.split('\n').filter((line) => line.trim() !== '');
  const header = checked(headerSchema, first, `${source}, line 1`);
  if (header.recording > VERSION)
    throw new ConfigurationError(
      'RECORDING_TOO_NEW',
      `${source} was written by a newer version of Offstage (${header.recording}; this one knows ${VERSION})`,
    );
  const { scope, entries } = header;
  if (entries !== lines.length)
    throw malformed(source, `expected ${entries} entries, got ${lines.length}`, text);
  const steps = lines.map((line, index) => {
    const where = `${source}, line ${index + 2}`;
    const { ledTo = {}, isAccepted = true, ...kept } = checked(lineSchema, line, where);
    return { entry: journalEntryOf({ scope, ...kept }, where), changes: ledTo, isAccepted };
  });
  return { scope, steps };
}

/**
 * Writes a recording into a journal, for `forkSession`.
 * @throws {ConfigurationError} `SESSION_EXISTS`.
 */
export async function importRecording(journal: Journal, recording: Recording): Promise<void> {
  const entries = recording.steps.map(({ entry }) => entry);
  await writeScope(journal, recording.scope, entries);
}

/** The first entry whose replay differs from the recording. */
export interface RecordingDifference {
  /** The number of the entry, counted from 1. */
  readonly number: number;
  /** The first entry whose replay differs from the recording. */
  readonly entry: JournalEntry;
  /** The differences, one per line. */
  readonly differences: readonly string[];
}

/** Replays a recording with the current code. Returns the first difference; null if there is none. */
export function checkRecording({ steps }: Recording): RecordingDifference | null {
  const replay = replaySession(steps.map(({ entry }) => entry));
  for (const [index, { entry, changes, isAccepted }] of steps.entries()) {
    const found = (differences: readonly string[]): RecordingDifference => ({
      number: index + 1,
      entry,
      differences,
    });
    try {
      const step = replay.next().value;
      if (!step) return found(['it is not replayed']);
      if (isAccepted && !step.isAccepted) return found(['it was accepted, and is not any more']);
      const differences = differencesOf(changes, step.changes);
      if (differences.length > 0) return found(differences);
    } catch (error) {
      if (!isA(error, OffstageError)) throw error;
      return found([`it cannot be folded any more: ${error.message}`]);
    }
  }
  return null;
}

function differencesOf(before: Changes, now: Changes): readonly string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(now)]);
  return [...names]
    .filter((name) => before[name] !== now[name])
    .map((name) => `${name}: was ${told(before[name])}, is ${told(now[name])}`);
}

function told(value: string | null | undefined): string {
  if (value === undefined) return 'left as it was';
  return value === null ? 'no more' : `\`${value}\``;
}

function checked<T>(schema: z.ZodType<T>, line: string, where: string): T {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw malformed(where, `expected JSON: ${messageOf(error)}`, line);
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw malformed(where, z.prettifyError(parsed.error), line);
}

function malformed(where: string, what: string, raw: string): ProtocolError {
  return new ProtocolError(
    'MALFORMED_RECORDING',
    `${where}: expected a line that \`exportRecording\` wrote: ${what}`,
    { raw },
  );
}
