// A recorded session in a test: `recording('calls/may-12.jsonl').check()`.
//
// Owns:     the file, and the message that describes a difference.
// Does not: know the format, or fold entries (`actors/replay`).

import { OffstageError } from '../../values/errors.ts';
import type { JournalEntry } from '../../actors/ports/journal.ts';
import { checkRecording, parseRecording, type Recording } from '../../actors/replay/recording.ts';

/** An entry no longer has the consequences that it had when it was recorded. */
export class RecordingError extends OffstageError {
  /** The number of the entry, starting at 1. */
  readonly number: number;
  /** The first entry that has different consequences when it is replayed. */
  readonly entry: JournalEntry;
  /** The differences, one per line. */
  readonly differences: readonly string[];
  constructor(
    message: string,
    difference: {
      readonly number: number;
      readonly entry: JournalEntry;
      readonly differences: readonly string[];
    },
  ) {
    super('RECORDING_DIFFERS', message);
    this.number = difference.number;
    this.entry = difference.entry;
    this.differences = difference.differences;
  }
}

/** A recorded session in a file. `recording` returns it for a test. */
export interface RecordedSession {
  /** Reads the content of the file. */
  read(): Promise<Recording>;
  /**
   * Replays the recorded session with this version of Offstage. This needs no keys, models, tools or code of the app.
   * @throws {RecordingError} if an entry is no longer accepted or has different consequences; the error names the first
   * such entry
   * @throws {ProtocolError} `MALFORMED_RECORDING`. @throws {ConfigurationError} `RECORDING_TOO_NEW`.
   */
  check(): Promise<void>;
}

/**
 * Opens a session that `exportRecording` or `offstage replay --export` wrote to a file. Requires Node.js.
 * @param path A path relative to the working directory, or a `file:` URL.
 */
export function recording(path: string | URL): RecordedSession {
  const read = async (): Promise<Recording> => {
    const { readFile } = await import('node:fs/promises');
    return parseRecording(await readFile(path, 'utf8'), String(path));
  };
  return {
    read,
    async check() {
      const difference = checkRecording(await read());
      if (difference === null) return;
      const { number, entry, differences } = difference;
      throw new RecordingError(
        `${String(path)}, entry ${number} (\`${entry.event.type}\` for ${entry.actor} of ${entry.unit}):\n  ${differences.join('\n  ')}`,
        difference,
      );
    },
  };
}
